"""Rows times a matrix of weights, in a floating-point precision or in int8."""

from typing import NamedTuple

import keras
from keras import ops

from t2t_lite.model import rows
from t2t_lite.tensor import Tensor


class Int8Matrix(NamedTuple):
    """A matrix [D, J] whose columns are rounded to 8 bits, each to its scale.

    Column j is columns_JD[j] / scale_1J[:, j].
    """

    columns_JD: Tensor  # int8, each column in consecutive places
    scale_1J: Tensor  # float32


Matrix = Tensor | Int8Matrix


def round_to_int8(matrix_DJ: Tensor) -> Int8Matrix:
    """Returns a matrix, float [D, J], whose columns are rounded to 8 bits."""
    # Transposed as floats: for int8, oneDNN prints an error that is none.
    columns_JD, scale_J1 = keras.quantizers.abs_max_quantize(
        ops.transpose(matrix_DJ), axis=-1
    )
    return Int8Matrix(columns_JD, ops.transpose(scale_J1))


def multiply(x_ND: Tensor, matrix: Matrix, dtype: str) -> Tensor:
    """Returns [N, J]: rows times a matrix.

    Args:
        x_ND: float.
        matrix: float [D, J]; or an Int8Matrix, for whose product each row is
            rounded to 8 bits by a scale of its own, and the sums have 32.
        dtype: what the factors are cast to, if the matrix is of floats.

    Returns:
        A tensor of this dtype; float32 for an Int8Matrix.
    """
    if not isinstance(matrix, Int8Matrix):
        return ops.matmul(ops.cast(x_ND, dtype), ops.cast(matrix, dtype))
    x_ND = ops.cast(x_ND, "float32")
    int8_ND, scale_N1 = keras.quantizers.abs_max_quantize(x_ND, axis=-1)
    sums_NJ = rows.times_columns(int8_ND, matrix.columns_JD)
    return ops.cast(sums_NJ, "float32") / (scale_N1 * matrix.scale_1J)
