"""A process that hangs is ended, and shows where it hangs."""

import subprocess
import sys
import threading
import time

import pytest
from diverging_run import train
from paths import ROOT

from t2t_lite.training import run
from t2t_lite.training.hang_watch import HangWatch
from t2t_lite.training.run_state import RunState

MINUTES = 0.2 / 60


@pytest.fixture
def ended(monkeypatch):
    """An event that is set when the process would have ended."""
    ended = threading.Event()
    monkeypatch.setattr(HangWatch, "_end", lambda self: ended.set())
    # Otherwise this process would really end if its threads got no CPU time.
    monkeypatch.setattr(HangWatch, "_end_later", lambda *_: None)
    return ended


def test_a_process_without_a_sign_of_life_ends(ended):
    with HangWatch(MINUTES):
        assert ended.wait(30)


def test_signs_of_life_keep_it_alive(ended):
    end = time.monotonic() + 0.6
    with HangWatch(MINUTES) as watch:
        while time.monotonic() < end:
            watch.heartbeat()
            time.sleep(0.001)
    assert not ended.is_set()


def test_what_is_left_out_may_take_long(ended):
    with HangWatch(MINUTES) as watch:
        with watch.paused():
            assert not ended.wait(0.6)
        assert ended.wait(30)


def test_without_minutes_nothing_watches(ended):
    before = threading.active_count()
    with HangWatch(None) as watch:
        assert threading.active_count() == before
        watch.heartbeat()
        with watch.paused():
            pass
    assert not ended.is_set()


def test_the_watch_ends_with_what_it_watches(ended):
    before = threading.active_count()
    with HangWatch(MINUTES):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    assert not ended.wait(0.4)


@pytest.fixture
def done(monkeypatch):
    """What a run that does no updates has done so far; tests may add to it."""
    done = []
    monkeypatch.setattr(run._Run, "loop", lambda *_: done.append("loop"))
    monkeypatch.setattr(run._Run, "report", lambda _: "")
    monkeypatch.setattr(run, "draw_curves", lambda _: None)
    return done


def test_a_hang_before_the_first_update_is_noticed(
    ended, done, monkeypatch, tmp_path
):
    def hang(_):
        ended.clear()  # Building the model may also have taken too long.
        done.append(ended.wait(60))

    monkeypatch.setattr(RunState, "restore", hang)
    train(tmp_path / "model", hang_minutes=MINUTES)
    assert done == [True, "loop"]


def test_restoring_and_a_trial_update_are_signs_of_life(
    done, monkeypatch, tmp_path
):
    def try_update(_):
        done.append("trial")
        return 400

    monkeypatch.setattr(HangWatch, "heartbeat", lambda _: done.append("life"))
    monkeypatch.setattr(RunState, "restore", lambda _: done.append("restore"))
    monkeypatch.setattr(run._Run, "_tried_micro_batch_tokens", try_update)
    train(tmp_path / "model", micro_batch_tokens=None)
    assert done == ["life", "restore", "life", "trial", "life", "loop"]


PROGRAM = """
import checkout, ctypes, sys, threading, time
from t2t_lite.training.hang_watch import HangWatch

def hang():
    print("the last output")
    HANG

def wait_for_a_batch():
    threading.Event().wait()

threading.Thread(
    target=wait_for_a_batch, name="feed", daemon=True
).start()
with HangWatch(0.5 / 60):
    hang()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", ["time.sleep(60)", "ctypes.PyDLL(None).sleep(60)"]
)
def test_a_hang_ends_with_the_stacks_of_all_threads(how):
    """The second way holds the GIL, so that no other Python thread can run."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("HANG", how)],
        env={"PYTHONPATH": str(ROOT / "bin")},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert found.returncode == 1
    assert "in hang\n" in found.stderr
    assert "in wait_for_a_batch\n" in found.stderr
    if "PyDLL" not in how:
        assert found.stdout == "the last output\n"
        assert "No update for 0.00833333 minutes" in found.stderr
