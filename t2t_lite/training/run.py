"""A training run: from text pairs to checkpoints, any of which resumes it."""

import contextlib
import dataclasses
import pathlib
import signal
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite import files, tasks
from t2t_lite.errors import InputError
from t2t_lite.evaluation.accuracy import ReadChecks
from t2t_lite.hardware import (
    PRECISIONS,
    Hardware,
    faster_precision,
    find_hardware,
)
from t2t_lite.hparams import HParams
from t2t_lite.model import flops
from t2t_lite.storage import checkpoint_files, model_directory, origin
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.task import Task
from t2t_lite.text import token_files
from t2t_lite.training.agreement import (
    require_chiefs_options,
    require_chiefs_settings,
    require_chiefs_shapes,
)
from t2t_lite.training.checkpointing import Checkpointer, read_warm_start
from t2t_lite.training.cost import Cost, describe_cost
from t2t_lite.training.curves import draw_curves
from t2t_lite.training.dev_evaluation import DevEvaluation, DevState
from t2t_lite.training.divergence import DivergenceError
from t2t_lite.training.feeding import Feed, make_feed
from t2t_lite.training.hang_watch import HangWatch
from t2t_lite.training.micro_batches import chunk_logits, num_micro_batches
from t2t_lite.training.options import RunOptions
from t2t_lite.training.preflight import (
    Forecast,
    Repeated,
    try_checkpoint,
    try_shapes,
)
from t2t_lite.training.preparation import (
    Prepared,
    is_trained,
    prepare,
    previous_settings,
    token_folder,
)
from t2t_lite.training.progress import Progress
from t2t_lite.training.report import final_report
from t2t_lite.training.run_log import log_to_file
from t2t_lite.training.stop_signal import StopSignal
from t2t_lite.training.strategies import (
    best_num_parts,
    has_other_workers,
    hold_back_errors,
    is_chief,
    make_strategy,
    value_from_chief,
)
from t2t_lite.training.summaries import Summaries
from t2t_lite.training.trainer import Trainer
from t2t_lite.training.training_text import TrainingText
from t2t_lite.training.trial import first_fitting
from t2t_lite.training.watchdog import Watchdog


class Result(NamedTuple):
    """How a run ended."""

    stop_signal: int  # the number of the signal that stopped it; 0 if none did
    report: str | None  # for a reader; None if stopped, or not from the chief


def train(
    model_dir: str, hparams: HParams, text: TrainingText, options: RunOptions
) -> Result:
    """Trains until the last step, from the last checkpoint if there is one.

    Args:
        model_dir: path of the model directory, created if needed.
        hparams: HParams.
        text: TrainingText.
        options: RunOptions.

    Raises:
        InputError: the text, the directory or an option cannot be used, or the
            run diverges.
    """
    strategy = make_strategy(options.strategy)
    with (
        hold_back_errors(strategy),
        _locked_directory(model_dir, strategy) as directory,
    ):
        run = _Run(_begin(directory, hparams, text, options, strategy))
        with StopSignal() as stop, run.progress, run.hang_watch:
            run.loop(stop)
        if not run.is_chief or stop.is_requested():
            return Result(stop.number, report=None)
        report = run.report()
        draw_curves(directory)
        return Result(stop.number, report)


def preflight(
    model_dir: str, hparams: HParams, text: TrainingText, options: RunOptions
) -> str:
    """Returns what a run will take, for a reader; nothing is trained.

    It tries each batch shape once, part of an evaluation, and a checkpoint. It
    leaves what a run keeps before its first update: vocabulary, tokens and
    settings.

    Args: those of `train`.

    Raises:
        InputError: as for `train`, or there is too little memory or disk.
    """
    strategy = make_strategy(options.strategy)
    if has_other_workers(strategy):
        raise InputError(
            "--preflight is for one machine: run it without TF_CONFIG and "
            "without --strategy=multi_worker"
        )
    directory = ModelDirectory(model_dir)
    if is_trained(directory):
        raise InputError(
            f"{model_dir} has a checkpoint already: give --preflight another "
            "--model_dir"
        )
    with directory.locked():
        run = _Run(_begin(directory, hparams, text, options, strategy))
        return run.forecast().as_text()


@contextlib.contextmanager
def _locked_directory(
    model_dir: str, strategy: tf.distribute.Strategy
) -> Iterator[ModelDirectory]:
    """Yields the model directory to the chief, a temporary one to others."""
    directory = ModelDirectory(model_dir)
    if is_chief(strategy):
        with directory.locked(), log_to_file(directory):
            yield directory
        return
    with files.private_folder("t2t-lite-worker") as path:
        temporary = ModelDirectory(path)
        if is_trained(directory):
            directory.vocabulary().save_in(temporary.path)
        yield temporary


@dataclasses.dataclass(frozen=True)
class _RunInputs:
    """What a run starts with: all that is read before there is a model."""

    directory: ModelDirectory
    hparams: HParams
    options: RunOptions
    strategy: tf.distribute.Strategy
    task: Task
    held_out: dict[str, list[tuple[str, str]]]
    read_checks: ReadChecks
    dev_sha256: str  # of its pairs; "" if there are none
    warm_start: tuple[str, dict[str, Any]] | None
    prepared: Prepared
    feed: Feed
    hardware: Hardware  # of a replica

    @property
    def dev_pairs(self) -> list[tuple[str, str]] | None:
        """The pairs of dev, None if there are none."""
        return self.held_out.get("dev")


def _begin(
    directory: ModelDirectory,
    hparams: HParams,
    text: TrainingText,
    options: RunOptions,
    strategy: tf.distribute.Strategy,
) -> _RunInputs:
    """Reads what a run needs and prepares its directory."""
    tokens = token_folder(directory, options)
    task = tasks.task_of(hparams)
    text = text.checked(task.check_pair)
    # Read before the long work, because they may turn out to be wrong.
    held_out = text.held_out()
    dev_pairs = held_out.get("dev")
    dev_sha256 = token_files.hash_pairs(dev_pairs) if dev_pairs else ""
    require_chiefs_options(strategy, options, dev_sha256)
    options = _with_precision(options, directory, hparams, strategy)
    warm_start = read_warm_start(options.warm_start_from)
    prepared = prepare(directory, hparams, text, options, warm_start)
    require_chiefs_settings(strategy, prepared.settings)
    is_remote = files.is_remote(directory.path)
    scratch = tokens if is_remote else directory.path
    feed = make_feed(prepared, hparams, task, scratch)
    require_chiefs_shapes(strategy, feed.shapes)
    return _RunInputs(
        directory=directory,
        hparams=hparams,
        options=options,
        strategy=strategy,
        task=task,
        held_out=held_out,
        read_checks=text.read_checks,
        dev_sha256=dev_sha256,
        warm_start=warm_start,
        prepared=prepared,
        feed=feed,
        hardware=find_hardware(options.memory_limit_gib),
    )


def _with_precision(
    options: RunOptions,
    directory: ModelDirectory,
    hparams: HParams,
    strategy: tf.distribute.Strategy,
) -> RunOptions:
    """Returns options with the chief's precision in place of "auto".

    A resumed run keeps its own, so that it ends with the same bits.
    """
    if options.precision != "auto":
        return options
    previous = previous_settings(directory)
    precision = (previous and previous.precision) or faster_precision(
        hparams.d_model, hparams.d_ff, options.xla
    )
    index = value_from_chief(strategy, PRECISIONS.index(precision))
    precision = PRECISIONS[int(index)]
    logging.info("Computing in %s.", precision)
    return dataclasses.replace(options, precision=precision)


class _Run:
    """One process' part in a run."""

    def __init__(self, inputs: _RunInputs):
        self.inputs = inputs
        self.directory, self.hparams = inputs.directory, inputs.hparams
        self.options, self.strategy = inputs.options, inputs.strategy
        self.is_chief = is_chief(self.strategy)
        self.trainer = _make_trainer(inputs)
        self._log_run_summary()
        self.micro_batch_tokens = int(
            value_from_chief(
                self.strategy, inputs.prepared.settings.micro_batch_tokens
            )
        )
        summaries = Summaries(
            self.directory.summaries if self.is_chief else None
        )
        self.dev = DevEvaluation(
            inputs.task,
            self.trainer.model,
            self.directory,
            inputs.dev_pairs,
            inputs.dev_sha256,
            self.options,
            summaries,
        )
        self.checkpointer = Checkpointer(
            self.directory,
            self.options.with_save_every_steps(self.hparams.save_every_steps),
            self.hparams.average_last,
        )
        self.cost = Cost(self.strategy.num_replicas_in_sync)
        self.watchdog = Watchdog(
            self.trainer,
            self.directory if self.is_chief else None,
            self.options,
            inputs.task,
            inputs.prepared.vocabulary,
        )
        self.hang_watch = HangWatch(self.options.hang_minutes)
        is_resumed = self._restore()
        if not is_resumed and self.options.micro_batch_tokens is None:
            self.micro_batch_tokens = self._tried_micro_batch_tokens()
        self.progress = Progress(
            self.trainer, self.hparams.steps, summaries, self.watchdog
        )

    def _log_run_summary(self) -> None:
        logging.info(
            "Training a model of %s weights in %s on %s.",
            f"{self.trainer.model.count_params():,}",
            self.directory.path if self.is_chief else "the chief's directory",
            self._devices,
        )

    @property
    def _devices(self) -> str:
        devices = self.strategy.extended.worker_devices
        return ", ".join(map(_short_name, devices))

    def _tried_micro_batch_tokens(self) -> int:
        """Returns the micro-batch size with which the largest update fits.

        It is found by trying, and kept in the settings, so that a resumed run
        takes the same.
        """
        settings = self.inputs.prepared.settings
        tokens = first_fitting(
            self.trainer,
            max(self.inputs.feed.shapes, key=_num_positions),
            self.micro_batch_tokens,
            self.inputs.hardware,
        )
        if self.is_chief and tokens != settings.micro_batch_tokens:
            self.directory.save_settings(
                dataclasses.replace(settings, micro_batch_tokens=tokens)
            )
        return tokens

    def _restore(self) -> bool:
        """Resumes from the newest checkpoint, or starts from other weights.

        Returns:
            whether any worker has done updates before.
        """
        self._start_from(self.checkpointer.restore())
        return self.trainer.step > 0

    def _go_back(self) -> None:
        """Goes back to the last checkpoint, or to before the first update."""
        found = self.checkpointer.restore(goes_back=True)
        if found is None:
            self.trainer.state.reset()
        self.inputs.feed.reset()
        self.watchdog.restore({})
        self.dev.state = DevState(dev_sha256=self.inputs.dev_sha256)
        seconds = self.cost.device_seconds
        self.cost = Cost(self.cost.num_devices)
        self._start_from(found)
        # Discarded updates do not count, but the time that they took does.
        self.cost.earlier_device_seconds = seconds

    def _start_from(
        self, found: tuple[pathlib.Path, dict[str, Any]] | None
    ) -> None:
        """Starts from a checkpoint, or from other weights if there is none.

        Args:
            found: its path and its tensors.
        """
        if found is not None:
            path, tensors = found
            origin.require(
                tensors, self.hparams, self._vocabulary_sha256, str(path)
            )
            self.trainer.state.restore(tensors, str(path))
            self.dev.resume(
                DevState.restored(tensors),
                has_best=bool(checkpoint_files.paths(self.directory.best)),
            )
            self.cost = Cost.restored(tensors, self.cost.num_devices)
            self.watchdog.restore(tensors)
            self.inputs.feed.restore(tensors, self._num_fed, str(path))
            logging.info("Resuming from %s.", path)
        elif self.inputs.warm_start is not None:
            description, tensors = self.inputs.warm_start
            model_directory.assign(self.trainer.weights, tensors, description)
            logging.info("Starting from the weights of %s.", description)
        self.trainer.state.copy_from_chief()
        self.watchdog.copy_from_chief(self.strategy)
        self.inputs.feed.copy_from_chief(self.strategy)
        self.dev.state = self.dev.state.copied_from_chief(self.strategy)
        self.checkpointer.note_saved(self.trainer.step)

    def forecast(self) -> Forecast:
        """Returns what the whole run will take, before its first update.

        Raises:
            InputError: there is too little memory or disk.
        """
        seconds, disk = try_checkpoint(
            self.directory,
            self._tensors(),
            self.checkpointer.max_on_disk(self.dev.num_due > 0),
        )
        disk.require_room()
        evaluations = Repeated(self.dev.num_due, self.dev.trial_seconds())
        tried = try_shapes(
            self.trainer,
            self.inputs.feed.plan(),
            self.micro_batch_tokens,
            self.inputs.hardware,
        )
        steps = self.hparams.steps
        updates = Repeated(
            steps, sum(shape.share * trial.seconds for shape, trial in tried)
        )
        num_checkpoints = self.checkpointer.num_due(
            steps, steps * updates.seconds
        )
        return Forecast(
            description=self._description(),
            tried=tried,
            micro_batch_tokens=self.micro_batch_tokens,
            updates=updates,
            evaluations=evaluations,
            checkpoints=Repeated(num_checkpoints, seconds),
            disk=disk,
        )

    def _description(self) -> str:
        """Returns what updates run on, and how."""
        parts = self.trainer.num_parts
        return (
            f"On {self._devices} in {self.options.precision}, "
            f"{'with' if self.options.xla else 'without'} XLA"
            + (f", in {parts} parts side by side" if parts > 1 else "")
        )

    def loop(self, stop: StopSignal) -> None:
        """Updates until the run is over, and skips what makes it diverge.

        Raises:
            InputError: the run diverges, and has to stop.
        """
        while (divergence := self._divergence_of_updates(stop)) is not None:
            self.watchdog.require_skip(divergence)
            skipped = self.watchdog.skipped
            self._go_back()
            self.watchdog.skip_until(divergence.step, skipped)
            self.progress.restart()
            self.hang_watch.heartbeat()

    def _divergence_of_updates(
        self, stop: StopSignal
    ) -> DivergenceError | None:
        """Updates until the run is over, or returns what shows it diverged."""
        try:
            self._update(stop)
        except DivergenceError as divergence:
            # Without its frames, which keep the upcoming batches alive.
            return divergence.with_traceback(None)
        return None

    def _update(self, stop: StopSignal) -> None:
        """Updates until the last step, or until a stop or too little gain.

        Raises:
            DivergenceError: an update diverged.
        """
        if self.trainer.step > self.hparams.steps:
            logging.warning(
                "%d updates are done already, more than steps=%d: nothing is "
                "left to do.",
                self.trainer.step,
                self.hparams.steps,
            )
        self._evaluate_if_due(stop)  # A signal may have cut it short before.
        for source_ids, target_ids, *is_linked in self._batches(stop):
            update = self.trainer.update(
                source_ids,
                target_ids,
                self._num_micro_batches(source_ids, target_ids),
                stop.is_requested,
                *is_linked,
            )
            if update is None:
                break
            self.hang_watch.heartbeat()
            self._count_operations(source_ids, target_ids)
            self.progress.add(update)
            # First, so that the checkpoint knows the score.
            self._evaluate_if_due(stop)
            self._save_if_due()
            if self.dev.has_lost_patience(self.trainer.step):
                break
            if self.trainer.agree_to_stop():
                stop.number = stop.number or int(signal.SIGTERM)
                break
        self.progress.flush()
        if self.trainer.step > self.checkpointer.saved_step:
            self._save(stop.is_requested())
        if self.trainer.step >= self.hparams.steps:
            logging.info("All %d updates are done.", self.trainer.step)
        if stop.is_requested():
            logging.info("Stopped; run the same command again to resume.")

    def _batches(self, stop: StopSignal) -> Iterator[tuple[np.ndarray, ...]]:
        """Returns the (source_ids, target_ids) of the updates to do.

        If words are aligned, the links of tokens follow them.
        """
        is_over = self.dev.has_lost_patience(self.trainer.step)
        num_left = 0 if is_over else self.hparams.steps - self.trainer.step

        def should_stop() -> bool:
            # One of several workers continues until all agree to stop.
            return stop.is_requested() and not self.trainer.has_other_workers

        first = self._num_fed
        return self.inputs.feed.batches(
            first, first + max(0, num_left), should_stop
        )

    @property
    def _num_fed(self) -> int:
        """How many batches of the feed come before the next update."""
        return self.trainer.step + self.watchdog.skipped.skipped_batches

    def _num_micro_batches(
        self, source_ids: np.ndarray, target_ids: np.ndarray
    ) -> int:
        return num_micro_batches(
            batch_size=len(source_ids),
            length=max(source_ids.shape[1], target_ids.shape[1]),
            micro_batch_tokens=self.micro_batch_tokens,
            num_replicas=self.strategy.num_replicas_in_sync,
        )

    def _count_operations(
        self, source_ids: np.ndarray, target_ids: np.ndarray
    ) -> None:
        """Adds an update to the cost, including padding."""
        self.cost.flops += flops.update_flops(
            self.hparams,
            self.trainer.model.num_target_ids,
            batch_size=len(source_ids),
            source_length=source_ids.shape[1],
            target_length=target_ids.shape[1],
        )

    def _save_if_due(self) -> None:
        if not self.checkpointer.is_due(self.trainer.step):
            return
        is_alone = not self.trainer.has_other_workers
        # Other workers may not be about to save, and all must go back together:
        # the next update shows them, too, that the weights are not finite.
        if is_alone or self.trainer.state.weights_are_finite():
            self._save(is_stop=False)

    def _save(self, is_stop: bool) -> None:
        """Writes a checkpoint, if this process is the chief."""
        self.progress.flush()
        self.watchdog.require_finite_weights()
        step = self.trainer.step
        if self.is_chief:
            self.checkpointer.save(step, self._tensors(), is_stop)
        self.checkpointer.note_saved(step)
        self.hang_watch.heartbeat()

    def _tensors(self) -> dict[str, Any]:
        """Returns all that is needed to resume the run from here."""
        return (
            self.trainer.state.tensors()
            | self.dev.state.tensors()
            | self.cost.tensors()
            | self.watchdog.tensors()
            | self.inputs.feed.tensors(self._num_fed)
            | origin.tensors(self.hparams, self._vocabulary_sha256)
        )

    @property
    def _vocabulary_sha256(self) -> str:
        return self.inputs.prepared.settings.vocabulary_sha256

    def _evaluate_if_due(self, stop: StopSignal) -> None:
        """Scores the model on dev, and keeps it if it is the best."""
        step = self.trainer.step
        if not self.dev.is_due(step):
            return
        self.progress.flush()
        self.watchdog.require_finite_weights()
        with self.hang_watch.paused():
            if self.is_chief:
                with self.progress.paused():
                    if self.dev.evaluate(step, stop.is_requested):
                        self.checkpointer.save_best(step, self._tensors())
            self.dev.state = self.dev.state.copied_from_chief(self.strategy)

    def report(self) -> str:
        """Returns scores, some outputs and the cost, for a reader."""
        cost_text = describe_cost(
            self.cost.flops,
            self.cost.device_seconds / 3600,
            self.options.sustained_tflops,
        )
        return final_report(
            self.directory,
            self.hparams,
            self.inputs.task,
            self.inputs.held_out,
            cost_text,
            self.inputs.read_checks(),
        )


def _make_trainer(inputs: _RunInputs) -> Trainer:
    options, vocabulary = inputs.options, inputs.prepared.vocabulary
    hardware = inputs.hardware
    return Trainer(
        inputs.hparams,
        vocabulary.size,
        inputs.strategy,
        precision=options.precision,
        xla=options.xla,
        num_target_ids=inputs.task.num_target_ids(vocabulary),
        num_parts=best_num_parts(inputs.strategy, hardware, options.xla),
        chunk_logits=chunk_logits(hardware),
    )


def _num_positions(shape: tuple[int, int, int]) -> int:
    """Returns how many positions a batch of shape (S, T, B) has."""
    source_length, target_length, batch_size = shape
    return batch_size * (source_length + target_length)


def _short_name(device: str) -> str:
    """Returns the name of a device without that of its machine.

    >>> _short_name("/job:localhost/replica:0/task:0/device:CPU:0")
    'CPU:0'
    """
    return device.rpartition("device:")[2]
