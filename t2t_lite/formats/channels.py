"""The order of sines and cosines in a vector, in which programs differ.

Here they alternate, as in the paper; Marian and Hugging Face have all sines
first. A model works in either, as long as every weight that reads or writes
such a vector has the same order: so weights are reordered, and encodings are
not.
"""

from collections.abc import Mapping

import numpy as np

# Which axis of a weight has d_model channels, by the end of the weight's name.
# Its other axes, if any, are those of heads or hidden units.
_AXES = (
    ("embedding/embedding", 1),
    ("attention/query", 0),
    ("attention/key", 0),
    ("attention/value", 0),
    ("attention/output", 1),
    ("attention/output_bias", 0),
    ("hidden/kernel", 0),
    ("feed_forward/output/kernel", 1),
    ("feed_forward/output/bias", 0),
    ("norm/gamma", 0),
    ("norm/beta", 0),
    ("positions/table", 1),
)


def interleave(
    weights: Mapping[str, np.ndarray], d_model: int
) -> dict[str, np.ndarray]:
    """Returns weights for vectors whose sines and cosines alternate.

    Args:
        weights: by their names in a checkpoint, for vectors that have d_model /
            2 sines and then as many cosines.
        d_model: D.
    """
    sines, cosines = np.split(np.arange(d_model), 2)
    return _reorder(weights, np.stack([sines, cosines], 1).ravel())


def separate(
    weights: Mapping[str, np.ndarray], d_model: int
) -> dict[str, np.ndarray]:
    """Returns the weights that `interleave` makes these weights from.

    Args:
        weights: by their names in a checkpoint.
        d_model: D.
    """
    channels = np.arange(d_model)
    return _reorder(weights, np.concatenate([channels[::2], channels[1::2]]))


def encodings(length: int, d_model: int, marian: bool = False) -> np.ndarray:
    """Returns what `embedding.sinusoids` does, without Keras.

    Args:
        length: L; positions count from 0.
        d_model: D.
        marian: as for `embedding.sinusoids`.

    Returns:
        float32 [L, D], computed in float32 as there.
    """
    last = max(d_model - 2, 1) if marian else d_model
    frequency = np.float32(10000.0 ** (-np.arange(0, d_model, 2) / last))
    angle = np.arange(length, dtype=np.float32)[:, None] * frequency
    pairs = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
    return pairs.reshape(length, d_model)


def _reorder(
    weights: Mapping[str, np.ndarray], order_D: np.ndarray
) -> dict[str, np.ndarray]:
    """Returns weights whose n-th channel is the one that was order_D[n]-th."""
    return {
        name: _reorder_one(name, weight, order_D)
        for name, weight in weights.items()
    }


def _reorder_one(
    name: str, weight: np.ndarray, order_D: np.ndarray
) -> np.ndarray:
    for end, axis in _AXES:
        if name.endswith(end):
            return np.take(weight, order_D, axis)
    return weight
