"""Who may attend to whom: boolean masks, True where attention is allowed."""

import keras
from keras import ops

from t2t_lite.errors import require
from t2t_lite.tensor import Tensor
from t2t_lite.token_ids import PAD


def not_padding(ids_BM: Tensor) -> Tensor:
    """Returns may_attend_B11M: any query may attend to tokens, not padding.

    Args:
        ids_BM: int token ids of the memory, 0 for padding.

    Returns:
        bool [B, 1, 1, M], for attention logits of shape [B, H, L, M].
    """
    return ops.not_equal(ids_BM, PAD)[:, None, None, :]


def merge(may_attend: Tensor | None, mask_BM: Tensor | None) -> Tensor | None:
    """Returns `may_attend` limited to the tokens of a Keras mask.

    Args:
        may_attend: bool, broadcasts to [B, H, L, M]; None for no limits.
        mask_BM: bool, True for tokens; None for no limits.

    Returns:
        bool, broadcasts to [B, H, L, M]; None if both are.

    Raises:
        InputError: one is not bool, or may_attend has three axes.
    """
    for name, mask in (("may_attend", may_attend), ("mask", mask_BM)):
        _require_bool(name, mask)
    _require_known_axes(may_attend)
    if mask_BM is None:
        return may_attend
    mask_B11M = mask_BM[:, None, None, :]
    return mask_B11M if may_attend is None else may_attend & mask_B11M


def _require_bool(name, mask):
    """Raises InputError if a mask might be one of numbers to be added."""
    if mask is not None:
        dtype = getattr(mask, "dtype", None) or type(mask).__name__
        if hasattr(mask, "dtype"):
            dtype = keras.backend.standardize_dtype(dtype)
        require(f"{name} must be bool", dtype == "bool", dtype=dtype)


def _require_known_axes(may_attend):
    """Raises InputError if a mask has three axes: is the first B or H?"""
    if may_attend is not None and may_attend.shape is not None:
        shape = may_attend.shape
        is_known = getattr(shape, "rank", 0) is None or len(shape) != 3
        rule = "may_attend must have four axes, [B, H, L, M], or at most two"
        require(rule, is_known or shape[0] == 1, shape=shape)


def sliding_window(length: int | Tensor, before: int, after: int) -> Tensor:
    """Returns may_attend_11LL: position i sees those from i-before to i+after.

    Args:
        length: int or scalar tensor, L.
        before: how many positions before itself a position attends to.
        after: how many after itself.

    Returns:
        bool [1, 1, L, L].

    Source: section 4, "restricted" self-attention.
    """
    position = ops.arange(length, dtype="int32")
    distance = position[None, :] - position[:, None]
    return ((distance >= -before) & (distance <= after))[None, None]


def causal(length: int | Tensor) -> Tensor:
    """Returns may_attend_11LL: position i may attend to positions up to i.

    >>> ops.cast(causal(3), "int32")[0, 0]
    <tf.Tensor: shape=(3, 3), dtype=int32, numpy=
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]], dtype=int32)>

    Args:
        length: int or scalar tensor, L.

    Returns:
        bool [1, 1, L, L].

    Source: section 3.2.3, "we need to prevent leftward information flow".
    """
    position = ops.arange(length, dtype="int32")
    return (position[:, None] >= position[None, :])[None, None]
