"""Text as token ids and back: one SentencePiece vocabulary for both languages.

Id 0 fills sequences up, id 1 ends them, and piece i of the SentencePiece model
is id i + 2. So any SentencePiece model can be used, whatever control symbols it
has. Corpora are tokenized by the sentencepiece library, text inside a graph by
tensorflow-text's op; both give the same ids.
"""

import functools
import hashlib
import io
import itertools
import os
import pathlib
import random
import re
from typing import NamedTuple

import numpy as np
import sentencepiece
from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.token_ids import EOS, PAD

SPACE = "\u2581"  # What SentencePiece writes for a space.
_FIRST_PIECE = 2
_LINES_LEARNED_FROM = 4_000_000
_LARGEST_LINE_BYTES = 1 << 30


class FlatIds(NamedTuple):
    """The ids of many sequences, one after the other.

    >>> FlatIds.of([[5, 1], [6, 7, 1]])._asdict()
    {'ids': array([5, 1, 6, 7, 1], dtype=int32), 'lengths': array([2, 3])}
    """

    ids: np.ndarray  # int32
    lengths: np.ndarray  # int64, of each sequence

    @classmethod
    def of(cls, sequences):
        """Returns the FlatIds of a list of lists of int."""
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        ids = itertools.chain.from_iterable(sequences)
        return cls(np.fromiter(ids, np.int32, lengths.sum()), lengths)


class Vocabulary:
    """A SentencePiece model with the ids of this package.

    Vocabularies that `learn` makes keep every text: characters they have not
    seen become bytes, nothing is normalized and no space is dropped. The
    exception is U+2581, which SentencePiece itself writes for a space and
    which comes back as one.

    Args:
        model: bytes, a serialized SentencePiece model.

    Raises:
        InputError: the bytes are not such a model.
        TypeError: `model` is not bytes.
    """

    def __init__(self, model):
        if not isinstance(model, bytes):
            raise TypeError(
                "model must be the bytes of a SentencePiece model; received "
                f"{model!r} (Vocabulary.load reads a file)"
            )
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise InputError(
                "the vocabulary is not a SentencePiece model"
            ) from None

    @classmethod
    def load(cls, path):
        """Returns the vocabulary of the SentencePiece model file `path`.

        Raises:
            InputError: the file cannot be read or is not a SentencePiece model.
        """
        try:
            return cls(pathlib.Path(path).read_bytes())
        except OSError as error:
            raise InputError(
                f"cannot read the vocabulary {path}: {error.strerror}"
            ) from None
        except InputError:
            raise InputError(f"{path} is not a SentencePiece model") from None

    def save(self, path):
        """Writes the SentencePiece model to `path`, whole or not at all."""
        with files.atomic_file(path, "wb") as file:
            file.write(self.model)

    @property
    def size(self):
        """Number of ids, V."""
        return self._processor.GetPieceSize() + _FIRST_PIECE

    @functools.cached_property
    def control_symbols(self):
        """The ids of the symbols that no text is tokenized to, by name.

        They are those that `learn` was given.
        """
        processor = self._processor
        names = {
            piece + _FIRST_PIECE: processor.id_to_piece(piece)
            for piece in range(processor.GetPieceSize())
            if processor.IsControl(piece)
        }
        return {
            name[2:-2]: i
            for i, name in names.items()
            if name.startswith("<<") and name.endswith(">>")
        }

    @property
    def unknown_id(self):
        """The id of what no piece stands for."""
        return self._processor.unk_id() + _FIRST_PIECE

    @functools.cached_property
    def sha256(self):
        """Hex digest that names this vocabulary."""
        return hashlib.sha256(self.model).hexdigest()

    def encode(self, lines, num_threads=None):
        """Returns a list of ids, EOS at its end, for each line.

        Args:
            lines: list of str.
            num_threads: int; as many as there are cores when not given.
        """
        pieces = self._pieces(lines, num_threads)
        return [[piece + _FIRST_PIECE for piece in p] + [EOS] for p in pieces]

    def encode_flat(self, lines):
        """Returns the ids of `encode` as one array: for corpora, fast.

        Args:
            lines: list of str.

        Returns:
            FlatIds, EOS at the end of each line.
        """
        pieces, lengths = FlatIds.of(self._pieces(lines))
        lengths += 1
        ids = np.empty(lengths.sum(), np.int32)
        is_end = np.zeros(len(ids), bool)
        is_end[np.cumsum(lengths) - 1] = True
        ids[is_end] = EOS
        ids[~is_end] = pieces + _FIRST_PIECE
        return FlatIds(ids, lengths)

    def _pieces(self, lines, num_threads=None):
        return self._processor.encode(
            lines, out_type=int, num_threads=num_threads or os.cpu_count()
        )

    def decode(self, sequences):
        """Returns the text of each sequence of ids, up to its first EOS.

        Bytes that are not UTF-8 become U+FFFD.
        """
        pieces = [
            [int(i) - _FIRST_PIECE for i in _until_eos(ids) if i > EOS]
            for ids in sequences
        ]
        return self._processor.decode(pieces)

    def tokens(self, ids):
        """Returns the str that each id stands for; "</s>" for EOS."""
        names = {i: symbol for symbol, i in self.control_symbols.items()}
        names |= {PAD: "<pad>", EOS: "</s>"}
        return [
            names.get(int(i)) or self._processor.id_to_piece(int(i) - 2)
            for i in ids
        ]

    @functools.cached_property
    def _guard(self):
        """A piece of text without spaces, and how many bytes it is."""
        processor = self._processor
        piece = next(
            piece
            for piece in range(processor.GetPieceSize())
            if not processor.IsControl(piece)
            and not processor.IsUnknown(piece)
            and not processor.IsUnused(piece)
            and not processor.IsByte(piece)
            and SPACE not in processor.id_to_piece(piece)
        )
        return piece, len(processor.decode([piece]).encode())

    def _new_op(self):
        """Returns tensorflow-text's tokenizer, part of the graph at hand.

        Each graph gets its own: one that is shared is lost when anybody sets
        TensorFlow's random seed, which empties the cache of eager operations.
        """
        import tensorflow_text

        return tensorflow_text.SentencepieceTokenizer(self.model)

    def encode_tensor(self, text_B):
        """Returns the ids of `encode` inside a graph.

        Args:
            text_B: string tensor [B].

        Returns:
            int32 RaggedTensor [B, (length)], EOS at each end.
        """
        import tensorflow as tf

        ids = self._new_op().tokenize(text_B) + _FIRST_PIECE
        eos = tf.fill([tf.shape(text_B)[0], 1], EOS)
        return tf.concat([ids, tf.RaggedTensor.from_tensor(eos)], axis=1)

    def tokens_tensor(self, ids_BT):
        """Returns the string tensor [B, T] of `tokens`; "" for padding.

        Control symbols stay as SentencePiece writes them.
        """
        import tensorflow as tf

        pieces_BT = self._new_op().id_to_string(
            tf.maximum(ids_BT - _FIRST_PIECE, 0)
        )
        pieces_BT = tf.where(ids_BT == EOS, "</s>", pieces_BT)
        return tf.where(ids_BT == PAD, "", pieces_BT)

    def decode_tensor(self, ids_BT):
        """Returns the string tensor [B] of int32 ids [B, T] up to EOS."""
        import tensorflow as tf

        ended = tf.cumsum(tf.cast(ids_BT == EOS, tf.int32), axis=1)
        is_piece = (ended == 0) & (ids_BT != PAD)
        pieces = tf.ragged.boolean_mask(ids_BT - _FIRST_PIECE, is_piece)
        # The op drops all spaces at the start; behind another piece it keeps
        # them. The one that SentencePiece put there itself still has to go.
        piece, num_bytes = self._guard
        guard_B1 = tf.fill([tf.shape(ids_BT)[0], 1], piece)
        text_B = self._new_op().detokenize(
            tf.concat([guard_B1, pieces], axis=1)
        )
        text_B = tf.strings.substr(text_B, num_bytes, _LARGEST_LINE_BYTES)
        return tf.strings.regex_replace(text_B, "^ ", "")


def learn(lines, kind, size, symbols=()):
    """Returns a Vocabulary learned from `lines`.

    At most four million lines are learned from, drawn at random but always the
    same. A corpus that does not support `size` ids gets the most that it does,
    with a warning.

    Args:
        lines: iterable of str, both languages together.
        kind: "bpe" (byte-pair encoding) or "unigram" (word-piece-like).
        size: int, V.
        symbols: control symbols, str, which no text is tokenized to.

    Raises:
        InputError: there is no text to learn from, or `size` is too small for
            the characters of the corpus.

    Source: section 5.1.
    """
    if size <= _FIRST_PIECE:
        raise InputError(
            "vocabulary_size must be at least that of the bytes and the "
            f"characters of this corpus; received {size}"
        )
    sentences = _sample(line for line in lines if line.strip())
    if not sentences:
        raise InputError("there is no text to learn a vocabulary from")
    try:
        return _train(sentences, kind, size - _FIRST_PIECE, symbols)
    except RuntimeError as error:
        largest = re.search(r"value <= (\d+)", str(error))
        smallest = re.search(r"required_chars\. \d+ vs (\d+)", str(error))
        if smallest is not None:
            raise InputError(
                "vocabulary_size must be at least "
                f"{int(smallest[1]) + _FIRST_PIECE}, for the bytes and the "
                f"characters of this corpus; received {size}"
            ) from None
        if largest is None:
            raise
    largest = int(largest[1])
    logging.warning(
        "The corpus supports a vocabulary of %d, not of %d: learning that.",
        largest + _FIRST_PIECE,
        size,
    )
    return _train(sentences, kind, largest, symbols)


def _sample(lines):
    """Returns at most _LINES_LEARNED_FROM lines, each as likely as another."""
    generator = random.Random(1)
    lines = iter(lines)
    sample = list(itertools.islice(lines, _LINES_LEARNED_FROM))
    for count, line in enumerate(lines, start=len(sample) + 1):
        place = generator.randrange(count)
        if place < len(sample):
            sample[place] = line
    return sample


def _train(sentences, kind, num_pieces, symbols):
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
        # In angle brackets, for text has pieces like `NN` and `,` too; in two,
        # for SentencePiece itself has <unk> and <0x41>.
        control_symbols=[f"<<{symbol}>>" for symbol in symbols],
        minloglevel=2,
    )
    return Vocabulary(model.getvalue())


def _until_eos(ids):
    return itertools.takewhile(lambda i: i != EOS, ids)
