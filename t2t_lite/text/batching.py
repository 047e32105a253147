"""Batches of token pairs of similar length.

Which pairs make the batch of a step depends only on the lengths and (seed,
step), so any step's batch can be found at once: resuming replays nothing.
"""

import bisect
import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from t2t_lite.text.token_files import TokenPairs

if TYPE_CHECKING:
    import tensorflow as tf

_BATCHES_AHEAD = 4
_MIN_BATCHES = 1 / 4  # In a bucket.
_MAX_SIZES = 256  # Of one side, to make shapes from.


class Bucket(NamedTuple):
    """Pairs that are batched together, and the one shape of their batches."""

    source_length: int  # S
    target_length: int  # T
    batch_size: int  # B
    pairs: np.ndarray  # int32 indices, ascending


class BatchShape(NamedTuple):
    """The shape of some batches of a run, and how many have it."""

    source_length: int  # S
    target_length: int  # T
    batch_size: int  # B
    share: float  # of the updates


def length_ladder(max_length: int) -> list[int]:
    """Returns the lengths that sequences are padded to if few are wanted.

    >>> length_ladder(100)
    [8, 16, 24, 32, 48, 64, 96, 100]
    """
    ladder = [8, 16, 24, 32]
    while ladder[-1] < max_length:
        ladder.append(ladder[-2] * 2)
    return [*(length for length in ladder if length < max_length), max_length]


def make_buckets(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    tokens_per_batch: int,
    num_buckets: int,
) -> list[Bucket]:
    """Returns at most `num_buckets` Buckets that between them hold all pairs.

    A pair goes to the smallest shape that it fits, and a batch holds as many
    pairs as fit `tokens_per_batch` on its longer side. The first shape fits
    all; each further one is put where it saves the most padding, given those
    already there. Then each but the first is moved to where it saves the most,
    given all the others, until none moves. No bucket is left with less than a
    quarter of a batch, so that it completes one at least every four epochs,
    unless the whole corpus is smaller than that.

    Args:
        source_lengths: int [P].
        target_lengths: int [P].
        tokens_per_batch: int, at least the largest length.
        num_buckets: int.
    """
    source_sizes, source_ranks = _ranked(source_lengths)
    target_sizes, target_ranks = _ranked(target_lengths)
    S, T = len(source_sizes), len(target_sizes)
    cell_of_pair = source_ranks * T + target_ranks
    counts_ST = np.bincount(cell_of_pair, minlength=S * T).reshape(S, T)
    grid = _Grid(
        source_sizes, target_sizes, counts_ST, tokens_per_batch=tokens_per_batch
    )
    shapes = grid.shapes(num_buckets)
    bucket_of_pair = grid.assigned(shapes).ravel()[cell_of_pair]
    buckets = []
    for n, (s, t) in enumerate(shapes):
        pairs = np.flatnonzero(bucket_of_pair == n).astype(np.int32)
        batch_size = tokens_per_batch // max(source_sizes[s], target_sizes[t])
        # The longest of its pairs may be shorter than the shape.
        buckets.append(
            Bucket(
                source_length=int(source_lengths[pairs].max()),
                target_length=int(target_lengths[pairs].max()),
                batch_size=int(batch_size),
                pairs=pairs,
            )
        )
    return sorted(
        buckets,
        key=lambda bucket: (bucket.source_length, bucket.target_length),
    )


def _ranked(lengths):
    """Returns sizes, and for each length the index of the least it fits in.

    The sizes are the lengths that occur, or so few of them, evenly spread,
    that the search over pairs of sizes stays short.
    """
    sizes = np.flatnonzero(np.bincount(lengths))
    if len(sizes) > _MAX_SIZES:
        sizes = sizes[np.linspace(0, len(sizes) - 1, _MAX_SIZES).astype(int)]
    return sizes, np.searchsorted(sizes, lengths)


class _Grid:
    """The distinct lengths of pairs, and how many pairs have each.

    Here S and T count distinct lengths, and a shape is a place (s, t) among
    them: it fits the pairs up to there.

    Args:
        source_sizes: int [S], ascending.
        target_sizes: int [T], ascending.
        counts_ST: int [S, T], of pairs.
        tokens_per_batch: int.
    """

    def __init__(self, source_sizes, target_sizes, counts_ST, tokens_per_batch):
        source_S1, target_1T = source_sizes[:, None], target_sizes[None, :]
        self.tokens_ST = source_S1 + target_1T
        # Ranks shapes by tokens; among equals, the smaller s comes first.
        S = len(source_sizes)
        self.rank_ST = self.tokens_ST * S + np.arange(S)[:, None]
        self.batch_sizes_ST = tokens_per_batch / np.maximum(
            source_S1, target_1T
        )
        self.counts_ST = counts_ST

    def assigned(self, shapes):
        """Returns which of the shapes is the smallest that fits: int [S, T]."""
        which_ST = np.zeros(self.counts_ST.shape, np.int32)
        largest_first = sorted(
            range(len(shapes)), key=lambda n: -self.rank_ST[shapes[n]]
        )
        for n in largest_first:
            s, t = shapes[n]
            which_ST[: s + 1, : t + 1] = n
        return which_ST

    def shapes(self, num_shapes):
        """Returns at most `num_shapes` shapes that leave little padding."""
        shapes = [tuple(n - 1 for n in self.counts_ST.shape)]
        while len(shapes) < num_shapes:
            saving, shape = self._best_added_shape(shapes)
            if not saving:
                break
            shapes.append(shape)
        has_moved = True
        while has_moved:
            has_moved = False
            for n in range(1, len(shapes)):
                others = shapes[:n] + shapes[n + 1 :]
                saving, shape = self._best_added_shape(others)
                moved = [*shapes[:n], shape, *shapes[n + 1 :]]
                if saving and self._padded(moved) < self._padded(shapes):
                    shapes, has_moved = moved, True
        return shapes

    def _padded(self, shapes):
        """Returns the tokens of all pairs, padding included."""
        tokens = np.array([self.tokens_ST[shape] for shape in shapes])
        return (tokens[self.assigned(shapes)] * self.counts_ST).sum()

    def _best_added_shape(self, shapes):
        """Returns (padding saved, shape) of the best shape to add; 0 if none.

        All places are tried at once. A shape at (s, t) would take over the
        pairs that it fits, those above and to the left of it, from each bucket
        whose shape is larger. Pairs x, with one bucket of shape (4, 4):

            lengths  1 2 3 4         would take at (2, 2)    saving
                  1  x x . .         x x                     3 pairs, each
                  2  . x . .         . x                     4 + 4 - 2 - 2
                  3  . . . x
                  4  . . x .

        A cumulative sum over both axes counts such pairs for every (s, t). A
        place is allowed if enough pairs would come, and enough would stay in
        each bucket that loses some.
        """
        which_ST = self.assigned(shapes)
        saving_ST, coming_ST = np.zeros((2, *self.counts_ST.shape), np.int64)
        is_allowed_ST = np.ones(self.counts_ST.shape, bool)
        for n, shape in enumerate(shapes):
            members_ST = np.where(which_ST == n, self.counts_ST, 0)
            fit_ST = members_ST.cumsum(axis=0).cumsum(axis=1)
            is_smaller_ST = self.rank_ST < self.rank_ST[shape]
            leaving_ST = np.where(is_smaller_ST, fit_ST, 0)
            coming_ST += leaving_ST
            saving_ST += leaving_ST * (self.tokens_ST[shape] - self.tokens_ST)
            is_allowed_ST &= (leaving_ST == 0) | (
                members_ST.sum() - leaving_ST
                >= _MIN_BATCHES * self.batch_sizes_ST[shape]
            )
        is_allowed_ST &= coming_ST >= _MIN_BATCHES * self.batch_sizes_ST
        saving_ST *= is_allowed_ST
        best = np.unravel_index(np.argmax(saving_ST), saving_ST.shape)
        return int(saving_ST[best]), tuple(map(int, best))


class BatchPlan:
    """Which pairs are in the batch of each step, forever.

    Each bucket's pairs come in a new order each epoch, one epoch after another
    in one endless stream that is cut into full batches: what is left over from
    an epoch starts the next one's first batch. The batches that an epoch
    completes come in a random order.

    Args:
        buckets: list of Bucket.
        seed: int.
    """

    def __init__(self, buckets: list[Bucket], seed: int):
        self.buckets, self.seed = buckets, seed
        self._order = functools.lru_cache(2 * len(buckets))(
            self._shuffled_pairs
        )
        self._batches = functools.lru_cache(2)(self._shuffled_batches)

    def first_step(self, epoch: int) -> int:
        """Returns the first step of an epoch: how many batches precede it."""
        return sum(
            epoch * len(bucket.pairs) // bucket.batch_size
            for bucket in self.buckets
        )

    def epoch(self, step: int) -> int:
        """Returns the epoch that completes the batch of `step`."""
        longest = max(b.batch_size for b in self.buckets) * (step + 2)
        epochs = range(longest + 1)
        return bisect.bisect_right(epochs, step, key=self.first_step) - 1

    def batch(self, step: int) -> tuple[Bucket, np.ndarray]:
        """Returns (Bucket, int32 [B] indices of its pairs) of a step from 0."""
        epoch = self.epoch(step)
        n, k = self._batches(epoch)[step - self.first_step(epoch)]
        bucket = self.buckets[n]
        places = np.arange(k * bucket.batch_size, (k + 1) * bucket.batch_size)
        epochs, places = np.divmod(places, len(bucket.pairs))
        orders = [
            self._order(int(e), n)[places[epochs == e]]
            for e in np.unique(epochs)
        ]
        return bucket, np.concatenate(orders)

    def _shuffled_batches(self, epoch):
        """Returns the (bucket, batch of that bucket) of each of its steps."""
        batches = [
            (n, k)
            for n, bucket in enumerate(self.buckets)
            for k in range(
                epoch * len(bucket.pairs) // bucket.batch_size,
                (epoch + 1) * len(bucket.pairs) // bucket.batch_size,
            )
        ]
        np.random.default_rng((self.seed, epoch)).shuffle(batches)
        return batches

    def _shuffled_pairs(self, epoch, n):
        """Returns the pairs of bucket n in the order of an epoch."""
        generator = np.random.default_rng((self.seed, epoch, n))
        return generator.permutation(self.buckets[n].pairs)


def training_batches(
    pairs: TokenPairs, plan: BatchPlan, first_step: int, end_step: int
) -> "tf.data.Dataset":
    """Returns the tf.data.Dataset of the batches of some steps, in order.

    Args:
        pairs: TokenPairs.
        plan: BatchPlan.
        first_step: int, counted from 0.
        end_step: int, the step after the last.

    Returns:
        Dataset of (int32 [B, S], int32 [B, T]), followed by uint8 [B, T, S]
        of linked tokens if words are aligned.
    """
    import tensorflow as tf

    specs = [(tf.int32, 2), (tf.int32, 2)]
    if pairs.links is not None:
        specs.append((tf.uint8, 3))

    def load(step):
        bucket, indices = plan.batch(int(step))
        return pad_batch(
            pairs,
            indices,
            source_length=bucket.source_length,
            target_length=bucket.target_length,
        )

    def load_in_graph(step):
        batch = tf.numpy_function(
            load, [step], [dtype for dtype, _ in specs], stateful=False
        )
        return tuple(
            tf.ensure_shape(array, [None] * rank)
            for array, (_, rank) in zip(batch, specs, strict=True)
        )

    steps = tf.data.Dataset.range(first_step, end_step)
    # There is nothing to tune, and the end of an iteration waits for the thread
    # that would tune it, up to a minute.
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = steps.map(load_in_graph).prefetch(_BATCHES_AHEAD)
    return batches.with_options(options)


def pad_batch(
    pairs: TokenPairs,
    indices: np.ndarray,
    source_length: int,
    target_length: int,
) -> tuple[np.ndarray, ...]:
    """Returns the ids of some pairs as (int32 [B, S], int32 [B, T]).

    If words are aligned, uint8 [B, T, S] follows them: which tokens are linked.

    Args:
        pairs: TokenPairs.
        indices: int [B], which pairs.
        source_length: int, S.
        target_length: int, T.

    >>> from t2t_lite.text.vocabulary import FlatIds
    >>> pairs = TokenPairs.from_flat(
    ...     FlatIds.from_lists([[5, 1], [6, 7, 1]]),
    ...     FlatIds.from_lists([[8, 1], [9, 1]]),
    ... )
    >>> source_ids, target_ids = pad_batch(pairs, np.array([1, 0]), 3, 2)
    >>> source_ids.tolist(), target_ids.tolist()
    ([[6, 7, 1], [5, 1, 0]], [[9, 1], [8, 1]])
    """
    source_ids_BS = _pad(
        pairs.source_ids, pairs.source_offsets, indices, length=source_length
    )
    target_ids_BT = _pad(
        pairs.target_ids, pairs.target_offsets, indices, length=target_length
    )
    if pairs.links is None:
        return source_ids_BS, target_ids_BT
    is_linked_BTS = pairs.links.matrices(indices, source_ids_BS, target_ids_BT)
    return source_ids_BS, target_ids_BT, is_linked_BTS


def _pad(ids, offsets, indices, length):
    start_B1 = offsets[indices][:, None]
    end_B1 = offsets[indices + 1][:, None]
    place_BL = start_B1 + np.arange(length)
    padded_BL = np.zeros(place_BL.shape, np.int32)
    is_token_BL = place_BL < end_B1
    padded_BL[is_token_BL] = ids[place_BL[is_token_BL]]
    return padded_BL
