"""What a run shows: log lines, a bar on a terminal, and a divergence."""

import io
import logging
import math
import types

import pytest
import tensorflow as tf
from absl import logging as absl_logging
from screen import Terminal, stderr

from t2t_lite.optimization.divergence import DivergenceError
from t2t_lite.optimization.update import Update
from t2t_lite.training import progress as progress_module
from t2t_lite.training.progress import Bar, Progress, ProgressReport
from t2t_lite.training.summaries import Summaries

REPORT = ProgressReport(
    step=4,
    last_step=40,
    loss=2.5,
    learning_rate=3e-4,
    tokens_per_second=1234.4,
    seconds_left=65.0,
)


class _Clock:
    """A clock that moves only when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = _Clock()
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


@pytest.fixture
def trainer():
    return types.SimpleNamespace(
        step=0, learning_rate=lambda step: step / 10, has_other_workers=False
    )


@pytest.fixture
def reports(monkeypatch):
    """The Reports that are shown."""
    shown = []
    monkeypatch.setattr(
        progress_module.Lines, "show", lambda self, report: shown.append(report)
    )
    return shown


class _Watchdog:
    """Treats a loss that is not finite as a divergence."""

    def __init__(self):
        self.checked = []

    def check(self, update, loss):
        self.checked.append(update.step)
        if not math.isfinite(loss):
            raise DivergenceError("the loss is not finite", update.step)


def _progress(trainer, last_step=100, watchdog=None):
    watchdog = watchdog or _Watchdog()
    return Progress(trainer, last_step, Summaries(None), watchdog=watchdog)


def _update(trainer, progress, loss=2.0, tokens=50.0):
    trainer.step += 1
    numbers = map(tf.constant, (loss, tokens, [1.0]))
    progress.add(Update(*numbers, trainer.step, batch=()))


def test_the_first_update_is_reported_then_every_ten_seconds(
    trainer, clock, reports
):
    progress = _progress(trainer)
    for _ in range(25):
        clock.now += 1
        _update(trainer, progress)
    assert [report.step for report in reports] == [1, 11, 21]


def test_the_loss_is_the_mean_over_tokens_since_the_last_report(
    trainer, clock, reports
):
    progress = _progress(trainer)
    clock.now += 5
    _update(trainer, progress, loss=9.0)
    clock.now += 4
    _update(trainer, progress, loss=1.0, tokens=30.0)
    clock.now += 6
    _update(trainer, progress, loss=2.0, tokens=10.0)
    first, second = reports
    assert first.loss == 9.0
    assert second.loss == pytest.approx((30 * 1.0 + 10 * 2.0) / 40)
    assert second.tokens_per_second == pytest.approx(40 / 10)
    assert second.learning_rate == pytest.approx(0.3)


def test_time_left_counts_neither_the_first_update_nor_pauses(
    trainer, clock, reports
):
    progress = _progress(trainer, last_step=12)
    clock.now += 600  # To build graphs.
    _update(trainer, progress)
    assert reports[0].seconds_left is None
    clock.now += 10
    with progress.paused():
        clock.now += 300
    clock.now += 10
    _update(trainer, progress)
    assert reports[1].seconds_left == pytest.approx(10 * 20)
    assert reports[1].tokens_per_second == pytest.approx(50 / 20)


def test_a_resumed_run_counts_its_own_updates_for_the_time_left(
    trainer, clock, reports
):
    trainer.step = 90
    progress = _progress(trainer)
    clock.now += 10
    _update(trainer, progress)
    clock.now += 10
    _update(trainer, progress)
    assert reports[1].seconds_left == pytest.approx(8 * 10)


def test_a_divergence_is_that_of_the_first_update_that_shows_it(
    trainer, clock, reports
):
    watchdog = _Watchdog()
    progress = _progress(trainer, watchdog=watchdog)
    clock.now += 1
    _update(trainer, progress)
    assert watchdog.checked == [1]
    for value in (3.0, math.nan, math.nan):
        _update(trainer, progress, loss=value)
    with pytest.raises(
        DivergenceError, match=r"^the loss is not finite at step 3"
    ):
        progress.flush()
    assert watchdog.checked == [1, 2, 3]


def test_several_workers_check_each_update_at_once(trainer, clock, reports):
    """All must notice a divergence after the same update."""
    trainer.has_other_workers = True
    watchdog = _Watchdog()
    progress = _progress(trainer, watchdog=watchdog)
    for step in (1, 2, 3):
        clock.now += 1
        _update(trainer, progress)
        assert watchdog.checked[-1] == step
    assert [report.step for report in reports] == [1]


def test_a_run_that_goes_back_is_timed_anew(trainer, clock, reports):
    watchdog = _Watchdog()
    progress = _progress(trainer, last_step=12, watchdog=watchdog)
    clock.now += 10
    _update(trainer, progress)
    clock.now += 1
    _update(trainer, progress, loss=9.0)
    trainer.step = 0
    progress.restart()
    for _ in range(2):
        clock.now += 10
        _update(trainer, progress, loss=3.0)
    assert watchdog.checked == [1, 1, 2]
    assert [report.loss for report in reports] == [2.0, 3.0, 3.0]
    assert reports[2].seconds_left == pytest.approx(10 * 10)


def test_a_line_has_all_that_a_report_has(caplog):
    caplog.set_level(logging.INFO, "absl")
    progress_module.Lines().show(REPORT._replace(step=7))
    assert caplog.messages == [
        "Step 7 of 40: loss 2.5000, learning rate 3.00e-04, "
        "1234 target tokens/s, 0:01:05 left"
    ]


def test_a_line_does_not_guess_at_the_time_left(caplog):
    caplog.set_level(logging.INFO, "absl")
    progress_module.Lines().show(REPORT._replace(step=1, seconds_left=None))
    assert caplog.messages[0].endswith("1234 target tokens/s")


# Terminals and files.


def test_log_lines_appear_above_the_bar():
    with stderr(Terminal()) as terminal:
        bar = Bar(3, 40)
        bar.show(REPORT)
        absl_logging.info("Saved step-4.")
        bar.show(REPORT._replace(step=5, loss=2.25, seconds_left=60.0))
        bar.close(step=6)
        absl_logging.info("The end.")
    saved, last, end, rest = terminal.lines()
    assert saved.endswith("Saved step-4.")
    assert "|" not in saved
    assert last.startswith("step 6 of 40 |")
    assert "loss 2.2500, 1234 target tokens/s, 0:01:00 left" in last
    assert end.endswith("The end.")
    assert rest == ""


def test_a_terminal_shows_a_bar(trainer):
    with stderr(Terminal()) as terminal, _progress(trainer) as progress:
        _update(trainer, progress)
    assert "step 1 of 100 |" in terminal.getvalue()
    assert "Step 1 of" not in terminal.getvalue()


def test_a_file_has_lines(trainer):
    with stderr(io.StringIO()) as file, _progress(trainer) as progress:
        _update(trainer, progress)
    assert "Step 1 of 100: loss 2.0000" in file.getvalue()
    assert "|" not in file.getvalue()


def test_an_error_leaves_no_bar_behind(trainer):
    handler = absl_logging.get_absl_handler().python_handler
    with stderr(Terminal()) as terminal:
        with pytest.raises(DivergenceError), _progress(trainer) as progress:
            _update(trainer, progress, loss=math.nan)
        assert handler.stream is terminal
        absl_logging.info("The end.")
    assert terminal.lines()[-2].endswith("The end.")
