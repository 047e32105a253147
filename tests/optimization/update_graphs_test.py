"""The graphs of an update: each is traced once, before the first update."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY_MODELS

from t2t_lite.optimization.sharding import Batch, Sharding
from t2t_lite.optimization.training_state import TrainingState
from t2t_lite.optimization.update_graphs import UpdateGraphs
from t2t_lite.token_ids import EOS

V = 11
HPARAMS = dataclasses.replace(
    TINY_MODELS["sinusoidal"], num_layers=1, dropout=0.0
)


@pytest.fixture(scope="module")
def state():
    return TrainingState(HPARAMS, V, tf.distribute.get_strategy())


def new_graphs(state):
    sharding = Sharding(HPARAMS, tf.distribute.get_strategy(), num_parts=1)
    return UpdateGraphs(state, sharding)


@pytest.fixture(scope="module")
def graphs(state):
    return new_graphs(state)


def test_one_graph_adds_batches_of_all_shapes(graphs):
    """A separate graph for the first shape would round differently."""
    graphs.trace()
    for size in (1, 2, 4):
        ids = np.full((size, size), EOS, np.int32)
        graphs.add(Batch(ids, ids), n=0, num_micro_batches=1)
    graphs.clear()
    assert graphs._run_add.experimental_get_tracing_count() == 1


def test_tracing_leaves_no_trace_in_the_sums(state):
    untraced = new_graphs(state)
    untraced.trace()
    assert not any(np.any(total.numpy()) for total in untraced.sums.variables)


def test_applying_nothing_is_rehearsed_without_a_trace(state, graphs):
    before = [weight.numpy() for weight in state.weights]
    graphs.rehearse_apply()
    for weight, value in zip(state.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)
    assert state.optimizer.iterations.numpy() == 0


def test_graphs_are_traced_before_the_first_update_alone(state, monkeypatch):
    untraced = new_graphs(state)
    monkeypatch.setattr(state, "step", 1)
    with pytest.raises(ValueError, match="there were 1 updates"):
        untraced.trace()
