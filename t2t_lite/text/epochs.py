"""Batches of epochs that differ, in their token ids or in what they draw.

`batching.BatchPlan` knows the batch of any step at once, because its pairs and
their lengths never change. Here an epoch is planned when it begins, from its
own lengths and from what earlier epochs left over: a PlanState, which a
checkpoint keeps. All epochs have the same shapes of batches.
"""

import fractions
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from t2t_lite.text import batching
from t2t_lite.text.batching import Bucket

_RANKS = 0xFFFFFFFF  # Begins the seeds of ranks; others begin with the seed.
_NO_PAIRS = np.zeros(0, np.int32)


class PlanState(NamedTuple):
    """Where an epoch begins."""

    epoch: int = 0
    first_step: int = 0
    # int32 [C], pairs that filled no batch in earlier epochs.
    carried_over: np.ndarray = _NO_PAIRS

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Any]) -> "PlanState | None":
        """Returns the state that `tensors` gave; None if they hold none."""
        names = "plan_epoch", "plan_first_step", "plan_carried_over"
        if not all(name in tensors for name in names):
            return None
        epoch, first_step, pairs = (np.asarray(tensors[n]) for n in names)
        if [v.ndim for v in (epoch, first_step, pairs)] != [0, 0, 1]:
            return None
        if any(v.dtype.kind != "i" for v in (epoch, first_step, pairs)):
            return None
        return cls(int(epoch), int(first_step), pairs.astype(np.int32))

    def tensors(self) -> dict[str, Any]:
        """Returns what a checkpoint keeps."""
        return {
            "plan_epoch": np.int64(self.epoch),
            "plan_first_step": np.int64(self.first_step),
            "plan_carried_over": self.carried_over,
        }


class Epoch(NamedTuple):
    """The batches of an epoch, and where the next one begins."""

    first_step: int
    batches: list[tuple[Bucket, np.ndarray]]  # with int32 [B], of pairs
    next: PlanState

    def batch(self, step: int) -> tuple[Bucket, np.ndarray]:
        """Returns (Bucket, int32 [B] indices of its pairs) of a step."""
        return self.batches[step - self.first_step]


def plan_epoch(
    state: PlanState,
    drawn: np.ndarray,
    lengths: tuple[np.ndarray, np.ndarray],
    shapes: Sequence[Bucket],
    seed: int,
) -> Epoch:
    """Returns the full batches of an epoch, in a random order.

    Pairs come in a random order too, after those that were carried over.

    Args:
        state: PlanState.
        drawn: int32 [D], the pairs of the epoch, ascending; some may occur more
            than once.
        lengths: int [P] of sources and of targets, all of which fit a shape.
        shapes: that of `epoch_shapes`.
        seed: int.
    """
    shape_of_carried = _smallest_fitting(state.carried_over, lengths, shapes)
    shape_of_drawn = _smallest_fitting(drawn, lengths, shapes)
    batches, left_over = [], []
    for n, shape in enumerate(shapes):
        generator = np.random.default_rng((seed, state.epoch, n))
        pairs = np.concatenate(
            [
                state.carried_over[shape_of_carried == n],
                generator.permutation(drawn[shape_of_drawn == n]),
            ]
        )
        end = len(pairs) - len(pairs) % shape.batch_size
        batches += [
            (shape, batch)
            for batch in pairs[:end].reshape(-1, shape.batch_size)
        ]
        left_over.append(pairs[end:])
    np.random.default_rng((seed, state.epoch)).shuffle(batches)
    following = PlanState(
        state.epoch + 1,
        state.first_step + len(batches),
        np.concatenate(left_over),
    )
    return Epoch(state.first_step, batches, following)


def _smallest_fitting(
    pairs: np.ndarray,
    lengths: tuple[np.ndarray, np.ndarray],
    shapes: Sequence[Bucket],
) -> np.ndarray:
    """Returns the index of the smallest shape that each pair fits, int [D]."""
    source_lengths, target_lengths = (side[pairs] for side in lengths)
    found = np.zeros(len(pairs), np.int32)
    largest_first = sorted(
        range(len(shapes)), key=lambda n: _size(shapes[n]), reverse=True
    )
    for n in largest_first:
        fits = (source_lengths <= shapes[n].source_length) & (
            target_lengths <= shapes[n].target_length
        )
        found[fits] = n
    return found


def _size(shape: Bucket) -> tuple[int, int]:
    """Returns what shapes are compared by, as `make_buckets` does."""
    return shape.source_length + shape.target_length, shape.source_length


def epoch_shapes(
    sample: tuple[np.ndarray, np.ndarray],
    largest: tuple[int, int],
    tokens_per_batch: int,
    num_buckets: int,
) -> list[Bucket]:
    """Returns the shapes of the batches of all epochs, without pairs.

    Args:
        sample: int [P], lengths of sources and targets, as in an epoch.
        largest: (source length, target length) that must fit a shape too.
        tokens_per_batch: that of `batching.make_buckets`.
        num_buckets: likewise.
    """
    buckets = batching.make_buckets(*sample, tokens_per_batch, num_buckets)
    *others, last = sorted(
        buckets, key=lambda b: b.source_length + b.target_length
    )
    largest_source, largest_target = largest
    S = max(largest_source, *(b.source_length for b in buckets))
    T = max(largest_target, *(b.target_length for b in buckets))
    size = min(last.batch_size, tokens_per_batch // max(S, T))
    last = Bucket(S, T, size, pairs=_NO_PAIRS)
    return sorted(
        [*(bucket._replace(pairs=_NO_PAIRS) for bucket in others), last],
        key=lambda b: (b.source_length, b.target_length),
    )


class Weighting(NamedTuple):
    """How often the pairs of several corpora are drawn, in proportion."""

    sizes: Sequence[int]  # how many pairs each has
    weights: Sequence[float]  # above 0


def pair_sampler(
    weighting: Weighting, seed: int
) -> Callable[[int], np.ndarray]:
    """Returns the function from an epoch to the pairs that it draws.

    The pairs are those of several corpora, one after the other. Each is drawn
    in proportion to its corpus's weight, as evenly over the epochs as possible,
    and an epoch draws as many pairs as there are. With weights 2 and 1 and two
    corpora of the same size, it draws 4/3 of the first one's pairs: all of them
    once, and a third of them, in turn, twice.

    Args:
        weighting: Weighting.
        seed: int.

    Returns:
        a function from an int to int32 [D], ascending; a pair occurs as often
        as it is drawn.
    """
    sizes, weights = weighting
    exact = [fractions.Fraction(weight) for weight in weights]
    total = sum(w * size for w, size in zip(exact, sizes, strict=True))
    rates = [weight * sum(sizes) / total for weight in exact]

    def copies(n: int, epoch: int) -> np.ndarray:
        """Returns how often an epoch draws each pair of corpus n."""
        ranks = _ranks(sizes[n], (_RANKS, seed, n))
        before, after = rates[n] * epoch, rates[n] * (epoch + 1)
        return _times_drawn(after, ranks) - _times_drawn(before, ranks)

    def draw(epoch: int) -> np.ndarray:
        copies_P = np.concatenate([copies(n, epoch) for n in range(len(sizes))])
        return np.repeat(np.arange(len(copies_P), dtype=np.int32), copies_P)

    return draw


def _ranks(size: int, key: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(key).permutation(size)


def _times_drawn(mean: fractions.Fraction, ranks_P: np.ndarray) -> np.ndarray:
    """Returns floor(mean + rank / P) for each pair, int [P].

    Their sum is floor(P * mean), by Hermite's identity.

    >>> _times_drawn(fractions.Fraction(5, 2), np.array([3, 0, 1, 2]))
    array([3, 2, 2, 3])
    """
    P = len(ranks_P)
    whole, rest = divmod(mean, 1)
    return int(whole) + (ranks_P >= math.ceil(P * (1 - rest)))
