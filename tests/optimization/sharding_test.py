"""Shards hold each row of a batch once, whatever they are divided for."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY_MODELS

from t2t_lite.optimization.sharding import Batch, Sharding

PLAIN = TINY_MODELS["sinusoidal"]
GUIDED = dataclasses.replace(PLAIN, guided_alignment=0.5)
B, S, T = 5, 3, 2


def make_batch(is_linked=None):
    source_ids = np.arange(1, B * S + 1, dtype=np.int32).reshape(B, S)
    return Batch(source_ids, source_ids[:, :T] + 100, is_linked)


def sharding_of(hparams=PLAIN, num_parts=1):
    return Sharding(hparams, tf.distribute.get_strategy(), num_parts)


def shards_of(sharding, batch, count, step=0):
    return [
        sharding.shards(batch, n, num_micro_batches=count, step=step)
        for n in range(count)
    ]


@pytest.mark.parametrize("num_parts", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_each_row_is_in_one_shard_and_the_rest_is_padding(count, num_parts):
    batch = make_batch()
    shards = shards_of(sharding_of(num_parts=num_parts), batch, count)
    rows = np.concatenate([shard.source_ids for shard in shards])
    is_row = rows.any(axis=1)
    assert sorted(map(tuple, rows[is_row])) == [*map(tuple, batch.source_ids)]
    targets = np.concatenate([shard.target_ids for shard in shards])
    np.testing.assert_array_equal(targets[is_row], rows[is_row][:, :T] + 100)
    assert not targets[~is_row].any()


@pytest.mark.parametrize("num_parts", [1, 2, 3])
def test_shards_have_one_size_which_parts_divide(num_parts):
    shards = shards_of(sharding_of(num_parts=num_parts), make_batch(), 2)
    (size,) = {len(shard.source_ids) for shard in shards}
    assert size % num_parts == 0


def test_seeds_differ_between_shards_and_steps():
    seeds = [
        tuple(shard.seed.numpy())
        for step in (0, 1)
        for shard in shards_of(sharding_of(), make_batch(), count=3, step=step)
    ]
    assert len(set(seeds)) == 6


def test_links_are_divided_as_the_rows_are():
    is_linked = np.arange(B * T * S, dtype=np.uint8).reshape(B, T, S)
    batch = make_batch(is_linked)
    first, second = shards_of(sharding_of(GUIDED), batch, 2)
    np.testing.assert_array_equal(first.is_linked, is_linked[::2])
    np.testing.assert_array_equal(second.is_linked[:2], is_linked[1::2])


def test_without_links_none_is_set_and_without_guidance_there_are_none():
    (guided,) = shards_of(sharding_of(GUIDED), make_batch(), 1)
    assert guided.is_linked.shape == (B, T, S)
    assert not guided.is_linked.numpy().any()
    (plain,) = shards_of(sharding_of(), make_batch(), 1)
    assert plain.is_linked == ()


@pytest.mark.parametrize("hparams", [PLAIN, GUIDED])
def test_one_type_covers_the_shards_of_all_shapes(hparams):
    sharding = sharding_of(hparams)
    (shard,) = shards_of(sharding, make_batch(), 1)
    tf.nest.assert_same_structure(sharding.spec(), shard)
    specs = tf.nest.flatten(sharding.spec())
    for spec, tensor in zip(specs, tf.nest.flatten(shard), strict=True):
        assert spec.is_compatible_with(tensor)
    assert sharding.spec() == sharding.shard_spec()
