"""The layers of both stacks equal the paper's equations in NumPy."""

import numpy as np
import pytest
import reference
import tensorflow as tf
from keras import ops

import t2t_lite
from t2t_lite.model.layers import DecoderLayer, EncoderLayer, FeedForward

B, S, T, D, F, H, K, K_V = 2, 5, 7, 12, 20, 3, 4, 6
X = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(B, S, D)).astype("float32")
SIZES = {"d_ff": F, "num_heads": H, "d_k": K, "d_v": K_V}
ALL_OF_IT = 1 - 1e-7  # A dropout rate that leaves nothing.


def with_random_weights(layer, *arguments):
    """Returns the layer, built, with no weight all 0 or all 1."""
    layer(*arguments)
    random = np.random.default_rng(2)
    for weight in layer.weights:
        weight.assign_add(random.normal(0, 0.3, weight.shape))
    return layer


def test_feed_forward_is_equation_2():
    layer = with_random_weights(FeedForward(F), X)
    expected = reference.feed_forward(X, reference.weights_of(layer))
    np.testing.assert_allclose(layer(X), expected, atol=1e-5)


def test_a_width_may_be_a_numpy_integer():
    assert FeedForward(np.int64(F))(X).shape == X.shape


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
    """With all outputs dropped, only the norms of x are left."""
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


def test_relu_dropout_drops_the_hidden_layer_and_scales_up_the_rest():
    """About a tenth of 1,000 units of value 1 are left, ten times as large."""
    layer = FeedForward(1000, dropout=0.9)
    layer.build(X.shape)
    layer.hidden.bias.assign(np.ones(1000))
    layer.hidden.kernel.assign(np.zeros((D, 1000)))
    layer.output_layer.kernel.assign(np.ones((1000, D)) / 10)
    sums_BLD = ops.convert_to_numpy(layer(X, training=True))
    np.testing.assert_allclose(sums_BLD, np.rint(sums_BLD), atol=1e-4)
    assert 80 < sums_BLD.mean() < 120
    np.testing.assert_allclose(layer(X), np.full_like(X, 100), rtol=1e-5)


_HEADS = {"num_heads": H, "d_k": K}
_BLOCK = {"d_ff": F, **_HEADS}
_STACK = {"num_layers": 1, "d_model": D, **_BLOCK}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("Encoder", _STACK | {"num_layers": -1}, "at least 1; .*num_layers=-1"),
        ("Encoder", _STACK | {"num_layers": 1.5}, "num_layers must be an int"),
        ("Encoder", _STACK | {"attention_window": 4}, "must be 0 or odd: .*=4"),
        ("Decoder", _STACK | {"d_model": 13}, "d_model must be even, .*=13"),
        ("Decoder", _STACK | {"learned_positions": 0}, "learned must be at"),
        ("EncoderLayer", _BLOCK | {"num_heads": 0}, "num_heads must be at le"),
        ("EncoderLayer", _BLOCK | {"dropout": 1}, r"dropout must be in \[0, 1"),
        (
            "DecoderLayer",
            _BLOCK | {"d_v": "4"},
            "d_v must be an integer; .*'4'",
        ),
        (
            "FeedForward",
            {"d_ff": 0},
            "d_ff must be at least 1; received d_ff=0",
        ),
        ("MultiHeadAttention", _HEADS | {"d_k": True}, "d_k must be an int"),
        ("MultiHeadAttention", _HEADS | {"window": 3}, "window must be .*=3"),
        (
            "MultiHeadAttention",
            _HEADS | {"window": (1, -1)},
            "after must be at",
        ),
        ("TiedEmbedding", {"vocabulary_size": 0, "d_model": D}, "size=0"),
        ("PositionEmbedding", {"d_model": -2}, "d_model must be at least 1"),
        ("PositionEmbedding", {"d_model": D, "learned": -1}, "learned=-1"),
        ("LabelSmoothedCrossEntropy", {"label_smoothing": 2}, "smoothing=2"),
        (
            "EncoderLayer",
            _BLOCK | {"norm_epsilon": float("nan")},
            "norm_epsilon must be a finite number above 0; received .*nan",
        ),
        ("EncoderLayer", _BLOCK | {"norm_epsilon": "a"}, "norm_epsilon='a'"),
        ("EncoderLayer", _BLOCK | {"attention_bias": "no"}, "True or False"),
        ("DecoderLayer", _BLOCK | {"activation": "rleu"}, "rleu"),
        ("FeedForward", {"d_ff": 9, "activation": "rleu"}, "rleu"),
        (
            "TiedEmbedding",
            {"vocabulary_size": 9, "d_model": D, "scale": -1.0},
            "scale must be a finite number above 0",
        ),
        (
            "TiedEmbedding",
            {"vocabulary_size": 9, "d_model": D, "has_logit_bias": "false"},
            "has_logit_bias must be True or False",
        ),
        ("PositionEmbedding", {"d_model": D, "marian": "no"}, "marian must be"),
    ],
)
def test_what_no_layer_can_have_is_refused_when_it_is_made(
    name, arguments, message
):
    with pytest.raises(ValueError, match=message):
        getattr(t2t_lite, name)(**arguments)


@pytest.mark.parametrize("inside", ["layer", "stack"])
def test_a_decoder_without_a_memory_is_refused(inside):
    """It would attend to its own input instead, later positions included."""
    decoder = DecoderLayer(**SIZES)
    if inside == "stack":
        decoder = t2t_lite.Decoder(1, D, F, num_heads=H, d_k=K)
    with pytest.raises(ValueError, match="memory must be"):
        decoder(X, None)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros([1, 2, 4], np.int32), "x must be floats"),
        (np.zeros([1, 2, 4], np.complex64), "x must be floats"),
        (
            tf.RaggedTensor.from_row_lengths(tf.ones([3, 4]), [2, 1]),
            "x must be a dense tensor",
        ),
    ],
)
def test_what_are_no_vectors_is_not_fed_forward(x, message):
    with pytest.raises(ValueError, match=message):
        FeedForward(9)(x)
