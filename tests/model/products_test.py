"""Products in int8 are exact in their 8 bits, and near those of floats."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.model import products

D, J = 300, 7


@pytest.fixture(params=[False, True], ids=["eager", "XLA"])
def multiply(request):
    """`products.multiply` by an Int8Matrix, also compiled by XLA."""
    if not request.param:
        return lambda *args: products.multiply(*args, "float32").numpy()

    @tf.function(jit_compile=True)
    def compiled(x_ND, columns_JD, scale_1J):
        matrix = products.Int8Matrix(columns_JD, scale_1J)
        return products.multiply(x_ND, matrix, "float32")

    return lambda x_ND, matrix: compiled(x_ND, *matrix).numpy()


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_each_column_is_rounded_to_its_own_scale():
    matrix_DJ = drawn(D, J) * 10.0 ** np.arange(-3, J - 3, dtype=np.float32)
    columns_JD, scale_1J = products.round_to_int8(tf.constant(matrix_DJ))
    assert columns_JD.dtype == tf.int8
    assert np.abs(columns_JD).max(1).tolist() == [127] * J
    error_DJ = columns_JD.numpy().T / scale_1J.numpy() - matrix_DJ
    step_J = np.abs(matrix_DJ).max(0) / 127
    assert (np.abs(error_DJ) <= 0.51 * step_J).all()
    assert (np.abs(error_DJ).max(0) > 0.4 * step_J).all()


@pytest.mark.parametrize("num_rows", [1, 4, 40])
def test_a_product_is_that_of_the_rounded_numbers(multiply, num_rows):
    x_ND = drawn(num_rows, D, seed=1)
    matrix = products.round_to_int8(tf.constant(drawn(D, J)))
    x_scale_N1 = 127 / np.abs(x_ND).max(1, keepdims=True)
    rounded_ND = np.round(x_ND * x_scale_N1)
    sums_NJ = rounded_ND @ matrix.columns_JD.numpy().T.astype(np.float64)
    expected_NJ = sums_NJ / (x_scale_N1 * matrix.scale_1J.numpy())
    found_NJ = multiply(x_ND, matrix)
    assert found_NJ.dtype == np.float32
    np.testing.assert_allclose(found_NJ, expected_NJ, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found_NJ, x_ND @ drawn(D, J), atol=1.0)


def test_sums_are_not_cut_to_16_bits(multiply):
    matrix = products.round_to_int8(tf.ones([D, J]))
    for sign in (1.0, -1.0):
        found_NJ = multiply(np.full([4, D], sign, np.float32), matrix)
        np.testing.assert_allclose(found_NJ, sign * D, rtol=1e-5)


def test_zeros_stay_zeros(multiply):
    matrix_DJ = drawn(D, J)
    matrix_DJ[:, 2] = 0.0
    x_ND = drawn(4, D)
    x_ND[1] = 0.0
    found_NJ = multiply(x_ND, products.round_to_int8(tf.constant(matrix_DJ)))
    assert (found_NJ == 0.0).sum() == J + 4 - 1
    assert (found_NJ[1] == 0.0).all()
    assert (found_NJ[:, 2] == 0.0).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_product_of_floats_has_the_precision_asked_for(dtype):
    x_ND, matrix_DJ = drawn(4, D), drawn(D, J)
    found_NJ = products.multiply(
        tf.constant(x_ND), tf.constant(matrix_DJ), dtype
    )
    assert found_NJ.dtype == dtype
    expected_NJ = tf.matmul(tf.cast(x_ND, dtype), tf.cast(matrix_DJ, dtype))
    np.testing.assert_array_equal(found_NJ, expected_NJ)
