"""What a run will take, measured before it begins: time, memory and disk.

Each batch shape is run once, part of the dev text is evaluated, and a
checkpoint is written and removed. Nothing is trained.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from t2t_lite import files
from t2t_lite.english import counted
from t2t_lite.errors import InputError
from t2t_lite.hardware import GIB, Hardware
from t2t_lite.optimization.strategies import device_names
from t2t_lite.optimization.trainer import Trainer
from t2t_lite.storage import checkpoints
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text.batching import BatchShape
from t2t_lite.training.run_state import RunState
from t2t_lite.training.trial import Trial, exceeds_any, try_update


class TriedShape(NamedTuple):
    """A shape of batches, and what an update of it took."""

    shape: BatchShape
    trial: Trial


class Repeated(NamedTuple):
    """What a run does again and again."""

    count: int
    seconds: float  # of one

    def as_text(self, noun: str) -> str:
        """Returns how often it is done, and how long all of them take.

        >>> Repeated(1000, 7.2).as_text("updates")
        '1,000 updates of 7.20 s: 2.0 h'
        """
        total = duration(self.count * self.seconds)
        return f"{self.count:,} {noun} of {self.seconds:.2f} s: {total}"


class Disk(NamedTuple):
    """The disk space that the checkpoints of a run take."""

    count: int  # at the same time
    checkpoint_bytes: int  # of one
    free_bytes: int | None  # None: not known, on another machine

    def require_room(self) -> None:
        """Raises InputError if the checkpoints do not fit."""
        if self.free_bytes is None:
            return
        if self.count * self.checkpoint_bytes > self.free_bytes:
            raise InputError(
                f"{self.as_text()}: make room, or give a smaller --keep_last"
            )

    def as_text(self) -> str:
        """Returns the space that is needed, and the space that is free.

        >>> Disk(3, checkpoint_bytes=2 * GIB, free_bytes=50 * GIB).as_text()
        '3 checkpoints at a time need 6.00 GiB of the disk; 50.00 GiB are free'
        """
        needed = self.count * self.checkpoint_bytes
        free = ""
        if self.free_bytes is not None:
            free = f"; {self.free_bytes / GIB:.2f} GiB are free"
        return (
            f"{counted(self.count, 'checkpoint')} at a time need "
            f"{needed / GIB:.2f} GiB of the disk{free}"
        )


class Forecast(NamedTuple):
    """What a run will take."""

    description: str  # of what it runs on, and how
    tried: list[TriedShape]
    micro_batch_tokens: int
    updates: Repeated
    evaluations: Repeated
    checkpoints: Repeated
    disk: Disk

    @property
    def seconds(self) -> float:
        """Seconds of the whole run, without its start and its final scores."""
        parts = (self.updates, self.evaluations, self.checkpoints)
        return sum(part.count * part.seconds for part in parts)

    def as_text(self) -> str:
        """Returns a table of the shapes, and what the whole run takes."""
        return "\n".join(
            [
                f"{self.description}.",
                "",
                "source  target    rows   share  micro-batches   seconds  "
                "peak GiB",
                *map(_row, self.tried),
                "",
                f"Micro-batches of {self.micro_batch_tokens:,} tokens.",
                f"{self.updates.as_text('updates')}.",
                f"{self.evaluations.as_text('evaluations')} on dev, at most.",
                f"{self.checkpoints.as_text('checkpoints')}.",
                f"In all: {duration(self.seconds)}.",
                f"{self.disk.as_text()}.",
            ]
        )


def _row(tried: TriedShape) -> str:
    S, T, B, share = tried.shape
    count, seconds, peak = tried.trial
    memory = "unknown" if peak is None else f"{peak / GIB:.2f}"
    return (
        f"{S:6}  {T:6}  {B:6}  {share:6.1%}  {count:13}  {seconds:8.2f}  "
        f"{memory:>8}"
    )


def duration(seconds: float) -> str:
    """Returns a time for a reader.

    >>> [duration(n) for n in (9.5, 340, 4000, 400_000)]
    ['10 s', '6 min', '1.1 h', '4.6 days']
    """
    for unit, size in (("days", 86_400), ("h", 3600)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    if seconds >= 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s"


def forecast(state: RunState, micro_batch_tokens: int) -> Forecast:
    """Returns what a whole run will take, before its first update.

    Args:
        state: RunState.
        micro_batch_tokens: int.

    Raises:
        InputError: there is too little memory or disk.
    """
    inputs, dev, checkpointer = state.inputs, state.dev, state.checkpointer
    seconds, disk = _try_checkpoint(
        inputs.directory,
        state.tensors(),
        checkpointer.max_on_disk(dev.num_due > 0),
    )
    disk.require_room()
    evaluations = Repeated(dev.num_due, dev.trial_seconds())
    tried = _try_shapes(
        state.trainer,
        inputs.feed.plan(),
        micro_batch_tokens,
        on=inputs.hardware,
    )
    steps = inputs.hparams.steps
    updates = Repeated(
        steps, sum(shape.share * trial.seconds for shape, trial in tried)
    )
    num_checkpoints = checkpointer.num_due(steps, steps * updates.seconds)
    return Forecast(
        description=_description(state),
        tried=tried,
        micro_batch_tokens=micro_batch_tokens,
        updates=updates,
        evaluations=evaluations,
        checkpoints=Repeated(num_checkpoints, seconds),
        disk=disk,
    )


def _description(state: RunState) -> str:
    """Returns what updates run on, and how."""
    options = state.inputs.options
    parts = state.trainer.num_parts
    description = (
        f"On {device_names(state.inputs.strategy)} in {options.precision}, "
        f"{'with' if options.xla else 'without'} XLA"
    )
    if parts > 1:
        description += f", in {parts} parts side by side"
    return description


def _try_shapes(
    trainer: Trainer,
    plan: Sequence[BatchShape],
    micro_batch_tokens: int,
    on: Hardware,
) -> list[TriedShape]:
    """Tries each shape of a plan, smallest first, and returns the results.

    Args:
        trainer: Trainer before its first update.
        plan: BatchShapes of all updates.
        micro_batch_tokens: int.
        on: Hardware of a replica.

    Raises:
        InputError: one does not fit in memory, or takes more than there is.
    """
    tried = []
    for shape in sorted(plan, key=lambda shape: shape.source_length):
        trial = _try_shape(trainer, shape, micro_batch_tokens, on=on)
        if trial is not None and trainer.is_compiled:
            # XLA compiled a program for the shape; now it need not.
            trial = _try_shape(trainer, shape, micro_batch_tokens, on=on)
        if trial is None or exceeds_any(trainer, trial, on):
            raise InputError(
                f"memory runs out with a batch of {shape.batch_size} pairs of "
                f"{shape.source_length} source and {shape.target_length} "
                "target tokens: give a --micro_batch_tokens below "
                f"{micro_batch_tokens}"
            )
        tried.append(TriedShape(shape, trial))
    return tried


def _try_shape(
    trainer: Trainer, shape: BatchShape, micro_batch_tokens: int, on: Hardware
) -> Trial | None:
    return try_update(
        trainer,
        (shape.source_length, shape.target_length, shape.batch_size),
        micro_batch_tokens=micro_batch_tokens,
        on=on,
    )


def _try_checkpoint(
    directory: ModelDirectory, tensors: Mapping[str, Any], count: int
) -> tuple[float, Disk]:
    """Returns the seconds that a checkpoint takes, and the Disk of a run.

    Args:
        directory: ModelDirectory, in which it is written and then removed.
        tensors: of the checkpoint.
        count: int, how many there are at the same time.

    Raises:
        InputError: it cannot be written.
    """
    is_remote = files.is_remote(directory.path)
    free = None if is_remote else shutil.disk_usage(directory.path).free
    with files.trial_folder(directory.path / "preflight") as folder:
        start = time.perf_counter()
        checkpoints.write(folder / "step-0", tensors)
        seconds = time.perf_counter() - start
        size = sum(path.stat().st_size for path in folder.iterdir())
    return seconds, Disk(count, size, free)
