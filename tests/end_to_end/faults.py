"""Injects faults into runs (kills, damaged files, full disks); checks results.

    python tests/end_to_end/faults.py [--kills=20] [--seed=1]

Trains a tiny model to its end, then tries each of these faults:

- SIGKILL at random moments of a run that saves after each update, so also while
  a checkpoint is being written; the run is resumed until it ends.
- Each file of the model directory cut in half, with a flipped bit, or missing;
  then bin/translate, and bin/train for two more updates.
- Disks of various sizes, some too small, for a run and for an export. (Skipped
  unless this process may mount one.)

Prints a row for each: "same" if the result equals that without the fault, bit
for bit; "warned" if it differs but there was a warning; "refused" if one line
says why there is no result. Anything else is "WRONG", and makes the exit status
1. It takes about ten minutes on two cores.
"""

import argparse
import contextlib
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import binaries
import checkout  # noqa: F401, this checkout's packages
import in_process
import numpy as np
import tiny_run

from t2t_lite.storage import checkpoints

_STEPS = 12
_KILLED_STEPS = 150  # Each is saved: the run does little else.
_TIMES = ("device_seconds",)  # The only tensors that may differ.
_LINE = "eins zwei drei vier\n"
_KIB = (16, 64, 128, 256, 320, 384, 448, 512, 2048, 8192)


class Row(NamedTuple):
    """A fault and its outcome."""

    fault: str
    program: str
    outcome: str  # "same", "warned", "refused", "skipped" or "WRONG: ..."

    @property
    def is_wrong(self) -> bool:
        return self.outcome.startswith("WRONG")


class Found(NamedTuple):
    """What a program did."""

    status: int
    result: Any  # what is compared
    errors: str


def outcome(found: Found, expected: Any) -> str:
    """Returns the outcome of a fault, as in Row.

    Args:
        found: what the program did with the fault.
        expected: the result without the fault.
    """
    lines = found.errors.split("\n")
    refusals = [line for line in lines if line.startswith("error: ")]
    if "Traceback" in found.errors or len(refusals) > 1:
        return f"WRONG: {lines[-2:]}"
    if found.status:
        return "refused" if refusals else f"WRONG: status {found.status}"
    if _is_same(found.result, expected):
        return "same"
    is_warned = any(" Warning: " in line for line in lines)
    return "warned" if is_warned else "WRONG: another result"


def _is_same(result: Any, expected: Any) -> bool:
    if not isinstance(expected, dict):
        return result == expected
    names = expected.keys() - set(_TIMES)
    return result.keys() == expected.keys() and all(
        np.array_equal(result[name], expected[name]) for name in names
    )


class Trial:
    """A tiny model, trained once, and programs to run on copies of it.

    Args:
        folder: where all files go.
    """

    PROGRAMS = "translate", "train"

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        corpus = tiny_run.write_corpus(folder)
        self._text = [flag for flag in corpus if flag.startswith("--train_")]
        self.model = folder / "model"
        self.train(self.model, _STEPS)
        self._expected: dict[str, Any] = {}

    def flags(
        self, model_dir: pathlib.Path, steps: int, save_every_steps: int = 3
    ) -> list[str]:
        """Returns the flags of a run."""
        return [
            *self._text,
            *tiny_run.FLAGS,
            f"--model_dir={model_dir}",
            f"--steps={steps}",
            f"--save_every_steps={save_every_steps}",
        ]

    def train(self, model_dir: pathlib.Path, steps: int) -> Found:
        """Trains or resumes; the result is the last checkpoint's tensors."""
        status, _, errors = in_process.run(
            "train", *self.flags(model_dir, steps)
        )
        return Found(status, _last(model_dir) if status == 0 else None, errors)

    def resume(self, model_dir: pathlib.Path) -> Found:
        """Trains for two more updates."""
        return self.train(model_dir, _STEPS + 2)

    def translate(self, model_dir: pathlib.Path) -> Found:
        """Translates a line; the result is its translation and score."""
        status, out, errors = in_process.run(
            "translate", f"--model_dir={model_dir}", "--scores", text=_LINE
        )
        return Found(status, out, errors)

    def run(self, program: str, model_dir: pathlib.Path) -> Found:
        """Runs one of PROGRAMS: translates, or trains for two more updates."""
        do = {"translate": self.translate, "train": self.resume}
        return do[program](model_dir)

    def expected(self, program: str) -> Any:
        """Returns the result of one of PROGRAMS without a fault."""
        if program not in self._expected:
            with self.copy() as model_dir:
                self._expected[program] = self.run(program, model_dir).result
        return self._expected[program]

    @contextlib.contextmanager
    def copy(self) -> Iterator[pathlib.Path]:
        """Yields a temporary copy of the model directory."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            yield shutil.copytree(self.model, pathlib.Path(folder, "model"))


def _last(model_dir: pathlib.Path) -> dict[str, Any]:
    """Returns the tensors of the last checkpoint."""
    return next(checkpoints.newest(model_dir / "checkpoints"))[1]


def _cut(path: pathlib.Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip_a_bit(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES = {"cut": _cut, "a bit flipped": _flip_a_bit, "missing": os.unlink}


def damaged_files(
    trial: Trial,
    pattern: str = "*",
    damages: Iterable[str] = tuple(DAMAGES),
    programs: Iterable[str] = Trial.PROGRAMS,
) -> Iterator[Row]:
    """Yields a row for each file, damage and program."""
    for path in sorted(trial.model.rglob(pattern)):
        if not path.is_file() or not path.stat().st_size:
            continue
        place = path.relative_to(trial.model)
        for damage, program in itertools.product(damages, programs):
            with trial.copy() as model_dir:
                DAMAGES[damage](model_dir / place)
                found = trial.run(program, model_dir)
            came = outcome(found, trial.expected(program))
            yield Row(f"{place}: {damage}", program, came)


def kills(trial: Trial, count: int, seed: int) -> Iterator[Row]:
    """Yields the row of a run that is killed up to `count` times."""
    generator = random.Random(seed)
    whole, model_dir = trial.folder / "whole", trial.folder / "killed"

    def run(place: pathlib.Path) -> subprocess.Popen:
        flags = trial.flags(place, _KILLED_STEPS, save_every_steps=1)
        return binaries.start("train", *flags)

    process = run(whole)
    process.communicate(timeout=binaries.TIMEOUT_S)
    num_killed = 0
    while num_killed < count:
        process = run(model_dir)
        for line in process.stderr:
            if "Training a model" in line:
                break
        time.sleep(generator.uniform(0.0, 4.0))
        if process.poll() is not None:  # The run has finished.
            process.communicate()
            break
        process.kill()
        process.communicate()
        num_killed += 1
    process = run(model_dir)
    _, errors = process.communicate(timeout=binaries.TIMEOUT_S)
    found = Found(process.returncode, None, errors)
    if process.returncode == 0:
        found = found._replace(result=_last(model_dir))
    came = outcome(found, _last(whole))
    yield Row(f"SIGKILL, {num_killed} times", "train", came)


@contextlib.contextmanager
def _disk(folder: pathlib.Path, kib: int) -> Iterator[pathlib.Path | None]:
    """Yields a disk of that many KiB, or None if mounting is not allowed."""
    place = pathlib.Path(tempfile.mkdtemp(prefix="disk-", dir=folder))
    options = ["-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(place)]
    mounted = subprocess.run(["mount", *options], capture_output=True)
    if mounted.returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def trained_on_disks(
    trial: Trial, sizes: tuple[int, ...] = _KIB
) -> Iterator[Row]:
    """Yields a row for a run on a disk of each size, in KiB."""
    expected = _last(trial.model)
    for kib in sizes:
        with _disk(trial.folder, kib) as disk:
            came = "skipped"
            if disk is not None:
                found = trial.train(disk / "model", _STEPS)
                came = outcome(found, expected)
            yield Row(f"a disk of {kib} KiB", "train", came)


def exported_to_disks(
    trial: Trial, sizes: tuple[int, ...] = _KIB
) -> Iterator[Row]:
    """Yields a row for an export to a disk of each size, in KiB."""
    for kib in sizes:
        with _disk(trial.folder, kib) as disk:
            came = "skipped"
            if disk is not None:
                came = outcome(_export(trial, disk), [True])
            yield Row(f"a disk of {kib} KiB", "export", came)


def _export(trial: Trial, disk: pathlib.Path) -> Found:
    """Exports; the result says whether each version on the disk is whole."""
    status, _, errors = in_process.run(
        "export",
        f"--model_dir={trial.model}",
        f"--export_dir={disk / 'export'}",
        "--xla=false",
    )
    versions = (disk / "export").glob("[0-9]*")
    whole = [(path / "saved_model.pb").exists() for path in versions]
    if status and whole:
        errors += "\nTraceback: a version after a failure"
    return Found(status, whole, errors)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    has_wrong = False
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(pathlib.Path(folder))
        for rows in (
            damaged_files(trial),
            trained_on_disks(trial),
            exported_to_disks(trial),
            kills(trial, arguments.kills, arguments.seed),
        ):
            for row in rows:
                print(f"{row.fault:50} {row.program:10} {row.outcome}")
                sys.stdout.flush()
                has_wrong |= row.is_wrong
    return int(has_wrong)


if __name__ == "__main__":
    sys.exit(main())
