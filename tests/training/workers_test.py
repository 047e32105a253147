"""Workers wait for each other before they train, and end together."""

import contextlib
import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from binaries import free_ports
from paths import ROOT

import t2t_lite.training.workers

_PROGRAM = ROOT / "tests" / "helpers" / "workers_check.py"
_PATH = os.pathsep.join([str(ROOT / "bin"), str(ROOT / "tests" / "helpers")])
_TIMEOUT_S = 60
_LONG = 5  # Minutes.


class Workers:
    """The processes of one cluster, started one by one or all at once."""

    def __init__(self, count):
        self.addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
        self.started = []

    def start(self, index, *behavior, minutes=_LONG, **environment):
        process = subprocess.Popen(
            [
                sys.executable,
                str(_PROGRAM),
                ",".join(self.addresses),
                *map(str, (index, minutes, *behavior)),
            ],
            env=os.environ | {"PYTHONPATH": _PATH} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def start_all(self, *behaviors):
        return [
            self.start(index, *behavior)
            for index, behavior in enumerate(behaviors)
        ]

    def name(self, index):
        role = f"worker {index}" if index else "the chief"
        return f"{role} ({self.addresses[index]})"


@pytest.fixture
def cluster():
    """A function that makes Workers, whose processes are killed at the end."""
    made = []

    def make(count):
        made.append(Workers(count))
        return made[-1]

    yield make
    for workers in made:
        for process in workers.started:
            process.kill()
            process.communicate()


def child_of(process):
    """Returns the process ID of the child that trains, once it runs."""
    word, number = process.stdout.readline().split()
    assert word == "child"
    return int(number)


def end_of(process):
    """Returns the exit status, and the lines of stderr that are errors."""
    _, errors = process.communicate(timeout=_TIMEOUT_S)
    lines = [line for line in errors.split("\n") if line.startswith("error: ")]
    assert "Traceback" not in errors
    return process.returncode, lines


def is_gone(number):
    """Returns whether the process of this ID ends within _TIMEOUT_S."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, 0)
            time.sleep(0.05)
            continue
        return True
    return False


def test_none_trains_before_the_last_has_come(cluster):
    workers = cluster(3)
    early = [workers.start(index, 0) for index in (0, 1)]
    time.sleep(1.0)
    assert all(process.poll() is None for process in early)
    for process in (*early, workers.start(2, 0)):
        assert end_of(process) == (0, [])


def test_the_status_is_that_of_the_own_child(cluster):
    processes = cluster(2).start_all([0], [3])
    assert [end_of(process)[0] for process in processes] == [0, 3]


def test_all_say_who_did_not_come(cluster):
    workers = cluster(3)
    present = [workers.start(n, 0, minutes=0.02) for n in (0, 1)]
    for process in present:
        assert end_of(process) == (
            1,
            [
                f"error: {workers.name(2)} did not connect within 0.02 "
                "minutes: start all workers, or raise --worker_timeout_minutes"
            ],
        )


def test_a_chief_that_does_not_come_is_named(cluster):
    workers = cluster(2)
    status, (line,) = end_of(workers.start(1, 0, minutes=0.001))
    assert status == 1
    assert line.startswith(f"error: {workers.name(0)} did not connect within")


def test_a_worker_that_went_away_may_come_again(cluster):
    workers = cluster(3)
    chief, gone = workers.start(0, 0), workers.start(1, 0)
    time.sleep(1.0)
    gone.kill()
    others = [workers.start(1, 0), workers.start(2, 0)]
    assert [end_of(p)[0] for p in (chief, *others)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("dead", "part"),
    [
        (0, "parent"),
        (2, "child"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (0, "child"),
                (1, "parent"),
                (1, "child"),
                (2, "parent"),
            )
        ),
    ],
)
def test_where_one_dies_all_end_and_say_who(cluster, dead, part):
    workers = cluster(3)
    processes = workers.start_all([], [], [])
    children = list(map(child_of, processes))
    start = time.monotonic()
    victim = processes[dead].pid if part == "parent" else children[dead]
    os.kill(victim, signal.SIGKILL)
    for index, process in enumerate(processes):
        status, lines = end_of(process)
        if index == dead and part == "parent":
            assert status == -signal.SIGKILL
            continue
        assert status == 1
        (line,) = lines
        assert line.startswith(f"error: {workers.name(dead)} has died")
        assert ("SIGKILL" in line) == (part == "child")
        assert line.endswith("to resume from the last checkpoint")
    assert time.monotonic() - start < _TIMEOUT_S
    assert all(map(is_gone, children))


@pytest.mark.parametrize("first", [0, 1])
def test_where_one_is_stopped_all_stop(cluster, first):
    processes = cluster(2).start_all([], [])
    children = list(map(child_of, processes))
    processes[first].terminate()
    assert [end_of(p) for p in processes] == [(143, []), (143, [])]
    assert all(map(is_gone, children))


@pytest.mark.parametrize("failed", [0, 1])
def test_where_one_fails_the_others_end(cluster, failed):
    workers = cluster(2)
    processes = workers.start_all(*([7] if n == failed else [] for n in (0, 1)))
    assert end_of(processes[failed]) == (7, [])
    status, (line,) = end_of(processes[1 - failed])
    assert status == 1
    assert line.startswith(
        f"error: {workers.name(failed)} has stopped, and its"
    )


def test_who_has_ended_well_ends_nobody(cluster):
    processes = cluster(2).start_all([], [0])
    child_of(processes[0])
    assert end_of(processes[1]) == (0, [])
    time.sleep(1.0)
    assert processes[0].poll() is None


def test_another_version_is_refused_by_all(cluster):
    workers = cluster(2)
    chief, other = workers.start(0), workers.start(1, VERSION="0.0.7")
    for process in (chief, other):
        status, (line,) = end_of(process)
        assert status == 1
        assert "must have the chief's t2t_lite" in line
        assert line.endswith(f"{workers.name(1)} has 0.0.7")


def test_the_version_is_that_of_the_code_not_of_what_is_installed(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.7")
    found = t2t_lite.training.workers._versions()
    assert found["t2t_lite"] == t2t_lite.__version__ != "0.0.7"
    assert found["numpy"] == "0.0.7"


def test_a_worker_of_a_larger_cluster_is_refused(cluster):
    workers = cluster(3)
    chief_alone = Workers(2)
    chief_alone.addresses = workers.addresses[:2]
    chief = chief_alone.start(0, 0)
    workers.started.append(chief)
    status, (line,) = end_of(workers.start(2, 0))
    assert status == 1
    assert "must have the chief's addresses in TF_CONFIG" in line
    assert chief.poll() is None


def test_a_hello_may_come_in_parts(cluster):
    workers = cluster(2)
    chief = workers.start(0, 0)
    hello = {"index": 1, "addresses": workers.addresses, "t2t_lite": "1"}
    first, second = (json.dumps(hello) + "\n").encode().split(b"addr")
    host, _, port = workers.addresses[0].rpartition(":")
    with _connected(host, int(port)) as worker:
        worker.sendall(first)
        time.sleep(0.3)
        worker.sendall(b"addr" + second)
        assert json.loads(worker.makefile().readline()) == {
            "all_are_here": True
        }
        assert end_of(chief) == (0, [])


def test_two_workers_of_one_index_are_refused(cluster):
    workers = cluster(3)
    processes = [workers.start(n) for n in (0, 1, 1)]
    line = f"error: two processes say that they are {workers.name(1)}"
    assert [end_of(p) for p in processes] == 3 * [(1, [line])]


def test_strangers_are_sent_away(cluster):
    workers = cluster(2)
    chief = workers.start(0, 0)
    host, _, port = workers.addresses[0].rpartition(":")
    for speech in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"[1]\n",
        b'{"index": 9}\n',
        b"[" * 60_000 + b"\n",
        b"",
    ):
        stranger = _connected(host, int(port))
        with stranger:
            stranger.sendall(speech)
            if speech:
                assert stranger.recv(1) == b""
    assert [end_of(p)[0] for p in (workers.start(1, 0), chief)] == [0, 0]


def _connected(host, port):
    """Returns a connection, once a process listens at the port."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            return socket.create_connection((host, port), timeout=_TIMEOUT_S)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_port_that_is_taken_is_named(cluster):
    workers = cluster(2)
    host, _, port = workers.addresses[0].rpartition(":")
    with socket.create_server((host, int(port))):
        status, (line,) = end_of(workers.start(0))
    assert status == 1
    assert f"cannot wait for the other workers at {host}:{port}: " in line
