"""Measurements in processes of their own that take turns, for benchmarks.

A machine that is shared is now faster, now slower: what is compared has to be
measured in the same minutes, round by round, and only ratios carry over.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import time


def at_least_1(text):
    """Returns the int of an argument, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def existing(text):
    """Returns the path of an argument, which must exist, for argparse."""
    path = pathlib.Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{path} does not exist")
    return path


@contextlib.contextmanager
def refusing(parser):
    """Makes an InputError the parser's one line about wrong arguments."""
    from t2t_lite.errors import InputError

    try:
        yield
    except InputError as error:
        parser.error(str(error))


def median_seconds(function, warm_up=2, calls=5):
    """Returns the median seconds of a call, after some that do not count."""
    seconds = []
    for n in range(warm_up + calls):
        start = time.perf_counter()
        function()
        if n >= warm_up:
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def memory_bytes(kind):
    """Returns VmRSS, what this process holds, or VmHWM, the most it held."""
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{kind}:\s+(\d+) kB", status)[1])


def forget_peak():
    """Makes VmHWM what this process holds now."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def run(command):
    """Returns the finished process of a command.

    Raises:
        RuntimeError: it fails; the message has its errors.
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


def measure(command):
    """Returns what a command says in JSON in the last line of its output.

    Raises:
        RuntimeError: it fails; the message has its errors.
    """
    return json.loads(run(command).stdout.splitlines()[-1])


def rounds(commands, count):
    """Returns for each name what its command measured, once a round.

    Args:
        commands: dict of commands by name.
        count: int, how many rounds.
    """
    results = {name: [] for name in commands}
    for n in range(count):
        for name, command in commands.items():
            results[name].append(measure(command))
            print(f"round {n + 1}  {name:24}  {results[name][-1]}", flush=True)
    return results


def machine():
    """Returns in words what this machine is."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line for line in file if line.startswith("model name")]
    name = models[0].split(":")[1].strip() if models else platform.machine()
    return f"{os.cpu_count()} cores, {name}"
