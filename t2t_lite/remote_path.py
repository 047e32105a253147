"""Paths on other machines, such as gs://bucket/model, in pathlib's terms.

`tf.io.gfile` reads and writes them: Google Cloud Storage as TensorFlow is, and
others where a file system for their scheme is registered. Most are stores of
objects: a file appears, complete, when it is closed; a folder exists where
something is in it; and there are neither locks nor a renaming of folders.
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
from collections.abc import Iterator
from typing import Any, BinaryIO

from t2t_lite.errors import InputError, reason

ASIDE = "writing-"  # Begins the names of what is not complete.
_CHUNK = 1 << 20  # Bytes that are asked for at once.
# pathlib makes one slash of several.
_URL = re.compile(r"(\w\w+):/+(.*)", re.DOTALL)


def is_url(path: str | os.PathLike) -> bool:
    """Returns whether a path is that of another machine.

    >>> is_url("gs://bucket/model"), is_url("runs/model")
    (True, False)
    """
    return _URL.match(os.fspath(path)) is not None


class RemotePath(os.PathLike):
    """As much of `pathlib.Path` as this package uses, of a URL.

    What fails raises the OSError that a file of this machine would.

    Args:
        url: scheme://path.

    >>> path = RemotePath("gs://bucket/model") / "checkpoints"
    >>> str(path), path.name, str(path.parent)
    ('gs://bucket/model/checkpoints', 'checkpoints', 'gs://bucket/model')
    """

    def __init__(self, url: str | os.PathLike):
        scheme, path = _URL.match(os.fspath(url)).groups()
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
        """Returns the path of another file of the same folder."""
        return self._at(self._path.with_name(name))

    def absolute(self) -> "RemotePath":
        """Returns itself: a URL depends on no folder."""
        return self

    resolve = absolute

    def is_file(self) -> bool:
        """Returns whether there is such a file."""
        return self._call("exists") and not self._call("isdir")

    def is_dir(self) -> bool:
        """Returns whether something is in a folder of that name."""
        # ram:// lists what begins with the name, too.
        return any(child._call("exists") for child in self.iterdir())

    def exists(self) -> bool:
        """Returns whether there is such a file, or something in the folder."""
        return self.is_file() or self.is_dir()

    def iterdir(self) -> Iterator["RemotePath"]:
        """Yields what is in the folder; nothing where there is none."""
        try:
            names = self._call("listdir")
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            if name.strip("/"):  # Some list the folder itself.
                yield self / name.strip("/")

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        """Yields what matches a pattern, whose parts "/" separates."""
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
        """Makes the folder, where the store has such things."""
        del parents, exist_ok
        self._call("makedirs")

    def rmdir(self) -> None:
        """Removes nothing: a folder is gone once nothing is in it."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes the file."""
        try:
            self._call("remove")
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rmtree(self) -> None:
        """Removes the folder and all in it."""
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
        """Puts a file of this machine in its place, complete."""
        self.parent.mkdir()
        aside = self.with_name(f"{ASIDE}{self.name}-{secrets.token_hex(4)}")
        try:
            with self._os_errors():
                gfile().copy(os.fspath(local), str(aside))
                gfile().rename(str(aside), str(self), overwrite=True)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
            raise

    def append(self, content: bytes) -> None:
        """Writes behind what is in the file, which is made if there is none.

        Stores of objects write the whole of it anew.
        """
        self.parent.mkdir()
        with self._os_errors(), gfile().GFile(str(self), "ab") as file:
            file.write(content)

    def _call(self, function: str) -> Any:
        with self._os_errors():
            return getattr(gfile(), function)(str(self))

    @contextlib.contextmanager
    def _os_errors(self) -> Iterator[None]:
        """Turns TensorFlow's errors into those of the system."""
        import tensorflow as tf

        try:
            yield
        except tf.errors.UnimplementedError:
            raise InputError(
                f"{self}: TensorFlow knows no file system {self._scheme}://: "
                "register one, or give a path of this machine"
            ) from None
        except tf.errors.OpError as error:
            number = _NUMBERS.get(type(error).__name__, errno.EIO)
            raise OSError(number, reason(error), str(self)) from None


# The errors of TensorFlow that a program can do something about.
_NUMBERS = {
    "NotFoundError": errno.ENOENT,
    "PermissionDeniedError": errno.EACCES,
    "UnauthenticatedError": errno.EACCES,
    "AlreadyExistsError": errno.EEXIST,
    "ResourceExhaustedError": errno.ENOSPC,
}


class _Reader(io.RawIOBase):
    """The bytes of a RemotePath."""

    def __init__(self, path: RemotePath):
        super().__init__()
        self._path = path
        self._file = gfile().GFile(str(path), "rb")
        with path._os_errors():  # That there is no such file.
            self._size = self._file.size()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        with self._path._os_errors():
            content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell()}
        self._file.seek(offset + start.get(whence, self._size))
        return self.tell()

    def tell(self) -> int:
        return self._file.tell()


@functools.cache
def gfile() -> Any:
    """Returns the module `tf.io.gfile`, which takes seconds to load."""
    import tensorflow as tf

    return tf.io.gfile
