"""Lines that keep some of their source, before and after translation."""

import collections
import math
from collections.abc import Sequence

from t2t_lite.alignment.kept_spans import Keeper
from t2t_lite.alignment.tags import Word
from t2t_lite.alignment.word_alignment import Aligner
from t2t_lite.constraints.terms import Term
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.text.long_lines import Pieces
from t2t_lite.translation.line_alignment import places


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

    def unkept(self) -> list[tuple[int, str]]:
        """Returns (index of its line, item) for what cannot be kept."""
        return [
            (n, item)
            for n, each in enumerate(self._kept)
            for item in each.unkept
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
        return self._keeper.terms(
            self._kept[index], text, prefix=prefix, room=room
        )

    def put_back(
        self,
        found: Sequence[Sequence[Translation]],
        pieces: Pieces,
        by_piece: Sequence[Sequence[Translation]],
        aligner: Aligner,
    ) -> list[list[Translation]]:
        """Returns the Translations of the lines with all that is kept.

        Args:
            found: the Translations of each line, without what is kept.
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

    def _words(
        self,
        pieces: Pieces,
        by_piece: Sequence[Sequence[Translation]],
        aligner: Aligner,
    ) -> dict[tuple[int, int], list[Word]]:
        """Returns the Words of each translation, by its line and its rank.

        Lines without tags have none.
        """
        tagged = {n for n, each in enumerate(self._kept) if each.nodes}
        all_places = list(
            places(self.lines, pieces, by_piece=by_piece, wanted=tagged)
        )
        words = collections.defaultdict(list)
        aligned = aligner([place.pair for place in all_places])
        for place, found in zip(all_places, aligned, strict=True):
            words[place.line, place.rank] += [
                Word(
                    place.target_start + start,
                    place.target_start + end,
                    place.source_start + source_offset,
                )
                for start, end, source_offset in found
            ]
        return words
