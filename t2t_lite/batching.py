"""Token pairs on disk, and batches of pairs of like length from them.

Which pairs make the batch of a step follows from the lengths and (seed, step)
alone, so any step's batch can be had at once: resuming replays nothing.
"""

import bisect
import functools
import hashlib
import itertools
import json
import os
import pathlib
import shutil
from typing import NamedTuple

import numpy as np

from t2t_lite.errors import InputError

_LINES_AT_ONCE = 10_000
_BATCHES_AHEAD = 4


class TokenPairs(NamedTuple):
    """Token ids of sentence pairs, P of them, one after the other.

    Pair p is source_ids[source_offsets[p]:source_offsets[p + 1]], and so on;
    each sequence ends in EOS.
    """

    source_ids: np.ndarray  # int32, in memory or mapped
    source_offsets: np.ndarray  # int64 [P + 1]
    target_ids: np.ndarray
    target_offsets: np.ndarray

    @property
    def source_lengths(self):
        return np.diff(self.source_offsets)

    @property
    def target_lengths(self):
        return np.diff(self.target_offsets)


class CorpusReport(NamedTuple):
    """What became of a corpus' pairs when it was tokenized."""

    kept: int
    dropped_long: int  # more than max_length tokens on a side
    dropped_blank: int  # no text on a side
    data_sha256: str  # of the text
    vocabulary_sha256: str
    max_length: int

    def is_of(self, data_sha256, vocabulary_sha256, max_length):
        """Returns whether the tokens are those of this text, made this way."""
        received = (data_sha256, vocabulary_sha256, max_length)
        return self[3:] == received

    def __str__(self):
        return (
            f"{self.kept} pairs; dropped {self.dropped_long} over-long and "
            f"{self.dropped_blank} with a blank side"
        )


def hash_pairs(pairs):
    """Returns the hex sha256 of text pairs, which names a corpus' content."""
    digest = hashlib.sha256()
    for source, target in pairs:
        digest.update(f"{source}\n{target}\n".encode())
    return digest.hexdigest()


def tokenize_pairs(pairs, vocabulary, max_length, directory):
    """Writes the token ids of a corpus and returns its report.

    The directory appears once it is complete.

    Args:
        pairs: iterable of (source, target) str.
        vocabulary: Vocabulary.
        max_length: int; pairs with a longer side, EOS included, are dropped.
        directory: path that does not exist yet.

    Raises:
        InputError: no pair is left.
    """
    aside = pathlib.Path(f"{directory}.tmp-{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        report = _write_pairs(pairs, vocabulary, max_length, aside)
        (aside / "report.json").write_text(json.dumps(report._asdict()))
        os.rename(aside, directory)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return report


def _write_pairs(pairs, vocabulary, max_length, directory):
    digest = hashlib.sha256()
    seen = with_text = 0
    with (
        _SideWriter(directory / "source") as source,
        _SideWriter(directory / "target") as target,
    ):
        for chunk in _chunks(pairs, _LINES_AT_ONCE):
            digest.update("".join(f"{s}\n{t}\n" for s, t in chunk).encode())
            seen += len(chunk)
            chunk = [(s, t) for s, t in chunk if s.strip() and t.strip()]
            with_text += len(chunk)
            source_ids = vocabulary.encode_flat([s for s, _ in chunk])
            target_ids = vocabulary.encode_target_flat([t for _, t in chunk])
            fits = np.maximum(source_ids[1], target_ids[1]) <= max_length
            source.write(*source_ids, fits)
            target.write(*target_ids, fits)
    kept = source.count
    if not kept:
        raise InputError(
            f"no pair of the {seen} in the corpus has text on both sides and "
            f"at most max_length={max_length} tokens"
        )
    return CorpusReport(
        kept=kept,
        dropped_long=with_text - kept,
        dropped_blank=seen - with_text,
        data_sha256=digest.hexdigest(),
        vocabulary_sha256=vocabulary.sha256,
        max_length=max_length,
    )


def _chunks(items, size):
    items = iter(items)
    while chunk := list(itertools.islice(items, size)):
        yield chunk


class _SideWriter:
    """Writes one side's ids to PATH.ids, and at its end PATH.offsets.npy."""

    def __init__(self, path):
        self.path = path
        self.lengths = [np.zeros(0, np.int32)]

    def __enter__(self):
        self.file = open(f"{self.path}.ids", "wb")
        return self

    @property
    def count(self):
        return sum(map(len, self.lengths))

    def write(self, ids, lengths, is_kept):
        """Writes those sequences, one after the other in `ids`, to keep."""
        self.lengths.append(lengths[is_kept].astype(np.int32))
        self.file.write(ids[np.repeat(is_kept, lengths)].tobytes())

    def __exit__(self, *_):
        self.file.close()
        lengths = np.concatenate(self.lengths)
        np.save(f"{self.path}.offsets.npy", _offsets(lengths))


def _offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def load_pairs(directory):
    """Returns (TokenPairs mapped into memory, CorpusReport) of a directory."""
    directory = pathlib.Path(directory)
    arrays = [
        array
        for side in ("source", "target")
        for array in (
            np.memmap(directory / f"{side}.ids", np.int32, mode="r"),
            np.load(directory / f"{side}.offsets.npy", mmap_mode="r"),
        )
    ]
    report = json.loads((directory / "report.json").read_text())
    return TokenPairs(*arrays), CorpusReport(**report)


def pairs_in_memory(source_sequences, target_sequences):
    """Returns the TokenPairs of two equally long lists of lists of ids."""
    arrays = []
    for sequences in (source_sequences, target_sequences):
        ids = itertools.chain.from_iterable(sequences)
        arrays.append(np.fromiter(ids, np.int32))
        arrays.append(_offsets([len(s) for s in sequences]))
    return TokenPairs(*arrays)


class Bucket(NamedTuple):
    """Pairs that are batched together, and the one shape of their batches."""

    source_length: int  # S
    target_length: int  # T
    batch_size: int  # B
    pairs: np.ndarray  # int32 indices, ascending


def make_buckets(source_lengths, target_lengths, tokens_per_batch, num_buckets):
    """Returns at most `num_buckets` Buckets that between them hold all pairs.

    The lengths' plane is cut in two where that saves the most padding, then
    one of the halves is, and so on, as a regression tree is grown. A batch
    holds as many pairs as fit `tokens_per_batch` on its longer side. No cut
    leaves less than half a batch on a side, so that a bucket completes a batch
    at least every two epochs, unless the whole corpus is smaller than that.

    Args:
        source_lengths: int [P].
        target_lengths: int [P].
        tokens_per_batch: int, at least the largest length.
        num_buckets: int.
    """
    distinct, shape_of_pair = _distinct_shapes(source_lengths, target_lengths)
    boxes = [_Box(distinct, np.arange(len(distinct.counts)), tokens_per_batch)]
    while len(boxes) < num_buckets:
        best = max(boxes, key=lambda box: box.saving)
        if best.saving <= 0:
            break
        boxes.remove(best)
        boxes.extend(best.cut())
    box_of_shape = np.empty(len(distinct.counts), np.int32)
    for n, box in enumerate(boxes):
        box_of_shape[box.members] = n
    box_of_pair = box_of_shape[shape_of_pair]
    buckets = []
    for n, box in enumerate(boxes):
        S, T = (int(length) for length in box.shape)
        pairs = np.flatnonzero(box_of_pair == n).astype(np.int32)
        buckets.append(Bucket(S, T, tokens_per_batch // max(S, T), pairs))
    return sorted(buckets, key=lambda bucket: bucket[:2])


class _Shapes(NamedTuple):
    """The lengths that pairs have, N of them; far fewer than pairs."""

    lengths_N2: np.ndarray  # int64
    counts: np.ndarray  # int64 [N], of pairs


def _distinct_shapes(source_lengths, target_lengths):
    """Returns the _Shapes of pairs, and which is that of each: int64 [P]."""
    width = int(np.max(target_lengths)) + 1
    distinct, shape_of_pair, counts = np.unique(
        np.asarray(source_lengths) * width + target_lengths,
        return_inverse=True,
        return_counts=True,
    )
    lengths_N2 = np.stack(np.divmod(distinct, width), axis=1)
    return _Shapes(lengths_N2, counts), shape_of_pair


class _Box:
    """Shapes in one rectangle of the plane, and the best cut through it."""

    def __init__(self, distinct, members, tokens_per_batch):
        self.distinct, self.members = distinct, members
        self.tokens_per_batch = tokens_per_batch
        self.shape = distinct.lengths_N2[members].max(axis=0)
        cuts = [self._best_cut(axis) for axis in (0, 1)]
        self.saving, self.axis, self.at = max(cuts)

    def _best_cut(self, axis):
        """Returns (padding saved, axis, largest length of the lower half)."""
        lengths = self.distinct.lengths_N2[self.members]
        counts = self.distinct.counts[self.members]
        other = 1 - axis
        size = int(self.shape[axis]) + 1
        count = np.zeros(size, np.int64)
        np.add.at(count, lengths[:, axis], counts)
        longest_other = np.zeros(size, np.int64)
        np.maximum.at(longest_other, lengths[:, axis], lengths[:, other])
        # Of the pairs up to each length, and of those above it:
        below = np.cumsum(count)
        above = below[-1] - below
        other_below = np.maximum.accumulate(longest_other)
        other_above = np.maximum.accumulate(longest_other[::-1])[::-1]
        other_above = np.append(other_above[1:], 0)
        longest = np.maximum.accumulate(np.where(count, np.arange(size), 0))
        padded = below * (longest + other_below)
        padded += above * (self.shape[axis] + other_above)
        saving = below[-1] * self.shape.sum() - padded
        fills = self._fills(below, np.maximum(longest, other_below))
        fills &= self._fills(above, np.maximum(self.shape[axis], other_above))
        saving = np.where(fills, saving, 0)
        at = int(np.argmax(saving))
        return int(saving[at]), axis, at

    def _fills(self, count, longer_side):
        """Returns whether so many pairs are at least half a batch."""
        return 2 * count * np.maximum(longer_side, 1) >= self.tokens_per_batch

    def cut(self):
        lengths = self.distinct.lengths_N2[self.members, self.axis]
        is_below = lengths <= self.at
        return [
            _Box(self.distinct, self.members[half], self.tokens_per_batch)
            for half in (is_below, ~is_below)
        ]


class BatchPlan:
    """Which pairs are in the batch of each step, for ever.

    Each bucket's pairs come in a new order each epoch, one epoch after the
    other in one endless stream that is cut into full batches: what an epoch
    leaves over opens the next one's first batch. The batches that an epoch
    completes come in a random order.

    Args:
        buckets: list of Bucket.
        seed: int.
    """

    def __init__(self, buckets, seed):
        self.buckets, self.seed = buckets, seed
        self._order = functools.lru_cache(2 * len(buckets))(self._new_order)
        self._epoch = functools.lru_cache(2)(self._new_epoch)

    def first_step(self, epoch):
        """Returns the first step of an epoch: all batches of those before."""
        return sum(
            epoch * len(bucket.pairs) // bucket.batch_size
            for bucket in self.buckets
        )

    def epoch_of(self, step):
        """Returns the epoch that completes the batch of `step`."""
        longest = max(b.batch_size for b in self.buckets) * (step + 2)
        epochs = range(longest + 1)
        return bisect.bisect_right(epochs, step, key=self.first_step) - 1

    def batch(self, step):
        """Returns (Bucket, int32 [B] indices of its pairs) of a step from 0."""
        epoch = self.epoch_of(step)
        n, k = self._epoch(epoch)[step - self.first_step(epoch)]
        bucket = self.buckets[n]
        places = np.arange(k * bucket.batch_size, (k + 1) * bucket.batch_size)
        epochs, places = np.divmod(places, len(bucket.pairs))
        orders = [
            self._order(int(e), n)[places[epochs == e]]
            for e in np.unique(epochs)
        ]
        return bucket, np.concatenate(orders)

    def _new_epoch(self, epoch):
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

    def _new_order(self, epoch, n):
        generator = np.random.default_rng((self.seed, epoch, n))
        return generator.permutation(self.buckets[n].pairs)


def training_batches(pairs, plan, first_step, last_step):
    """Returns the tf.data.Dataset of the batches of some steps, in order.

    Args:
        pairs: TokenPairs.
        plan: BatchPlan.
        first_step: int, counted from 0.
        last_step: int, the first step that is left out.

    Returns:
        Dataset of (int32 [B, S], int32 [B, T]).
    """
    import tensorflow as tf

    def load(step):
        bucket, indices = plan.batch(int(step))
        return pad_batch(
            pairs, indices, bucket.source_length, bucket.target_length
        )

    def load_in_graph(step):
        batch = tf.numpy_function(
            load, [step], [tf.int32, tf.int32], stateful=False
        )
        return tuple(tf.ensure_shape(ids, [None, None]) for ids in batch)

    steps = tf.data.Dataset.range(first_step, last_step)
    # There is nothing to tune, and the thread that would tune it makes the end
    # of an iteration wait for it, up to a minute.
    options = tf.data.Options()
    options.autotune.enabled = False
    batches = steps.map(load_in_graph).prefetch(_BATCHES_AHEAD)
    return batches.with_options(options)


def pad_batch(pairs, indices, source_length, target_length):
    """Returns the ids of some pairs as (int32 [B, S], int32 [B, T]).

    >>> pairs = pairs_in_memory([[5, 1], [6, 7, 1]], [[8, 1], [9, 1]])
    >>> pad_batch(pairs, np.array([1, 0]), 3, 2)[0].tolist()
    [[6, 7, 1], [5, 1, 0]]
    """
    return (
        _pad(pairs.source_ids, pairs.source_offsets, indices, source_length),
        _pad(pairs.target_ids, pairs.target_offsets, indices, target_length),
    )


def _pad(ids, offsets, indices, length):
    start_B1 = offsets[indices][:, None]
    end_B1 = offsets[indices + 1][:, None]
    place_BL = start_B1 + np.arange(length)
    padded_BL = np.zeros(place_BL.shape, np.int32)
    is_token_BL = place_BL < end_B1
    padded_BL[is_token_BL] = ids[place_BL[is_token_BL]]
    return padded_BL
