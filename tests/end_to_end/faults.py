"""Injects faults into runs (kills, damaged files, full disks); checks results.

    python tests/end_to_end/faults.py [--kills=20] [--seed=1]

Trains a tiny model to its end, then tries each of these faults:

- SIGKILL of a run that saves after each update, once it has saved at least one:
  half of the kills at random moments, half while a checkpoint is being written;
  the run is resumed until it ends.
- Each file of the model directory cut in half, missing, or with one bit flipped
  at random in each third; then bin/translate, and bin/train for two more
  updates.
- Disks of various sizes, some too small, for a run and for an export. (Skipped
  unless this process may mount one.)

Prints a row for each: "same" if the result equals that without the fault, bit
for bit; "warned" if it differs but there was a warning; "refused" if one line
says why there is no result. Anything else is "WRONG", and makes the exit status
1: also too few kills, none in a save, or no full disk in one of the stages of a
run. It takes about a quarter of an hour on two cores.
"""

import argparse
import contextlib
import functools
import itertools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import binaries
import checkout  # noqa: F401, this checkout's packages
import in_process
import numpy as np
import tiny_run

from t2t_lite import files
from t2t_lite.storage import checkpoint_files, checkpoints

_STEPS = 12
_STEPS_PER_KILL = 12  # Each is saved: the run does little else.
_MOST_SAVED = 6  # By a run that is killed, before it is.
_NUM_DEV_PAIRS = 2
# The last checkpoints know of the same scores: without dev text, a run goes on
# from any of them to the same state.
_DEV_EVERY = 7
_TIMES = ("device_seconds",)  # The only tensors that may differ.
_LINE = "eins zwei drei vier\n"
_KIB = (16, 64, 128, 256, 320, 384, 448, 512, 2048, 8192)
# What the refusal of a full disk says, by what the run was doing.
_STAGES = {
    "tokenizing": "/model/tokens",
    "saving a checkpoint": "cannot write the checkpoint",
}
_CLIPPED = 100  # characters of a refusal


class Row(NamedTuple):
    """A fault and its outcome."""

    fault: str
    program: str
    outcome: str  # "same", "warned", "refused", "skipped" or "WRONG: ..."
    refusal: str = ""  # the line that says why there is no result

    def as_text(self) -> str:
        """Returns a line of the table."""
        said = f": {self.refusal[:_CLIPPED]}" if self.refusal else ""
        return f"{self.fault:64} {self.program:10} {self.outcome}{said}"

    @property
    def is_wrong(self) -> bool:
        return self.outcome.startswith("WRONG")


class Found(NamedTuple):
    """What a program did."""

    status: int
    result: Any  # what is compared
    errors: str

    @property
    def refusals(self) -> list[str]:
        """The lines that say why there is no result."""
        lines = self.errors.split("\n")
        return [line for line in lines if line.startswith("error: ")]


def outcome(found: Found, expected: Any) -> str:
    """Returns the outcome of a fault, as in Row.

    Args:
        found: what the program did with the fault.
        expected: the result without the fault.
    """
    lines = found.errors.split("\n")
    refusals = found.refusals
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


def _row(fault: str, program: str, found: Found, expected: Any) -> Row:
    """Returns the Row of what a program did with a fault."""
    refusal = "".join(found.refusals[:1]).removeprefix("error: ")
    came = outcome(found, expected)
    return Row(fault, program, came, refusal=refusal)


class Trial:
    """A tiny model, trained once, and programs to run on copies of it.

    It has a best checkpoint and an average, too.

    Args:
        folder: where all files go.
    """

    PROGRAMS = "translate", "train"

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self._text = {"train": [], "dev": [], "test": []}
        for flag in tiny_run.write_corpus(folder):
            split = flag.removeprefix("--").partition("_")[0]
            self._text[split].append(flag)
        for flag in self._text["dev"]:
            _keep_lines(pathlib.Path(flag.partition("=")[2]), _NUM_DEV_PAIRS)
        self.model = folder / "model"
        self.train(self.model, _STEPS, has_dev=True)
        in_process.run("average_checkpoints", f"--model_dir={self.model}")
        self._expected: dict[tuple[str, str], Any] = {}

    def flags(
        self,
        model_dir: pathlib.Path,
        steps: int,
        save_every_steps: int = 3,
        has_dev: bool = False,
    ) -> list[str]:
        """Returns the flags of a run."""
        dev = [*self._text["dev"], f"--evaluate_every_steps={_DEV_EVERY}"]
        return [
            *self._text["train"],
            *(dev if has_dev else ()),
            *tiny_run.FLAGS,
            f"--model_dir={model_dir}",
            f"--steps={steps}",
            f"--save_every_steps={save_every_steps}",
            # The rate of an update must not depend on --steps.
            "--override=cooldown_steps=0",
        ]

    def train(
        self, model_dir: pathlib.Path, steps: int, has_dev: bool = False
    ) -> Found:
        """Trains or resumes; the result is the last checkpoint's tensors."""
        flags = self.flags(model_dir, steps, has_dev=has_dev)
        status, _, errors = in_process.run("train", *flags)
        return Found(status, _last(model_dir) if status == 0 else None, errors)

    def translate(self, model_dir: pathlib.Path, which: str) -> Found:
        """Translates a line; the result is its translation and score."""
        status, out, errors = in_process.run(
            "translate",
            f"--model_dir={model_dir}",
            f"--checkpoint={which}",
            "--scores",
            text=_LINE,
        )
        return Found(status, out, errors)

    def run(
        self, program: str, model_dir: pathlib.Path, which: str = "last"
    ) -> Found:
        """Runs one of PROGRAMS: translates, or trains for two more updates.

        Args:
            program: its name.
            model_dir: path of a copy of the model directory.
            which: "last"; "best" or "averaged" to translate with that one, or
                to train with dev text.
        """
        if program == "translate":
            return self.translate(model_dir, which)
        return self.train(model_dir, _STEPS + 2, has_dev=which != "last")

    def expected(self, program: str, which: str = "last") -> Any:
        """Returns the result of `run` without a fault."""
        key = program, which
        if key not in self._expected:
            with self.copy() as model_dir:
                self._expected[key] = self.run(program, model_dir, which).result
        return self._expected[key]

    @functools.cached_property
    def without_dev(self) -> dict[str, Any]:
        """The last checkpoint's tensors of a run without dev text."""
        return self.train(self.folder / "without_dev", _STEPS).result

    @contextlib.contextmanager
    def copy(self) -> Iterator[pathlib.Path]:
        """Yields a temporary copy of the model directory."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            yield shutil.copytree(self.model, pathlib.Path(folder, "model"))


def _last(model_dir: pathlib.Path) -> dict[str, Any]:
    """Returns the tensors of the last checkpoint."""
    return next(checkpoints.newest(model_dir / "checkpoints"))[1]


def _keep_lines(path: pathlib.Path, count: int) -> None:
    """Removes all but the first lines of a file."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:count]), "utf-8")


def _cut(path: pathlib.Path, _: random.Random) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _remove(path: pathlib.Path, _: random.Random) -> None:
    path.unlink()


def _flip_a_bit(
    third: int, path: pathlib.Path, generator: random.Random
) -> None:
    """Flips a random bit in a third of a file: the one from 0 to 2."""
    content = bytearray(path.read_bytes())
    size = len(content)
    places = range(size * third // 3, size * (third + 1) // 3) or range(size)
    content[generator.choice(places)] ^= 1 << generator.randrange(8)
    path.write_bytes(content)


DAMAGES = {"cut": _cut, "missing": _remove} | {
    f"a bit flipped in third {n + 1}": functools.partial(_flip_a_bit, n)
    for n in range(3)
}


def damaged_files(
    trial: Trial,
    pattern: str = "*",
    damages: Iterable[str] = tuple(DAMAGES),
    programs: Iterable[str] = Trial.PROGRAMS,
    seed: int = 1,
) -> Iterator[Row]:
    """Yields a row for each file, damage and program.

    Those of best/ and averaged/ are tried with that checkpoint.
    """
    for path in sorted(trial.model.rglob(pattern)):
        if not path.is_file() or not path.stat().st_size:
            continue
        place = path.relative_to(trial.model)
        folder = place.parts[0]
        which = folder if folder in ("best", "averaged") else "last"
        for damage, program in itertools.product(damages, programs):
            generator = random.Random(f"{seed} {place.name} {damage}")
            with trial.copy() as model_dir:
                DAMAGES[damage](model_dir / place, generator)
                found = trial.run(program, model_dir, which)
            yield _row(
                f"{place}: {damage}",
                program,
                found=found,
                expected=trial.expected(program, which),
            )


def kills(trial: Trial, count: int, seed: int) -> Iterator[Row]:
    """Yields the row of a run that is killed `count` times.

    Each time, it has saved a checkpoint. Every second kill is aimed at a save.
    """
    generator = random.Random(seed)
    whole, model_dir = trial.folder / "whole", trial.folder / "killed"

    def run(place: pathlib.Path) -> subprocess.Popen:
        steps = _STEPS_PER_KILL * (count + 1)
        flags = trial.flags(place, steps, save_every_steps=1)
        return binaries.start("train", *flags)

    process = run(whole)
    _, errors = process.communicate(timeout=binaries.TIMEOUT_S)
    if process.returncode:
        raise RuntimeError(errors)
    num_killed = num_in_saves = 0
    for number in range(count):
        num_saved = generator.randint(1, _MOST_SAVED)
        delay = None if number % 2 else generator.uniform(0.0, 0.1)
        last_step = _last_step(model_dir)
        process = run(model_dir)
        # A save that a kill has left almost complete may be completed first.
        end = last_step + 1 + num_saved
        _kill(process, model_dir, step=end, delay=delay)
        num_killed += process.returncode == -signal.SIGKILL
        num_in_saves += _is_saving(process, model_dir)
    process = run(model_dir)
    _, errors = process.communicate(timeout=binaries.TIMEOUT_S)
    found = Found(process.returncode, None, errors)
    if process.returncode == 0:
        found = found._replace(result=_last(model_dir))
    row = _row("", "train", found=found, expected=_last(whole))
    yield with_kills(
        row, count, num_killed=num_killed, num_in_saves=num_in_saves
    )


def with_kills(row: Row, count: int, num_killed: int, num_in_saves: int) -> Row:
    """Returns the row of a killed run, wrong if it has tested too little.

    Args:
        row: of the last run.
        count: how many kills were asked for.
        num_killed: how many were made.
        num_in_saves: how many of them fell into a save.
    """
    fault = f"SIGKILL, {num_killed} times, {num_in_saves} of them in a save"
    row = row._replace(fault=fault)
    if row.is_wrong:
        return row
    if num_killed < count:
        return row._replace(outcome=f"WRONG: fewer than {count} kills")
    if count > 1 and not num_in_saves:
        return row._replace(outcome="WRONG: no kill in a save")
    return row


def _kill(
    process: subprocess.Popen,
    model_dir: pathlib.Path,
    step: int,
    delay: float | None,
) -> None:
    """Kills a run that has saved a step, unless it ends by itself.

    Args:
        process: of the run.
        model_dir: path of its model directory.
        step: number of the update.
        delay: seconds that follow; None for until it writes a checkpoint.
    """

    def wait(is_reached: Callable[[], bool], every_seconds: float) -> None:
        end = time.monotonic() + binaries.TIMEOUT_S
        while process.poll() is None and not is_reached():
            if time.monotonic() > end:
                return
            time.sleep(every_seconds)

    wait(lambda: _last_step(model_dir) >= step, 0.01)
    if delay is None:
        wait(lambda: _is_saving(process, model_dir), 0.0005)
    else:
        time.sleep(delay)
    process.kill()
    process.communicate()


def _last_step(model_dir: pathlib.Path) -> int:
    """Returns the number of the last checkpoint, 0 if there is none."""
    paths = checkpoint_files.paths(model_dir / "checkpoints")
    return int(paths[-1].name.removeprefix("step-")) if paths else 0


def _is_saving(process: subprocess.Popen, model_dir: pathlib.Path) -> bool:
    """Returns whether a run is, or was at its end, writing a checkpoint."""
    pattern = f"{files.ASIDE}step-*-{process.pid}-*"
    return any((model_dir / "checkpoints").glob(pattern))


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
    for kib in sizes:
        row = Row(f"a disk of {kib} KiB", "train", "skipped")
        with _disk(trial.folder, kib) as disk:
            if disk is not None:
                found = trial.train(disk / "model", _STEPS)
                row = _row(*row[:2], found=found, expected=trial.without_dev)
        yield row


def with_stages(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields the rows of runs on disks, and one for each stage of a run.

    It is wrong if no disk was full in that stage.
    """
    rows = list(rows)
    yield from rows
    for stage, words in _STAGES.items():
        came = "refused"
        if not any(words in row.refusal for row in rows):
            is_tried = any(row.outcome != "skipped" for row in rows)
            came = "WRONG: no disk was full then" if is_tried else "skipped"
        yield Row(f"a full disk while {stage}", "train", came)


def exported_to_disks(
    trial: Trial, sizes: tuple[int, ...] = _KIB
) -> Iterator[Row]:
    """Yields a row for an export to a disk of each size, in KiB."""
    for kib in sizes:
        row = Row(f"a disk of {kib} KiB", "export", "skipped")
        with _disk(trial.folder, kib) as disk:
            if disk is not None:
                found = _export(trial, disk)
                row = _row(*row[:2], found=found, expected=[True])
        yield row


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
            damaged_files(trial, seed=arguments.seed),
            with_stages(trained_on_disks(trial)),
            exported_to_disks(trial),
            kills(trial, arguments.kills, arguments.seed),
        ):
            for row in rows:
                print(row.as_text())
                sys.stdout.flush()
                has_wrong |= row.is_wrong
    return int(has_wrong)


if __name__ == "__main__":
    sys.exit(main())
