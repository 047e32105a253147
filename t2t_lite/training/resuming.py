"""What a run takes from an earlier one if flags do not say.

Reading it needs no TensorFlow.
"""

import dataclasses
import os
import pathlib
from typing import NamedTuple

from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.storage import settings_file


class PreviousRun(NamedTuple):
    """What a run was begun with; None if there is no such run."""

    hparams: HParams | None = None
    corpus: dict[str, str] | None = None  # the flags that name it


def read_previous_run(
    model_dir: str | None, warm_start_from: str | None = None
) -> PreviousRun:
    """Returns what the settings.json of a model directory says.

    A file that is not even settings counts as missing here; `prepare` refuses
    it. A new run takes the hparams of the model that it starts from.

    Args:
        model_dir: path, which need not exist; None for none.
        warm_start_from: path of a model directory or a checkpoint, or None.

    Raises:
        InputError: `model_dir` is a file, a pipe, or a link to nowhere; or its
            settings do not match their checksum.
    """
    previous = _previous_run_in(model_dir)
    if previous.hparams is not None or warm_start_from is None:
        return previous
    directory = directory_of(warm_start_from)
    if not files.exists(directory / settings_file.NAME):
        # A lone checkpoint; or nothing, which is refused later.
        return previous
    values = settings_file.read(directory)
    logging.info(
        "Settings not given by flags are taken from %s.", warm_start_from
    )
    # The other run's cooldown was for its own number of updates.
    return PreviousRun(dataclasses.replace(values["hparams"], cooldown_steps=0))


def directory_of(warm_start_from: str) -> files.Path:
    """Returns where the settings and the vocabulary of a model would be.

    Args:
        warm_start_from: path of a model directory, or of a checkpoint in one of
            its folders.
    """
    path = files.to_path(warm_start_from)
    if files.is_folder(path):
        return path
    nearest = path.absolute().parents[:2]
    return nearest[-1] if nearest else path


def _previous_run_in(model_dir: str | None) -> PreviousRun:
    if model_dir is None:
        return PreviousRun()
    if not files.is_remote(model_dir):
        path = pathlib.Path(os.path.expanduser(model_dir))
        for folder in (path, *path.absolute().parents):
            if os.path.lexists(folder) and not os.path.isdir(folder):
                where = "" if folder == path else " in its path"
                raise InputError(
                    f"--model_dir must be a folder; {folder}{where} is not one"
                )
    try:
        values = settings_file.read(model_dir)
    except settings_file.ChangedError:
        raise
    except InputError:
        return PreviousRun()
    logging.info(
        "Settings and corpus not given by flags are taken from %s.", model_dir
    )
    return PreviousRun(values["hparams"], values.get("corpus"))
