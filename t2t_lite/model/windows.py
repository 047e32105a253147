"""How restricted self-attention is cut into blocks of positions.

Only numbers: what counts a model's operations needs them without Keras.
"""

from typing import NamedTuple

_MIN_BLOCK_SIZE = 16  # Smaller matrix products are not faster.


class Blocks(NamedTuple):
    """Blocks of queries, each against the blocks of keys that it reaches."""

    size: int  # C, positions of a block
    before: int  # blocks of keys before its own, 0 or 1
    after: int  # and after it

    @property
    def num_keys(self) -> int:
        """M, the positions that the queries of a block are multiplied by."""
        return self.size * (self.before + 1 + self.after)

    def num_products(self, length: int) -> int:
        """Returns how many products of queries and keys, padding included.

        >>> blocks(2, 2).num_products(20)  # Two blocks of 16 by 48.
        1536
        """
        num_blocks = -(-length // self.size)
        return num_blocks * self.size * self.num_keys


def blocks(before: int, after: int) -> Blocks:
    """Returns the Blocks in which a position sees those around it.

    Args:
        before: how many positions before itself a position attends to.
        after: how many after itself.
    """
    return Blocks(
        size=max(before, after, _MIN_BLOCK_SIZE),
        before=int(before > 0),
        after=int(after > 0),
    )
