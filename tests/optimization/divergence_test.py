"""When an update shows that a run has diverged."""

import math

import numpy as np
import pytest

from t2t_lite.errors import InputError
from t2t_lite.optimization.divergence import (
    DivergenceError,
    LossMean,
    divergence_reason,
)

SETTLED = LossMean(mean=4.0, weight=100.0)


def mean_of(losses):
    mean = LossMean()
    for loss in losses:
        mean = mean.after(loss)
    return mean


@pytest.mark.parametrize("count", [1, 2, 500])
def test_the_mean_weighs_each_loss_by_how_many_came_after_it(count):
    losses = np.random.default_rng(0).uniform(1, 9, count)
    weights = 0.99 ** np.arange(count)[::-1]
    found = mean_of(losses)
    assert found.mean == pytest.approx(np.average(losses, weights=weights))
    assert found.weight == pytest.approx(weights.sum())


def test_the_first_updates_are_judged_by_no_mean():
    settled = [n for n in range(200) if mean_of([2.0] * n).is_settled]
    assert settled == [*range(69, 200)]
    early = LossMean(mean=4.0, weight=3.0)
    assert divergence_reason(4000.0, [1.0], early, factor=2.0) is None


@pytest.mark.parametrize("factor", [None, 2.0])
@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_diverges(loss, factor):
    found = divergence_reason(loss, [math.nan], SETTLED, factor=factor)
    assert found == "the loss is not finite"


@pytest.mark.parametrize("norm", [math.nan, math.inf])
def test_a_norm_that_is_not_finite_diverges(norm):
    found = divergence_reason(4.0, [0.5, norm, 2.0], LossMean(), factor=None)
    assert found == "the gradient norm is not finite"


def test_a_loss_diverges_above_a_factor_of_its_mean():
    assert divergence_reason(8.0, [1.0], SETTLED, factor=2.0) is None
    found = divergence_reason(8.1, [1.0], SETTLED, factor=2.0)
    assert found == "the loss of 8.1 is above 2 times its running mean of 4"
    assert divergence_reason(8000.0, [1.0], SETTLED, factor=None) is None


def test_a_divergence_says_at_which_step():
    error = DivergenceError("the loss is not finite", 7)
    assert isinstance(error, InputError)
    assert str(error) == "the loss is not finite at step 7"
