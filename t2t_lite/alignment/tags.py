r"""Tags of a text, such as <b>, </b> and <x id="1"/>, in its translation.

They are taken out before the text is translated. Then each element is put
around the words of the translation that stand for what it was around:

    source       Click   <b>  here  </b>  now
    offsets      0            6           11
    words        Klicken  Sie  jetzt  hier
    stand for    0        0    11     6
    translation  Klicken Sie jetzt <b>hier</b>

Each tag comes out once. Elements that are nested or disjoint remain so in the
translation: what was balanced stays balanced.
"""

import collections
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_VALUE = r"""(?:"[^"<]*"|'[^'<]*'|[^\s"'<>=]+)"""
_TAG = re.compile(
    rf"<(/?)([A-Za-z][\w:.-]*)(?:\s+[\w:.-]+\s*=\s*{_VALUE})*\s*(/?)>"
)
OPENING = "([{“„‘‚«‹¿¡"  # noqa: RUF001
_LEFT, _RIGHT, _APART = range(3)
# Characters of scripts without spaces between words: Thai, Lao, Burmese, Khmer,
# Chinese and Japanese.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{UNSPACED}]")


class _Tag(NamedTuple):
    text: str
    offset: int  # in the text without tags
    is_apart: tuple[bool, bool]  # whether a space, or nothing, is on each side


class Node(NamedTuple):
    """An element, with what is in it; or a single tag."""

    begin: str  # the tag
    end: str | None  # None for a single tag
    first: int  # offset in the text without tags
    last: int  # after its text
    is_apart: tuple[bool, bool]
    inside: tuple["Node", ...] = ()


class Tagged(NamedTuple):
    """A text without its tags, and the tags."""

    text: str
    nodes: tuple[Node, ...]


class Word(NamedTuple):
    """A word or another sign of a translation."""

    start: int
    end: int
    source_offset: int  # an offset in the source without tags


class _Written(NamedTuple):
    """A tag in a translation."""

    text: str
    side: int  # which word it touches: the one on its left or right, or neither


class _Place(NamedTuple):
    """Which words a Node is around."""

    first: int
    end: int
    node: Node


def take_out(line: str) -> Tagged:
    """Returns a line without its tags, and the tags.

    Of the spaces on both sides of a tag, one is left.

    >>> take_out("Click <b>here</b>!").text
    'Click here!'
    """
    matches = list(_TAG.finditer(line))
    if not matches:
        return Tagged(line, ())
    ends = _ends(matches)
    separates = _separates(line, matches, ends)
    text, tags, done = "", [], 0
    for match, adds_space in zip(matches, separates, strict=True):
        text = _joined(text, line[done : match.start()], is_first=not done)
        done = match.end()
        before = line[max(0, match.start() - 1) : match.start()]
        sides = before, line[done : done + 1]
        is_apart = tuple(not side.strip() for side in sides)
        if adds_space:
            text += " "
        tags.append(_Tag(match[0], len(text), is_apart))
    text = _joined(text, line[done:]).rstrip(" ")
    tags = [each._replace(offset=min(each.offset, len(text))) for each in tags]
    return Tagged(text, tuple(_nodes(tags, ends, text)))


def without_cut(text: str) -> str:
    """Returns a text without a tag that is cut off at its end."""
    return re.sub(r"</?(?:[A-Za-z][^<>]*)?$", "", text)


def replace_all(line: str, mark: str) -> tuple[str, list[str]]:
    """Returns a line with a mark for each of its tags, and the tags."""
    found = [match[0] for match in _TAG.finditer(line)]
    return _TAG.sub(mark, line), found


def _joined(text: str, part: str, is_first: bool = False) -> str:
    if not is_first and text[-1:] in ("", " "):
        part = part.lstrip(" ")
    return text + part


def _separates(
    line: str, matches: Sequence[re.Match], ends: dict[int, int]
) -> list[bool]:
    """Returns which tags need a space in their place.

    In a row of tags that a word touches on its right, it is the first one that
    is single, or that begins something after something has ended: one<br>two,
    <p>one</p><p>two</p>.
    """
    paired = {*ends, *ends.values()}
    separates = [False] * len(matches)
    start = 0  # of a row
    for n, match in enumerate(matches):
        if n + 1 < len(matches) and matches[n + 1].start() == match.end():
            continue
        row, start = range(start, n + 1), n + 1
        begin = matches[row[0]].start()
        before = line[max(0, begin - 1) : begin]
        behind = line[match.end() : match.end() + 1]
        if before.strip() and before not in OPENING and behind.isalnum():
            has_end = False
            for tag in row:
                is_between = tag not in paired or (has_end and tag in ends)
                has_end |= tag not in ends
                if is_between and not any(separates[row[0] : n + 1]):
                    separates[tag] = True
    return separates


def _ends(matches: Sequence[re.Match]) -> dict[int, int]:
    """Returns the index of each tag's end tag, if both are there.

    An end tag ends the newest element of its name; tags in between without an
    end tag are single ones.
    """
    ends, is_open = {}, []
    counts = collections.Counter()  # of what is open
    for n, (is_end, name, is_empty) in enumerate(m.groups() for m in matches):
        if is_end and counts[name]:
            begun = None
            while begun != name:
                place, begun = is_open.pop()
                counts[begun] -= 1
            ends[place] = n
        elif not is_end and not is_empty:
            is_open.append((n, name))
            counts[name] += 1
    return ends


def _nodes(tags: Sequence[_Tag], ends: dict[int, int], text: str) -> list[Node]:
    """Returns the Nodes that tags form, with others inside them.

    One that begins or ends within a word goes around it.
    """
    begins = {end: begin for begin, end in ends.items()}
    inside: list[list[Node]] = [[]]  # of each element that is open
    for n, tag in enumerate(tags):
        if n in ends:
            inside.append([])
            continue
        node = Node(
            begin=tag.text,
            end=None,
            first=tag.offset,
            last=tag.offset,
            is_apart=tag.is_apart,
        )
        if n in begins:
            begin = tags[begins[n]]
            node = node._replace(
                begin=begin.text,
                end=tag.text,
                first=_word_start(text, begin.offset),
                last=_word_end(text, tag.offset),
                inside=tuple(inside.pop()),
            )
        inside[-1].append(node)
    return inside[0]


def _word_start(text: str, place: int) -> int:
    while _is_within_word(text, place):
        place -= 1
    return place


def _word_end(text: str, place: int) -> int:
    while _is_within_word(text, place):
        place += 1
    return place


def _is_within_word(text: str, place: int) -> bool:
    both = text[max(0, place - 1) : place + 1]
    return len(both) == 2 and both.isalnum() and not _UNSPACED.search(both)


def put_back(nodes: Sequence[Node], text: str, words: Sequence[Word]) -> str:
    """Returns a translation with the tags of its source.

    Args:
        nodes: those of the source.
        text: the translation.
        words: of the translation, from left to right.
    """
    written = _Writer(text, words)
    for each in _in_order(nodes, words):
        if isinstance(each, Word):
            written.add_word(each)
        else:
            written.add_tag(each)
    return written.finished()


class _Writer:
    """Writes words and tags; text between words goes before or after a tag."""

    def __init__(self, text: str, words: Sequence[Word]):
        self._text, self._starts = text, [word.start for word in words]
        self._parts: list[str] = []
        self._done = 0  # how much of the text is written
        self._num_words = 0
        self._needs_space = False

    def add_word(self, word: Word) -> None:
        self._add_between()
        self._add(self._text[word.start : word.end])
        self._done = word.end
        self._num_words += 1

    def add_tag(self, tag: _Written) -> None:
        if tag.side != _LEFT:
            self._needs_space |= tag.side == _APART
            self._add_between()
        self._add(tag.text)
        self._needs_space = tag.side == _APART

    def finished(self) -> str:
        return "".join([*self._parts, self._text[self._done :]])

    def _add_between(self) -> None:
        """Writes what is before the next word."""
        if self._num_words < len(self._starts):
            ahead = self._starts[self._num_words]
            self._add(self._text[self._done : ahead])
            self._done = ahead
        if self._needs_space and self._parts:
            self._add("" if self._parts[-1].endswith(" ") else " ")
        self._needs_space = False

    def _add(self, part: str) -> None:
        if part:
            self._parts.append(part)


def _in_order(
    nodes: Sequence[Node], words: Sequence[Word]
) -> Iterator[Word | _Written]:
    """Yields all words, with the tags of Nodes before and after them."""
    ahead = [_outermost(nodes, words, first=0, end=len(words))]
    while ahead:
        each = next(ahead[-1], None)
        if each is None:
            ahead.pop()
        elif not isinstance(each, _Place):
            yield each
        elif each.node.end is None:
            yield _Written(each.node.begin, _side(*each.node.is_apart))
        else:
            yield _Written(each.node.begin, _RIGHT)
            ahead.append(iter([_Written(each.node.end, _LEFT)]))
            inside = _outermost(
                each.node.inside, words, first=each.first, end=each.end
            )
            ahead.append(inside)


def _outermost(
    nodes: Sequence[Node], words: Sequence[Word], first: int, end: int
) -> Iterator[Word | _Place]:
    """Yields the words that are in no Node, and the place of each Node."""
    for place in _places(nodes, words, first=first, end=end):
        yield from words[first : place.first]
        yield place
        first = place.end
    yield from words[first:end]


def _side(is_apart_before: bool, is_apart_behind: bool) -> int:
    """Returns which word a single tag touches, as it does in the source."""
    if not is_apart_before:
        return _LEFT
    return _APART if is_apart_behind else _RIGHT


def _places(
    nodes: Sequence[Node], words: Sequence[Word], first: int, end: int
) -> list[_Place]:
    """Returns where Nodes go among some words, from left to right."""
    found = [_place(node, words, first=first, end=end) for node in nodes]
    found.sort(key=lambda place: place[:2])  # Stable: in the source's order.
    done, places = first, []
    for place in found:
        begin = max(place.first, done)
        done = max(place.end, begin)
        places.append(_Place(begin, done, place.node))
    return places


def _place(node: Node, words: Sequence[Word], first: int, end: int) -> _Place:
    """Returns where a Node goes: around the words that stand for its text.

    They are the run with the most such words, minus those for something else;
    of several such runs, the first. A Node that no word stands for goes before
    the word for what follows it.
    """
    best, best_count = None, 0
    begin, count = first, 0
    for n in range(first, end):
        is_inside = node.first <= words[n].source_offset < node.last
        count += 1 if is_inside else -1
        if count <= 0:
            begin, count = n + 1, 0
        if count > best_count:
            best, best_count = _Place(begin, n + 1, node), count
    if best is not None:
        return best
    behind = [
        (words[n].source_offset, n)
        for n in range(first, end)
        if words[n].source_offset >= node.first
    ]
    place = min(behind)[1] if behind else end
    return _Place(place, place, node)
