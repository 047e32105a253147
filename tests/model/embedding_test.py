"""Embeddings of tokens and positions equal those of NumPy and the paper."""

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf

from t2t_lite.model.embedding import (
    PositionEmbedding,
    TiedEmbedding,
    sinusoids,
)

B, T, D, V = 2, 7, 12, 11
X = np.random.default_rng(0).normal(size=(B, T, D)).astype("float32")

# Tokens.


def test_embedding_looks_ids_up_times_the_root_of_d_model():
    layer = TiedEmbedding(V, D)
    ids = np.array([[1, 0, 10], [4, 4, 2]])
    found = layer(ids)
    (matrix,) = layer.get_weights()
    assert matrix.shape == (V, D)
    np.testing.assert_allclose(found, matrix[ids] * np.sqrt(D), rtol=1e-6)


def test_logits_are_products_with_the_same_matrix():
    layer = TiedEmbedding(V, D)
    layer.build()
    (matrix,) = layer.get_weights()
    np.testing.assert_allclose(layer.logits(X), X @ matrix.T, atol=1e-5)


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32_whatever_the_policy(precision):
    layer = TiedEmbedding(V, D, dtype=precision)
    vectors = layer(np.array([[1, 2]]))
    assert vectors.dtype.name == precision.removeprefix("mixed_")
    assert layer.logits(vectors).dtype.name == "float32"


def test_embedding_starts_with_vectors_of_deviation_one():
    keras.utils.set_random_seed(0)
    vectors = TiedEmbedding(200, 50)(np.arange(200))
    assert np.std(vectors) == pytest.approx(1.0, abs=0.05)


# Positions.


@pytest.mark.parametrize("start", [0, 3])
def test_positions_are_added(start):
    found = PositionEmbedding(D)(X, start=start) - X
    expected = reference.position_encodings(range(start, start + T), D)
    np.testing.assert_allclose(found, np.stack([expected] * B), atol=1e-5)


@pytest.mark.parametrize("start", [0, 2])
def test_learned_positions_are_rows_of_a_table(start):
    layer = PositionEmbedding(D, learned=9)
    found = layer(X, start=start) - X
    (table,) = layer.get_weights()
    assert table.shape == (9, D)
    expected = np.stack([table[start : start + T]] * B)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_sequence_longer_than_the_learned_table_is_an_error():
    layer = PositionEmbedding(D, learned=T - 1)
    message = "learned positions end at 6; received a sequence of length 7"
    with pytest.raises(ValueError, match=message):
        layer(X)


def test_sinusoids_have_no_weights():
    layer = PositionEmbedding(D)
    layer(X)
    assert layer.weights == []


# Sines and cosines.


@pytest.mark.parametrize("d_model", [2, 12, 512])
def test_sinusoids_equal_the_formula(d_model):
    found = sinusoids(np.arange(7), d_model)
    assert found.shape == (7, d_model)
    assert found.dtype == "float32"
    np.testing.assert_allclose(
        found, reference.position_encodings(range(7), d_model), atol=1e-5
    )


def test_positions_may_start_anywhere():
    positions = [3, 250, 17]
    np.testing.assert_allclose(
        sinusoids(positions, 12),
        reference.position_encodings(positions, 12),
        atol=1e-4,
    )


def test_sines_and_cosines_alternate():
    first_L = np.asarray(sinusoids(np.arange(5), 6))
    np.testing.assert_allclose(first_L[:, 0], np.sin(np.arange(5)), atol=1e-6)
    np.testing.assert_allclose(first_L[:, 1], np.cos(np.arange(5)), atol=1e-6)


def test_an_offset_is_one_linear_map_of_all_positions():
    """Section 3.5: PE(pos + k) is a linear function of PE(pos)."""
    d_model, offset = 6, 5
    encodings = np.asarray(sinusoids(np.arange(40), d_model), np.float64)
    before, after = encodings[:-offset], encodings[offset:]
    matrix, *_ = np.linalg.lstsq(before, after, rcond=None)
    np.testing.assert_allclose(before @ matrix, after, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros([1, 2, 4], np.int32), "x must be floats"),
        (np.zeros([1, 2, 6], np.float32), r"x must be \[B, L, 4\]; received"),
    ],
)
def test_positions_are_not_added_to_what_are_no_vectors(x, message):
    with pytest.raises(ValueError, match=message):
        PositionEmbedding(4)(x)


def test_the_gradient_of_a_logit_bias_is_that_of_the_logits():
    layer = TiedEmbedding(11, 6, has_logit_bias=True)
    layer.build()
    x = tf.random.stateless_normal([2, 3, 6], [1, 2])
    with tf.GradientTape() as tape:
        x_NJ, matrix_VJ = layer.factors(x, 7)
        product = tf.linalg.matmul(x_NJ, matrix_VJ, transpose_b=True)
        total = tf.reduce_sum(product * tf.reshape(tf.range(42.0), [2, 3, 7]))
    gradient = tape.gradient(total, layer.logit_bias.value)
    expected = np.arange(42.0).reshape(6, 7).sum(0)
    np.testing.assert_allclose(gradient, [*expected, 0, 0, 0, 0])


@pytest.mark.parametrize("num_ids", [0, -3, V + 1])
def test_logits_of_ids_that_are_none_are_refused(num_ids):
    layer = TiedEmbedding(V, D)
    layer.build()
    with pytest.raises(ValueError, match=f"num_ids must be from 1 to {V}"):
        layer.logits(X, num_ids)
