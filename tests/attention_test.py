"""Attention against Eq. 1, and against one head at a time."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from keras import ops

from t2t_lite.attention import MultiHeadAttention, dot_product_attention

B, L, M, H, K, K_V, D = 2, 3, 5, 4, 6, 7, 9
random = np.random.default_rng(0)


def normal(*shape):
    return random.normal(size=shape).astype("float32")


def heads():
    """Returns q_BLHK, k_BMHK, v_BMHK; the values' depth is another."""
    return normal(B, L, H, K), normal(B, M, H, K), normal(B, M, H, K_V)


def some_may_attend(*shape):
    """Returns a random mask in which each query may attend to something."""
    may_attend = random.random(shape) < 0.5
    may_attend[..., 0] = True
    return may_attend


@pytest.mark.parametrize("mask_shape", [None, (B, 1, 1, M), (B, H, L, M)])
def test_attention_is_equation_1_for_each_head(mask_shape):
    q, k, v = heads()
    may_attend = mask_shape and some_may_attend(*mask_shape)
    found = dot_product_attention(q, k, v, may_attend)
    assert found.shape == (B, L, H, K_V)
    allowed_BHLM = np.broadcast_to(
        True if may_attend is None else may_attend, (B, H, L, M)
    )
    for b, h in np.ndindex(B, H):
        expected = reference.attention(
            *(x[b, :, h].astype("float64") for x in (q, k, v)),
            allowed_BHLM[b, h],
        )
        np.testing.assert_allclose(found[b, :, h], expected, atol=1e-5)


def test_what_may_not_be_attended_to_has_no_influence_at_all():
    q, k, v = heads()
    may_attend = some_may_attend(B, 1, 1, M)
    before = dot_product_attention(q, k, v, may_attend)
    hidden = ~may_attend[:, 0, 0]
    k[hidden], v[hidden] = 10.0, 1e6
    after = dot_product_attention(q, k, v, may_attend)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_query_that_may_attend_to_nothing_gets_the_mean(dtype):
    q, k, v = (ops.cast(x, dtype) for x in heads())
    nothing = np.zeros((B, 1, 1, M), bool)
    found = ops.cast(dot_product_attention(q, k, v, nothing), "float32")
    mean = np.asarray(ops.cast(v, "float32")).mean(axis=1, keepdims=True)
    tolerance = 1e-5 if dtype == "float32" else 0.05
    np.testing.assert_allclose(
        found, np.broadcast_to(mean, found.shape), atol=tolerance
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_softmax_is_float32_whatever_the_inputs_are(monkeypatch, dtype):
    seen = []
    softmax = ops.softmax

    def recorded(logits, *args, **kwargs):
        seen.append(keras.backend.standardize_dtype(logits.dtype))
        return softmax(logits, *args, **kwargs)

    monkeypatch.setattr(ops, "softmax", recorded)
    q, k, v = (ops.cast(x, dtype) for x in heads())
    found = dot_product_attention(q, k, v, some_may_attend(B, 1, L, M))
    assert seen == ["float32"]
    assert found.dtype.name == dtype


def test_dropout_is_given_the_weights():
    q, k, v = heads()
    kept_BHLM = (random.random((B, H, L, M)) < 0.5).astype("float32")
    given = []

    def dropout(weights_BHLM):
        given.append(weights_BHLM)
        return weights_BHLM * kept_BHLM

    found = dot_product_attention(q, k, v, None, dropout)
    (weights,) = (np.asarray(x) for x in given)
    assert weights.shape == (B, H, L, M)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-5)
    expected = np.einsum("bhlm,bmhk->blhk", weights * kept_BHLM, v)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("d_v", [None, K_V])
@pytest.mark.parametrize("to_itself", [True, False])
def test_multi_head_attention_is_one_head_after_the_other(d_v, to_itself):
    layer = MultiHeadAttention(H, K, d_v)
    x = normal(B, L, D)
    # A memory may have another depth than the queries.
    memory = x if to_itself else normal(B, M, D + 1)
    may_attend = some_may_attend(B, 1, L, memory.shape[1])
    arguments = (x,) if to_itself else (x, memory)
    found = layer(*arguments, may_attend=may_attend)
    weights = reference.weights_of(layer)
    assert weights["value"].shape[1] == H * (d_v or K)
    for b in range(B):
        expected = reference.multi_head_attention(
            x[b], memory[b], weights, H, may_attend[b, 0]
        )
        np.testing.assert_allclose(found[b], expected, atol=1e-5)


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
    # Equal weights, and values that show each of them.
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


def test_a_layer_made_from_its_config_is_the_same():
    layer = MultiHeadAttention(H, K, K_V, dropout=0.1)
    config = layer.get_config()
    given = {"num_heads": H, "d_k": K, "d_v": K_V, "dropout": 0.1}
    assert config.items() >= given.items()
    other = MultiHeadAttention.from_config(config)
    assert other.get_config() == config
    assert other.compute_output_shape((B, L, D)) == (B, L, D)
