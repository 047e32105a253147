"""The shapes of batches: sequences of similar length go together.

All of it happens in the graph, so that a served model batches as this package
does.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.hardware import Hardware
from t2t_lite.text.batching import length_ladder

# The rows of batches whose shapes are fixed. A larger batch has a power of 2 of
# them, and none is padding.
_PADDED_SIZES = (1, 8, 64, 512)
_SMALLEST_FULL_SIZE = 2048
_ALWAYS_TOGETHER = 32  # Sequences up to this length share any batch.
_LARGEST_NARROW_BEAM = 8
_TOKENS_PER_CORE = 1024  # More at a time was no faster when measured.
# What the cache and the logits of one source token take, generously.
_BYTES_PER_TOKEN = 2**20
_TOKENS_PER_ROW = 16
# An export may be served anywhere.
ANYWHERE = Hardware("CPU", memory_bytes=4 * 2**30, num_cores=2)


class Capacity(NamedTuple):
    """How much one batch may hold."""

    tokens: int  # of one side, padding included
    rows: int
    num_parts: int  # computed side by side, where shapes are free


def capacity(
    hardware: Hardware,
    beam_width: int = 1,
    tokens_at_once: int | None = None,
    num_models: int = 1,
) -> Capacity:
    """Returns how much one batch of a search may hold.

    It is what memory holds; on a CPU, at most what keeps its cores busy.

    Args:
        hardware: Hardware that runs the search.
        beam_width: int; wide beams take fewer rows at once.
        tokens_at_once: int, source tokens; None for as many as suit the
            hardware and the beam.
        num_models: int, how many search as one, and share the memory.

    >>> capacity(ANYWHERE)
    Capacity(tokens=2048, rows=128, num_parts=2)
    >>> capacity(ANYWHERE, beam_width=20)
    Capacity(tokens=384, rows=8, num_parts=2)
    >>> capacity(Hardware("CPU", 1e9, num_cores=2))
    Capacity(tokens=953, rows=59, num_parts=2)
    >>> capacity(Hardware("GPU", 80e9, num_cores=16))
    Capacity(tokens=76293, rows=4768, num_parts=1)
    """
    memory_bytes = int(hardware.memory_bytes) // num_models
    tokens = memory_bytes // _BYTES_PER_TOKEN
    if hardware.kind == "CPU":
        tokens = min(tokens, _TOKENS_PER_CORE * hardware.num_parts)
    tokens_per_row = _TOKENS_PER_ROW
    if beam_width > _LARGEST_NARROW_BEAM:
        tokens, tokens_per_row = tokens * 3 // 16, tokens_per_row * 3
    tokens = tokens_at_once or max(1, tokens)
    rows = max(1, tokens // tokens_per_row)
    return Capacity(tokens, rows, hardware.num_parts)


_NARROW_ANYWHERE = capacity(ANYWHERE)


class _BatchLimits(NamedTuple):
    """What goes into the next batch, as int32 scalars."""

    length: tf.Tensor  # what its sequences are padded to
    min_length: tf.Tensor  # of its shortest sequence
    max_rows: tf.Tensor


def batch_shapes(
    max_length: int, capacity: Capacity = _NARROW_ANYWHERE
) -> list[tuple[int, int]]:
    """Returns the (rows, length) that batches are padded to for XLA.

    There are few, because XLA compiles a program for each; a step of the ladder
    of lengths wastes at most a third.

    Args:
        max_length: int, tokens of the longest sequence there can be.
        capacity: Capacity.

    >>> batch_shapes(12)
    [(1, 8), (8, 8), (64, 8), (1, 12), (8, 12), (64, 12)]
    """
    return [
        (rows, length)
        for length in length_ladder(max_length)
        for rows in _batch_sizes(length, capacity)
    ]


def batches(
    lengths_N: np.ndarray,
    *,
    max_length: int,
    fixed_shapes: bool,
    capacity: Capacity = _NARROW_ANYWHERE,
) -> Iterator[np.ndarray]:
    """Yields the rows of each batch that `run_in_batches` runs.

    The arguments are those of `run_in_batches`.

    >>> lengths_N = np.array([2, 40, 0, 3, 39])
    >>> [rows_R.tolist() for rows_R in batches(
    ...     lengths_N, max_length=50, fixed_shapes=False)]
    [[1, 4], [3, 0]]
    """
    order_N = np.argsort(-lengths_N, kind="stable")
    rest = order_N[: np.count_nonzero(lengths_N)]
    while len(rest):
        with tf.device("CPU:0"):
            longest = tf.constant(lengths_N[rest[0]], tf.int32)
            limits = _limits(
                longest,
                max_length,
                fixed_shapes=fixed_shapes,
                capacity=capacity,
            )
        rows_R = rest[: int(limits.max_rows)]
        rows_R = rows_R[lengths_N[rows_R] >= int(limits.min_length)]
        if fixed_shapes:
            with tf.device("CPU:0"):
                rows_R = np.asarray(_rows_at_once(rows_R, capacity))
        yield rows_R
        rest = rest[len(rows_R) :]


def run_in_batches(
    run: Callable,
    lengths_N: tf.Tensor,
    defaults: tuple[tf.Tensor, ...],
    *,
    max_length: int,
    fixed_shapes: bool,
    capacity: Capacity = _NARROW_ANYWHERE,
) -> tuple[tf.Tensor, ...]:
    """Returns what `run` computes for N sequences, batch by batch.

    Sequences of similar length, or short ones, go together.

    Args:
        run: a function (int32 rows_R, int32 num_rows, int32 length) to the
            results of the sequences rows_R, padded to [num_rows, length];
            rows_R may be empty.
        lengths_N: int32, how long each sequence is; those of length 0 are left
            out.
        defaults: tuple of tensors [N, ...], the results of those left out.
        max_length: int, the largest length there can be.
        fixed_shapes: bool, whether [num_rows, length] is one of `batch_shapes`.
            If not, it is no larger than the sequences need, and each batch is
            run in `num_parts` parts.
        capacity: Capacity.

    Returns:
        tuple of tensors like `defaults`.

    Raises:
        tf.errors.InvalidArgumentError: a sequence is longer than max_length.
    """
    tf.debugging.assert_less_equal(
        lengths_N,
        max_length,
        f"sequences must have at most {max_length} tokens",
    )
    # Parts run side by side: one computes while another prepares.
    num_parts = 1 if fixed_shapes else capacity.num_parts
    order_N = tf.argsort(lengths_N, direction="DESCENDING", stable=True)
    count = tf.math.count_nonzero(lengths_N, dtype=tf.int32)

    def run_one_batch(start, results):
        longest = lengths_N[order_N[start]]
        limits = _limits(
            longest, max_length, fixed_shapes=fixed_shapes, capacity=capacity
        )
        rows_R = order_N[start : tf.minimum(start + limits.max_rows, count)]
        fits_R = tf.gather(lengths_N, rows_R) >= limits.min_length
        rows_R = tf.boolean_mask(rows_R, fits_R)
        if fixed_shapes:
            rows_R = _rows_at_once(rows_R, capacity)
        for n in range(num_parts):
            part_R = rows_R[n::num_parts]
            num_rows = tf.size(part_R)
            if fixed_shapes:
                num_rows = _next_batch_size(num_rows, capacity)
            found = run(part_R, num_rows, limits.length)
            results = _with_rows(results, part_R, found)
        return start + tf.size(rows_R), results

    _, results = tf.while_loop(
        lambda start, _: start < count,
        run_one_batch,
        (tf.constant(0), tuple(defaults)),
        parallel_iterations=1,
    )
    return results


def take_rows(
    ids_NS: tf.Tensor, rows_R: tf.Tensor, num_rows: tf.Tensor, length: tf.Tensor
) -> tf.Tensor:
    """Returns int32 [num_rows, length, ...]: some rows, padded with 0.

    >>> ids_NS = [[5, 6, 1, 0], [7, 1, 0, 0], [8, 9, 9, 1]]
    >>> take_rows(ids_NS, [1, 0], num_rows=3, length=3).numpy().tolist()
    [[7, 1, 0], [5, 6, 1], [0, 0, 0]]
    """
    ids_RS = tf.gather(ids_NS, rows_R)[:, :length]
    missing = length - tf.shape(ids_RS)[1]
    added = [[0, num_rows - tf.size(rows_R)], [0, missing]]
    others = [[0, 0]] * (ids_RS.shape.rank - 2)
    return tf.pad(ids_RS, added + others)


def _batch_sizes(length, capacity):
    """Returns the numbers of rows that a batch of that length may have."""
    max_rows = min(capacity.rows, max(1, capacity.tokens // length))
    sizes = [*_PADDED_SIZES, *_full_sizes(capacity)]
    return [rows for rows in sizes if rows <= max_rows]


def _full_sizes(capacity):
    """Returns the numbers of rows of batches that are never padded."""
    count = (capacity.rows // _SMALLEST_FULL_SIZE).bit_length()
    return [_SMALLEST_FULL_SIZE * 2**n for n in range(count)]


def _rows_at_once(rows_R, capacity):
    """Returns the rows that make the next batch.

    They are all of them if a padded batch holds them, or else as many as fill
    the largest batch that they can fill.
    """
    full_sizes = _full_sizes(capacity)
    if not full_sizes:
        return rows_R
    sizes = tf.constant([max(_PADDED_SIZES), *full_sizes])
    place = tf.searchsorted(sizes, tf.shape(rows_R), side="right")[0]
    return rows_R[: sizes[tf.maximum(place - 1, 0)]]


def _next_batch_size(num_rows, capacity):
    """Returns the smallest size of a batch that holds this many rows."""
    sizes = tf.constant([*_PADDED_SIZES, *_full_sizes(capacity)])
    return sizes[tf.searchsorted(sizes, num_rows[None])[0]]


def _limits(longest, max_length, fixed_shapes, capacity):
    """Returns the _BatchLimits, given the greatest length left, int32 []."""
    if fixed_shapes:
        return _limits_on_ladder(longest, capacity, length_ladder(max_length))
    return _limits_as_needed(longest, capacity)


def _limits_on_ladder(longest, capacity, ladder):
    """Returns what `_limits` does, for shapes that are fixed."""
    step = tf.searchsorted(ladder, longest[None])[0]
    min_lengths = [1, *(length + 1 for length in ladder[:-1])]
    max_rows = [max(_batch_sizes(length, capacity)) for length in ladder]
    return _BatchLimits(
        length=tf.constant(ladder)[step],
        min_length=tf.constant(min_lengths)[step],
        max_rows=tf.constant(max_rows)[step],
    )


def _limits_as_needed(longest, capacity):
    """Returns what `_limits` does, for shapes that are free."""
    shortest = tf.where(longest <= _ALWAYS_TOGETHER, 1, longest // 2)
    max_rows = tf.clip_by_value(capacity.tokens // longest, 1, capacity.rows)
    return _BatchLimits(longest, shortest, max_rows)


def _with_rows(results, rows_R, found):
    """Returns `results` with the first rows of `found` in places rows_R."""
    return tuple(
        tf.tensor_scatter_nd_update(
            result, rows_R[:, None], rows[: tf.size(rows_R)]
        )
        for result, rows in zip(results, found, strict=True)
    )
