"""settings.json of a model directory. Reading it needs no TensorFlow."""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from t2t_lite import files, hparams
from t2t_lite.errors import InputError

NAME = "settings.json"
_SHA256 = "sha256"  # of the other fields; version 0.1.0 did not write it
# Parts of a model directory that no output may overwrite.
_OF_A_MODEL = (
    NAME,
    "vocabulary.model",
    "source.model",
    "target.model",
    "tags.npz",
    "tokens",
    "checkpoints",
    "best",
    "averaged",
    "ctranslate2",
)


class ChangedError(InputError):
    """The settings are not those that were written."""


def write(model_dir: str | os.PathLike, values: Mapping[str, Any]) -> None:
    """Writes settings.json atomically, with a checksum.

    Args:
        model_dir: path of the model directory, which exists.
        values: dict of what JSON can hold.
    """
    text = json.dumps({**values, _SHA256: _checksum(values)}, indent=2)
    with files.atomic_file(files.to_path(model_dir) / NAME) as file:
        file.write(text + "\n")


def read(model_dir: str | os.PathLike) -> dict[str, Any]:
    """Returns the settings a run was started with, "hparams" as HParams.

    Raises:
        ChangedError: the checksum is not that of the settings.
        InputError: the directory holds no run, or the file is damaged.
    """
    path = files.to_path(model_dir) / NAME
    try:
        values = files.read_json(path)
        if not isinstance(values, dict) or "hparams" not in values:
            raise ValueError("it has no hparams")
        checksum = values.pop(_SHA256, None)
        _check_unchanged(path, values, checksum)
        values["hparams"] = hparams.from_dict(values["hparams"])
        _check_corpus(values.get("corpus", {}))
        return values
    except OSError:
        raise InputError(
            f"{model_dir} is not a model directory: "
            f"{_describe_other_path(path.parent)}"
        ) from None
    except ChangedError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} cannot be used: {error}") from None


def _checksum(values: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of settings, whatever their order and layout."""
    return hashlib.sha256(
        json.dumps(values, sort_keys=True).encode()
    ).hexdigest()


def _check_unchanged(
    path: files.Path, values: Mapping[str, Any], checksum: Any
) -> None:
    """Raises ChangedError if there is a checksum, and it is of other values."""
    if checksum is not None and checksum != _checksum(values):
        raise ChangedError(
            f"{path} was edited or is damaged: restore it from a backup, or "
            f'remove its "{_SHA256}" to use it as it is'
        )


def corpus_of(model_dir: str | os.PathLike) -> dict[str, str]:
    """Returns the flags that name the corpus of a run, empty if it has none.

    Raises:
        InputError: the directory holds no run, or the file is damaged.
    """
    return read(model_dir).get("corpus", {})


def require_task(model_dir: str | os.PathLike, name: str) -> None:
    """Raises InputError if a model was trained for another task."""
    task = read(model_dir)["hparams"].task
    if task != name:
        raise InputError(
            f"{model_dir} was trained for {task}; this takes a model for {name}"
        )


def _check_corpus(corpus: Any) -> None:
    """Raises TypeError if these are not flags that name a corpus."""
    is_dict = isinstance(corpus, dict)
    if not is_dict or not all(isinstance(v, str) for v in corpus.values()):
        raise TypeError(
            f"corpus must be a dict of str to str; received corpus={corpus!r}"
        )


def require_own(folder: str | os.PathLike) -> None:
    """Raises InputError if a folder is an export, or another program's."""
    path = files.to_path(folder) / NAME
    for export in path.parent.glob("*/saved_model.pb"):
        raise InputError(
            f"{folder} is an export, with {export}: give another --model_dir"
        )
    try:
        values = files.read_json(path)
    except (OSError, ValueError):
        return
    if not isinstance(values, dict) or "hparams" not in values:
        raise InputError(
            f"{path} was not written by a training run: give another "
            "--model_dir"
        )


def _describe_other_path(path: files.Path) -> str:
    """Returns what was found in place of a model directory."""
    if not files.exists(path):
        return "there is no such folder"
    if not files.is_folder(path):
        return "it is not a folder"
    for export in [path, *sorted(path.glob("*/"), reverse=True)]:
        if files.exists(export / "saved_model.pb"):
            return (
                "it is an export, for TensorFlow Serving and "
                f'Translator.from_saved_model("{export}")'
            )
    if files.exists(path / "model.bin"):
        return "it is a folder for CTranslate2: give --engine=ctranslate2"
    is_there = files.exists(path / NAME)
    return f"{NAME} cannot be read" if is_there else f"it has no {NAME}"


def require_no_output_in(
    model_dir: str | os.PathLike | list[str], *outputs: str | None
) -> None:
    """Checks that no output would overwrite a part of the model.

    Args:
        model_dir: path of a model directory, or a list of them.
        *outputs: paths of files that are about to be written, or None.

    Raises:
        InputError: one would.
    """
    if isinstance(model_dir, list):
        for each in model_dir:
            require_no_output_in(each, *outputs)
        return
    if files.is_remote(model_dir):
        return
    folder = os.path.realpath(os.path.expanduser(model_dir))
    for output in filter(files.is_atomic_output, outputs):
        path = os.path.realpath(os.path.expanduser(output))
        first, *_ = os.path.relpath(path, folder).split(os.sep)
        if first in _OF_A_MODEL:
            raise InputError(
                f"cannot write {output}: it is part of the model being read; "
                "give another file"
            )
