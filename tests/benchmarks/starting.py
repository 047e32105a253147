"""Times bin/translate from its start to the answer to its first line.

    python tests/benchmarks/starting.py [--rounds=3]

The model is transformer_base with random weights and a vocabulary of a few
words. One line goes in at a time. The first answer includes the imports,
reading the model, building the graph and, with --xla, compiling it; the second,
to a line of the same length, takes the search alone. The last measurement is
--xla after an earlier run has left the compiled search in TensorFlow's
persistent cache.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring

_LINES = (
    "two men and a red boat on the water\n",
    "a dog and a cat sits by the house\n",
)


class Way(NamedTuple):
    """How bin/translate is run."""

    options: tuple[str, ...]
    keeps_compiled: bool  # in TensorFlow's persistent cache, between runs


_WAYS = {
    "the default": Way((), keeps_compiled=False),
    "--xla": Way(("--xla",), keeps_compiled=False),
    "--xla, compiled before": Way(("--xla",), keeps_compiled=True),
}


def answer_seconds(model_dir, options, compiled_dir=None):
    """Returns the seconds to the first answer, and from it to the second."""
    command = [_ROOT / "bin/translate", f"--model_dir={model_dir}", *options]
    environment = dict(os.environ)
    if compiled_dir:
        flag = f"--tf_xla_persistent_cache_directory={compiled_dir}"
        given = environment.get("TF_XLA_FLAGS", "")
        environment["TF_XLA_FLAGS"] = f"{given} {flag}"
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *command, "--batch_lines=1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
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


def write_base_model(path):
    """Writes the model directory of transformer_base with random weights."""
    import tiny_translator

    from t2t_lite.hparams import PRESETS

    tiny_translator.write_model(
        path, tiny_translator.learn_vocabulary(), PRESETS["transformer_base"]
    )


def measure(folder, count):
    """Returns the seconds of each of _WAYS in each round."""
    model_dir, compiled_dir = folder / "model", folder / "compiled"
    write_base_model(model_dir)
    compiled_dir.mkdir()
    answer_seconds(model_dir, ("--xla",), compiled_dir)
    if not list(compiled_dir.iterdir()):
        raise RuntimeError("TensorFlow has kept nothing that it compiled")
    measured = {name: [] for name in _WAYS}
    for _ in range(count):
        for name, way in _WAYS.items():
            kept = compiled_dir if way.keeps_compiled else None
            measured[name].append(answer_seconds(model_dir, way.options, kept))
    return measured


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=measuring.positive_int, default=3)
    args = parser.parse_args()
    machine.print_machine()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(pathlib.Path(folder), args.rounds)
    for name, times in measured.items():
        first, second = map(statistics.median, zip(*times, strict=True))
        print(f"{name:22} first line {first:5.1f} s  second {second:5.2f} s")


if __name__ == "__main__":
    main()
