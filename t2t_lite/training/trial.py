"""Trial updates, which run before the first one and leave no trace.

An estimate of the memory may be wrong; what has run once will run again.
"""

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite import hardware
from t2t_lite.errors import InputError
from t2t_lite.hardware import GIB, Hardware
from t2t_lite.model.transformer import Transformer
from t2t_lite.optimization.micro_batches import (
    SMALLER,
    halves,
    num_micro_batches,
)
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.strategies import total_over_replicas
from t2t_lite.optimization.trainer import Trainer

_MOST_RUN = 3  # Micro-batches of a trial update.


class Trial(NamedTuple):
    """What an update of one shape took."""

    num_micro_batches: int
    seconds: float
    peak_bytes: int | None  # of the process, or of its first GPU


def try_update(
    trainer: Trainer,
    shape: tuple[int, int, int],
    micro_batch_tokens: int,
    on: Hardware,
) -> Trial | None:
    """Returns the Trial of an update without padding; None if memory ran out.

    Its micro-batches are alike, so only a few are run, and the time of all is
    extrapolated from them. Each worker must call this; either all get a Trial
    or none does.

    Args:
        trainer: Trainer before its first update.
        shape: (S, T, B) of its batch.
        micro_batch_tokens: int, that of `num_micro_batches`.
        on: Hardware of a replica.
    """
    S, T, B = shape
    count = num_micro_batches(
        batch_size=B,
        length=max(S, T),
        micro_batch_tokens=micro_batch_tokens,
        num_replicas=trainer.strategy.num_replicas_in_sync,
    )
    hardware.reset_peak_memory(on.kind)
    batch = _random_batch(trainer.model, shape)
    trainer.graphs.trace()  # Not counted, because it is done once.
    start = time.perf_counter()
    has_failed, num_run = False, min(count, _MOST_RUN)
    try:
        for n in range(num_run):
            trainer.add(batch, n=n, num_micro_batches=count)
        trainer.graphs.wait()
    except tf.errors.ResourceExhaustedError:
        has_failed = True
    failures = total_over_replicas(trainer.strategy, float(has_failed))
    if failures:
        trainer.clear()
        return None
    start_of_apply = time.perf_counter()
    trainer.graphs.rehearse_apply()
    end = time.perf_counter()
    seconds = (start_of_apply - start) * count / num_run + end - start_of_apply
    return Trial(count, seconds, hardware.peak_memory_bytes(on.kind))


def _random_batch(model: Transformer, shape: tuple[int, int, int]) -> Batch:
    """Returns a Batch of shape (S, T, B), without padding."""
    S, T, B = shape
    generator = np.random.default_rng(0)
    sizes = (model.source_embedding.vocabulary_size, model.num_target_ids)
    source_ids, target_ids = (
        generator.integers(1, V, size=(B, L), dtype=np.int32)
        for V, L in zip(sizes, (S, T), strict=True)
    )
    return Batch(source_ids, target_ids)


def largest_shapes(
    shapes: Sequence[tuple[int, int, int]],
) -> list[tuple[int, int, int]]:
    """Returns the shapes of which one most likely takes the most memory.

    Most of it is proportional to positions; what attention takes, to the pairs
    of them in a row. One shape may have the most of both.

    >>> largest_shapes([(5, 5, 20), (16, 16, 6), (50, 50, 2), (90, 90, 1)])
    [(5, 5, 20), (90, 90, 1)]

    Args:
        shapes: list of (S, T, B) of batches.
    """
    most_positions = max(shapes, key=lambda STB: STB[2] * (STB[0] + STB[1]))
    most_scores = max(shapes, key=_num_scores)
    return list(dict.fromkeys([most_positions, most_scores]))


def _num_scores(shape: tuple[int, int, int]) -> int:
    """Returns how many scores one head has in one layer of either stack."""
    S, T, B = shape
    return B * (S * S + T * T + S * T)


def first_fitting(
    trainer: Trainer,
    shapes: Sequence[tuple[int, int, int]],
    tokens: int,
    on: Hardware,
) -> int:
    """Returns the first of `halves(tokens)` with which trial updates fit.

    They fit if memory does not run out, and if no more is used than the
    hardware has. Each worker must call this with the same arguments except the
    hardware.

    Args:
        trainer: Trainer before its first update.
        shapes: list of (S, T, B), the `largest_shapes` of all batches.
        tokens: int, of a micro-batch, to try first.
        on: Hardware of a replica.

    Raises:
        InputError: none fits.
    """
    for size in halves(tokens):
        peak = _peak(trainer, shapes, micro_batch_tokens=size, on=on)
        if peak is not None:
            logging.info(
                "Micro-batches of %d tokens: the largest updates fit%s.",
                size,
                _of_memory(peak, on),
            )
            return size
        logging.info("Micro-batches of %d tokens do not fit.", size)
    raise InputError(
        f"memory runs out even with micro-batches of {size} tokens: {SMALLER}"
    )


def _peak(
    trainer: Trainer,
    shapes: Sequence[tuple[int, int, int]],
    micro_batch_tokens: int,
    on: Hardware,
) -> int | None:
    """Returns the peak bytes of trial updates, or None if they do not fit.

    It is 0 where the peak is not known. All workers get None, or none does.
    """
    peak = 0
    for shape in shapes:
        trial = try_update(trainer, shape, micro_batch_tokens, on=on)
        if trial is None or exceeds_any(trainer, trial, on):
            return None
        peak = max(peak, trial.peak_bytes or 0)
    return peak


def exceeds_any(trainer: Trainer, trial: Trial, on: Hardware) -> bool:
    """Returns whether a trial took more memory than there is, on any worker.

    Args:
        trainer: Trainer.
        trial: Trial of this process.
        on: Hardware of a replica.
    """
    exceeds = (trial.peak_bytes or 0) > on.memory_bytes
    return total_over_replicas(trainer.strategy, float(exceeds)) > 0


def _of_memory(peak: int, on: Hardware) -> str:
    """Returns ", in 7.4 of 16.0 GiB", or "" where that is not known."""
    if peak == 0 or math.isinf(on.memory_bytes):
        return ""
    return f", in {peak / GIB:.1f} of {on.memory_bytes / GIB:.1f} GiB"
