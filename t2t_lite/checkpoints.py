"""Checkpoints: named tensors in TensorFlow's format, written whole or not.

A checkpoint is the pair of files step-N.index and step-N.data-00000-of-00001
that `tf.train.load_checkpoint` reads. The index is moved into place last, so
where there is an index there is a checkpoint.
"""

import os
import pathlib
import re

import numpy as np
import tensorflow as tf
from absl import logging

from t2t_lite.errors import InputError

_DATA = ".data-00000-of-00001"
_UNREADABLE = (tf.errors.OpError, ValueError, RuntimeError, OSError, IndexError)


def write(path, tensors):
    """Writes named tensors to the checkpoint `path`.

    Args:
        path: the files' name without suffix; its folder is made.
        tensors: dict of str to tensor, array or number.

    Raises:
        InputError: the disk is full or refuses; nothing is left half-written.
    """
    path = pathlib.Path(path)
    aside = path.with_name(f"writing-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        tf.raw_ops.SaveV2(
            prefix=str(aside),
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=[tf.convert_to_tensor(t) for t in tensors.values()],
        )
        os.replace(f"{aside}{_DATA}", f"{path}{_DATA}")
        os.replace(f"{aside}.index", f"{path}.index")
    except (tf.errors.OpError, OSError) as error:
        for file in path.parent.glob(f"{aside.name}*"):
            file.unlink()
        reason = str(error).split("\n")[0]
        raise InputError(
            f"cannot write the checkpoint {path}: {reason}; those written "
            "before are unharmed: free some space and run the command again"
        ) from None


def read(path):
    """Returns the named arrays of the checkpoint `path` as a dict.

    Raises:
        InputError: it is missing, cut short or damaged.
    """
    try:
        reader = tf.train.load_checkpoint(str(path))
        names = reader.get_variable_to_shape_map()
        return {name: reader.get_tensor(name) for name in sorted(names)}
    except _UNREADABLE:
        state = "damaged" if exists(path) else "missing"
        raise InputError(f"the checkpoint {path} is {state}") from None


def exists(path):
    """Returns whether a checkpoint was written to `path`."""
    return os.path.exists(f"{path}.index")


def remove(path):
    """Removes the files of a checkpoint."""
    pathlib.Path(f"{path}.index").unlink(missing_ok=True)
    pathlib.Path(f"{path}{_DATA}").unlink(missing_ok=True)


def copy(source, target):
    """Makes the checkpoint `target` of the files of `source`, by hard links."""
    target = pathlib.Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (_DATA, ".index"):
        aside = target.with_name(f"writing-{target.name}{suffix}")
        aside.unlink(missing_ok=True)
        os.link(f"{source}{suffix}", aside)
        os.replace(aside, f"{target}{suffix}")


def paths(directory):
    """Returns the paths of the checkpoints step-N in a folder, oldest first."""
    steps = {}
    for index in pathlib.Path(directory).glob("step-*.index"):
        match = re.fullmatch(r"step-(\d+)", index.stem)
        if match:
            steps[int(match[1])] = index.with_suffix("")
    return [steps[step] for step in sorted(steps)]


def read_last(directory):
    """Returns (path, tensors) of the newest readable checkpoint, or None.

    A damaged one is passed over with a warning.

    Raises:
        InputError: there are checkpoints and all are damaged.
    """
    candidates = paths(directory)
    for path in reversed(candidates):
        try:
            return path, read(path)
        except InputError as error:
            logging.warning("%s: falling back to the one before.", error)
    if candidates:
        raise InputError(f"every checkpoint in {directory} is damaged")
    return None


def prune(directory, keep):
    """Removes all but the newest `keep` checkpoints, and leftovers."""
    for path in paths(directory)[:-keep]:
        remove(path)
    for leftover in pathlib.Path(directory).glob("writing-*"):
        leftover.unlink(missing_ok=True)


def average(checkpoint_paths, is_averaged):
    """Returns the tensors of several checkpoints, averaged.

    Args:
        checkpoint_paths: list of paths; the last gives what is not averaged.
        is_averaged: a function of a tensor's name.

    Raises:
        InputError: a checkpoint is unreadable, or has other tensors.

    Source: section 6.1, "averaging the last 5 checkpoints".
    """
    *others, last = checkpoint_paths
    result = read(last)
    sums = {
        name: np.asarray(tensor, np.float64)
        for name, tensor in result.items()
        if is_averaged(name)
    }
    for path in others:
        tensors = read(path)
        for name in sums:
            if name not in tensors or tensors[name].shape != sums[name].shape:
                raise InputError(f"{path} and {last} differ in {name}")
            sums[name] += tensors[name]
    for name, total in sums.items():
        result[name] = (total / len(checkpoint_paths)).astype(np.float32)
    return result
