"""Which model a checkpoint's weights belong to.

Shapes do not tell. The weights for another vocabulary of the same size, or of a
model with other positions, fit as well, and produce garbage. So each checkpoint
records what its weights were trained with; those of version 0.1.0 do not, and
pass.
"""

import json
from collections.abc import Mapping
from typing import Any

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams

NAME = "origin"  # of the tensor: JSON, a str
_VOCABULARY = "vocabulary_sha256"
# Fields of HParams that change what the same weights compute.
_HPARAMS = (
    "num_layers",
    "num_decoder_layers",
    "d_model",
    "d_ff",
    "num_heads",
    "d_k",
    "d_v",
    "positions",
    "attention_window",
    "norm",
    "norm_epsilon",
    "activation",
    "attention_bias",
    "logit_bias",
    "tied_embeddings",
    "embedding_scale",
    "decoder_start",
    "task",
)
_REMEDY = "restore its own files from a backup, or choose another checkpoint"


def tensors(hparams: HParams, vocabulary_sha256: str) -> dict[str, str]:
    """Returns what a checkpoint records about its weights, by name.

    Args:
        hparams: HParams of the model.
        vocabulary_sha256: of its vocabulary.
    """
    known = {name: getattr(hparams, name) for name in _HPARAMS}
    return {NAME: json.dumps({_VOCABULARY: vocabulary_sha256} | known)}


def require(
    checkpoint: Mapping[str, Any],
    hparams: HParams,
    vocabulary_sha256: str,
    description: str,
) -> None:
    """Checks that a checkpoint's weights belong to a model.

    Args:
        checkpoint: dict of names to arrays; one without a record passes.
        hparams: HParams of the model.
        vocabulary_sha256: of its vocabulary.
        description: of the checkpoint.

    Raises:
        InputError: they belong to another; the first difference is named.
    """
    require_vocabulary(
        checkpoint, vocabulary_sha256, description, remedy=_REMEDY
    )
    for name, value in _read(checkpoint, description).items():
        here = getattr(hparams, name, value)
        if here != value:
            raise InputError(
                f"{description} was trained with {name}={value}; the settings "
                f"of this model say {name}={here}: {_REMEDY}"
            )


def require_vocabulary(
    checkpoint: Mapping[str, Any],
    vocabulary_sha256: str,
    description: str,
    remedy: str,
) -> None:
    """Checks that a checkpoint's weights are for the ids of a vocabulary.

    Args:
        checkpoint: that of `require`.
        vocabulary_sha256: that of `require`.
        description: that of `require`.
        remedy: what to do if they are not.

    Raises:
        InputError: they are for another vocabulary.
    """
    own = _read(checkpoint, description).get(_VOCABULARY, vocabulary_sha256)
    if own != vocabulary_sha256:
        raise InputError(
            f"{description} was trained with another vocabulary, whose "
            f"SHA-256 begins with {str(own)[:12]}; received "
            f"{vocabulary_sha256[:12]}: {remedy}"
        )


def _read(checkpoint, description):
    """Returns a checkpoint's record as a dict, empty if it has none."""
    if NAME not in checkpoint:
        return {}
    try:
        known = files.parse_json(checkpoint[NAME])
        if not isinstance(known, dict):
            raise TypeError
    except (ValueError, TypeError):
        raise InputError(
            f"{description} is damaged: {NAME} must be a JSON object; {_REMEDY}"
        ) from None
    return known
