"""Gradients that float16 cannot hold are tried again at half the scale."""

import types

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.optimization.divergence import DivergenceError
from t2t_lite.optimization.loss_scale import LossScale
from t2t_lite.optimization.loss_scaling import LossScaling
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.sums import Sums

IDS = np.ones((2, 3), np.int32)
BATCH = Batch(IDS, IDS, np.zeros((2, 3, 3), np.uint8))


class Graphs:
    """Gradients that are finite or not, and are cleared or not."""

    def __init__(self, is_finite):
        self.is_finite, self.is_cleared = is_finite, False

    def gradients_are_finite(self):
        return self.is_finite

    def clear(self):
        self.is_cleared = True

    def totals(self):
        return Sums(tf.constant(8.0), tf.constant(4.0), [tf.constant(np.inf)])

    def gradients(self):
        return self.totals().gradients

    def gradient_norms(self, gradients):
        return tf.stack(gradients)


def make_state(precision="float16", scale=None):
    return types.SimpleNamespace(
        is_scaled=precision == "float16",
        loss_scale=scale or LossScale(2.0**12),
        step=6,
    )


def test_what_fits_is_kept_and_counted():
    state, graphs = make_state(), Graphs(is_finite=True)
    assert LossScaling(state, graphs).fits(BATCH)
    assert state.loss_scale == LossScale(2.0**12, 1)
    assert not graphs.is_cleared


def test_what_does_not_fit_is_cleared_and_the_scale_halved():
    state, graphs = make_state(), Graphs(is_finite=False)
    assert not LossScaling(state, graphs).fits(BATCH)
    assert state.loss_scale == LossScale(2.0**11)
    assert graphs.is_cleared


def test_other_precisions_fit_whatever_the_gradients():
    state, graphs = make_state("bfloat16"), Graphs(is_finite=False)
    assert LossScaling(state, graphs).fits(BATCH)
    assert state.loss_scale == LossScale(2.0**12)
    assert not graphs.is_cleared


def test_a_batch_that_fits_at_no_scale_is_a_divergence():
    state, graphs = make_state(scale=LossScale(2.0**-10)), Graphs(False)
    with pytest.raises(
        DivergenceError, match=r"any loss scale at step 7$"
    ) as e:
        LossScaling(state, graphs).fits(BATCH)
    update = e.value.update
    assert (float(update.loss), float(update.tokens)) == (2.0, 4.0)
    assert update.batch.source_ids is update.batch.target_ids is IDS
    assert update.batch.is_linked is None  # They may be large.
    assert state.loss_scale == LossScale(2.0**-10)
    assert graphs.is_cleared
