"""What translations begin with: a line's prefix, and each piece's part of it.

The sentences of a prefix translate those of its line, one for one. The last one
may continue, and includes any that the line has no sentence for.
"""

import collections
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.errors import InputError, require
from t2t_lite.text import sentences
from t2t_lite.text.long_lines import Pieces
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import SPACE, Vocabulary
from t2t_lite.token_ids import EOS


class PiecePrefix(NamedTuple):
    """What the translation of a piece begins with."""

    text: str
    is_complete: bool  # whether it is all of the translation


NO_PREFIX = PiecePrefix("", is_complete=False)


def split_by_piece(
    prefixes: Sequence[str], pieces: Pieces, first_line: int = 1
) -> list[PiecePrefix]:
    """Returns the PiecePrefix of each piece of some lines.

    A sentence's PiecePrefix goes to its first piece. If that is all of the
    translation, the sentence's further pieces translate to nothing.

    Args:
        prefixes: str, one for each line; a blank one is no prefix.
        pieces: Pieces of the lines.
        first_line: the number of the first line in messages.

    Raises:
        InputError: a blank line has a prefix.
    """
    counts = collections.Counter(
        n
        for n, is_first in zip(
            pieces.line_indices, pieces.is_first, strict=True
        )
        if is_first
    )
    for number, prefix in enumerate(prefixes, first_line):
        if prefix.strip() and not counts[number - first_line]:
            raise InputError(
                f"line {number} is blank but has the prefix {prefix!r}: give "
                "the line text, or leave its prefix blank"
            )
    by_line = {
        n: iter(split_by_sentence(prefixes[n], counts[n])) for n in counts
    }
    found: list[PiecePrefix] = []
    for n, is_first in zip(pieces.line_indices, pieces.is_first, strict=True):
        if is_first:
            found.append(next(by_line[n]))
        else:
            found.append(PiecePrefix("", found[-1].is_complete))
    return found


def split_by_sentence(prefix: str, num_sentences: int) -> list[PiecePrefix]:
    """Returns the PiecePrefix of each sentence of a line.

    >>> [*map(tuple, split_by_sentence("Er lief. Sie", num_sentences=3))]
    [('Er lief.', True), ('Sie', False), ('', False)]

    Args:
        prefix: str.
        num_sentences: how many the line has, at least 1.
    """
    if not prefix.strip():
        parts = [""]
    elif num_sentences == 1:
        parts = [prefix]
    else:
        # A digit added at the end tells whether another sentence begins there.
        (parts,) = sentences.split_lines([f"{prefix}0"], Splitting())
        parts[-1] = parts[-1].removesuffix("0")
    last = min(num_sentences, len(parts)) - 1
    whole, rest = parts[:last], prefix if parts[0] else ""
    for part in whole:  # The rest stays as it was written.
        rest = rest[rest.index(part) + len(part) :].lstrip()
    return [
        *(PiecePrefix(part, is_complete=True) for part in whole),
        PiecePrefix(rest, is_complete=False),
        *[NO_PREFIX] * (num_sentences - last - 1),
    ]


def require_possible(
    begun: Sequence[PiecePrefix],
    pieces: Pieces,
    vocabulary: Vocabulary,
    max_target_length: Callable[[int], int],
    first_line: int = 1,
) -> None:
    """Checks that translations can begin as asked.

    Args:
        begun: the PiecePrefix of each piece.
        pieces: Pieces.
        vocabulary: Vocabulary of targets.
        max_target_length: a function from the number of tokens of a source to
            the most that its translation may have, with EOS.
        first_line: the number of the first line in messages.

    Raises:
        InputError: a PiecePrefix has a character that the vocabulary has no
            piece for, or is longer than a translation may be.
    """
    encoded = vocabulary.encode([each.text for each in begun], num_threads=1)
    for beginning, ids, source_ids, n in zip(
        begun, encoded, pieces.ids, pieces.line_indices, strict=True
    ):
        if SPACE in beginning.text:
            raise InputError(
                f"the prefix of line {first_line + n} has U+2581, which is a "
                "space to the vocabulary: write a space"
            )
        if vocabulary.unknown_id in ids:
            raise InputError(
                f"the prefix of line {first_line + n} has a character that the "
                "vocabulary has no piece for: leave it out"
            )
        most = max_target_length(len(source_ids))
        require(
            f"the prefix of line {first_line + n} must have at most {most} "
            "tokens, the limit for its translation: shorten it, or raise "
            "max_extra_length",
            len(ids) <= most,
            tokens=len(ids),
        )


def encode(
    text_B: tf.Tensor,
    vocabulary: Vocabulary,
    is_complete_B: tf.Tensor | None = None,
) -> tf.RaggedTensor:
    """Returns the ids of texts that translations begin with.

    A space at the end is kept, so that a new word begins there. Blank texts
    have no ids.

    Args:
        text_B: string tensor [B].
        vocabulary: Vocabulary of targets.
        is_complete_B: bool, whether a text is all of its translation; None if
            none is.

    Returns:
        int32 RaggedTensor [B, (ids)], EOS where the translation ends.
    """
    is_blank_B = tf.strings.regex_full_match(text_B, sentences.BLANK)
    text_B = tf.where(is_blank_B, "", text_B)
    ids = _encode(text_B, vocabulary)[:, :-1]
    space_id = vocabulary.space_id
    if vocabulary.drops_spaces and space_id is not None:
        ends_B = tf.strings.regex_full_match(text_B, r"(?s).*\s")
        ids = _with_last(ids, space_id, ends_B)
    if is_complete_B is not None:
        ids = _with_last(ids, EOS, is_complete_B)
    return ids


def _encode(text_B: tf.Tensor, vocabulary: Vocabulary) -> tf.RaggedTensor:
    if tf.inside_function():
        return vocabulary.encode_tensor(text_B)
    # TensorFlow's op would take time to load.
    lines = [text.decode() for text in text_B.numpy()]
    return tf.ragged.constant(vocabulary.encode(lines, num_threads=1), tf.int32)


def _with_last(
    ids: tf.RaggedTensor, last: int, has_it_B: tf.Tensor
) -> tf.RaggedTensor:
    """Returns sequences, some with one more id."""
    last_B1 = tf.fill([tf.size(has_it_B), 1], last)
    return tf.concat(
        [ids, tf.ragged.boolean_mask(last_B1, has_it_B[:, None])], axis=1
    )
