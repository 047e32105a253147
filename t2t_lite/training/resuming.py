"""What a run goes on with where flags leave it open. Needs no TensorFlow."""

import os
from typing import NamedTuple

from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.storage import settings_file


class Begun(NamedTuple):
    """What a run was begun with; None where there is no such run."""

    hparams: HParams | None = None
    corpus: dict[str, str] | None = None  # the flags that name it


def begun_with(model_dir: str | None) -> Begun:
    """Returns what the settings.json of a model directory says.

    One that cannot be used counts as none here; `prepare` refuses it.

    Args:
        model_dir: path, which need not exist; None for none.

    Raises:
        InputError: it is a file, a pipe, or a link to nowhere.
    """
    if model_dir is None:
        return Begun()
    path = os.path.expanduser(model_dir)
    is_here = not files.is_remote(path) and os.path.lexists(path)
    if is_here and not os.path.isdir(path):
        raise InputError(f"--model_dir must be a folder; {model_dir} is none")
    try:
        values = settings_file.read(model_dir)
    except InputError:
        return Begun()
    logging.info(
        "Settings and corpus that no flag gives are those of %s.", model_dir
    )
    return Begun(values["hparams"], values.get("corpus"))
