"""Signals as requests to stop, after a checkpoint is saved."""

import contextlib
import signal
from types import FrameType

from absl import logging

# SIGHUP: the terminal is gone, as when a connection is dropped.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopSignal:
    """Notes SIGTERM, Ctrl-C and SIGHUP within the context.

    Ctrl-C after any of these stops at once, by KeyboardInterrupt. A SIGHUP that
    is ignored, as under nohup, stays ignored.
    """

    def __init__(self):
        self.number = 0  # of the signal; 0 if there was none
        self._previous_handlers = {}

    def __enter__(self) -> "StopSignal":
        for number in _SIGNALS:
            is_ignored = signal.getsignal(number) == signal.SIG_IGN
            if number == signal.SIGHUP and is_ignored:
                continue
            with contextlib.suppress(ValueError):  # Not the main thread.
                previous = signal.signal(number, self._note)
                self._previous_handlers[number] = previous
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.number and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.number = self.number or int(number)
        logging.info("Stopping: saving a checkpoint first.")

    def is_requested(self) -> bool:
        """Returns whether this process was asked to stop."""
        return self.number != 0
