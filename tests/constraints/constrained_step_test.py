"""A constraint leaves out what it forbids, and changes no probability."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from search_tables import (
    ALL,
    ALPHAS,
    EOS,
    T,
    V,
    child,
    exhaustive,
    random_table,
    search,
    without_padding,
)

from t2t_lite.constraints.constrained_step import Constraint


def never_twice(num_rows, beam_width):
    """Returns the Constraint that no token follows itself."""
    return Constraint(
        state=tf.fill([num_rows, beam_width], -1),
        # What is given first is not a token of the hypothesis.
        advance=lambda newest_BW, ids_BW: tf.where(newest_BW == -1, -2, ids_BW),
        allowed=lambda newest_BW, _: ops.not_equal(
            newest_BW[..., None], ops.arange(V)
        ),
    )


def is_never_twice(ids):
    return all(a != b for a, b in itertools.pairwise(ids))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_constraint_leaves_out_what_it_forbids_and_no_more(alpha):
    table = random_table(seed=18)
    ids_BWT, scores_BW = search(
        table,
        [T, T],
        alpha=alpha,
        num_best=5,
        constraint=never_twice(2, ALL),
    )
    for table_NV, ids_WT, scores_W in zip(
        table, ids_BWT, scores_BW, strict=True
    ):
        everything = exhaustive(table_NV, T, alpha)
        expected = [pair for pair in everything if is_never_twice(pair[1])]
        assert expected[:5] != everything[:5]
        for n, (score, ids) in enumerate(expected[:5]):
            assert without_padding(ids_WT[n]) == ids
            np.testing.assert_allclose(scores_W[n], score, rtol=1e-5)


def test_a_constrained_beam_keeps_the_models_probabilities():
    """A hypothesis that may only continue with unlikely tokens falls behind.

    After 0, all but 0 is unlikely; after 2, 3 is almost certain. If the
    probabilities were normalized over the tokens allowed, 0, 2, EOS would win.
    """
    table = np.zeros((1, 21, V), "float32")
    table[0, 0] = [0.1, -9.0, 0.0, -9.0]
    table[0, child(0, 0, V)] = [9.0, -9.0, -1.0, -9.0]
    table[0, child(0, 2, V)] = [-9.0, -9.0, -9.0, 9.0]
    for first, second in ((0, 2), (2, 3)):
        table[0, child(child(0, first, V), second, V), EOS] = 9.0
    found, _ = search(
        table, [3], beam_width=2, constraint=never_twice(1, 2), alpha=0.0
    )
    assert found[0, 0].tolist() == [2, 3, EOS]
