"""Which signals ask a run to stop, and which stop it at once."""

import os
import signal
import threading

import pytest

from t2t_lite.training.stop_signal import StopSignal


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
)
def test_a_signal_is_a_request_to_stop(number):
    # The tests themselves may run under nohup, which ignores SIGHUP.
    inherited = signal.signal(number, signal.SIG_DFL)
    try:
        with StopSignal() as stop:
            assert not stop.is_requested()
            assert stop.number == 0
            os.kill(os.getpid(), number)
            assert stop.is_requested()
            assert stop.number == number
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, inherited)


def test_a_second_ctrl_c_stops_at_once():
    with StopSignal() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert stop.number == signal.SIGINT


def test_under_nohup_a_hangup_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignal() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.is_requested()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_thread_may_train_though_it_gets_no_signals():
    answers = []

    def train():
        with StopSignal() as stop:
            answers.append(stop.is_requested())

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert answers == [False]
