"""What a run does when its loss diverges: it stops, or skips the batches."""

import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite import files
from t2t_lite.english import counted
from t2t_lite.errors import InputError
from t2t_lite.optimization.divergence import (
    DivergenceError,
    LossMean,
    divergence_reason,
)
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.strategies import value_from_chief
from t2t_lite.optimization.trainer import Trainer
from t2t_lite.optimization.update import Update
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.task import Task
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS, PAD
from t2t_lite.training.options import RunOptions


class Skipped(NamedTuple):
    """Batches that a run has skipped: tensors of these names.

    Step N trains on batch N + skipped_batches.
    """

    skipped_batches: int = 0
    num_skips: int = 0

    def after(self, num_batches: int) -> "Skipped":
        """Returns the counts once that many more batches are skipped at once.

        >>> Skipped().after(10).after(3)
        Skipped(skipped_batches=13, num_skips=2)
        """
        return Skipped(self.skipped_batches + num_batches, self.num_skips + 1)

    @classmethod
    def restored(cls, tensors: Mapping[str, Any]) -> "Skipped":
        """Returns the counts that a checkpoint keeps; zeros if it has none.

        Args:
            tensors: those of the checkpoint.
        """
        return cls(
            skipped_batches=int(tensors.get("skipped_batches", 0)),
            num_skips=int(tensors.get("num_skips", 0)),
        )


class Watchdog:
    """Notices an update that shows that the model is no longer of any use.

    Args:
        trainer: Trainer.
        directory: ModelDirectory, for the records; None to write none.
        options: RunOptions.
        task: Task.
        vocabulary: Vocabulary.
    """

    def __init__(
        self,
        trainer: Trainer,
        directory: ModelDirectory | None,
        options: RunOptions,
        task: Task,
        vocabulary: Vocabulary,
    ):
        self._trainer, self._directory = trainer, directory
        self._options, self._task = options, task
        self._vocabulary = vocabulary
        self._last: Update | None = None
        self.loss_mean, self.skipped = LossMean(), Skipped()

    def check(self, update: Update, loss: float) -> None:
        """Checks an update; call this for each one, in order.

        Args:
            update: Update.
            loss: that of the update, as it was read from the device.

        Raises:
            DivergenceError: it shows that the run diverged.
        """
        self._last = update
        reason = divergence_reason(
            loss,
            update.gradient_norms.numpy(),
            mean=self.loss_mean,
            factor=self._options.divergence_factor,
        )
        if reason is not None:
            raise DivergenceError(reason, update.step, update)
        self.loss_mean = self.loss_mean.after(loss)

    def require_finite_weights(self) -> None:
        """Raises DivergenceError if the weights are not finite."""
        if not self._trainer.state.weights_are_finite():
            reason = "the weights are not finite"
            raise DivergenceError(reason, self._trainer.step, self._last)

    def require_skip(self, divergence: DivergenceError) -> None:
        """Records a divergence, and checks that the run may skip it.

        Raises:
            InputError: the run has to stop.
        """
        rate = self._trainer.learning_rate(divergence.step)
        what = f"{divergence}, learning rate {rate:.2e}"
        path = self._record(divergence)
        where = f"; {path} has the batch and the gradient norms" if path else ""
        num_skips = self.skipped.num_skips
        can_skip = self._options.on_divergence == "skip"
        if can_skip and num_skips < self._options.max_skips:
            logging.warning("Diverged: %s%s.", what, where)
            return
        after = f", after {counted(num_skips, 'skip')}" if num_skips else ""
        or_skip = "" if can_skip else ", or give --on_divergence=skip"
        raise InputError(
            f"{what}{after}: the last checkpoint is unharmed; lower "
            "--override=learning_rate_scale=..., or use --precision=float32"
            f"{or_skip}{where}"
        )

    def skip_until(self, step: int, before: Skipped) -> None:
        """Makes the run skip the batches of the steps that were undone.

        Args:
            step: the last of these steps; the first is the next one of the
                trainer, which has gone back.
            before: what had been skipped when they were done.
        """
        first = self._trainer.step
        self.skipped = before.after(step - first)
        logging.warning(
            "Continuing from step %d, without batches %d to %d (skip %d of "
            "%d).",
            first,
            first + before.skipped_batches + 1,
            step + before.skipped_batches,
            self.skipped.num_skips,
            self._options.max_skips,
        )

    def restore(self, tensors: Mapping[str, Any]) -> None:
        """Restores what `tensors` returned.

        Args:
            tensors: those of a checkpoint; those of version 0.1.0 have none.
        """
        self.loss_mean = LossMean.restored(tensors)
        self.skipped = Skipped.restored(tensors)

    def tensors(self) -> dict[str, np.generic]:
        """Returns what a checkpoint keeps, so that a run decides as before."""
        numbers = self.skipped._asdict().items()
        return self.loss_mean.tensors() | {n: np.int64(v) for n, v in numbers}

    def copy_from_chief(self, strategy: tf.distribute.Strategy) -> None:
        """Gives every worker what the chief restored."""
        self.restore(
            {
                name: value_from_chief(strategy, value)
                for name, value in self.tensors().items()
            }
        )

    def _record(self, divergence: DivergenceError) -> pathlib.Path | None:
        """Writes what is known about a divergence; returns its file, if any.

        A failure to write it must not hide the divergence itself.
        """
        if self._directory is None:
            return None
        values = self._values(divergence)
        path = self._directory.divergence(values["step"], values["batch"])
        text = json.dumps(values, indent=2, ensure_ascii=False)
        try:
            with files.atomic_file(path) as file:
                file.write(text + "\n")
        except OSError as error:
            logging.warning("Cannot write %s: %s", path, error)
            return None
        return path

    def _values(self, divergence: DivergenceError) -> dict[str, Any]:
        """Returns what is known about a divergence, as values for JSON."""
        step, update = divergence.step, divergence.update
        values = {
            "reason": divergence.reason,
            "step": step,
            "batch": step + self.skipped.skipped_batches,
            "learning_rate": _number(self._trainer.learning_rate(step)),
            "loss_mean": _number(self.loss_mean.mean),
        }
        if update is None:
            return values
        batch = update.batch
        layers = self._trainer.graphs.gradient_norms.layers
        norms = map(_number, update.gradient_norms.numpy())
        return values | {
            "loss": _number(update.loss),
            "target_tokens": int(update.tokens),
            "batch_size": len(batch.source_ids),
            "source_length": batch.source_ids.shape[1],
            "target_length": batch.target_ids.shape[1],
            "gradient_norms": dict(zip(layers, norms, strict=True)),
            "pairs": self._pairs(batch),
        }

    def _pairs(self, batch: Batch) -> list[list[str]]:
        """Returns the source and the target of each pair of a batch.

        Targets that are not text, such as trees, are given token by token.
        """
        sources = self._vocabulary.decode(batch.source_ids)
        vocabulary = self._vocabulary.target
        if self._task.targets_are_text:
            targets = vocabulary.decode(batch.target_ids)
        else:
            targets = [
                " ".join(
                    vocabulary.tokens(i for i in ids if i not in (PAD, EOS))
                )
                for ids in batch.target_ids
            ]
        return list(map(list, zip(sources, targets, strict=True)))


def _number(value: Any) -> float | str:
    """Returns a number for JSON, which has no NaN and no infinity.

    >>> _number(np.float32(0.1)), _number(math.nan), _number(-math.inf)
    (0.1, 'nan', '-inf')
    """
    value = float(value)
    return float(f"{value:.7g}") if math.isfinite(value) else str(value)
