"""What a run starts with: all that is read before there is a model."""

import dataclasses
from typing import Any

import tensorflow as tf
from absl import logging

from t2t_lite import files, tasks
from t2t_lite.evaluation.accuracy import ReadChecks
from t2t_lite.hardware import PRECISIONS, Hardware, faster_precision
from t2t_lite.hparams import HParams
from t2t_lite.optimization.strategies import is_chief, value_from_chief
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.task import Task
from t2t_lite.text import token_files
from t2t_lite.training.agreement import (
    require_chiefs_options,
    require_chiefs_settings,
    require_chiefs_shapes,
)
from t2t_lite.training.checkpointing import read_warm_start
from t2t_lite.training.feeding import Feed, make_feed
from t2t_lite.training.options import RunOptions
from t2t_lite.training.preparation import (
    Prepared,
    hardware_for,
    prepare,
    previous_settings,
    token_folder,
)
from t2t_lite.training.training_text import TrainingText


@dataclasses.dataclass(frozen=True)
class RunInputs:
    """The inputs of one process of a run, checked."""

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

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that writes the run's files."""
        return is_chief(self.strategy)


def read_inputs(
    directory: ModelDirectory,
    hparams: HParams,
    text: TrainingText,
    *,
    options: RunOptions,
    strategy: tf.distribute.Strategy,
) -> RunInputs:
    """Returns what a run needs, and prepares its directory.

    Args:
        directory: ModelDirectory.
        hparams: HParams.
        text: TrainingText.
        options: RunOptions.
        strategy: tf.distribute.Strategy.

    Raises:
        InputError: the text, the directory or an option cannot be used.
    """
    tokens = token_folder(directory, options)
    task = tasks.task_of(hparams)
    text = text.checked(task.check_pair)
    # Read before the long work, because they may turn out to be wrong.
    held_out = text.held_out()
    dev_pairs = held_out.get("dev")
    dev_sha256 = token_files.hash_pairs(dev_pairs) if dev_pairs else ""
    require_chiefs_options(strategy, options, dev_sha256)
    options = _with_precision(
        options, directory, hparams=hparams, strategy=strategy
    )
    warm_start = read_warm_start(options.warm_start_from)
    prepared = prepare(
        directory, hparams, text, options=options, warm_start=warm_start
    )
    require_chiefs_settings(strategy, prepared.settings)
    is_remote = files.is_remote(directory.path)
    scratch = tokens if is_remote else directory.path
    feed = make_feed(prepared, hparams, task, folder=scratch)
    require_chiefs_shapes(strategy, feed.shapes)
    return RunInputs(
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
        hardware=hardware_for(hparams, prepared.vocabulary, options),
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
    if previous is not None and previous.precision:
        precision = previous.precision
    else:
        precision = faster_precision(hparams.d_model, hparams.d_ff, options.xla)
    index = value_from_chief(strategy, PRECISIONS.index(precision))
    precision = PRECISIONS[int(index)]
    logging.info("Computing in %s.", precision)
    return dataclasses.replace(options, precision=precision)
