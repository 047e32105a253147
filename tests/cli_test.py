"""What the programs share, and no run of one shows."""

import logging
import os
import re
import signal
import sys
import types

import pytest
import tensorflow as tf
from absl import app
from absl import logging as absl_logging

from t2t_lite import cli


@pytest.mark.parametrize(
    ("num_parts", "cores", "gpus", "set_by_user", "expected"),
    [
        (2, 2, [], None, [1]),
        (1, 2, [], None, []),
        (2, 8, [], None, []),
        (2, 2, ["a GPU"], None, []),
        (2, 2, [], "2", []),  # What the user has set stays.
    ],
)
def test_each_of_two_parts_runs_on_one_of_two_cores(
    monkeypatch, num_parts, cores, gpus, set_by_user, expected
):
    threads = []
    monkeypatch.setattr(
        tf.config.threading,
        "set_intra_op_parallelism_threads",
        threads.append,
    )
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: gpus)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores))
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    if set_by_user:
        monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", set_by_user)
    cli.load_tensorflow(num_parts)
    assert threads == expected


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (logging.INFO, r"\d\d:\d\d:\d\d Saved step-3\."),
        (logging.WARNING, r"\d\d:\d\d:\d\d Warning: Saved step-3\."),
        (logging.ERROR, r"\d\d:\d\d:\d\d Error: Saved step-3\."),
    ],
)
def test_a_log_line_is_the_time_and_the_message(level, expected):
    record = logging.LogRecord(
        "absl", level, "run.py", 12, "Saved %s.", ("step-3",), None
    )
    assert re.fullmatch(expected, cli.LogFormatter().format(record))


def test_a_program_logs_in_this_format(monkeypatch):
    handler = absl_logging.get_absl_handler()
    monkeypatch.setattr(handler.python_handler, "formatter", None)
    command = types.ModuleType("command", "Does nothing.")
    monkeypatch.setattr(app, "run", lambda main: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys.modules["__main__"], "__doc__", None)
    cli.run(command)
    assert isinstance(handler.python_handler.formatter, cli.LogFormatter)


def test_a_program_that_a_signal_ended_says_so_by_its_status():
    assert cli.signal_status(0) == 0
    assert cli.signal_status(signal.SIGTERM) == 143
