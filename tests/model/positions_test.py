"""Sines and cosines against the formula, and what the paper says of them."""

import numpy as np
import pytest
import reference

from t2t_lite.model.embedding import sinusoids


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
