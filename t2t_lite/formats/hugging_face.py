"""Hugging Face's Marian models, in and out: `MarianMTModel` of transformers.

OPUS-MT's models are folders of this kind:

config.json              the sizes, and which parameters are shared
generation_config.json   how to search
model.safetensors        the weights; or pytorch_model.bin
vocab.json               the ids of pieces; target_vocab.json has the target's
source.spm, target.spm   the SentencePiece models
tokenizer_config.json

The class has the paper's post-norm layers and positions, with all sines before
all cosines, and a bias on each projection of attention. Two of those four
biases suffice exactly: the key's adds the same to all scores of a query, which
the softmax cancels, and the value's comes out of attention unchanged, because
the weights of attention sum to 1.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from t2t_lite.errors import InputError

EPSILON = 1e-5  # Of layer normalization: fixed in the class.
MOST_LENGTH = 512  # MarianTokenizer's default.
# (share_encoder_decoder_embeddings, tie_word_embeddings) of tied_embeddings.
SHARED_AND_TIED = {
    "all": (True, True),
    "input": (True, False),
    "target": (False, True),
    "none": (False, False),
}
ATTENTIONS = {
    "encoder": {"self_attention": "self_attn"},
    "decoder": {
        "self_attention": "self_attn",
        "memory_attention": "encoder_attn",
    },
}
PROJECTIONS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
}
LOGITS_BIAS = "final_logits_bias"
SHARED = "model.shared.weight"
SOURCE = "model.encoder.embed_tokens.weight"
TARGET = "model.decoder.embed_tokens.weight"
OUTPUT = "lm_head.weight"
EMBEDDING = "transformer/embedding"
SOURCE_EMBEDDING = "transformer/source_embedding"
OUTPUT_EMBEDDING = "transformer/output_embedding"


class Tensors:
    """The tensors of a file, each of which must be used."""

    def __init__(self, tensors: Mapping[str, np.ndarray]):
        self._left = dict(tensors)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str, *shape: int) -> np.ndarray:
        """Returns the float32 tensor `name`, which must be of this shape."""
        value = self._left.pop(name, None)
        received = "nothing" if value is None else list(value.shape)
        if received != list(shape):
            raise InputError(
                f"the weights must have {name} of shape {list(shape)}; "
                f"received {received}"
            )
        if not np.isfinite(value).all():
            raise InputError(f"{name} must be finite; received inf or nan")
        return np.asarray(value, np.float32)

    def take_one(self, names: Sequence[str], *shape: int) -> np.ndarray:
        """Returns the one tensor that is stored under one name or several."""
        first, *others = [n for n in names if n in self] or names[:1]
        value = self.take(first, *shape)
        for other in others:
            if not np.array_equal(value, self.take(other, *shape)):
                raise InputError(
                    f"{first} and {other} must be the same in a model whose "
                    "config.json ties them; received different values"
                )
        return value

    def require_none_left(self) -> None:
        """Raises InputError if a tensor was not taken."""
        if self._left:
            name = min(self._left)
            raise InputError(
                "the weights must be those of a MarianMTModel with these "
                f"settings; received {name} {list(self._left[name].shape)}, "
                "which it does not have"
            )


def layers(
    config: Mapping[str, Any],
) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yields (path here, path there, attentions) for each layer."""
    for stack, attentions in ATTENTIONS.items():
        for n in range(config[f"{stack}_layers"]):
            ours = f"transformer/{stack}/layer_{n}"
            yield ours, f"model.{stack}.layers.{n}", attentions


def dense_layers(
    d_model: int, d_ff: int
) -> Iterator[tuple[str, str, tuple[int, int]]]:
    """Yields (name here, name there, shape there)."""
    yield "hidden", "fc1", (d_ff, d_model)
    yield "output", "fc2", (d_model, d_ff)


def norms(attentions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields (sub-layer here, its normalization there)."""
    for name, attention in attentions.items():
        yield name, f"{attention}_layer_norm"
    yield "feed_forward", "final_layer_norm"
