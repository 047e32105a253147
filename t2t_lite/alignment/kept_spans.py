"""What a translation keeps as its source has it: URLs, placeholders, tags.

A stand-in is translated in place of each, a word that the vocabulary knows and
the line does not contain:

    source          Send it to ann@example.org by {date}.
    translated      Send it to 11 by 13.
    translation     Senden Sie es bis 13 an 11.
                    Senden Sie es bis {date} an ann@example.org.

The translation has each of them once, as with a glossary. Tags are taken out
instead, and put around the words that stand for theirs (`tags`).
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from t2t_lite.alignment import tags
from t2t_lite.alignment.tags import Node, Word
from t2t_lite.constraints.terms import Term
from t2t_lite.errors import InputError
from t2t_lite.text.vocabulary import SPACE, Vocabulary
from t2t_lite.token_ids import EOS

_HOLE = "\x1f"  # Stands for a tag while items are looked for; a space to `re`.
_UNIT = (
    r"(?:[%‰](?![\w(])|[€£]|\$(?!\{)|°[CF]?|(?:km/h|m/s|[kcdmµn]?m|[kmµ]?g"
    r"|[cdm]?l|[kMGT]B|[kMG]?Hz|[kM]?Wh?|k?V|mA|ms|min|h|(?<=[ \u00a0])s|kcal"
    r"|kJ|px|pt|dpi)[²³]?(?!\w))"
)
_DIGITS = r"(?:\d{1,3}(?:[ \u00a0]\d{3}(?!\d))+|\d+)(?:[.,]\d+)*"
_DASH = "\u2013-"
_NUMBER = (
    rf"(?<![\w.,:/{_DASH}])[+-]?{_DIGITS}"
    rf"(?:[{_DASH}]{_DIGITS})?"
)
# What a URL does not contain, except brackets that it closes again.
_END_OF_URL = r"\s<>\"“”„»«。、，！？）」"  # noqa: RUF001
_IN_URL = "|".join(
    rf"{begin}[^{_END_OF_URL}(){{}}\[\]]*{end}"
    for begin, end in ((r"\(", r"\)"), (r"\{", r"\}"), (r"\[", r"\]"))
)
_PATTERNS = {
    "urls": r"(?<![A-Za-z0-9])(?:(?:https?|ftp)://|www\.)"
    rf"(?:[^{_END_OF_URL}(){{}}\[\]]|{_IN_URL})+(?<![.,;:!?'])"
    r"|(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]+"
    r"@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}",
    "placeholders": rf"\{{\{{[^{{}}{_HOLE}]+\}}\}}|\$?\{{[^{{}}\s]*\}}"
    r"|%\(\w+\)[sdifr]|%(?:\d+\$)?[sdif](?!\w)",
    "quantities": rf"{_NUMBER}[ \u00a0]?{_UNIT}|[€$£][ \u00a0]?{_DIGITS}",
}
_QUOTES = "\"'"
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_FEWEST = 10  # Numbers; if there are fewer, words stand in instead.
_MOST = 100  # Words.


class Kept(NamedTuple):
    """A line as it is translated, and what is kept of it."""

    text: str
    items: dict[str, str]  # what each stand-in stands for
    nodes: tuple[Node, ...]  # the tags
    touching: dict[str, str]  # by stand-in, the sign touching its item's left
    unkept: list[str]  # items that no stand-in is left for


class Keeper:
    """Takes out of lines what is kept, and puts it into their translations.

    Args:
        kinds: names, of KEPT.
        vocabulary: Vocabulary.
        language: of sources, ISO 639-1; None if not known.
        apart_from: texts in which no stand-in may occur.

    Raises:
        InputError: the vocabulary has no words to stand in for others.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        vocabulary: Vocabulary,
        language: str | None = None,
        apart_from: Iterable[str] = (),
    ):
        self._keeps_tags = "tags" in kinds
        patterns = [p for kind, p in _PATTERNS.items() if kind in kinds]
        self._items = None
        self._ids: dict[str, tuple[int, ...]] = {}
        if patterns:
            # Items that touch each other are one.
            self._items = re.compile(f"(?:{'|'.join(patterns)})+")
            self._ids = _stand_ins(vocabulary, language, [*apart_from])

    def take_out(self, line: str, prefix: str = "") -> Kept:
        """Returns a line without what is kept, with stand-ins for some of it.

        Args:
            line: str.
            prefix: what its translation begins with.
        """
        taken = f"{line}\n{prefix}"
        free = (word for word in self._ids if word not in taken)
        items, touching, unkept = {}, {}, []

        def stand_in(match: re.Match) -> str:
            word = next(free, None)
            if word is None:
                unkept.append(match[0])
                return match[0]
            items[word] = match[0]
            sign = _left_of(match)
            if re.match(r"[^\w\s]", sign):
                touching[word] = sign
            return _set_apart(word, match)

        text, nodes = line, ()
        if self._keeps_tags:
            text, its_tags = tags.replace_all(line.replace(_HOLE, " "), _HOLE)
        if self._items is not None:
            text = self._items.sub(stand_in, text)
        if self._keeps_tags:
            ahead = iter(its_tags)
            text = re.sub(_HOLE, lambda _: next(ahead), text)
            text, nodes = tags.take_out(text)
        return Kept(
            text=text,
            items=items,
            nodes=nodes,
            touching=touching,
            unkept=unkept,
        )

    def in_prefix(self, prefix: str, kept: Kept) -> str:
        """Returns what a translation begins with, without what is kept.

        If it is cut within an item, it gets all of it.

        Args:
            prefix: str, which may have items and tags of the line.
            kept: that of the line.
        """
        ends_in_space = prefix.endswith(" ")
        if kept.nodes:
            prefix = tags.take_out(tags.without_cut(prefix)).text
        words = list(kept.items)

        def stand_in(match: re.Match) -> str:
            for word in words:
                if kept.items[word] == match[0]:
                    words.remove(word)
                    return _set_apart(word, match)
            return match[0]

        if words:
            prefix += _rest_of_item(prefix, kept.items.values())
            prefix = self._items.sub(stand_in, prefix)
            # What follows must not continue a stand-in.
            is_word = re.search(r"\w+$", prefix)
            ends_in_space |= bool(is_word) and is_word[0] in kept.items
        return prefix.rstrip(" ") + " " if ends_in_space else prefix

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
            found = is_word.search(text)
            if not found or is_word.search(prefix):
                continue
            room -= len(self._ids[word])
            if room >= 0:
                terms.append(Term(self._ids[word], 1, (found.span(),)))
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
            is_word = _as_word(word)
            if word in kept.touching:
                translation = _touching(
                    kept.touching[word], is_word.pattern, translation
                )
            found = is_word.search(translation)
            if found:  # The first, if the model wrote that word itself, too.
                start, end = found.span()
                translation = translation[:start] + item + translation[end:]
        return translation


def _touching(sign: str, word: str, text: str) -> str:
    """Returns a text without the space between a sign and a word.

    The sign is that of the source, or another one that opens something. Tags
    may come before the word.
    """
    signs = re.escape(tags.OPENING + ("" if sign in _QUOTES else sign))
    # A closing quote may look the same.
    opened = rf"(?:(?<![\w.,;:!?])[{_QUOTES}]|[{signs}])"
    tag = "<[^<>]*>"
    return re.sub(rf"({opened}) ((?:{tag})*)(?={word})", r"\1\2", text)


def _rest_of_item(prefix: str, items: Collection[str]) -> str:
    """Returns the rest of an item that a prefix ends within.

    A mere word or number does not count as the beginning of an item.

    >>> _rest_of_item("See {na", ["{name}"])
    'me}'
    """
    last = re.search(r"\S*$", prefix)[0]
    if not last or last.isalnum() or last in items:
        return ""
    for item in items:
        if item.startswith(last):
            return item[len(last) :]
    return ""


def _set_apart(word: str, match: re.Match) -> str:
    """Returns a word with spaces where its item touches other text.

    A sign on its right may touch it.

    >>> _set_apart("11", re.search("{n}", "({n}) "))
    ' 11'
    """
    behind = match.string[match.end() :].lstrip(_HOLE)[:1]
    left = " " if _left_of(match).strip() else ""
    right = " " if re.match(r"\w", behind) else ""
    return left + word + right


def _left_of(match: re.Match) -> str:
    """Returns the character to the left of a match, ignoring tags."""
    return match.string[: match.start()].rstrip(_HOLE)[-1:]


def _as_word(word: str) -> re.Pattern:
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")


def _stand_ins(
    vocabulary: Vocabulary, language: str | None, apart_from: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Returns words that may stand in for others, and their target's ids.

    They are numbers, which models copy more often than words, or else the
    longest words that source and target have in common. Those of one token come
    first.

    Raises:
        InputError: there are none.
    """
    # In German, "11." is an ordinal and does not end a sentence.
    most = 1000 if language == "de" else 100
    numbers = range(most - 1, most // 10, -1)  # Rare ones first.
    found = _usable(map(str, numbers), vocabulary)
    if len(found) < _FEWEST:
        sides = vocabulary, vocabulary.target
        common = set.intersection(
            *({*side.tokens(range(EOS + 1, side.size))} for side in sides)
        )
        words = [token[1:] for token in common if token[0] == SPACE]
        words = [word for word in words if word.isalpha()]
        words.sort(key=lambda word: (-len(word), word))
        found = _usable(words[:_MOST], vocabulary)
    others = "\n".join(apart_from)
    found = {word: ids for word, ids in found.items() if word not in others}
    if not found:
        raise InputError(
            "the vocabulary has no word that can stand in for kept items: "
            "leave keep out, or set it to tags only"
        )
    return dict(sorted(found.items(), key=lambda item: len(item[1])))


def _usable(
    words: Iterable[str], vocabulary: Vocabulary
) -> dict[str, tuple[int, ...]]:
    """Returns the words that both sides have pieces for.

    Returns:
        dict of the words to their target ids.
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
    """Returns whether no id is unknown or a byte."""
    names = vocabulary.tokens(ids)
    is_byte = any(_BYTE.fullmatch(name) for name in names)
    return vocabulary.unknown_id not in ids and not is_byte
