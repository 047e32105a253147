"""Constraints rule out exactly what brute force shows that they must."""

import pytest
from constrained_tables import T, assert_constrained, batch

from t2t_lite.constraints import token_constraints
from t2t_lite.errors import InputError


@pytest.mark.parametrize("least", [1, 2, 3])
def test_translations_have_at_least_so_many_tokens(least):
    assert_constrained(
        token_constraints.min_length(batch(), least),
        lambda ids: len(ids) > least,
    )


def test_what_has_no_room_for_the_least_length_fills_its_room():
    assert_constrained(
        token_constraints.min_length(batch(), 100), lambda ids: len(ids) == T
    )


@pytest.mark.parametrize(("n", "T"), [(1, 4), (2, 4), (3, 5)])
def test_no_ngram_is_repeated(n, T):
    def is_right(ids):
        ngrams = [ids[i : i + n] for i in range(len(ids) - n + 1)]
        return len({*ngrams}) == len(ngrams)

    constraint = token_constraints.no_repeated_ngrams(batch(T=T), n)
    assert_constrained(constraint, is_right, T)


def test_all_of_some_constraints_hold():
    both = token_constraints.all_of(
        [
            token_constraints.min_length(batch(), 2),
            token_constraints.no_repeated_ngrams(batch(), 1),
        ]
    )
    assert_constrained(
        both, lambda ids: len({*ids}) == len(ids) and len(ids) > 2
    )


@pytest.mark.parametrize(
    ("name", "received"),
    [("ends", "ends=2, goals=0"), ("goal", "ends=0, goals=2")],
)
def test_at_most_one_of_some_constraints_has_ends_or_a_goal(name, received):
    one = token_constraints.min_length(batch(), 2)._replace(
        **{name: lambda *_: None}
    )
    message = f"may have ends, and one a goal; received {received}"
    with pytest.raises(InputError, match=message):
        token_constraints.all_of([one, one])
