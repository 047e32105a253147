"""Paths on other machines, such as gs://bucket/model, in pathlib's terms.

`tf.io.gfile` reads and writes them: Google Cloud Storage by itself, and others
if a file system for their scheme is registered. Most are object stores: a file
appears, complete, when it is closed; a folder exists if something is in it; and
there are no locks, and no way to rename a folder.
"""

import contextlib
import errno
import fnmatch
import functools
import io
import os
import pathlib
import re
import secrets
import types
from collections.abc import Iterator
from typing import Any, BinaryIO

from t2t_lite import terminal
from t2t_lite.errors import InputError, reason

ASIDE = "writing-"  # Starts the names of what is incomplete.
_CHUNK = 1 << 20  # Bytes requested at once.
# As TensorFlow reads URLs; one without a host has a third slash.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9.]+)://(.*)", re.DOTALL)
# pathlib turns two slashes into one.
_URL_OF_PATHLIB = re.compile(r"([A-Za-z][A-Za-z0-9.]+):/([^/].*)", re.DOTALL)


def is_url(path: str | os.PathLike) -> bool:
    """Returns whether a path is on another machine.

    >>> is_url("gs://bucket/model"), is_url("runs/model")
    (True, False)
    """
    return _match(path) is not None


def _match(path):
    if isinstance(path, pathlib.PurePath):
        return _URL_OF_PATHLIB.fullmatch(os.fspath(path))
    return _URL.fullmatch(os.fspath(path))


class RemotePath(os.PathLike):
    """As much of `pathlib.Path` as this package uses, for a URL.

    What fails raises the OSError that a file on this machine would.

    Args:
        url: scheme://host/path.

    >>> path = RemotePath("gs://bucket/model") / "checkpoints"
    >>> str(path), path.name, str(path.parent)
    ('gs://bucket/model/checkpoints', 'checkpoints', 'gs://bucket/model')
    """

    def __init__(self, url: str | os.PathLike):
        scheme, path = _match(url).groups()
        self._scheme, self._path = scheme, pathlib.PurePosixPath(path)

    def __str__(self) -> str:
        return f"{self._scheme}://{self._path}"

    __fspath__ = __str__

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __lt__(self, other: "RemotePath") -> bool:
        return str(self) < str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __truediv__(self, name: str | os.PathLike) -> "RemotePath":
        return self._at(self._path / os.fspath(name))

    def _at(self, path: pathlib.PurePosixPath) -> "RemotePath":
        return RemotePath(f"{self._scheme}://{path}")

    @property
    def name(self) -> str:
        """The last part."""
        return self._path.name

    @property
    def parent(self) -> "RemotePath":
        """The folder that it is in."""
        return self._at(self._path.parent)

    @property
    def parents(self) -> list["RemotePath"]:
        """The folders that it is in, the innermost first."""
        return [self._at(parent) for parent in self._path.parents][:-1]

    def with_name(self, name: str) -> "RemotePath":
        """Returns the path of another file in the same folder."""
        return self.parent / name

    def absolute(self) -> "RemotePath":
        """Returns itself: a URL depends on no folder."""
        return self

    resolve = absolute

    def is_file(self) -> bool:
        """Returns whether there is such a file."""
        return self._is_directory() is False

    def is_dir(self) -> bool:
        """Returns whether something is in a folder of that name."""
        # ram:// also lists what only begins with the name.
        return any(child._call("exists") for child in self.iterdir())

    def exists(self) -> bool:
        """Returns whether there is such a file, or something in the folder."""
        return self.is_file() or self.is_dir()

    def _is_directory(self) -> bool | None:
        """Returns whether it is a folder; None if there is nothing."""
        # `gfile.isdir` and `exists` also say no if the store fails.
        try:
            return bool(self._call("stat").is_directory)
        except FileNotFoundError:
            return None

    def stat(self) -> types.SimpleNamespace:
        """Returns an object with `st_size`, the bytes of the file."""
        return types.SimpleNamespace(st_size=self._call("stat").length)

    def iterdir(self) -> Iterator["RemotePath"]:
        """Yields what is in the folder; nothing if there is none."""
        if not self._is_directory():
            return
        for name in self._call("listdir"):
            if name.strip("/"):  # Some list the folder itself.
                yield self / name.strip("/")

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        """Yields what matches a pattern with parts separated by "/"."""
        first, slash, rest = pattern.partition("/")
        for path in self.iterdir():
            if not fnmatch.fnmatchcase(path.name, first):
                continue
            if rest:
                yield from path.glob(rest)
            elif not slash or path.is_dir():
                yield path

    def matching(self) -> list["RemotePath"]:
        """Returns the files that match this path, as a pattern."""
        return list(map(RemotePath, self._call("glob")))

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Creates the folder, if the store has such things."""
        del parents, exist_ok
        self._call("makedirs")

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes the file."""
        try:
            self._call("remove")
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rmtree(self) -> None:
        """Removes the folder and everything in it."""
        self._call("rmtree")

    def open(self, mode: str = "rb") -> BinaryIO:
        """Returns the file, opened to read bytes."""
        if mode != "rb":
            raise ValueError(f"mode must be rb; received mode={mode!r}")
        return io.BufferedReader(_Reader(self), _CHUNK)

    def read_bytes(self) -> bytes:
        """Returns what is in the file."""
        with self.open() as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8") -> str:
        """Returns what is in the file, as text."""
        return self.read_bytes().decode(encoding)

    def upload(self, local: str | os.PathLike) -> None:
        """Puts a file of this machine here; it appears once complete."""
        aside = self.with_name(f"{ASIDE}{self.name}-{secrets.token_hex(4)}")
        try:
            with self.os_errors():
                _gfile().makedirs(str(self.parent))
                _gfile().copy(os.fspath(local), str(aside))
                _gfile().rename(str(aside), str(self), overwrite=True)
        except BaseException:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
            raise

    def append(self, content: bytes) -> None:
        """Appends to the file, which is created if there is none.

        Object stores rewrite the whole file.
        """
        mode = "ab" if self.is_file() else "wb"
        with self.os_errors():
            _gfile().makedirs(str(self.parent))
            with _gfile().GFile(str(self), mode) as file:
                file.write(content)

    def _call(self, function: str) -> Any:
        with self.os_errors():
            return getattr(_gfile(), function)(str(self))

    @contextlib.contextmanager
    def os_errors(self) -> Iterator[None]:
        """Turns TensorFlow's errors into the system's.

        Raises:
            InputError: TensorFlow has no file system for the scheme.
        """
        tf = _tensorflow()
        try:
            yield
        except tf.errors.OpError as error:
            if self._scheme not in tf.io.gfile.get_registered_schemes():
                raise InputError(
                    f"{self}: TensorFlow has no file system for "
                    f"{self._scheme}://: register one, or give a local path"
                ) from None
            number = _NUMBERS.get(type(error).__name__, errno.EIO)
            raise OSError(number, reason(error), str(self)) from None


# The errors of TensorFlow that a program can do something about.
_NUMBERS = {
    "NotFoundError": errno.ENOENT,
    "PermissionDeniedError": errno.EACCES,
    "UnauthenticatedError": errno.EACCES,
    "AlreadyExistsError": errno.EEXIST,
    "ResourceExhaustedError": errno.ENOSPC,
    "UnimplementedError": errno.ENOTSUP,
}


class _Reader(io.RawIOBase):
    """The bytes of a RemotePath."""

    def __init__(self, path: RemotePath):
        super().__init__()
        self._path, self._file = path, None
        with path.os_errors():
            self._file = _gfile().GFile(str(path), "rb")
            self._size = self._file.size()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        with self._path.os_errors():
            content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell()}
        with self._path.os_errors():
            self._file.seek(offset + start.get(whence, self._size))
        return self.tell()

    def tell(self) -> int:
        with self._path.os_errors():
            return self._file.tell()

    def close(self) -> None:
        if not self.closed and self._file is not None:
            self._file.close()
        super().close()


def _gfile() -> types.ModuleType:
    return _tensorflow().io.gfile


@functools.cache
def _tensorflow() -> types.ModuleType:
    """Returns TensorFlow, loaded without its messages; that takes seconds."""
    with terminal.silent_stderr():
        import tensorflow as tf

    return tf
