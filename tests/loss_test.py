"""The loss against the equation in NumPy."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf

from t2t_lite.loss import LabelSmoothedCrossEntropy, cross_entropy

B, T, V = 2, 7, 11
TARGET = np.array([[5, 2, 10, 3, 3, 8, 1], [4, 9, 1, 0, 0, 0, 0]])
LOGITS = np.random.default_rng(0).normal(0, 2, (B, T, V)).astype("float32")
SMOOTHINGS = [0.0, 0.1, 0.4]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_loss_is_the_equation_summed_over_tokens(smoothing):
    loss, tokens = cross_entropy(LOGITS, TARGET, smoothing)
    expected, count = reference.cross_entropy(LOGITS, TARGET, smoothing)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert tokens == count == 10


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_padding_counts_nothing(smoothing):
    changed = np.where(TARGET[..., None] == 0, 1000.0, LOGITS)
    longer = np.pad(changed, ((0, 1), (0, 2), (0, 0)))
    padded_target = np.pad(TARGET, ((0, 1), (0, 2)))
    np.testing.assert_allclose(
        cross_entropy(longer, padded_target, smoothing),
        cross_entropy(LOGITS, TARGET, smoothing),
        rtol=1e-5,
    )


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_gradient_is_softmax_minus_target(smoothing):
    logits = tf.constant(LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss, _ = cross_entropy(logits, TARGET, smoothing)
    q = reference.smoothed_targets(TARGET, V, smoothing)
    is_token_BT1 = (TARGET != 0)[..., None]
    expected = (reference.softmax(LOGITS) - q) * is_token_BT1
    np.testing.assert_allclose(tape.gradient(loss, logits), expected, atol=1e-5)


def test_sums_of_parts_add_up_to_the_whole():
    whole = cross_entropy(LOGITS, TARGET, 0.1)
    parts = [
        cross_entropy(LOGITS[b : b + 1], TARGET[b : b + 1], 0.1)
        for b in range(B)
    ]
    np.testing.assert_allclose(whole, np.sum(parts, axis=0), rtol=1e-5)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_loss_is_computed_in_float32(smoothing):
    half = LOGITS.astype("float16")
    loss, tokens = cross_entropy(half, TARGET, smoothing)
    assert loss.dtype == tokens.dtype == tf.float32
    expected, _ = reference.cross_entropy(
        half.astype("float64"), TARGET, smoothing
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_logits_far_apart_give_a_finite_loss(smoothing):
    loss, _ = cross_entropy(LOGITS * 1000, TARGET, smoothing)
    expected, _ = reference.cross_entropy(
        LOGITS.astype("float64") * 1000, TARGET, smoothing
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-4)


def test_keras_loss_is_the_mean_over_tokens():
    loss = LabelSmoothedCrossEntropy(0.1)(TARGET, LOGITS)
    expected, count = reference.cross_entropy(LOGITS, TARGET, 0.1)
    np.testing.assert_allclose(loss, expected / count, rtol=1e-5)


def test_keras_loss_of_padding_alone_is_zero():
    assert LabelSmoothedCrossEntropy()(np.zeros_like(TARGET), LOGITS) == 0


def test_keras_loss_takes_no_sample_weight():
    with pytest.raises(ValueError, match="sample_weight is not supported"):
        LabelSmoothedCrossEntropy()(TARGET, LOGITS, np.ones((B, T)))


def test_keras_loss_is_made_again_from_its_config():
    loss = LabelSmoothedCrossEntropy(0.3)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert again.label_smoothing == 0.3
    assert LabelSmoothedCrossEntropy().label_smoothing == 0.1
