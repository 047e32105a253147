"""The right-branching baseline: what it learns, and the trees it builds."""

import itertools

import pytest
from benchmarks import right_branching
from benchmarks.right_branching import VARIANTS, by_place, by_tag, by_two_tags

from t2t_lite.parsing import evalb, trees


def read_tree(text):
    (tree,) = trees.read(f"(TOP {text})")
    return tree


TRAINING = [
    read_tree("(S (NP (NN a)) (VP (VB b) (NP (DT c) (NN d))) (. .))"),
    read_tree("(S (NN a) (VP (VB b) (NP (NN d))) (. .))"),
    read_tree("(NP (DT c) (NN d))"),
]


@pytest.mark.parametrize(
    ("get_contexts", "contexts"),
    [
        (by_place, [(False, False), (True, False), (False, True)]),
        (by_tag, [((False, False), "``"), ((True, False), "NN")]),
        (
            by_two_tags,
            [((False, False), None, "``"), ((True, False), "``", "NN")],
        ),
    ],
)
def test_contexts_know_the_first_and_the_last_word_that_counts(
    get_contexts, contexts
):
    found = get_contexts(["``", "NN", "VB", "."])
    assert found[: len(contexts)] == contexts


def test_only_constituents_up_to_the_end_are_counted():
    places, matches, gold = right_branching.count_brackets(TRAINING, by_tag)
    assert places[(False, True), "NN"] == 3
    assert places[(True, False), "NN"] == 2
    assert matches == {
        (((True, False), "NN"), "S"): 2,
        (((False, False), "VB"), "VP"): 2,
        (((False, False), "DT"), "NP"): 1,
        (((False, True), "NN"), "NP"): 1,
        (((True, False), "DT"), "NP"): 1,
    }
    assert gold == 4 + 3 + 1


def test_the_classical_tree_has_a_bracket_before_every_word():
    pairs = right_branching.most_frequent(
        right_branching.count_brackets(TRAINING, by_place)
    )
    tree = right_branching.right_branching(
        list(trees.pre_terminals(TRAINING[0])), by_place, pairs
    )
    assert tree == read_tree(
        "(S (NN a) (VP (VB b) (VP (DT c) (NP (NN d) (. .)))))"
    )


def test_several_labels_may_open_before_a_word():
    pairs = {((True, True), "NP"), ((True, True), "S")}
    tree = right_branching.right_branching(
        list(trees.pre_terminals(read_tree("(NN a)"))), by_place, pairs
    )
    assert tree == read_tree("(S (NP (NN a)))")


def test_brackets_that_help_have_the_best_f1_of_all_choices():
    counts = right_branching.count_brackets(TRAINING, by_tag)
    chosen = right_branching.best_f1(counts)

    def f1(pairs):
        parses = [
            right_branching.right_branching(
                list(trees.pre_terminals(tree)), by_tag, pairs
            )
            for tree in TRAINING
        ]
        return evalb.report(TRAINING, parses).all.f1

    all_choices = itertools.chain.from_iterable(
        itertools.combinations(counts.matches, size) for size in range(6)
    )
    assert f1(chosen) == max(map(f1, all_choices))
    assert 0 < len(chosen) < len(counts.matches)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_scores_every_sentence(variant):
    report = right_branching.score_variant(TRAINING, TRAINING, variant)
    assert report.all.valid == len(TRAINING)
    assert report.all.tagging_accuracy == 1
    assert report.all.f1 > 0.5
