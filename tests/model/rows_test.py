"""Products of rows equal those of tensors, with known sizes or not."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.model import rows
from t2t_lite.model.embedding import TiedEmbedding
from t2t_lite.model.layers import FeedForward
from t2t_lite.model.multi_head_attention import MultiHeadAttention

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MATRIX = np.arange(20, dtype=np.float32).reshape(4, 5)


def product(x):
    return rows.restore(rows.flatten(x) @ MATRIX, x)


@pytest.mark.parametrize(
    "shape",
    [[2, 3, 4], [None, 3, 4], [2, None, 4], [None, None, 4], [None] * 3],
)
def test_a_product_of_rows_is_that_of_the_tensor(shape):
    graph = tf.function(product, [tf.TensorSpec(shape)], autograph=False)
    np.testing.assert_array_equal(graph(X), X @ MATRIX)


@pytest.mark.parametrize(
    "shape", [[None, 3, 4], [None, None, 4], [None, 0, 4], [2, None, 4]]
)
def test_nothing_has_no_rows(shape):
    graph = tf.function(product, [tf.TensorSpec(shape)], autograph=False)
    nothing = X[:, :0] if shape[0] == 2 or shape[1] == 0 else X[:0]
    assert graph(nothing).shape == (*nothing.shape[:2], 5)


def test_where_one_size_is_unknown_the_graph_looks_up_none():
    """Only operations show it: what they compute is the same either way."""
    graph = tf.function(product, [tf.TensorSpec([None, 3, 4])], autograph=False)
    made = {
        op.type for op in graph.get_concrete_function().graph.get_operations()
    }
    assert "MatMul" in made
    assert "Shape" not in made


@pytest.mark.parametrize(
    ("layer", "method", "count"),
    [
        (FeedForward(20), "__call__", 2),
        (FeedForward(20), "step", 2),
        (MultiHeadAttention(3, 4), "__call__", 2),
        (TiedEmbedding(11, 12), "logits", 1),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_layers_multiply_rows_and_add_biases_to_them(layer, method, count):
    """Only operations show it: more of them would compute the same, slower."""
    layer.build((None, None, 12))
    matrices = ()
    if method == "step":
        matrices = layer.hidden.kernel, layer.output_layer.kernel
    graph = tf.function(
        lambda x: getattr(layer, method)(x, *matrices),
        [tf.TensorSpec([None, None, 12])],
        autograph=False,
    )
    made = graph.get_concrete_function().graph.get_operations()
    assert [op.type for op in made].count("MatMul") == count
    assert "Prod" not in {op.type for op in made}  # tensordot adds it.
    biased = [op.inputs[0].op.type for op in made if op.type == "BiasAdd"]
    assert biased == ["MatMul"] * (2 * isinstance(layer, FeedForward))


@pytest.mark.parametrize("backend", ["tensorflow", "another"])
@pytest.mark.parametrize("batch_dims", [0, 1, 2, 3])
@pytest.mark.parametrize("num_axes", [0, 1, 2])
def test_gather_takes_by_index(backend, batch_dims, num_axes, monkeypatch):
    monkeypatch.setattr(rows.keras.backend, "backend", lambda: backend)
    random = np.random.default_rng(0)
    x = random.integers(0, 99, (2, 3, 4, 5, 6))
    sizes = *x.shape[:batch_dims], *(7, 8)[:num_axes]
    index = random.integers(0, x.shape[batch_dims], sizes).astype("int32")
    found = rows.gather(x, index, batch_dims)
    expected = [
        np.take(x[place], index[place], axis=0)
        for place in np.ndindex(x.shape[:batch_dims])
    ]
    np.testing.assert_array_equal(
        np.reshape(found, np.shape(expected)), expected
    )
    assert found.shape == (*sizes, *x.shape[batch_dims + 1 :])
