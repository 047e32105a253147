"""What a translation keeps as its source has it: URLs, placeholders, tags.

A stand-in goes through the translation in the place of each, a word that the
vocabulary knows and the line has not:

    source          Send it to ann@example.org by {date}.
    translated      Send it to 11 by 13.
    translation     Senden Sie es bis 13 an 11.
                    Senden Sie es bis {date} an ann@example.org.

The search sees to it that the translation has each of them once. Tags are taken
out instead, and go around the words that stand for theirs (`tags`).
"""

import collections
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from t2t_lite.decoding import tags
from t2t_lite.decoding.tags import Node, Word
from t2t_lite.decoding.terms import Term
from t2t_lite.errors import InputError
from t2t_lite.text.vocabulary import SPACE, Vocabulary
from t2t_lite.token_ids import EOS

_UNIT = (
    r"[%‰€$£]|°[CF]?|(?:km/h|m/s|[kcdmµn]?m|[kmµ]?g|[cdm]?l|[kMGT]?B|[kMG]?Hz"
    r"|[kM]?Wh?|k?V|m?A|ms|min|h|s|kcal|kJ|px|pt|dpi)[²³]?(?!\w)"
)
_NUMBER = r"(?<![\w.,])[+-]?\d+(?:[.,]\d+)*"
_PATTERNS = {
    # A bracket at its end belongs to it where it began there.
    "urls": r"\b(?:(?:https?|ftp)://|www\.)"
    r"(?:[^\s<>\"()]|\([^\s<>\"()]*\))+(?<![.,;:!?'\]}])"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.\w+",
    "placeholders": r"\{\{[^{}]+\}\}|\$?\{[^{}\s]*\}|%\(\w+\)[sdifr]"
    r"|%(?:\d+\$)?[sdif](?!\w)",
    "quantities": rf"{_NUMBER}\s?(?:{_UNIT})|[€$£]\s?\d+(?:[.,]\d+)*",
}
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_FEWEST = 10  # Numbers that stand in for others, or else words do.
_MOST = 100  # Words.


class Kept(NamedTuple):
    """A line as it is translated, and what of it is kept."""

    text: str
    items: dict[str, str]  # what each stand-in stands for
    nodes: tuple[Node, ...]  # the tags
    left: list[str]  # items that nothing is left to stand in for


class Keeper:
    """Takes out of lines what is kept, and puts it into their translations.

    Args:
        kinds: names, of KEPT.
        vocabulary: Vocabulary.

    Raises:
        InputError: the vocabulary has no words to stand in for others.
    """

    def __init__(self, kinds: Sequence[str], vocabulary: Vocabulary):
        self._keeps_tags = "tags" in kinds
        patterns = [p for kind, p in _PATTERNS.items() if kind in kinds]
        self._item = re.compile("|".join(patterns)) if patterns else None
        self._ids = _stand_ins(vocabulary) if patterns else {}

    def take_out(self, line: str) -> Kept:
        """Returns a line without what is kept, with stand-ins for some of it.

        Args:
            line: str.
        """
        free = (word for word in self._ids if word not in line)
        items, left = {}, []

        def stand_in(match: re.Match) -> str:
            word = next(free, None)
            if word is None:
                left.append(match[0])
                return match[0]
            items[word] = match[0]
            return _set_apart(word, match)

        text = self._replaced(line, stand_in)
        if not self._keeps_tags:
            return Kept(text, items, (), left)
        text, nodes = tags.take_out(text)
        return Kept(text, items, nodes, left)

    def _replaced(self, line: str, stand_in: Callable) -> str:
        """Returns a line with stand-ins for its items, but within tags."""
        if self._item is None:
            return line
        if not self._keeps_tags:
            return self._item.sub(stand_in, line)
        parts, done = [], 0
        for start, end in [*tags.places(line), (len(line), len(line))]:
            parts.append(self._item.sub(stand_in, line[done:start]))
            parts.append(line[start:end])
            done = end
        return "".join(parts)

    def in_prefix(self, prefix: str, kept: Kept) -> str:
        """Returns what a translation begins with, without what is kept.

        Args:
            prefix: str, which may have items and tags of the line.
            kept: that of the line.
        """
        free = collections.defaultdict(list)
        for word, item in kept.items.items():
            free[item].append(word)

        def stand_in(match: re.Match) -> str:
            words = free[match[0]]
            return _set_apart(words.pop(0), match) if words else match[0]

        if free:
            item = re.compile("|".join(map(re.escape, free)))
            prefix = item.sub(stand_in, prefix)
        if not kept.nodes:
            return prefix
        ends_in_space = prefix.endswith(" ")
        return tags.take_out(prefix).text + " " * ends_in_space

    def terms(
        self, kept: Kept, text: str, prefix: str, room: int
    ) -> tuple[list[Term], list[str]]:
        """Returns the stand-ins that a translation must have.

        Args:
            kept: that of the line.
            text: a sentence of it, as it is translated.
            prefix: what the translation begins with, as it is translated.
            room: the most tokens of the rest of it, without EOS.

        Returns:
            Terms, all different; and a message on each that is left out.
        """
        terms, messages = [], []
        for word, item in kept.items.items():
            is_word = _as_word(word)
            if not is_word.search(text) or is_word.search(prefix):
                continue
            room -= len(self._ids[word])
            if room >= 0:
                terms.append(Term(self._ids[word], 1))
            else:
                messages.append(
                    f"there is no room for {item!r}: it is left out"
                )
        return terms, messages

    def put_back(
        self, kept: Kept, translation: str, words: Sequence[Word] = ()
    ) -> str:
        """Returns a translation with all that was taken out of its source.

        Args:
            kept: that of the source.
            translation: of its text.
            words: those of the translation, where the source has tags.
        """
        if kept.nodes:
            translation = tags.put_back(kept.nodes, translation, words)
        for word, item in kept.items.items():
            first, *others = _as_word(word).split(translation)
            if others:  # One, but where it stands there in other pieces, too.
                translation = first + item + "".join(others)
        return translation


def _set_apart(word: str, match: re.Match) -> str:
    """Returns a word with spaces where letters or digits touch what it is for.

    >>> _set_apart("11", re.search("{n}", "{n}th"))
    '11 '
    """
    before, behind = match.string[: match.start()], match.string[match.end() :]
    left = " " * before[-1:].isalnum()
    return left + word + " " * behind[:1].isalnum()


def _as_word(word: str) -> re.Pattern:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")


def _stand_ins(vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
    """Returns words that may stand in for others, and their target's ids.

    They are numbers of two digits, which any model copies, or else the longest
    words that source and target have in common.

    Raises:
        InputError: there are none.
    """
    found = _usable(map(str, range(11, 100)), vocabulary)
    if len(found) < _FEWEST:
        sides = vocabulary, vocabulary.target
        common = set.intersection(
            *({*side.tokens(range(EOS + 1, side.size))} for side in sides)
        )
        words = [token[1:] for token in common if token[0] == SPACE]
        words = [word for word in words if word.isalpha()]
        words.sort(key=lambda word: (-len(word), word))
        found = _usable(words[:_MOST], vocabulary)
    if not found:
        raise InputError(
            "the vocabulary has no word that can stand in for what is kept: "
            "leave keep out, or keep tags alone"
        )
    return found


def _usable(
    words: Iterable[str], vocabulary: Vocabulary
) -> dict[str, tuple[int, ...]]:
    """Returns those of some words that both sides have pieces for.

    Returns:
        dict of the words to their ids of the target.
    """
    words, target = list(words), vocabulary.target
    sources, targets = (
        side.encode(words, num_threads=1) for side in (vocabulary, target)
    )
    texts = target.decode(targets)
    return {
        word: tuple(target_ids[:-1])
        for word, source_ids, target_ids, text in zip(
            words, sources, targets, texts, strict=True
        )
        if _has_pieces(vocabulary, source_ids)
        and _has_pieces(target, target_ids)
        and text == word
    }


def _has_pieces(vocabulary: Vocabulary, ids: Sequence[int]) -> bool:
    """Returns whether no id is unknown, or a byte."""
    names = vocabulary.tokens(ids)
    is_byte = any(_BYTE.fullmatch(name) for name in names)
    return vocabulary.unknown_id not in ids and not is_byte
