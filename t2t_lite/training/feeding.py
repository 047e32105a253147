"""The batches of a run, from any step on."""

import abc
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite.hparams import HParams
from t2t_lite.task import Task
from t2t_lite.text import batching, epochs
from t2t_lite.text.batching import Bucket
from t2t_lite.text.epochs import Epoch, PlanState
from t2t_lite.text.subword_sampling import SubwordSampler
from t2t_lite.text.token_files import TokenPairs
from t2t_lite.training.preparation import Prepared
from t2t_lite.training.strategies import value_from_chief

_PAIRS_LOOKED_AT = 20_000  # For the shapes of batches.

Batches = Iterator[tuple[np.ndarray, np.ndarray]]
# From an epoch, and a function that says whether to give up, to its pairs.
TokenizeEpoch = Callable[[int, Callable[[], bool]], TokenPairs | None]


class Feed(abc.ABC):
    """Gives the batches of a run, a function of the settings and the step."""

    @abc.abstractmethod
    def batches(
        self, first_step: int, end_step: int, should_stop: Callable[[], bool]
    ) -> Batches:
        """Yields (int32 [B, S], int32 [B, T]) of some steps.

        Args:
            first_step: int, counted from 0.
            end_step: int, the step after the last.
            should_stop: while there is no first batch yet, it is asked whether
                to give up; then none follows.
        """

    @property
    @abc.abstractmethod
    def shapes(self) -> list[tuple[int, int, int]]:
        """The (S, T, B) of batches; [] where they follow from the settings."""

    @abc.abstractmethod
    def tensors(self, step: int) -> dict[str, Any]:
        """Returns what a checkpoint after `step` updates has to keep."""

    @abc.abstractmethod
    def restore(self, tensors: Mapping[str, Any]) -> None:
        """Goes on from what `tensors` returned."""

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
    ) -> Batches:
        buckets = batching.make_buckets(
            self._pairs.source_lengths,
            self._pairs.target_lengths,
            self._hparams.tokens_per_batch,
            self._hparams.num_buckets,
        )
        plan = batching.BatchPlan(buckets, self._hparams.seed)
        dataset = batching.training_batches(
            self._pairs, plan, first_step, end_step
        )
        return dataset.as_numpy_iterator()

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        return []

    def tensors(self, step: int) -> dict[str, Any]:
        return {}

    def restore(self, tensors: Mapping[str, Any]) -> None:
        """Does nothing: any step's batch is known at once."""

    def copy_from_chief(self, strategy: tf.distribute.Strategy) -> None:
        """Does nothing, for the same reason."""


class EpochFeed(Feed):
    """The batches of epochs that differ, each planned when it begins.

    The tokens of the next epoch are made in the background.

    Args:
        tokenize: TokenizeEpoch.
        draw: from an epoch to its pairs, int32 [D].
        shapes: that of `epochs.fixed_shapes`.
        seed: int.
    """

    def __init__(
        self,
        tokenize: TokenizeEpoch,
        draw: Callable[[int], np.ndarray],
        shapes: list[Bucket],
        seed: int,
    ):
        self._tokenize, self._draw = tokenize, draw
        self._shapes, self._seed = shapes, seed
        # Of the epochs that batches were taken from: as they are taken ahead,
        # a checkpoint may need the state of an epoch before the last.
        self._states = [PlanState()]

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        return [tuple(shape[:3]) for shape in self._shapes]

    def batches(
        self, first_step: int, end_step: int, should_stop: Callable[[], bool]
    ) -> Batches:
        if first_step >= end_step:
            return
        with contextlib.closing(_EpochReader(self, end_step)) as reader:
            if not reader.begin(first_step, should_stop):
                return
            # Named, for it must outlive the reader: its end waits for it.
            batches = batching.loaded_batches(
                reader.load, first_step, end_step
            ).as_numpy_iterator()
            try:
                yield from batches
            except tf.errors.OpError:
                raise reader.error from None

    def tokenize(
        self, epoch: int, should_stop: Callable[[], bool]
    ) -> TokenPairs | None:
        """Returns the pairs of an epoch; None if it was stopped."""
        return self._tokenize(epoch, should_stop)

    @property
    def last_state(self) -> PlanState:
        """Where the last epoch begins that was planned, or is to be."""
        return self._states[-1]

    def plan(self, state: PlanState, pairs: TokenPairs) -> Epoch:
        """Returns the batches of the epoch that begins at a state."""
        if state is not self.last_state:
            self._states.append(state)
        return epochs.plan_epoch(
            state,
            self._draw(state.epoch),
            (pairs.source_lengths, pairs.target_lengths),
            self._shapes,
            self._seed,
        )

    def tensors(self, step: int) -> dict[str, Any]:
        past = [s for s in self._states if s.first_step <= step]
        return past[-1].tensors()

    def restore(self, tensors: Mapping[str, Any]) -> None:
        self._states = [PlanState.restored(tensors)]

    def copy_from_chief(self, strategy: tf.distribute.Strategy) -> None:
        epoch, first_step, pairs = self.last_state
        # As long on all workers: an epoch carries over less than this.
        padded = np.full(sum(s.batch_size for s in self._shapes), -1, np.int32)
        padded[: len(pairs)] = pairs
        epoch, first_step, padded = (
            value_from_chief(strategy, value)
            for value in (epoch, first_step, padded)
        )
        self._states = [
            PlanState(int(epoch), int(first_step), padded[padded >= 0])
        ]


class _EpochReader:
    """Reads the batches of one step after the other.

    Args:
        feed: EpochFeed.
        end_step: int, the step after the last.
    """

    def __init__(self, feed: EpochFeed, end_step: int):
        self._feed, self._end_step = feed, end_step
        self._background = ThreadPoolExecutor(1)
        self._is_closed = threading.Event()
        self.error = RuntimeError("the graph of the batches failed")

    def begin(self, step: int, should_stop: Callable[[], bool]) -> bool:
        """Goes to the epoch of a step; returns False if it was stopped."""
        state = self._feed.last_state
        pairs = self._feed.tokenize(state.epoch, should_stop)
        if pairs is None:
            return False
        self._begin_epoch(state, pairs)
        self._go_to(step)
        return True

    def load(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the batch of a step, none of them before the last one's.

        What it raises is kept as `error`, for a graph makes another of it.
        """
        try:
            self._go_to(step)
        except Exception as error:
            self.error = error
            raise
        bucket, indices = self._epoch.batch(step)
        return batching.pad_batch(
            self._pairs, indices, bucket.source_length, bucket.target_length
        )

    def close(self) -> None:
        """Ends the work in the background."""
        self._is_closed.set()
        self._background.shutdown()

    def _go_to(self, step: int) -> None:
        while step >= self._epoch.next.first_step:
            self._begin_epoch(self._epoch.next, self._next_pairs.result())

    def _begin_epoch(self, state: PlanState, pairs: TokenPairs) -> None:
        self._pairs, self._epoch = pairs, self._feed.plan(state, pairs)
        if self._epoch.next.first_step < self._end_step:
            self._next_pairs = self._background.submit(
                self._feed.tokenize, state.epoch + 1, self._is_closed.is_set
            )


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
        folder: path, whose disk takes the tokens of an epoch.

    Raises:
        InputError: the vocabulary is of a kind that cannot be sampled.
    """
    if hparams.subword_sampling:
        return _sampling_feed(prepared, hparams, task, folder)
    if prepared.weighting is not None:
        return _weighted_feed(prepared, hparams)
    return PlannedFeed(prepared.pairs, hparams)


def _draw(prepared: Prepared, seed: int) -> Callable[[int], np.ndarray]:
    """Returns the function from an epoch to the pairs that it draws."""
    if prepared.weighting is not None:
        return epochs.pair_drawer(prepared.weighting, seed)
    all_pairs = np.arange(len(prepared.pairs.source_lengths), dtype=np.int32)
    return lambda _: all_pairs


def _weighted_feed(prepared: Prepared, hparams: HParams) -> EpochFeed:
    pairs, draw = prepared.pairs, _draw(prepared, hparams.seed)
    drawn = draw(0)
    lengths = pairs.source_lengths[drawn], pairs.target_lengths[drawn]
    shapes = _shapes(pairs, lengths, hparams)
    return EpochFeed(lambda *_: pairs, draw, shapes, hparams.seed)


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
        task.targets_are_text,
    )
    lengths = _sampled_lengths(pairs, draw(0), sampler, hparams)
    shapes = _shapes(pairs, lengths, hparams)
    max_lengths = tuple(max(shape[n] for shape in shapes) for n in (0, 1))

    def tokenize(
        epoch: int, should_stop: Callable[[], bool]
    ) -> TokenPairs | None:
        logging.info("Sampling the subwords of epoch %d.", epoch + 1)
        return sampler.sample(pairs, epoch, max_lengths, folder, should_stop)

    return EpochFeed(tokenize, draw, shapes, hparams.seed)


def _sampled_lengths(
    pairs: TokenPairs,
    drawn: np.ndarray,
    sampler: SubwordSampler,
    hparams: HParams,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns lengths of sources and targets as those of sampled pairs."""
    count = min(len(drawn), _PAIRS_LOOKED_AT)
    looked_at = drawn[np.linspace(0, len(drawn) - 1, count).astype(int)]
    max_lengths = hparams.max_length, hparams.max_length
    sample = sampler.sample(pairs.some(looked_at), 0, max_lengths)
    # As many as are drawn, for a bucket needs enough of them.
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
    """Returns shapes for such lengths, which hold all usual ids too."""
    return epochs.fixed_shapes(
        lengths,
        (int(pairs.source_lengths.max()), int(pairs.target_lengths.max())),
        hparams.tokens_per_batch,
        hparams.num_buckets,
    )
