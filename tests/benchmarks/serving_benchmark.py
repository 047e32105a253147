"""Times an export: its signatures, with and without XLA, and the first request.

    python tests/benchmarks/serving_benchmark.py LINES EXPORT [EXPORT_WITH_XLA]

LINES is a file of sentences, EXPORT the folder of one version. Signatures take
turns in one process; their medians and ratios are printed. The first request is
timed in a server of its own. Needs t2t_lite[serving].
"""

import argparse
import pathlib
import statistics
import sys
import time

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring

_ROUNDS = 5
_BATCHES = (1, 8, 64, 512)
_REQUESTS = 40


def median_times(functions):
    """Returns the median seconds of each function; they take turns."""
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for _ in range(_ROUNDS):
        for name, function in functions.items():
            times[name].append(measuring.timed(function)[0])
    return {name: statistics.median(each) for name, each in times.items()}


def compare_signatures(lines, paths):
    """Prints the time of a batch by each signature of each export."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  Registers the tokenizer's ops.

    models = {name: tf.saved_model.load(path) for name, path in paths.items()}
    for size in _BATCHES:
        inputs = tf.constant(lines[:size])
        functions = {
            (name, signature): lambda f=model.signatures[signature], x=inputs: (
                f(inputs=x)
            )
            for name, model in models.items()
            for signature in ("serving_default", "translate_nbest")
        }
        times = median_times(functions)
        base = times["no XLA", "serving_default"]
        for (name, signature), value in times.items():
            print(
                f"{size:4} lines  {name:6}  {signature:16} {value:7.3f} s  "
                f"{size / value:6.1f} lines/s  {value / base:5.2f}"
            )


def time_first_requests(line, paths):
    """Prints the times of the warm-up, the first request and the median one."""
    from prediction_client import Server

    for name, path in paths.items():
        start = time.perf_counter()
        server = Server(path)
        warm_up = time.perf_counter() - start
        first, *others = [
            measuring.timed(lambda server=server: server(inputs=[line]))[0]
            for _ in range(_REQUESTS)
        ]
        server.close()
        median = statistics.median(others)
        print(
            f"{name:6}  ready after {warm_up:.1f} s; first request "
            f"{1000 * first:.1f} ms, median {1000 * median:.1f} ms, "
            f"ratio {first / median:.2f}"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("lines", metavar="LINES", type=measuring.existing_path)
    parser.add_argument(
        "export", metavar="EXPORT", type=measuring.existing_path
    )
    parser.add_argument(
        "xla",
        metavar="EXPORT_WITH_XLA",
        nargs="?",
        type=measuring.existing_path,
    )
    args = parser.parse_args()
    machine.print_machine()
    lines = args.lines.read_text("utf-8").rstrip("\n").split("\n")
    paths = {"no XLA": str(args.export)}
    if args.xla:
        paths["XLA"] = str(args.xla)
    time_first_requests(lines[0], paths)
    compare_signatures(lines, paths)


if __name__ == "__main__":
    main()
