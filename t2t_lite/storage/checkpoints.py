"""Checkpoints: named tensors in TensorFlow's format, written atomically.

A checkpoint is the pair of files step-N.index and step-N.data-00000-of-00001
that `tf.train.load_checkpoint` reads. The index is moved into place last, so
where there is an index there is a checkpoint.
"""

import contextlib
import itertools
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError, reason
from t2t_lite.storage.checkpoint_files import (
    DATA,
    INDEX,
    SUFFIXES,
    candidate_paths,
    damage,
    exists,
    paths,
    with_suffix,
)

_UNREADABLE = (tf.errors.OpError, ValueError, RuntimeError, OSError, IndexError)


def _any_name(_: str) -> bool:
    return True


def write(path: str | os.PathLike, tensors: Mapping[str, Any]) -> None:
    """Writes named tensors to the checkpoint `path`.

    Args:
        path: of the files, without suffix; its folder is created if needed.
        tensors: dict of str to tensor, array or number.

    Raises:
        InputError: the disk is full or fails; nothing is left half-written.
    """
    path = files.to_path(path)
    try:
        with files.scratch_folder(path) as folder:
            aside = folder / path.name
            tf.raw_ops.SaveV2(
                prefix=str(aside),
                tensor_names=list(tensors),
                shape_and_slices=[""] * len(tensors),
                tensors=[tf.convert_to_tensor(t) for t in tensors.values()],
            )
            files.move_files(
                (with_suffix(aside, suffix), with_suffix(path, suffix))
                for suffix in SUFFIXES
            )
    except (tf.errors.OpError, OSError) as error:
        with contextlib.suppress(OSError):
            if not exists(path):  # Data alone would pass for a damaged one.
                remove(path)
        raise InputError(
            f"cannot write the checkpoint {path}: {reason(error)}; earlier "
            "checkpoints are intact: fix the cause, and run the command again"
        ) from None


def read(
    path: str | os.PathLike, is_wanted: Callable[[str], bool] = _any_name
) -> dict[str, np.ndarray]:
    """Returns the named arrays of the checkpoint `path` as a dict.

    Args:
        path: of the files, without suffix.
        is_wanted: function of a tensor's name; says whether to read it.

    Raises:
        InputError: the checkpoint is missing, cut short or damaged.
    """
    path = files.to_path(path)
    try:
        with readable_path(path) as readable:
            reader = tf.compat.v1.train.NewCheckpointReader(readable)
            names = sorted(reader.get_variable_to_shape_map())
            return {n: reader.get_tensor(n) for n in names if is_wanted(n)}
    except InputError:
        raise
    except _UNREADABLE:
        if files.is_remote(path):
            _require_reachable(path)
        raise InputError(damage(path)) from None


def _require_reachable(path):
    """Raises OSError if a remote file exists but cannot be read."""
    for suffix in SUFFIXES:
        with (
            contextlib.suppress(FileNotFoundError),
            with_suffix(path, suffix).open() as file,
        ):
            file.read(1)


@contextlib.contextmanager
def readable_path(path: str | os.PathLike) -> Iterator[str]:
    """Yields a path by which TensorFlow reads a checkpoint or a SavedModel.

    It goes through symbolic links if TensorFlow would misread the given one.
    """
    if not has_glob_characters(path):
        yield os.fspath(path)
        return
    require_no_glob_characters(path)
    folder, name = os.path.split(os.path.abspath(path))
    with tempfile.TemporaryDirectory() as temporary:
        link = os.path.join(temporary, "link")
        for file in os.listdir(folder):
            if file.startswith(name):
                target = os.path.join(folder, file)
                os.symlink(target, link + file.removeprefix(name))
        yield link


def require_no_glob_characters(path: files.Path) -> None:
    """Refuses a remote path that TensorFlow would misread.

    Raises:
        InputError: this is such a path.
    """
    if files.is_remote(path) and has_glob_characters(path):
        raise InputError(
            f"TensorFlow reads {path} as a pattern: give a path without "
            '"[" or backslashes'
        )


def has_glob_characters(path: str | os.PathLike) -> bool:
    """Returns whether TensorFlow finds no checkpoint or SavedModel at `path`.

    TensorFlow takes the path for a pattern, and a pattern with "[" or a
    backslash does not match itself.
    """
    return bool(re.search(r"[\[\\]", os.fspath(path)))


def finish_writing(directory: str | os.PathLike) -> None:
    """Moves into place the indices that a killed process left aside.

    Both files of a checkpoint are on disk before either is moved, so if its
    data is in place and its index is still aside, nothing is lost. Call this
    while no other process writes.

    Args:
        directory: path of a folder of checkpoints, which need not exist.
    """
    directory = files.to_path(directory)
    for index in directory.glob(f"{files.ASIDE}step-*/step-*{INDEX}"):
        name = index.name.removesuffix(INDEX)
        is_moved = not index.with_name(f"{name}{DATA}").exists()
        if is_moved and (directory / f"{name}{DATA}").exists():
            files.move_files([(index, directory / index.name)])


def remove(path: str | os.PathLike) -> None:
    """Removes the files of a checkpoint."""
    for suffix in reversed(SUFFIXES):
        with_suffix(path, suffix).unlink(missing_ok=True)


def newest(
    directory: str | os.PathLike, is_wanted: Callable[[str], bool] = _any_name
) -> Iterator[tuple[files.Path, dict[str, np.ndarray]]]:
    """Yields (path, tensors) of the readable checkpoints, newest first.

    A damaged one is skipped with a warning.

    Raises:
        InputError: there are checkpoints and all are damaged.
    """
    candidates, readable = candidate_paths(directory), 0
    for path in reversed(candidates):
        try:
            tensors = read(path, is_wanted)
        except InputError as error:
            logging.warning(
                "%s; falling back to the previous checkpoint.", error
            )
            continue
        readable += 1
        yield path, tensors
    if candidates and not readable:
        raise InputError(
            f"every checkpoint in {directory} is damaged: restore its files "
            "from a backup, or train again in another --model_dir"
        )


def prune(
    directory: str | os.PathLike, keep: int, written: str | os.PathLike
) -> None:
    """Removes what the checkpoint just written makes obsolete.

    Of the checkpoints up to this one, the newest `keep` stay. Those of later
    steps, which the run did not resume from, and half-written files all go.

    Args:
        directory: path of the folder of checkpoints.
        keep: int, at least 1.
        written: path of the checkpoint just written.
    """
    all_paths = paths(directory)
    end = all_paths.index(files.to_path(written)) + 1
    kept = all_paths[max(0, end - keep) : end]
    for path in candidate_paths(directory):
        if path not in kept:
            remove(path)
    files.remove_leftovers(directory)


def require_numbers(
    tensors: Mapping[str, Any], names: Iterable[str], description: str
) -> None:
    """Checks that the named tensors of a checkpoint are single numbers.

    Args:
        tensors: dict of str to array.
        names: of the tensors; those that are missing pass.
        description: of the checkpoint.

    Raises:
        InputError: a tensor is not a single number.
    """
    for name in names:
        value = np.asarray(tensors.get(name, 0))
        if value.shape or value.dtype.kind not in "iuf":
            raise InputError(
                f"{description} is damaged: {name} must be a single number, "
                f"not {value.dtype} {list(value.shape)}: choose another "
                "checkpoint, or restore its files from a backup"
            )


def average(
    checkpoints: Iterable[tuple[files.Path, dict[str, np.ndarray]]],
    count: int,
) -> tuple[list[files.Path], dict[str, np.ndarray]]:
    """Returns the mean of the first `count` checkpoints.

    Args:
        checkpoints: iterable of (path, tensors), as `newest` yields them.
        count: int.

    Returns:
        (list of the paths, dict of the tensors' means in the dtypes of the
        first checkpoint). There are fewer paths if there are fewer
        checkpoints.

    Raises:
        InputError: two of them differ in their tensors.

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
