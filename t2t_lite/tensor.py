"""Tensors of any backend: their types, and their minus infinity."""

from typing import Any, TypeAlias

import numpy as np

from t2t_lite.errors import require

Tensor: TypeAlias = Any  # Of any backend, or a NumPy array.
Shape: TypeAlias = tuple[int | None, ...]  # None for sizes unknown to a graph.

# Stands for minus infinity among logits, log probabilities and scores: its
# weight in a softmax is exactly 0 in float32, yet a softmax over nothing else
# is not NaN, and neither are sums and differences of it.
NEG_INF = -1e9


def is_possible(scores: Tensor) -> Tensor:
    """Returns bool: which log probabilities or scores are not `NEG_INF`.

    `NEG_INF` divided by a length penalty counts as `NEG_INF`, too.
    """
    return scores > NEG_INF / 1000


def require_dense(**arguments: Any) -> None:
    """Checks that arguments are not tensors with rows of different lengths.

    Raises:
        InputError: one is ragged or sparse.
    """
    for name, value in arguments.items():
        kind = type(value).__name__
        is_dense = not kind.startswith(("Ragged", "Sparse"))
        rule = f"{name} must be a dense tensor, padded where rows differ"
        require(rule, is_dense, **{name: kind})


def known_values(tensor: Tensor) -> Tensor:
    """Returns a tensor as an array, or unchanged if it has no values yet."""
    try:
        return np.asarray(tensor)
    except (NotImplementedError, TypeError, ValueError):
        return tensor
