"""What a run logs, kept as a file in its model directory."""

import contextlib
import logging as python_logging
import os
import pathlib
import sys
import time
from collections.abc import Iterator

from absl import logging

from t2t_lite import files
from t2t_lite.remote_path import RemotePath
from t2t_lite.storage.model_directory import ModelDirectory

_SECONDS = 60.0  # Between two writes to a log on another machine.


class _RemoteLog(python_logging.Handler):
    """Appends log lines to a file on another machine, many at once."""

    def __init__(self, path: RemotePath):
        super().__init__()
        self._path = path
        self._lines: list[str] = []
        self._written_at = time.monotonic()

    def emit(self, record: python_logging.LogRecord) -> None:
        """Keeps a line; writes all of them for a warning, or after a minute."""
        self._lines.append(self.format(record) + "\n")
        is_late = time.monotonic() - self._written_at > _SECONDS
        if is_late or record.levelno >= python_logging.WARNING:
            try:
                self._write()
            except OSError:
                self.handleError(record)

    def _write(self) -> None:
        lines, self._lines = self._lines, []
        self._written_at = time.monotonic()
        self._path.append("".join(lines).encode())

    def handleError(self, record: python_logging.LogRecord) -> None:
        """Gives up on the file, with a warning."""
        _give_up(self, self._path)

    def close(self) -> None:
        """Writes the lines that are left."""
        super().close()
        if self._lines:
            self._write()


class _LogFile(python_logging.FileHandler):
    """Appends log lines to a file; a failure to write does not end the run."""

    def __init__(self, path: pathlib.Path):
        super().__init__(path, encoding="utf-8", delay=True)

    def emit(self, record: python_logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # From opening it; others go straight to handleError.
            self.handleError(record)

    def handleError(self, record: python_logging.LogRecord) -> None:
        """Gives up on the file, with a warning."""
        _give_up(self, self.baseFilename)


def _give_up(handler: python_logging.Handler, path: str | os.PathLike) -> None:
    logging.get_absl_logger().removeHandler(handler)
    logging.warning(
        "Cannot write %s; continuing without it: %s", path, sys.exc_info()[1]
    )


def _log_file(path: files.Path) -> python_logging.Handler:
    """Returns a handler that appends the lines of a log to a file."""
    is_remote = isinstance(path, RemotePath)
    handler = _RemoteLog(path) if is_remote else _LogFile(path)
    handler.setFormatter(
        python_logging.Formatter(
            "%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"
        )
    )
    return handler


@contextlib.contextmanager
def log_to_file(directory: ModelDirectory) -> Iterator[None]:
    """Appends what is logged within the context to the directory's train.log.

    The error that ends a run is its last line. A run that did not get as far as
    its settings leaves no log.
    """
    file, logger = _log_file(directory.log), logging.get_absl_logger()
    logger.addHandler(file)
    try:
        yield
    except Exception as error:
        if _is_begun(directory):
            line = (str(error) or repr(error)).split("\n")[0]
            level = {"levelno": python_logging.ERROR, "levelname": "ERROR"}
            record = {"msg": line} | level
            file.handle(python_logging.makeLogRecord(record))
        raise
    finally:
        logger.removeHandler(file)
        with contextlib.suppress(OSError):  # The rest does not fit either.
            file.close()
        if not _is_begun(directory):
            directory.log.unlink(missing_ok=True)


def _is_begun(directory: ModelDirectory) -> bool:
    """Returns whether there are settings; True if that is not known."""
    try:
        return directory.settings_path.exists()
    except OSError:
        return True
