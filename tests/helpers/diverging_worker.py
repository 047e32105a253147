"""Runs bin/train with a batch that makes the loss NaN whenever it is used.

Usage: diverging_worker.py STEP FLAGS, where the batch is that of update STEP.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages

import t2t_lite_commands
from t2t_lite import cli


def main(step):
    """Breaks updates after TensorFlow is loaded, because workers fork first."""
    load = cli.load_tensorflow

    def load_and_break(**options):
        load(**options)
        from diverging_run import Updates

        from t2t_lite.optimization.trainer import Trainer

        updates = Updates()
        Trainer.update = lambda *args, **options: updates.do(*args, **options)
        updates.break_batches(step)

    cli.load_tensorflow = load_and_break
    t2t_lite_commands.run("train")


if __name__ == "__main__":
    main(int(sys.argv.pop(1)))
