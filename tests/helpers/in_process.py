"""Runs programs inside the test's process, which spares them a slow start.

What only a process of its own shows (signals, pipes, imports) is left to
`binaries`.
"""

import contextlib
import importlib
import io
import logging
import os
import signal
import sys
from unittest import mock

from absl import app, flags
from absl import logging as absl_logging
from absl.testing import flagsaver

from t2t_lite import cli, hardware

# app.run defines them once per process, so they must outlast every run.
app.define_help_flags()


def run(name, *arguments, text="", **environment):
    """Runs a program to its end; returns (status, stdout, stderr).

    It leaves nothing behind in this process but what it has imported.

    Args:
        name: str, the name of a module of bin/commands.
        *arguments: its flags.
        text: str, its standard input.
        **environment: variables that are set while it runs.
    """
    streams = _stream(text), _stream(), _stream()
    with (
        mock.patch.multiple(
            sys,
            argv=[f"bin/{name}", *map(str, arguments)],
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            unraisablehook=sys.unraisablehook,
        ),
        mock.patch.dict(os.environ, _environment(environment)),
        _signal_handlers(),
        _logging_to(streams[2]),
        _command(name) as command,
    ):
        status = _exit_status(command)
    return status, *(_text_in(stream) for stream in streams[1:])


@contextlib.contextmanager
def optimized_graphs():
    """Makes TensorFlow optimize graphs, as in a process of its own.

    Only then are numbers the same bit for bit.
    """
    from tensorflow import config

    name = "disable_meta_optimizer"
    saved = config.optimizer.get_experimental_options().get(name, False)
    config.optimizer.set_experimental_options({name: False})
    try:
        yield
    finally:
        config.optimizer.set_experimental_options({name: saved})


def on_one_core():
    """Makes programs see one core, so that updates are traced for one part."""
    return mock.patch.object(hardware, "num_cores", return_value=1)


def _environment(changes):
    # TensorFlow cannot change its number of threads once it has started.
    return {"TF_NUM_INTRAOP_THREADS": "1"} | changes


def _exit_status(command):
    try:
        cli.run(command)
    except SystemExit as exit_:
        return exit_.code or 0


def _stream(text=""):
    content = io.BytesIO(text.encode("utf-8", "surrogateescape"))
    return io.TextIOWrapper(content, "utf-8", "surrogateescape")


def _text_in(stream):
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "surrogateescape")


@contextlib.contextmanager
def _command(name):
    """Yields a program, imported anew; then removes it and its flags.

    Different programs define flags of the same names.
    """
    module = f"t2t_lite_commands.{name}"
    docstring = sys.modules["__main__"].__doc__
    saved = flagsaver.save_flag_values()
    try:
        sys.modules.pop(module, None)
        yield importlib.import_module(module)
    finally:
        flagsaver.restore_flag_values(saved)
        flags.FLAGS.unparse_flags()
        sys.modules.pop(module, None)
        sys.modules["__main__"].__doc__ = docstring


@contextlib.contextmanager
def _signal_handlers():
    saved = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _logging_to(stream):
    """Sends absl's log to a stream instead of pytest's handlers."""
    handler = absl_logging.get_absl_handler()
    python_handler = handler.python_handler
    root = logging.getLogger()
    saved_handlers, saved_level = root.handlers[:], root.level
    saved_stream = python_handler.stream
    saved_formatter = python_handler.formatter
    verbosity = flags.FLAGS["verbosity"]
    saved_verbosity = verbosity.value, verbosity.using_default_value
    # A program sets a default of its own, which would have no effect on a flag
    # that was set before, even if only by absl.logging.set_verbosity.
    verbosity.using_default_value = True
    root.handlers[:] = [handler]
    python_handler.setStream(stream)
    try:
        yield
    finally:
        python_handler.setStream(saved_stream)
        python_handler.setFormatter(saved_formatter)
        root.handlers[:] = saved_handlers
        root.setLevel(saved_level)
        verbosity.value, verbosity.using_default_value = saved_verbosity
