"""Batches are full, of few shapes, with little padding, and reproducible."""

import hashlib
import itertools
import os
import pathlib

import numpy as np
import pytest
from bucket_sizes import shape_of, sides_of
from token_pairs import pairs_in_memory

from t2t_lite.text import batching, learning

LIMIT = 25_000  # Tokens per batch, on each side.
NUM_BUCKETS = 24


def sentence_lengths(num_pairs, seed):
    """Returns two arrays of random lengths, like those of translated text."""
    generator = np.random.default_rng(seed)
    source = generator.lognormal(3.2, 0.5, num_pairs)
    target = source * generator.lognormal(0.05, 0.18, num_pairs)
    return tuple(
        np.clip(np.round(side), 2, 256).astype(np.int64)
        for side in (source, target)
    )


def real_lengths():
    folder = os.environ.get("MULTI30K")
    if not folder:
        pytest.skip("set MULTI30K to the folder of Multi30k's train.en, .de")
    source, target = (
        pathlib.Path(folder, f"train.{language}")
        .read_text("utf-8")
        .removesuffix("\n")
        .split("\n")
        for language in ("en", "de")
    )
    vocabulary = learning.learn(source + target, "bpe", 8000)
    return tuple(
        np.array([len(ids) for ids in vocabulary.encode(side)])
        for side in (source, target)
    )


class Case:
    """The lengths of a corpus, its buckets, and its batches of some epochs."""

    def __init__(self, lengths, limit, num_buckets, epochs, seed):
        self.source, self.target = lengths
        self.limit, self.num_buckets, self.epochs = limit, num_buckets, epochs
        self.buckets = batching.make_buckets(*lengths, limit, num_buckets)
        self.plan = batching.BatchPlan(self.buckets, seed)
        self.batches = [
            self.plan.batch(step)
            for step in range(self.plan.first_step(epochs))
        ]


@pytest.fixture(scope="module", params=["made up", "multi30k"])
def case(request):
    made_up = request.param == "made up"
    lengths = sentence_lengths(20_011, 7) if made_up else real_lengths()
    return Case(lengths, LIMIT, NUM_BUCKETS, epochs=3, seed=5)


def small_case(num_pairs=613, epochs=7, seed=2):
    return Case(
        sentence_lengths(num_pairs, 3), 300, 5, epochs=epochs, seed=seed
    )


def counts_of(batches, num_pairs):
    indices = np.concatenate([indices for _, indices in batches])
    return np.bincount(indices, minlength=num_pairs)


# Buckets.


def test_no_batch_is_over_the_limit_on_either_side(case):
    for bucket, indices in case.batches:
        padded = (
            len(indices) * bucket.source_length,
            len(indices) * bucket.target_length,
        )
        assert max(padded) <= LIMIT


def test_the_longer_side_fills_95_percent_of_the_limit(case):
    for bucket, indices in case.batches:
        length = max(bucket.source_length, bucket.target_length)
        assert len(indices) * length >= 0.95 * LIMIT


def test_there_are_at_most_as_many_shapes_as_buckets(case):
    shapes = {
        (len(indices), bucket.source_length, bucket.target_length)
        for bucket, indices in case.batches
    }
    assert 1 < len(shapes) <= NUM_BUCKETS
    assert len(case.buckets) <= NUM_BUCKETS


def test_little_of_a_batch_is_padding(case):
    padded = tokens = 0
    for bucket, indices in case.batches:
        padded += len(indices) * (bucket.source_length + bucket.target_length)
        tokens += (case.source[indices] + case.target[indices]).sum()
    # Made-up lengths vary more than real ones, so they leave more padding.
    limit = 0.1 if len(case.source) == 20_011 else 0.07
    assert 1 - tokens / padded <= limit


def test_each_pair_is_in_the_smallest_bucket_that_fits_it(case):
    indices = np.concatenate([bucket.pairs for bucket in case.buckets])
    assert sorted(indices) == list(range(len(case.source)))
    tokens = {
        sides_of(bucket): np.where(
            (case.source <= bucket.source_length)
            & (case.target <= bucket.target_length),
            sum(sides_of(bucket)),
            10**6,
        )
        for bucket in case.buckets
    }
    least = np.min(list(tokens.values()), axis=0)
    for bucket in case.buckets:
        np.testing.assert_array_equal(
            least[bucket.pairs], sum(sides_of(bucket)), f"{bucket}"
        )


def test_a_bucket_holds_at_least_a_quarter_of_a_batch(case):
    for bucket in case.buckets:
        assert 4 * len(bucket.pairs) >= bucket.batch_size


@pytest.mark.parametrize("limit", [1500, 5000, 9000, 30_000])
def test_a_small_corpus_has_fewer_buckets_of_as_much_each(limit):
    lengths = sentence_lengths(613, 3)
    buckets = batching.make_buckets(*lengths, limit, 70)
    assert 1 <= len(buckets) < 70
    for bucket in buckets:
        assert 4 * len(bucket.pairs) >= bucket.batch_size


def test_a_batch_holds_pairs_of_its_bucket_only(case):
    for bucket, indices in case.batches:
        assert bucket in case.buckets
        assert case.source[indices].max() <= bucket.source_length
        assert case.target[indices].max() <= bucket.target_length


def padding(buckets):
    return sum(
        len(bucket.pairs) * (bucket.source_length + bucket.target_length)
        for bucket in buckets
    )


def padding_of_shapes(lengths, shapes, limit):
    """Returns the tokens with padding; None if a bucket would be too small."""
    # Of equally large shapes, the one with the shorter source is preferred.
    ranks = [
        np.where(
            (lengths[0] <= s) & (lengths[1] <= t), 1000 * (s + t) + s, 10**9
        )
        for s, t in shapes
    ]
    sizes = np.bincount(np.argmin(ranks, axis=0), minlength=len(shapes))
    fills = all(
        4 * size * max(shape) >= limit
        for size, shape in zip(sizes, shapes, strict=True)
    )
    return int((np.min(ranks, axis=0) // 1000).sum()) if fills else None


def places(lengths):
    return itertools.product(*(np.unique(side).tolist() for side in lengths))


@pytest.mark.parametrize("limit", [300, 1500])
@pytest.mark.parametrize("seed", range(4))
def test_the_second_bucket_is_the_one_that_brute_force_finds(seed, limit):
    lengths = np.stack(sentence_lengths(71, seed))
    largest = tuple(lengths.max(axis=1).tolist())
    paddings = {
        padding_of_shapes(lengths, [largest, shape], limit)
        for shape in places(lengths)
        if shape != largest
    }
    assert None in paddings
    buckets = batching.make_buckets(*lengths, limit, 2)
    assert len(buckets) == 2
    assert padding(buckets) == min(paddings - {None})


@pytest.mark.parametrize("seed", range(4))
def test_no_bucket_but_the_largest_would_be_better_elsewhere(seed):
    lengths = np.stack(sentence_lengths(71, seed))
    buckets = batching.make_buckets(*lengths, 300, 5)
    shapes = [sides_of(bucket) for bucket in buckets]
    largest = tuple(lengths.max(axis=1).tolist())
    assert len(shapes) == 5
    assert largest in shapes
    for n, shape in itertools.product(range(5), places(lengths)):
        if largest in (shapes[n], shape):
            continue
        moved = [*shapes[:n], shape, *shapes[n + 1 :]]
        found = padding_of_shapes(lengths, moved, 300)
        assert found is None or found >= padding(buckets)


@pytest.mark.parametrize("max_sizes", [3, 20])
def test_many_lengths_are_sought_among_some_of_them(max_sizes, monkeypatch):
    source, target = sentence_lengths(2003, 11)
    exact = batching.make_buckets(
        source, target, tokens_per_batch=1500, num_buckets=8
    )
    monkeypatch.setattr(batching, "_MAX_SIZES", max_sizes)
    buckets = batching.make_buckets(
        source, target, tokens_per_batch=1500, num_buckets=8
    )
    assert 2 < len(buckets) <= 8
    assert [shape_of(b) for b in buckets] != [shape_of(b) for b in exact]
    indices = np.concatenate([bucket.pairs for bucket in buckets])
    assert sorted(indices) == list(range(len(source)))
    for bucket in buckets:
        assert bucket.source_length == source[bucket.pairs].max()
        assert bucket.target_length == target[bucket.pairs].max()
        assert bucket.batch_size * max(sides_of(bucket)) <= 1500


def test_more_buckets_leave_less_padding():
    lengths = sentence_lengths(613, 3)
    paddings = [
        padding(batching.make_buckets(*lengths, 300, n)) for n in range(1, 14)
    ]
    assert all(more > less for more, less in itertools.pairwise(paddings))


def test_pairs_of_one_shape_make_one_bucket():
    buckets = batching.make_buckets(
        np.full(23, 5), np.full(23, 7), tokens_per_batch=71, num_buckets=24
    )
    (bucket,) = buckets
    assert shape_of(bucket) == (5, 7, 10)
    assert sorted(bucket.pairs) == list(range(23))


def test_a_pair_as_long_as_the_limit_has_a_batch_of_its_own():
    lengths = np.array([3, 40, 4, 3, 4, 5]), np.array([5, 2, 6, 4, 3, 5])
    buckets = batching.make_buckets(*lengths, 40, 24)
    (longest,) = [bucket for bucket in buckets if 1 in bucket.pairs]
    assert longest.batch_size == 1
    assert longest.pairs.tolist() == [1]


# The plan.


def test_every_pair_comes_once_an_epoch_up_to_what_is_carried_over(case):
    for epochs in range(1, case.epochs + 1):
        batches = case.batches[: case.plan.first_step(epochs)]
        counts = counts_of(batches, len(case.source))
        for bucket in case.buckets:
            of_bucket = counts[bucket.pairs]
            missing = (epochs - of_bucket).sum()
            assert 0 <= missing < bucket.batch_size
            assert of_bucket.max() <= of_bucket.min() + 1
            if len(bucket.pairs) >= bucket.batch_size:
                assert set(of_bucket) <= {epochs - 1, epochs}


def test_over_many_epochs_every_pair_comes_as_often_as_any_other():
    case = small_case(epochs=29)
    counts = counts_of(case.batches, len(case.source))
    assert set(counts) <= {28, 29}


def test_every_batch_is_full(case):
    for bucket, indices in case.batches:
        assert len(indices) == bucket.batch_size


def test_what_an_epoch_leaves_over_opens_the_next():
    # 7 pairs in batches of 3: the epochs leave 1 pair over, then 2, then none.
    (bucket,) = buckets = batching.make_buckets(
        np.full(7, 4), np.full(7, 5), tokens_per_batch=15, num_buckets=1
    )
    assert bucket.batch_size == 3
    plan = batching.BatchPlan(buckets, 11)
    assert [plan.first_step(epoch) for epoch in range(5)] == [0, 2, 4, 7, 9]
    batches = [plan.batch(step)[1].tolist() for step in range(7)]
    # The batches of an epoch are shuffled. In one of their orders, the pairs
    # form three complete epochs, one after the other.
    orders = (
        itertools.chain(*a, *b, *c)
        for a in itertools.permutations(batches[:2])
        for b in itertools.permutations(batches[2:4])
        for c in itertools.permutations(batches[4:])
    )
    every = set(range(7))
    assert any(
        set(order[:7]) == set(order[7:14]) == set(order[14:]) == every
        for order in map(list, orders)
    )


def test_the_steps_of_an_epoch_are_those_from_its_first_to_the_next():
    plan = small_case().plan
    for epoch in range(9):
        steps = range(plan.first_step(epoch), plan.first_step(epoch + 1))
        assert len(steps) > 0
        assert {plan.epoch(step) for step in steps} == {epoch}
    assert plan.first_step(0) == 0


def test_a_batch_is_the_same_in_whatever_order_steps_are_asked():
    case = small_case()
    steps = list(range(len(case.batches)))
    np.random.default_rng(1).shuffle(steps)
    plan = batching.BatchPlan(case.buckets, seed=2)
    for step in steps:
        bucket, indices = plan.batch(step)
        assert bucket is case.batches[step][0]
        np.testing.assert_array_equal(indices, case.batches[step][1])


def test_a_fresh_plan_gives_the_same_batch_of_a_far_step():
    case = small_case()
    for step in (10**6, 10**6 + 1, 123_456_789):
        asked_twice = case.plan.batch(step), case.plan.batch(step)
        fresh = batching.BatchPlan(case.buckets, seed=2).batch(step)
        for _, indices in asked_twice:
            np.testing.assert_array_equal(indices, fresh[1])
        assert len(fresh[1]) == fresh[0].batch_size
        assert set(fresh[1]) <= set(fresh[0].pairs)
        epoch = case.plan.epoch(step)
        assert case.plan.first_step(epoch) <= step
        assert step < case.plan.first_step(epoch + 1)


def assert_other_order(some, other):
    """Checks that shapes are in another order, and pairs in other batches."""
    shapes = [[shape_of(bucket) for bucket, _ in bs] for bs in (some, other)]
    assert shapes[0] != shapes[1]
    groups = [
        {frozenset(indices.tolist()) for _, indices in bs if len(indices) > 2}
        for bs in (some, other)
    ]
    assert groups[0].isdisjoint(groups[1])


def test_epochs_have_different_orders():
    case = small_case()
    starts = [case.plan.first_step(epoch) for epoch in range(3)]
    first, second = (
        case.batches[start:end] for start, end in itertools.pairwise(starts)
    )
    assert_other_order(first, second)


def test_seeds_give_different_orders():
    first, second = (small_case(epochs=1, seed=seed).batches for seed in (1, 2))
    assert_other_order(first, second)


def test_batches_of_one_shape_do_not_come_in_a_row():
    case = small_case()
    shapes = [shape_of(bucket) for bucket, _ in case.batches]
    changes = sum(a != b for a, b in itertools.pairwise(shapes))
    assert changes > len(shapes) / 3


def test_one_pair_fills_every_batch():
    buckets = batching.make_buckets(
        np.array([3]), np.array([4]), tokens_per_batch=29, num_buckets=24
    )
    plan = batching.BatchPlan(buckets, 1)
    for step in (0, 1, 13, 10**6):
        bucket, indices = plan.batch(step)
        assert shape_of(bucket) == (3, 4, 7)
        assert indices.tolist() == [0] * 7


def test_fewer_pairs_than_a_batch_fill_it_evenly():
    lengths = np.full(5, 6), np.full(5, 3)
    buckets = batching.make_buckets(*lengths, 78, 24)
    plan = batching.BatchPlan(buckets, 1)
    # A batch of 13 from 5 pairs: each comes two or three times.
    counts = counts_of([plan.batch(0)], 5)
    assert sorted(counts) == [2, 2, 3, 3, 3]
    counts = counts_of([plan.batch(step) for step in range(5)], 5)
    assert counts.tolist() == [13] * 5


# Batches of ids.


def pairs_of_ids(num_pairs, seed):
    generator = np.random.default_rng(seed)
    sides = [
        [[*generator.integers(2, 90, n - 1).tolist(), 1] for n in lengths]
        for lengths in sentence_lengths(num_pairs, seed)
    ]
    return pairs_in_memory(*sides), sides


def small_plan(pairs):
    buckets = batching.make_buckets(
        pairs.source_lengths,
        pairs.target_lengths,
        tokens_per_batch=300,
        num_buckets=5,
    )
    return batching.BatchPlan(buckets, 1)


def test_pad_batch_fills_each_side_with_0_to_its_length():
    pairs, sides = pairs_of_ids(17, 4)
    indices = np.array([16, 2, 2, 9, 0])  # Pair 16 ends the array.
    padded = batching.pad_batch(
        pairs, indices, source_length=91, target_length=97
    )
    for side, length, ids in zip(sides, (91, 97), padded, strict=True):
        assert ids.dtype == np.int32
        expected = [side[i] + [0] * (length - len(side[i])) for i in indices]
        assert ids.tolist() == expected


def test_training_batches_are_the_ids_of_the_plan():
    pairs, (source, target) = pairs_of_ids(131, 6)
    plan = small_plan(pairs)
    last = plan.first_step(2)
    batches = list(
        batching.training_batches(pairs, plan, first_step=0, end_step=last)
    )
    assert len(batches) == last
    for step, (source_ids, target_ids) in enumerate(batches):
        bucket, indices = plan.batch(step)
        B = bucket.batch_size
        assert source_ids.shape == (B, bucket.source_length)
        assert target_ids.shape == (B, bucket.target_length)
        assert [
            [i for i in row if i] for row in source_ids.numpy().tolist()
        ] == [source[i] for i in indices]
        assert [
            [i for i in row if i] for row in target_ids.numpy().tolist()
        ] == [target[i] for i in indices]


def test_training_batches_from_a_step_are_the_tail_of_those_from_0():
    pairs, _ = pairs_of_ids(131, 6)
    plan, fresh = small_plan(pairs), small_plan(pairs)
    last = plan.first_step(2)
    whole = list(
        batching.training_batches(pairs, plan, first_step=0, end_step=last)
    )
    for first in (1, plan.first_step(1) - 1, last - 1, last):
        tail = list(
            batching.training_batches(
                pairs, fresh, first_step=first, end_step=last
            )
        )
        assert len(tail) == last - first
        for old, new in zip(whole[first:], tail, strict=True):
            np.testing.assert_array_equal(old[0], new[0])
            np.testing.assert_array_equal(old[1], new[1])


# The SHA-256 of the batches of these steps. If it changes, a resumed run no
# longer continues as if it had never stopped. To see what it is now:
#   pytest tests/text/batching_test.py -k same_as_ever
GOLDEN_STEPS = (0, 1, 2, 41, 1009, 10**6)
GOLDEN = "075759340b392c2c1067a9e88624910928e8f1c18cfa2377d02896207be85c79"


def test_the_batch_of_a_seed_and_a_step_is_the_same_as_ever():
    pairs, _ = pairs_of_ids(1009, 8)
    buckets = batching.make_buckets(
        pairs.source_lengths,
        pairs.target_lengths,
        tokens_per_batch=700,
        num_buckets=11,
    )
    plan = batching.BatchPlan(buckets, 13)
    digest = hashlib.sha256()
    for step in GOLDEN_STEPS:
        bucket, indices = plan.batch(step)
        for ids in batching.pad_batch(
            pairs,
            indices,
            source_length=bucket.source_length,
            target_length=bucket.target_length,
        ):
            digest.update(f"{ids.dtype} {ids.shape}".encode() + ids.tobytes())
    assert digest.hexdigest() == GOLDEN


def test_training_batches_have_two_axes_and_whole_numbers():
    pairs, _ = pairs_of_ids(13, 6)
    dataset = batching.training_batches(
        pairs, small_plan(pairs), first_step=0, end_step=1
    )
    for spec in dataset.element_spec:
        assert spec.shape.rank == 2
        assert spec.dtype == "int32"


def test_training_batches_have_no_tuning_thread_to_wait_for_at_their_end():
    pairs, _ = pairs_of_ids(13, 6)
    dataset = batching.training_batches(
        pairs, small_plan(pairs), first_step=0, end_step=1
    )
    assert dataset.options().autotune.enabled is False
