"""Does to one of two workers what can happen; prints what both then say.

    python tests/end_to_end/worker_faults.py [--only=REGEX] [--slow_seconds=S]

Each case runs bin/train as the chief, as worker 1, or as both, on the loopback
interface: one never comes or comes a minute late, its training process or its
watching one is killed, it is asked to stop, it has other text or another
version, or its task does not train. In one case, SLURM's variables name them
instead of TF_CONFIG, on ports 8888 and 8889. Where they train, they must go on
from the last checkpoint of the case before.

In two cases nothing is wrong, but the chief makes worker 1 wait S seconds (90)
for an evaluation on dev, or writes its final report for S seconds after worker
1 has ended. These train from the start, beside the other cases, because they
mostly wait.

Prints a row for each process: the case, who it is, its exit status, how many
seconds it ended after the fault (after its start, if it never trains; after the
first checkpoint, if nothing is wrong), and the last line that it said. "WRONG"
stands before a row that is not as wanted, and makes the exit status 1; all that
the process said comes after it. No process may show a traceback, a second error
or an error of TensorFlow's C++ code. REGEX selects cases by name, with
re.search. It takes about five minutes on two cores.
"""

import argparse
import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path[:0] = [str(_ROOT / "bin"), str(_ROOT / "tests" / "helpers")]

import binaries
import checkout  # noqa: F401, this checkout's packages
import tiny_run
from paths import HELPERS

from t2t_lite.storage import checkpoint_files

_STEPS_BETWEEN_SAVES = 20
_LONGEST_S = 60  # From a fault to the end of both.
_SLOW_S = 90  # By default.
_LATE_S = 60
_TIMEOUT_S = 15
_RESUME = "run the same commands again to resume from the last checkpoint"
# An error that TensorFlow's C++ code logs.
_CPP_LINE = re.compile(
    r"^([EWF]\d{4} |\d{4}-\d\d-\d\d .*: [EWF] |\*\*\* )", re.MULTILINE
)


class Wanted(NamedTuple):
    """How a process is to end."""

    status: int
    last_line: str  # a regular expression for its whole
    seconds: float = _LONGEST_S  # at most
    least_seconds: float = 0.0
    log: str = ""  # a regular expression for one of its lines


class Row(NamedTuple):
    """How a process ended."""

    case: str
    who: str
    status: int | None  # None: it had not ended after the wanted seconds
    seconds: float  # after the fault, or its start
    said: str  # on stderr, once it has ended

    @property
    def last_line(self) -> str:
        lines = [line for line in self.said.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def is_as(self, wanted: Wanted) -> bool:
        """Returns whether the process ended so, and said no more errors."""
        num_errors = len(re.findall("^error:", self.said, re.MULTILINE))
        return (
            self.status == wanted.status
            and wanted.least_seconds <= self.seconds <= wanted.seconds
            and re.fullmatch(wanted.last_line, self.last_line) is not None
            and re.search(wanted.log, self.said, re.MULTILINE) is not None
            and num_errors == int(wanted.last_line.startswith("error:"))
            and "Traceback" not in self.said
            and _CPP_LINE.search(self.said) is None
        )


class Worker:
    """A running bin/train.

    Args:
        folder: of the text and of all model directories.
        index: int, 0 for the chief.
        addresses: those of the cluster.
        flags: more of them.
        kind: str, the type of its task.
        program: the name of a binary, or the path of another program.
        run: str, workers of the same run go on from the last checkpoint.
        variables: of the environment, that say which processes train; None
            for TF_CONFIG.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        index: int,
        addresses: list[str],
        *,
        flags: tuple[str, ...] = (),
        kind: str = "worker",
        program: str = "train",
        run: str = "model",
        variables: dict[str, str] | None = None,
    ):
        self.who = "chief" if index == 0 else f"worker {index}"
        if kind != "worker":
            self.who = f"{kind} {index}"
        self._model_dir = folder / f"{run}-{index}"
        configuration = {
            "cluster": {"worker": addresses},
            "task": {"type": kind, "index": index},
        }
        self.process = binaries.start(
            program,
            f"--train_source={folder / 'train.source'}",
            f"--train_target={folder / 'train.target'}",
            *tiny_run.FLAGS,
            f"--model_dir={self._model_dir}",
            "--steps=1000000",
            f"--save_every_steps={_STEPS_BETWEEN_SAVES}",
            *flags,
            **variables or {"TF_CONFIG": json.dumps(configuration)},
        )
        self.said, self._ended_at = "", None  # Known once it has ended.
        self._waiting = threading.Thread(target=self._wait, daemon=True)
        self._waiting.start()

    def _wait(self) -> None:
        # Until the last of its processes has closed its output.
        _, self.said = self.process.communicate()
        self._ended_at = time.monotonic()

    @functools.cached_property
    def training_process(self) -> int:
        """The id of the process that trains; `process` watches over it."""
        pid = self.process.pid
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        (child,) = map(int, children.read_text().split())
        return child

    def kill_training_process(self) -> None:
        """Sends SIGKILL to the process that trains."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.training_process, signal.SIGKILL)

    def last_step(self) -> int:
        """Returns the step of its last checkpoint, 0 if there is none."""
        paths = list(checkpoint_files.paths(self._model_dir / "checkpoints"))
        return int(paths[-1].name.removeprefix("step-")) if paths else 0

    def row(self, case: str, since: float, longest: float) -> Row:
        """Waits for its end, but not for too long; returns how it ended.

        Args:
            case: str.
            since: when the fault was, or the start, by time.monotonic.
            longest: seconds since then.
        """
        self._waiting.join(max(0.0, since + longest - time.monotonic()))
        if self._ended_at is None:
            return Row(
                case=case,
                who=self.who,
                status=None,
                seconds=longest,
                said=self.said,
            )
        status = self.process.returncode
        return Row(
            case=case,
            who=self.who,
            status=status,
            seconds=self._ended_at - since,
            said=self.said,
        )

    def end(self) -> None:
        """Kills it, if it still runs."""
        self.process.kill()
        self._waiting.join(_LONGEST_S)
        if self._waiting.is_alive():  # A child holds the output open.
            self.kill_training_process()
            self._waiting.join(_LONGEST_S)


class Case(NamedTuple):
    """A fault of one of two workers, and what is to come of it."""

    name: str
    start: Callable[[pathlib.Path, list[str]], list[Worker]]
    wanted: list[Wanted]  # of each process that `start` returns
    # What is done to the processes once they train; None: they do not.
    fault: Callable[[Worker, Worker], None] | None = None
    is_beside: bool = False  # Whether it can run beside other cases.


def _both(folder: pathlib.Path, addresses: list[str]) -> list[Worker]:
    return [Worker(folder, index, addresses) for index in range(2)]


def _alone(
    index: int, kind: str = "worker"
) -> Callable[[pathlib.Path, list[str]], list[Worker]]:
    """Returns the `start` of a Case with one process, which waits in vain."""
    flags = (f"--worker_timeout_minutes={_TIMEOUT_S / 60}",)

    def start(folder: pathlib.Path, addresses: list[str]) -> list[Worker]:
        return [Worker(folder, index, addresses, flags=flags, kind=kind)]

    return start


def _late(folder: pathlib.Path, addresses: list[str]) -> list[Worker]:
    chief = Worker(folder, 0, addresses)
    time.sleep(_LATE_S)
    return [chief, Worker(folder, 1, addresses)]


def _other_text(folder: pathlib.Path, addresses: list[str]) -> list[Worker]:
    flags = (f"--train_source={folder / 'other.source'}",)
    return [
        Worker(folder, 0, addresses),
        Worker(folder, 1, addresses, flags=flags),
    ]


def _other_version(folder: pathlib.Path, addresses: list[str]) -> list[Worker]:
    program = str(HELPERS / "other_version.py")
    return [
        Worker(folder, 0, addresses),
        Worker(folder, 1, addresses, program=program),
    ]


def _by_slurm(folder: pathlib.Path, _: list[str]) -> list[Worker]:
    """Starts both as two tasks of a node, by SLURM's variables alone."""
    step = {
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_STEP_TASKS_PER_NODE": "2",
        "SLURMD_NODENAME": "localhost",
    }
    return [
        Worker(folder, n, [], variables=step | {"SLURM_PROCID": str(n)})
        for n in range(2)
    ]


def _with_slow_chief(
    name: str, seconds: float, *flags: str
) -> Callable[[pathlib.Path, list[str]], list[Worker]]:
    """Returns the `start` of a Case whose chief does one thing slowly.

    Args:
        name: what it does, as slow_worker.py calls it.
        seconds: how long that takes.
        *flags: of both, in which FOLDER stands for that of the text.
    """

    def start(folder: pathlib.Path, addresses: list[str]) -> list[Worker]:
        of_both = tuple(flag.replace("FOLDER", str(folder)) for flag in flags)
        chief = Worker(
            folder,
            0,
            addresses,
            flags=(*of_both, name, str(seconds)),
            program=str(HELPERS / "slow_worker.py"),
            run=name,
        )
        return [chief, Worker(folder, 1, addresses, flags=of_both, run=name)]

    return start


def _nothing(chief: Worker, worker: Worker) -> None:
    """Does nothing: the chief will be slow by itself."""


def _kill_both_processes(worker: Worker) -> None:
    worker.process.kill()
    worker.kill_training_process()


_DIED = r"error: {} has died.*: " + _RESUME
_STOPPED = r".*Stopped; run the same command again to resume\."
CASES = [
    Case(
        "worker 1 never comes",
        _alone(0),
        [Wanted(1, r"error: worker 1 .* did not connect within .*")],
    ),
    Case(
        "the chief never comes",
        _alone(1),
        [Wanted(1, r"error: the chief .* did not connect within .*")],
    ),
    Case(
        "the process of worker 1 that trains is killed",
        _both,
        [Wanted(1, _DIED.format("worker 1 .*"))] * 2,
        fault=lambda chief, worker: worker.kill_training_process(),
    ),
    Case(
        "the process of worker 1 that watches is killed",
        _both,
        [Wanted(1, _DIED.format("worker 1 .*")), Wanted(-9, ".*")],
        fault=lambda chief, worker: worker.process.kill(),
    ),
    Case(
        "the chief is asked to stop (SIGTERM)",
        _both,
        [Wanted(143, _STOPPED)] * 2,
        fault=lambda chief, worker: chief.process.terminate(),
    ),
    Case(
        "SLURM's variables name both, and the chief is asked to stop (SIGTERM)",
        _by_slurm,
        [
            Wanted(143, _STOPPED),
            Wanted(143, _STOPPED, log=r"for the chief \(localhost:8888\)\."),
        ],
        fault=lambda chief, worker: chief.process.terminate(),
    ),
    Case(
        "both processes of the chief are killed",
        _both,
        [Wanted(-9, ".*"), Wanted(1, _DIED.format("the chief .*"))],
        fault=lambda chief, worker: _kill_both_processes(chief),
    ),
    Case(
        "worker 1 comes a minute late, and is asked to stop (SIGTERM)",
        _late,
        [Wanted(143, _STOPPED)] * 2,
        fault=lambda chief, worker: worker.process.terminate(),
    ),
    Case(
        "worker 1 has other text",
        _other_text,
        [Wanted(1, r"error: .* training text, .* the same text.*")] * 2,
    ),
    Case(
        "worker 1 has another version",
        _other_version,
        [Wanted(1, r"error: .* t2t_lite, .*; worker 1 .* has 9\.9")] * 2,
    ),
    Case(
        "an evaluator",
        _alone(0, kind="evaluator"),
        [Wanted(1, r"error: TF_CONFIG .* type must be worker or chief\)")],
    ),
    Case(
        "a parameter server",
        _alone(0, kind="ps"),
        [Wanted(1, r"error: TF_CONFIG .* type must be worker or chief\)")],
    ),
]


def slow_cases(seconds: float) -> list[Case]:
    """Returns the cases in which the chief does one thing slowly.

    Args:
        seconds: how long that takes.
    """
    slow = Wanted(
        0,
        r".*All \d+ updates are done\.",
        seconds=_LONGEST_S + seconds,
        least_seconds=seconds,
    )
    return [
        Case(
            "the chief's evaluation on dev is slow",
            _with_slow_chief(
                "evaluation",
                seconds,
                "--steps=50",
                "--evaluate_every_steps=30",
                "--dev_source=FOLDER/dev.source",
                "--dev_target=FOLDER/dev.target",
            ),
            [slow._replace(log="Step 30: dev perplexity"), slow],
            fault=_nothing,
            is_beside=True,
        ),
        Case(
            "the chief's final report is slow",
            _with_slow_chief("report", seconds, "--steps=200"),
            [slow, slow._replace(seconds=_LONGEST_S, least_seconds=0.0)],
            fault=_nothing,
            is_beside=True,
        ),
    ]


def rows(case: Case, folder: pathlib.Path) -> Iterator[tuple[Row, Wanted]]:
    """Yields how each process of a case ended, and how it was to end.

    Args:
        case: Case.
        folder: that of `Worker`; a run in it is resumed.
    """
    addresses = [f"127.0.0.1:{port}" for port in binaries.free_ports(2)]
    since = time.monotonic()
    workers = case.start(folder, addresses)
    all_wanted = case.wanted
    try:
        if case.fault is not None:
            first = _wait_until_saved(workers)
            if first:
                log = rf"Resuming from .*step-{first}\."
                of_chief, *others = case.wanted
                all_wanted = [of_chief._replace(log=log), *others]
            since = time.monotonic()
            case.fault(*workers)
        for worker, wanted in zip(workers, all_wanted, strict=True):
            yield worker.row(case.name, since, wanted.seconds), wanted
    finally:
        for worker in workers:
            worker.end()


def _wait_until_saved(workers: list[Worker]) -> int:
    """Waits until the chief has saved; returns the step before, 0 if none.

    The ids of the processes that train are then known, too.
    """
    chief = workers[0]
    first = chief.last_step()
    deadline = time.monotonic() + binaries.TIMEOUT_S
    while chief.last_step() <= first:
        ended = [w for w in workers if w.process.poll() is not None]
        if ended or time.monotonic() > deadline:
            for worker in workers:
                worker.end()
            raise RuntimeError("\n".join(w.said for w in workers))
        time.sleep(0.1)
    assert all(worker.training_process for worker in workers)
    return first


def _print_rows(found: Iterable[tuple[Row, Wanted]]) -> bool:
    """Prints the rows of a case; returns whether all are as wanted."""
    is_right = True
    for row, wanted in found:
        is_as_wanted = row.is_as(wanted)
        status = "running" if row.status is None else row.status
        print(
            f"{'' if is_as_wanted else 'WRONG '}{row.case} | {row.who} | "
            f"{status} | {row.seconds:.1f} s | {row.last_line}",
            flush=True,
        )
        if not is_as_wanted:
            print(row.said, flush=True)
        is_right &= is_as_wanted
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--slow_seconds", type=float, default=_SLOW_S)
    arguments = parser.parse_args()
    cases = [
        case
        for case in CASES + slow_cases(arguments.slow_seconds)
        if re.search(arguments.only, case.name)
    ]
    if not cases:
        parser.error(f"no case has {arguments.only!r} in its name")
    with (
        tempfile.TemporaryDirectory() as name,
        concurrent.futures.ThreadPoolExecutor() as pool,
    ):
        folder = pathlib.Path(name)
        tiny_run.write_corpus(folder, num_pairs=200)
        lines = (folder / "train.source").read_text("utf-8").splitlines(True)
        (folder / "other.source").write_text("".join(reversed(lines)), "utf-8")
        beside = [
            pool.submit(lambda case: list(rows(case, folder)), case)
            for case in cases
            if case.is_beside
        ]
        are_right = [
            _print_rows(rows(case, folder))
            for case in cases
            if not case.is_beside
        ]
        are_right += [_print_rows(found.result()) for found in beside]
    return int(not all(are_right))


if __name__ == "__main__":
    sys.exit(main())
