"""Times an update of transformer_base, and OpenNMT-tf's of the same sizes.

    python tests/benchmarks/training_step.py [--peer_python=PYTHON] [--rounds=3]

64 pairs of 32 + 32 random tokens, V = 32,000, dropout and label smoothing 0.1,
Adam. PYTHON is that of an environment with OpenNMT-tf 2.32 and TensorFlow 2.13.
Each measurement of an update is a process of its own: two updates to warm up,
then the median of five. Printed with the seconds are the operations per second
of the model's matrix products, counted by t2t_lite.model.flops, and their share
of the peak: the best speed of a product of two 2048 x 2048 matrices on this
machine in the same rounds.
"""

import argparse
import importlib.metadata
import json
import pathlib
import statistics
import sys
from typing import NamedTuple

_HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(_HERE.parents[1] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring

_BATCH = {"vocabulary_size": 32_000, "batch_size": 64, "length": 32}
_PRECISIONS = ("float32", "bfloat16")
_PEER = "OpenNMT-tf"


class Way(NamedTuple):
    """A way to compute an update."""

    precision: str
    xla: bool


_WAYS = {
    "t2t_lite": Way("float32", xla=False),
    "t2t_lite, XLA": Way("float32", xla=True),
    "t2t_lite, bfloat16": Way("bfloat16", xla=False),
}


def update_seconds(precision, xla):
    """Returns the median seconds of an update in this process."""
    from t2t_lite import cli

    cli.load_tensorflow(in_parts=not xla, for_training=True)
    import numpy as np

    from t2t_lite.hardware import find_hardware
    from t2t_lite.hparams import PRESETS
    from t2t_lite.optimization.sharding import Batch
    from t2t_lite.optimization.trainer import Trainer

    trainer = Trainer(
        PRESETS["transformer_base"],
        _BATCH["vocabulary_size"],
        precision=precision,
        xla=xla,
        num_parts=1 if xla else find_hardware().num_parts,
    )
    generator = np.random.default_rng(0)
    source_ids, target_ids = generator.integers(
        2,
        _BATCH["vocabulary_size"],
        (2, _BATCH["batch_size"], _BATCH["length"]),
    ).astype(np.int32)
    batch = Batch(source_ids, target_ids)
    return measuring.median_seconds(lambda: trainer.update(batch).loss.numpy())


def commands(peer_python, with_xla):
    """Returns the command of each measurement by its name."""
    ours = [sys.executable, __file__, "--measure"]
    found = {f"peak {p}": [*ours, "peak", p] for p in _PRECISIONS}
    for name, way in _WAYS.items():
        if with_xla or not way.xla:
            found[name] = [*ours, "update", way.precision, int(way.xla)]
    if peer_python:
        program = _HERE / "opennmt_tf_step.py"
        found[_PEER] = [peer_python, program, json.dumps(_BATCH)]
    return found


def report(results):
    """Prints the best peaks, and the medians of updates and of their ratios."""
    peaks = {p: max(results[f"peak {p}"]) for p in _PRECISIONS}
    for precision, peak in peaks.items():
        name = f"peak {precision}"
        print(f"{name:20} {peak / 1e9:6.1f} GFLOP/s")
    for name, values in results.items():
        if name in _WAYS:
            line = update_line(name, values, peaks[_WAYS[name].precision])
            if _PEER in results:
                ratios = [
                    theirs / ours
                    for ours, theirs in zip(values, results[_PEER], strict=True)
                ]
                line += f"  {statistics.median(ratios):.2f} times {_PEER}"
            print(line)
    if _PEER in results:
        print(update_line(_PEER, results[_PEER], peaks["float32"]))


def update_line(name, values, peak):
    """Returns a line: the updates' median, speed and share of the peak."""
    from t2t_lite.hparams import PRESETS
    from t2t_lite.model.flops import update_flops

    seconds = statistics.median(values)
    tokens = _BATCH["batch_size"] * _BATCH["length"]
    flops_per_second = (
        update_flops(
            PRESETS["transformer_base"],
            _BATCH["vocabulary_size"],
            batch_size=_BATCH["batch_size"],
            source_length=_BATCH["length"],
            target_length=_BATCH["length"],
        )
        / seconds
    )
    return (
        f"{name:20} {seconds:6.2f} s  {tokens / seconds:6.0f} target tokens/s  "
        f"{flops_per_second / 1e9:6.1f} GFLOP/s  "
        f"{flops_per_second / peak:4.0%} of the peak"
    )


def measure(what, precision, xla="0"):
    """Prints one measurement, in this process."""
    if what == "peak":
        print(machine.peak_flops(precision))
    else:
        print(update_seconds(precision, xla=xla == "1"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--peer_python", type=measuring.existing_path)
    parser.add_argument("--xla", action="store_true", help="with XLA as well")
    parser.add_argument("--rounds", type=measuring.positive_int, default=3)
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(*args.measure)
        return
    version = importlib.metadata.version("tensorflow")
    machine.print_machine(f"TensorFlow {version}")
    report(
        measuring.measure_rounds(
            commands(args.peer_python, args.xla), args.rounds
        )
    )


if __name__ == "__main__":
    main()
