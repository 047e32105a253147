"""The best continuations of hypotheses, for a search over a large vocabulary.

The k best are in the k chunks with the largest maxima. Finding those is a plain
reduction, which is much faster than the search for the best. What all logits of
a hypothesis have in common is added to these chunks only.
"""

import numpy as np
from keras import ops

from t2t_lite.model.rows import gather
from t2t_lite.tensor import Tensor

_CHUNK = 128  # About how many numbers a chunk has.


def top_k(x_BWV: Tensor, added_BW: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Returns what `ops.top_k` does for the W * V sums of each row.

    Of equal sums, the first one is the better.

    >>> x = np.array([[[3.0, 9.0], [4.0, 8.0]]])
    >>> values, indices = top_k(x, np.array([[0.0, 1.0]]), 2)
    >>> np.array(values).tolist(), np.array(indices).tolist()
    ([[9.0, 9.0]], [[1, 3]])

    Args:
        x_BWV: float.
        added_BW: float, what is added to all V numbers.
        k: how many; at most W * V.

    Returns:
        the k largest sums of each row in falling order, and their int32 places
        among all W * V, both [B, k]. Where a sum is -inf, any place.
    """
    B, W, V = ops.shape(x_BWV)
    C = _chunk_size(x_BWV.shape[-1])
    M = -(-V // C)
    if M * C > V:
        missing = ((0, 0), (0, 0), (0, M * C - V))
        x_BWV = ops.pad(x_BWV, missing, constant_values=-np.inf)
    x_BWMC = ops.reshape(x_BWV, (B, W, M, C))
    max_BWM = ops.max(x_BWMC, axis=-1) + added_BW[..., None]
    _, chunk_BN = ops.top_k(ops.reshape(max_BWM, (B, W * M)), min(k, W * M))
    # In order: of equal numbers, the first one is the better.
    chunk_BN = ops.sort(ops.cast(chunk_BN, "int32"), axis=-1)
    x_BNC = gather(ops.reshape(x_BWMC, (B, W * M, C)), chunk_BN)
    sums_BNC = x_BNC + gather(added_BW, chunk_BN // M)[..., None]
    best_BK, place_BK = ops.top_k(
        ops.reshape(sums_BNC, (B, ops.shape(chunk_BN)[1] * C)), k
    )
    place_BK = ops.cast(place_BK, "int32")
    chunk_BK = gather(chunk_BN, place_BK // C)
    # Of a row, the padding at its end is the last of all, and never needed.
    return best_BK, chunk_BK // M * V + chunk_BK % M * C + place_BK % C


def _chunk_size(V: int) -> int:
    """Returns how many numbers to put into a chunk: a divisor of V, if it can.

    >>> [_chunk_size(V) for V in (9, 8_000, 32_000, 37_000, 8_011)]
    [9, 125, 128, 125, 128]
    """
    if V <= _CHUNK:
        return V
    sizes = range(_CHUNK // 2, 2 * _CHUNK)
    divisors = [size for size in sizes if V % size == 0]
    return min(divisors, key=lambda size: abs(size - _CHUNK), default=_CHUNK)
