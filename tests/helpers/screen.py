"""A terminal in memory, and what its screen shows."""

import contextlib
import io
import logging
import sys

import pytest
from absl import flags
from absl import logging as absl_logging


class Terminal(io.StringIO):
    """A stream that acts as a terminal and keeps what is written to it."""

    def isatty(self):
        return True

    def lines(self):
        """Returns what is on the screen, each line as it was last drawn."""
        screen = []
        for line in self.getvalue().split("\n"):
            text = ""
            for drawn in line.split("\r"):
                text = drawn + text[len(drawn) :]
            screen.append(text.rstrip())
        return screen


@contextlib.contextmanager
def stderr(stream):
    """Makes a stream stderr, where absl's log goes too, as in a program."""
    logger = logging.getLogger("absl")
    level = logger.level
    handler = absl_logging.get_absl_handler()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        patch.setattr(handler.python_handler, "stream", stream)
        patch.setattr(logger, "handlers", [handler])
        patch.setattr(logger, "propagate", False)
        patch.setattr(type(flags.FLAGS), "is_parsed", lambda _: True)
        logger.setLevel(logging.INFO)
        yield stream
    logger.setLevel(level)
