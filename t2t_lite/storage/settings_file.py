"""settings.json of a model directory. Reading it needs no TensorFlow."""

import os
import pathlib
from typing import Any

from t2t_lite import files, hparams
from t2t_lite.errors import InputError

NAME = "settings.json"


def read(model_dir: str | os.PathLike) -> dict[str, Any]:
    """Returns what a run was started with, "hparams" as HParams.

    Raises:
        InputError: the directory holds no run, or the file is damaged.
    """
    path = pathlib.Path(os.path.expanduser(model_dir), NAME)
    try:
        values = files.read_json(path)
        return values | {"hparams": hparams.from_dict(values["hparams"])}
    except OSError:
        raise InputError(
            f"{model_dir} is not a model directory: it has no {NAME}"
        ) from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} cannot be used: {error}") from None
