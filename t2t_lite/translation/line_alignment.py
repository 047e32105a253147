"""Lines and their translations, aligned piece by piece."""

import bisect
import collections
import re
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from t2t_lite.alignment.word_alignment import SPACED, Aligner, Pair
from t2t_lite.decoding.line_predictor import AlignedTranslation, Translation
from t2t_lite.text.long_lines import Pieces
from t2t_lite.text.pharaoh import Link
from t2t_lite.text.sentences import LANGUAGE_TOKEN

_TOKEN = re.compile(rf"(?:{LANGUAGE_TOKEN} )?")


class Place(NamedTuple):
    """A piece with one of its translations, and where they are.

    Offsets count characters: of the piece in its line, and of the translation
    in the line's, which has spaces between those of its pieces.
    """

    pair: Pair
    line: int  # its index
    rank: int  # of the translation, from 0
    source_start: int
    target_start: int


def places(
    lines: Sequence[str],
    pieces: Pieces,
    by_piece: Sequence[Sequence[Translation]],
    wanted: Container[int],
) -> Iterator[Place]:
    """Yields the Place of each translation of each piece, except blank ones.

    Args:
        lines: str.
        pieces: Pieces of the lines.
        by_piece: the Translations of each piece.
        wanted: the indices of the lines to include.
    """
    ends, lengths = collections.Counter(), collections.Counter()
    for line, ids, text, translations in zip(
        pieces.line_indices, pieces.ids, pieces.texts, by_piece, strict=True
    ):
        if line not in wanted:
            continue
        start = _start(lines[line], text, ends[line])
        ends[line] = max(ends[line], start + len(text))
        for rank, (target, _) in enumerate(translations):
            if not target:
                continue
            done = lengths[line, rank]
            target_start = done + 1 if done else 0  # After a space.
            lengths[line, rank] = target_start + len(target)
            pair = Pair(ids, text, target)
            yield Place(
                pair=pair,
                line=line,
                rank=rank,
                source_start=start,
                target_start=target_start,
            )


def _start(line: str, text: str, first: int) -> int:
    """Returns where a piece begins in its line, at `first` or later.

    A language token in front of it may be that of the line. A piece that was
    cut may be written differently; then it begins at the next word.
    """
    for skipped in (0, _TOKEN.match(text).end()):
        place = line.find(text[skipped:], first)
        if place >= 0:
            return place - skipped
    rest = line[first:]
    return first + len(rest) - len(rest.lstrip())


def with_links(
    found: Sequence[Sequence[Translation]],
    lines: Sequence[str],
    pieces: Pieces,
    by_piece: Sequence[Sequence[Translation]],
    aligner: Aligner,
) -> list[list[AlignedTranslation]]:
    """Returns translations of lines with the links of their words.

    Args:
        found: the Translations of each line.
        lines: str.
        pieces: Pieces of the lines.
        by_piece: the Translations of each piece.
        aligner: Aligner, whose first head is used.
    """
    all_places = list(
        places(lines, pieces, by_piece=by_piece, wanted=range(len(lines)))
    )
    links_by_pair = aligner.links([place.pair for place in all_places])[0]
    sources = list(map(_Words, lines))
    targets = [[_Words(each.text) for each in several] for several in found]
    links = collections.defaultdict(list)
    for place, pair_links in zip(all_places, links_by_pair, strict=True):
        line, rank = place.line, place.rank
        if found[line][rank].text:  # Else another piece has no translation.
            links[line, rank] += _moved(
                pair_links,
                place,
                line=sources[line],
                translation=targets[line][rank],
            )
    return [
        [
            AlignedTranslation(each.text, each.score, tuple(links[n, rank]))
            for rank, each in enumerate(translations)
        ]
        for n, translations in enumerate(found)
    ]


class _Words:
    """Where the words of a line begin."""

    def __init__(self, line: str):
        self._line = line
        self._starts = _starts(line)

    def numbers(self, piece: str, start: int) -> list[int]:
        """Returns the number of each word of a piece among the line's words.

        Args:
            piece: str, maybe with the line's language token in front.
            start: where it begins in the line.
        """
        token = _TOKEN.match(piece)[0]
        text, start = piece[len(token) :], start + len(token)
        if self._line.startswith(text, start):
            found = [self._number_at(start + place) for place in _starts(text)]
        else:  # It is written differently.
            first, last = self._number_at(start), len(self._starts) - 1
            count = len(text.split())
            found = [min(n, last) for n in range(first, first + count)]
        return [0, *found] if token else found

    def _number_at(self, place: int) -> int:
        return max(0, bisect.bisect_right(self._starts, place) - 1)


def _starts(text: str) -> list[int]:
    return [match.start() for match in SPACED.finditer(text)]


def _moved(
    links: Sequence[Link], place: Place, line: _Words, translation: _Words
) -> Iterator[Link]:
    """Yields the links of a piece as those of its line's words."""
    sources = line.numbers(place.pair.source, place.source_start)
    targets = translation.numbers(place.pair.target, place.target_start)
    return ((sources[source], targets[target]) for source, target in links)
