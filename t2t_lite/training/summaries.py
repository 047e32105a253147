"""What TensorBoard shows of a run: curves, in its model directory."""

import os
from collections.abc import Mapping

import tensorflow as tf
from absl import logging

from t2t_lite.errors import reason


class Summaries:
    """Writes curves for TensorBoard; a failure to write does not end the run.

    Args:
        folder: to write to, created with the first value; None for no curves.
    """

    def __init__(self, folder: str | os.PathLike | None):
        self._folder = folder
        self._writer: tf.summary.SummaryWriter | None = None

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes a point of each curve.

        Args:
            step: updates done.
            values: by the names of the curves.
        """
        if self._folder is None:
            return
        try:
            self._write(step, values)
        except tf.errors.OpError as error:
            logging.warning(
                "Cannot write summaries; continuing without them: %s",
                reason(error),
            )
            self._folder = None

    def _write(self, step: int, values: Mapping[str, float]) -> None:
        if self._writer is None:
            self._writer = tf.summary.create_file_writer(str(self._folder))
        with self._writer.as_default(step=step):
            for name, value in values.items():
                # A perplexity can be more than a float32 holds.
                value = tf.constant(value, tf.float64)
                tf.summary.scalar(name, tf.cast(value, tf.float32))
        self._writer.flush()
