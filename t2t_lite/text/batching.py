"""Token pairs on disk, and batches of pairs of like length from them.

Which pairs make the batch of a step follows from the lengths and (seed, step)
alone, so any step's batch can be had at once: resuming replays nothing.
"""

import bisect
import dataclasses
import functools
import hashlib
import itertools
import json
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.text.vocabulary import FlatIds, Vocabulary

_LINES_AT_ONCE = 10_000
_BATCHES_AHEAD = 4
_LEAST_OF_A_BATCH = 1 / 4  # That a bucket holds.
_MOST_SIZES = 256  # Of one side, that shapes are made of.


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


class TokensKey(NamedTuple):
    """All that decides the token ids of a corpus."""

    data_sha256: str  # of the text
    vocabulary_sha256: str
    max_length: int


@dataclasses.dataclass(frozen=True)
class PairTokenizer:
    """How the pairs of a corpus become token ids.

    vocabulary: Vocabulary, which encodes the sources.
    encode_targets: from list of str to FlatIds, that of the task.
    max_length: int; pairs with a longer side, EOS included, are dropped.
    """

    vocabulary: Vocabulary
    encode_targets: Callable[[list[str]], FlatIds]
    max_length: int

    def encode(self, pairs):
        """Returns the FlatIds of the sources and those of the targets."""
        sources, targets = ([pair[n] for pair in pairs] for n in (0, 1))
        return (
            self.vocabulary.encode_flat(sources),
            self.encode_targets(targets),
        )

    def key(self, data_sha256):
        """Returns the TokensKey of the text with this hash."""
        return TokensKey(data_sha256, self.vocabulary.sha256, self.max_length)


class CorpusReport(NamedTuple):
    """What became of a corpus' pairs when it was tokenized."""

    kept: int
    dropped_long: int  # more than max_length tokens on a side
    dropped_blank: int  # no text on a side
    data_sha256: str  # of the text
    vocabulary_sha256: str
    max_length: int

    @property
    def key(self):
        """TokensKey of these tokens."""
        return TokensKey(
            self.data_sha256, self.vocabulary_sha256, self.max_length
        )

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


def tokenize_pairs(pairs, tokenizer, directory):
    """Writes the token ids of a corpus and returns its report.

    The directory appears once it is complete.

    Args:
        pairs: iterable of (source, target) str.
        tokenizer: PairTokenizer.
        directory: path that does not exist yet.

    Raises:
        InputError: no pair is left.
    """
    with files.atomic_folder(directory) as folder:
        return write_pairs(pairs, tokenizer, folder)


def write_pairs(pairs, tokenizer, directory):
    """Writes the files of `tokenize_pairs` into a folder that is there."""
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
            source_ids, target_ids = tokenizer.encode(chunk)
            longer_sides = np.maximum(source_ids.lengths, target_ids.lengths)
            fits = longer_sides <= tokenizer.max_length
            source.write(source_ids, fits)
            target.write(target_ids, fits)
    kept = source.count
    if not kept:
        raise InputError(
            f"no pair of the {seen} in the corpus has text on both sides and "
            f"at most max_length={tokenizer.max_length} tokens"
        )
    report = CorpusReport(
        kept=kept,
        dropped_long=with_text - kept,
        dropped_blank=seen - with_text,
        **tokenizer.key(digest.hexdigest())._asdict(),
    )
    (directory / "report.json").write_text(json.dumps(report._asdict()))
    return report


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

    def write(self, sequences, is_kept):
        """Writes those of the FlatIds that are to be kept."""
        ids, lengths = sequences
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


def encode_pairs(pairs, vocabulary, encode_targets):
    """Returns the TokenPairs of text pairs, in memory, all of them kept.

    Args:
        pairs: iterable of (source, target) str.
        vocabulary: Vocabulary, which encodes the sources.
        encode_targets: from list of str to FlatIds, that of the task.
    """
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    source, target = vocabulary.encode_flat(sources), encode_targets(targets)
    return TokenPairs(
        source_ids=source.ids,
        source_offsets=_offsets(source.lengths),
        target_ids=target.ids,
        target_offsets=_offsets(target.lengths),
    )


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


def length_ladder(max_length: int) -> list[int]:
    """Returns the lengths that sequences are padded to where few are wanted.

    >>> length_ladder(100)
    [8, 16, 24, 32, 48, 64, 96, 100]
    """
    ladder = [8, 16, 24, 32]
    while ladder[-1] < max_length:
        ladder.append(ladder[-2] * 2)
    return [*(length for length in ladder if length < max_length), max_length]


def make_buckets(source_lengths, target_lengths, tokens_per_batch, num_buckets):
    """Returns at most `num_buckets` Buckets that between them hold all pairs.

    A pair goes to the smallest shape that it fits, and a batch holds as many
    pairs as fit `tokens_per_batch` on its longer side. The first shape fits
    all; each further one is put where it saves the most padding beside those
    that there are. Then each but the first is moved to where it saves the most
    beside all the others, until none moves. No bucket is left with less than a
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
    grid = _Grid(source_sizes, target_sizes, counts_ST, tokens_per_batch)
    shapes = grid.shapes(num_buckets)
    bucket_of_pair = grid.assigned(shapes).ravel()[cell_of_pair]
    buckets = []
    for n, (s, t) in enumerate(shapes):
        pairs = np.flatnonzero(bucket_of_pair == n).astype(np.int32)
        batch_size = tokens_per_batch // max(source_sizes[s], target_sizes[t])
        # The longest of its pairs may be shorter than the shape.
        S = int(source_lengths[pairs].max())
        T = int(target_lengths[pairs].max())
        buckets.append(Bucket(S, T, int(batch_size), pairs))
    return sorted(buckets, key=lambda bucket: bucket[:2])


def _ranked(lengths):
    """Returns sizes, and for each length the place of the least it fits in.

    They are the lengths that occur, or so many of these, evenly spread, that
    the search over pairs of sizes stays short.
    """
    sizes = np.flatnonzero(np.bincount(lengths))
    if len(sizes) > _MOST_SIZES:
        sizes = sizes[np.linspace(0, len(sizes) - 1, _MOST_SIZES).astype(int)]
    return sizes, np.searchsorted(sizes, lengths)


class _Grid:
    """The distinct lengths of pairs, and how many pairs have which.

    Here S and T count distinct lengths, and a shape is a place (s, t) among
    them: it fits the pairs up to there.

    Args:
        source_sizes: int [S], ascending.
        target_sizes: int [T], ascending.
        counts_ST: int [S, T], of pairs.
        tokens_per_batch: int.
    """

    def __init__(self, source_sizes, target_sizes, counts_ST, tokens_per_batch):
        sizes = source_sizes[:, None], target_sizes[None, :]
        self.tokens_ST = sizes[0] + sizes[1]
        # Shapes by size; of two with as many tokens, one has the smaller s.
        S = len(source_sizes)
        self.rank_ST = self.tokens_ST * S + np.arange(S)[:, None]
        self.batch_sizes_ST = tokens_per_batch / np.maximum(*sizes)
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
        """Returns at most so many shapes that leave little padding."""
        shapes = [tuple(n - 1 for n in self.counts_ST.shape)]
        while len(shapes) < num_shapes:
            saving, shape = self._best_beside(shapes)
            if not saving:
                break
            shapes.append(shape)
        has_moved = True
        while has_moved:
            has_moved = False
            for n in range(1, len(shapes)):
                others = shapes[:n] + shapes[n + 1 :]
                saving, shape = self._best_beside(others)
                moved = [*shapes[:n], shape, *shapes[n + 1 :]]
                if saving and self._padded(moved) < self._padded(shapes):
                    shapes, has_moved = moved, True
        return shapes

    def _padded(self, shapes):
        """Returns the tokens of all pairs, padding included."""
        tokens = np.array([self.tokens_ST[shape] for shape in shapes])
        return (tokens[self.assigned(shapes)] * self.counts_ST).sum()

    def _best_beside(self, shapes):
        """Returns (padding saved, shape) of the best shape to add; 0 if none.

        For each place at once: how many pairs of each bucket would come over,
        what each would save, and whether enough come and enough stay.
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
                >= _LEAST_OF_A_BATCH * self.batch_sizes_ST[shape]
            )
        is_allowed_ST &= coming_ST >= _LEAST_OF_A_BATCH * self.batch_sizes_ST
        saving_ST *= is_allowed_ST
        best = np.unravel_index(np.argmax(saving_ST), saving_ST.shape)
        return int(saving_ST[best]), tuple(map(int, best))


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
