"""SuPar as a peer: what of a tree must change for it, and back."""

import pytest
from benchmarks.supar_peer import with_one_bracket, without_fragments

from t2t_lite.parsing import trees


def read_tree(text):
    (tree,) = trees.read(text)
    return tree


@pytest.mark.parametrize(
    ("text", "for_supar"),
    [
        (
            "(TOP (S (NP (NN a)) (VP (VB b))))",
            "(TOP (S (NP (NN a)) (VP (VB b))))",
        ),
        (
            "(TOP (NP (NN a)) (VP (VB b)))",
            "(TOP (FRAGMENT (NP (NN a)) (VP (VB b))))",
        ),
        ("(TOP (NN a))", "(TOP (FRAGMENT (NN a)))"),
    ],
)
def test_a_root_with_other_than_one_bracket_gets_one(text, for_supar):
    tree = read_tree(text)
    assert with_one_bracket(tree) == read_tree(for_supar)
    assert without_fragments(with_one_bracket(tree)) == tree


def test_fragments_that_supar_predicts_anywhere_are_no_brackets():
    predicted = read_tree(
        "(TOP (S (FRAGMENT (NP (NN a)) (FRAGMENT (VB b))) (. .)))"
    )
    assert without_fragments(predicted) == read_tree(
        "(TOP (S (NP (NN a)) (VB b) (. .)))"
    )
