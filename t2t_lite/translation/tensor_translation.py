"""String tensors to their translations, in a graph too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.text import sentences
from t2t_lite.text.long_lines import LineSplitter
from t2t_lite.text.vocabulary import Vocabulary


class TensorTranslator:
    """Translates the lines in a string tensor.

    Args:
        translate_ids: that of Engine.
        splitter: LineSplitter.
        target: Vocabulary of the translations.
    """

    def __init__(
        self,
        translate_ids: Callable[[tf.RaggedTensor], Hypotheses],
        splitter: LineSplitter,
        target: Vocabulary,
    ):
        self._translate_ids = translate_ids
        self._splitter, self._target = splitter, target
        signature = [tf.TensorSpec(None, tf.string)]
        self._translate = tf.function(
            self._translate_in_graph, signature, autograph=False
        )

    def __call__(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the translations, string, and their scores, float32.

        Both have the shape of the text. A line without a translation has a
        blank one, with a score of -inf.

        Args:
            text: string tensor of any shape.
        """
        return self._translate(text)

    def _translate_in_graph(self, text):
        ids_P, line_indices_P = self._split(tf.reshape(text, [-1]))
        found = self._translate_ids(ids_P)
        text_P = self._target.decode_tensor(found.ids_BWT[:, 0])
        text_N = sentences.join_tensor(text_P, line_indices_P, tf.size(text))
        scores_N = tf.math.unsorted_segment_sum(
            found.scores_BW[:, 0], line_indices_P, tf.size(text)
        )
        # A sentence without a translation leaves its line without one.
        text_N = tf.where(tf.math.is_finite(scores_N), text_N, "")
        shape = tf.shape(text)
        return tf.reshape(text_N, shape), tf.reshape(scores_N, shape)

    def _split(self, text_N):
        """Returns P pieces in a graph: ragged int32 ids, int32 line indices."""

        def split(text_N):
            lines = [line.decode("utf-8", "replace") for line in text_N]
            pieces = self._splitter.split_lines(lines)
            return (
                np.array([i for ids in pieces.ids for i in ids], np.int32),
                np.array([len(ids) for ids in pieces.ids], np.int64),
                np.array(pieces.line_indices, np.int32),
            )

        ids, lengths_P, line_indices_P = tf.numpy_function(
            split, [text_N], [tf.int32, tf.int64, tf.int32], stateful=False
        )
        ids_P = tf.RaggedTensor.from_row_lengths(
            tf.ensure_shape(ids, [None]), tf.ensure_shape(lengths_P, [None])
        )
        return ids_P, tf.ensure_shape(line_indices_P, [None])


def require_strings(text: Any, accepted: str) -> None:
    """Raises TypeError if a tensor is not a dense one of strings.

    Args:
        text: tensor of any kind.
        accepted: in words, what would be accepted.
    """
    is_sparse = isinstance(text, tf.RaggedTensor | tf.SparseTensor)
    if is_sparse or text.dtype != tf.string:
        raise TypeError(
            f"text must be {accepted}; received a {type(text).__name__} of "
            f"{text.dtype.name}"
        )
