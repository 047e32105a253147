"""Searches whose beams are as wide as each request needs."""

import math
import threading
from collections.abc import Callable

_MULTIPLE = 4  # Each width has a graph of its own, which takes seconds to make.


class SearchesByWidth:
    """Searches with beams of several widths, each made on first use.

    Args:
        make: a function from a width to its search.
        narrowest: int, the least width.
        widest: int, the largest, unless the least is larger; None for any.
    """

    def __init__(
        self,
        make: Callable[[int], Callable],
        narrowest: int,
        widest: int | None = None,
    ):
        self._make = make
        self._narrowest, self._widest = narrowest, widest
        self._by_width: dict[int, Callable] = {}
        self._making = threading.Lock()  # For threads of several devices.

    def width(self, needed: int) -> int:
        """Returns the width of the search to use for a needed width.

        >>> searches = SearchesByWidth(make=print, narrowest=5, widest=32)
        >>> [searches.width(needed) for needed in (2, 5, 6, 9, 40)]
        [5, 5, 8, 12, 32]
        """
        if needed <= self._narrowest:
            return self._narrowest
        width = math.ceil(needed / _MULTIPLE) * _MULTIPLE
        if self._widest is not None:
            width = min(width, self._widest)
        return max(width, self._narrowest)

    def __getitem__(self, width: int) -> Callable:
        """Returns the search of a width that `width` returned."""
        with self._making:
            if width not in self._by_width:
                self._by_width[width] = self._make(width)
            return self._by_width[width]
