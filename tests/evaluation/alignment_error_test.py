"""The alignment error rate is that of Och and Ney with only sure links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite.errors import InputError
from t2t_lite.evaluation.alignment_error import alignment_error_rate

LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


def test_the_formula():
    found = [{(0, 0), (1, 1), (2, 1)}, {(0, 1)}]
    right = [{(0, 0), (1, 2)}, {(0, 1), (1, 1), (1, 0)}]
    assert alignment_error_rate(found, right) == pytest.approx(1 - 4 / 9)


@given(st.lists(st.tuples(LINKS, LINKS.filter(bool)), min_size=1))
def test_it_is_one_minus_the_harmonic_mean_of_precision_and_recall(pairs):
    found, right = zip(*pairs, strict=True)
    rate = alignment_error_rate(found, right)
    assert 0 <= rate <= 1
    assert alignment_error_rate(right, right) == 0
    matches = sum(len(a & s) for a, s in pairs)
    if matches:
        precision = matches / sum(map(len, found))
        recall = matches / sum(map(len, right))
        mean = 2 * precision * recall / (precision + recall)
        assert rate == pytest.approx(1 - mean)
    else:
        assert rate == 1


def test_pairs_whose_links_are_not_known_do_not_count():
    assert alignment_error_rate([{(0, 0)}, {(3, 3)}], [{(0, 0)}, set()]) == 0
    with pytest.raises(InputError, match="a pair must have links; received"):
        alignment_error_rate([{(0, 0)}], [set()])
