"""The system of "Attention Is All You Need" on TensorFlow and Keras.

Names everywhere use one key to shapes (after Noam Shazeer's shape suffixes):
`q_BHLK` is a query tensor of shape [B, H, L, K].

  B  batch (sentences)            D  d_model
  S  source length                F  d_ff
  T  target length                H  heads
  L  length of the queries        K  depth of one head (d_k or d_v)
  M  length of the memory         V  vocabulary
  W  beam width                   1  an axis that broadcasts

Layers, the model, the loss and the beam search are written in `keras.ops` and
run on any Keras backend. Tokenization, batching, training, checkpoints and
translation use TensorFlow. Names are loaded when they are first used, so
importing the package costs nothing.
"""

import importlib
from typing import Any

__version__ = "0.2.0.dev0"

_HOMES = {
    "Decoder": "model.stacks",
    "Encoder": "model.stacks",
    "Transformer": "model.transformer",
    "DecoderLayer": "model.layers",
    "EncoderLayer": "model.layers",
    "FeedForward": "model.layers",
    "MultiHeadAttention": "model.multi_head_attention",
    "PositionEmbedding": "model.embedding",
    "TiedEmbedding": "model.embedding",
    "HParams": "hparams",
    "PRESETS": "hparams",
    "InputError": "errors",
    "LabelSmoothedCrossEntropy": "model.loss",
    "NoamSchedule": "optimization.optimizer",
    "Parser": "parsing.parser",
    "Translator": "translation.line_translator",
    "Vocabulary": "text.vocabulary",
    "batched_by_tokens": "text.pipeline",
    "encoded": "text.pipeline",
    "teacher_forced": "text.pipeline",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 't2t_lite' has no attribute {name!r}")
    home = importlib.import_module(f"t2t_lite.{_HOMES[name]}")
    return getattr(home, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
