"""Ends a run that has come to a halt, and shows where it stands."""

import contextlib
import faulthandler
import math
import os
import sys
import threading
import time
from collections.abc import Iterator

from absl import logging

_STDERR = 2  # Faulthandler writes to a descriptor, for Python may be stuck.
_LOOKS = 20  # In the time that is too long.
_SECONDS_TO_END = 10.0  # Should whoever takes the last line hang too.


class HangWatch:
    """Ends the process with status 1 where a run gives no sign of life.

    To be entered while it should. The last line of the log says why the process
    ends, and the stacks of all threads go to stderr.

    Args:
        minutes: that are too long; None for no watch.
    """

    def __init__(self, minutes: float | None):
        self._minutes = minutes
        self._seen_at = math.inf
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "HangWatch":
        self.note_life()
        if self._minutes is not None:
            self._end_later(60 * self._minutes)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._minutes is not None:
            self._is_over.set()
            self._thread.join()

    def note_life(self) -> None:
        """Lets the time begin anew."""
        self._seen_at = time.monotonic()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves out what happens inside, however long it takes."""
        self._seen_at = math.inf
        try:
            yield
        finally:
            self.note_life()

    def _watch(self) -> None:
        limit = 60 * self._minutes
        while not self._is_over.wait(limit / _LOOKS):
            # Put off for as long as this thread can run: another may have gone
            # to sleep on Python's lock.
            self._end_later(limit)
            if time.monotonic() - self._seen_at > limit:
                self._end()
        faulthandler.cancel_dump_traceback_later()

    def _end_later(self, seconds: float) -> None:
        """Has the process end in some seconds, whether or not Python runs."""
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)

    def _end(self) -> None:
        self._end_later(_SECONDS_TO_END)
        faulthandler.dump_traceback(file=_STDERR)
        logging.error(
            "No update for %g minutes (--hang_minutes): the stacks of all "
            "threads are on stderr; run the same command again to resume from "
            "the last checkpoint.",
            self._minutes,
        )
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(1)  # What hangs would keep the process from its end.
