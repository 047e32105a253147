"""Lines of text to their translations."""

import functools
import os
import re

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite.decoding import saved_model
from t2t_lite.decoding.line_predictor import LinePredictor, Translation
from t2t_lite.decoding.search import Engine, SearchOptions, model_engine
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage import model_directory
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS

_AFTER_A_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”»)\]]*\s+|(?<=[。！？])")  # noqa: RUF001


class LineTranslator(LinePredictor):
    """Translates lines of text, however long they are.

    A line that is longer than the model was made for is translated in pieces,
    cut at sentence boundaries, or between words where a sentence itself is too
    long, which a warning says.

    Args:
        engine: Engine.
        vocabulary: Vocabulary.
        options: SearchOptions, those that the engine searches with.
    """

    _accepted = "a str, a list of str or a string tensor"

    def __init__(
        self, engine: Engine, vocabulary: Vocabulary, options: SearchOptions
    ):
        super().__init__(
            vocabulary,
            options,
            model=engine.model,
            description=engine.description,
        )
        self.translate_ids = engine.translate_ids
        self.max_length = engine.max_length

    @staticmethod
    def from_model(
        model: Transformer,
        vocabulary: Vocabulary,
        options: SearchOptions,
        xla: bool | None = None,
    ) -> "LineTranslator":
        """Returns the LineTranslator of a Transformer in memory."""
        engine = model_engine(model, options, xla)
        return LineTranslator(engine, vocabulary, options)

    @staticmethod
    def from_saved_model(path: str | os.PathLike) -> "LineTranslator":
        """Returns the LineTranslator of a SavedModel that bin/export wrote.

        Its search options are those that it was exported with.

        Args:
            path: the directory of one version.

        Raises:
            InputError: there is no such SavedModel.
        """
        loaded = saved_model.load(path)
        return LineTranslator(loaded.engine, loaded.vocabulary, loaded.options)

    def translate(self, lines, first_line=1):
        """Returns for each line a list of `nbest` Translations, best first.

        Args:
            lines: list of str. A blank one gives blank translations.
            first_line: int, the number that warnings give to the first one.
        """
        pieces, owners = self._all_pieces(lines, first_line)
        of_piece = self._translate_ids(pieces)
        of_line = [[] for _ in lines]
        for owner, translations in zip(owners, of_piece, strict=True):
            of_line[owner].append(translations)
        return [self._join(parts) for parts in of_line]

    def _all_pieces(self, lines, first_line):
        """Returns the pieces of all lines, and the index of each one's line."""
        pieces, owners = [], []
        for n, line in enumerate(lines):
            of_line = self._pieces(line, first_line + n) if line.strip() else []
            pieces.extend(of_line)
            owners.extend([n] * len(of_line))
        return pieces, owners

    def _join(self, parts):
        """Returns the n-th best of all pieces as one: the scores add up."""
        if not parts:
            return [Translation("", 0.0)] * self.options.nbest
        return [
            Translation(
                " ".join(part.text for part in nth if part.text),
                sum(part.score for part in nth),
            )
            for nth in zip(*parts, strict=True)
        ]

    def _pieces(self, line, number):
        """Returns the line as a list of lists of ids, none over-long."""
        (ids,) = self.vocabulary.encode([line], num_threads=1)
        if len(ids) <= self.max_length:
            return [ids]
        sentences = self._split(line, _AFTER_A_SENTENCE)
        units = []
        for sentence in sentences:
            if len(sentence) <= self.max_length:
                units.append(sentence)
            else:
                logging.warning(
                    "Line %d has a sentence of %d tokens, more than the %d "
                    "that this model takes: it is cut into pieces.",
                    number,
                    len(sentence),
                    self.max_length,
                )
                units.extend(self._cut(sentence))
        return list(self._packed(units))

    def _split(self, line, boundary):
        parts, start = [], 0
        for match in boundary.finditer(line):
            parts.append(line[start : match.end()].strip())
            start = match.end()
        parts.append(line[start:].strip())
        parts = [part for part in parts if part]
        return self.vocabulary.encode(parts, num_threads=1)

    def _cut(self, ids):
        """Yields pieces of a sentence's ids, cut before a word if possible."""
        ids, room = ids[:-1], self.max_length - 1
        while len(ids) > room:
            tokens = self.vocabulary.tokens(ids[: room + 1])
            starts = [n for n, t in enumerate(tokens) if n and t[0] == "\u2581"]
            at = starts[-1] if starts else room
            yield [*ids[:at], EOS]
            ids = ids[at:]
        yield [*ids, EOS]

    def _packed(self, units):
        """Yields units of ids joined while they fit together."""
        joined = []
        for unit in units:
            if joined and len(joined) + len(unit) > self.max_length:
                yield [*joined, EOS]
                joined = []
            joined.extend(unit[:-1])
        if joined:
            yield [*joined, EOS]

    def _translate_ids(self, sequences):
        """Returns the Translations of each sequence of ids."""
        if not sequences:
            return []
        found = self.translate_ids(tf.ragged.constant(sequences, tf.int32))
        count = self.options.nbest
        ids_NWT = found.ids_BWT.numpy()[:, :count]
        scores_NW = found.scores_BW.numpy()[:, :count]
        N, W, T = ids_NWT.shape
        texts = self.vocabulary.decode(ids_NWT.reshape(N * W, T))
        return [
            [
                Translation(texts[n * W + w], float(scores_NW[n, w]))
                for w in range(W)
            ]
            for n in range(N)
        ]

    def __call__(self, text, *, with_scores=False):
        """Returns the best translation of each text.

        Args:
            text: a str, a list of str, or a string tensor of any shape, within
                a tf.function or Dataset.map too. (A map runs on the CPU: a
                model on another device must be one with xla=False.)
            with_scores: bool, whether to return (translations, scores), the
                scores float32 (log probability in nats / length penalty).

        Returns:
            a str, a list of str, or a string tensor, as `text` is.

        Raises:
            TypeError: `text` is none of these.
        """
        if not tf.is_tensor(text):
            return super().__call__(text, with_scores=with_scores)
        translations, scores = self._of_tensor(text)
        return (translations, scores) if with_scores else translations

    @functools.cached_property
    def _of_tensor(self):
        """The function of a string tensor to (string, float32) of its shape."""

        def of_tensor(text):
            text_N = tf.reshape(text, [-1])
            N = tf.size(text_N)
            ids, lengths_P, owner_P = tf.numpy_function(
                self._flat_pieces,
                [text_N],
                [tf.int32, tf.int64, tf.int32],
                stateful=False,
            )
            lengths_P = tf.ensure_shape(lengths_P, [None])
            owner_P = tf.ensure_shape(owner_P, [None])
            found = self.translate_ids(
                tf.RaggedTensor.from_row_lengths(
                    tf.ensure_shape(ids, [None]), lengths_P
                )
            )
            text_P = self.vocabulary.decode_tensor(found.ids_BWT[:, 0])
            has_text_P = tf.not_equal(text_P, "")
            joined_N = tf.strings.unsorted_segment_join(
                tf.boolean_mask(text_P, has_text_P),
                tf.boolean_mask(owner_P, has_text_P),
                N,
                separator=" ",
            )
            scores_N = tf.math.unsorted_segment_sum(
                found.scores_BW[:, 0], owner_P, N
            )
            shape = tf.shape(text)
            return tf.reshape(joined_N, shape), tf.reshape(scores_N, shape)

        signature = [tf.TensorSpec(None, tf.string)]
        return tf.function(of_tensor, signature, autograph=False)

    def _flat_pieces(self, text_N):
        """Returns the pieces of all lines as ids, lengths, and line numbers."""
        lines = [line.decode("utf-8", "replace") for line in text_N]
        pieces, owners = self._all_pieces(lines, first_line=1)
        ids = [i for piece in pieces for i in piece]
        lengths = [len(piece) for piece in pieces]
        return (
            np.array(ids, np.int32),
            np.array(lengths, np.int64),
            np.array(owners, np.int32),
        )


class Translator(LineTranslator):
    """Translates text with the model of a model directory.

    Args:
        model_dir: path of a model directory.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, the mean of so many of the last ones.
        precision: "float32", "bfloat16" or "float16".
        xla: bool, whether XLA compiles the search, once for each shape; None:
            where there is a GPU.
        options: what to change in the SearchOptions of the model's settings.

    Raises:
        InputError: the directory has no such model, or an option is wrong.
    """

    def __init__(
        self,
        model_dir,
        checkpoint="last",
        average_last=1,
        precision="float32",
        xla=None,
        **options,
    ):
        directory = model_directory.ModelDirectory(model_dir)
        directory.require_task("translation")
        model, description = directory.load_model(
            checkpoint, average_last, precision
        )
        options = SearchOptions.from_hparams(model.hparams, **options)
        super().__init__(
            model_engine(model, options, xla, description),
            directory.vocabulary(),
            options,
        )
