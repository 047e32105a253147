"""Times an update of transformer_base, and OpenNMT-tf's of the same sizes.

    python tests/benchmarks/training_step.py [--peer_python=PYTHON] [--rounds=3]

64 pairs of 32 + 32 random tokens, V = 32,000, dropout and label smoothing 0.1,
Adam. PYTHON is that of an environment with OpenNMT-tf 2.32 and TensorFlow 2.13.
Each measurement of an update is a process of its own: two updates to warm up,
then the median of five. Beside the seconds stand the operations of the model's
products in a second, by t2t_lite.training_cost, and their share of what a
product of two 2048 x 2048 matrices reaches at best on this machine in the same
rounds.
"""

import argparse
import json
import pathlib
import statistics
import sys

import by_turns

HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(HERE.parents[1] / "bin"))

import checkout  # noqa: F401, the code that this belongs to

BATCH = {"vocabulary_size": 32_000, "batch_size": 64, "length": 32}
_WAYS = {  # Of this package: precision, and whether XLA compiles.
    "t2t_lite": ("float32", False),
    "t2t_lite, XLA": ("float32", True),
    "t2t_lite, bfloat16": ("bfloat16", False),
}
_PEER = "OpenNMT-tf"


def update_seconds(precision, xla):
    """Returns the median seconds of an update in this process."""
    from t2t_lite import cli

    cli.load_tensorflow(num_parts=1 if xla else 2)  # As bin/train does.
    import numpy as np

    from t2t_lite.hparams import PRESETS
    from t2t_lite.training.trainer import Trainer

    trainer = Trainer(
        PRESETS["transformer_base"],
        BATCH["vocabulary_size"],
        precision=precision,
        xla=xla,
        num_parts=1 if xla else 2,
    )
    shape = (2, BATCH["batch_size"], BATCH["length"])
    source_ids, target_ids = (
        np.random.default_rng(0)
        .integers(2, BATCH["vocabulary_size"], shape)
        .astype(np.int32)
    )
    return by_turns.median_seconds(
        lambda: trainer.update(source_ids, target_ids).loss.numpy()
    )


def peak_flops(precision):
    """Returns the operations a second of the fastest of 20 square products."""
    import tensorflow as tf

    n = 2048
    x = tf.cast(tf.random.normal((n, n)), precision)
    product = tf.function(
        lambda: tf.reduce_sum(tf.matmul(x, x)), autograph=False
    )
    return (
        2
        * n**3
        / min(
            by_turns.median_seconds(lambda: product().numpy(), 0, 1)
            for _ in range(20)
        )
    )


def commands(peer_python, with_xla):
    """Returns the command of each measurement by its name."""
    ours = [sys.executable, __file__, "--measure"]
    return (
        {f"peak {p}": [*ours, "peak", p] for p in ("float32", "bfloat16")}
        | {
            name: [*ours, "update", precision, int(xla)]
            for name, (precision, xla) in _WAYS.items()
            if with_xla or not xla
        }
        | (
            {
                _PEER: [
                    peer_python,
                    HERE / "opennmt_tf_step.py",
                    json.dumps(BATCH),
                ]
            }
            if peer_python
            else {}
        )
    )


def report(results):
    """Prints the best peaks, the medians of the rest and of their ratios."""
    import tensorflow as tf

    from t2t_lite.hparams import PRESETS
    from t2t_lite.model import flops as training_cost

    flops = training_cost.update_flops(
        PRESETS["transformer_base"],
        BATCH["vocabulary_size"],
        BATCH["batch_size"],
        BATCH["length"],
        BATCH["length"],
    )
    print(f"{by_turns.machine()}; TensorFlow {tf.__version__}")
    for name, values in results.items():
        if name.startswith("peak"):
            print(f"{name:20} {max(values) / 1e9:6.1f} GFLOP/s")
            continue
        seconds = statistics.median(values)
        precision, _ = _WAYS.get(name, ("float32", False))
        peak = max(results[f"peak {precision}"])
        line = (
            f"{name:20} {seconds:6.2f} s  "
            f"{BATCH['batch_size'] * BATCH['length'] / seconds:6.0f} target "
            f"tokens/s  {flops / seconds / 1e9:6.1f} GFLOP/s  "
            f"{flops / seconds / peak:4.0%} of the peak"
        )
        if _PEER in results and name != _PEER:
            ratios = [
                theirs / ours
                for ours, theirs in zip(values, results[_PEER], strict=True)
            ]
            line += f"  {statistics.median(ratios):.2f} times {_PEER}"
        print(line)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--peer_python", type=by_turns.existing)
    parser.add_argument("--xla", action="store_true", help="with XLA as well")
    parser.add_argument("--rounds", type=by_turns.at_least_1, default=3)
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        what, precision, *rest = args.measure
        xla = rest == ["1"]
        print(
            update_seconds(precision, xla)
            if what == "update"
            else peak_flops(precision)
        )
        return
    report(by_turns.rounds(commands(args.peer_python, args.xla), args.rounds))


if __name__ == "__main__":
    main()
