"""What every binary shares: how it runs, and the flags that choose a model."""

import contextlib
import gc
import os
import signal
import sys

from absl import app, flags, logging

from t2t_lite.errors import InputError

_MODEL_FLAGS = ("model_dir", "checkpoint", "average_last", "precision", "xla")
_SEARCH_FLAGS = ("beam_width", "length_penalty", "max_extra_length")


def run(command):
    """Runs a program and exits with the status that its main returns.

    An InputError, or a file that the system refuses, becomes one line on
    stderr and status 1; a closed pipe ends the program quietly, and Ctrl-C
    gives status 130.

    Args:
        command: module with a docstring, flags, and main(arguments).
    """
    _show_in_help(command)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # What is half-written is taken away on the way out.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    flags.FLAGS.set_default("verbosity", logging.INFO)

    def guarded(arguments):
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
            # Python would complain again when it flushes stdout at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            print(f"error: {where}{error.strerror or error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130

    app.run(guarded)


def _show_in_help(command):
    """Makes --help show the docstring and the flags of a program's module."""
    sys.modules["__main__"].__doc__ = command.__doc__
    for flag in flags.FLAGS.get_key_flags_for_module(command):
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)


def status_of_signal(number):
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
    gc.disable()  # A million objects come, and none of them goes.
    with _silent_stderr():
        import tensorflow as tf

        gpus = tf.config.list_physical_devices("GPU")
    gc.freeze()
    gc.enable()
    is_set = "TF_NUM_INTRAOP_THREADS" in os.environ
    one_core_each = num_parts > 1 and _num_cores() == num_parts
    if one_core_each and not gpus and not is_set:
        tf.config.threading.set_intra_op_parallelism_threads(1)


def _num_cores():
    if hasattr(os, "sched_getaffinity"):  # Linux has it, and TensorFlow asks.
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


@contextlib.contextmanager
def _silent_stderr():
    """Sends what C++ code writes to stderr nowhere; exceptions still rise."""
    sys.stderr.flush()
    before = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def define_model_flags(xla=None):
    """Defines the flags that choose a model, and how it searches.

    Args:
        xla: bool, the default of --xla; None for what suits the device.
    """
    flags.DEFINE_string(
        "model_dir", None, "Required: where bin/train wrote the model."
    )
    flags.mark_flag_as_required("model_dir")
    flags.DEFINE_string(
        "checkpoint", "last", "last, best, averaged, or a checkpoint's path."
    )
    flags.DEFINE_integer(
        "average_last",
        1,
        "The mean of so many of the last checkpoints.",
        lower_bound=1,
    )
    flags.DEFINE_enum(
        "precision",
        "float32",
        ["float32", "bfloat16", "float16"],
        "Of the computation; softmax and scores are float32.",
    )
    where = "; default: where a GPU translates" if xla is None else ""
    flags.DEFINE_bool("xla", xla, f"Compile the search with XLA{where}.")
    flags.DEFINE_integer("beam_width", None, "Default: the model's.")
    flags.DEFINE_float("length_penalty", None, "Default: the model's.")
    flags.DEFINE_integer(
        "max_extra_length",
        None,
        "How many tokens longer than its source a translation may be; default: "
        "the model's.",
    )


def model_flags():
    """Returns those flags as the arguments of a Translator."""
    return {name: flags.FLAGS[name].value for name in _MODEL_FLAGS} | {
        name: flags.FLAGS[name].value for name in _SEARCH_FLAGS
    }
