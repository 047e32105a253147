"""Epochs that differ have full batches of fixed shapes, and lose no pair."""

import fractions
import itertools

import numpy as np
import pytest
from bucket_sizes import shape_of, sides_of

from t2t_lite.text import batching, epochs
from t2t_lite.text.epochs import PlanState, Weighting

SEED = 5


def sentence_lengths(num_pairs, seed):
    generator = np.random.default_rng(seed)
    source = generator.lognormal(2.2, 0.5, num_pairs)
    target = source * generator.lognormal(0.05, 0.2, num_pairs)
    return tuple(
        np.clip(np.round(side), 2, 60).astype(int) for side in (source, target)
    )


def shapes_of(lengths, largest=(60, 60), limit=300, num_buckets=5):
    return epochs.epoch_shapes(lengths, largest, limit, num_buckets=num_buckets)


def planned(num_epochs, lengths_of, shapes, draw):
    """Yields the Epochs of a plan, each from its predecessor's final state."""
    state = PlanState()
    for epoch in range(num_epochs):
        found = epochs.plan_epoch(
            state, draw(epoch), lengths_of(epoch), shapes=shapes, seed=SEED
        )
        yield found
        state = found.next


def everything(num_pairs):
    return lambda _: np.arange(num_pairs, dtype=np.int32)


@pytest.mark.parametrize(("num_pairs", "limit"), [(613, 300), (31, 500)])
def test_epochs_that_do_not_differ_are_those_of_a_batch_plan(num_pairs, limit):
    lengths = sentence_lengths(num_pairs, 3)
    buckets = batching.make_buckets(*lengths, limit, 5)
    plan = batching.BatchPlan(buckets, SEED)
    shapes = shapes_of(lengths, (0, 0), limit)
    assert [shape_of(b) for b in shapes] == [shape_of(b) for b in buckets]
    step = 0
    for n, epoch in enumerate(
        planned(7, lambda _: lengths, shapes, draw=everything(num_pairs))
    ):
        assert epoch.first_step == step == plan.first_step(n)
        for _ in epoch.batches:
            bucket, indices = epoch.batch(step)
            expected_bucket, expected = plan.batch(step)
            assert shape_of(bucket) == shape_of(expected_bucket)
            np.testing.assert_array_equal(indices, expected)
            step += 1


def test_batches_fit_their_shape_and_no_pair_is_lost():
    num_pairs = 211
    by_epoch = [sentence_lengths(num_pairs, seed) for seed in range(6)]
    shapes = shapes_of(by_epoch[0])
    counts = np.zeros(num_pairs, int)
    plan = planned(6, by_epoch.__getitem__, shapes, draw=everything(num_pairs))
    for n, epoch in enumerate(plan):
        for bucket, indices in epoch.batches:
            assert len(indices) == bucket.batch_size
            for lengths, longest in zip(
                by_epoch[n], sides_of(bucket), strict=True
            ):
                assert lengths[indices].max() <= longest
            assert bucket.batch_size * max(sides_of(bucket)) <= 300
            counts += np.bincount(indices, minlength=num_pairs)
        carried = np.bincount(epoch.next.carried_over, minlength=num_pairs)
        assert (counts + carried == n + 1).all()
        assert carried.sum() < sum(shape.batch_size for shape in shapes)
        assert epoch.next.first_step == epoch.first_step + len(epoch.batches)


def test_each_pair_is_in_the_smallest_shape_that_it_fits():
    lengths = sentence_lengths(400, 2)
    shapes = shapes_of(sentence_lengths(400, 1))
    (epoch,) = planned(1, lambda _: lengths, shapes, draw=everything(400))
    for bucket, indices in epoch.batches:
        for n in indices:
            fitting = [
                sum(sides_of(shape))
                for shape in shapes
                if lengths[0][n] <= shape.source_length
                and lengths[1][n] <= shape.target_length
            ]
            assert sum(sides_of(bucket)) == min(fitting)


def test_the_largest_shape_holds_the_longest_of_all_epochs():
    lengths = sentence_lengths(100, 4)
    shapes = shapes_of(lengths, (57, 3), limit=60)
    largest = max(shapes, key=lambda shape: sum(sides_of(shape)))
    assert largest.source_length == 57
    assert largest.target_length == lengths[1].max()
    assert largest.batch_size == 1


def test_a_state_comes_back_from_its_tensors():
    state = PlanState(3, 17, np.array([4, 1, 4], np.int32))
    found = PlanState.from_tensors(state.tensors())
    assert (found.epoch, found.first_step) == (3, 17)
    np.testing.assert_array_equal(found.carried_over, [4, 1, 4])
    assert found.carried_over.dtype == np.int32
    assert PlanState.from_tensors(PlanState().tensors()).carried_over.shape == (
        0,
    )


def test_an_epoch_smaller_than_a_batch_waits_for_the_next():
    lengths = np.full(3, 10), np.full(3, 10)
    shapes = shapes_of(lengths, (10, 10), limit=100)
    plan = list(planned(4, lambda _: lengths, shapes, draw=everything(3)))
    assert [len(epoch.batches) for epoch in plan] == [0, 0, 0, 1]
    (batch,) = plan[3].batches
    assert sorted(np.bincount(batch[1])) == [3, 3, 4]


def test_epochs_have_different_orders():
    lengths = sentence_lengths(613, 3)
    shapes = shapes_of(lengths)
    first, second = planned(2, lambda _: lengths, shapes, draw=everything(613))
    some, other = (
        {frozenset(ids.tolist()) for _, ids in e.batches if len(ids) > 2}
        for e in (first, second)
    )
    assert some.isdisjoint(other)


# Weights.


def counts_of(draw, num_pairs, num_epochs):
    return [
        np.bincount(draw(e), minlength=num_pairs) for e in range(num_epochs)
    ]


def test_equal_weights_draw_each_pair_once_an_epoch():
    draw = epochs.pair_sampler(Weighting([3, 5], [0.7, 0.7]), 1)
    for epoch in (0, 1, 10**6):
        np.testing.assert_array_equal(draw(epoch), range(8))
        assert draw(epoch).dtype == np.int32


@pytest.mark.parametrize(
    "weights", [(2, 1, 1), (0.5, 3, 1), (0.001, 1, 1000), (1e-300, 1, 1e300)]
)
def test_pairs_are_drawn_in_proportion_to_their_weights(weights):
    sizes = 40, 10, 50
    counts = np.cumsum(
        counts_of(epochs.pair_sampler(Weighting(sizes, weights), 3), 100, 60),
        axis=0,
    )
    exact = [fractions.Fraction(weight) for weight in weights]
    total = sum(w * size for w, size in zip(exact, sizes, strict=True))
    weight_of_pair = np.repeat(np.array(weights, float), sizes)
    for epoch, found in enumerate(counts, start=1):
        share = weight_of_pair / weight_of_pair.sum()
        assert np.abs(found - share * 100 * epoch).max() < 1 + 1e-9
        for n, (size, weight) in enumerate(zip(sizes, exact, strict=True)):
            start = sum(sizes[:n])
            expected = weight * size * 100 * epoch // total
            assert found[start : start + size].sum() == expected


def test_what_is_drawn_is_a_function_of_seed_and_epoch():
    draws = [
        epochs.pair_sampler(Weighting([30, 30], [2, 1]), seed)
        for seed in (1, 2, 1)
    ]
    for epoch in (4, 0, 4):
        found = [draw(epoch).tolist() for draw in draws]
        assert found[0] == found[2] != found[1]


def test_batches_of_a_simulated_run_have_the_shares_of_the_weights():
    sizes, weights = (300, 500, 200), (2, 1, 0.5)
    lengths = sentence_lengths(1000, 8)
    shapes = shapes_of(lengths)
    draw = epochs.pair_sampler(Weighting(sizes, weights), SEED)
    drawn = np.zeros(1000)
    step = 0
    for epoch in planned(10**6, lambda _: lengths, shapes, draw=draw):
        for _, indices in epoch.batches:
            drawn += np.bincount(indices, minlength=1000)
            step += 1
        if step >= 10_000:
            break
    mean = [
        drawn[a:b].mean() for a, b in itertools.pairwise((0, 300, 800, 1000))
    ]
    assert mean[0] / mean[1] == pytest.approx(2, rel=0.01)
    assert mean[2] / mean[1] == pytest.approx(0.5, rel=0.01)
    assert drawn[:300].min() > 0.95 * mean[0]
