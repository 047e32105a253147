"""Times an export: its signatures, XLA against none, and the first request.

    python tests/benchmarks/serving_benchmark.py LINES EXPORT [EXPORT_WITH_XLA]

LINES is a file of sentences, EXPORT the folder of one version. All that is
compared runs by turns in one process, and what is printed are the medians and
their ratios. The first request is timed in servers of their own.
"""

import argparse
import pathlib
import statistics
import sys
import time

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import checkout  # noqa: F401, the code that this belongs to

_ROUNDS = 5
_BATCHES = (1, 8, 64, 512)
_REQUESTS = 40


def seconds(function):
    """Returns how long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def by_turns(functions):
    """Returns the median seconds of each function, called in turn."""
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for _ in range(_ROUNDS):
        for name, function in functions.items():
            times[name].append(seconds(function))
    return {name: statistics.median(of) for name, of in times.items()}


def compare_signatures(lines, paths):
    """Prints the time of a batch by each signature of each export."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  The ops of the tokenizer.

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
        times = by_turns(functions)
        base = times["no XLA", "serving_default"]
        for (name, signature), value in times.items():
            print(
                f"{size:4} lines  {name:6}  {signature:16} {value:7.3f} s  "
                f"{size / value:6.1f} lines/s  {value / base:5.2f}"
            )


def time_first_requests(line, paths):
    """Prints the first request after the warm-up against the median."""
    from serving_test import Server

    for name, path in paths.items():
        start = time.perf_counter()
        server = Server(path)
        warm_up = time.perf_counter() - start
        first, *others = [
            seconds(lambda server=server: server(inputs=[line]))
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
    parser.add_argument("lines", metavar="LINES", type=pathlib.Path)
    parser.add_argument("export", metavar="EXPORT")
    parser.add_argument("xla", metavar="EXPORT_WITH_XLA", nargs="?")
    args = parser.parse_args()
    lines = args.lines.read_text("utf-8").rstrip("\n").split("\n")
    paths = {"no XLA": args.export}
    if args.xla:
        paths["XLA"] = args.xla
    time_first_requests(lines[0], paths)
    compare_signatures(lines, paths)


if __name__ == "__main__":
    main()
