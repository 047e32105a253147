"""All programs handle TensorFlow, logs, signals, streams and errors alike."""

import errno
import logging
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import time
import types

import keras
import pytest
import tensorflow as tf
from absl import app
from absl import logging as absl_logging
from paths import ROOT

from t2t_lite import cli
from t2t_lite.errors import InputError


@pytest.mark.parametrize(
    ("in_parts", "cores", "gpus", "set_by_user", "expected"),
    [
        (True, 2, [], None, [1]),
        (True, 8, [], None, [1]),
        (True, 64, [], None, []),  # More cores than parts.
        (True, 1, [], None, []),
        (False, 2, [], None, []),
        (True, 2, ["a GPU"], None, []),
        (True, 2, [], "2", []),  # What the user has set stays.
    ],
)
def test_each_of_as_many_parts_runs_on_one_core(
    monkeypatch, in_parts, cores, gpus, set_by_user, expected
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
    cli.load_tensorflow(in_parts)
    assert threads == expected


@pytest.mark.parametrize(
    ("for_training", "machine", "set_by_user", "expected"),
    [
        (True, "x86_64", None, "1"),
        (True, "x86_64", "0", "0"),  # What the user has set stays.
        (True, "aarch64", None, None),  # Not measured there.
        (False, "x86_64", None, None),
    ],
)
def test_updates_are_computed_by_one_dnn(
    monkeypatch, for_training, machine, set_by_user, expected
):
    variable = "TF_ENABLE_ONEDNN_OPTS"
    given = {} if set_by_user is None else {variable: set_by_user}
    others = {k: v for k, v in os.environ.items() if k != variable}
    monkeypatch.setattr(os, "environ", others | given)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    cli.load_tensorflow(for_training=for_training)
    assert os.environ.get(variable) == expected


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


@pytest.fixture(autouse=True)
def what_a_program_sets(monkeypatch):
    """Restores what a program changes for its whole process."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = absl_logging.get_verbosity()
    yield
    absl_logging.set_verbosity(before)


def test_a_program_logs_in_this_format(monkeypatch):
    handler = absl_logging.get_absl_handler()
    monkeypatch.setattr(handler.python_handler, "formatter", None)
    command = types.ModuleType("command", "Does nothing.")
    monkeypatch.setattr(app, "run", lambda *_, **__: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys.modules["__main__"], "__doc__", None)
    cli.run(command)
    assert isinstance(handler.python_handler.formatter, cli.LogFormatter)


def test_a_dropped_connection_ends_a_program_as_sigterm_does(monkeypatch):
    command = types.ModuleType("command", "Does nothing.")
    monkeypatch.setattr(app, "run", lambda *_, **__: None)
    monkeypatch.setattr(sys.modules["__main__"], "__doc__", None)
    handlers = {signal.SIGHUP: signal.SIG_DFL, signal.SIGTERM: signal.SIG_DFL}
    monkeypatch.setattr(signal, "getsignal", handlers.get)
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    cli.run(command)
    for number, handler in handlers.items():
        with pytest.raises(SystemExit) as exit_:
            handler(number, None)
        assert exit_.value.code == 128 + number
    handlers[signal.SIGHUP] = signal.SIG_IGN  # As under nohup.
    cli.run(command)
    assert handlers[signal.SIGHUP] == signal.SIG_IGN


# (what is raised, what the user sees)
_OF_THE_USER = [
    (InputError("give --output"), "give --output"),
    (OSError(errno.EACCES, "Permission denied", "x"), "x: Permission denied"),
    (MemoryError(), "memory ran out"),
    (
        tf.errors.ResourceExhaustedError(None, None, "OOM when\n a \n tensor"),
        "memory ran out",
    ),
    (
        tf.errors.ResourceExhaustedError(
            None,
            None,
            "{{function_node __wrapped__SaveV2}} f; No space left on device "
            "[Op:SaveV2]",
        ),
        "f; No space left on device",
    ),
    (
        ImportError("libx.so: failed to map segment from shared object"),
        "memory ran out while libraries were loaded: libx.so: failed",
    ),
    (
        RuntimeError("Resource temporarily unavailable"),
        "cannot start another thread: memory ran out, or the system's limit is "
        "reached",
    ),
]


def test_signals_end_the_work_of_a_library_at_once():
    """Signals that are ignored stay ignored, as SIGINT does here."""
    caught = signal.signal(signal.SIGTERM, signal.default_int_handler)
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with cli.signals_end_at_once():
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        handler = signal.getsignal(signal.SIGTERM)
        assert handler == signal.default_int_handler
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, caught)
        signal.signal(signal.SIGINT, ignored)


@pytest.fixture
def run_failing(monkeypatch):
    """A function that runs a program which raises the given exception."""

    def run(raised):
        def fail(*_, **__):
            raise raised

        monkeypatch.setattr(app, "run", fail)
        monkeypatch.setattr(sys.modules["__main__"], "__doc__", None)
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        cli.run(types.ModuleType("command", "Fails."))

    return run


@pytest.mark.parametrize(("raised", "line"), _OF_THE_USER)
def test_what_the_user_can_mend_is_one_line(run_failing, capsys, raised, line):
    with pytest.raises(SystemExit) as ended:
        run_failing(raised)
    assert ended.value.code == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"error: {line}")


@pytest.mark.parametrize("error", [ImportError("no x"), RuntimeError("x")])
def test_what_the_program_is_to_blame_for_keeps_its_traceback(
    run_failing, error
):
    with pytest.raises(type(error)):
        run_failing(error)


def test_keras_is_as_this_package_needs_it(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    keras.config.set_floatx("float64")
    try:
        cli.load_tensorflow()
        assert keras.config.floatx() == "float32"
    finally:
        keras.config.set_floatx("float32")
    assert os.environ["KERAS_BACKEND"] == "tensorflow"
    assert "TF_USE_LEGACY_KERAS" not in os.environ


_PROGRAM = """
import sys
import types

from t2t_lite import cli

command = types.ModuleType("command", "Prints.")
command.main = lambda _: {main}
cli.run(command)
"""


def run_main(main, streams, **environment):
    """Returns the finished process of a `main` whose streams the shell sets.

    Args:
        main: source text of an expression.
        streams: redirections, such as ">&-".
        **environment: variables of the process.
    """
    python = [sys.executable, "-c", _PROGRAM.format(main=main)]
    return subprocess.run(
        f"{shlex.join(python)} {streams}",
        shell=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("streams", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_file_takes_the_place_of_no_closed_stream(streams):
    done = run_main("print(open(cli.__file__).fileno() > 2)", streams)
    assert (done.returncode, done.stdout) == (0, "True\n")


def test_stdout_that_is_closed_is_refused():
    done = run_main("print('lost')", ">&-")
    assert done.returncode == 1
    assert done.stderr == (
        "error: standard output is closed: send it to a file, or to /dev/null\n"
    )


def test_a_disk_that_takes_no_output_is_one_line():
    done = run_main("print('lost')", ">/dev/full", PYTHONUNBUFFERED="")
    assert done.returncode == 1
    assert done.stderr == "error: standard output: No space left on device\n"


def test_what_stdout_cannot_encode_is_printed_all_the_same():
    done = run_main("print('mödel')", "", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, "m\\xf6del\n")


_SIGNALED = """
import gc, signal, time

# Whoever runs the tests may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def signal_once(*_):
    gc.callbacks.remove(signal_once)
    signal.raise_signal({number})

gc.callbacks.append(signal_once)
gc.collect()
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_a_signal_in_a_garbage_collection_is_not_lost(number, status):
    """Python ignores exceptions that a callback of the collector raises."""
    main = f"exec({_SIGNALED.format(number=int(number))!r}, {{}})"
    begun = time.monotonic()
    done = run_main(main, "")
    assert (done.returncode, done.stderr) == (status, "")
    assert time.monotonic() - begun < 30


def test_a_program_that_a_signal_ended_says_so_by_its_status():
    assert cli.signal_status(0) == 0
    assert cli.signal_status(signal.SIGTERM) == 143


def test_help_without_docstrings_is_shown(capsys, monkeypatch):
    """As with `python -OO`."""
    command = types.ModuleType("t2t_lite_commands.bare")
    command.__doc__ = None
    monkeypatch.setattr(sys.modules["__main__"], "__doc__", None)
    cli._show_in_help(command)
    assert sys.modules["__main__"].__doc__ == ""
