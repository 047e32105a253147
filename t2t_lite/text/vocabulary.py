"""Text as token ids and back, by a SentencePiece vocabulary.

It serves both languages, unless it has a separate one for targets. Id 0 fills
sequences up, id 1 ends them, and piece i of the SentencePiece model is id
i + 2. So any SentencePiece model can be used, whatever control symbols it has.
Corpora are tokenized by the sentencepiece library, text inside a graph by
tensorflow-text's op; both give the same ids.
"""

import functools
import hashlib
import itertools
import operator
import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sentencepiece

from t2t_lite import files
from t2t_lite.errors import InputError, require_path
from t2t_lite.token_ids import EOS, PAD

if TYPE_CHECKING:
    import tensorflow as tf

SPACE = "\u2581"  # What SentencePiece writes for a space.
# Names in a folder: for both languages, or for one each.
FILE = "vocabulary.model"
SOURCE_FILE, TARGET_FILE = "source.model", "target.model"
FIRST_PIECE = 2  # The id of the SentencePiece model's first piece.
# A control piece that ends those that have ids. Text is still segmented by
# pieces after it, which are then unknown: in models of other programs, those
# that their training never saw.
OUTSIDE = "<outside>"
_LARGEST_LINE_BYTES = 1 << 30


class FlatIds(NamedTuple):
    """The ids of many sequences, one after the other.

    >>> FlatIds.from_lists([[5, 1], [6, 7, 1]])._asdict()
    {'ids': array([5, 1, 6, 7, 1], dtype=int32), 'lengths': array([2, 3])}
    """

    ids: np.ndarray  # int32
    lengths: np.ndarray  # int64, of each sequence

    @classmethod
    def from_lists(cls, sequences: list[list[int]]) -> "FlatIds":
        """Returns the FlatIds of a list of lists of ids."""
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        ids = itertools.chain.from_iterable(sequences)
        return cls(np.fromiter(ids, np.int32, lengths.sum()), lengths)


def require_lines(lines: Any, accepted: str = "lines must be str") -> None:
    """Checks that an argument holds lines in order, whatever each one is.

    Args:
        lines: the argument.
        accepted: what must hold, for the message.

    Raises:
        TypeError: it is one line (whose characters are not lines), or not
            iterable; or its items have no order, or are keys.
    """
    no_lines = (str, bytes, Mapping, Set)
    if isinstance(lines, no_lines) or not isinstance(lines, Iterable):
        raise TypeError(f"{accepted}; received {reprlib.repr(lines)}")


def as_list(
    lines: Any, accepted: str = "lines must be str", first: int = 0
) -> list[str]:
    """Returns lines as a list of str.

    Args:
        lines: that of `require_lines`.
        accepted: that of `require_lines`.
        first: what the message counts them from.

    Raises:
        InputError: UTF-8 has no code for a character of one of them.
        TypeError: as in `require_lines`, or one of them is not a str.
    """
    require_lines(lines, accepted)
    lines = list(lines)
    for n, line in enumerate(lines, first):
        if not isinstance(line, str):
            raise TypeError(
                f"{accepted}; received {reprlib.repr(line)} at index {n}"
            )
        if not _is_utf8(line):
            raise InputError(
                f"{accepted} that UTF-8 can hold; received "
                f"{reprlib.repr(line)} at index {n}"
            )
    return lines


def _is_utf8(line: str) -> bool:
    """Returns whether a line holds no half of a surrogate pair."""
    try:
        return line.isascii() or bool(line.encode())
    except UnicodeEncodeError:
        return False


class Vocabulary:
    """A SentencePiece model with the ids of this package.

    Models that `learning.learn` makes keep every text: characters that they
    have not seen become bytes, nothing is normalized and no space is dropped.
    The exception is U+2581, which SentencePiece itself writes for a space and
    which comes back as one.

    Args:
        model: bytes, a serialized SentencePiece model.
        target: Vocabulary of targets; this one when not given.

    Raises:
        InputError: the bytes are not such a model.
        TypeError: `model` is not bytes.
    """

    def __init__(self, model: bytes, target: "Vocabulary | None" = None):
        if not isinstance(model, bytes):
            raise TypeError(
                "model must be the bytes of a SentencePiece model; received "
                f"{model!r} (Vocabulary.load reads a file)"
            )
        if target is not None:
            require_vocabulary(target)
        self.model = model
        self._target = target
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
            outside = self._processor.piece_to_id(OUTSIDE)
            self.has_outside = self._processor.IsControl(outside)
        except (RuntimeError, UnicodeDecodeError, IndexError):
            raise InputError(
                "the vocabulary is not a SentencePiece model"
            ) from None
        self._num_pieces = (
            outside if self.has_outside else self._processor.GetPieceSize()
        )

    @property
    def target(self) -> "Vocabulary":
        """The Vocabulary of targets: this one, if both languages share it."""
        return self if self._target is None else self._target

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Vocabulary":
        """Returns the vocabulary of the SentencePiece model file `path`.

        Raises:
            InputError: the file cannot be read or is not a SentencePiece model.
        """
        require_path(path=path)
        path = files.to_path(path)
        try:
            return cls(path.read_bytes())
        except OSError as error:
            raise InputError(
                f"cannot read the vocabulary {path}: {error.strerror}"
            ) from None
        except InputError:
            raise InputError(f"{path} is not a SentencePiece model") from None

    @classmethod
    def load_from(cls, folder: str | os.PathLike) -> "Vocabulary":
        """Returns the vocabulary of a folder, with the file names of `sides`.

        Raises:
            InputError: it cannot be read.
        """
        folder = files.to_path(folder)
        if not files.exists(folder / SOURCE_FILE):
            return cls.load(folder / FILE)
        target = cls.load(folder / TARGET_FILE)
        return cls(cls.load(folder / SOURCE_FILE).model, target)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the SentencePiece model to `path`, atomically."""
        with files.atomic_file(path, "wb") as file:
            file.write(self.model)

    def save_in(self, folder: str | os.PathLike) -> None:
        """Writes the files of `sides` to a folder, each atomically."""
        folder, sides = files.to_path(folder), self.sides()
        for name, side in sides.items():
            side.save(folder / name)
        for name in {FILE, SOURCE_FILE, TARGET_FILE} - sides.keys():
            if files.exists(folder / name):  # From what was there before.
                (folder / name).unlink()

    def sides(self) -> dict[str, "Vocabulary"]:
        """Returns the file names of a vocabulary, and what each file holds."""
        if self._target is None:
            return {FILE: self}
        # The target's first: if the source's exists, so does the target's.
        return {TARGET_FILE: self._target, SOURCE_FILE: self}

    @property
    def size(self) -> int:
        """Number of ids, V."""
        return self._num_pieces + FIRST_PIECE

    @functools.cached_property
    def control_symbols(self) -> dict[str, int]:
        """The ids of the symbols that no text is tokenized to, by name.

        They are those that `learning.learn` was given.
        """
        processor = self._processor
        names = {
            piece + FIRST_PIECE: processor.id_to_piece(piece)
            for piece in range(processor.GetPieceSize())
            if processor.IsControl(piece)
        }
        return {
            name[2:-2]: i
            for i, name in names.items()
            if name.startswith("<<") and name.endswith(">>")
        }

    @functools.cached_property
    def language_tokens(self) -> list[str]:
        """The pieces that name a language, such as ">>deu<<"."""
        names = (
            self._processor.id_to_piece(piece).lstrip(SPACE)
            for piece in range(self._num_pieces)
        )
        return [*filter(is_language_token, names)]

    def reserved_ids(self, symbols: Iterable[str]) -> dict[str, int]:
        """Returns the ids of those symbols that are a single id in text.

        Args:
            symbols: words, str.
        """
        symbols = list(symbols)
        found = {}
        for symbol, ids in zip(symbols, self.encode(symbols), strict=True):
            tokens = dict(zip(ids[:-1], self.tokens(ids[:-1]), strict=True))
            # Other programs' models may have the space before it as an id.
            wholes = [i for i, token in tokens.items() if token != SPACE]
            if len(wholes) == 1 and tokens[wholes[0]].lstrip(SPACE) == symbol:
                found[symbol] = wholes[0]
        return found

    @property
    def unknown_id(self) -> int:
        """The id of what no piece stands for."""
        return self._processor.unk_id() + FIRST_PIECE

    @functools.cached_property
    def _model_sha256(self) -> str:
        """Hex digest of this vocabulary's own SentencePiece model."""
        return hashlib.sha256(self.model).hexdigest()

    @functools.cached_property
    def sha256(self) -> str:
        """Hex digest that names this vocabulary, including that of targets."""
        if self._target is None:
            return self._model_sha256
        both = self._model_sha256 + self._target.sha256
        return hashlib.sha256(both.encode()).hexdigest()

    def encode(
        self, lines: Sequence[str], num_threads: int | None = None
    ) -> list[list[int]]:
        """Returns a list of ids, EOS at its end, for each line.

        Args:
            lines: list of str.
            num_threads: int; as many as there are cores when not given.
        """
        pieces = self._pieces(lines, num_threads)
        return [[piece + FIRST_PIECE for piece in p] + [EOS] for p in pieces]

    def encode_flat(self, lines: Sequence[str]) -> FlatIds:
        """Returns the ids of `encode` as one array: for corpora, fast.

        Args:
            lines: list of str.

        Returns:
            FlatIds, EOS at the end of each line.
        """
        pieces, lengths = FlatIds.from_lists(self._pieces(lines))
        lengths += 1
        ids = np.empty(lengths.sum(), np.int32)
        is_end = np.zeros(len(ids), bool)
        is_end[np.cumsum(lengths) - 1] = True
        ids[is_end] = EOS
        ids[~is_end] = pieces + FIRST_PIECE
        return FlatIds(ids, lengths)

    def _pieces(self, lines, num_threads=None):
        lines = as_list(lines, "lines must be a list of str")
        sequences = self._processor.encode(
            lines, out_type=int, num_threads=num_threads or os.cpu_count()
        )
        if not self.has_outside:
            return sequences
        unknown, end = self._processor.unk_id(), self._num_pieces
        return [[p if p < end else unknown for p in ps] for ps in sequences]

    def decode(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """Returns the text of each sequence of ids, up to its first EOS.

        Bytes that are not UTF-8 become U+FFFD.

        Raises:
            IndexError: an id is negative, or not below `size`.
            TypeError: ids are not in sequences, or an id is not an integer.
        """
        try:
            pieces = [
                [operator.index(i) - FIRST_PIECE for i in _pieces_of(ids)]
                for ids in sequences
            ]
        except TypeError:
            raise TypeError(
                "sequences must be lists of ids, in a list; received "
                f"{reprlib.repr(sequences)}"
            ) from None
        if not pieces:
            return []  # The processor takes an empty list for one sequence.
        try:
            if self.has_outside:
                self._require_ids(pieces)
            return self._processor.decode(pieces)
        except (IndexError, TypeError):  # The latter beyond 32 bits.
            ids = [i + FIRST_PIECE for each in pieces for i in each]
            raise self._out_of_range(ids) from None

    def _require_ids(self, sequences: list[list[int]]) -> None:
        """Raises IndexError if a piece that is known has no id."""
        if any(p >= self._num_pieces for pieces in sequences for p in pieces):
            raise IndexError

    def _out_of_range(self, ids):
        """Returns the IndexError that names the first id out of range."""
        wrong = next((i for i in ids if not 0 <= i < self.size), None)
        return IndexError(
            f"ids must be from 0 to {self.size - 1}; received {wrong}"
        )

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Returns the str that each id stands for; "</s>" for EOS.

        Raises:
            IndexError: an id is negative, or not below `size`.
        """
        ids = list(map(operator.index, ids))
        if ids and not 0 <= min(ids) <= max(ids) < self.size:
            raise self._out_of_range(ids)
        names = {i: symbol for symbol, i in self.control_symbols.items()}
        names |= {PAD: "<pad>", EOS: "</s>"}
        return [
            names.get(i) or self._processor.id_to_piece(i - FIRST_PIECE)
            for i in ids
        ]

    @functools.cached_property
    def space_id(self) -> int | None:
        """The id of a space by itself; None if there is none."""
        piece = self._processor.piece_to_id(SPACE)
        is_known = not self._processor.IsUnknown(piece)
        return piece + FIRST_PIECE if is_known else None

    @functools.cached_property
    def token_bytes(self) -> list[bytes]:
        """What each id adds to a text, in UTF-8; nothing if it is not text.

        The text has a space in front, which is not shown.
        """
        processor, texts = self._processor, [b""] * FIRST_PIECE
        for piece in range(self._num_pieces):
            name = processor.id_to_piece(piece)
            if processor.IsByte(piece):
                texts.append(bytes([int(name[1:-1], 16)]))
            elif processor.IsControl(piece) or processor.IsUnknown(piece):
                texts.append(b"")
            else:
                texts.append(name.replace(SPACE, " ").encode())
        return texts

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

    @functools.cached_property
    def drops_spaces(self) -> bool:
        """Whether text has no spaces at its ends, whatever its pieces say."""
        from sentencepiece import sentencepiece_model_pb2

        proto = sentencepiece_model_pb2.ModelProto.FromString(self.model)
        return proto.normalizer_spec.remove_extra_whitespaces

    @functools.cached_property
    def _is_control_P(self):
        """Which pieces no text is tokenized to, bool."""
        processor = self._processor
        return np.array(
            [*map(processor.IsControl, range(processor.GetPieceSize()))]
        )

    @functools.cached_property
    def _begins_with_space_P(self):
        """Which pieces begin with the sign for a space, bool."""
        processor = self._processor
        pieces = range(processor.GetPieceSize())
        return np.array(
            [processor.id_to_piece(p).startswith(SPACE) for p in pieces]
        )

    def _new_op(self):
        """Returns tensorflow-text's tokenizer, as part of the current graph.

        Each graph gets its own: a shared one is lost when anybody sets
        TensorFlow's random seed, which empties the cache of eager operations.
        """
        import tensorflow_text

        # Operations of one name share one model when a SavedModel is loaded.
        return tensorflow_text.SentencepieceTokenizer(
            self.model, name=f"sentencepiece_{self._model_sha256[:16]}"
        )

    def encode_tensor(self, text_B: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the ids of `encode` inside a graph.

        Args:
            text_B: string tensor [B].

        Returns:
            int32 RaggedTensor [B, (length)], EOS at each end.

        Raises:
            TypeError: it is not such a tensor.
        """
        import tensorflow as tf

        text_B = _as_tensor("text_B", text_B, tf.string, axes="B")
        pieces = self._new_op().tokenize(text_B)
        if self.has_outside:
            has_no_id = pieces >= self._num_pieces
            pieces = tf.where(has_no_id, self._processor.unk_id(), pieces)
        ids = pieces + FIRST_PIECE
        eos = tf.fill([tf.shape(text_B)[0], 1], EOS)
        return tf.concat([ids, tf.RaggedTensor.from_tensor(eos)], axis=1)

    def tokens_tensor(self, ids_BT: "tf.Tensor") -> "tf.Tensor":
        """Returns the string tensor [B, T] of `tokens`; "" for padding.

        Control symbols stay as SentencePiece writes them. What is not an id is
        taken for the nearest one.
        """
        import tensorflow as tf

        ids_BT = _as_tensor("ids_BT", ids_BT, tf.int32, axes="B, T")
        # The op crashes on others.
        last = FIRST_PIECE + self._processor.GetPieceSize() - 1
        known_BT = tf.clip_by_value(ids_BT, FIRST_PIECE, last)
        pieces_BT = self._new_op().id_to_string(known_BT - FIRST_PIECE)
        pieces_BT = tf.where(ids_BT == EOS, "</s>", pieces_BT)
        return tf.where(ids_BT == PAD, "", pieces_BT)

    def decode_tensor(self, ids_BT: "tf.Tensor") -> "tf.Tensor":
        """Returns the string tensor [B] of int32 ids [B, T] up to EOS.

        In a graph nothing is checked: an invalid id gives arbitrary text.
        """
        import tensorflow as tf

        ids_BT = _as_tensor("ids_BT", ids_BT, tf.int32, axes="B, T")
        ended = tf.cumsum(tf.cast(ids_BT == EOS, tf.int32), axis=1)
        is_piece = (ended == 0) & (ids_BT != PAD)
        pieces = tf.ragged.boolean_mask(ids_BT - FIRST_PIECE, is_piece)
        # The op drops all spaces at the start; after another piece it keeps
        # them. The first piece's own, which SentencePiece itself put there,
        # still has to go.
        piece, num_bytes = self._guard
        guard_B1 = tf.fill([tf.shape(ids_BT)[0], 1], piece)
        text_B = self._new_op().detokenize(
            tf.concat([guard_B1, pieces], axis=1)
        )
        is_text = tf.gather(~self._is_control_P, pieces)
        first_B1 = tf.ragged.boolean_mask(pieces, is_text)[:, :1]
        begins_B1 = tf.gather(self._begins_with_space_P, first_B1)
        num_spaces_B = tf.reduce_sum(tf.cast(begins_B1, tf.int32), axis=1)
        text_B = tf.strings.substr(
            text_B,
            num_bytes + num_spaces_B,
            tf.fill(tf.shape(text_B), _LARGEST_LINE_BYTES),
        )
        if self.drops_spaces:
            text_B = tf.strings.regex_replace(text_B, "^ +", "")
        return text_B


def is_language_token(name: str) -> bool:
    """Returns whether a piece names the language to translate to.

    >>> is_language_token(">>deu<<"), is_language_token("deu")
    (True, False)
    """
    return name.startswith(">>") and name.endswith("<<")


def require_vocabulary(vocabulary: Any) -> None:
    """Raises TypeError if an argument is not a Vocabulary."""
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(
            "vocabulary must be a Vocabulary (Vocabulary.load reads a file); "
            f"received {vocabulary!r}"
        )


def _as_tensor(name, value, dtype, axes):
    """Returns a dense tensor, or an array as one.

    Raises:
        TypeError: it is of another kind.
    """
    import tensorflow as tf

    if isinstance(value, np.ndarray):
        value = tf.convert_to_tensor(value)
    is_dense = tf.is_tensor(value) and not isinstance(value, tf.RaggedTensor)
    rank = len(axes.split(", "))
    if (
        not is_dense
        or value.dtype != dtype
        or value.shape.rank not in (None, rank)
    ):
        raise TypeError(
            f"{name} must be a tensor of {dtype.name} [{axes}]; received "
            f"{reprlib.repr(value)}"
        )
    return value


def _pieces_of(ids):
    """Yields the ids up to the first EOS, without padding."""
    until_eos = itertools.takewhile(lambda i: i != EOS, ids)
    return (i for i in until_eos if i != PAD)
