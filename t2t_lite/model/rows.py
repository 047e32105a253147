"""Vectors of any shape as the rows of one matrix and back, and rows by index.

If TensorFlow does not know the sizes of x [B, L, D], its product with a matrix
takes some twenty operations to find them out, and adding a bias takes one more.
For a matrix, the product is one operation, which adds the bias too. Looking up
rows by an index, or making them from one, is also one operation, for which
Keras takes a dozen or more; and Keras copies a transposed factor of a product
of int8. N counts the rows.
"""

import math

import keras
from keras import ops

from t2t_lite.errors import require
from t2t_lite.tensor import Shape, Tensor, require_dense


def require_floats(**arguments: Tensor) -> None:
    """Checks that arguments are dense tensors of floats.

    Raises:
        InputError: one is not.
    """
    require_dense(**arguments)
    for name, x in arguments.items():
        dtype = keras.backend.standardize_dtype(x.dtype)
        require(f"{name} must be floats", "float" in dtype, dtype=dtype)


def flatten(x: Tensor) -> Tensor:
    """Returns [N, D]: the vectors of x [..., D]."""
    D = x.shape[-1]
    return ops.reshape(x, (-1, ops.shape(x)[-1] if D is None else D))


def restore(x_ND: Tensor, like: Tensor) -> Tensor:
    """Returns [..., D]: rows x_ND at the places of the vectors in `like`.

    >>> import numpy as np
    >>> x = np.zeros((2, 3, 4))
    >>> restore(flatten(x) @ np.ones((4, 5)), like=x).shape
    TensorShape([2, 3, 5])
    """
    return ops.reshape(x_ND, (*shape(like)[:-1], x_ND.shape[-1]))


def shape(x: Tensor) -> Shape:
    """Returns the shape of x for `ops.reshape`, which can find out one size.

    It is -1, not a number to compute with, if the graph knows all the others.
    """
    known = tuple(x.shape)
    if known.count(None) != 1 or 0 in known:
        return ops.shape(x)
    return tuple(-1 if size is None else size for size in known)


def gather(x: Tensor, index: Tensor, batch_dims: int = 1) -> Tensor:
    """Returns x[b, index[b, n]] as [B, N, ...], for x [B, M, ...].

    B stands for as many axes as there are batch dimensions, N for any number.

    >>> import numpy as np
    >>> gather(np.array([[7, 8, 9], [4, 5, 6]]), np.array([[2, 2], [0, 1]]))
    <tf.Tensor: shape=(2, 2), dtype=int64, numpy=
    array([[9, 9],
           [4, 5]])>

    Args:
        x: of any dtype.
        index: int, from 0 to M - 1. A negative one does not count from the end,
            as it does for `ops.take`: what it gives depends on the device.
        batch_dims: how many leading axes x and index have in common.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf  # Keras takes dozens of operations for this.

        return tf.gather(x, index, batch_dims=batch_dims)
    # As rows of one matrix: `ops.take_along_axis` looks up single numbers.
    batch, (M, *rest) = x.shape[:batch_dims], x.shape[batch_dims:]
    B = math.prod(batch)
    ones = [1] * (len(index.shape) - batch_dims)
    first = M * ops.reshape(ops.arange(B, dtype="int32"), (*batch, *ones))
    return ops.take(ops.reshape(x, (B * M, *rest)), first + index, axis=0)


def take(x: Tensor, index: Tensor) -> Tensor:
    """Returns x[index] for x [M, ...], by the same operation as `gather`."""
    return gather(x, index, batch_dims=0)


def times_columns(x_ND: Tensor, columns_JD: Tensor) -> Tensor:
    """Returns int32 [N, J]: the products of int8 rows and columns.

    >>> import numpy as np
    >>> times_columns(np.int8([[1, 2]]), np.int8([[3, 4], [5, 100]])).numpy()
    array([[ 11, 205]], dtype=int32)

    Args:
        x_ND: int8.
        columns_JD: int8, the matrix transposed: under XLA on a CPU, the product
            is fastest so.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf  # Keras copies the transposed columns.

        return tf.matmul(
            x_ND, columns_JD, transpose_b=True, output_type="int32"
        )
    return ops.matmul(x_ND, ops.transpose(columns_JD))


def one_hot(index_N: Tensor, size: int, hit: float, others: float) -> Tensor:
    """Returns float32 [N, size]: `hit` at each index, `others` elsewhere.

    >>> one_hot([1, 0], 3, 0.75, 0.125).numpy().tolist()
    [[0.125, 0.75, 0.125], [0.75, 0.125, 0.125]]

    Args:
        index_N: int32 or int64.
        size: int.
        hit: float.
        others: float.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf  # One pass over [N, size].

        return tf.one_hot(
            index_N, size, on_value=hit, off_value=others, dtype="float32"
        )
    is_hit = ops.arange(size, dtype="int32") == index_N[:, None]
    return ops.where(is_hit, hit, others)
