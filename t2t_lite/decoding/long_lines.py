"""Lines of any length as pieces that a model takes."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from absl import logging

from t2t_lite.text.vocabulary import SPACE, Vocabulary
from t2t_lite.token_ids import EOS

# Also closing quotes and brackets, and the space after them.
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”»)\]]*\s+|(?<=[。！？])")  # noqa: RUF001


class Pieces(NamedTuple):
    """The pieces of some lines, one after the other."""

    ids: list[list[int]]  # of each piece, EOS at its end
    line_indices: list[int]  # of each piece, the index of its line


class LineSplitter:
    """Splits lines into pieces of token ids, none of them over-long.

    A line that is too long is cut at sentence boundaries, and a sentence that
    is itself too long between words; a warning says so.

    Args:
        vocabulary: Vocabulary.
        max_length: int, the most ids of a piece, EOS included.
    """

    def __init__(self, vocabulary: Vocabulary, max_length: int):
        self._vocabulary, self._max_length = vocabulary, max_length

    def split_lines(self, lines: list[str], first_line: int = 1) -> Pieces:
        """Returns the Pieces of all lines, none for a blank one.

        Args:
            lines: list of str.
            first_line: int, the number of the first line in warnings.
        """
        pieces = Pieces([], [])
        for n, line in enumerate(lines):
            if line.strip():
                line_pieces = self.split(line, first_line + n)
                pieces.ids.extend(line_pieces)
                pieces.line_indices.extend([n] * len(line_pieces))
        return pieces

    def split(self, line: str, line_number: int = 1) -> list[list[int]]:
        """Returns the ids of each piece of a line, EOS at each end.

        Args:
            line: str.
            line_number: int, its number in warnings.
        """
        (ids,) = self._encode([line])
        if len(ids) <= self._max_length:
            return [ids]
        units = []
        for sentence in self._encode(_split_sentences(line)):
            if len(sentence) > self._max_length:
                logging.warning(
                    "Line %d has a sentence of %d tokens, more than the %d "
                    "that this model takes: it is cut into pieces.",
                    line_number,
                    len(sentence),
                    self._max_length,
                )
                units.extend(self._cut(sentence))
            else:
                units.append(sentence)
        return list(self._packed(units))

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return self._vocabulary.encode(texts, num_threads=1)

    def _cut(self, ids: list[int]) -> Iterator[list[int]]:
        """Yields pieces of a sentence's ids, cut before a word if possible."""
        ids, room = ids[:-1], self._max_length - 1
        while len(ids) > room:
            tokens = self._vocabulary.tokens(ids[: room + 1])
            word_starts = [
                n for n in range(1, len(tokens)) if tokens[n].startswith(SPACE)
            ]
            end = word_starts[-1] if word_starts else room
            yield [*ids[:end], EOS]
            ids = ids[end:]
        yield [*ids, EOS]

    def _packed(self, units: list[list[int]]) -> Iterator[list[int]]:
        """Yields units of ids joined while they fit together."""
        joined = []
        for unit in units:
            if joined and len(joined) + len(unit) > self._max_length:
                yield [*joined, EOS]
                joined = []
            joined.extend(unit[:-1])
        if joined:
            yield [*joined, EOS]


def _split_sentences(line: str) -> list[str]:
    """Returns the sentences of a line.

    >>> _split_sentences('He ran. "Stop!" she said.')
    ['He ran.', '"Stop!"', 'she said.']
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(line)]
    bounds = zip([0, *ends], [*ends, len(line)], strict=True)
    sentences = [line[start:end].strip() for start, end in bounds]
    return [sentence for sentence in sentences if sentence]
