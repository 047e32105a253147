"""Exports a trained model to another program."""

import os

from t2t_lite import files
from t2t_lite.errors import require_extra
from t2t_lite.formats import ctranslate2, hugging_face_export
from t2t_lite.formats.portable import PortableModel
from t2t_lite.hparams import HParams

# What at least one format can store weights in.
QUANTIZATIONS = ctranslate2.QUANTIZATIONS
_FORMATS = {"ctranslate2": ctranslate2, "hugging_face": hugging_face_export}


def require_possible(
    format_name: str,
    hparams: HParams,
    folder: str | os.PathLike,
    quantization: str | None = None,
) -> None:
    """Checks what `export` needs, before TensorFlow is loaded.

    The arguments are those of `export`.

    Raises:
        InputError: a package is missing, the format has no such quantization or
            cannot carry such a model, or something exists at `folder`.
    """
    module = _FORMATS[format_name]
    require_extra(*module.NEEDS)
    module.require_quantization(quantization)
    module.require_supported(hparams)
    files.require_new_folder(folder)


def export(
    format_name: str,
    hparams: HParams,
    folder: str | os.PathLike,
    quantization: str | None,
    model_dir: str | os.PathLike,
    *,
    checkpoint: str = "last",
    average_last: int = 1,
) -> files.Path:
    """Writes a new folder for another program, whole or not at all.

    Args:
        format_name: "ctranslate2" or "hugging_face".
        hparams: those of the model directory, except for how to search.
        folder: path on this machine, where nothing exists yet.
        quantization: what weights are stored in, one of the format's
            QUANTIZATIONS; None for float32.
        model_dir: path of the model directory.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, the mean of that many of the last ones.

    Returns:
        the folder's path.

    Raises:
        InputError: what `require_possible` refuses; or there is no such
            checkpoint, or the folder cannot be written.
    """
    from t2t_lite.storage.model_directory import ModelDirectory

    directory = ModelDirectory(model_dir)
    directory.require_task("translation")
    _, weights = directory.weights(checkpoint, average_last)
    splitting = directory.settings().splitting()._asdict()
    model = PortableModel(
        hparams=hparams,
        weights=weights,
        vocabulary=directory.vocabulary(),
        splitting=splitting,
    )
    _FORMATS[format_name].write(model, folder, quantization=quantization)
    return files.to_path(folder)
