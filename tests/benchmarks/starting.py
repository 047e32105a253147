"""Times bin/translate from its start to the answer of its first line.

    python tests/benchmarks/starting.py [--rounds=3]

The model is transformer_base with random weights and a vocabulary of a few
words. One line goes in at a time: the first answer takes the imports, reading
the model and making the graph, with --xla compiling it; the second, of the same
length, takes the search alone.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import by_turns

ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

_LINES = (
    "two men and a red boat on the water\n",
    "a dog and a cat sits by the house\n",
)
_WAYS = {"the default": (), "--xla": ("--xla",)}


def answer_seconds(model_dir, options):
    """Returns the seconds to the first answer, and to the second after it."""
    command = [ROOT / "bin/translate", f"--model_dir={model_dir}", *options]
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *command, "--batch_lines=1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        times = []
        for line in _LINES:
            process.stdin.write(line)
            process.stdin.flush()
            if not process.stdout.readline():
                raise RuntimeError(f"{command} gave no answer")
            times.append(time.perf_counter() - start)
        process.stdin.close()
    return times[0], times[1] - times[0]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    import tiny_translator

    from t2t_lite.hparams import PRESETS

    with tempfile.TemporaryDirectory() as folder:
        model_dir = pathlib.Path(folder) / "model"
        tiny_translator.write_model(
            model_dir,
            tiny_translator.learn_vocabulary(),
            PRESETS["transformer_base"],
        )
        measured = {name: [] for name in _WAYS}
        for _ in range(args.rounds):
            for name, options in _WAYS.items():
                measured[name].append(answer_seconds(model_dir, options))
    print(by_turns.machine())
    for name, times in measured.items():
        first, second = map(statistics.median, zip(*times, strict=True))
        print(f"{name:12} first line {first:5.1f} s  second {second:5.2f} s")


if __name__ == "__main__":
    main()
