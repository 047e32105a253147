"""What a run logs, kept as a file in its model directory."""

import contextlib
import logging as python_logging
import pathlib
import sys
from collections.abc import Iterator

from absl import logging

from t2t_lite.storage.model_directory import ModelDirectory


class _LogFile(python_logging.FileHandler):
    """Appends log lines to a file; a disk that takes none ends no run."""

    def __init__(self, path: pathlib.Path):
        super().__init__(path, encoding="utf-8", delay=True)
        self.setFormatter(
            python_logging.Formatter(
                "%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"
            )
        )

    def emit(self, record: python_logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # Of opening it; others go to handleError at once.
            self.handleError(record)

    def handleError(self, record: python_logging.LogRecord) -> None:
        """Gives the file up, with a warning."""
        logging.get_absl_logger().removeHandler(self)
        logging.warning(
            "Cannot write %s, and goes on without: %s",
            self.baseFilename,
            sys.exc_info()[1],
        )


@contextlib.contextmanager
def kept_log(directory: ModelDirectory) -> Iterator[None]:
    """Appends what is logged to the directory's train.log until it is left.

    The error that ends a run is its last line. Of a run that did not get as far
    as its settings there is no log.
    """
    file, logger = _LogFile(directory.log), logging.get_absl_logger()
    logger.addHandler(file)
    try:
        yield
    except Exception as error:
        if directory.settings_path.exists():
            line = (str(error) or repr(error)).split("\n")[0]
            record = {"msg": line, "levelname": "ERROR"}
            file.handle(python_logging.makeLogRecord(record))
        raise
    finally:
        logger.removeHandler(file)
        with contextlib.suppress(OSError):  # What is left does not fit either.
            file.close()
        if not directory.settings_path.exists():
            directory.log.unlink(missing_ok=True)
