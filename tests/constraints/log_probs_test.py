"""Log probabilities from a softmax are those of the equation."""

import numpy as np
import pytest
import reference
from keras import ops

from t2t_lite.constraints.log_probs import log_softmax
from t2t_lite.tensor import NEG_INF, is_possible

B, W, V = 2, 3, 50
LOGITS = np.random.default_rng(0).normal(0, 3, (B, W, V)).astype("float32")


@pytest.mark.parametrize("offset", [-1000.0, 0.0, 1000.0])
@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
def test_log_softmax_is_the_equation(offset, spread):
    logits = offset + spread * LOGITS
    logits[0, 0, 1:] = NEG_INF  # Only one token is possible.
    logits[1, :, 3] = NEG_INF
    found = log_softmax(logits)
    expected = reference.log_softmax(logits.astype("float64"))
    log_probs = found.logits_BWV - found.log_total_BW[..., None]
    np.testing.assert_allclose(log_probs, expected, rtol=1e-6, atol=3e-4)
    if not offset:
        np.testing.assert_allclose(log_probs, expected, rtol=1e-6, atol=1e-5)


def test_one_token_of_each_hypothesis():
    found = log_softmax(LOGITS)
    ids = np.array([[4, 0, 49], [7, 7, 1]], "int32")
    expected = np.take_along_axis(
        reference.log_softmax(LOGITS), ids[..., None], axis=-1
    )
    np.testing.assert_allclose(found.at(ids), expected[..., 0], rtol=1e-5)


def test_logits_of_lower_precision_are_float32():
    rounded = ops.cast(LOGITS, "bfloat16")
    found = log_softmax(rounded)
    expected = log_softmax(ops.cast(rounded, "float32"))
    for part, of_float32 in zip(found, expected, strict=True):
        assert part.dtype == "float32"
        np.testing.assert_array_equal(part, of_float32)


@pytest.mark.parametrize("never", [NEG_INF, -np.inf])
def test_where_nothing_is_possible_nothing_becomes_so(never):
    found = log_softmax(np.full((1, 1, 4), never, "float32"))
    log_probs = found.logits_BWV - found.log_total_BW[..., None]
    assert not ops.any(is_possible(log_probs))
