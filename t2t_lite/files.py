"""Files and folders that appear once they are complete, and locks.

Until then they lie beside their place, as writing-NAME-PROCESS-RANDOM (RANDOM
because processes in different containers can have the same number). What goes
to another machine (gs://) is completed in a temporary file or folder before it
is sent.
"""

import contextlib
import errno
import fcntl
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any, BinaryIO, TextIO

from absl import logging

from t2t_lite.errors import InputError
from t2t_lite.remote_path import ASIDE, RemotePath, is_url

STDOUT = "standard output"  # What errors call it.
_NO_URL = re.compile(r"[^/]*://")
# What this process already has open, by number or by name.
_OPEN_FILE = re.compile(r"(?:/dev|/proc/self)/fd/(\d+)|/dev/std(out|err)")


Path = pathlib.Path | RemotePath


def to_path(path: str | os.PathLike) -> Path:
    """Returns the path of a file or folder, on this machine or another.

    >>> to_path("runs/model"), to_path("gs://bucket/model")
    (PosixPath('runs/model'), RemotePath('gs://bucket/model'))

    Raises:
        InputError: it looks like a URL but is not one.
    """
    if isinstance(path, RemotePath):
        return path
    if is_url(path):
        return RemotePath(path)
    if _NO_URL.match(os.fspath(path)):
        raise InputError(
            f"{path} is not a URL that TensorFlow understands: give one such "
            "as gs://BUCKET/NAME, or a local path"
        )
    local = pathlib.Path(os.path.expanduser(path))
    # "./~/x" has become "~/x", which must not be expanded next time.
    return local.absolute() if str(local).startswith("~") else local


def is_remote(path: str | os.PathLike) -> bool:
    """Returns whether a path is on another machine."""
    return isinstance(to_path(path), RemotePath)


def exists(path: str | os.PathLike) -> bool:
    """Returns whether there is such a file or folder, here or elsewhere."""
    path = to_path(path)
    # pathlib's raises an error for a name that is too long; this one says no.
    return path.exists() if is_remote(path) else os.path.exists(path)


def is_folder(path: str | os.PathLike) -> bool:
    """Returns whether there is such a folder, here or elsewhere."""
    path = to_path(path)
    return path.is_dir() if is_remote(path) else os.path.isdir(path)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """Gives a file to write, which appears at `path` once it is complete.

    What was at `path` stays there until then. A link is followed, and a device
    such as /dev/null stays what it is. What is already open, such as
    /dev/stdout, is written to at its current position.

    Args:
        path: of the file.
        mode: "w" for text, in UTF-8, or "wb" for bytes.
    """
    encoding = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    if is_remote(path):
        with _uploaded(to_path(path), mode, encoding) as file:
            yield file
        return
    path = os.path.expanduser(path)
    target = os.path.realpath(path)
    aside = _aside(target)
    with name_path_in_errors(path, aside):
        if _is_device(path):
            with open(_device(path), mode, **encoding) as file:
                yield file
            return
        try:
            with open(aside, mode, **encoding) as file:
                yield file
            move_into_place(aside, target)
        finally:
            aside.unlink(missing_ok=True)


@contextlib.contextmanager
def _uploaded(path, mode, encoding):
    """Gives a temporary file, which is kept if it cannot be sent to `path`."""
    descriptor, name = tempfile.mkstemp()
    try:
        with (
            name_path_in_errors(name),
            open(descriptor, mode, **encoding) as file,
        ):
            yield file
    except BaseException:
        os.remove(name)
        raise
    try:
        path.upload(name)
    except OSError as error:
        what = f"{error.strerror} (the output was saved to {name} instead)"
        raise OSError(error.errno, what, str(path)) from None
    os.remove(name)


def _is_device(path):
    """Returns whether `path` is written to rather than replaced by a file."""
    is_no_file = os.path.exists(path) and not os.path.isfile(path)
    return bool(_OPEN_FILE.fullmatch(path)) or is_no_file


def _device(path):
    """Returns what `open` takes to write to a device."""
    match = _OPEN_FILE.fullmatch(path)
    if match is None:
        return path
    number, name = match.groups()
    # Opening a file by its name would truncate it.
    return os.dup(int(number or {"out": 1, "err": 2}[name]))


@contextlib.contextmanager
def name_path_in_errors(
    path: str | os.PathLike, aside: str | os.PathLike | None = None
) -> Iterator[None]:
    """Puts `path` into an OSError that names no file, or the one aside.

    Args:
        path: of the file or folder that is being written.
        aside: where it lies until it appears at `path`.
    """
    try:
        yield
    except OSError as error:
        name = error.filename
        is_aside = aside is not None and str(name).startswith(str(aside))
        if name is not None and not is_aside:
            raise
        number, reason = error.errno or errno.EIO, error.strerror or str(error)
        raise OSError(number, reason, os.fspath(path)) from error


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Gives a folder to fill, which appears at `path` once it is complete.

    Args:
        path: of the folder, on this machine, which does not exist yet; its
            parents are created.
    """
    with scratch_folder(path) as folder:
        yield folder
        move_into_place(folder, pathlib.Path(path))


@contextlib.contextmanager
def scratch_folder(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Gives a new folder beside `path`, which is removed at the end.

    What is complete can be moved from it to `path` in an instant, because both
    are on the same disk. For a path on another machine, it is a temporary
    folder on this one.
    """
    if is_remote(path):
        with tempfile.TemporaryDirectory() as temporary:
            yield pathlib.Path(temporary)
        return
    folder = _aside(path)
    with name_path_in_errors(path, folder):
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def move_into_place(source: pathlib.Path, target: str | os.PathLike) -> None:
    """Moves what is complete, with its content on the disk before its name.

    Args:
        source: path of a file or folder, on the same disk as `target`.
        target: its new path, on this machine. A file replaces one, but a folder
            replaces only an empty one.

    Raises:
        OSError: the disk fails, or a folder's place is taken.
    """
    sync_tree(source)
    os.replace(source, target)
    sync(os.path.dirname(os.path.abspath(target)))


@contextlib.contextmanager
def trial_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Gives a new folder on the same disk as `path`, removed at the end."""
    if not is_remote(path):
        with scratch_folder(path) as folder:
            yield folder
        return
    folder = _aside(to_path(path))
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            remove_tree(folder)


def move_files(pairs: Iterable[tuple[pathlib.Path, Path]]) -> None:
    """Moves files from a `scratch_folder` to their places, in this order.

    All are on the disk before the first is moved.

    Args:
        pairs: (file, place): the places are in one folder.
    """
    pairs = list(pairs)
    for file, _ in pairs:
        sync(file)
    for file, place in pairs:
        if isinstance(place, RemotePath):
            place.upload(file)
        else:
            os.replace(file, place)
    if pairs and not is_remote(place):
        sync(place.parent)


def remove_tree(folder: Path) -> None:
    """Removes a folder and everything in it."""
    if isinstance(folder, RemotePath):
        folder.rmtree()
    else:
        shutil.rmtree(folder)


def sync_tree(path: pathlib.Path) -> None:
    """Waits until a file, or a folder and everything in it, is on the disk."""
    for each in (path, *path.rglob("*")):
        sync(each)


def sync(path: str | os.PathLike) -> None:
    """Waits until a file, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not os.path.isdir(path):  # Some file systems cannot sync folders.
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def private_folder(name: str) -> Iterator[pathlib.Path]:
    """Gives a temporary folder of this process, which is removed at the end.

    Folders of that name that killed processes left behind are removed first.

    Args:
        name: how the folder's name begins.
    """
    for path in pathlib.Path(tempfile.gettempdir()).glob(f"{name}-*"):
        # A new one may not be locked yet, and others are not ours.
        with contextlib.suppress(OSError, InputError):
            if path.stat().st_mtime < time.time() - 60:
                with locked(path / "lock", "it is at work"):
                    shutil.rmtree(path)
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as path:
        folder = pathlib.Path(path)
        with locked(folder / "lock"):  # NFS locks files, not folders.
            yield folder


def _aside(path):
    path = to_path(path)
    unique = f"{os.getpid()}-{secrets.token_hex(4)}"
    return path.with_name(f"{ASIDE}{path.name}-{unique}")


def remove_leftovers(folder: str | os.PathLike, name: str = "") -> None:
    """Removes what killed processes have left half-written in a folder.

    Call it while holding a lock: it also removes what a running process is
    writing.

    Args:
        folder: path.
        name: of the file or folder that was to appear; any if not given.
    """
    patterns = [f"{ASIDE}*"]
    if name:
        # The other two are from version 0.1.0.
        patterns = [f"{ASIDE}{name}-*", f"{name}.tmp", f"{name}.tmp-*"]
    for pattern in patterns:
        for leftover in to_path(folder).glob(pattern):
            if leftover.is_dir():
                remove_tree(leftover)
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
        with name_path_in_errors(STDOUT):
            sys.stdout.reconfigure(encoding="utf-8", write_through=True)
            yield sys.stdout
        return
    with os_errors_as_input_errors(path):
        if mode != "w" or not path.endswith(".gz"):
            with atomic_file(path, mode) as file:
                yield file
            return
        with (
            atomic_file(path, "wb") as file,
            compressed(file) as binary,
            io.TextIOWrapper(binary, "utf-8", newline="\n") as text,
        ):
            yield text


def compressed(file: BinaryIO) -> BinaryIO:
    """Returns a file to write, which goes to `file` in gzip's format.

    The same content gives the same bytes: neither a name nor the time is kept.
    """
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0)


@contextlib.contextmanager
def os_errors_as_input_errors(path: str) -> Iterator[None]:
    """Turns the system's refusal to write to `path` into an InputError.

    A broken pipe's error, and those of other files that are read meanwhile,
    stay what they are.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        names = (path, os.path.expanduser(path), str(to_path(path)))
        # The system does not always give a name.
        if error.filename not in (None, *names):
            raise
        reason = error.strerror or error
        raise InputError(f"cannot write {path}: {reason}") from None


def is_atomic_output(path: str | None) -> bool:
    """Returns whether an output is a file that appears once it is complete.

    Args:
        path: that of `output_file`; standard output and devices do not count.
    """
    if path in (None, "-"):
        return False
    return is_remote(path) or not _is_device(os.path.expanduser(path))


def is_stdout(path: str | None) -> bool:
    """Returns whether an output is, or leads to, standard output.

    Args:
        path: that of `output_file`; None is not standard output.
    """
    if path == "-":
        return True
    if path is None or is_remote(path):
        return False
    try:
        there = os.stat(os.path.expanduser(path))
        return os.path.samestat(there, os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # There is no file yet, or no real stdout.
        return False


def stream_beside(path: str | None) -> TextIO:
    """Returns where to report on an output: stdout, unless it goes there.

    Args:
        path: that of `is_stdout`.
    """
    return sys.stderr if is_stdout(path) else sys.stdout


def sha256(path: str | os.PathLike) -> str:
    """Returns the SHA-256 of a file's bytes, however many there are."""
    with to_path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_writable(
    path: str | None, suffix: str = "", *, may_be_stdout: bool = True
) -> None:
    """Refuses a file that cannot be written, before the long work.

    Args:
        path: that of `output_file`; None or "-" needs no folder.
        suffix: what follows `path` in the file's name; a file that has one is
            never stdout.
        may_be_stdout: whether "-" is stdout.

    Raises:
        InputError: there is no such folder, it is not writable, or the file is
            a folder itself or has no name.
    """
    if path == "-" and (suffix or not may_be_stdout):
        raise InputError("cannot write to standard output (-): give a file")
    if not path or path == "-":
        return
    has_name = bool(os.path.basename(path))
    if is_remote(path):
        # Asked first: it refuses an unknown file system.
        if to_path(path + suffix).is_dir() or not has_name:
            raise InputError(f"cannot write {path}: it is a folder")
        return
    path = os.path.expanduser(path)
    if suffix and _is_device(path) and not os.path.isdir(path):
        raise InputError(f"cannot write {path}{suffix}: give a file")
    path += suffix
    if os.path.isdir(path):
        raise InputError(f"cannot write {path}: it is a folder")
    if _is_device(path):
        return
    folder = os.path.dirname(path) or os.curdir
    if not os.path.isdir(folder):
        raise InputError(f"cannot write {path}: there is no folder {folder}")
    if not has_name:
        raise InputError(
            f"cannot write {path}: give a name too, such as {folder}/NAME"
        )
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {path}: {folder} is not writable")


def require_new_folder(path: str | os.PathLike) -> None:
    """Checks that `path` is free for a new folder, which appears complete.

    Raises:
        InputError: something is there, or the path is on another machine.
    """
    if is_remote(path):
        raise InputError(
            f"{path} must be a local folder: give one, and copy it there "
            "afterwards"
        )
    place = to_path(path)
    is_empty = is_folder(place) and not any(place.iterdir())
    if os.path.lexists(place) and not is_empty:
        raise InputError(f"{path} must not exist yet: give a new folder")


def require_apart(
    outputs: Iterable[str | None], inputs: Iterable[str | None] = ()
) -> None:
    """Refuses to overwrite what a program reads, or another of its outputs.

    Args:
        outputs: paths to write; None, "-" and devices are skipped.
        inputs: paths of files that are read; None and "-" are skipped.

    Raises:
        InputError: an output is one of the inputs, or another output.
    """
    taken = {_place(path) for path in inputs if path not in (None, "-")}
    for path in outputs:
        if not is_atomic_output(path):
            continue
        place = _place(path)
        if place in taken:
            raise InputError(
                f"cannot write {path}: this command also reads it, or writes "
                "another output there: give another path"
            )
        taken.add(place)


def _place(path: str) -> str:
    """Returns a path that is the same for the same file."""
    path = to_path(path)
    return str(path) if is_remote(path) else os.path.realpath(path)


def read_json(path: str | os.PathLike) -> Any:
    """Returns what a JSON file holds.

    Raises:
        OSError: it cannot be read.
        ValueError: it is empty, not JSON, or too deeply nested.
    """
    text = to_path(path).read_text("utf-8-sig")
    if not text.strip():
        raise ValueError("it is empty")
    return parse_json(text)


def parse_json(text: str | bytes) -> Any:
    """Returns what JSON written by others holds.

    Raises:
        ValueError: it is not JSON, or too deeply nested.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its brackets are too deep") from None


@contextlib.contextmanager
def locked(
    path: str | os.PathLike, refusal: str | None = None
) -> Iterator[int]:
    """Holds the lock of a file or folder within a `with` block.

    The lock ends with the process, however that ends. On NFS, a folder's lock
    keeps nobody out.

    Args:
        path: of a folder, or of a file, which is created if missing.
        refusal: what the InputError says if another process has the lock; None
            to wait for it.

    Returns:
        its descriptor, for `is_in_place`.

    Raises:
        InputError: another process has the lock, and there is a refusal.
    """
    descriptor = _open_locked(path, refusal)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_locked(path, refusal):
    # NFS locks only what is open for writing, which a folder never is.
    mode = os.O_RDONLY if os.path.isdir(path) else os.O_RDWR | os.O_CREAT
    while True:
        with contextlib.ExitStack() as stack:
            descriptor = os.open(path, mode, 0o666)
            stack.callback(os.close, descriptor)
            _lock(descriptor, path, refusal)
            # Whoever had the lock may have removed the file since.
            if is_in_place(descriptor, path):
                stack.pop_all()
                return descriptor


def _lock(descriptor, path, refusal):
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if refusal is not None:
            raise InputError(refusal) from None
        logging.info("Waiting for the process that has locked %s.", path)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        if not os.path.isdir(path):  # NFS refuses this for folders.
            raise


def is_in_place(descriptor: int, path: str | os.PathLike) -> bool:
    """Returns whether an open file or folder is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
