"""Trees are the ids of their symbols, which no text has."""

import random

from random_trees import random_leaves, random_tree
from tiny_trees import TREES, WORDS

from t2t_lite.parsing import encoding, trees
from t2t_lite.text import learning


def test_target_ids_are_the_symbols_of_trees(vocabulary):
    tree = trees.read_one(TREES[1])
    (ids,) = encoding.encode_trees(vocabulary, [TREES[1]])
    names = {i: name for name, i in vocabulary.control_symbols.items()}
    assert [names[i] for i in ids[:-1]] == trees.linearize(tree)
    assert ids[-1] == 1


def test_no_text_is_tokenized_to_a_symbol(vocabulary):
    symbols = set(vocabulary.control_symbols.values())
    assert len(symbols) == len(vocabulary.control_symbols) > 9
    text = [
        *TREES,
        *vocabulary.control_symbols,
        *(f"<<{s}>>" for s in vocabulary.control_symbols),
    ]
    for line, ids in zip(text, vocabulary.encode(text), strict=True):
        assert not symbols & set(ids)
        assert vocabulary.decode([ids]) == [line]


def test_a_symbol_that_was_not_learned_is_unknown(vocabulary):
    (ids,) = encoding.encode_trees(vocabulary, ["(TOP (XX the))"])
    assert ids[1] not in vocabulary.control_symbols.values()


def test_a_label_may_have_the_name_of_a_piece_of_sentencepieces_own():
    tree = "(TOP (unk (0x41 the) (s cat)))"
    symbols = trees.symbols([trees.read_one(tree)])
    odd = learning.learn(WORDS * 9, "bpe", 2000, symbols=symbols)
    assert sorted(odd.control_symbols) == symbols
    (ids,) = encoding.encode_trees(odd, [tree])
    assert odd.tokens(ids) == [
        "(TOP",
        "(unk",
        "0x41",
        "s",
        ")unk",
        ")TOP",
        "</s>",
    ]


def test_random_trees_survive_the_vocabulary():
    rng = random.Random(0)
    some = [random_tree(rng, random_leaves(rng, n)) for n in range(1, 30)]
    vocabulary = learning.learn(
        ["a b c"] * 9, "bpe", 2000, symbols=trees.symbols(some)
    )
    names = {i: name for name, i in vocabulary.control_symbols.items()}
    for tree, ids in zip(
        some,
        encoding.encode_trees(vocabulary, map(trees.write, some)),
        strict=True,
    ):
        symbols = [names[i] for i in ids[:-1]]
        assert trees.delinearize(symbols, trees.words(tree)) == tree
