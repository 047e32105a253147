"""Loads a SavedModel that bin/export wrote."""

import os
from typing import Any, NamedTuple

import tensorflow as tf

from t2t_lite import files
from t2t_lite.decoding.engine import Engine
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.errors import (
    InputError,
    program,
    require,
    require_int,
    require_path,
)
from t2t_lite.storage import checkpoints
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import Vocabulary

# What TensorFlow and the reading of other files raise for damaged parts.
DAMAGE = (
    AttributeError,
    LookupError,
    OSError,
    TypeError,
    ValueError,
    tf.errors.OpError,
)


class SavedModel(NamedTuple):
    """What a translator is made of, from an export."""

    engine: Engine
    vocabulary: Vocabulary
    options: SearchOptions  # what it was exported with
    splitting: Splitting


def load(path: str | os.PathLike) -> SavedModel:
    """Returns the SavedModel in the directory of one version.

    Args:
        path: such as "export/1".

    Raises:
        InputError: the directory has no SavedModel that bin/export wrote.
    """
    require_path(path=path)
    path = files.to_path(path)
    try:
        return _load(path)
    except DAMAGE as error:
        is_there = files.exists(path)
        what = _first_line(error) if is_there else "there is no such path"
        raise InputError(
            f"{path} is not a complete SavedModel from {program('export')} "
            f"({what}): {_remedy(path)}"
        ) from None


def _remedy(path: files.Path) -> str:
    if (path / "settings.json").exists():
        return f'it is a model directory; open it with Translator("{path}")'
    versions = [int(p.name) for p in path.glob("*/") if p.name.isdecimal()]
    example = path / str(max(versions)) if versions else "export/1"
    return f"give the directory of one version, such as {example}"


def _load(path: files.Path) -> SavedModel:
    import tensorflow_text  # noqa: F401, the ops of its tokenizer

    metadata = files.read_json(path / "assets/metadata.json")
    options, splitting, max_length = _checked(metadata)
    vocabulary = Vocabulary.load_from(path / "assets")
    if vocabulary.sha256 != metadata["vocabulary_sha256"]:
        names = " and ".join(vocabulary.sides())
        raise InputError(f"its {names} came from a different model")
    with checkpoints.readable_path(path) as readable:
        root = tf.saved_model.load(readable)
    if not callable(getattr(root, "translate_ids", None)):
        raise InputError("its saved_model.pb was written by another program")

    def translate_ids(ids):
        # Through `root`: its functions live only as long as it does.
        return root.translate_ids(ids)

    engine = Engine(translate_ids, max_length, str(path))
    return SavedModel(engine, vocabulary, options=options, splitting=splitting)


def _checked(metadata: Any) -> tuple[SearchOptions, Splitting, int]:
    """Returns what metadata.json says, if it is all of the right kind."""
    search = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in metadata["search"].items()
    }
    options = SearchOptions(**search)
    options.check()
    splitting = Splitting(**metadata.get("splitting", {}))
    require_int(0, whole_up_to=splitting.whole_up_to)
    language = splitting.language
    is_language = language is None or isinstance(language, str)
    require("language must be text or null", is_language, language=language)
    require_int(2, max_length=metadata["max_length"])
    most = metadata["hparams"]["max_length"]
    rule = f"max_length must be at most that of its hparams, {most}"
    require(
        rule, metadata["max_length"] <= most, max_length=metadata["max_length"]
    )
    return options, splitting, metadata["max_length"]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
