"""Ends a run that hangs, and shows where it hangs."""

import contextlib
import faulthandler
import math
import os
import sys
import threading
import time
from collections.abc import Iterator

from absl import logging

_STDERR = 2  # Faulthandler writes to a descriptor, as Python may be stuck.
_LOOKS = 20  # Checks within the time that is too long.
_SECONDS_TO_END = 10.0  # In case logging the last line hangs too.


class HangWatch:
    """Ends the process with status 1 if a run gives no sign of life.

    Enter it while signs are expected. The last line of the log says why the
    process ends, and the stacks of all threads go to stderr.

    Args:
        minutes: how long is too long; None for no watch.
    """

    def __init__(self, minutes: float | None):
        self._minutes = minutes
        self._seen_at = math.inf
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "HangWatch":
        self.heartbeat()
        if self._minutes is not None:
            self._end_later(60 * self._minutes)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._minutes is not None:
            self._is_over.set()
            self._thread.join()

    def heartbeat(self) -> None:
        """Restarts the clock."""
        self._seen_at = time.monotonic()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stops the clock within the context, however long that takes."""
        self._seen_at = math.inf
        try:
            yield
        finally:
            self.heartbeat()

    def _watch(self) -> None:
        limit = 60 * self._minutes
        while not self._is_over.wait(limit / _LOOKS):
            # Put off as long as this thread can run: another may have gone to
            # sleep while it holds Python's lock.
            self._end_later(limit)
            if time.monotonic() - self._seen_at > limit:
                self._end()
        faulthandler.cancel_dump_traceback_later()

    def _end_later(self, seconds: float) -> None:
        """Makes the process end in some seconds, whether or not Python runs."""
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
        os._exit(1)  # A normal exit would wait for what hangs.
