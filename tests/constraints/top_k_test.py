"""Searching by chunks finds the largest numbers that Keras does, ties too."""

import numpy as np
import pytest
from keras import ops

from t2t_lite.constraints.top_k import top_k
from t2t_lite.tensor import NEG_INF


@pytest.mark.parametrize("size", [9, 1025, 1152, 5000, 32_000])
@pytest.mark.parametrize("distinct", [2, 40, 10**6])
@pytest.mark.parametrize("k", [1, 2, 8])
def test_the_best_of_the_best_chunks_are_the_best_of_all(size, distinct, k):
    """Few distinct numbers give many ties, of which the first ones win."""
    random = np.random.default_rng(size)
    x = random.integers(distinct, size=(5, size)).astype("float32")
    x[1, size // 2 :] = NEG_INF
    x[2:] -= distinct
    x[4, :-1] = -np.inf
    for row in x[2:4]:  # A few large numbers, anywhere.
        row[random.choice(size, 9, replace=False)] = [3, 2, 2, 2, 2, 1, 1, 1, 1]
    expected, expected_index = ops.top_k(x, k)
    found, index = top_k(x, k)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(index, expected_index)
