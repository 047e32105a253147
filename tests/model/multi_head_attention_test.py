"""Multi-head attention equals one head after the other."""

import numpy as np
import pytest
import reference
import tensorflow as tf

from t2t_lite.errors import InputError
from t2t_lite.model import masks
from t2t_lite.model.multi_head_attention import (
    MultiHeadAttention,
    record_weights,
)

B, L, M, H, K, K_V, D = 2, 3, 5, 4, 6, 7, 9
random = np.random.default_rng(0)


def normal(*shape):
    return random.normal(size=shape).astype("float32")


@pytest.mark.parametrize("d_v", [None, K_V])
@pytest.mark.parametrize("to_itself", [True, False])
def test_multi_head_attention_is_one_head_after_the_other(d_v, to_itself):
    layer = MultiHeadAttention(H, K, d_v)
    x = normal(B, L, D)
    # A memory may differ in depth from the queries.
    memory = x if to_itself else normal(B, M, D + 1)
    may_attend = random.random((B, 1, L, memory.shape[1])) < 0.5
    may_attend[..., 0] = True  # Each query attends to something.
    arguments = (x,) if to_itself else (x, memory)
    found = layer(*arguments, may_attend=may_attend)
    weights = reference.weights_of(layer)
    assert weights["value"].shape[1] == H * (d_v or K)
    for b in range(B):
        expected = reference.multi_head_attention(
            x[b], memory[b], weights, H, may_attend[b, 0]
        )
        np.testing.assert_allclose(found[b], expected, atol=1e-5)


@pytest.mark.parametrize("d_v", [None, K_V])
def test_one_product_gives_what_three_do(d_v):
    layer = MultiHeadAttention(H, K, d_v)
    x = normal(B, L, D)
    layer.build(x.shape)
    found = layer.project_qkv(x, layer.fused_qkv())
    expected = (layer.queries(x), *layer.keys_and_values(x))
    for some, others in zip(found, expected, strict=True):
        np.testing.assert_allclose(some, others, atol=1e-6)


def test_projections_have_no_biases_and_glorots_range():
    layer = MultiHeadAttention(H, K, K_V)
    layer.build((B, L, D))
    shapes = {name: w.shape for name, w in reference.weights_of(layer).items()}
    assert shapes == {
        "query": (D, H * K),
        "key": (D, H * K),
        "value": (D, H * K_V),
        "output": (H * K_V, D),
    }
    for matrix in layer.get_weights():
        limit = np.sqrt(6 / sum(matrix.shape))
        assert 0.9 * limit < np.abs(matrix).max() <= limit


def test_attention_dropout_acts_in_training_only():
    layer = MultiHeadAttention(H, K, dropout=0.5)
    x = normal(B, L, D)
    expected = MultiHeadAttention(H, K)
    expected(x)
    layer(x)
    layer.set_weights(expected.get_weights())
    np.testing.assert_array_equal(layer(x), expected(x))
    dropped = [np.asarray(layer(x, training=True)) for _ in range(2)]
    assert np.abs(dropped[0] - expected(x)).max() > 0.01
    assert np.abs(dropped[0] - dropped[1]).max() > 0.01


def test_attention_dropout_drops_weights_and_scales_up_the_others():
    rate, length = 0.25, 40
    layer = MultiHeadAttention(1, length, dropout=rate)
    layer.build((1, length, length))
    eye, zeros = np.eye(length), np.zeros((length, length))
    # The attention weights are equal, and the output shows each of them.
    layer.set_weights([zeros, zeros, eye, eye])
    weights = np.asarray(layer(eye[None].astype("float32"), training=True))
    is_dropped = weights == 0
    np.testing.assert_allclose(
        weights[~is_dropped], 1 / length / (1 - rate), rtol=1e-5
    )
    assert is_dropped.mean() == pytest.approx(rate, abs=0.05)


def test_gradient_reaches_all_four_matrices():
    layer = MultiHeadAttention(H, K, K_V)
    x = normal(B, L, D)
    layer(x)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x)[..., 0])
    for gradient in tape.gradient(loss, layer.trainable_weights):
        assert np.abs(gradient).max() > 0


def test_a_layers_window_restricts_self_attention_and_records_its_weights():
    layer = MultiHeadAttention(H, K, window=(1, 0))
    x = normal(B, M, D)
    with record_weights() as weights:
        output = layer(x)
    (weights_BHLM,) = weights.values()
    distance = np.arange(M) - np.arange(M)[:, None]
    is_far = np.broadcast_to((distance < -1) | (distance > 0), (B, H, M, M))
    assert not np.any(np.asarray(weights_BHLM)[is_far])
    np.testing.assert_allclose(np.sum(weights_BHLM, -1), 1, atol=1e-6)
    full = MultiHeadAttention(H, K)
    full.build(x.shape)
    full.set_weights(layer.get_weights())
    np.testing.assert_allclose(
        output, full(x, may_attend=masks.sliding_window(M, 1, 0)), atol=1e-5
    )


def test_a_window_takes_no_mask_that_differs_by_query():
    layer = MultiHeadAttention(H, K, window=(1, 1))
    message = r"the same for all heads and queries .* shape \(1, 1, 5, 5\)"
    with pytest.raises(ValueError, match=message):
        layer(normal(B, M, D), may_attend=masks.causal(M))


@pytest.mark.parametrize("rows", [(4, 1), (1, 4), (4, 3)])
def test_a_memory_of_another_batch_is_refused(rows):
    layer = MultiHeadAttention(num_heads=3, d_k=4)
    x, memory = (np.zeros((B, 5, 12), np.float32) for B in rows)
    with pytest.raises(ValueError, match="same number of rows; received x="):
        layer(x, memory)


def test_vectors_without_a_batch_are_refused():
    layer = MultiHeadAttention(num_heads=3, d_k=4)
    x, one = np.zeros((1, 5, 12), np.float32), np.zeros((5, 12), np.float32)
    for name, inputs in (("x", (one,)), ("memory", (x, one[:1]))):
        rule = rf"{name} must be \[B, L, D\]; received"
        with pytest.raises(InputError, match=rule):
            layer(*inputs)


def test_a_mask_of_numbers_is_refused():
    x = np.zeros((3, 5, 12), np.float32)
    mask = np.zeros((3, 1, 5, 5), np.float32)
    with pytest.raises(ValueError, match="may_attend must be bool; received"):
        MultiHeadAttention(num_heads=3, d_k=4)(x, may_attend=mask)


@pytest.mark.parametrize(
    "shape", [(2, 1, 1, 5), (3, 1, 4, 5), (5, 4), (1, 3, 1, 5, 5)]
)
def test_a_mask_of_other_sizes_is_refused(shape):
    x = np.zeros((3, 5, 16), np.float32)
    layer = MultiHeadAttention(num_heads=4, d_k=4)
    rule = r"may_attend must broadcast to \[B, H, L, M\] = \[3, 4, 5, 5\]"
    with pytest.raises(InputError, match=rule):
        layer(x, may_attend=np.ones(shape, bool))
    for fits in [(3, 1, 1, 5), (1, 4, 5, 5), (1, 5, 5), (5, 1), (5,), ()]:
        layer(x, may_attend=np.ones(fits, bool))


@pytest.mark.parametrize("mask", [None, np.ones((4, 5), bool)])
def test_a_mask_with_three_axes_is_refused(mask):
    """Its first axis might be B or H; here, B equals H."""
    x = np.zeros((4, 5, 16), np.float32)
    layer = MultiHeadAttention(num_heads=4, d_k=4)
    rule = r"may_attend must have four axes, \[B, H, L, M\], or at most two"
    with pytest.raises(InputError, match=rule):
        layer(x, may_attend=np.ones((4, 5, 5), bool), mask=mask)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["x", "x"], "mask must be None where there is a memory: give memory_"),
        (["x"], "memory_mask must be None where there is no memory"),
    ],
)
def test_a_mask_that_would_have_no_effect_is_refused(arguments, rule):
    x, mask = np.zeros((3, 5, 16), np.float32), np.ones((3, 5), bool)
    layer = MultiHeadAttention(num_heads=4, d_k=4)
    name = "mask" if len(arguments) == 2 else "memory_mask"
    with pytest.raises(InputError, match=rule):
        layer(*[x for _ in arguments], **{name: mask})


@pytest.mark.parametrize(
    ("x", "rule"),
    [
        (tf.ones((2, 3, 16), tf.int32), "x must be floats; received"),
        (tf.ones((2, 3, 16), tf.complex64), "x must be floats; received"),
        (
            tf.RaggedTensor.from_row_lengths(tf.ones((4, 16)), [3, 1]),
            "x must be a dense tensor, padded where",
        ),
    ],
)
def test_vectors_that_are_no_dense_floats_are_refused(x, rule):
    with pytest.raises(InputError, match=rule):
        MultiHeadAttention(num_heads=4, d_k=4)(x)


@pytest.mark.parametrize("name", ["use_bias"])
@pytest.mark.parametrize("value", ["no", 1, None])
def test_what_is_no_bool_is_refused(name, value):
    with pytest.raises(InputError, match=f"{name} must be True or False"):
        MultiHeadAttention(num_heads=4, d_k=4, **{name: value})
