"""How every binary runs: flags, logs to stderr, wrong input as one line."""

import os
import sys

from absl import app, flags, logging

from t2t_lite.errors import InputError


def run(main):
    """Runs `main(arguments)` and exits with the status that it returns.

    An InputError becomes one line on stderr and status 1, a broken pipe ends
    quietly, and Ctrl-C gives status 130.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    flags.FLAGS.set_default("verbosity", logging.INFO)

    def guarded(argv):
        try:
            if len(argv) > 1:
                raise InputError(
                    f"{os.path.basename(argv[0])} takes flags only; received "
                    f"{argv[1]!r}"
                )
            return main(argv)
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except BrokenPipeError:
            # Python would complain again when it flushes stdout at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        except KeyboardInterrupt:
            return 130

    app.run(guarded)


def status_of_signal(number):
    """Returns the exit status of a program that a signal ended; 0 for none."""
    return 128 + number if number else 0
