"""The k largest of many numbers, for a beam search over a large vocabulary.

The k best numbers are in the k chunks with the largest maxima. Finding those is
a plain reduction, which is much faster than the search for the best.
"""

import numpy as np
from keras import ops

from t2t_lite.model.rows import gather
from t2t_lite.tensor import Tensor

_CHUNK = 128  # Numbers in a chunk.


def top_k(x_BN: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Returns what `ops.top_k` does, ties included, from less of x.

    >>> values, indices = top_k(np.array([[3.0, 9.0, 4.0, 9.0]]), 2)
    >>> np.array(values).tolist(), np.array(indices).tolist()
    ([[9.0, 9.0]], [[1, 3]])

    Args:
        x_BN: float.
        k: how many; at most N.

    Returns:
        the k largest of each row in falling order, and their int32 indices,
        both [B, k].
    """
    B, N = ops.shape(x_BN)
    num_chunks = -(-N // _CHUNK)
    if num_chunks <= k:
        best_BK, index_BK = ops.top_k(x_BN, k)
        return best_BK, ops.cast(index_BK, "int32")
    if num_chunks * _CHUNK > N:
        missing = num_chunks * _CHUNK - N
        x_BN = ops.pad(x_BN, ((0, 0), (0, missing)), constant_values=-np.inf)
    x_BNC = ops.reshape(x_BN, (B, num_chunks, _CHUNK))
    _, chunk_BK = ops.top_k(ops.max(x_BNC, axis=-1), k)
    # In order: of equal numbers, the first one is the better.
    chunk_BK = ops.sort(ops.cast(chunk_BK, "int32"), axis=-1)
    candidates_BKC = gather(x_BNC, chunk_BK)
    best_BK, place_BK = ops.top_k(
        ops.reshape(candidates_BKC, (B, k * _CHUNK)), k
    )
    place_BK = ops.cast(place_BK, "int32")
    best_chunk_BK = gather(chunk_BK, place_BK // _CHUNK)
    return best_BK, best_chunk_BK * _CHUNK + place_BK % _CHUNK
