"""What all workers of a run must have alike, for them to train one model."""

import dataclasses
import zlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from t2t_lite.errors import InputError
from t2t_lite.storage.model_directory import Settings
from t2t_lite.text import token_files
from t2t_lite.training.options import RunOptions
from t2t_lite.training.strategies import total_over_replicas, value_from_chief

# By these the workers compute, evaluate and stop in the same updates.
_OPTIONS = ("precision", "xla", "evaluate_every_steps", "patience")


def require_chiefs_settings(
    strategy: tf.distribute.Strategy,
    settings: Settings,
    options: RunOptions,
    dev_pairs: Sequence[tuple[str, str]] | None,
) -> None:
    """Checks that all workers train what the chief trains.

    To be called before variables are made, whose shapes could differ. If one
    worker differs, all of them raise.

    Args:
        strategy: tf.distribute.Strategy.
        settings: this worker's Settings.
        options: this worker's RunOptions.
        dev_pairs: this worker's (source, target) of dev; None if it has none.

    Raises:
        InputError: something differs, which is named.
    """
    alike = {
        **dataclasses.asdict(settings.hparams),
        **{name: getattr(options, name) for name in _OPTIONS},
        "training text": settings.data_sha256,
        "vocabulary": settings.vocabulary_sha256,
        "dev text": token_files.hash_pairs(dev_pairs or []),
    }
    own = np.array([zlib.crc32(repr(v).encode()) for v in alike.values()])
    differs = (own != value_from_chief(strategy, own)).astype(np.int32)
    num_differing = total_over_replicas(strategy, differs)
    for name, count in zip(alike, num_differing, strict=True):
        if count:
            raise InputError(
                f"all workers must have the chief's {name}, and one has "
                "another: give all the same text and the same flags"
            )
