"""Translates a long file, also with kills; checks its bytes and its memory.

    python tests/end_to_end/long_file.py [--lines=200000] [--kills=3] [--seed=1]

Writes a tiny model and a file of so many short lines, and translates it with
bin/translate: once undisturbed, and once with SIGKILLs at random moments, each
after OUTPUT.partial has grown since the last one, resumed until the end.

Prints a row for each process: its seconds, the line at which it began, and the
MiB that it held (VmRSS) at a tenth, at the middle and at the end of the time
after its first lines were written, and at most. The last line says whether both
outputs have the same bytes, and whether memory is flat: in the undisturbed
process, the median of the last third is at most 10% or 64 MiB (whichever is
more) above that of the second tenth, and no other process holds more than its
largest figure by as much. If not, the exit status is 1. It takes about three
minutes on two cores.
"""

import argparse
import filecmp
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import binaries
import checkout  # noqa: F401, this checkout's packages
import tiny_translator
from tiny_translator import WORDS

_SECONDS_BETWEEN_SAMPLES = 0.05
_LONGEST_SENTENCE = 5  # words
_FEWEST_LINES = 10_000  # Fewer are translated too soon to see the memory.
_LAST_KILL = 0.8  # Later, there may be nothing left to kill.
_MORE_SHARE, _MORE_MIB = 0.1, 64
_SEARCH = ("--beam_width=1", "--max_extra_length=1")


class Sample(NamedTuple):
    """What a process holds at a moment, and has written."""

    mib: float
    num_bytes: int  # of the lines in OUTPUT.partial; 0 if it does not exist


class Process(NamedTuple):
    """What one process of bin/translate did."""

    name: str
    seconds: float
    first_line: int
    mib: list[float]  # after its first lines were written, in order

    def at(self, share: float) -> float:
        """Returns the MiB at a share of the time, from 0 to 1."""
        return self.mib[round(share * (len(self.mib) - 1))]


class LongFile:
    """A tiny model, a file of many lines, and programs that translate it.

    Args:
        folder: where all files go.
        num_lines: int, of the file.
        batch_lines: int, how many lines are translated together, and written
            for good.
    """

    def __init__(
        self, folder: pathlib.Path, num_lines: int, batch_lines: int = 1000
    ):
        self._folder = folder
        self._source = folder / "source"
        vocabulary = tiny_translator.learn_vocabulary()
        self._model = tiny_translator.write_model(
            folder / "model", vocabulary, tiny_translator.ONE_LAYER
        ).path
        with open(self._source, "w") as file:
            for n in range(num_lines):
                num_words = 1 + n % _LONGEST_SENTENCE
                line = tiny_translator.sentence(num_words, n % len(WORDS))
                file.write(f"{line}\n")
        self._batch_lines = batch_lines
        self._num_windows = -(-num_lines // batch_lines)
        self.whole, self.killed = folder / "whole", folder / "killed"

    def undisturbed(self) -> Process:
        """Translates the file to `whole`."""
        return self._run("undisturbed", self.whole)

    def with_kills(
        self, count: int, seed: int, undisturbed: Process
    ) -> Iterator[Process]:
        """Yields the processes that translate the file to `killed`.

        Args:
            count: int, how many are killed.
            seed: int, of the moments.
            undisturbed: Process that wrote `whole`.
        """
        generator = random.Random(seed)
        total = self.whole.stat().st_size
        seconds = len(undisturbed.mib) * _SECONDS_BETWEEN_SAMPLES
        targets = [generator.random() * _LAST_KILL for _ in range(count)]
        last = 0  # Bytes at the last kill.
        for n, target in enumerate(sorted(targets), start=1):
            last = max(last, int(target * total))
            wait = generator.uniform(0.0, seconds / self._num_windows)
            yield self._run(
                f"killed, {n}", self.killed, kill_after=last, wait=wait
            )
            last = _written(self.killed)
        yield self._run("to the end", self.killed)

    def _run(
        self,
        name: str,
        output: pathlib.Path,
        kill_after: int | None = None,
        wait: float = 0.0,
    ) -> Process:
        """Runs bin/translate to its end, or kills it.

        Args:
            name: that of the Process.
            output: where the translation goes.
            kill_after: bytes of lines after which it is killed; None: never.
            wait: seconds after that.
        """
        start = time.monotonic()
        samples = []
        with open(self._folder / "log", "w+") as log:
            process = self._start(output, log)
            try:
                for sample in _samples(process, output):
                    samples.append(sample)
                    if kill_after is not None and sample.num_bytes > kill_after:
                        time.sleep(wait)
                        break
                else:
                    process.wait()
            finally:
                process.kill()
            status = process.wait()
            log.seek(0)
            messages = log.read()
        if status != (0 if kill_after is None else -signal.SIGKILL):
            raise RuntimeError(
                f"{name}: the exit status is {status}\n{messages[-3000:]}"
            )
        if not any(each.num_bytes for each in samples):
            raise RuntimeError(f"{name}: too short to see its memory")
        return Process(
            name,
            seconds=time.monotonic() - start,
            first_line=_first_line(messages),
            mib=_since_first_lines(samples),
        )

    def _start(self, output: pathlib.Path, log: IO) -> subprocess.Popen:
        flags = (
            f"--model_dir={self._model}",
            f"--input={self._source}",
            f"--output={output}",
            f"--batch_lines={self._batch_lines}",
            *_SEARCH,
        )
        return subprocess.Popen(
            binaries.command("translate", *flags),
            env=binaries.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )


def _samples(
    process: subprocess.Popen, output: pathlib.Path
) -> Iterator[Sample]:
    """Yields Samples of a process until it ends."""
    while process.poll() is None:
        yield Sample(_resident_mib(process.pid), _written(output))
        time.sleep(_SECONDS_BETWEEN_SAMPLES)


def _resident_mib(pid: int) -> float:
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)
    return int(found[1]) / 1024 if found else 0.0  # A process that has ended.


def _written(output: pathlib.Path) -> int:
    """Returns how many bytes of lines OUTPUT.partial has."""
    try:
        with open(f"{output}.partial", "rb") as file:
            header = file.readline()
            return file.seek(0, 2) - len(header)
    except FileNotFoundError:
        return 0


def _first_line(messages: str) -> int:
    found = re.search(r"Resuming at line (\d+)", messages)
    return int(found[1]) if found else 1


def _since_first_lines(samples: Sequence[Sample]) -> list[float]:
    """Returns the MiB of each Sample since the first lines were written.

    Before, a process loads the model and traces its graphs. One that resumes
    finds lines, and cuts off what is after the last whole window of them.
    """
    sizes = [each.num_bytes for each in samples]
    while sizes and not sizes[-1]:  # All lines are in their place.
        sizes.pop()
    fewest = min(sizes)
    first = max(n for n, size in enumerate(sizes) if size == fewest) + 1
    first = min(first, len(sizes) - 1)
    return [each.mib for each in samples[first:] if each.mib]


def is_flat(undisturbed: Sequence[float], others: Sequence[float]) -> bool:
    """Returns whether memory is flat, by the rule of this module.

    Args:
        undisturbed: the MiB of the process that was not killed, in order.
        others: those of all others.
    """
    count = len(undisturbed)
    second_tenth = undisturbed[count // 10 : max(count // 5, count // 10 + 1)]
    last_third = undisturbed[-max(1, count // 3) :]
    return statistics.median(last_third) <= _limit(
        statistics.median(second_tenth)
    ) and max(others, default=0.0) <= _limit(max(undisturbed))


def _limit(mib: float) -> float:
    return mib + max(_MORE_SHARE * mib, _MORE_MIB)


def as_row(process: Process) -> str:
    """Returns the row of a Process in the table."""
    mib = [process.at(0.1), process.at(0.5), process.at(1.0), max(process.mib)]
    return f"{process.name:12}{process.seconds:9.1f}{process.first_line:11}" + (
        "".join(f"{each:9.0f}" for each in mib)
    )


HEADINGS = (
    f"{'process':12}{'seconds':>9}{'from line':>11}"
    f"{'a tenth':>9}{'middle':>9}{'end':>9}{'largest':>9}"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.lines < _FEWEST_LINES:
        parser.error(f"--lines must be at least {_FEWEST_LINES}")
    if arguments.kills < 0:
        parser.error("--kills must be at least 0")
    print(HEADINGS, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        long_file = LongFile(pathlib.Path(folder), arguments.lines)
        undisturbed = long_file.undisturbed()
        print(as_row(undisturbed), flush=True)
        others = []
        for process in long_file.with_kills(
            arguments.kills, arguments.seed, undisturbed
        ):
            print(as_row(process), flush=True)
            others += process.mib
        is_same = filecmp.cmp(long_file.whole, long_file.killed, shallow=False)
    flat = is_flat(undisturbed.mib, others)
    answers = ["yes" if each else "no" for each in (is_same, flat)]
    print("same bytes: {}, memory flat: {}".format(*answers))
    return int(not (is_same and flat))


if __name__ == "__main__":
    sys.exit(main())
