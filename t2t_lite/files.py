"""Files and folders that appear once they are complete, and locks.

What is not complete yet lies beside its place, as writing-NAME-PROCESS-RANDOM:
processes in different containers can have the same number.
"""

import contextlib
import fcntl
import gzip
import os
import pathlib
import secrets
import shutil
import sys
from collections.abc import Iterator
from typing import IO

from absl import logging

from t2t_lite.errors import InputError

_PREFIX = "writing-"


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """Gives a file to write, which appears at `path` once it is complete.

    What was at `path` stays there until then. A link is followed, and a device
    such as /dev/null stays what it is.

    Args:
        path: of the file.
        mode: "w" for text, in UTF-8, or "wb" for bytes.
    """
    path = os.path.realpath(path)
    encoding = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, mode, **encoding) as device:
            yield device
        return
    aside = _aside(path)
    try:
        with open(aside, mode, **encoding) as file:
            yield file
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Gives a folder to fill, which appears at `path` once it is complete.

    Args:
        path: of the folder, which does not exist yet; its parents are made.
    """
    with scratch_folder(path) as folder:
        yield folder
        os.rename(folder, path)


@contextlib.contextmanager
def scratch_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Gives a new folder beside `path`, which is removed at the end.

    What is complete can be moved from it to `path` in an instant, for both are
    on the same disk.
    """
    folder = _aside(path)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _aside(path):
    path = pathlib.Path(path)
    unique = f"{os.getpid()}-{secrets.token_hex(4)}"
    return path.with_name(f"{_PREFIX}{path.name}-{unique}")


def remove_leftovers(folder: str | os.PathLike, name: str = "") -> None:
    """Removes what killed processes have left half-written in a folder.

    Call it while holding a lock: it takes from a process at work what that
    one writes.

    Args:
        folder: path.
        name: of the file or folder that was to appear; all if not given.
    """
    pattern = f"{_PREFIX}{name}-*" if name else f"{_PREFIX}*"
    for leftover in pathlib.Path(folder).glob(pattern):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def output_file(path: str | None, mode: str = "w") -> Iterator[IO]:
    """Gives a program's output, which appears at `path` once it is complete.

    Args:
        path: of the file, compressed if it ends in .gz; None or "-" for stdout,
            as text, flushed with each write.
        mode: "w" for text, in UTF-8, or "wb" for bytes.

    Raises:
        InputError: the file cannot be written.
    """
    if path in (None, "-"):
        sys.stdout.reconfigure(encoding="utf-8", write_through=True)
        yield sys.stdout
        return
    try:
        if mode != "w" or not path.endswith(".gz"):
            with atomic_file(path, mode) as file:
                yield file
            return
        with (
            atomic_file(path, "wb") as file,
            gzip.open(file, "wt", encoding="utf-8", newline="\n") as text,
        ):
            yield text
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def require_folder_of(path: str) -> None:
    """Refuses a file that its folder cannot hold, before the long work.

    Raises:
        InputError: there is no such folder, or nothing may be written there.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise InputError(f"cannot write {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {path}: {folder} is not writable")


@contextlib.contextmanager
def locked(
    path: str | os.PathLike, refusal: str | None = None
) -> Iterator[None]:
    """Holds the lock of a file or folder until it is left.

    The lock ends with the process, however that ends.

    Args:
        path: of a folder, or of a file, which is made if there is none.
        refusal: what the InputError says if another process has the lock; None
            to wait for it.

    Raises:
        InputError: another process has the lock, and there is a refusal.
    """
    # NFS locks only what is open for writing, which a folder never is.
    is_folder = os.path.isdir(path)
    mode = os.O_RDONLY if is_folder else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, mode, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if refusal is not None:
                raise InputError(refusal) from None
            logging.info("Waiting for the process that has locked %s.", path)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
