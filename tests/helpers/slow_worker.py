"""Runs bin/train with a dev evaluation, or a final report, that takes long.

Usage: slow_worker.py FLAGS NAME SECONDS, where NAME is "evaluation" or
"report", and SECONDS is how much longer each of them takes.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages

import t2t_lite_commands
from t2t_lite import cli


def main(name, seconds):
    """Slows it down after TensorFlow is loaded, because workers fork first."""
    load = cli.load_tensorflow

    def load_and_slow_down(**options):
        load(**options)
        from t2t_lite.training import run
        from t2t_lite.training.dev_evaluation import DevEvaluation

        if name == "evaluation":
            DevEvaluation.evaluate = _slow(DevEvaluation.evaluate, seconds)
        else:
            run.final_report = _slow(run.final_report, seconds)

    cli.load_tensorflow = load_and_slow_down
    t2t_lite_commands.run("train")


def _slow(function, seconds):
    """Returns a function that first sleeps."""

    def sleep_first(*args, **options):
        time.sleep(seconds)
        return function(*args, **options)

    return sleep_first


if __name__ == "__main__":
    seconds = float(sys.argv.pop())
    main(sys.argv.pop(), seconds)
