"""The files of checkpoints, and which ones a command asks for.

Finding them needs no TensorFlow, so missing ones are reported before it loads.
"""

import os
import re

from t2t_lite import files
from t2t_lite.english import counted
from t2t_lite.errors import (
    InputError,
    program,
    require_int,
    require_path,
)

DATA = ".data-00000-of-00001"
INDEX = ".index"
SUFFIXES = (DATA, INDEX)  # In the order in which they are written.
_STEP_FILE = re.compile(
    rf"(step-(\d+))(?:{re.escape(INDEX)}|{re.escape(DATA)})"
)
# In a model directory, by the value of --checkpoint.
FOLDERS = {"last": "checkpoints", "best": "best", "averaged": "averaged"}


def requested_paths(
    model_dir: str | os.PathLike, which: str = "last", average_last: int = 1
) -> list[files.Path]:
    """Returns the checkpoints that are asked for, newest first.

    Those that exist are returned, damaged or not, so there may be too few.

    Args:
        model_dir: path of a model directory.
        which: "last", "best", "averaged", or the path of a checkpoint.
        average_last: int; above 1, that many of the last ones.
    """
    if which in FOLDERS:
        newest = paths(files.to_path(model_dir) / FOLDERS[which])[::-1]
        return newest[: max(1, average_last)]
    path = named(which)
    return [path] if exists(path) else []


def require(
    model_dir: str | os.PathLike, which: str = "last", average_last: int = 1
) -> None:
    """Checks that each checkpoint asked for exists, at least in part.

    Whether they are intact shows when they are read.

    Args:
        model_dir: that of `requested_paths`.
        which: that of `requested_paths`.
        average_last: that of `requested_paths`.

    Raises:
        InputError: there is none, or too few.
        TypeError: `which` is not a path, or `average_last` is not an int.
    """
    require_path(checkpoint=which)
    require_int(1, average_last=average_last)
    if average_last > 1 and which != "last":
        raise InputError(
            f"give --average_last or --checkpoint={which}, not both"
        )
    if which in FOLDERS:
        there = candidate_paths(files.to_path(model_dir) / FOLDERS[which])
        require_enough(model_dir, len(there), which, average_last=average_last)
    elif not exists(named(which)):
        others = ", ".join(FOLDERS)
        raise InputError(f"{damage(named(which))}; or give {others}")


def require_enough(
    model_dir: str | os.PathLike,
    count: int,
    which: str = "last",
    average_last: int = 1,
) -> None:
    """Checks that a folder of a model directory has enough checkpoints.

    Args:
        model_dir: path of the model directory.
        count: int, how many usable checkpoints were found.
        which: a key of FOLDERS.
        average_last: that of `requested_paths`.

    Raises:
        InputError: there are too few.
    """
    if not count:
        remedy = "train first"
        if which == "averaged":
            remedy = f"run {program('average_checkpoints')}"
        elif average_last == 1:
            remedy += ", or choose another with --checkpoint"
        raise InputError(
            f"{model_dir} has no checkpoint in {FOLDERS[which]}/: {remedy}"
        )
    if count < average_last:
        raise InputError(
            f"{model_dir} keeps {counted(count, 'checkpoint')}, too few to "
            f"average the last {average_last}: give a smaller --average_last, "
            f"or train with --keep_last={average_last} and --save_every_steps"
        )


def named(which: str | os.PathLike) -> files.Path:
    """Returns the path of a checkpoint, given that path or its index."""
    return files.to_path(os.fspath(which).removesuffix(INDEX))


def with_suffix(path: str | os.PathLike, suffix: str) -> files.Path:
    """Returns the path of one of the files of a checkpoint."""
    return files.to_path(f"{path}{suffix}")


def exists(path: str | os.PathLike) -> bool:
    """Returns whether a checkpoint was written to `path`."""
    return files.exists(f"{path}{INDEX}")


def paths(directory: str | os.PathLike) -> list[files.Path]:
    """Returns the paths of the checkpoints step-N in a folder, oldest first."""
    return list(filter(exists, candidate_paths(directory)))


def candidate_paths(directory: str | os.PathLike) -> list[files.Path]:
    """Returns the checkpoints that have an index or data, oldest first."""
    steps = {}
    for file in files.to_path(directory).glob("step-*"):
        match = _STEP_FILE.fullmatch(file.name)
        if match:
            steps[int(match[2])] = file.with_name(match[1])
    return [steps[step] for step in sorted(steps)]


def damage(path: str | os.PathLike) -> str:
    """Returns what is wrong with a checkpoint that cannot be read."""
    missing = [s for s in SUFFIXES if not files.exists(f"{path}{s}")]
    if len(missing) == len(SUFFIXES):
        return (
            f"the checkpoint {path} is missing: give the path of one without "
            "its file suffixes, such as DIR/checkpoints/step-100"
        )
    reasons = [f": {path}{suffix} is missing" for suffix in missing]
    return f"the checkpoint {path} is damaged{''.join(reasons)}"
