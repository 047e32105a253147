"""The batches of a run, from any step on."""

import abc
import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.strategies import value_from_chief
from t2t_lite.task import Task
from t2t_lite.text import batching, epochs
from t2t_lite.text.batching import BatchShape, Bucket
from t2t_lite.text.epochs import Epoch, PlanState
from t2t_lite.text.subword_sampling import SubwordSampler
from t2t_lite.text.token_files import TokenPairs
from t2t_lite.training.preparation import Prepared

_PAIRS_LOOKED_AT = 20_000  # For the shapes of batches.
_SECONDS_BETWEEN_LOOKS = 0.2  # At whether to stop.

# From an epoch, and a function that says whether to give up, to pairs.
TokenizeEpoch = Callable[[int, Callable[[], bool]], TokenPairs | None]


class Feed(abc.ABC):
    """Gives the batches of a run, as determined by settings and step."""

    @abc.abstractmethod
    def batches(
        self, first_step: int, end_step: int, should_stop: Callable[[], bool]
    ) -> Iterator[Batch]:
        """Yields the Batch of each of some steps.

        Args:
            first_step: int, counted from 0.
            end_step: int, the step after the last.
            should_stop: polled while the next batch is not ready; once it
                returns True, there are no more batches.
        """

    @property
    @abc.abstractmethod
    def shapes(self) -> list[tuple[int, int, int]]:
        """The (S, T, B) that batches have."""

    @abc.abstractmethod
    def plan(self) -> list[BatchShape]:
        """Returns the shapes of batches, with their shares of the first epoch.

        May tokenize that epoch.
        """

    @abc.abstractmethod
    def tensors(self, step: int) -> dict[str, Any]:
        """Returns what a checkpoint after `step` batches has to keep."""

    @abc.abstractmethod
    def restore(
        self, tensors: Mapping[str, Any], step: int, description: str
    ) -> None:
        """Restores the state that `tensors` returned.

        Args:
            tensors: those of a checkpoint.
            step: int, batches taken.
            description: of the checkpoint, for errors.

        Raises:
            InputError: they cannot belong to this run.
        """

    @abc.abstractmethod
    def reset(self) -> None:
        """Restores the state before the first batch."""

    @abc.abstractmethod
    def copy_from_chief(self, strategy: tf.distribute.Strategy) -> None:
        """Gives every worker what the chief restored."""


class PlannedFeed(Feed):
    """The batches of pairs that are the same in every epoch.

    Args:
        pairs: TokenPairs.
        hparams: HParams.
    """

    def __init__(self, pairs: TokenPairs, hparams: HParams):
        self._pairs, self._hparams = pairs, hparams

    def batches(
        self, first_step: int, end_step: int, should_stop: Callable[[], bool]
    ) -> Iterator[Batch]:
        plan = batching.BatchPlan(self._buckets, self._hparams.seed)
        dataset = batching.training_batches(
            self._pairs, plan, first_step=first_step, end_step=end_step
        )
        for arrays in dataset.as_numpy_iterator():
            yield Batch(*arrays)

    @functools.cached_property
    def _buckets(self) -> list[Bucket]:
        return batching.make_buckets(
            self._pairs.source_lengths,
            self._pairs.target_lengths,
            tokens_per_batch=self._hparams.tokens_per_batch,
            num_buckets=self._hparams.num_buckets,
        )

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        return [_sizes(bucket) for bucket in self._buckets]

    def plan(self) -> list[BatchShape]:
        buckets = self._buckets
        return _shared(buckets, [len(b.pairs) / b.batch_size for b in buckets])

    def tensors(self, step: int) -> dict[str, Any]:
        return {}

    def restore(
        self, tensors: Mapping[str, Any], step: int, description: str
    ) -> None:
        """Does nothing: any step's batch is known at once."""

    def reset(self) -> None:
        """Does nothing, for the same reason."""

    def copy_from_chief(self, strategy: tf.distribute.Strategy) -> None:
        """Does nothing, for the same reason."""


class EpochFeed(Feed):
    """The batches of epochs that differ, each planned when it begins.

    The tokens of the next epoch are made in the background.

    Args:
        tokenize: TokenizeEpoch.
        draw: function from an epoch to its pairs, int32 [D].
        num_pairs: int, how many there are.
        shapes: that of `epochs.epoch_shapes`.
        seed: int.
    """

    def __init__(
        self,
        tokenize: TokenizeEpoch,
        draw: Callable[[int], np.ndarray],
        num_pairs: int,
        shapes: list[Bucket],
        seed: int,
    ):
        self._tokenize, self._draw = tokenize, draw
        self._num_pairs, self._shapes, self._seed = num_pairs, shapes, seed
        # Of the epoch of the last batch, and of the one after it.
        self._states = [PlanState()]

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        return [_sizes(shape) for shape in self._shapes]

    def plan(self) -> list[BatchShape]:
        first = PlanState()
        pairs = self._tokenize(first.epoch, lambda: False)
        found = [_sizes(shape) for shape, _ in self._plan(first, pairs).batches]
        return _shared(self._shapes, [found.count(s) for s in self.shapes])

    def batches(
        self, first_step: int, end_step: int, should_stop: Callable[[], bool]
    ) -> Iterator[Batch]:
        is_closed = threading.Event()

        def tokenize(epoch):
            return background.submit(self._tokenize, epoch, is_closed.is_set)

        with ThreadPoolExecutor(1) as background:
            try:
                yield from self._batches(
                    range(first_step, end_step), tokenize, should_stop
                )
            finally:
                is_closed.set()

    def _batches(
        self,
        steps: range,
        tokenize: Callable[[int], Future],
        should_stop: Callable[[], bool],
    ) -> Iterator[Batch]:
        """Yields the batches of steps.

        Args:
            steps: of the run.
            tokenize: from an epoch to the Future of its pairs.
            should_stop: that of `batches`.
        """
        if not steps:
            return
        state = self._state_at(steps.start)
        following = tokenize(state.epoch)
        while state.first_step < steps.stop:
            pairs = _wait_for(following, should_stop)
            if pairs is None:
                return
            epoch = self._plan(state, pairs)
            self._states = [state, epoch.next]
            if epoch.next.first_step < steps.stop:
                following = tokenize(epoch.next.epoch)
            first_step = max(epoch.first_step, steps.start)
            for step in range(
                first_step, min(epoch.next.first_step, steps.stop)
            ):
                yield _padded(pairs, *epoch.batch(step))
            state = epoch.next

    def _state_at(self, step: int) -> PlanState:
        """Returns where the epoch of a step begins, or an earlier one."""
        return [s for s in self._states if s.first_step <= step][-1]

    def _plan(self, state: PlanState, pairs: TokenPairs) -> Epoch:
        lengths = pairs.source_lengths, pairs.target_lengths
        drawn = self._draw(state.epoch)
        return epochs.plan_epoch(
            state, drawn, lengths, shapes=self._shapes, seed=self._seed
        )

    def tensors(self, step: int) -> dict[str, Any]:
        return self._state_at(step).tensors()

    def restore(
        self, tensors: Mapping[str, Any], step: int, description: str
    ) -> None:
        state = PlanState.from_tensors(tensors)
        if state is None or not self._can_be(state, step):
            raise InputError(
                f"{description} is damaged: its batch plan does not match the "
                "training text: choose another checkpoint"
            )
        self._states = [state]

    def reset(self) -> None:
        self._states = [PlanState()]

    def _can_be(self, state: PlanState, step: int) -> bool:
        """Returns whether a state can begin an epoch, at or before a step."""
        pairs = state.carried_over
        is_there = ((pairs >= 0) & (pairs < self._num_pairs)).all()
        is_in_time = 0 <= state.first_step <= step and state.epoch >= 0
        return is_there and is_in_time and len(pairs) <= self._most_carried_over

    @property
    def _most_carried_over(self) -> int:
        return sum(shape.batch_size for shape in self._shapes)

    def copy_from_chief(self, strategy: tf.distribute.Strategy) -> None:
        epoch, first_step, pairs = self._states[-1]
        # The same length on all workers.
        padded = np.full(self._most_carried_over, -1, np.int32)
        padded[: len(pairs)] = pairs
        epoch, first_step, padded = (
            value_from_chief(strategy, value)
            for value in (epoch, first_step, padded)
        )
        self._states = [
            PlanState(int(epoch), int(first_step), padded[padded >= 0])
        ]


def _sizes(shape: Bucket) -> tuple[int, int, int]:
    """Returns the (S, T, B) of the batches of a Bucket."""
    return shape.source_length, shape.target_length, shape.batch_size


def _shared(
    shapes: Sequence[Bucket], counts: Sequence[float]
) -> list[BatchShape]:
    """Returns the shapes, each with its share of all batches."""
    total = sum(counts) or 1
    return [
        BatchShape(
            source_length=shape.source_length,
            target_length=shape.target_length,
            batch_size=shape.batch_size,
            share=count / total,
        )
        for shape, count in zip(shapes, counts, strict=True)
    ]


def _padded(pairs: TokenPairs, shape: Bucket, indices: np.ndarray) -> Batch:
    arrays = batching.pad_batch(
        pairs,
        indices,
        source_length=shape.source_length,
        target_length=shape.target_length,
    )
    return Batch(*arrays)


def _wait_for(
    pairs: Future, should_stop: Callable[[], bool]
) -> TokenPairs | None:
    """Returns the result of a Future; None if asked to stop."""
    while not pairs.done():
        if should_stop():
            return None
        wait([pairs], _SECONDS_BETWEEN_LOOKS)
    return pairs.result()


def make_feed(
    prepared: Prepared,
    hparams: HParams,
    task: Task,
    folder: str | os.PathLike,
) -> Feed:
    """Returns the Feed of a run.

    Args:
        prepared: Prepared.
        hparams: HParams.
        task: Task.
        folder: path; its disk holds the tokens of an epoch.

    Raises:
        InputError: the vocabulary is of a kind that cannot be sampled.
    """
    if hparams.subword_sampling:
        return _sampling_feed(prepared, hparams, task, folder=folder)
    if prepared.weighting is not None:
        return _weighted_feed(prepared, hparams)
    return PlannedFeed(prepared.pairs, hparams)


def _draw(prepared: Prepared, seed: int) -> Callable[[int], np.ndarray]:
    """Returns a function from an epoch to the pairs drawn for it."""
    if prepared.weighting is not None:
        return epochs.pair_sampler(prepared.weighting, seed)
    all_pairs = np.arange(len(prepared.pairs.source_lengths), dtype=np.int32)
    return lambda _: all_pairs


def _weighted_feed(prepared: Prepared, hparams: HParams) -> EpochFeed:
    pairs, draw = prepared.pairs, _draw(prepared, hparams.seed)
    drawn = draw(0)
    lengths = pairs.source_lengths[drawn], pairs.target_lengths[drawn]
    shapes = _shapes(pairs, lengths, hparams)
    return EpochFeed(
        lambda *_: pairs,
        draw,
        num_pairs=len(pairs.source_lengths),
        shapes=shapes,
        seed=hparams.seed,
    )


def _sampling_feed(
    prepared: Prepared,
    hparams: HParams,
    task: Task,
    folder: str | os.PathLike,
) -> EpochFeed:
    pairs, draw = prepared.pairs, _draw(prepared, hparams.seed)
    sampler = SubwordSampler(
        prepared.vocabulary,
        hparams.subword_sampling,
        hparams.seed,
        targets_are_text=task.targets_are_text,
    )
    lengths = _sampled_lengths(pairs, draw(0), sampler, hparams=hparams)
    shapes = _shapes(pairs, lengths, hparams)
    max_lengths = (
        max(shape.source_length for shape in shapes),
        max(shape.target_length for shape in shapes),
    )

    def tokenize(
        epoch: int, should_stop: Callable[[], bool]
    ) -> TokenPairs | None:
        logging.info("Sampling the subwords of epoch %d.", epoch + 1)
        return sampler.sample(
            pairs, epoch, max_lengths, folder=folder, should_stop=should_stop
        )

    return EpochFeed(
        tokenize,
        draw,
        num_pairs=len(pairs.source_lengths),
        shapes=shapes,
        seed=hparams.seed,
    )


def _sampled_lengths(
    pairs: TokenPairs,
    drawn: np.ndarray,
    sampler: SubwordSampler,
    hparams: HParams,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns lengths of sources and targets, taken from sampled subwords."""
    count = min(len(drawn), _PAIRS_LOOKED_AT)
    inspected = drawn[np.linspace(0, len(drawn) - 1, count).astype(int)]
    max_lengths = hparams.max_length, hparams.max_length
    sample = sampler.sample(pairs.take(inspected), 0, max_lengths)
    # About as many as are drawn, because a bucket needs enough of them.
    copies = len(drawn) // count
    return (
        np.repeat(sample.source_lengths, copies),
        np.repeat(sample.target_lengths, copies),
    )


def _shapes(
    pairs: TokenPairs,
    lengths: tuple[np.ndarray, np.ndarray],
    hparams: HParams,
) -> list[Bucket]:
    """Returns shapes for these lengths, which also hold all unsampled ids."""
    return epochs.epoch_shapes(
        lengths,
        (int(pairs.source_lengths.max()), int(pairs.target_lengths.max())),
        tokens_per_batch=hparams.tokens_per_batch,
        num_buckets=hparams.num_buckets,
    )
