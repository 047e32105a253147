"""Where to find each task. A task is imported when it is opened."""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from t2t_lite.hparams import HParams
from t2t_lite.task import Task
from t2t_lite.translation.members import Paths, members_of

if TYPE_CHECKING:
    from t2t_lite.decoding.line_predictor import LinePredictor

_HOMES = {
    "translation": "t2t_lite.translation_task",
    "parsing": "t2t_lite.parsing.task",
}


def named(name: str) -> Task:
    """Returns the Task of this name, one of those that HParams allows."""
    return importlib.import_module(_HOMES[name]).TASK


def task_of(hparams: HParams) -> Task:
    """Returns the Task that settings name.

    Raises:
        InputError: the settings do not fit the task.
    """
    task = named(hparams.task)
    task.check_hparams(hparams)
    return task


def open_model(
    model_dir: Paths, checkpoint: str | Sequence[str] = "last", **options: Any
) -> "LinePredictor":
    """Returns the Translator or the Parser of a model directory.

    Args:
        model_dir: path of a model directory, or a list of those of models that
            translate together.
        checkpoint: that of `members_of`.
        **options: more options of either; None for the default.

    Raises:
        InputError: the directory has no such model, or an option is wrong.
    """
    from t2t_lite.storage.model_directory import ModelDirectory

    members = members_of(model_dir, checkpoint)
    first = members[0].model_dir
    task = task_of(ModelDirectory(first).settings().hparams)
    given = {k: v for k, v in options.items() if v is not None}
    if len(members) == 1:
        return task.open(first, checkpoint=members[0].checkpoint, **given)
    return task.open(model_dir, checkpoint=checkpoint, **given)
