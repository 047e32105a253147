"""The layers of both stacks, against NumPy."""

import numpy as np
import pytest
import reference

from t2t_lite.model.layers import DecoderLayer, EncoderLayer, FeedForward

B, S, T, D, F, H, K, K_V = 2, 5, 7, 12, 20, 3, 4, 6
X = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(B, S, D)).astype("float32")
SIZES = {"d_ff": F, "num_heads": H, "d_k": K, "d_v": K_V}
ALL_OF_IT = 1 - 1e-7  # A rate of dropout that leaves nothing.


def with_random_weights(layer, *arguments):
    """Returns the layer, built, none of its weights all 0 or all 1."""
    layer(*arguments)
    random = np.random.default_rng(2)
    for weight in layer.weights:
        weight.assign_add(random.normal(0, 0.3, weight.shape))
    return layer


def test_feed_forward_is_equation_2():
    layer = with_random_weights(FeedForward(F), X)
    expected = reference.feed_forward(X, reference.weights_of(layer))
    np.testing.assert_allclose(layer(X), expected, atol=1e-5)


def test_feed_forward_keeps_positions_apart():
    layer = with_random_weights(FeedForward(F), X)
    np.testing.assert_allclose(layer(X)[:, 3:4], layer(X[:, 3:4]), atol=1e-6)


@pytest.mark.parametrize("training", [False, True])
def test_encoder_layer_is_two_sublayers_with_add_and_norm(training):
    layer = with_random_weights(EncoderLayer(**SIZES, dropout=0.0), X)
    may_attend = np.array([[1, 1, 1, 1, 1, 0, 0], [1] * 7], bool)
    found = layer(X, may_attend=may_attend[:, None, None], training=training)
    weights = reference.weights_of(layer)
    for b in range(B):
        expected = reference.encoder_layer(
            X[b], weights, H, np.tile(may_attend[b], (T, 1))
        )
        np.testing.assert_allclose(found[b], expected, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_decoder_layer_is_three_sublayers_with_add_and_norm(training):
    layer = with_random_weights(DecoderLayer(**SIZES, dropout=0.0), X, MEMORY)
    may_attend = np.tril(np.ones((T, T), bool))
    may_attend_memory = np.array([[1, 1, 1, 0, 0], [1] * 5], bool)
    found = layer(
        X,
        MEMORY,
        may_attend=may_attend[None, None],
        may_attend_memory=may_attend_memory[:, None, None],
        training=training,
    )
    weights = reference.weights_of(layer)
    for b in range(B):
        expected = reference.decoder_layer(
            X[b],
            MEMORY[b],
            weights,
            H,
            may_attend,
            np.tile(may_attend_memory[b], (T, 1)),
        )
        np.testing.assert_allclose(found[b], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("layer_class", "inputs", "sublayers"),
    [
        (EncoderLayer, (X,), ["self_attention", "feed_forward"]),
        (
            DecoderLayer,
            (X, MEMORY),
            ["self_attention", "memory_attention", "feed_forward"],
        ),
    ],
)
def test_dropout_is_on_each_sublayers_output_before_the_addition(
    layer_class, inputs, sublayers
):
    """With all of it dropped, only the norms of x are left."""
    layer = with_random_weights(
        layer_class(**SIZES, dropout=ALL_OF_IT), *inputs
    )
    weights = reference.weights_of(layer)
    expected = X
    for name in sublayers:
        norm = reference.below(weights, f"{name}_norm")
        expected = reference.layer_norm(expected, norm)
    found = layer(*inputs, training=True)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.abs(layer(*inputs) - expected).max() > 0.1


@pytest.mark.parametrize(
    ("layer_class", "inputs"), [(EncoderLayer, (X,)), (DecoderLayer, (X, X))]
)
def test_attention_dropout_reaches_the_attention(layer_class, inputs):
    layer = layer_class(**SIZES, dropout=0.0, attention_dropout=0.5)
    still = layer(*inputs)
    np.testing.assert_array_equal(layer(*inputs), still)
    assert np.abs(layer(*inputs, training=True) - still).max() > 0.01
