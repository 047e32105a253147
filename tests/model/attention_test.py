"""Attention equals Eq. 1; windowed attention equals that with a mask."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from keras import ops

from t2t_lite.model import masks
from t2t_lite.model.attention import (
    dot_product_attention,
    windowed_attention,
)

B, L, M, H, K, K_V, D = 2, 3, 5, 4, 6, 7, 9
random = np.random.default_rng(0)


def normal(*shape):
    return random.normal(size=shape).astype("float32")


def heads():
    """Returns q_BHLK, k_BHMK and v_BHMK; the values have another depth, K_V."""
    return normal(B, H, L, K), normal(B, H, M, K), normal(B, H, M, K_V)


def some_may_attend(*shape):
    """Returns a random mask in which each query may attend to something."""
    may_attend = random.random(shape) < 0.5
    may_attend[..., 0] = True
    return may_attend


@pytest.mark.parametrize("mask_shape", [None, (B, 1, 1, M), (B, H, L, M)])
def test_attention_is_equation_1_for_each_head(mask_shape):
    q, k, v = heads()
    may_attend = None if mask_shape is None else some_may_attend(*mask_shape)
    found = dot_product_attention(q, k, v, may_attend=may_attend)
    assert found.shape == (B, H, L, K_V)
    allowed_BHLM = np.broadcast_to(
        True if may_attend is None else may_attend, (B, H, L, M)
    )
    for b, h in np.ndindex(B, H):
        expected = reference.attention(
            *(x[b, h].astype("float64") for x in (q, k, v)),
            allowed_BHLM[b, h],
        )
        np.testing.assert_allclose(found[b, h], expected, atol=1e-5)


def test_what_may_not_be_attended_to_has_no_influence_at_all():
    q, k, v = heads()
    may_attend = some_may_attend(B, 1, 1, M)
    before = dot_product_attention(q, k, v, may_attend=may_attend)
    hidden = np.broadcast_to(~may_attend[:, 0], (B, H, M))
    k[hidden], v[hidden] = 10.0, 1e6
    after = dot_product_attention(q, k, v, may_attend=may_attend)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_query_that_may_attend_to_nothing_gets_the_mean(dtype):
    q, k, v = (ops.cast(x, dtype) for x in heads())
    nothing = np.zeros((B, 1, 1, M), bool)
    found = ops.cast(
        dot_product_attention(q, k, v, may_attend=nothing), "float32"
    )
    mean = np.asarray(ops.cast(v, "float32")).mean(axis=2, keepdims=True)
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
    found = dot_product_attention(
        q, k, v, may_attend=some_may_attend(B, 1, L, M)
    )
    assert seen == ["float32"]
    assert found.dtype.name == dtype


def test_dropout_is_given_the_weights():
    q, k, v = heads()
    kept_BHLM = (random.random((B, H, L, M)) < 0.5).astype("float32")
    given = []

    def dropout(weights_BHLM):
        given.append(weights_BHLM)
        return weights_BHLM * kept_BHLM

    found = dot_product_attention(q, k, v, dropout=dropout)
    (weights,) = (np.asarray(x) for x in given)
    assert weights.shape == (B, H, L, M)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0, rtol=1e-5)
    expected = np.einsum("bhlm,bhmk->bhlk", weights * kept_BHLM, v)
    np.testing.assert_allclose(found, expected, atol=1e-5)


# Windowed attention.

WINDOWS = [(0, 0), (2, 2), (2, 0), (20, 20), (20, 0), (3, 5), (100, 100)]


def windowed(q, k, v, window, may_attend=None):
    before, after = window
    return windowed_attention(
        q, k, v, before=before, after=after, may_attend_B11L=may_attend
    )


@pytest.mark.parametrize("length", [1, 7, 32, 50])
@pytest.mark.parametrize("window", WINDOWS)
def test_windowed_attention_is_full_attention_with_a_mask(window, length):
    q, k, v = (normal(B, H, length, depth) for depth in (K, K, K_V))
    is_key = some_may_attend(B, 1, 1, length)
    is_key[0] = True
    may_attend = is_key & np.asarray(masks.sliding_window(length, *window))
    found = windowed(q, k, v, window=window, may_attend=is_key)
    expected = dot_product_attention(q, k, v, may_attend=may_attend)
    attends = np.broadcast_to(may_attend, (B, H, length, length)).any(-1)
    assert found.shape == (B, H, length, K_V)
    np.testing.assert_allclose(found[attends], expected[attends], atol=1e-5)


@pytest.mark.parametrize("window", WINDOWS)
def test_windowed_attention_in_a_graph_of_unknown_length_is_the_same(window):
    q, k, v = (normal(B, H, 37, K) for _ in range(3))
    spec = tf.TensorSpec([None, H, None, K])
    graph = tf.function(
        lambda q, k, v: windowed(q, k, v, window=window),
        input_signature=[spec] * 3,
    )
    np.testing.assert_allclose(
        graph(q, k, v),
        windowed(q, k, v, window=window),
        atol=1e-6,
    )


def test_gradients_of_windowed_attention_are_those_with_a_mask():
    q, k, v = (tf.constant(normal(B, H, 50, K)) for _ in range(3))
    may_attend = masks.sliding_window(50, 3, 3)

    def gradients(attend):
        with tf.GradientTape() as tape:
            tape.watch((q, k, v))
            y = tf.reduce_sum(attend() ** 2)
        return tape.gradient(y, (q, k, v))

    for found, expected in zip(
        gradients(lambda: windowed(q, k, v, window=(3, 3))),
        gradients(
            lambda: dot_product_attention(q, k, v, may_attend=may_attend)
        ),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_windows_computation_grows_with_the_length_alone():
    """No array of its graph has length x length elements."""
    length = 2048
    graph = tf.function(
        lambda q, k, v: windowed(q, k, v, window=(8, 8))
    ).get_concrete_function(*[tf.TensorSpec([1, 1, length, 4])] * 3)
    sizes = [
        np.prod(output.shape.as_list())
        for op in graph.graph.get_operations()
        for output in op.outputs
        if output.shape.is_fully_defined()
    ]
    assert max(sizes) < 100 * length
