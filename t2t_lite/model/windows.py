"""How restricted self-attention is cut into blocks of positions."""

from typing import NamedTuple

_SMALLEST = 16  # Smaller matrix products take no less time.


class Blocks(NamedTuple):
    """Blocks of queries, each against the blocks of keys that it reaches."""

    size: int  # C, positions of a block
    before: int  # blocks of keys before its own, 0 or 1
    after: int  # and after it

    @property
    def num_keys(self):
        """M, the positions that the queries of a block are multiplied by."""
        return self.size * (self.before + 1 + self.after)

    def num_products(self, length):
        """Returns how many queries times keys there are, filled-up ones too.

        >>> blocks(2, 2).num_products(20)  # Two blocks of 16 by 48.
        1536
        """
        return -(-length // self.size) * self.size * self.num_keys


def blocks(before, after):
    """Returns the Blocks in which a position sees those around it.

    Args:
        before: int, how far back a position attends.
        after: int, how far ahead.
    """
    size = max(before, after, _SMALLEST)
    return Blocks(size, int(before > 0), int(after > 0))
