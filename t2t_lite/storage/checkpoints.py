"""Checkpoints: named tensors in TensorFlow's format, written atomically.

A checkpoint is the pair of files step-N.index and step-N.data-00000-of-00001
that `tf.train.load_checkpoint` reads. The index is moved into place last, so
where there is an index there is a checkpoint.
"""

import itertools
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError

_DATA = ".data-00000-of-00001"
_UNREADABLE = (tf.errors.OpError, ValueError, RuntimeError, OSError, IndexError)


def _any_name(_: str) -> bool:
    return True


def write(path: str | os.PathLike, tensors: Mapping[str, Any]) -> None:
    """Writes named tensors to the checkpoint `path`.

    Args:
        path: the files' name without suffix; its folder is made.
        tensors: dict of str to tensor, array or number.

    Raises:
        InputError: the disk is full or refuses; nothing is left half-written.
    """
    path = pathlib.Path(path)
    try:
        with files.scratch_folder(path) as folder:
            aside = folder / path.name
            tf.raw_ops.SaveV2(
                prefix=str(aside),
                tensor_names=list(tensors),
                shape_and_slices=[""] * len(tensors),
                tensors=[tf.convert_to_tensor(t) for t in tensors.values()],
            )
            os.replace(f"{aside}{_DATA}", f"{path}{_DATA}")
            os.replace(f"{aside}.index", f"{path}.index")
    except (tf.errors.OpError, OSError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(
            f"cannot write the checkpoint {path}: {reason}; those written "
            "before are unharmed: free some space and run the command again"
        ) from None


def read(
    path: str | os.PathLike, is_wanted: Callable[[str], bool] = _any_name
) -> dict[str, np.ndarray]:
    """Returns the named arrays of the checkpoint `path` as a dict.

    Args:
        path: the files' name without suffix.
        is_wanted: a function of a tensor's name; others are not read.

    Raises:
        InputError: it is missing, cut short or damaged.
    """
    try:
        reader = tf.train.load_checkpoint(str(path))
        names = filter(is_wanted, sorted(reader.get_variable_to_shape_map()))
        return {name: reader.get_tensor(name) for name in names}
    except _UNREADABLE:
        state = "damaged" if exists(path) else "missing"
        raise InputError(f"the checkpoint {path} is {state}") from None


def exists(path: str | os.PathLike) -> bool:
    """Returns whether a checkpoint was written to `path`."""
    return os.path.exists(f"{path}.index")


def remove(path: str | os.PathLike) -> None:
    """Removes the files of a checkpoint."""
    pathlib.Path(f"{path}.index").unlink(missing_ok=True)
    pathlib.Path(f"{path}{_DATA}").unlink(missing_ok=True)


def paths(directory: str | os.PathLike) -> list[pathlib.Path]:
    """Returns the paths of the checkpoints step-N in a folder, oldest first."""
    steps = {}
    for index in pathlib.Path(directory).glob("step-*.index"):
        match = re.fullmatch(r"step-(\d+)", index.stem)
        if match:
            steps[int(match[1])] = index.with_suffix("")
    return [steps[step] for step in sorted(steps)]


def newest(
    directory: str | os.PathLike, is_wanted: Callable[[str], bool] = _any_name
) -> Iterator[tuple[pathlib.Path, dict[str, np.ndarray]]]:
    """Yields (path, tensors) of the readable checkpoints, newest first.

    A damaged one is passed over with a warning.

    Raises:
        InputError: there are checkpoints and all are damaged.
    """
    candidates, readable = paths(directory), 0
    for path in reversed(candidates):
        try:
            tensors = read(path, is_wanted)
        except InputError as error:
            logging.warning("%s: falling back to the one before.", error)
            continue
        readable += 1
        yield path, tensors
    if candidates and not readable:
        raise InputError(f"every checkpoint in {directory} is damaged")


def prune(
    directory: str | os.PathLike, keep: int, written: str | os.PathLike
) -> None:
    """Removes what the checkpoint just written makes useless.

    That is all but the newest `keep` up to it, those of later steps, which the
    run was not resumed from, and what was left half-written.

    Args:
        directory: path of the folder of checkpoints.
        keep: int, at least 1.
        written: path of the checkpoint just written.
    """
    all_paths = paths(directory)
    end = all_paths.index(pathlib.Path(written)) + 1
    for path in (*all_paths[: max(0, end - keep)], *all_paths[end:]):
        remove(path)
    files.remove_leftovers(directory)


def average(
    checkpoints: Iterable[tuple[pathlib.Path, dict[str, np.ndarray]]],
    count: int,
) -> tuple[list[pathlib.Path], dict[str, np.ndarray]]:
    """Returns the mean of the first `count` checkpoints.

    Args:
        checkpoints: iterable of (path, tensors), as `newest` yields them.
        count: int.

    Returns:
        (list of the paths, dict of the tensors' means in the dtypes of the
        first checkpoint). There are fewer paths where there are fewer
        checkpoints.

    Raises:
        InputError: two of them have other tensors.

    Source: section 6.1, "averaging the last 5 checkpoints".
    """
    averaged, sums, first = [], {}, {}
    for path, tensors in itertools.islice(checkpoints, count):
        if not averaged:
            first = tensors
            sums = {n: np.float64(tensor) for n, tensor in tensors.items()}
        elif _shapes(tensors) != _shapes(first):
            raise InputError(
                f"checkpoints that are averaged must have the same tensors; "
                f"{path} and {averaged[0]} differ"
            )
        else:
            for name, total in sums.items():
                total += tensors[name]
        averaged.append(path)
    means = {
        name: (total / len(averaged)).astype(first[name].dtype)
        for name, total in sums.items()
    }
    return averaged, means


def _shapes(tensors):
    return {name: tensor.shape for name, tensor in tensors.items()}
