"""The tree constraint allows exactly the symbols that lead to a tree."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import InputError
from t2t_lite.parsing import trees
from t2t_lite.parsing.constraint import TreeSymbols

EOS = 1
NAMES = ["<pad>", "</s>", "word", "(TOP", ")TOP", "(S", ")S", "(X", ")X", "A"]
IDS = {name: i for i, name in enumerate(NAMES) if i > 2}


def is_tree(symbols, num_words):
    try:
        tree = trees.delinearize(symbols, ["w"] * num_words)
    except InputError:
        return False
    inner = [s for s in symbols[1:-1] if s.endswith(trees.ROOT)]
    return tree.label == trees.ROOT and not inner


def all_trees(num_words, max_length):
    """Yields the ids of every tree of at most max_length tokens, with EOS."""
    inside = [IDS[name] for name in NAMES[5:]]
    for length in range(num_words, max_length - 2):
        for middle in itertools.product(inside, repeat=length):
            ids = [IDS["(TOP"], *middle, IDS[")TOP"]]
            if is_tree([NAMES[i] for i in ids], num_words):
                yield (*ids, EOS)


@pytest.mark.parametrize(("num_words", "max_length"), [(1, 8), (2, 5), (2, 8)])
def test_what_is_allowed_is_what_some_tree_goes_on_with(num_words, max_length):
    expected = {}
    for ids in all_trees(num_words, max_length):
        for n in range(len(ids)):
            expected.setdefault(ids[:n], set()).add(ids[n])
    assert len(expected) > 3
    symbols = TreeSymbols(IDS)
    for _, group in itertools.groupby(sorted(expected, key=len), key=len):
        # The search itself starts with EOS.
        ids_W = np.array([(EOS, *prefix) for prefix in group], "int32")
        state, advance, allowed, constants, *_ = symbols.constraint(
            tf.constant([num_words]), tf.constant([max_length]), len(ids_W)
        )
        for newest_W in ids_W.T:
            state = advance(state, tf.constant(newest_W[None]))
        for prefix_W, allowed_V in zip(
            ids_W, allowed(state, constants)[0], strict=True
        ):
            found = set(np.flatnonzero(allowed_V).tolist())
            assert found == expected[tuple(prefix_W[1:].tolist())]


def test_a_word_has_only_tags_that_it_may_have():
    ids = IDS | {"B": len(NAMES), "C": len(NAMES) + 1}
    symbols = TreeSymbols(ids)
    may_have = [["A", "C"], ["B"], ["A", "B", "C"]]
    tags_NV = np.zeros((5, symbols.V), bool)  # Two more rows than words.
    for n, names in enumerate(may_have):
        tags_NV[n, [ids[name] for name in names]] = True
    state, advance, allowed, constants, *_ = symbols.constraint(
        tf.constant([3, 3]),
        tf.constant([20, 20]),
        beam_width=2,
        tags_BNV=tf.constant([tags_NV] * 2),
    )

    def tags():
        return [
            [[n for n in "ABC" if may_V[ids[n]]] for may_V in may_WV]
            for may_WV in allowed(state, constants).numpy()
        ]

    for name in ("</s>", "(TOP"):
        state = advance(state, tf.fill([2, 2], (IDS | {"</s>": EOS})[name]))
    assert tags() == [[["A", "C"]] * 2] * 2
    # One hypothesis goes on to the second word; one opens a bracket instead.
    state = advance(state, tf.constant([[ids["A"], ids["(S"]]] * 2))
    assert tags() == [[["B"], ["A", "C"]]] * 2
    state = advance(state, tf.constant([[ids["B"], ids["C"]]] * 2))
    assert tags() == [[["A", "B", "C"], ["B"]]] * 2
    state = advance(state, tf.constant([[ids["C"], ids["B"]]] * 2))
    assert tags() == [[[], ["A", "B", "C"]]] * 2


@pytest.mark.parametrize("missing", ["(TOP", ")TOP", ")S"])
def test_a_vocabulary_without_the_symbols_of_trees_is_refused(missing):
    ids = {name: i for name, i in IDS.items() if name != missing}
    with pytest.raises(InputError, match="has no tree symbols"):
        TreeSymbols(ids)
