"""A glossary: terms of a source, and what its translation must have for them.

Words are compared, not characters: "car" is not found in "cars". A source term
in lowercase is found in any case, others only as they are written. Of terms
that begin at the same word, the longest one counts, and a text is read from
left to right:

    glossary    "red"   "red car"   "car door"
    text        the red car door is red
                    ------- red car     --- red
"""

import collections
import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from t2t_lite.alignment.word_alignment import SPACED
from t2t_lite.constraints.terms import Term, merge_terms
from t2t_lite.errors import InputError, require
from t2t_lite.text.sentences import LANGUAGE_TOKEN
from t2t_lite.text.vocabulary import SPACE, Vocabulary

_WORD = re.compile(r"\w+|[^\w\s]")
_TOKEN = re.compile(LANGUAGE_TOKEN)


class _Match(NamedTuple):
    """A source term that was found in a text."""

    first: int  # its words, by their numbers
    end: int
    source: str
    target: str


class Glossary:
    """Finds the terms of sources, and how to translate them.

    Args:
        pairs: (source term, target term), str; a source term may come twice if
            its translation is the same.
        vocabulary: Vocabulary.

    Raises:
        InputError: a term is blank or has two translations, or the vocabulary
            has no piece for a character of a target term.
    """

    def __init__(
        self, pairs: Sequence[tuple[str, str]], vocabulary: Vocabulary
    ):
        self._targets: dict[tuple[str, ...], tuple[str, str]] = {}
        self._longest: dict[str, int] = {}  # By the first word, in lowercase.
        for source, target in pairs:
            self._add(" ".join(source.split()), " ".join(target.split()))
        targets = [target for _, target in self._targets.values()]
        encoded = vocabulary.target.encode(targets, num_threads=1)
        self._ids = {}
        for target, ids in zip(targets, encoded, strict=True):
            self._ids[target] = tuple(ids[:-1])
            if vocabulary.target.unknown_id in ids or len(ids) < 2:
                raise InputError(
                    "the vocabulary has no piece for a character of "
                    f"{target!r}: leave it out of the glossary"
                )

    def _add(self, source: str, target: str) -> None:
        words = tuple(_words(source))
        require("a term of a glossary must not be blank", words, source=source)
        rule = "the translation of a term must not be blank"
        require(rule, target, source=source)
        rule = "a translation must have spaces, not U+2581"
        require(rule, SPACE not in target, source=source)
        _, before = self._targets.setdefault(words, (source, target))
        require(
            f"{source!r} must have one translation in a glossary",
            before == target,
            given=f"{before!r} and {target!r}",
        )
        first = words[0].lower()
        self._longest[first] = max(self._longest.get(first, 0), len(words))

    def terms(self, text: str, room: int) -> tuple[list[Term], list[str]]:
        """Returns what the translation of a text must contain.

        Args:
            text: str, one sentence.
            room: int, the most tokens of the translation, without EOS.

        Returns:
            Terms, all different; and a message on each term that is left out.
        """
        words = _words_in(text)
        matches, messages = self._matches([word.text for word in words])
        spans = collections.defaultdict(tuple)
        for match in matches:
            start, end = words[match.first].start, words[match.end - 1].end
            spans[match.target] += ((start, end),)
        kept = {}
        for target, its_spans in spans.items():
            size = len(self._ids[target]) * len(its_spans)
            if size > room:
                messages.append(
                    f"there is no room for {target!r}: it is left out"
                )
                continue
            room -= size
            kept[target] = its_spans
        asked = []
        for target, its_spans in kept.items():
            # Those within longer terms are there in addition to its own.
            within = sum(
                len(others) * self._count_within(target, other)
                for other, others in kept.items()
                if other != target
            )
            count = len(its_spans) + within
            asked.append(Term(self._ids[target], count, its_spans))
        return merge_terms(asked), messages

    def _count_within(self, target: str, other: str) -> int:
        """Returns how often a target term occurs in another, as whole words."""
        pairs = (
            (_words(target), _words(other)),
            (self._ids[target], self._ids[other]),
        )
        return min(itertools.starmap(_count, pairs))

    def _matches(self, words: list[str]) -> tuple[list[_Match], list[str]]:
        """Returns the terms in a text, and a message on each overlap."""
        matches, messages = [], []
        place = 0
        while place < len(words):
            match = self._longest_match(words, place)
            if match is None:
                place += 1
                continue
            for inside in range(place + 1, match.end):
                other = self._longest_match(words, inside)
                if other is not None and other.end > match.end:
                    messages.append(
                        f"the terms {match.source!r} and {other.source!r} "
                        f"overlap: {other.source!r} is left out there"
                    )
            matches.append(match)
            place = match.end
        return matches, messages

    def _longest_match(self, words: list[str], place: int) -> _Match | None:
        """Returns the longest term that begins at a word."""
        most = self._longest.get(words[place].lower(), 0)
        for end in range(min(len(words), place + most), place, -1):
            found = tuple(words[place:end])
            lowercase = tuple(word.lower() for word in found)
            for key in (found, lowercase):
                if key in self._targets:
                    source, target = self._targets[key]
                    return _Match(place, end, source=source, target=target)
        return None


class _Word(NamedTuple):
    """A word or another sign of a text, and where it is."""

    text: str
    start: int
    end: int


def _words_in(text: str) -> list[_Word]:
    """Returns the words and other signs of a text, except its language token.

    If NFKC changes the length of what is between two spaces, each word in it
    has the place of all of it.
    """
    token = _TOKEN.match(text)
    words = []
    for chunk in SPACED.finditer(text, token.end() if token else 0):
        normalized = unicodedata.normalize("NFKC", chunk[0])
        for match in _WORD.finditer(normalized):
            start, end = chunk.span()
            if len(normalized) == len(chunk[0]):
                start, end = start + match.start(), start + match.end()
            words.append(_Word(match[0], start, end))
    return words


def _words(text: str) -> list[str]:
    """Returns the words and other signs of a text.

    >>> _words("The red car's door.")
    ['The', 'red', 'car', "'", 's', 'door', '.']
    """
    return [word.text for word in _words_in(text)]


def _count(part: Sequence, whole: Sequence) -> int:
    """Returns how often one sequence occurs in another.

    >>> _count(["a", "b"], ["a", "b", "c", "a", "b"])
    2
    """
    n = len(part)
    return sum(whole[i : i + n] == part for i in range(len(whole) - n + 1))
