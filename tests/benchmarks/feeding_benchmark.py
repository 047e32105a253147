"""Measures time and memory of the input pipeline alone, from text to batches.

    python tests/benchmarks/feeding_benchmark.py --source=EN --target=DE
    python tests/benchmarks/feeding_benchmark.py --synthetic_pairs=4500000

EN and DE are files or globs, as for bin/train. --synthetic_pairs takes made-up
text instead, with lines as long as those of news. Each time is printed with the
memory of the process. How full the padded batches of ten epochs are is printed,
too. Importing TensorFlow and learning the vocabulary come first, untimed.
"""

import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring
import numpy as np
from absl import flags

from t2t_lite import cli
from t2t_lite.errors import InputError
from t2t_lite.text import batching, learning, token_cache, token_files
from t2t_lite_data import text_files

FLAGS = flags.FLAGS
flags.DEFINE_string("source", None, "Text, as bin/train's --train_source.")
flags.DEFINE_string("target", None, "Its translations.")
flags.DEFINE_integer(
    "synthetic_pairs", None, "Made-up pairs instead.", lower_bound=1
)
flags.DEFINE_string("cache_dir", None, "Default: a temporary one.")
for name, default, what in (
    ("vocabulary_size", 8000, "Learned from the text."),
    ("tokens_per_batch", 25_000, "On each side."),
    ("num_buckets", 24, "Shapes."),
    ("max_length", 256, "Tokens on a side."),
    ("epochs", 3, "From the cache."),
):
    flags.DEFINE_integer(name, default, what, lower_bound=1)

_DISTINCT_LINES = 20_000
_VOCABULARY_PAIRS = 20_000  # What the vocabulary is learned from.
_FAR_STEP = 1_000_000
_MEGABYTE = 1_000_000


class Clock:
    """A clock that prints lines with the seconds since it was created."""

    def __init__(self):
        self.start, self.cpu_start = time.perf_counter(), time.process_time()

    def print_line(self, what, num_pairs=None):
        """Prints the time so far, the pairs per second, and the memory."""
        seconds = time.perf_counter() - self.start
        cpu_seconds = time.process_time() - self.cpu_start
        speed = f"{num_pairs / seconds:,.0f} pairs/s" if num_pairs else ""
        print(
            f"{what:40} {seconds:7.2f} s (CPU {cpu_seconds:7.2f})  {speed:18}"
            f"{memory_text()}",
            flush=True,
        )


def memory_text():
    """Returns the memory that the process has, and the most it has had.

    "own" is what it allocated; "mapped" is files, which the system may drop.
    """
    own, mapped, most = map(megabytes, ("RssAnon", "RssFile", "VmHWM"))
    return f"own {own:.0f}, mapped {mapped:.0f}, most {most:.0f} MB"


def megabytes(field):
    return measuring.memory_bytes(field) / _MEGABYTE


def synthetic_pairs(num_pairs):
    """Yields pairs of made-up lines whose lengths vary like those of news."""
    generator = np.random.default_rng(1)
    words = [
        "".join(map(chr, generator.integers(97, 123, length)))
        for length in generator.integers(2, 9, 5000)
    ]
    frequencies = 1 / np.arange(1, len(words) + 1)  # Zipf's law.
    frequencies /= frequencies.sum()
    lengths = generator.lognormal(2.9, 0.5, _DISTINCT_LINES)
    sources, targets = (
        [
            " ".join(generator.choice(words, max(1, int(n)), p=frequencies))
            for n in lengths * generator.lognormal(0.02, spread, len(lengths))
        ]
        for spread in (0, 0.18)
    )
    for start in range(0, num_pairs, 10_000):
        count = min(10_000, num_pairs - start)
        for n in generator.integers(0, _DISTINCT_LINES, count).tolist():
            yield sources[n], targets[n]


def pair_reader():
    """Returns a function that starts reading the pairs anew in each call."""
    given = [bool(FLAGS.source), bool(FLAGS.target)]
    if given != [not FLAGS.synthetic_pairs] * 2:
        raise InputError("give --source and --target, or --synthetic_pairs")
    if FLAGS.synthetic_pairs:
        return lambda: synthetic_pairs(FLAGS.synthetic_pairs)
    text_files.paired_files(FLAGS.source, FLAGS.target)  # Must exist.
    return lambda: text_files.pairs(FLAGS.source, FLAGS.target)


def learn_vocabulary(read_pairs):
    pairs = zip(read_pairs(), range(_VOCABULARY_PAIRS), strict=False)
    lines = [side for pair, _ in pairs for side in pair]
    return learning.learn(lines, "bpe", FLAGS.vocabulary_size)


class Feed:
    """Batches of a corpus, by way of the token cache."""

    def __init__(self, cache_dir, read_pairs, vocabulary):
        data_sha256 = token_files.hash_pairs(read_pairs())
        tokenizer = token_files.PairTokenizer(
            vocabulary, vocabulary.encode_flat, FLAGS.max_length
        )
        self.pairs, self.report = token_cache.shared_tokens(
            cache_dir, lambda: [read_pairs()], data_sha256, tokenizer=tokenizer
        )
        buckets = batching.make_buckets(
            self.pairs.source_lengths,
            self.pairs.target_lengths,
            FLAGS.tokens_per_batch,
            num_buckets=FLAGS.num_buckets,
        )
        self.plan = batching.BatchPlan(buckets, seed=1)

    def batches(self, first_step, num_pairs):
        """Yields batches until they hold `num_pairs` pairs."""
        dataset = batching.training_batches(
            self.pairs, self.plan, first_step=first_step, end_step=2 * _FAR_STEP
        )
        for source_ids, target_ids in dataset.as_numpy_iterator():
            yield source_ids, target_ids
            num_pairs -= len(source_ids)
            if num_pairs <= 0:
                return

    def time_epochs(self, clock, what, epochs):
        """Prints the time to the first and the last batch, and the memory."""
        own = [megabytes("RssAnon")]
        num_pairs, batches = epochs * self.report.kept, 0
        for batches, _ in enumerate(self.batches(0, num_pairs), start=1):
            if batches == 1:
                clock.print_line(f"{what}: first batch")
            if batches % 16 == 0:
                own.append(megabytes("RssAnon"))
        clock.print_line(
            f"{what}: {epochs} epochs, {batches} batches", num_pairs
        )
        own.append(megabytes("RssAnon"))
        print(
            f"  own memory: {own[0]:.0f} MB at the start, at most "
            f"{max(own):.0f}, at the end {own[-1]:.0f}"
        )

    def print_padding(self):
        """Prints how full the batches of ten epochs are."""
        lengths = self.pairs.source_lengths + self.pairs.target_lengths
        tokens = padded = longer = 0
        steps = self.plan.first_step(10)
        for step in range(steps):
            bucket, indices = self.plan.batch(step)
            S, T = bucket.source_length, bucket.target_length
            tokens += lengths[indices].sum()
            padded += bucket.batch_size * (S + T)
            longer += bucket.batch_size * max(S, T)
        print(
            f"  {len(self.plan.buckets)} shapes; padding "
            f"{1 - tokens / padded:.2%}; the longer side fills "
            f"{longer / steps / FLAGS.tokens_per_batch:.2%} of the limit"
        )


def measure(cache_dir, read_pairs, vocabulary):
    """Prints the times from text, from the cache, and of one late batch."""
    clock = Clock()
    clock.print_line("beginning")
    feed = Feed(cache_dir, read_pairs, vocabulary)
    feed.time_epochs(clock, "from text", 1)
    print(f"  {feed.report}")
    feed.print_padding()
    clock = Clock()
    feed = Feed(cache_dir, read_pairs, vocabulary)
    feed.time_epochs(clock, "from the cache", FLAGS.epochs)
    clock = Clock()
    feed = Feed(cache_dir, read_pairs, vocabulary)
    next(feed.batches(_FAR_STEP, 1))
    clock.print_line(f"from the cache: batch of step {_FAR_STEP:,}")


def main(_):
    read_pairs = pair_reader()
    if FLAGS.tokens_per_batch < FLAGS.max_length:
        raise InputError(
            f"tokens_per_batch must be at least max_length={FLAGS.max_length}"
        )
    machine.print_machine()
    import tensorflow as tf

    list(tf.data.Dataset.range(1))  # Finishes loading TensorFlow.
    vocabulary = learn_vocabulary(read_pairs)
    with tempfile.TemporaryDirectory() as folder:
        measure(FLAGS.cache_dir or folder, read_pairs, vocabulary)


if __name__ == "__main__":
    cli.run(sys.modules[__name__])
