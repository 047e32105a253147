"""Masks allow tokens and not padding, and no later positions."""

import numpy as np

from t2t_lite.model.masks import causal, not_padding


def test_every_query_may_attend_to_tokens_and_not_to_padding():
    ids = np.array([[7, 3, 1, 0, 0], [4, 2, 9, 9, 1]])
    may_attend = np.asarray(not_padding(ids))
    assert may_attend.dtype == bool
    assert may_attend.shape == (2, 1, 1, 5)
    np.testing.assert_array_equal(
        may_attend[:, 0, 0], [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    )


def test_a_position_may_attend_to_itself_and_to_those_before():
    may_attend = np.asarray(causal(4))
    assert may_attend.dtype == bool
    assert may_attend.shape == (1, 1, 4, 4)
    expected = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    np.testing.assert_array_equal(may_attend[0, 0], expected)
