"""Rows of tensors against the tensors, of sizes known and not."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import rows

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MATRIX = np.arange(20, dtype=np.float32).reshape(4, 5)


def product(x):
    return rows.unflattened(rows.of(x) @ MATRIX, x)


@pytest.mark.parametrize(
    "shape", [[2, 3, 4], [None, 3, 4], [2, None, 4], [None, None, 4]]
)
def test_a_product_of_rows_is_that_of_the_tensor(shape):
    graph = tf.function(product, [tf.TensorSpec(shape)], autograph=False)
    np.testing.assert_array_equal(graph(X), X @ MATRIX)


@pytest.mark.parametrize("shape", [[None, 3, 4], [None, None, 4]])
def test_nothing_has_no_rows(shape):
    graph = tf.function(product, [tf.TensorSpec(shape)], autograph=False)
    assert graph(X[:0]).shape == (0, 3, 5)


def test_where_one_size_is_unknown_the_graph_looks_up_none():
    graph = tf.function(product, [tf.TensorSpec([None, 3, 4])], autograph=False)
    made = {
        op.type for op in graph.get_concrete_function().graph.get_operations()
    }
    assert "MatMul" in made
    assert "Shape" not in made
