"""Learns a vocabulary from text, with the SentencePiece library."""

import io
import itertools
import random
import re
from collections.abc import Iterable, Sequence

import sentencepiece
from absl import logging

from t2t_lite.errors import InputError
from t2t_lite.text.vocabulary import FIRST_PIECE, SPACE, Vocabulary

_LINES_LEARNED_FROM = 4_000_000
_LARGEST_LINE_BYTES = 1 << 30


def learn(
    lines: Iterable[str],
    kind: str,
    size: int,
    symbols: Sequence[str] = (),
    reserved: Sequence[str] = (),
) -> Vocabulary:
    """Returns a Vocabulary learned from `lines`.

    It learns from at most four million lines, drawn at random but always the
    same. A corpus that does not support `size` ids gets as many as it supports,
    with a warning.

    Args:
        lines: iterable of str, both languages together.
        kind: "bpe" (byte-pair encoding) or "unigram" (word-piece-like).
        size: int, V.
        symbols: control symbols, str, which no text is tokenized to.
        reserved: words, str, each of which is one id.

    Raises:
        InputError: there is no text to learn from, or `size` is too small for
            the characters of the corpus.

    Source: section 5.1.
    """
    if size <= FIRST_PIECE:
        raise InputError(
            "vocabulary_size must leave room for the bytes and the characters "
            f"of this corpus; received {size}"
        )
    sentences = _sample(line for line in lines if line.strip())
    if not sentences:
        raise InputError("there is no text to learn a vocabulary from")
    try:
        return _train(
            sentences,
            kind,
            size - FIRST_PIECE,
            symbols=symbols,
            reserved=reserved,
        )
    except RuntimeError as error:
        largest = re.search(r"value <= (\d+)", str(error))
        smallest = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
        if smallest is not None:
            raise InputError(
                "vocabulary_size must be at least "
                f"{int(smallest[1]) + FIRST_PIECE}, for the bytes and the "
                f"characters of this corpus; received {size}"
            ) from None
        if largest is None:
            raise
    largest = int(largest[1])
    logging.warning(
        "The corpus is too small for a vocabulary of %d: learning one of %d.",
        size,
        largest + FIRST_PIECE,
    )
    return _train(sentences, kind, largest, symbols=symbols, reserved=reserved)


def _sample(lines):
    """Returns at most _LINES_LEARNED_FROM lines, all equally likely."""
    generator = random.Random(1)
    lines = iter(lines)
    sample = list(itertools.islice(lines, _LINES_LEARNED_FROM))
    for count, line in enumerate(lines, start=len(sample) + 1):
        place = generator.randrange(count)
        if place < len(sample):
            sample[place] = line
    return sample


def _train(sentences, kind, num_pieces, symbols, reserved):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=model,
        model_type=kind,
        vocab_size=num_pieces,
        character_coverage=1.0,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        max_sentence_length=_LARGEST_LINE_BYTES,
        bos_id=-1,
        eos_id=-1,
        unk_id=0,
        # In angle brackets, because text has pieces like `NN` and `,` too; in
        # double ones, because SentencePiece itself has <unk> and <0x41>.
        control_symbols=[f"<<{symbol}>>" for symbol in symbols],
        # With the space before them, which would otherwise be a separate id.
        user_defined_symbols=[f"{SPACE}{symbol}" for symbol in reserved],
        minloglevel=2,
    )
    return Vocabulary(model.getvalue())
