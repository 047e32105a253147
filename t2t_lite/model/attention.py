"""Scaled dot-product attention: of all positions, and within a window."""

from collections.abc import Callable

from keras import ops

from t2t_lite.model import windows
from t2t_lite.tensor import NEG_INF, Tensor


def attention_weights(
    q_BHLK: Tensor, k_BHMK: Tensor, may_attend: Tensor | None = None
) -> Tensor:
    """Returns softmax(Q K^T / sqrt(d_k)) for each head, float32 [B, H, L, M].

    The arguments are those of `dot_product_attention`.
    """
    d_k = q_BHLK.shape[-1]
    k_BHKM = ops.swapaxes(k_BHMK, -1, -2)
    logits_BHLM = ops.cast(ops.matmul(q_BHLK * d_k**-0.5, k_BHKM), "float32")
    if may_attend is not None:
        logits_BHLM = ops.where(may_attend, logits_BHLM, NEG_INF)
    if logits_BHLM.shape[-1] == 1:  # Keras warns of a softmax over one.
        return ops.ones_like(logits_BHLM)
    return ops.softmax(logits_BHLM)


def dot_product_attention(
    q_BHLK: Tensor,
    k_BHMK: Tensor,
    v_BHMK: Tensor,
    may_attend: Tensor | None = None,
    *,
    dropout: Callable[[Tensor], Tensor] | None = None,
    record: Callable[[Tensor], None] | None = None,
) -> Tensor:
    """Returns the values mixed by softmax(Q K^T / sqrt(d_k)) V for each head.

    Args:
        q_BHLK: float queries. More axes may precede the last two.
        k_BHMK: float keys, of the queries' depth d_k.
        v_BHMK: float values, of depth d_v.
        may_attend: bool, broadcasts to [B, H, L, M]; or None for no limits. A
            query that may attend to nothing gets the mean of all values.
        dropout: a function of the weights [B, H, L, M], or None.
        record: a function that is given the weights before dropout, or None.

    Returns:
        float [B, H, L, d_v], in the values' dtype. The softmax is computed in
        float32 regardless.

    Source: section 3.2.1, Eq. 1.
    """
    weights_BHLM = attention_weights(q_BHLK, k_BHMK, may_attend)
    if record is not None:
        record(weights_BHLM)
    weights_BHLM = ops.cast(weights_BHLM, v_BHMK.dtype)
    if dropout is not None:
        weights_BHLM = dropout(weights_BHLM)
    return ops.matmul(weights_BHLM, v_BHMK)


def windowed_attention(
    q_BHLK: Tensor,
    k_BHLK: Tensor,
    v_BHLK: Tensor,
    *,
    before: int,
    after: int,
    may_attend_B11L: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Returns what `dot_product_attention` does, but within a window.

    Position i attends to positions i - before to i + after. Queries are taken
    in blocks, each against the few blocks of keys that it reaches: O(L r d)
    time and memory for r = before + 1 + after, not O(L^2 d).

    Args:
        q_BHLK: float queries.
        k_BHLK: float keys.
        v_BHLK: float values, of depth d_v.
        before: how many positions before itself a position attends to.
        after: how many after itself.
        may_attend_B11L: bool, which keys may be attended to; None for all.
        dropout: a function of the weights, or None.

    Returns:
        float [B, H, L, d_v]. A query that may attend to nothing within its
        window gets the mean of some values, not of all.

    Source: section 4, "restricted" self-attention; Table 1.
    """
    B, _, L, _ = ops.shape(q_BHLK)
    cut = windows.blocks(before, after)
    C, M = cut.size, cut.num_keys
    num_blocks = (L + C - 1) // C  # N
    is_key_B1L = (
        ops.ones((B, 1, L), "bool")
        if may_attend_B11L is None
        else ops.broadcast_to(may_attend_B11L[:, 0], (B, 1, L))
    )
    k_BHNMK, v_BHNMK, is_key_B1NM = (
        _with_neighbors(_blocks(x, num_blocks, C), cut)
        for x in (k_BHLK, v_BHLK, ops.cast(is_key_B1L, "int32"))
    )
    key = ops.arange(M, dtype="int32") - C * cut.before
    distance_CM = key[None] - ops.arange(C, dtype="int32")[:, None]
    is_near_CM = (distance_CM >= -before) & (distance_CM <= after)
    heads_BHNCK = dot_product_attention(
        _blocks(q_BHLK, num_blocks, C),
        k_BHNMK,
        v_BHNMK,
        may_attend=is_near_CM & (is_key_B1NM[:, :, :, None] > 0),
        dropout=dropout,
    )
    H, K = heads_BHNCK.shape[1], heads_BHNCK.shape[-1]
    return ops.reshape(heads_BHNCK, (B, H, num_blocks * C, K))[:, :, :L]


def _blocks(x_BHL: Tensor, num_blocks: int | Tensor, C: int) -> Tensor:
    """Returns [B, H, N, C, ...]: N blocks of x, the last filled up with 0."""
    B, H, L = ops.shape(x_BHL)[:3]
    rest = x_BHL.shape[3:]
    missing = num_blocks * C - L
    widths = ((0, 0), (0, 0), (0, missing), *((0, 0) for _ in rest))
    return ops.reshape(ops.pad(x_BHL, widths), (B, H, num_blocks, C, *rest))


def _with_neighbors(x_BHNC: Tensor, cut: windows.Blocks) -> Tensor:
    """Returns [B, H, N, M, ...]: blocks between their neighbors, 0 outside.

    Four blocks, where a query sees one block before its own and one after:

        x         a b c d
        result    0 a b        keys of the queries in block a
                    a b c      of those in block b
                      b c d
                        c d 0
    """
    nothing = ops.zeros_like(x_BHNC[:, :, :1])
    parts = [x_BHNC]
    if cut.before:
        parts = [ops.concatenate([nothing, x_BHNC[:, :, :-1]], 2), *parts]
    if cut.after:
        parts = [*parts, ops.concatenate([x_BHNC[:, :, 1:], nothing], 2)]
    return ops.concatenate(parts, 3)
