"""Measurements in processes of their own that take turns, for benchmarks.

A shared machine is sometimes faster and sometimes slower: what is compared has
to be measured in the same minutes, round by round, and only ratios carry over.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


def positive_int(text: str) -> int:
    """Returns the int of an argument, which must be positive, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def existing_path(text: str) -> pathlib.Path:
    """Returns the path of an argument, which must exist, for argparse."""
    path = pathlib.Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{path} does not exist")
    return path


def work_parser(
    description: str, work: Sequence[str]
) -> argparse.ArgumentParser:
    """Returns a parser for what a benchmark should measure, any of `work`."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    # If nothing is given, argparse looks for [] among the choices.
    parser.add_argument("work", nargs="*", choices=[[], *work])
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    return parser


@contextlib.contextmanager
def usage_errors(parser: argparse.ArgumentParser) -> Iterator[None]:
    """Turns an InputError into the parser's line about wrong arguments."""
    from t2t_lite.errors import InputError

    try:
        yield
    except InputError as error:
        parser.error(str(error))


def median_seconds(
    function: Callable[[], Any], warm_up: int = 2, calls: int = 5
) -> float:
    """Returns the median seconds of a call, after calls to warm up."""
    for _ in range(warm_up):
        function()
    return statistics.median(timed(function)[0] for _ in range(calls))


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Returns the seconds of one call, and what it returns."""
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def memory_bytes(field: str) -> int:
    """Returns a figure of this process's memory, by its name in Linux.

    Args:
        field: VmRSS, what the process holds; VmHWM, the most it has held;
            RssAnon, what it has allocated; RssFile, the files it has mapped.
    """
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{field}:\s+(\d+) kB", status)[1])


def reset_peak_memory() -> None:
    """Sets VmHWM to what this process holds now."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def run(command: Sequence[Any]) -> subprocess.CompletedProcess:
    """Returns the finished process of a command.

    Raises:
        RuntimeError: the command fails; the message has its stderr.
    """
    process = subprocess.run(
        [*map(str, command)],
        capture_output=True,
        text=True,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    if process.returncode:
        raise RuntimeError(f"{command} failed:\n{process.stderr[-2000:]}")
    return process


def measure(command: Sequence[Any]) -> Any:
    """Returns the JSON in the last line of a command's output.

    Raises:
        RuntimeError: the command fails; the message has its stderr.
    """
    return json.loads(run(command).stdout.splitlines()[-1])


def measure_rounds(
    commands: Mapping[str, Sequence[Any]], count: int
) -> dict[str, list[Any]]:
    """Returns what the command of each name measured in each round.

    Args:
        commands: by name.
        count: how many rounds.
    """
    results = {name: [] for name in commands}
    for n in range(count):
        for name, command in commands.items():
            results[name].append(measure(command))
            print(f"round {n + 1}  {name:24}  {results[name][-1]}", flush=True)
    return results
