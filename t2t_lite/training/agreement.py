"""What must be the same on all workers of a run, to train one model."""

import dataclasses
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite.errors import InputError
from t2t_lite.optimization.strategies import (
    total_over_replicas,
    value_from_chief,
)
from t2t_lite.storage.model_directory import Settings
from t2t_lite.training.options import RunOptions

# These make all workers compute, evaluate, skip and stop in the same updates.
_OPTIONS = (
    "precision",
    "xla",
    "evaluate_every_steps",
    "patience",
    "divergence_factor",
    "on_divergence",
    "max_skips",
)


def require_chiefs_options(
    strategy: tf.distribute.Strategy, options: RunOptions, dev_sha256: str
) -> None:
    """Checks that all workers run as the chief does, and that they can.

    If one worker differs, all of them raise.

    Args:
        strategy: tf.distribute.Strategy.
        options: this worker's RunOptions.
        dev_sha256: of this worker's dev text; "" if it has none.

    Raises:
        InputError: something differs, which is named; or an option needs dev
            text.
    """
    must_match = {name: getattr(options, name) for name in _OPTIONS}
    _require_chiefs(strategy, must_match | {"dev text": dev_sha256})
    # Only now: all workers must raise this, or none.
    if not dev_sha256:
        options.require_no_dev_text()


def require_chiefs_settings(
    strategy: tf.distribute.Strategy, settings: Settings
) -> None:
    """Checks that all workers train what the chief trains.

    Call this before variables are created, because their shapes could differ.
    If one worker differs, all of them raise.

    Args:
        strategy: tf.distribute.Strategy.
        settings: this worker's Settings.

    Raises:
        InputError: something differs, which is named.
    """
    must_match = {
        **dataclasses.asdict(settings.hparams),
        "corpus_weights": settings.corpus_weights,
        "training text": settings.data_sha256,
        "vocabulary": settings.vocabulary_sha256,
    }
    _require_chiefs(strategy, must_match)


def require_chiefs_shapes(
    strategy: tf.distribute.Strategy, shapes: Sequence[tuple[int, int, int]]
) -> None:
    """Checks by the shapes of batches that all workers draw the same subwords.

    Args:
        strategy: tf.distribute.Strategy.
        shapes: (S, T, B) of this worker's batches.

    Raises:
        InputError: they differ.
    """
    must_match = {"shapes of batches": shapes}
    remedy = "run the same version of NumPy and of t2t_lite on all"
    _require_chiefs(strategy, must_match, remedy)


def _require_chiefs(
    strategy: tf.distribute.Strategy,
    must_match: dict[str, Any],
    remedy: str = "give all the same text and the same flags",
) -> None:
    """Raises InputError on all workers if one's values are not the chief's.

    Args:
        strategy: tf.distribute.Strategy.
        must_match: values that must be the same, by name in the message; all
            workers give the same names.
        remedy: what to do if they are not.
    """
    own = np.array([zlib.crc32(repr(v).encode()) for v in must_match.values()])
    differs = (own != value_from_chief(strategy, own)).astype(np.int32)
    num_differing = total_over_replicas(strategy, differs)
    for name, count in zip(must_match, num_differing, strict=True):
        if count:
            raise InputError(
                f"all workers must have the chief's {name}, but at least one "
                f"differs: {remedy}"
            )
