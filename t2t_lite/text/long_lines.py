"""Lines of any length as pieces that a model takes."""

from collections.abc import Iterator
from typing import NamedTuple

from absl import logging

from t2t_lite.errors import require
from t2t_lite.text import sentences
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import SPACE, Vocabulary, is_language_token
from t2t_lite.token_ids import EOS


class Pieces(NamedTuple):
    """The pieces of some lines, one after the other."""

    ids: list[list[int]]  # of each piece, EOS at its end
    line_indices: list[int]  # of each piece, the index of its line
    is_first: list[bool]  # whether a piece is the first of its sentence
    texts: list[str]  # of each piece


class LineSplitter:
    """Splits lines into pieces of token ids, none of them over-long.

    A piece is a line, or a sentence of one that is to be split. A sentence that
    is itself too long is cut between words; a warning says so.

    Args:
        vocabulary: Vocabulary.
        max_length: int, the most ids of a piece, EOS included.
        splitting: Splitting.
    """

    def __init__(
        self, vocabulary: Vocabulary, max_length: int, splitting: Splitting
    ):
        self._vocabulary, self._max_length = vocabulary, max_length
        self._splitting = splitting.limited_to(max_length)

    def split_lines(self, lines: list[str], first_line: int = 1) -> Pieces:
        """Returns the Pieces of all lines, none for a blank one.

        Args:
            lines: list of str.
            first_line: int, the number of the first line in warnings.
        """
        split = self._sentences(lines)
        line_indices = [n for n, texts in enumerate(split) for _ in texts]
        texts = [text for texts in split for text in texts]
        encoded = self._encode(texts)
        pieces = Pieces(ids=[], line_indices=[], is_first=[], texts=[])
        for n, text, ids in zip(line_indices, texts, encoded, strict=True):
            parts, part_texts = [ids], [text]
            if len(ids) > self._max_length:
                self._warn(first_line + n, len(ids))
                parts = list(self._cut(ids))
                part_texts = self._vocabulary.decode(parts)
            pieces.ids.extend(parts)
            pieces.texts.extend(part_texts)
            pieces.line_indices.extend([n] * len(parts))
            pieces.is_first.extend([True] + [False] * (len(parts) - 1))
        return pieces

    def _sentences(self, lines: list[str]) -> list[list[str]]:
        lengths = []
        if self._splitting.whole_up_to:
            lengths = [len(ids) for ids in self._encode(lines)]
        return sentences.split_lines(lines, self._splitting, lengths)

    def _encode(self, texts: list[str]) -> list[list[int]]:
        return self._vocabulary.encode(texts, num_threads=1)

    def _warn(self, line_number: int, num_tokens: int) -> None:
        logging.warning(
            "Line %d has a sentence of %d tokens, more than the %d "
            "that this model takes: it is cut into pieces.",
            line_number,
            num_tokens,
            self._max_length,
        )

    def _cut(self, ids: list[int]) -> Iterator[list[int]]:
        """Yields pieces of a sentence's ids, cut before a word if possible."""
        first = self._language_token(ids)
        ids = ids[len(first) : -1]
        room = self._max_length - 1 - len(first)
        require(
            "max_length must be at least 3 where lines begin with language "
            "tokens",
            room > 0,
            max_length=self._max_length,
        )
        while len(ids) > room:
            tokens = self._vocabulary.tokens(ids[: room + 1])
            word_starts = [
                n for n in range(1, len(tokens)) if tokens[n].startswith(SPACE)
            ]
            end = word_starts[-1] if word_starts else room
            yield [*first, *ids[:end], EOS]
            ids = ids[end:]
        yield [*first, *ids, EOS]

    def _language_token(self, ids: list[int]) -> list[int]:
        """Returns the first id, if it is a token such as >>deu<<; else none."""
        if not self._splitting.language_tokens:
            return []
        (token,) = self._vocabulary.tokens(ids[:1])
        return ids[:1] if is_language_token(token.lstrip(SPACE)) else []
