"""Which models translate together, checked before TensorFlow is loaded."""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from t2t_lite.errors import InputError, program, require, require_path
from t2t_lite.storage import settings_file

Paths = str | os.PathLike | Sequence[str | os.PathLike]
# Names of checkpoints that each model directory has.
_NAMES = ("last", "best", "averaged")
_VOCABULARY = "vocabulary_sha256"
_ALIKE = ("source_language", "language_tokens")  # In the settings.


class Member(NamedTuple):
    """One of the models of an ensemble, or the only one."""

    model_dir: str | os.PathLike
    checkpoint: str  # "last", "best", "averaged", or the path of one


def members_of(
    model_dir: Paths, checkpoint: str | Sequence[str] = "last"
) -> list[Member]:
    """Returns the models that the arguments name.

    >>> for member in members_of("a", ["last", "best"]):
    ...     print(*member)
    a last
    a best

    Args:
        model_dir: path of a model directory, or a list of them.
        checkpoint: "last", "best", "averaged", or the path of a checkpoint; or
            a list of them, one for each model directory, or all from one.

    Raises:
        InputError: they do not pair, or a model is given twice.
        TypeError: one is not a path.
    """
    folders, checkpoints = map(_as_list, (model_dir, checkpoint))
    for path in folders:
        require_path(model_dir=path)
    for path in checkpoints:
        require_path(checkpoint=path)
    count = max(1, len(folders), len(checkpoints))
    require(
        "give one checkpoint per model directory, or several for a single "
        "model directory",
        {len(folders), len(checkpoints)} <= {1, count},
        model_directories=len(folders),
        checkpoints=len(checkpoints),
    )
    if len(folders) > 1 and len(checkpoints) == 1:
        (which,) = checkpoints
        rule = (
            "with several model directories, a single checkpoint must be last, "
            "best or averaged, not a path"
        )
        require(rule, which in _NAMES, checkpoint=which)
    found = [
        Member(folders[n % len(folders)], checkpoints[n % len(checkpoints)])
        for n in range(count)
    ]
    for n, member in enumerate(found):
        if _place(member) in map(_place, found[:n]):
            raise InputError(
                f"{member.model_dir} is given twice with the checkpoint "
                f"{member.checkpoint}: models that translate together must "
                "be different ones"
            )
    return found


def require_together(members: Iterable[Member]) -> None:
    """Checks that models can translate together, if they are several.

    Raises:
        InputError: one is not a model directory, does not translate, or does
            not have the vocabulary or language of the first.
    """
    first, *others = members
    if not others:
        return
    for member in (first, *others):
        settings_file.require_task(member.model_dir, "translation")
    own = settings_file.read(first.model_dir)
    for other in others:
        settings = settings_file.read(other.model_dir)
        if settings.get(_VOCABULARY) != own.get(_VOCABULARY):
            raise InputError(
                f"{other.model_dir} and {first.model_dir} have different "
                "vocabularies: models that translate together must share one, "
                f"as when trained with --vocabulary of {program('train')}"
            )
        for name in _ALIKE:
            values = own.get(name), settings.get(name)
            rule = f"models that translate together must have the same {name}"
            # It is not known for every model.
            is_alike = None in values or values[0] == values[1]
            require(rule, is_alike, received=values)


def _as_list(values: Paths) -> list:
    return list(values) if isinstance(values, list | tuple) else [values]


def _place(member: Member) -> tuple[str, str]:
    """Returns a key that is the same for the same model."""
    return tuple(
        value if value in _NAMES else os.path.realpath(value)
        for value in (os.fspath(each) for each in member)
    )
