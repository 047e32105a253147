"""What exports and servers need, checked before TensorFlow is loaded."""

import os
import pathlib
import re
import socket

from t2t_lite import files
from t2t_lite.errors import (
    InputError,
    program,
    require,
    require_extra,
    require_index,
)
from t2t_lite.hparams import HParams
from t2t_lite.storage import settings_file

_LARGEST_VERSION = 2**63 - 1


def checked_max_length(
    hparams: HParams,
    export_dir: str | os.PathLike,
    max_length: int | None = None,
    attention_layer: int | None = None,
    attention_head: int | None = None,
    quantization: str | None = None,
) -> int:
    """Returns the most tokens of a source that an export takes.

    Args:
        hparams: HParams of the model.
        export_dir: path of the folder of all versions.
        max_length: what was asked for; None for the model's.
        attention_layer: as for `require_parts`.
        attention_head: as for `require_parts`.
        quantization: must be None: a SavedModel has none.

    Raises:
        InputError: such an export cannot be written.
    """
    require_extra("tensorflow_serving", "serving")
    if quantization is not None:
        raise InputError(
            "--quantization has no effect on a saved_model: give --precision, "
            "or another --format"
        )
    require_folder_of_versions(export_dir)
    return served_max_length(
        hparams,
        max_length,
        attention_layer=attention_layer,
        attention_head=attention_head,
    )


def served_max_length(
    hparams: HParams,
    max_length: int | None,
    attention_layer: int | None,
    attention_head: int | None,
) -> int:
    """Returns the most tokens of a source that a model takes from clients.

    Args:
        hparams: HParams of the model.
        max_length: what was asked for; None for the model's.
        attention_layer: as for `require_parts`.
        attention_head: as for `require_parts`.

    Raises:
        InputError: the model has no such part, or takes no such sources.
    """
    if max_length is None:
        max_length = hparams.max_length
    require_parts(
        hparams,
        max_length,
        attention_layer=attention_layer,
        attention_head=attention_head,
    )
    return max_length


def require_parts(
    hparams: HParams,
    max_length: int,
    attention_layer: int | None,
    attention_head: int | None,
) -> None:
    """Checks that a model has such a layer and head, and takes such sources.

    Raises:
        InputError: it does not, or its sources are shorter.
    """
    if not 2 <= max_length <= hparams.max_length:
        raise InputError(
            f"max_length must be from 2 to {hparams.max_length} for this "
            f"model; received max_length={max_length}"
        )
    require_index(hparams.decoder_layers, attention_layer=attention_layer)
    require_index(hparams.num_heads, attention_head=attention_head)


def next_version(path: str | os.PathLike) -> int:
    """Returns one more than the largest version number in a folder.

    Raises:
        InputError: TF Serving, whose versions are int64, could not load it.
    """
    folder = files.to_path(path)
    found = folder.iterdir() if files.is_folder(folder) else []
    names = [each.name for each in found]
    largest = max((int(n) for n in names if n.isdecimal()), default=0)
    if largest >= _LARGEST_VERSION:
        raise InputError(
            f"{path} has a version {largest}, and TF Serving takes none above "
            f"2^63 - 1: give another --export_dir, or rename that version"
        )
    return largest + 1


def newest_version(path: str | os.PathLike) -> files.Path:
    """Returns the folder of the newest version of an export.

    Args:
        path: the folder of all versions, or that of one.

    Raises:
        InputError: there is none.
    """
    folder = _resolved(path)
    if files.exists(folder / "saved_model.pb"):
        return folder
    newest = folder / str(next_version(folder) - 1)
    if not files.exists(newest / "saved_model.pb"):
        missing = newest if files.exists(newest) else folder
        raise InputError(
            f"{missing} has no complete version of an export: give the "
            f"--export_dir that {program('export')} was run with"
        )
    return newest


def model_name(given: str | None, path: str | os.PathLike) -> str:
    """Returns the name that a model is served under.

    Args:
        given: the name that was asked for; None for that of the folder.
        path: of the folder of a model, or of its export.

    Raises:
        InputError: an address cannot contain such a name.
    """
    folder = _resolved(path)
    if files.exists(folder / "saved_model.pb"):  # Of one version.
        folder = folder.parent
    name = given or folder.name
    is_right = re.fullmatch(r"[\w.-]*\w[\w.-]*", name, re.ASCII)
    rule = "give a --name of letters, digits and . _ -"
    require(rule, bool(is_right), name=name)
    return name


def bound_socket(port: int) -> socket.socket:
    """Returns a socket that only programs on this machine can reach.

    Args:
        port: its number; 0 for any that is free.

    Raises:
        InputError: another program has it, or this one may not use it.
    """
    require("port must be from 0 to 65535", 0 <= port <= 65535, port=port)
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(("127.0.0.1", port))
        bound.listen()  # Otherwise another program could bind it, too.
    except OSError as error:
        bound.close()
        raise InputError(
            f"cannot listen on port {port} ({error.strerror}): give another "
            "--port"
        ) from None
    return bound


def require_folder_of_versions(path: str | os.PathLike) -> None:
    """Checks that a folder can hold numbered versions.

    Raises:
        InputError: it is a model directory, or a version or within one.
    """
    path = _resolved(path)
    if files.exists(path / settings_file.NAME):
        raise InputError(
            f"{path} is a model directory: give another --export_dir"
        )
    for folder in (path, *path.parents):
        if (folder / "saved_model.pb").exists():
            raise InputError(
                f"{folder} is one version of an export: give the folder of all "
                f"versions, {folder.parent}"
            )
    next_version(path)
    if path.name.isdecimal() and not path.exists():
        raise InputError(
            f"{path} is named like a version: give the folder of all "
            f"versions, {path.parent}"
        )


def _resolved(path: str | os.PathLike) -> files.Path:
    path = files.to_path(path)
    if files.is_remote(path):
        return path
    # Path.resolve can raise an error for a loop of links.
    return pathlib.Path(os.path.realpath(path))
