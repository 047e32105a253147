"""Length penalties of other programs become the paper's nearest ones."""

import math

import pytest

from t2t_lite.formats.length_penalty import nearest_alpha, nearest_exponent


@pytest.mark.parametrize("exponent", [0.25, 0.5, 1.0, 1.7])
def test_one_more_token_weighs_the_same_at_25_tokens(exponent):
    alpha = nearest_alpha(exponent)

    def change(penalty):
        """Returns the slope of the logarithm of a penalty at 25 tokens."""
        return (math.log(penalty(25.1)) - math.log(penalty(24.9))) / 0.2

    theirs = change(lambda length: length**exponent)
    ours = change(lambda length: ((5 + length) / 6) ** alpha)
    assert ours == pytest.approx(theirs, rel=1e-4)
    assert nearest_exponent(alpha) == exponent


def test_a_penalty_that_favors_short_outputs_is_none():
    assert nearest_alpha(-0.5) == 0.0
