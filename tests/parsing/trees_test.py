"""Constituency trees survive text and symbols, and are normalized."""

import os
import pathlib
import random

import pytest
from random_trees import random_leaves, random_tree

from t2t_lite.errors import InputError
from t2t_lite.parsing import trees
from t2t_lite.parsing.trees import Tree

DOG = Tree("NP", (Tree("DT", ("the",)), Tree("NN", ("dog",))))


def tree_of(text):
    (tree,) = trees.read(text)
    return tree


def normalized_line(text):
    return trees.write(trees.normalize(tree_of(text)))


# Reading.


@pytest.mark.parametrize(
    "text",
    [
        "(NP (DT the) (NN dog))",
        "  (NP(DT the)(NN dog))\r\n\r\n",
        "(NP (DT the)\n    (NN\tdog))\n",
        "( NP ( DT the ) ( NN\ndog )\n)",
    ],
)
def test_white_space_and_lines_do_not_matter(text):
    assert list(trees.read(text)) == [DOG]


def test_a_line_may_hold_several_trees_and_begin_one():
    text = "(UH hi) (NP (DT the)\n(NN dog)) (UH hi) (NP\n(DT the) (NN dog))"
    hi = Tree("UH", ("hi",))
    assert list(trees.read(text)) == [hi, DOG, hi, DOG]


def test_lines_read_as_their_text():
    assert list(trees.read(["(NP (DT the)", "(NN dog))"])) == [DOG]
    assert list(trees.read([])) == list(trees.read("")) == []


def test_trees_are_read_as_they_are_asked_for():
    stream = trees.read("(UH hi)\n)")
    assert next(stream) == Tree("UH", ("hi",))
    with pytest.raises(InputError, match="line 2"):
        next(stream)


def test_the_outermost_bracket_may_have_no_label():
    assert tree_of("( (NP (DT the) (NN dog)) )") == Tree("", (DOG,))
    assert tree_of("((UH hi) (UH ho))").label == ""


@pytest.mark.parametrize("space", "\u00a0\u2009\u3000\x85\u2028\x1c")
def test_only_ascii_white_space_separates(space):
    word = f"a{space}b"
    assert trees.words(tree_of(f"(TOP (NN {word}) (NN {space}))")) == [
        word,
        space,
    ]


def test_a_bracket_with_several_words_gives_each_its_own():
    assert tree_of("(NP (NN a b) (DT c))") == tree_of(
        "(NP (NN a) (NN b) (DT c))"
    )


def deep(levels):
    return "(X " * (levels - 1) + "(X x)" + ")" * (levels - 1)


def test_the_deepest_tree_goes_through_everything():
    tree = tree_of(deep(trees.MAX_DEPTH))
    wrapped = tree_of(f"({deep(trees.MAX_DEPTH - 1)})")
    assert tree == tree_of(trees.write(tree))
    assert trees.delinearize(trees.linearize(tree), ["x"]) == tree
    assert trees.normalize(wrapped) == Tree("TOP", wrapped.children)
    assert trees.words(tree) == ["x"]
    assert trees.tags(tree) == ["X"]
    assert len({tree, tree_of(deep(trees.MAX_DEPTH))}) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(NP (NN dog)))", "line 1: a closing bracket stands outside of any"),
        ("(UH hi)\ndog", "line 2: the word 'dog' stands outside of any tree"),
        ("\n\n(NP (NN a)\n", "line 3: the tree that begins here is not closed"),
        ("(S\n(NP (NN a)", "; 2 closing brackets are missing at the end"),
        ("(NP ())", "line 1: () holds no word"),
        ("\n(NP\n(NN))", "line 3: (NN) holds no word"),
        ("(NP the (NN dog))", "the word 'the' stands beside brackets in (NP "),
        ("(NP (NN dog) the)", "the word 'the' stands beside brackets in (NP "),
        ("((NN dog) the)", "the word 'the' stands beside brackets in ( ...)"),
        ("(S ((NN a)))", "is the tree that begins on line 1 not closed?"),
        ("(((NN a)))", "is the tree that begins on line 1 not closed?"),
        ("((S (NN a))\n((S (NN b)))", "line 2: only an outermost bracket"),
        ("(NP the dog)", "(NP ...) holds several words, and each needs a tag"),
        (deep(trees.MAX_DEPTH + 1), "a tree may be at most 200 brackets deep"),
    ],
)
def test_wrong_trees_are_refused(text, message):
    with pytest.raises(InputError) as refusal:
        list(trees.read(text, "a.mrg"))
    assert message in str(refusal.value)
    assert str(refusal.value).startswith("a.mrg, line ")
    assert "\n" not in str(refusal.value)


# Writing.


def test_a_tree_is_written_as_one_line():
    assert trees.write(tree_of("(S (NP\n(DT  the)(NN dog)))")) == (
        "(S (NP (DT the) (NN dog)))"
    )


def test_parentheses_in_words_are_escaped():
    tree = Tree("NP", (Tree("-LRB-", ("(",)), Tree("NN", ("f(x)",))))
    assert trees.write(tree) == "(NP (-LRB- -LRB-) (NN f-LRB-x-RRB-))"


@pytest.mark.parametrize("word", ["", "a b", "\n"])
def test_a_word_that_would_not_be_read_again_is_refused(word):
    with pytest.raises(InputError, match=r"no white space; received '"):
        trees.write(Tree("NN", (word,)))


def test_random_trees_survive_text():
    rng = random.Random(1)
    for _ in range(300):
        tree = random_tree(rng, random_leaves(rng, rng.randint(1, 30)))
        assert tree_of(trees.write(tree)) == tree


# Normalization.


@pytest.mark.parametrize(
    ("label", "category"),
    [
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("NP-SBJ=2", "NP"),
        ("ADVP|PRT", "ADVP"),
        ("PRP$", "PRP$"),
        ("-LRB-", "-LRB-"),
        ("-RRB-", "-RRB-"),
        ("-", "-"),
        ("=", "="),
        ("|", "|"),
        (":", ":"),
    ],
)
def test_function_tags_and_indices_go(label, category):
    assert normalized_line(f"(TOP ({label} (NN a)) ({label} b))") == (
        f"(TOP ({category} (NN a)) ({category} b))"
    )


def test_traces_go_with_what_held_only_them():
    text = "(TOP (S (NP (-NONE- *)) (VP (VB go) (SBAR (S (-NONE- *T*-1))))))"
    assert normalized_line(text) == "(TOP (S (VP (VB go))))"


@pytest.mark.parametrize(
    "text",
    [
        "( (S (NN a)))",
        "(TOP (S (NN a)))",
        "(ROOT (S (NN a)))",
        "(S1 (S (NN a)))",
        "(S (NN a))",
        "( (ROOT (S (NN a))))",
        "(ROOT (TOP-1 (S (NN a))))",
        "(TOP (TOP (S (NN a))) (S (-NONE- *)))",
    ],
)
def test_the_root_becomes_top(text):
    assert normalized_line(text) == "(TOP (S (NN a)))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("((S (NN a)) (. .))", "(TOP (S (NN a)) (. .))"),
        ("(ROOT (NN a))", "(TOP (NN a))"),
        ("(NN a)", "(TOP (NN a))"),
        ("(TOP a)", "(TOP (TOP a))"),
        ("(TOP (TOP a))", "(TOP (TOP a))"),
        ("(TOP (TOP (NN a)) (TOP (NN a)))",) * 2,
        ("(TOP (S (TOP (NN a))))",) * 2,
    ],
)
def test_what_stands_under_the_root_stays(text, expected):
    assert normalized_line(text) == expected


def test_words_are_not_changed():
    tree = trees.normalize(tree_of("(NP-1 (NN a-b=c|d) (-LRB- -LRB-))"))
    assert trees.words(tree) == ["a-b=c|d", "-LRB-"]


@pytest.mark.parametrize("text", ["(-NONE- *)", "((S (NP-1 (-NONE- *))))"])
def test_a_tree_without_words_is_none(text):
    assert trees.normalize(tree_of(text)) is None


def test_normalization_twice_changes_nothing_more():
    rng, changed = random.Random(2), 0
    labels = ("NP-1", "S|X", "TOP", "ROOT-1", "S1", "-NONE-")
    for _ in range(300):
        leaves = random_leaves(rng, rng.randint(1, 6))
        tree = relabeled(rng, random_tree(rng, leaves), labels)
        once = trees.normalize(tree)
        changed += once not in (tree, None)
        assert once is None or trees.normalize(once) == once
    assert changed > 100


def relabeled(rng, tree, labels):
    """Returns a tree with about half of its labels replaced."""
    label = rng.choice(labels) if rng.random() < 0.5 else tree.label
    if tree.is_pre_terminal:
        return tree._replace(label=label)
    return Tree(label, tuple(relabeled(rng, c, labels) for c in tree.children))


# Symbols.


def test_the_symbols_of_a_sentence():
    tree = tree_of("(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))")
    written = "(TOP (S (NP DT NN )NP (VP VBZ )VP . )S )TOP"
    symbols = written.split()
    assert trees.linearize(tree) == symbols
    assert trees.words(tree) == ["The", "cat", "sleeps", "."]
    assert trees.tags(tree) == ["DT", "NN", "VBZ", "."]
    assert trees.delinearize(symbols, ["The", "cat", "sleeps", "."]) == tree


def test_brackets_are_told_from_tags():
    symbols = ["(NP", ")NP", "-LRB-", "NN", ","]
    assert [trees.is_opening(s) for s in symbols] == [True] + 4 * [False]
    assert [trees.is_closing(s) for s in symbols] == [False, True] + 3 * [False]
    assert [trees.is_tag(s) for s in symbols] == [False] * 2 + [True] * 3
    assert trees.opening("NP") == "(NP"
    assert trees.closing("NP") == ")NP"


def test_random_trees_survive_linearization():
    rng, several_roots, bare = random.Random(3), 0, 0
    for _ in range(300):
        tree = random_tree(rng, random_leaves(rng, rng.randint(1, 30)))
        several_roots += len(tree.children) > 1
        bare += tree.children[0].is_pre_terminal
        symbols = trees.linearize(tree)
        assert trees.delinearize(symbols, trees.words(tree)) == tree
    assert several_roots > 50
    assert bare > 50


def test_symbols_are_all_that_linearizations_need():
    found = trees.symbols([DOG, tree_of("(NP (NN a))")])
    assert found == ["(NP", ")NP", "DT", "NN"]
    assert trees.symbols([]) == []


@pytest.mark.parametrize(
    ("symbols", "num_words", "message"),
    [
        ("", 0, "the tree is not closed: 0 brackets are open after 0"),
        ("(TOP", 0, "the tree is not closed: 1 brackets are open after 1"),
        ("(TOP (S NN )S", 1, "the tree is not closed: 1 brackets are open"),
        ("(TOP NN )S", 1, "symbol 3, ')S': )TOP must come first"),
        ("(TOP (S NN )TOP )S", 1, "symbol 4, ')TOP': )S must come first"),
        (
            ")TOP",
            0,
            "symbol 1, ')TOP': a tree must have exactly one outermost bracket",
        ),
        (
            "NN",
            1,
            "symbol 1, 'NN': a tree must have exactly one outermost bracket",
        ),
        (
            "(S NN )S )S",
            1,
            "symbol 4, ')S': a tree must have exactly one outermost",
        ),
        (
            "(S NN )S NN",
            2,
            "symbol 4, 'NN': a tree must have exactly one outermost",
        ),
        (
            "(S NN )S (S NN )S",
            2,
            "symbol 4, '(S': a tree must have exactly one outermost",
        ),
        (
            "(TOP (S )S NN )TOP",
            1,
            "symbol 3, ')S': a constituent must hold at least one word",
        ),
        ("(TOP NN )TOP", 0, "received 1 tags for 0 words"),
        ("(TOP NN )TOP", 2, "received 1 tags for 2 words"),
        ("(S " * 201 + "NN" + " )S" * 201, 1, "at most 200 brackets deep"),
    ],
)
def test_symbols_that_are_no_tree_are_refused(symbols, num_words, message):
    with pytest.raises(InputError) as refusal:
        trees.delinearize(symbols.split(), num_words * ["a"])
    assert message in str(refusal.value)


# Treebanks, if TREEBANKS is set.


@pytest.fixture
def treebank_files():
    if "TREEBANKS" not in os.environ:
        pytest.skip("TREEBANKS, a folder with treebanks, is not set")
    files = pathlib.Path(os.environ["TREEBANKS"]).rglob("*.*")
    return [path for path in files if path.is_file()]


def test_every_tree_of_the_treebanks_survives_linearization(treebank_files):
    total = 0
    for path in treebank_files:
        with path.open(encoding="utf-8", newline="\n") as file:
            for tree in map(trees.normalize, trees.read(file, path.name)):
                words = trees.words(tree)
                symbols = trees.linearize(tree)
                assert trees.delinearize(symbols, words) == tree
                assert tree_of(trees.write(tree)) == tree
                assert trees.normalize(tree) == tree
                total += 1
    print(f"{total} of {total} trees")
    assert total > 0
