"""When a run saves checkpoints, which it keeps, and what it starts from."""

import itertools
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.storage import checkpoints, model_directory
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.training.options import RunOptions

_MINUTES = 10.0  # Between two checkpoints, as in the paper.
# Whether a signal caused the checkpoint, not the schedule.
_IS_STOP = "made_by_a_stop"
# What a run keeps besides weights and moments.
_NUMBERS = (
    "training_flops",
    "device_seconds",
    "best_score",
    "best_bleu",
    "evaluations_without_gain",
    "evaluated_step",
    "loss_scale",
    "updates_since_scaled",
    "loss_mean",
    "loss_mean_weight",
    "skipped_batches",
    "num_skips",
)


class Checkpointer:
    """Writes the checkpoints of a run, as often as its options say.

    Args:
        directory: ModelDirectory.
        options: RunOptions.
        average_last: int, how many checkpoints are averaged at the end.
    """

    def __init__(
        self, directory: ModelDirectory, options: RunOptions, average_last: int
    ):
        self._directory, self._options = directory, options
        self._num_kept = options.keep_last or max(2, average_last)
        self._stop_checkpoint: files.Path | None = None
        self.saved_step = 0  # of the last checkpoint saved or restored
        self._saved_at = time.monotonic()

    def restore(
        self, goes_back: bool = False
    ) -> tuple[files.Path, dict[str, Any]] | None:
        """Returns (path, tensors) of the newest checkpoint, None if none.

        A run that was killed before its first may still have a best one.

        Args:
            goes_back: whether the run that wrote it goes back to it. One that a
                signal caused is then skipped and removed, if there is another:
                the outcome of a run must not depend on when it was stopped.
        """
        folders = (self._directory.checkpoints, self._directory.best)
        for folder in folders:
            checkpoints.finish_writing(folder)
        all_found = itertools.chain(*map(checkpoints.newest, folders))
        found = next(all_found, None)
        if goes_back and found is not None and _is_stop(found[1]):
            stopped_at, found = found, next(all_found, found)
            if found is not stopped_at:
                checkpoints.remove(stopped_at[0])
        self._stop_checkpoint = None
        if found is not None:
            path, tensors = found
            checkpoints.require_numbers(tensors, _NUMBERS, str(path))
            if _is_stop(tensors):
                self._stop_checkpoint = path
            self.note_saved(_step(path, tensors))
        return found

    def is_due(self, step: int) -> bool:
        """Returns whether a checkpoint is due after `step` updates."""
        if self._options.save_every_steps:
            return step % self._options.save_every_steps == 0
        return time.monotonic() - self._saved_at >= self._every_seconds

    @property
    def _every_seconds(self) -> float:
        minutes = self._options.save_every_minutes
        return 60 * (_MINUTES if minutes is None else minutes)

    def num_due(self, steps: int, seconds: float) -> int:
        """Returns how many checkpoints a run writes, including the last one.

        Args:
            steps: int, updates of the run.
            seconds: how long they take.
        """
        if self._options.save_every_steps:
            return -(-steps // self._options.save_every_steps)
        if self._every_seconds * steps <= seconds:  # One after each update.
            return steps
        return int(seconds / self._every_seconds) + 1

    def max_on_disk(self, has_dev: bool) -> int:
        """Returns the most checkpoints that are on the disk at the same time.

        That is one more than are kept, because a new one is written first;
        likewise in best/.

        Args:
            has_dev: whether there is a best one.
        """
        in_checkpoints = self._num_kept + 1
        in_best = 2 if has_dev else 0
        return in_checkpoints + in_best

    def save(
        self, step: int, tensors: Mapping[str, Any], is_stop: bool
    ) -> None:
        """Writes a checkpoint and removes those that are no longer needed.

        One that a signal caused goes as soon as there is another: an average of
        the last ones must not depend on when a run was stopped.

        Args:
            step: updates done.
            tensors: all that is needed to resume the run.
            is_stop: whether a signal causes it.

        Raises:
            InputError: it cannot be written, or the model directory was moved.
        """
        self._directory.require_in_place()
        path = self._directory.checkpoints / f"step-{step}"
        checkpoints.write(path, {**tensors, _IS_STOP: np.bool_(is_stop)})
        if self._stop_checkpoint is not None:
            checkpoints.remove(self._stop_checkpoint)
            self._stop_checkpoint = None
        checkpoints.prune(self._directory.checkpoints, self._num_kept, path)
        logging.info("Saved %s.", path)

    def note_saved(self, step: int) -> None:
        """Starts the wait for the next checkpoint, whoever wrote this one."""
        self.saved_step, self._saved_at = step, time.monotonic()

    def save_best(self, step: int, tensors: Mapping[str, Any]) -> None:
        """Writes the best checkpoint on dev, in place of the previous one."""
        self._directory.require_in_place()
        path = self._directory.best / f"step-{step}"
        checkpoints.write(path, tensors)
        checkpoints.prune(self._directory.best, 1, path)


def _is_stop(tensors: Mapping[str, Any]) -> bool:
    return bool(tensors.get(_IS_STOP, False))


def _step(path: files.Path, tensors: Mapping[str, Any]) -> int:
    """Returns after how many updates a checkpoint was saved."""
    step = np.asarray(tensors.get("step"))
    if step.dtype.kind != "i" or step.shape or step < 0:
        raise InputError(
            f"cannot resume from {path}, which does not record its step: "
            "restore its files from a backup, or give it as --warm_start_from "
            "with another --model_dir"
        )
    return int(step)


def read_warm_start(path: str | None) -> tuple[str, dict[str, Any]] | None:
    """Returns (description, weights) to start from, None if there is no path.

    Args:
        path: of a model directory or a checkpoint.

    Raises:
        InputError: there is no such checkpoint, or its weights are not finite.
    """
    if path is None:
        return None
    if files.is_folder(path):
        directory = ModelDirectory(path)
        is_run = directory.settings_path.exists()
        if not is_run and not files.exists(directory.checkpoints):
            raise InputError(
                "--warm_start_from must be a model directory, or the path of a "
                f"checkpoint without file suffixes; {path} has no settings.json"
            )
        return directory.weights()
    return model_directory.read_weights(path)
