"""Searching by chunks finds the largest sums that Keras does, ties too."""

import numpy as np
import pytest
from keras import ops

from t2t_lite.constraints.top_k import top_k
from t2t_lite.tensor import NEG_INF


@pytest.mark.parametrize("V", [2, 9, 129, 1152, 5000, 8011, 32_000])
@pytest.mark.parametrize("distinct", [2, 40, 10**6])
@pytest.mark.parametrize("k", [1, 2, 6])
def test_the_best_of_the_best_chunks_are_the_best_of_all(V, distinct, k):
    """Few distinct numbers give many ties, of which the first ones win."""
    random = np.random.default_rng(V)
    x = random.integers(distinct, size=(5, 3, V)).astype("float32")
    x[1, 1:] = NEG_INF
    x[2:] -= distinct
    x[4, :, :-1] = -np.inf
    for row in x[2:4].reshape(2, -1):  # A few large numbers, anywhere.
        count = min(9, row.size)
        places = random.choice(row.size, count, replace=False)
        row[places] = [3, 2, 2, 2, 2, 1, 1, 1, 1][:count]
    x[3] += random.random(x[3].shape).astype("float32") * 1e-6  # Rounding.
    added = random.integers(-100, 3, size=(5, 3)).astype("float32")
    added[0, 0] = NEG_INF
    sums = (x + added[..., None]).reshape(5, -1)
    expected, expected_index = map(np.array, ops.top_k(sums, k))
    found, index = map(np.array, top_k(x, added, k))
    np.testing.assert_array_equal(found, expected)
    is_number = np.isfinite(expected)
    np.testing.assert_array_equal(index[is_number], expected_index[is_number])
    assert ((index >= 0) & (index < 3 * V)).all()


@pytest.mark.parametrize("finite", range(3))
def test_all_places_are_those_of_numbers(finite):
    W, V = 3, 257  # No multiple of a chunk.
    x = np.full((1, W, V), -np.inf, "float32")
    x[0, finite] = 0.0
    found, index = map(np.array, top_k(x, np.zeros((1, W), "float32"), W * V))
    assert np.isfinite(found).sum() == V
    assert index[0, :V].tolist() == [*range(finite * V, (finite + 1) * V)]
    assert ((index >= 0) & (index < W * V)).all()
