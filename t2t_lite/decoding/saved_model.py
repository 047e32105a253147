"""Loads a SavedModel that bin/export wrote."""

import json
import os
import pathlib
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.decoding.search import Engine, SearchOptions
from t2t_lite.errors import InputError
from t2t_lite.text.vocabulary import Vocabulary


class SavedModel(NamedTuple):
    """What a translator is composed of, from an export."""

    engine: Engine
    vocabulary: Vocabulary
    options: SearchOptions  # what it was exported with


def load(path: str | os.PathLike) -> SavedModel:
    """Returns the SavedModel in the directory of one version.

    Args:
        path: such as "export/1".

    Raises:
        InputError: the directory has no SavedModel that bin/export wrote.
    """
    try:
        return _load(path)
    except (
        AttributeError,
        InputError,
        LookupError,
        OSError,
        TypeError,
        ValueError,
        tf.errors.OpError,
    ) as error:
        raise InputError(
            f"{path} is not a complete SavedModel from bin/export "
            f"({str(error).splitlines()[0]}): give the directory of one "
            "version, such as export/1"
        ) from None


def _load(path: str | os.PathLike) -> SavedModel:
    import tensorflow_text  # noqa: F401, the ops of its tokenizer

    root = tf.saved_model.load(os.fspath(path))
    metadata = json.loads(_asset(root.metadata).read_text("utf-8"))

    def translate_ids(ids):
        # Its functions live as long as `root` does.
        return root.translate_ids(ids)

    engine = Engine(translate_ids, metadata["max_length"], str(path))
    return SavedModel(
        engine,
        Vocabulary.load(_asset(root.vocabulary)),
        SearchOptions(**metadata["search"]),
    )


def _asset(asset) -> pathlib.Path:
    return pathlib.Path(asset.asset_path.numpy().decode())
