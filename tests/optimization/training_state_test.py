"""What updates change is saved, restored and reset."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY_MODELS

from t2t_lite.errors import InputError
from t2t_lite.optimization.loss_scale import LossScale
from t2t_lite.optimization.training_state import TrainingState

V = 11
HPARAMS = dataclasses.replace(TINY_MODELS["sinusoidal"], num_layers=1)


def new_state(precision="float32"):
    strategy = tf.distribute.get_strategy()
    return TrainingState(HPARAMS, V, strategy, precision=precision)


def saved(state):
    """Returns a copy of what a checkpoint keeps."""
    return {n: np.asarray(t).copy() for n, t in state.tensors().items()}


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)


@pytest.fixture(scope="module")
def float32():
    return new_state()


@pytest.fixture(scope="module")
def float16():
    return new_state("float16")


@pytest.fixture(params=["float32", "float16"])
def state(request):
    """A state before its first update."""
    state = request.getfixturevalue(request.param)
    state.reset()
    return state


def change(state):
    """Changes all that an update may change."""
    for variable in (*state.weights, *state.optimizer.variables):
        variable.assign(tf.ones_like(variable.value))
    state.step = 7
    state.loss_scale = state.loss_scale.after(is_finite=False)


def test_nothing_is_trained_in_int8():
    message = "precision must be float32, bfloat16 or float16; received"
    with pytest.raises(InputError, match=message):
        new_state("int8")


def test_a_state_that_is_reset_is_as_it_was_made(state):
    expected = saved(new_state("float16" if state.is_scaled else "float32"))
    change(state)
    state.reset()
    assert_same(saved(state), expected)


def test_what_is_restored_is_what_was_saved(state):
    change(state)
    expected = saved(state)
    state.reset()
    assert saved(state)["step"] == 0
    state.restore(expected, "saved")
    assert_same(saved(state), expected)


def test_a_checkpoint_of_another_model_is_refused_by_the_variable(state):
    before = saved(state)
    name = "transformer/embedding/embedding"
    other = before | {name: np.zeros((V + 1, HPARAMS.d_model))}
    with pytest.raises(InputError, match=f"{name} must be"):
        state.restore(other, "step-3")
    assert_same(saved(state), before)


def test_the_loss_scale_is_saved_and_restored(float16):
    float16.loss_scale = LossScale(2.0**12, 34)
    tensors = float16.tensors()
    float16.loss_scale = LossScale()
    float16.restore(tensors, "saved")
    assert float16.loss_scale == LossScale(2.0**12, 34)


def test_a_checkpoint_of_float32_leaves_float16s_loss_scale(float16, float32):
    float16.reset()
    float16.restore(float32.tensors(), "saved")
    assert float16.loss_scale == LossScale()


def test_weights_that_are_not_finite_are_noticed(state):
    assert state.weights_are_finite()
    weights = state.weights[3].numpy()
    weights.flat[0] = np.nan
    state.weights[3].assign(weights)
    assert not state.weights_are_finite()
