"""Positions as sines and cosines."""

import numpy as np
from keras import ops


def sinusoids(position_L, d_model):
    """Returns the encodings of positions, PE_LD.

    PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the
    same angle, so sines and cosines alternate along the last axis.

    Args:
        position_L: number [L], positions counted from 0.
        d_model: even int, D.

    Returns:
        float32 [L, D].

    Source: section 3.5.

    >>> np.round(sinusoids([0, 1], 4), 2).tolist()[0]
    [0.0, 1.0, 0.0, 1.0]
    """
    two_i = np.arange(0, d_model, 2)
    frequency = np.float32(10000.0 ** (-two_i / d_model))
    angle = ops.cast(position_L, "float32")[:, None] * frequency
    pairs = ops.stack([ops.sin(angle), ops.cos(angle)], axis=-1)
    return ops.reshape(pairs, (-1, d_model))
