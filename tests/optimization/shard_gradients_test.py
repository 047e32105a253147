"""A shard adds its loss, its tokens and its gradient to the sums."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY_MODELS

from t2t_lite.model import loss
from t2t_lite.model.transformer import shift_right
from t2t_lite.optimization.shard_gradients import ShardGradients
from t2t_lite.optimization.sharding import Shard
from t2t_lite.optimization.sums import Sums
from t2t_lite.optimization.training_state import TrainingState

V = 11
HPARAMS = dataclasses.replace(
    TINY_MODELS["sinusoidal"], num_layers=1, dropout=0.0
)


@pytest.fixture(scope="module")
def state():
    return TrainingState(HPARAMS, V, tf.distribute.get_strategy())


@pytest.fixture(scope="module")
def shard():
    generator = np.random.default_rng(0)
    source_ids = generator.integers(2, V, (4, 5)).astype(np.int32)
    target_ids = generator.integers(2, V, (4, 7)).astype(np.int32)
    target_ids[1, 3:] = 0
    seed = tf.constant([1, 0], tf.int64)
    return Shard(tf.constant(source_ids), tf.constant(target_ids), seed)


@pytest.mark.parametrize("num_parts", [1, 2])
def test_the_sums_are_those_of_the_whole_shard(state, shard, num_parts):
    sums = Sums.zeros(weight.shape for weight in state.weights)
    shard_gradients = ShardGradients(
        state, sums, num_parts=num_parts, chunk_logits=None
    )
    scale = tf.constant(4.0)
    shard_gradients.add(shard, scale)
    with tf.GradientTape() as tape:
        logits = state.model((shard.source_ids, shift_right(shard.target_ids)))
        total, tokens = loss.cross_entropy(
            logits, shard.target_ids, HPARAMS.label_smoothing
        )
    expected = tape.gradient(total, [w.value for w in state.weights])
    np.testing.assert_allclose(sums.loss, total, rtol=1e-5)
    assert float(sums.tokens) == float(tokens) == 3 * 7 + 3
    for ours, theirs in zip(sums.gradients, expected, strict=True):
        theirs = scale * tf.convert_to_tensor(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
