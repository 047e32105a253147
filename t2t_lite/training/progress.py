"""What a run shows as it trains: lines, or a bar on a terminal."""

import contextlib
import math
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import tqdm
from absl import logging

from t2t_lite.optimization.trainer import Trainer
from t2t_lite.optimization.update import Update
from t2t_lite.terminal import AboveBar
from t2t_lite.training.summaries import Summaries
from t2t_lite.training.watchdog import Watchdog

_SECONDS_BETWEEN_SUMMARIES = 10.0


class ProgressReport(NamedTuple):
    """How training went since the last report."""

    step: int  # updates done
    last_step: int
    loss: float  # nats a token, the mean since the last report
    learning_rate: float
    tokens_per_second: float  # of the target, since the last report
    seconds_left: float | None  # None until it is known


class _Display(Protocol):
    """How reports are shown."""

    seconds_between_reports: float

    def show(self, report: ProgressReport) -> None: ...

    def close(self, step: int) -> None: ...


class Lines:
    """Logs a line for each report."""

    seconds_between_reports = 10.0

    def show(self, report: ProgressReport) -> None:
        """Logs the report."""
        logging.info(
            "Step %d of %d: loss %.4f, learning rate %.2e, "
            "%.0f target tokens/s%s",
            report.step,
            report.last_step,
            report.loss,
            report.learning_rate,
            report.tokens_per_second,
            time_left_text(report.seconds_left),
        )

    def close(self, step: int) -> None:
        """Does nothing: each line is complete."""


class Bar:
    """Shows the last report in a bar, above which log lines appear.

    Args:
        step: int, updates done.
        last_step: int.
    """

    seconds_between_reports = 1.0

    def __init__(self, step: int, last_step: int):
        self._bar = tqdm.tqdm(
            initial=step,
            total=last_step,
            file=sys.stderr,
            dynamic_ncols=True,
            bar_format="step {n_fmt} of {total_fmt} |{bar}|{postfix}",
        )
        self._log_handler = logging.get_absl_handler().python_handler
        self._log_stream = self._log_handler.setStream(AboveBar())

    def show(self, report: ProgressReport) -> None:
        """Redraws the bar."""
        self._bar.n = report.step
        self._bar.set_postfix_str(
            f"loss {report.loss:.4f}, "
            f"{report.tokens_per_second:.0f} target tokens/s"
            f"{time_left_text(report.seconds_left)}"
        )

    def close(self, step: int) -> None:
        """Leaves the bar at `step`; log lines appear below it again."""
        self._log_handler.setStream(self._log_stream)
        self._bar.n = step
        self._bar.close()


class Progress:
    """Shows how training goes, and has each update checked.

    Enter it while updates are added.

    Args:
        trainer: Trainer.
        last_step: int.
        summaries: Summaries.
        watchdog: Watchdog.
    """

    def __init__(
        self,
        trainer: Trainer,
        last_step: int,
        summaries: Summaries,
        watchdog: Watchdog,
    ):
        self._trainer, self._last_step = trainer, last_step
        self._summaries, self._watchdog = summaries, watchdog
        self._display: _Display = Lines()
        self._summarized_at = -math.inf
        self.restart()

    def restart(self) -> None:
        """Starts over from the trainer's step; what was added is forgotten."""
        self._pending: list[Update] = []
        # The first update builds the graphs: speed is measured from its end.
        self._first_step, self._first_update_at = self._trainer.step, None
        self._reported_at = -math.inf
        self._start_interval()

    def _start_interval(self) -> None:
        self._interval_start = time.monotonic()
        self._loss_sum = self._tokens = 0.0

    def __enter__(self) -> "Progress":
        if sys.stderr.isatty():
            self._display = Bar(self._trainer.step, self._last_step)
        return self

    def __exit__(self, *_: object) -> None:
        self._display.close(self._trainer.step)
        self._display = Lines()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves the time spent within the context out of the speed."""
        start = time.monotonic()
        yield
        elapsed = time.monotonic() - start
        self._interval_start += elapsed
        if self._first_update_at is not None:
            self._first_update_at += elapsed

    def add(self, update: Update) -> None:
        """Takes in what the last update reports; shows a report if one is due.

        Raises:
            DivergenceError: this update or an earlier one diverged.
        """
        self._pending.append(update)
        now = time.monotonic()
        if self._first_update_at is None:
            self._first_update_at, self._first_step = now, self._trainer.step
        if self._trainer.has_other_workers:
            # All workers must decide the same after the same update, and they
            # wait for it anyway (`agree_to_stop`).
            self.flush()
        interval = self._display.seconds_between_reports
        if now - self._reported_at >= interval:
            self.flush()
            self._report()

    def flush(self) -> None:
        """Reads the losses that are still on the device.

        Raises:
            DivergenceError: that of the first update that diverged.
        """
        pending, self._pending = self._pending, []
        for update in pending:
            loss, tokens = float(update.loss), float(update.tokens)
            self._watchdog.check(update, loss)
            self._loss_sum += loss * tokens
            self._tokens += tokens

    def _report(self) -> None:
        now, step = time.monotonic(), self._trainer.step
        done = step - self._first_step
        elapsed = now - self._first_update_at
        report = ProgressReport(
            step=step,
            last_step=self._last_step,
            loss=self._loss_sum / max(self._tokens, 1.0),
            learning_rate=self._trainer.learning_rate(step),
            tokens_per_second=self._tokens / (now - self._interval_start),
            seconds_left=(
                (self._last_step - step) * elapsed / done if done else None
            ),
        )
        self._display.show(report)
        self._reported_at = now
        self._start_interval()
        if now - self._summarized_at >= _SECONDS_BETWEEN_SUMMARIES:
            self._summarize(report)
            self._summarized_at = now

    def _summarize(self, report: ProgressReport) -> None:
        self._summaries.write(
            report.step,
            {
                "train/loss": report.loss,
                "train/learning_rate": report.learning_rate,
                "train/target_tokens_per_second": report.tokens_per_second,
            },
        )


def time_left_text(seconds: float | None) -> str:
    """Returns the end of a report: the time left, "" if not known.

    >>> time_left_text(3725.4), time_left_text(None)
    (', 1:02:05 left', '')
    """
    if seconds is None:
        return ""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f", {hours}:{minutes:02}:{seconds:02} left"
