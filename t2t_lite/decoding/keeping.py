"""Lines that keep some of their source, before and behind their translation."""

import collections
import math
import re
from collections.abc import Sequence

from t2t_lite.decoding.alignment import Aligner, Pair
from t2t_lite.decoding.kept import Keeper
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.long_lines import Pieces
from t2t_lite.decoding.tags import Word
from t2t_lite.decoding.terms import Term
from t2t_lite.text.sentences import LANGUAGE_TOKEN


class KeptLines:
    """Lines as they are translated, without what is kept.

    Args:
        keeper: Keeper.
        lines: str.
        prefixes: what their translations begin with; None for nothing.
    """

    def __init__(
        self,
        keeper: Keeper,
        lines: Sequence[str],
        prefixes: Sequence[str] | None = None,
    ):
        self._keeper = keeper
        begun = [""] * len(lines) if prefixes is None else prefixes
        self._kept = list(map(keeper.take_out, lines, begun))
        self.lines = [each.text for each in self._kept]
        self.prefixes = None
        if prefixes is not None:
            self.prefixes = [
                keeper.in_prefix(prefix, each)
                for prefix, each in zip(prefixes, self._kept, strict=True)
            ]

    def left(self) -> list[tuple[int, str]]:
        """Returns (index of its line, item) of what cannot be kept."""
        return [
            (n, item) for n, each in enumerate(self._kept) for item in each.left
        ]

    def terms(
        self, index: int, text: str, prefix: str, room: int
    ) -> tuple[list[Term], list[str]]:
        """Returns what the translation of a sentence must have.

        Args:
            index: of its line.
            text: that of `Keeper.terms`.
            prefix: that of `Keeper.terms`.
            room: that of `Keeper.terms`.
        """
        return self._keeper.terms(self._kept[index], text, prefix, room)

    def put_back(
        self,
        found: Sequence[Sequence[Translation]],
        pieces: Pieces,
        by_piece: Sequence[Sequence[Translation]],
        aligner: Aligner,
    ) -> list[list[Translation]]:
        """Returns the Translations of the lines with all that is kept.

        Args:
            found: the Translations of each line, without.
            pieces: Pieces of the lines.
            by_piece: the Translations of each piece.
            aligner: Aligner.
        """
        words = self._words(pieces, by_piece, aligner)
        return [
            [
                self._whole(n, each, words[n, rank])
                for rank, each in enumerate(translations)
            ]
            for n, translations in enumerate(found)
        ]

    def _whole(
        self, index: int, translation: Translation, words: Sequence[Word]
    ) -> Translation:
        if translation.score == -math.inf:  # There is no translation.
            return translation
        text = self._keeper.put_back(self._kept[index], translation.text, words)
        return translation._replace(text=text)

    def _start(self, index: int, text: str, first: int) -> int:
        """Returns where a piece begins in its line, from a place on.

        A language token in front of it may be that of the line. What was cut
        may be written in another way: it begins at that place.
        """
        token = re.match(rf"(?:{LANGUAGE_TOKEN} )?", text)
        for skipped in (0, token.end()):
            place = self.lines[index].find(text[skipped:], first)
            if place >= 0:
                return place - skipped
        return first

    def _words(
        self,
        pieces: Pieces,
        by_piece: Sequence[Sequence[Translation]],
        aligner: Aligner,
    ) -> dict[tuple[int, int], list[Word]]:
        """Returns the Words of each translation, by its line and its rank.

        They are those of lines with tags, and none of other lines.
        """
        pairs, places = [], []
        ends = collections.Counter()
        for line, ids, text, translations in zip(
            pieces.line_indices,
            pieces.ids,
            pieces.texts,
            by_piece,
            strict=True,
        ):
            if not self._kept[line].nodes:
                continue
            start = self._start(line, text, ends[line])
            ends[line] = max(ends[line], start + len(text))
            for rank, (target, _) in enumerate(translations):
                pairs.append(Pair(ids, text, target))
                places.append((line, rank, start))
        words = collections.defaultdict(list)
        lengths = collections.Counter()
        aligned = aligner(pairs) if pairs else []
        for (line, rank, source), pair, found in zip(
            places, pairs, aligned, strict=True
        ):
            if not pair.target:
                continue
            done = lengths[line, rank]
            target = done + 1 if done else 0  # Behind a space.
            lengths[line, rank] = target + len(pair.target)
            words[line, rank] += [
                Word(target + start, target + end, source + stands_for)
                for start, end, stands_for in found
            ]
        return words
