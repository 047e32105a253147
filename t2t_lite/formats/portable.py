"""A model apart from its files: what goes from one program to another."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from t2t_lite.hparams import HParams
from t2t_lite.text.vocabulary import Vocabulary


class PortableModel(NamedTuple):
    """All of a model that a model directory, or any other format, needs."""

    hparams: HParams
    weights: Mapping[str, np.ndarray]  # float32, by their names in a checkpoint
    vocabulary: Vocabulary
    # Which lines are split into sentences: the fields of a Splitting.
    splitting: Mapping[str, Any] | None = None
    found: tuple[str, ...] = ()  # what the files were, a line each
