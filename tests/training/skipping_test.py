"""A run that diverges goes back, skips, and starts over until it is done."""

import types

import pytest

from t2t_lite.errors import InputError
from t2t_lite.optimization.divergence import DivergenceError
from t2t_lite.training.skipping import update_with_skips
from t2t_lite.training.watchdog import Skipped


class Run:
    """A loop, a state and a watchdog that write down what is done to them."""

    def __init__(self, *divergences, can_skip=True):
        self.divergences, self.can_skip = list(divergences), can_skip
        self.done, self.skipped = [], Skipped(5, 1)
        self.watchdog = self

    def run(self, stop):
        self.done.append("run")
        if self.divergences:
            step = self.divergences.pop(0)
            raise DivergenceError("the loss is not finite", step)

    def restart(self):
        self.done.append("restart")

    def go_back(self):
        self.done.append("go back")
        self.skipped = Skipped()  # As in an old checkpoint.

    def require_skip(self, divergence):
        if not self.can_skip:
            raise InputError(str(divergence))

    def skip_until(self, step, before):
        self.done.append((step, before))
        self.skipped = before.after(step)


def update(run):
    update_with_skips(run, run, types.SimpleNamespace())
    return run.done


def test_a_run_that_does_not_diverge_is_run_once():
    assert update(Run()) == ["run"]


def test_each_divergence_is_skipped_after_going_back():
    assert update(Run(7, 9)) == [
        "run",
        "go back",
        (7, Skipped(5, 1)),
        "restart",
        "run",
        "go back",
        (9, Skipped(12, 2)),
        "restart",
        "run",
    ]


def test_a_run_that_may_not_skip_stays_where_it_is():
    run = Run(7, can_skip=False)
    with pytest.raises(InputError, match="at step 7"):
        update(run)
    assert run.done == ["run"]
