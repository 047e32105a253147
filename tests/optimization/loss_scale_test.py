"""The loss scale of float16 adapts to whether gradients are finite."""

from t2t_lite.optimization.loss_scale import LossScale


def after(scale, *outcomes):
    for is_finite in outcomes:
        scale = scale.after(is_finite)
    return scale


def test_each_failure_halves_the_scale():
    assert after(LossScale(64.0), False, False).scale == 16.0


def test_two_thousand_updates_that_fit_double_the_scale():
    almost = after(LossScale(64.0), *[True] * 1999)
    assert almost == LossScale(64.0, 1999)
    assert almost.after(is_finite=True) == LossScale(128.0, 0)


def test_a_failure_begins_the_count_anew():
    scale = after(LossScale(64.0), *[True] * 1999, False, True)
    assert scale == LossScale(32.0, 1)


def test_a_scale_becomes_too_small_by_failures_alone():
    scale, failures = LossScale(), 0
    while not scale.is_too_small:
        scale, failures = scale.after(is_finite=False), failures + 1
    assert failures == 26  # From 2**15 to below 2**-10.
    assert not LossScale().is_too_small
