"""Tensors of any backend: their types, and their minus infinity."""

from typing import Any, TypeAlias

Tensor: TypeAlias = Any  # Of any backend, or an array of NumPy's.
Shape: TypeAlias = tuple[int | None, ...]  # None where a graph knows no size.

# Stands for minus infinity among logits, log probabilities and scores: its
# weight in a softmax is exactly 0 in float32, yet a softmax over nothing else
# is not NaN, and neither are sums and differences of it.
NEG_INF = -1e9
