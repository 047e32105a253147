"""Word alignments as text, in Pharaoh format: "0-0 1-2".

Each link is the number of a source word and that of a target word, from 0.
Words are separated by spaces.
"""

import re
import reprlib
from collections.abc import Iterable, Mapping

from t2t_lite.english import counted
from t2t_lite.errors import InputError

Link = tuple[int, int]  # a word of the source, a word of the target

_LINE = re.compile(r"\s*(?:[0-9]{1,9}-[0-9]{1,9}(?:\s+|$))*")


def as_text(links: Iterable[Link]) -> str:
    """Returns links in ascending order, separated by spaces.

    >>> as_text([(1, 2), (0, 0)])
    '0-0 1-2'
    """
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def parse(text: str) -> frozenset[Link]:
    """Returns the links of a line.

    Args:
        text: str; a blank one has no links.

    Raises:
        InputError: it has something other than links.
    """
    if not _LINE.fullmatch(text):
        raise InputError(
            'links must look like "0-0 1-2", a source word number and a target '
            f"word number each; received {reprlib.repr(text)}"
        )
    pairs = (link.split("-") for link in text.split())
    return frozenset((int(source), int(target)) for source, target in pairs)


def links_of(
    lines: Iterable[str], pairs: Iterable[tuple[str, str]]
) -> list[frozenset[Link]]:
    """Returns the links of pairs of text, a set for each.

    Args:
        lines: str, a line for each pair.
        pairs: (source, target).

    Raises:
        InputError: a line has something other than links, or links of words
            that do not exist, or there is not one line for each pair.
    """
    lines, pairs = list(lines), list(pairs)
    if len(lines) != len(pairs):
        raise InputError(
            "there must be a line of links for each pair; received "
            f"{len(lines)} for {len(pairs)} pairs"
        )
    found = []
    for number, (line, pair) in enumerate(zip(lines, pairs, strict=True), 1):
        try:
            links = parse(line)
            require_links_in_range(links, pair)
        except InputError as error:
            raise InputError(f"line {number} of the links: {error}") from None
        found.append(links)
    return found


def links_by_split(
    lines: Mapping[str, Iterable[str]],
    pairs: Mapping[str, Iterable[tuple[str, str]]],
) -> dict[str, list[frozenset[Link]]]:
    """Returns `links_of` for each split.

    Args:
        lines: those of `links_of`, by split.
        pairs: likewise.

    Raises:
        InputError: that of `links_of`, with the split's name; or a split has
            no links.
    """
    found = {}
    for split, split_lines in lines.items():
        try:
            found[split] = links_of(split_lines, pairs[split])
        except InputError as error:
            raise InputError(f"{split}: {error}") from None
        if not any(found[split]):
            raise InputError(f"{split}: no pair has any word links")
    return found


def require_links_in_range(
    links: Iterable[Link], pair: tuple[str, str]
) -> None:
    """Raises InputError if a link is of a word that does not exist."""
    source_words, target_words = (len(side.split()) for side in pair)
    for link in sorted(links):
        source, target = link
        if source >= source_words or target >= target_words:
            raise InputError(
                f"link {as_text([link])} is out of range: the pair has "
                f"{counted(source_words, 'source word')} and "
                f"{counted(target_words, 'target word')}"
            )
