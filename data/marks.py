"""Marks: which words of the two sentences of one derivation belong together.

Whatever is derived marks its words alike in both languages, and words with a
mark in common are linked.  A mark is a private-use character after the word.
A word that has one takes no other, so the smallest thing it is part of counts:

    marked("the boy", 7, "subject")    both words have the same mark
    marked("in the boy", 8, "place")   `in` has another if `the boy` is marked

There are marks only while links are `noted`; otherwise text stays as it is.
"""

import contextlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from t2t_lite_data.lexicon import Text

NUMBERS = itertools.count()
HALF = "\ue000"  # After a word that takes two marks, until it has the second.
FIRST, LAST = "\ue001", "\uf8ff"
MARK = re.compile(f"[{FIRST}-{LAST}]")
MARKS = re.compile(f"[{HALF}-{LAST}]+")
# What takes a mark: a word that has none, or one that is half-marked.
OPEN = re.compile(
    rf"(?<![^\s,])([^\s,{HALF}-{LAST}]+{HALF}?)(?![^\s,])"
    rf"|{HALF}(?=[{FIRST}-{LAST}])"
)


@dataclass
class Notes:
    """The marks of one sentence by origin; the links of all, by their pair."""

    marks: dict[tuple, str] = field(default_factory=dict)
    links: dict[tuple[str, str], str] = field(default_factory=dict)


_notes: Notes | None = None


@contextlib.contextmanager
def noted() -> Iterator[dict[tuple[str, str], str]]:
    """Has words marked; fills what it yields with the links of each pair."""
    global _notes
    _notes = Notes()
    try:
        yield _notes.links
    finally:
        _notes = None


def numbered() -> Any:
    """Returns the field of a dataclass with its number, which copies keep."""
    return field(default_factory=NUMBERS.__next__, compare=False, repr=False)


def marked(words: str, *origin: object) -> str:
    """Returns `words`, those that are open with the mark of `origin`."""
    if _notes is None or not words:
        return words
    new = chr(ord(FIRST) + len(_notes.marks))
    mark = _notes.marks.setdefault(origin, new)
    return OPEN.sub(rf"\1{mark}", words)


def joined(number: int, *parts: str) -> str:
    """Returns the parts that are not empty, each marked by its place."""
    words = filter(None, parts)
    if _notes is not None:
        words = (
            marked(part, number, i) for i, part in enumerate(parts) if part
        )
    return " ".join(words)


def double(word: str) -> str:
    """Returns `word`, which takes two marks, as im is `in` and `the`."""
    return word if _notes is None else word + HALF


def linked(text: Text, *origin: object) -> Text:
    """Returns both sides marked.

    Each open word is linked with all those of the other side. Where one side
    has only two, the last ones are linked, and so are the others: `a lot of
    work` and `viel Arbeit`.
    """
    if _notes is None:
        return text
    sides = text.english, text.german
    if min(len(OPEN.findall(side)) for side in sides) == 2:
        sides = (_last_marked(side, *origin, "last") for side in sides)
    return Text(*(marked(side, *origin) for side in sides))


def _last_marked(words: str, *origin: object) -> str:
    places = [found.start() for found in OPEN.finditer(words)]
    start = places[-1]
    return words[:start] + marked(words[start:], *origin)


def apart(text: Text) -> Text:
    """Returns `text`, linked no matter what it becomes a part of."""
    return linked(text, next(NUMBERS))


def removed(words: str) -> str:
    """Returns `words` without marks."""
    return MARKS.sub("", words)


def read(source: str, target: str) -> tuple[str, str]:
    """Returns both sentences without their marks, and notes their links."""
    if _notes is None:
        return source, target
    pair = removed(source), removed(target)
    _notes.links.setdefault(pair, pharaoh(source, target))
    _notes.marks.clear()
    return pair


def pharaoh(source: str, target: str) -> str:
    """Returns the links of words with a common mark: `0-0 1-2 2-1`."""
    sources, targets = (
        [set(MARK.findall(word)) for word in side.split()]
        for side in (source, target)
    )
    return " ".join(
        f"{i}-{j}"
        for i, these in enumerate(sources)
        for j, those in enumerate(targets)
        if these & those
    )
