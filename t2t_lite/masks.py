"""Who may attend to whom: boolean masks, True where attention is allowed."""

from keras import ops

from t2t_lite.hparams import PAD


def not_padding(ids_BM):
    """Returns may_attend_B11M: any query may attend to tokens, not padding.

    Args:
        ids_BM: int token ids of the memory, 0 for padding.

    Returns:
        bool [B, 1, 1, M], for attention logits of shape [B, H, L, M].
    """
    return ops.not_equal(ids_BM, PAD)[:, None, None, :]


def of_keras(mask_BM):
    """Returns may_attend_B11M for the mask that Keras hands to a layer.

    Args:
        mask_BM: bool, True for tokens; or None, which is returned.
    """
    return None if mask_BM is None else mask_BM[:, None, None, :]


def causal(length):
    """Returns may_attend_11LL: position i may attend to positions up to i.

    Args:
        length: int or scalar tensor, L.

    Returns:
        bool [1, 1, L, L].

    Source: section 3.2.3, "we need to prevent leftward information flow".
    """
    position = ops.arange(length)
    return (position[:, None] >= position[None, :])[None, None]
