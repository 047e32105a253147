"""A training run: from text pairs to checkpoints, any of which resumes it."""

import atexit
import contextlib
import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf
from absl import logging

from t2t_lite import files, terminal
from t2t_lite.english import counted
from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.optimization.micro_batches import chunk_logits, why_so_many
from t2t_lite.optimization.strategies import (
    best_num_parts,
    device_names,
    has_other_workers,
    hold_back_errors,
    is_chief,
    make_strategy,
    value_from_chief,
    wants_workers,
)
from t2t_lite.optimization.trainer import Trainer
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.training.batch_loop import BatchLoop
from t2t_lite.training.cost import describe_cost
from t2t_lite.training.curves import draw_curves
from t2t_lite.training.hang_watch import HangWatch
from t2t_lite.training.options import RunOptions
from t2t_lite.training.preflight import forecast
from t2t_lite.training.preparation import is_trained
from t2t_lite.training.progress import Progress
from t2t_lite.training.report import final_report
from t2t_lite.training.run_inputs import RunInputs, read_inputs
from t2t_lite.training.run_log import log_to_file
from t2t_lite.training.run_state import RunState
from t2t_lite.training.skipping import update_with_skips
from t2t_lite.training.stop_signal import StopSignal
from t2t_lite.training.summaries import Summaries
from t2t_lite.training.training_text import TrainingText
from t2t_lite.training.trial import first_fitting, largest_shapes


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
        inputs = read_inputs(
            directory, hparams, text, options=options, strategy=strategy
        )
        with HangWatch(options.hang_minutes) as hang_watch:
            run = _Run(inputs, hang_watch)
            with StopSignal() as stop, run.progress:
                run.loop(stop)
        if not run.inputs.is_chief or stop.is_requested():
            return Result(stop.number, report=None)
        with _other_workers_may_leave(strategy):
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

    The arguments are those of `train`.

    Raises:
        InputError: as for `train`, or there is too little memory or disk.
    """
    if wants_workers(options.strategy):  # Building it would wait for them.
        raise InputError(
            "--preflight is for one machine: run it without TF_CONFIG and "
            "without --strategy=multi_worker"
        )
    strategy = make_strategy(options.strategy)
    directory = ModelDirectory(model_dir)
    if is_trained(directory):
        raise InputError(
            f"{model_dir} has a checkpoint already: give --preflight another "
            "--model_dir"
        )
    with directory.locked():
        run = _Run(
            read_inputs(
                directory, hparams, text, options=options, strategy=strategy
            )
        )
        return run.forecast_text()


def _other_workers_may_leave(
    strategy: tf.distribute.Strategy,
) -> contextlib.AbstractContextManager[None]:
    """Hides that TensorFlow takes workers that have ended for crashed."""
    if not has_other_workers(strategy):
        return contextlib.nullcontext()
    atexit.register(terminal.discard_stderr)  # It may notice them only then.
    return terminal.silent_cpp()


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


class _Run:
    """One process' part in a run.

    Args:
        inputs: RunInputs.
        hang_watch: HangWatch, which learns of what is done; None for no watch.
    """

    def __init__(self, inputs: RunInputs, hang_watch: HangWatch | None = None):
        self.inputs = inputs
        self.hang_watch = hang_watch or HangWatch(minutes=None)
        summaries = Summaries(
            inputs.directory.summaries if inputs.is_chief else None
        )
        self.state = RunState(inputs, _make_trainer(inputs), summaries)
        self._log_run_summary()
        self.micro_batch_tokens = int(
            value_from_chief(
                inputs.strategy, inputs.prepared.settings.micro_batch_tokens
            )
        )
        self.state.restore()
        self.hang_watch.heartbeat()
        is_resumed = self.state.trainer.step > 0
        if not is_resumed and inputs.options.micro_batch_tokens is None:
            self.micro_batch_tokens = self._tried_micro_batch_tokens()
            self.hang_watch.heartbeat()
        self._log_sizes(is_resumed)
        self.progress = Progress(
            self.state.trainer,
            inputs.hparams.steps,
            summaries=summaries,
            watchdog=self.state.watchdog,
        )

    def _log_run_summary(self) -> None:
        inputs = self.inputs
        logging.info(
            "Training a model of %s weights in %s on %s.",
            f"{self.state.trainer.model.count_params():,}",
            inputs.directory.path
            if inputs.is_chief
            else "the chief's directory",
            device_names(inputs.strategy),
        )

    def _log_sizes(self, is_resumed: bool) -> None:
        """Logs how much of an update is computed at once, and why."""
        inputs, trainer = self.inputs, self.state.trainer
        if inputs.options.micro_batch_tokens is not None:
            why = "as --micro_batch_tokens says"
        elif is_resumed:
            why = "as the run began"
        else:
            why = why_so_many(
                self.micro_batch_tokens, inputs.hparams, inputs.hardware
            )
        logging.info(
            "An update of %s tokens takes %s at once (%s), in %s; its loss, up "
            "to %s logits.",
            f"{inputs.hparams.tokens_per_batch:,}",
            f"{self.micro_batch_tokens:,}",
            why,
            counted(trainer.num_parts, "part"),
            f"{chunk_logits(inputs.hardware):,}",
        )

    def _tried_micro_batch_tokens(self) -> int:
        """Returns the micro-batch size with which the largest updates fit.

        It is found by trying, on a GPU from the whole update on, and kept in
        the settings, so that a resumed run takes the same.
        """
        inputs = self.inputs
        settings, first = inputs.prepared.settings, self.micro_batch_tokens
        if inputs.hardware.kind == "GPU":
            first = inputs.hparams.tokens_per_batch
        tokens = first_fitting(
            self.state.trainer,
            largest_shapes(inputs.feed.shapes),
            tokens=first,
            on=inputs.hardware,
        )
        if inputs.is_chief and tokens != settings.micro_batch_tokens:
            inputs.directory.save_settings(
                dataclasses.replace(settings, micro_batch_tokens=tokens)
            )
        return tokens

    def forecast_text(self) -> str:
        """Returns what the whole run will take, before its first update.

        Raises:
            InputError: there is too little memory or disk.
        """
        return forecast(self.state, self.micro_batch_tokens).as_text()

    def loop(self, stop: StopSignal) -> None:
        """Updates until the run is over, and skips what makes it diverge.

        Raises:
            InputError: the run diverges, and has to stop.
        """
        loop = BatchLoop(
            self.state,
            self.micro_batch_tokens,
            progress=self.progress,
            hang_watch=self.hang_watch,
        )
        update_with_skips(loop, self.state, stop)

    def report(self) -> str:
        """Returns scores, some outputs and the cost, for a reader."""
        inputs, cost = self.inputs, self.state.cost
        cost_text = describe_cost(
            cost.flops,
            cost.device_seconds / 3600,
            inputs.options.sustained_tflops,
        )
        return final_report(
            inputs.directory,
            inputs.hparams,
            inputs.task,
            held_out=inputs.held_out,
            cost_text=cost_text,
            checks=inputs.read_checks(),
            num_devices=len(inputs.strategy.extended.worker_devices),
            hardware=inputs.hardware,
        )


def _make_trainer(inputs: RunInputs) -> Trainer:
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
