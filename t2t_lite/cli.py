"""What every program shares: how it runs, ends and loads TensorFlow."""

import contextlib
import dataclasses
import functools
import gc
import logging as python_logging
import os
import platform
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from absl import app, flags, logging

from t2t_lite import files, hardware, terminal
from t2t_lite.errors import InputError, program, reason, require_small
from t2t_lite.hparams import HParams

_MEMORY_FLAGS = (
    "beam_width",
    "max_extra_length",
    "tokens_at_once",
    "micro_batch_tokens",
)
_HELP_WIDTH = 20  # The least in which absl's help has room for its indents.
_NO_SPACE = "No space left on device"
# What errors say when libraries, or threads, get too little memory.
_NO_MEMORY = re.compile("failed to map segment|Cannot allocate memory")
_NO_THREADS = "Resource temporarily unavailable"
# What absl says about a required flag that is missing.
_REQUIRED = re.compile("^flag (--.*)=None: Flag .* must have a value.*")


def run(command: ModuleType) -> None:
    """Runs a program and exits with the status that its main returns.

    What the user can fix (an InputError, a wrong flag, a file that the system
    refuses, too little memory) becomes one line on stderr and status 1; a
    closed pipe ends the program quietly, and Ctrl-C gives status 130.

    Args:
        command: module with a docstring, flags, and main(arguments).
    """
    _show_in_help(command)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    _choose_keras()
    # Exits cleanly, so that half-written files are removed.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # As under nohup.
            signal.signal(number, _exit)
    sys.unraisablehook = _signal_again
    flags.FLAGS.set_default("verbosity", logging.INFO)
    logging.get_absl_handler().setFormatter(LogFormatter())
    try:
        _prepare_streams()
        app.run(functools.partial(_main, command), flags_parser=_parse_flags)
    except BrokenPipeError:
        _discard_stdout()
        sys.exit(1)
    except KeyboardInterrupt:
        _flush_stdout()
        sys.exit(130)
    except Exception as error:
        line = _line_for_user(error)
        if line is None:
            raise
        print(f"error: {_in_one_line(line)}", file=sys.stderr)
        _flush_stdout()
        sys.exit(1)


@contextlib.contextmanager
def signals_end_at_once() -> Iterator[None]:
    """Lets signals end long work in a library, where Python cannot see them.

    Use it only where nothing can be left half-written.
    """
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = {n: signal.getsignal(n) for n in numbers}
    caught = {n: handler for n, handler in before.items() if callable(handler)}
    for number in caught:  # Ignored signals stay ignored.
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in caught.items():
            signal.signal(number, handler)


class _SignalExit(SystemExit):
    """The exit that a signal asks for, with status 128 + its number."""


def _exit(number: int, _: Any) -> None:
    raise _SignalExit(signal_status(number))


def _signal_again(ignored: "sys.UnraisableHookArgs") -> None:
    """Repeats a signal whose exception Python could only ignore.

    It ignores those within a callback of the garbage collector, such as JAX's.
    """
    error = ignored.exc_value
    if isinstance(error, KeyboardInterrupt):
        number = signal.SIGINT
    elif isinstance(error, _SignalExit):
        number = error.code - 128
    else:
        sys.__unraisablehook__(ignored)
        return
    # Not at once: here it would be ignored again.
    again = threading.Timer(0.1, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _main(command: ModuleType, arguments: list[str]) -> int:
    if len(arguments) > 1:
        raise InputError(
            f"this program takes flags only; received {arguments[1]!r}: "
            "--help lists the flags"
        )
    for flag in flags.FLAGS.get_key_flags_for_module(command):
        _require_usable(flag)
    status = command.main(arguments)
    with files.name_path_in_errors(files.STDOUT):
        sys.stdout.flush()
    return status


def _require_usable(flag: flags.Flag) -> None:
    """Raises InputError if a flag's value can only be a mistake."""
    is_multiple = isinstance(flag, flags.MultiFlag)
    is_empty = is_multiple and "" in (flag.value or [])
    if flag.present and (is_empty or flag.value in ("", [])):
        raise InputError(f"--{flag.name} is empty")
    if isinstance(flag.value, int):
        require_small(**{f"--{flag.name}": flag.value})


def _parse_flags(arguments: list[str]) -> list[str]:
    """Returns the arguments that are not flags.

    Raises:
        InputError: a flag is missing, unknown or wrong.
    """
    try:
        return flags.FLAGS(arguments)
    except flags.UnrecognizedFlagError as error:
        name = error.flagname
        settings = {field.name for field in dataclasses.fields(HParams)}
        if name in settings and "override" in flags.FLAGS:
            raise InputError(
                f"{name} is a setting: give --override={name}=VALUE"
            ) from None
        raise InputError(str(error)) from None
    except (flags.Error, ValueError) as error:  # The latter: --noNAME=VALUE.
        problems = [
            _REQUIRED.sub(r"\1 is required", problem).removeprefix("flag ")
            for problem in str(error).splitlines()
        ]
        raise InputError("; ".join(problems)) from None
    except SystemExit:  # absl's --help exits with 1.
        _flush_stdout()
        sys.exit(0)


def _line_for_user(error: Exception) -> str | None:
    """Returns what to say about an error; None if the program is to blame."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    # By name: the program may not have imported TensorFlow.
    is_exhausted = type(error).__name__ == "ResourceExhaustedError"
    if is_exhausted and _NO_SPACE in str(error):
        return reason(error)
    if isinstance(error, ImportError) and _NO_MEMORY.search(str(error)):
        return f"memory ran out while libraries were loaded: {reason(error)}"
    if isinstance(error, RuntimeError) and str(error) == _NO_THREADS:
        return (
            "cannot start another thread: memory ran out, or the system's "
            "limit is reached"
        )
    if is_exhausted or isinstance(error, MemoryError):
        smaller = [f"--{n}" for n in _MEMORY_FLAGS if n in flags.FLAGS]
        remedy = f": try a smaller {', '.join(smaller)}" if smaller else ""
        return f"memory ran out{remedy}"
    return None


def _in_one_line(text: str) -> str:
    r"""Returns text with control characters escaped: names may contain them.

    >>> print(_in_one_line("a\nb does not exist"))
    a\nb does not exist
    """
    return re.sub(r"[\x00-\x1f\x7f]", lambda c: repr(c[0])[1:-1], text)


def _prepare_streams() -> None:
    """Makes sure that output can be printed, and goes nowhere else.

    A file opened while stdin, stdout or stderr is closed takes its place, and
    receives everything written there.

    Raises:
        InputError: stdout is closed.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, for all that follows
        logging.get_absl_handler().python_handler.setStream(sys.stderr)
    if sys.stdout is None:
        raise InputError(
            "standard output is closed: send it to a file, or to /dev/null"
        )
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")


def _flush_stdout() -> None:
    """Flushes stdout, if that is possible."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # Python would try again, and complain.
        _discard_stdout()


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
    sys.modules["__main__"].__doc__ = re.sub(
        r"\bbin/(\w+)", lambda found: program(found[1]), command.__doc__ or ""
    )
    if shutil.get_terminal_size().columns < _HELP_WIDTH:
        os.environ["COLUMNS"] = str(_HELP_WIDTH)
    for flag in flags.FLAGS.get_key_flags_for_module(command):
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)


def forbid_with(other: str, *ignored: str, because: str = "") -> None:
    """Refuses flags that would have no effect beside another one.

    Call it once all of them are defined.

    Args:
        other: name of a flag, which counts if its value is not the default.
        *ignored: names of flags, or "override=FIELD".
        because: why they have no effect; the message continues with it.
    """

    def check(_: dict[str, Any]) -> bool:
        flag = flags.FLAGS[other]
        given = [] if flag.value == flag.default else filter(_is_given, ignored)
        for name in given:
            raise InputError(
                f"--{name} has no effect with --{other}{because}: leave it out"
            )
        return True

    names = {other, *(name.partition("=")[0] for name in ignored)}
    flags.register_multi_flags_validator(sorted(names), check)


def require_one(*names: str) -> None:
    """Requires exactly one of several flags.

    Call it once all of them are defined.
    """

    def check(given: dict[str, Any]) -> bool:
        if sum(value is not None for value in given.values()) != 1:
            either = " or ".join(f"--{name}" for name in names)
            raise InputError(f"give either {either}")
        return True

    flags.register_multi_flags_validator(names, check)


def allow_only_with(name: str, other: str, value: str | None = None) -> None:
    """Refuses a flag that has no effect without another one.

    Call it once both are defined.

    Args:
        name: of the flag.
        other: name of the other, which must have no default if `value` is None.
        value: the value that the other must have; None for any.
    """

    def check(values: dict[str, Any]) -> bool:
        found = values[other]
        is_there = found is not None if value is None else found == value
        if _is_given(name) and not is_there:
            needed = other if value is None else f"{other}={value}"
            raise InputError(
                f"--{name} has no effect alone: give --{needed} too"
            )
        return True

    flags.register_multi_flags_validator([name, other], check)


def _is_given(name: str) -> bool:
    name, _, field = name.partition("=")
    flag = flags.FLAGS[name]
    if field:
        return any(value.startswith(f"{field}=") for value in flag.value)
    # Not `in`: 0 is a value, and equals False.
    is_none = flag.value is None or flag.value is False
    return bool(flag.present) and not is_none


def signal_status(number: int) -> int:
    """Returns the exit status of a program ended by a signal; 0 for none."""
    return 128 + number if number else 0


def load_tensorflow(in_parts: bool = False, for_training: bool = False) -> None:
    """Imports TensorFlow, and hides what its libraries print about GPUs.

    Args:
        in_parts: whether `Hardware.num_parts` parts of a batch are computed
            side by side. If the CPU has that many cores, each part then runs
            on one thread, which is faster than parts that share all cores. The
            environment variable TF_NUM_INTRAOP_THREADS takes precedence.
        for_training: whether updates are computed. An x86 CPU then uses
            oneDNN's kernels, which TensorFlow by itself uses only on newer CPUs
            (with AVX512_VNNI). They are faster, but not at once: they are
            compiled for each shape. TF_ENABLE_ONEDNN_OPTS takes precedence.
    """
    _choose_keras()
    if for_training and platform.machine() == "x86_64":
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    if sys.stderr.isatty():
        logging.info("Loading TensorFlow.")  # It takes seconds.
    gc.disable()  # A million objects are made, and none is garbage.
    with terminal.silent_stderr():
        import keras
        import tensorflow as tf

        keras.config.set_floatx("float32")
        gpus = tf.config.list_physical_devices("GPU")
    gc.freeze()
    gc.enable()
    is_set = "TF_NUM_INTRAOP_THREADS" in os.environ
    cores = hardware.num_cores()
    one_core_each = in_parts and hardware.cpu_parts(cores) == cores > 1
    if one_core_each and not gpus and not is_set:
        tf.config.threading.set_intra_op_parallelism_threads(1)


def _choose_keras() -> None:
    """Undoes what the user's environment chooses for other programs."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    os.environ.pop("TF_USE_LEGACY_KERAS", None)


def names_url() -> bool:
    """Returns whether a flag of this program names another machine."""
    values = flags.FLAGS.flag_values_dict().values()
    paths = [
        path for v in values if isinstance(v, str) for path in v.split(",")
    ]
    return any(map(files.is_url, paths))
