"""Times a server's answers to many clients, which send one line at a time.

    bin/serve --model_dir=DIR --name=NAME
    python tests/benchmarks/clients.py NAME LINES [--port=8501] [--clients=16]
        [--requests=2000] [--rounds=3]

Prints for each round how long all requests took, the median and the 99th
percentile of the time of an answer, and how many lines were answered in more
than one way (there should be none).
"""

import argparse
import concurrent.futures
import functools
import json
import pathlib
import statistics
import urllib.request

import measuring


def ask(url: str, lines: list[str], number: int) -> tuple[str, str]:
    """Returns one of the lines, and the server's translation of it."""
    line = lines[number % len(lines)]
    body = json.dumps({"inputs": [line]}).encode()
    with urllib.request.urlopen(url, body, timeout=60) as response:
        (text,) = json.load(response)["outputs"]["outputs"]
    return line, text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("lines", type=measuring.existing_path)
    for name, default in (
        ("port", 8501),
        ("clients", 16),
        ("requests", 2000),
        ("rounds", 3),
    ):
        parser.add_argument(
            f"--{name}", type=measuring.positive_int, default=default
        )
    args = parser.parse_args()
    url = f"http://localhost:{args.port}/v1/models/{args.name}:predict"
    lines = pathlib.Path(args.lines).read_text("utf-8").splitlines()
    for _ in range(args.rounds):
        with concurrent.futures.ThreadPoolExecutor(args.clients) as clients:
            calls = (
                functools.partial(ask, url, lines, n)
                for n in range(args.requests)
            )
            seconds, found = measuring.timed(
                lambda clients=clients, calls=calls: [
                    *clients.map(measuring.timed, calls)
                ]
            )
        times = [each for each, _ in found]
        answers = {pair for _, pair in found}
        several = len(answers) - len({line for line, _ in answers})
        print(
            f"{args.requests} requests of {args.clients} clients: "
            f"{seconds:.1f} s; an answer {statistics.median(times):.3f} s, "
            f"99% within {statistics.quantiles(times, n=100)[98]:.3f} s; "
            f"{several} lines with several answers",
            flush=True,
        )


if __name__ == "__main__":
    main()
