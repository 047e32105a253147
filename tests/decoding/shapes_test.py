"""Batches hold every sequence exactly once, in few shapes."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding import shapes
from t2t_lite.hardware import GIB, Hardware

MAX_LENGTHS = [
    5,
    23,
    3000,
    *(pytest.param(n, marks=pytest.mark.slow) for n in (8, 32, 100)),
]


def run_squares(lengths, max_length, fixed_shapes, capacity=None):
    """Returns the results of a `run` that squares rows, and its batches."""
    batches = []

    def run(rows_R, num_rows, length):
        batches.append((rows_R.numpy().tolist(), int(num_rows), int(length)))
        squares = tf.pad(rows_R**2, [[0, num_rows - tf.size(rows_R)]])
        return [squares, tf.stack([squares, squares + 1], axis=1)]

    blank = tf.fill([len(lengths)], -7)
    results = shapes.run_in_batches(
        run,
        tf.constant(lengths, tf.int32),
        (blank, tf.stack([blank, blank], axis=1)),
        max_length=max_length,
        fixed_shapes=fixed_shapes,
        capacity=capacity or shapes.capacity(shapes.ANYWHERE),
    )
    return [result.numpy() for result in results], batches


@pytest.mark.parametrize("beam_width", [8, 9])
@pytest.mark.parametrize("fixed_shapes", [True, False])
@pytest.mark.parametrize("max_length", MAX_LENGTHS)
def test_batches_hold_every_sequence_in_shapes_that_fit(
    max_length, fixed_shapes, beam_width
):
    generator = np.random.default_rng(max_length)
    capacity = shapes.capacity(shapes.ANYWHERE, beam_width)
    allowed = shapes.batch_shapes(max_length, capacity)
    most_tokens, most_rows = (2048, 128) if beam_width < 9 else (384, 8)
    # If lines are long or the beam is wide, a few fill many batches.
    many = 30 if max_length > 100 or beam_width > 8 else 150
    for num_lines in (1, 2, 7, many):
        lengths = generator.integers(2, max_length + 1, num_lines)
        (squares, _), batches = run_squares(
            lengths, max_length, fixed_shapes, capacity=capacity
        )
        assert squares.tolist() == [n**2 for n in range(num_lines)]
        for rows, num_rows, length in batches:
            assert len(rows) <= num_rows
            assert rows or not fixed_shapes
            assert max(lengths[rows], default=0) <= length <= max_length
            shortest = min(lengths[rows], default=length)
            if fixed_shapes:
                # At most half as long again as the shortest, plus 8 tokens.
                assert length <= max(8, shortest * 1.5 + 8)
                assert (num_rows, length) in allowed
            else:
                assert length <= max(32, shortest * 2 + 1)
                assert num_rows == len(rows)
        sizes = [(num_rows, length) for _, num_rows, length in batches]
        if not fixed_shapes:  # The halves of a batch run side by side.
            halves = list(zip(sizes[::2], sizes[1::2], strict=True))
            assert all(a - b in (0, 1) for (a, _), (b, _) in halves)
            assert all(a == b for (_, a), (_, b) in halves)
            longest = [max(lengths[rows]) for rows, *_ in batches[::2]]
            assert [length for (_, length), _ in halves] == longest
            sizes = [(a + b, length) for (a, length), (b, _) in halves]
        for num_rows, length in sizes:
            assert num_rows <= most_rows
            assert num_rows == 1 or num_rows * length <= most_tokens
        found = sorted(row for rows, *_ in batches for row in rows)
        assert found == list(range(num_lines))


@pytest.mark.parametrize("fixed_shapes", [True, False])
@pytest.mark.parametrize("max_length", MAX_LENGTHS)
def test_batches_that_are_planned_are_those_that_are_run(
    max_length, fixed_shapes
):
    lengths = np.random.default_rng(1).integers(0, max_length + 1, 60)
    capacity = shapes.capacity(shapes.ANYWHERE)._replace(num_parts=1)
    _, batches = run_squares(
        lengths, max_length, fixed_shapes, capacity=capacity
    )
    planned = shapes.batches(
        lengths,
        max_length=max_length,
        fixed_shapes=fixed_shapes,
        capacity=capacity,
    )
    found = [rows_R.tolist() for rows_R in planned]
    assert found == [rows for rows, *_ in batches]


@pytest.mark.parametrize("fixed_shapes", [True, False])
def test_results_are_in_the_places_of_their_sequences(fixed_shapes):
    (squares, pairs), _ = run_squares([3, 9, 4, 20, 4], 23, fixed_shapes)
    assert squares.tolist() == [0, 1, 4, 9, 16]
    assert pairs.tolist() == [[0, 1], [1, 2], [4, 5], [9, 10], [16, 17]]


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([32, 2], [2]),
        ([33, 15], [1, 1]),
        ([33, 16], [2]),
        ([5] * 300, [128, 128, 44]),
        ([32] * 65, [64, 1]),
    ],
)
def test_batches_are_full_where_shapes_are_free(lengths, sizes):
    _, batches = run_squares(lengths, 100, False)
    halves = [len(rows) for rows, *_ in batches]
    pairs = zip(halves[::2], halves[1::2], strict=True)
    assert [a + b for a, b in pairs] == sizes


def test_short_sequences_share_a_batch_where_shapes_are_free():
    _, batches = run_squares([3, 100, 9, 32, 50, 49], 100, False)
    assert batches == [
        ([1], 1, 100),
        ([4], 1, 100),
        ([5], 1, 49),
        ([3], 1, 49),
        ([2], 1, 9),
        ([0], 1, 9),
    ]


@pytest.mark.parametrize(
    ("fixed_shapes", "expected"),
    [(True, [([2, 0], 8, 8)]), (False, [([2], 1, 4), ([0], 1, 4)])],
)
def test_what_is_empty_is_left_out(fixed_shapes, expected):
    (squares, _), batches = run_squares([3, 0, 4, 0], 23, fixed_shapes)
    assert squares.tolist() == [0, -7, 4, -7]
    assert batches == expected


@pytest.mark.parametrize("fixed_shapes", [True, False])
def test_what_is_longer_than_it_may_be_is_an_error(fixed_shapes):
    run_squares([3, 23], 23, fixed_shapes)
    expected = "at most 23 tokens"
    with pytest.raises(tf.errors.InvalidArgumentError, match=expected):
        run_squares([3, 24], 23, fixed_shapes)


@pytest.mark.parametrize("fixed_shapes", [True, False])
def test_nothing_makes_no_batch(fixed_shapes):
    (squares, pairs), batches = run_squares([], 23, fixed_shapes)
    assert squares.shape == (0,)
    assert pairs.shape == (0, 2)
    assert batches == []


@pytest.mark.parametrize("max_length", MAX_LENGTHS)
def test_shapes_are_few_and_hold_the_largest_length(max_length):
    found = shapes.batch_shapes(max_length)
    assert len(set(found)) == len(found) <= 3 * 16
    assert max(length for _, length in found) == max_length
    assert {rows for rows, _ in found} <= {1, 8, 64}


def test_rows_are_filled_up_with_padding():
    ids_NS = tf.constant([[5, 1, 0], [6, 7, 1], [1, 0, 0]])
    rows = shapes.take_rows(ids_NS, tf.constant([1, 0]), num_rows=3, length=5)
    assert rows.numpy().tolist() == [[6, 7, 1, 0, 0], [5, 1, 0, 0, 0], [0] * 5]
    assert shapes.take_rows(
        ids_NS, tf.constant([2]), num_rows=1, length=2
    ).numpy().tolist() == [[1, 0]]


@pytest.mark.parametrize("num_parts", [1, 3, 4])
def test_each_batch_runs_in_as_many_parts_as_there_are(num_parts):
    capacity = shapes.Capacity(tokens=100, rows=10, num_parts=num_parts)
    (squares, _), batches = run_squares(
        [5] * 13, 23, fixed_shapes=False, capacity=capacity
    )
    assert squares.tolist() == [n**2 for n in range(13)]
    assert len(batches) == 2 * num_parts
    sizes = [len(rows) for rows, *_ in batches]
    assert sum(sizes[:num_parts]) == 10
    assert max(sizes[:num_parts]) - min(sizes[:num_parts]) <= 1


@pytest.mark.parametrize(
    ("kind", "gigabytes", "num_cores", "expected"),
    [
        ("CPU", 3, 2, (2048, 128, 2)),
        ("CPU", 2, 1, (1024, 64, 1)),
        ("CPU", 1000, 8, (8192, 512, 8)),
        ("CPU", 1000, 64, (16_384, 1024, 16)),
        ("CPU", 1, 2, (953, 59, 2)),  # Memory is short.
        ("CPU", 0, 2, (1, 1, 2)),
        ("GPU", 8, 16, (7629, 476, 1)),
        ("GPU", 16, 16, (15_258, 953, 1)),
        ("GPU", 80, 16, (76_293, 4768, 1)),
        ("GPU", 139, 16, (132_560, 8285, 1)),
    ],
)
def test_a_batch_holds_what_suits_the_hardware(
    kind, gigabytes, num_cores, expected
):
    hardware = Hardware(kind, gigabytes * 1e9, num_cores)
    assert shapes.capacity(hardware) == expected


@pytest.mark.parametrize(
    ("kind", "num_models", "expected"),
    [
        ("GPU", 1, (7629, 476)),
        ("GPU", 4, (1907, 119)),
        ("CPU", 1, (2048, 128)),
        ("CPU", 3, (2048, 128)),
        ("CPU", 4, (1907, 119)),
    ],
)
def test_models_that_search_as_one_share_the_memory(kind, num_models, expected):
    hardware = Hardware(kind, 8e9, num_cores=2)
    found = shapes.capacity(hardware, num_models=num_models)
    assert found[:2] == expected


def test_batches_do_not_depend_on_how_much_memory_is_to_spare():
    for beam_width in (4, 20):
        found = {
            shapes.capacity(Hardware("CPU", gib * GIB, 4), beam_width)
            for gib in (4, 4.7, 64)
        }
        assert len(found) == 1


@pytest.mark.parametrize("kind", ["CPU", "GPU"])
def test_tokens_that_are_given_take_precedence(kind):
    hardware = Hardware(kind, 80e9, num_cores=16)
    assert shapes.capacity(hardware, 4, tokens_at_once=320)[:2] == (320, 20)


def test_a_gpu_is_given_shapes_of_many_rows():
    gpu = shapes.capacity(Hardware("GPU", 80e9, num_cores=16))
    assert (512, 32) in shapes.batch_shapes(32, gpu)


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        (shapes.ANYWHERE, [1, 8, 64]),
        (Hardware("CPU", 1000e9, num_cores=64), [1, 8, 64, 512]),
        (Hardware("GPU", 8e9, num_cores=16), [1, 8, 64]),
        (Hardware("GPU", 16e9, num_cores=16), [1, 8, 64, 512]),
        (Hardware("GPU", 80e9, num_cores=16), [1, 8, 64, 512, 2048, 4096]),
        (
            Hardware("GPU", 300e9, num_cores=16),
            [1, 8, 64, 512, 2048, 4096, 8192, 16_384],
        ),
    ],
)
def test_a_batch_has_at_most_the_rows_that_memory_holds(hardware, expected):
    found = shapes.batch_shapes(8, shapes.capacity(hardware))
    assert [rows for rows, _ in found] == expected


@pytest.mark.parametrize(
    ("num_sequences", "sizes"),
    [
        (511, [512]),
        (513, [512, 1]),
        (1600, [512, 512, 512, 64]),
        (2047, [512, 512, 512, 512]),
        (2048, [2048]),
        (2060, [2048, 64]),
        (6700, [4096, 2048, 512, 64]),
    ],
)
def test_batches_of_very_many_rows_have_no_padding(num_sequences, sizes):
    gpu = shapes.capacity(Hardware("GPU", 80e9, num_cores=16))
    lengths = [5] * num_sequences
    (squares, _), batches = run_squares(lengths, 23, True, capacity=gpu)
    assert squares.tolist() == [n**2 for n in range(num_sequences)]
    assert [num_rows for _, num_rows, _ in batches] == sizes
    planned = shapes.batches(
        np.array(lengths), max_length=23, fixed_shapes=True, capacity=gpu
    )
    found = [rows_R.tolist() for rows_R in planned]
    assert found == [rows for rows, *_ in batches]
