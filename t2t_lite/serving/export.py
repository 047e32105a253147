"""A trained model as a SavedModel that takes text and gives text.

It needs nothing of this package: TF Serving loads it, and so does any program
that has TensorFlow and tensorflow-text's ops. Next to the versions of a model
are two files for the server: how it batches requests, and which models it has.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import tempfile
from typing import Any

import tensorflow as tf
import tensorflow_text
from absl import logging

from t2t_lite import errors, files
from t2t_lite.errors import InputError, reason
from t2t_lite.remote_path import RemotePath
from t2t_lite.serving import checks, opening
from t2t_lite.serving.signatures import ServedModel, ServingOptions
from t2t_lite.storage import checkpoints
from t2t_lite.storage.model_directory import ModelDirectory, Settings
from t2t_lite.text.vocabulary import Vocabulary


def export(
    directory: ModelDirectory,
    export_dir: str | os.PathLike,
    options: ServingOptions,
    *,
    checkpoint: str = "last",
    average_last: int = 1,
    precision: str = "float32",
) -> files.Path:
    """Writes <export_dir>/<version>/ and returns its path.

    The version is the next free number. It is written aside and moved into
    place, so that a server that watches the folder sees only complete models.
    On another machine folders cannot be moved: no server may watch such a
    folder until all files of the version are there.

    Args:
        directory: ModelDirectory.
        export_dir: path of the folder of all versions, made if there is none.
        options: ServingOptions.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, the mean of that many of the last ones.
        precision: "float32", "bfloat16" or "float16", of the computation; or
            "int8", as for a Translator.

    Raises:
        InputError: tensorflow-serving-api is not installed, the directory has
            no such model, an option does not suit it, or the folder cannot be
            written.
    """
    errors.require_extra("tensorflow_serving", "serving")
    from t2t_lite.serving import server_files

    directory.require_task("translation")
    checks.require_folder_of_versions(export_dir)
    _warn_if_misread(files.to_path(export_dir).absolute())
    served, description = opening.served_model(
        directory,
        options,
        checkpoint=checkpoint,
        average_last=average_last,
        precision=precision,
    )
    vocabulary = directory.vocabulary()
    metadata = _metadata(directory.settings(), vocabulary, options) | {
        "checkpoint": description,
        "precision": precision,
    }
    export_dir = files.to_path(export_dir)
    checkpoints.require_no_glob_characters(export_dir)
    try:
        with files.scratch_folder(export_dir / "model") as folder:
            path = folder / "model"
            _save(served, vocabulary, metadata=metadata, path=path)
            warmup_path = path / "assets.extra" / "tf_serving_warmup_requests"
            server_files.write_warmup(
                warmup_path, vocabulary, options.max_length
            )
            server_files.write_settings(export_dir)
            return _move_to_next_version(path, export_dir)
    except (OSError, tf.errors.OpError) as error:  # A full disk, for example.
        what = getattr(error, "strerror", None) or reason(error)
        raise InputError(
            f"cannot write the export {export_dir}: {what}"
        ) from None


def _metadata(
    settings: Settings, vocabulary: Vocabulary, options: ServingOptions
) -> dict[str, Any]:
    """Returns what metadata.json says about the model and its options."""
    return {
        "search": options.search._asdict(),
        "splitting": options.splitting._asdict(),
        "max_length": options.max_length,
        "xla": options.xla,
        "attention_layer": options.attention_layer,
        "attention_head": options.attention_head,
        "attention_reads": options.attention_reads,
        "hparams": dataclasses.asdict(settings.hparams),
        "vocabulary_size": vocabulary.size,
        "vocabulary_sha256": vocabulary.sha256,
        "data_sha256": settings.data_sha256,
        "versions": {
            "tensorflow": tf.__version__,
            "tensorflow_text": tensorflow_text.__version__,
        },
    }


def _save(
    served: ServedModel,
    vocabulary: Vocabulary,
    metadata: dict[str, Any],
    path: pathlib.Path,
) -> None:
    """Writes a SavedModel and its assets to `path`."""
    with tempfile.TemporaryDirectory() as folder:
        metadata_path = pathlib.Path(folder, "metadata.json")
        metadata_path.write_text(json.dumps(metadata, indent=2), "utf-8")
        vocabulary.save_in(folder)
        # What the functions refer to must be reachable from what is saved.
        root = tf.Module()
        root.weights = served.variables
        root.translate_ids = served.translate_ids
        root.metadata = tf.saved_model.Asset(str(metadata_path))
        root.vocabulary = [
            tf.saved_model.Asset(os.path.join(folder, name))
            for name in vocabulary.sides()
        ]
        tf.saved_model.save(root, str(path), served.signatures())


def _move_to_next_version(
    path: pathlib.Path, export_dir: files.Path
) -> files.Path:
    if isinstance(export_dir, RemotePath):
        return _upload_next_version(path, export_dir)
    while True:
        target = export_dir / str(checks.next_version(export_dir))
        try:
            files.move_into_place(path, target)
            return target
        except OSError:  # Another export took the number.
            if not target.exists():
                raise


def _upload_next_version(
    path: pathlib.Path, export_dir: RemotePath
) -> RemotePath:
    target = export_dir / str(checks.next_version(export_dir))
    found = [file for file in path.rglob("*") if file.is_file()]
    try:
        for file in sorted(found, key=lambda f: f.name == "saved_model.pb"):
            (target / file.relative_to(path)).upload(file)
    except BaseException:  # Part of it would pass for the newest version.
        with contextlib.suppress(OSError):
            target.rmtree()
        raise
    return target


def _warn_if_misread(path: files.Path) -> None:
    if checkpoints.has_glob_characters(path):
        logging.warning(
            "TF Serving reads %s as a pattern, and will not find the model "
            'there: move it to a path without "[" or backslashes.',
            path,
        )
