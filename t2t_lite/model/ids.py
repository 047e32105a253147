"""What token ids must be, checked as far as they are known."""

import keras
import numpy as np

from t2t_lite.errors import require
from t2t_lite.tensor import Tensor, known_values, require_dense


def require_ids_below(count: int, **arguments: Tensor) -> None:
    """Checks that arguments are integers from 0 to count - 1.

    Inside a graph only their type is known: there, the caller must make sure
    that they are in range.

    Args:
        count: how many ids there are.
        **arguments: arrays, lists or tensors, by name.

    Raises:
        InputError: they are not integers, or some are out of range.
    """
    require_dense(**arguments)
    for name, ids in arguments.items():
        ids = known_values(ids)
        dtype = keras.backend.standardize_dtype(ids.dtype)
        require(f"{name} must be integers", "int" in dtype, dtype=dtype)
        if isinstance(ids, np.ndarray) and ids.size:
            for received in (int(ids.min()), int(ids.max())):
                require(
                    f"{name} must be from 0 to {count - 1}",
                    0 <= received < count,
                    **{name: received},
                )
