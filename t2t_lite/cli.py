"""What every program shares: how it runs, and the flags that choose a model."""

import contextlib
import gc
import logging as python_logging
import os
import signal
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from absl import app, flags, logging

from t2t_lite.errors import InputError

_TRANSLATOR_FLAGS = (
    "model_dir",
    "checkpoint",
    "average_last",
    "precision",
    "xla",
    "beam_width",
    "length_penalty",
    "max_extra_length",
)


def run(command: ModuleType) -> None:
    """Runs a program and exits with the status that its main returns.

    An InputError, or a file that the system refuses, becomes one line on
    stderr and status 1; a closed pipe ends the program quietly, and Ctrl-C
    gives status 130.

    Args:
        command: module with a docstring, flags, and main(arguments).
    """
    _show_in_help(command)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Exits cleanly, so that half-written files are removed.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    flags.FLAGS.set_default("verbosity", logging.INFO)
    logging.get_absl_handler().setFormatter(LogFormatter())
    try:
        app.run(lambda arguments: _guarded_main(command, arguments))
    except BrokenPipeError:  # Of --help, which is printed before main runs.
        _discard_stdout()
        sys.exit(1)


def _guarded_main(command: ModuleType, arguments: list[str]) -> int:
    """Returns the exit status of a program, whatever it raises."""
    try:
        if len(arguments) > 1:
            raise InputError(
                f"this program takes flags only; received {arguments[1]!r}"
            )
        return command.main(arguments)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        _discard_stdout()
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _discard_stdout() -> None:
    """Keeps Python from complaining about a closed pipe when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class LogFormatter(python_logging.Formatter):
    """Puts the time before a message, and the level before a warning.

    >>> record = python_logging.makeLogRecord(
    ...     {"msg": "disk full", "levelno": python_logging.WARNING}
    ... )
    >>> LogFormatter().format(record)[8:]
    ' Warning: disk full'
    """

    def __init__(self):
        super().__init__("%(asctime)s %(label)s%(message)s", "%H:%M:%S")

    def format(self, record: python_logging.LogRecord) -> str:
        """Returns the line, or lines, of a record."""
        record.label = ""
        if record.levelno >= python_logging.WARNING:
            level = python_logging.getLevelName(record.levelno)
            record.label = f"{level.capitalize()}: "
        return super().format(record)


def _show_in_help(command: ModuleType) -> None:
    """Makes --help show the docstring and the flags of a program's module."""
    sys.modules["__main__"].__doc__ = command.__doc__
    for flag in flags.FLAGS.get_key_flags_for_module(command):
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)


def signal_status(number: int) -> int:
    """Returns the exit status of a program that a signal ended; 0 for none."""
    return 128 + number if number else 0


def load_tensorflow(num_parts: int = 1) -> None:
    """Imports TensorFlow, and hides what its libraries print about GPUs.

    Args:
        num_parts: how many parts of a batch are computed at the same time. On
            a CPU with as many cores, each part then runs on one thread, which
            is faster than parts that share all cores. The environment variable
            TF_NUM_INTRAOP_THREADS takes precedence.
    """
    gc.disable()  # A million objects are made, and none is garbage.
    with _silent_stderr():
        import tensorflow as tf

        gpus = tf.config.list_physical_devices("GPU")
    gc.freeze()
    gc.enable()
    is_set = "TF_NUM_INTRAOP_THREADS" in os.environ
    one_core_each = num_parts > 1 and _num_cores() == num_parts
    if one_core_each and not gpus and not is_set:
        tf.config.threading.set_intra_op_parallelism_threads(1)


def _num_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # On Linux; TensorFlow counts so too.
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Discards what C++ code writes to stderr; exceptions still rise."""
    sys.stderr.flush()
    before = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def define_model_flags(xla: bool | None = None) -> None:
    """Defines the flags that choose a model, and how it searches.

    Args:
        xla: the default of --xla; None to let the device decide.
    """
    flags.DEFINE_string(
        "model_dir", None, "Required: the directory that bin/train wrote."
    )
    flags.mark_flag_as_required("model_dir")
    flags.DEFINE_string(
        "checkpoint",
        "last",
        "Which weights to use: last, best, averaged, or the path of a "
        "checkpoint.",
    )
    flags.DEFINE_integer(
        "average_last",
        1,
        "Use the mean of the weights of this many of the last checkpoints.",
        lower_bound=1,
    )
    flags.DEFINE_enum(
        "precision",
        "float32",
        ["float32", "bfloat16", "float16"],
        "Precision of the computation; softmax and scores stay float32.",
    )
    default = " Default: on a GPU." if xla is None else ""
    flags.DEFINE_bool("xla", xla, f"Compile the search with XLA.{default}")
    flags.DEFINE_integer(
        "beam_width", None, "Width of the beam. Default: the model's."
    )
    flags.DEFINE_float(
        "length_penalty",
        None,
        "The paper's alpha; higher prefers longer output. Default: the "
        "model's.",
    )
    flags.DEFINE_integer(
        "max_extra_length",
        None,
        "How many tokens longer than its source an output may be. Default: "
        "the model's.",
    )


def define_sentences_flag() -> None:
    """Defines the flag that says which lines are split into sentences."""
    flags.DEFINE_enum(
        "sentences",
        "auto",
        ["auto", "split", "whole"],
        "Which lines are translated sentence by sentence. auto: those of "
        "several sentences if the model was trained on single ones, else those "
        "longer than 99% of its training lines; split: all of several "
        "sentences; whole: those only that are longer than the model takes.",
    )


def model_flags() -> dict[str, Any]:
    """Returns those flags as the arguments of a Translator."""
    return {name: flags.FLAGS[name].value for name in _TRANSLATOR_FLAGS}
