"""Two workers train as one; if one dies, both can resume the run."""

import contextlib
import json
import re
import time
from typing import NamedTuple

import binaries
import numpy as np
import pytest
import tiny_run
from paths import HELPERS

from t2t_lite.storage import checkpoint_files, checkpoints

pytestmark = pytest.mark.slow


class _Ended(NamedTuple):
    """How the chief ended after the other worker was killed."""

    status: int
    errors: str
    step: int  # of its last checkpoint


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder for both workers' model directories."""
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def corpus(folder):
    """The flags that name text to train on."""
    flags = tiny_run.write_corpus(folder, num_pairs=200)
    return [flag for flag in flags if flag.startswith("--train")]


@contextlib.contextmanager
def _started(corpus, folder, steps, program):
    """Yields two workers, each with its own model directory; ends them."""
    addresses = [f"127.0.0.1:{port}" for port in binaries.free_ports(2)]
    workers = []
    try:
        for index in range(2):
            configuration = {
                "cluster": {"worker": addresses},
                "task": {"type": "worker", "index": index},
            }
            worker = binaries.start(
                *program,
                *corpus,
                *tiny_run.FLAGS,
                f"--model_dir={folder / f'worker{index}'}",
                f"--steps={steps}",
                "--save_every_steps=3",
                "--on_divergence=skip",
                TF_CONFIG=json.dumps(configuration),
            )
            workers.append(worker)
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def _last_step(folder):
    """Returns the step of the chief's last checkpoint."""
    *_, path = checkpoint_files.paths(folder / "worker0" / "checkpoints")
    return int(path.name.removeprefix("step-"))


@pytest.fixture(scope="module")
def ended(corpus, folder):
    """How the chief ended after the other worker was killed: _Ended."""
    program = ["train"]
    with _started(corpus, folder, 1_000_000, program=program) as processes:
        chief, worker = processes
        deadline = time.monotonic() + binaries.TIMEOUT_S
        # Any will do: the first is deleted a few milliseconds later.
        while not checkpoint_files.paths(folder / "worker0" / "checkpoints"):
            assert chief.poll() is None, chief.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        worker.kill()
        _, errors = chief.communicate(timeout=60)
    return _Ended(chief.returncode, errors, _last_step(folder))


@pytest.fixture(scope="module")
def resumed(corpus, folder, ended):
    """What both workers wrote to stderr when they resumed for two updates.

    The batch of the second update makes the loss NaN.
    """
    logs, step = [], ended.step + 2
    program = HELPERS / "diverging_worker.py", step
    with _started(corpus, folder, step, program=program) as processes:
        for process in processes:
            logs.append(process.communicate(timeout=binaries.TIMEOUT_S)[1])
            assert process.returncode == 0, logs
    return logs


def test_where_a_worker_dies_the_others_end(ended):
    assert ended.status == 1
    assert "Traceback" not in ended.errors
    assert re.search(
        r"\nerror: worker 1 \S+ has died: run the same", ended.errors
    )


def test_all_may_resume_where_a_worker_died(folder, ended, resumed):
    assert _last_step(folder) == ended.step + 2


def test_all_skip_together(folder, ended, resumed):
    first, last = ended.step + 1, ended.step + 2
    for errors in resumed:
        message = f"step {ended.step}, without batches {first} to {last} (skip"
        assert message in errors
    chief = folder / "worker0"
    _, tensors = next(checkpoints.newest(chief / "checkpoints"))
    weights = [tensors[n] for n in tensors if n.startswith("transformer/")]
    assert weights
    assert all(np.isfinite(weight).all() for weight in weights)
    assert tensors["skipped_batches"] == 2
    (record,) = chief.glob("divergence-*")
    assert record.name == f"divergence-step-{last}-batch-{last}.json"


def test_two_workers_train_as_one_and_leave_the_files_of_the_chief(
    folder, resumed
):
    for errors in resumed:
        assert "all_reduce" not in errors
        assert "retracing" not in errors
    assert not (folder / "worker1").exists()
