"""Archives from others, unpacked with care: they may be made to do harm."""

import gzip
import lzma
import pathlib
import shutil
import stat
import tarfile
import zipfile
import zlib
from typing import BinaryIO

from t2t_lite.errors import InputError

# Limits for an archive, which may be a bomb.
_MOST_BYTES = 8 << 30
_MOST_RATIO = 200  # Times the size of the archive.
_MOST_FILES = 10_000
SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar")
DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OverflowError,
    NotImplementedError,  # A compression that Python does not know.
    RuntimeError,  # A password.
)


class _Budget:
    """How many bytes and files may still come out of an archive.

    Its methods raise InputError if there are too many.
    """

    def __init__(self, path: pathlib.Path):
        self._name = path.name
        self._bytes = min(_MOST_BYTES, _MOST_RATIO * path.stat().st_size)
        self._files = _MOST_FILES

    def spend(self, num_bytes: int, num_files: int = 0) -> None:
        """Counts what has come out."""
        self._files -= num_files
        self.require(num_bytes)
        self._bytes -= num_bytes

    def require(self, num_bytes: int) -> None:
        """Checks that this many bytes may still come out."""
        if self._bytes < num_bytes or self._files < 0:
            raise InputError(
                f"an archive may hold at most {_MOST_FILES:,} files, "
                f"{_MOST_BYTES >> 30} GiB, and {_MOST_RATIO} times its own "
                f"size; {self._name} holds more, and was not unpacked"
            )


def check_zip(file: zipfile.ZipFile, path: pathlib.Path) -> None:
    """Raises InputError if a zip file has too much in it."""
    budget = _Budget(path)
    for member in file.infolist():
        budget.spend(member.file_size, 1)


def unpack(path: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes the files of an archive into a new folder.

    Raises:
        InputError: it is damaged, holds too much, or has a link or a path that
            leads out of the folder.
    """
    folder.mkdir()
    try:
        is_zip = path.name.lower().endswith(".zip")
        if is_zip:
            _unpack_zip(path, folder)
        else:
            _unpack_tar(path, folder)
    except InputError:
        raise
    except (*DAMAGED, ValueError):
        raise InputError(
            f"{path} is damaged or cut short: restore it from a backup"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot unpack {path}: {error.strerror or error}"
        ) from None


def _unpack_zip(path: pathlib.Path, folder: pathlib.Path) -> None:
    with zipfile.ZipFile(path) as archive:
        check_zip(archive, path)
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            _require_file(
                path, member.filename, kind in (0, stat.S_IFREG, stat.S_IFDIR)
            )
            if not member.is_dir():
                with archive.open(member) as source:
                    _write(source, folder, member.filename)


class _Counted:
    """A file that counts what is read from it, headers and all."""

    def __init__(self, file: BinaryIO, budget: _Budget):
        self._file = file
        self._budget = budget

    def read(self, size: int) -> bytes:
        """Returns at most `size` bytes."""
        data = self._file.read(size)
        self._budget.spend(len(data))
        return data


def _unpack_tar(path: pathlib.Path, folder: pathlib.Path) -> None:
    budget = _Budget(path)
    opener = open if path.suffix.lower() == ".tar" else gzip.open
    with opener(path, "rb") as file:
        counted_file = _Counted(file, budget)
        with tarfile.open(fileobj=counted_file, mode="r|") as archive:
            for member in archive:
                budget.spend(0, 1)
                budget.require(member.size)
                # A sparse file may hold far more than the archive.
                is_plain = member.isfile() or member.isdir()
                is_plain &= not member.issparse()
                _require_file(path, member.name, is_plain)
                if member.isfile():
                    with archive.extractfile(member) as source:
                        _write(source, folder, member.name)
        while counted_file.read(1 << 20):
            pass  # The checksum of all comes after the last file.


def _require_file(path: pathlib.Path, name: str, is_plain: bool) -> None:
    """Raises InputError if a member of an archive could do harm."""
    parts = pathlib.PureWindowsPath(name)  # Slashes of both kinds.
    leaves = parts.root or parts.drive or ".." in parts.parts
    if leaves or not is_plain or "\0" in name:
        what = "a link, device or sparse file"
        what = "not a path inside it" if is_plain else what
        raise InputError(
            f"an archive must hold plain files; {name!r} in {path.name} is "
            f"{what}: nothing was unpacked"
        )


def _write(source: BinaryIO, folder: pathlib.Path, name: str) -> None:
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
