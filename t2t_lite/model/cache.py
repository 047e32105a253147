"""What decoding keeps of earlier positions, so that a step computes only one.

Beam search changes the order of its hypotheses after each step. Keys and values
do not move with them: they stay in the slot that they were written to, W slots
for each position, and a small table says which slot the ancestor of each
hypothesis is in. Here W = 2; after position 0, both hypotheses continue the
first one, and after position 1 they swap places:

    keys and values       ancestor_BWM          hypothesis w attends to
    position  0  1  2     position  0  1  2
    slot 0    a  b  d     w = 0     0  1  0     a  c  d
    slot 1    -  c  e     w = 1     0  0  1     a  b  e

So a step reorders W rows of numbers, but no keys or values.
"""

from typing import NamedTuple

from keras import ops

from t2t_lite.model import rows
from t2t_lite.model.multi_head_attention import KeysValues
from t2t_lite.tensor import Tensor


class DecoderCache(NamedTuple):
    """What decoding one more position needs of the source and its past.

    M is the number of positions that there is room for, P = M W that of their
    slots, position by position, and N that of the decoder's layers.
    """

    position: Tensor  # int32 [], of the next token
    ancestor_BWM: Tensor  # int32, the slot of hypothesis w's ancestor at m
    past: tuple[KeysValues, ...]  # N of k_BHPK and v_BHPK
    memory: tuple[KeysValues, ...]  # N of k_BHSK and v_BHSK
    may_attend_B11S: Tensor  # bool, which positions of the memory are tokens


class Positions(NamedTuple):
    """The positions first, first + 1, ... first + number - 1."""

    first: Tensor  # int32 []
    number: int | Tensor  # int32 []


class PastView(NamedTuple):
    """What all layers share at one position: where to write, what to see."""

    position: Tensor | None  # int32 [], where to write; None to append
    visible: Positions | None  # which self-attention reaches; None for all
    is_ancestor_B1WP: Tensor  # bool, P slots at the visible positions

    def write(self, past: KeysValues, new: KeysValues) -> KeysValues:
        """Returns the past with the keys and values of this position.

        Args:
            past: float [B, H, P, K] of each, of all positions.
            new: float [B, H, W, K] of each, of this one.
        """
        return KeysValues(
            *(
                _write(old_BHPK, new_BHWK, self.position)
                for old_BHPK, new_BHWK in zip(past, new, strict=True)
            )
        )

    def read(self, past: KeysValues) -> KeysValues:
        """Returns the keys and values at the visible positions."""
        if self.visible is None:
            return past
        W = ops.shape(self.is_ancestor_B1WP)[2]
        return KeysValues(
            *(_read(old_BHPK, self.visible, W) for old_BHPK in past)
        )


def empty_past(shape: tuple, depths: tuple[int, int], dtype: str) -> KeysValues:
    """Returns keys and values that are 0.

    Args:
        shape: (B, H, P), int or scalar tensors.
        depths: d_k and d_v.
        dtype: name of a float type.
    """
    return KeysValues(*(ops.zeros((*shape, K), dtype) for K in depths))


def unknown_zero(x: Tensor) -> Tensor:
    """Returns an int32 0 whose value a graph does not know.

    With a constant 0, the room for positions would be of a fixed size, and a
    loop in a graph refuses a cache that outgrows it.
    """
    length = ops.shape(x)[-1]
    return length - length


def start_position(
    cache: DecoderCache, window: int, grows: bool
) -> tuple[DecoderCache, PastView]:
    """Returns the cache with each hypothesis in its own slot, and the view.

    Args:
        cache: the cache of the positions before.
        window: r, how many positions around each one self-attention is
            restricted to; 0 for all.
        grows: whether the cache has room only for the positions before, and
            gets longer.
    """
    write_at = None if grows else cache.position
    B, W, _ = ops.shape(cache.ancestor_BWM)
    own_BW1 = ops.broadcast_to(ops.arange(W, dtype="int32")[:, None], (B, W, 1))
    cache = cache._replace(
        ancestor_BWM=_write(cache.ancestor_BWM, own_BW1, write_at)
    )
    visible = _visible(cache, window)
    return cache, PastView(write_at, visible, _is_ancestor(cache, visible))


def reorder(cache: DecoderCache, parent_BW: Tensor) -> DecoderCache:
    """Returns the cache in which hypothesis w continues hypothesis parent_BW.

    Args:
        cache: the cache after a step.
        parent_BW: int, which of the W hypotheses each one continues.
    """
    return cache._replace(
        ancestor_BWM=rows.gather(cache.ancestor_BWM, parent_BW)
    )


def _write(old_BXP: Tensor, new_BXW: Tensor, position: Tensor | None) -> Tensor:
    """Returns old [B, X, P, ...] with new [B, X, W, ...] at a position.

    X counts heads for keys and values; for ancestors, hypotheses, and W is 1.

    Args:
        old_BXP: what was written at all positions.
        new_BXW: what to write at one.
        position: int32 [], which one; None to append.
    """
    if position is None:
        return ops.concatenate([old_BXP, new_BXW], 2)
    B, X, W, *rest = ops.shape(new_BXW)
    M = ops.shape(old_BXP)[2] // W
    row, place = (ops.arange(n, dtype="int32") for n in (B, X))
    places = row[:, None], place, position
    index_BX3 = ops.stack([ops.broadcast_to(n, (B, X)) for n in places], -1)
    # Under XLA, a slice_update would copy all of it in each step.
    updated_BXMW = ops.scatter_update(
        ops.reshape(old_BXP, (B, X, M, W, *rest)),
        ops.reshape(index_BX3, (B * X, 3)),
        ops.reshape(new_BXW, (B * X, W, *rest)),
    )
    return ops.reshape(updated_BXMW, (B, X, M * W, *rest))


def _read(old_BHPK: Tensor, visible: Positions, W: int | Tensor) -> Tensor:
    """Returns what is in the W slots of each visible position."""
    B, H, _, K = ops.shape(old_BHPK)
    start = (0, 0, visible.first * W, 0)
    return ops.slice(old_BHPK, start, (B, H, visible.number * W, K))


def _visible(cache: DecoderCache, window: int) -> Positions | None:
    """Returns the positions in the window; None for all."""
    if not window:
        return None
    number, M = window // 2 + 1, ops.shape(cache.ancestor_BWM)[2]
    # XLA wants a plain number if there can be one.
    number = min(number, M) if isinstance(M, int) else ops.minimum(number, M)
    return Positions(ops.maximum(cache.position - number + 1, 0), number)


def _is_ancestor(cache: DecoderCache, visible: Positions | None) -> Tensor:
    """Returns bool [B, 1, W, P]: the slots that each hypothesis attends to."""
    B, W, M = ops.shape(cache.ancestor_BWM)
    ancestor_BWM, first = cache.ancestor_BWM, 0
    if visible is not None:
        first, M = visible
        ancestor_BWM = ops.slice(ancestor_BWM, (0, 0, first), (B, W, M))
    slot = ops.arange(W, dtype="int32")
    position_M = first + ops.arange(M, dtype="int32")
    is_past_M1 = (position_M <= cache.position)[:, None]
    is_ancestor_BWMW = (ancestor_BWM[..., None] == slot) & is_past_M1
    return ops.reshape(is_ancestor_BWMW, (B, 1, W, M * W))
