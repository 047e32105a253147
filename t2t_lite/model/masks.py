"""Who may attend to whom: boolean masks, True where attention is allowed."""

from keras import ops

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
    """Returns `may_attend` limited to the tokens of a mask of Keras.

    Args:
        may_attend: bool, broadcasts to [B, H, L, M]; None for no limits.
        mask_BM: bool, True for tokens; None for no limits.

    Returns:
        bool, broadcasts to [B, H, L, M]; None if both are.
    """
    if mask_BM is None:
        return may_attend
    mask_B11M = mask_BM[:, None, None, :]
    return mask_B11M if may_attend is None else may_attend & mask_B11M


def sliding_window(length: int | Tensor, before: int, after: int) -> Tensor:
    """Returns may_attend_11LL: position i to those from i-before to i+after.

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
