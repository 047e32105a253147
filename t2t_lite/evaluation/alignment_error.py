"""How far the links found between words are from the right ones."""

from collections.abc import Collection, Sequence

from t2t_lite.errors import require
from t2t_lite.text.pharaoh import Link


def alignment_error_rate(
    found: Sequence[Collection[Link]], right: Sequence[Collection[Link]]
) -> float:
    """Returns the share of links, found and right ones, that have no match.

    It is 1 - 2 |A & S| / (|A| + |S|) over all pairs, for links A that were
    found and right ones S, all of which are sure. If a pair has no right
    links, they are not known, and it does not count.

    Args:
        found: the links of each pair.
        right: the links of each pair.

    Raises:
        InputError: no pair has right links.

    >>> alignment_error_rate([{(0, 0), (1, 1)}], [{(0, 0), (1, 2)}])
    0.5

    Source: Och and Ney 2003, "A Systematic Comparison of Various Statistical
    Alignment Models", section 4.
    """
    known = [
        (set(links), set(expected))
        for links, expected in zip(found, right, strict=True)
        if expected
    ]
    require("a pair must have links", bool(known), pairs=len(right))
    matches = sum(len(links & expected) for links, expected in known)
    return 1 - 2 * matches / sum(len(a) + len(b) for a, b in known)
