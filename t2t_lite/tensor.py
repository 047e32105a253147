"""The type of what `keras.ops` takes and gives, for annotations."""

from typing import Any, TypeAlias

Tensor: TypeAlias = Any  # Of any backend, or an array of NumPy's.
