"""Every word may have the tags that the treebank has shown for it."""

import itertools
import random

import numpy as np
import pytest
import tensorflow as tf
from random_trees import TAGS, random_tree

from t2t_lite.errors import InputError
from t2t_lite.parsing import trees
from t2t_lite.parsing.tag_dictionary import TagDictionary, learn, require_fits
from t2t_lite.text import learning

TREES = [
    *["(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .)))"] * 6,
    *["(TOP (S (NP (DT the) (NN sleeps)) (. .)))"] * 2,
    "(TOP (NP (NN dog) (JJ big)))",
    "(TOP (NP (NNS zebras)))",
]


@pytest.fixture(scope="module")
def vocabulary():
    lines = [" ".join(trees.words(trees.read_one(tree))) for tree in TREES]
    symbols = trees.symbols(map(trees.read_one, TREES))
    return learning.learn(lines, "bpe", 400, symbols=symbols)


@pytest.fixture(scope="module")
def dictionary(vocabulary):
    return learn(map(trees.read_one, TREES), vocabulary)


def tags_of(dictionary, vocabulary, lines):
    """Returns, per line, the sorted tags that each of its words may have."""
    ids = tf.ragged.constant(vocabulary.encode(lines), tf.int32).to_tensor()
    starts_V = np.array(
        ["\u2581" in t for t in vocabulary.tokens(range(vocabulary.size))]
    )
    names = {i: name for name, i in vocabulary.control_symbols.items()}
    found = dictionary.tags(ids, starts_V).numpy()
    return [
        [
            sorted(names[i] for i in np.flatnonzero(tags_T))
            for tags_T in tags_NT[: len(line.split())]
        ]
        for tags_NT, line in zip(found, lines, strict=True)
    ]


def test_tags_that_leave_a_word_none_are_refused(dictionary, tmp_path):
    path = tmp_path / "tags.npz"
    dictionary.save(path)
    assert TagDictionary.load(path).may_have_RT.any(axis=1).all()
    broken = dictionary.may_have_RT.copy()
    broken[7] = False
    TagDictionary(broken).save(path)
    with pytest.raises(InputError, match="some kind of word has no tags"):
        TagDictionary.load(path)


def test_words_that_are_often_seen_have_the_tags_that_they_showed(
    dictionary, vocabulary
):
    lines = ["the cat sleeps .", ". the", "sleeps"]
    assert tags_of(dictionary, vocabulary, lines) == [
        [["DT"], ["NN"], ["NN", "VBZ"], ["."]],
        [["."], ["DT"]],
        [["NN", "VBZ"]],
    ]


def test_a_word_that_is_hardly_known_has_the_tags_of_new_words_too(
    dictionary, vocabulary
):
    # The tags of words that were seen once, and the word's own.
    ((new, dog, once),) = tags_of(dictionary, vocabulary, ["Qq dog zebras"])
    assert new == dog == once == ["JJ", "NN", "NNS"]


def random_treebank(generator, num_words, num_trees):
    """Returns Trees over words of few letters, each with one or two tags."""
    words = {
        "".join(generator.choices("abcde", k=generator.randint(1, 7))): (
            generator.choices(TAGS, k=2)
        )
        for _ in range(num_words)
    }
    chosen = generator.choices(list(words), k=num_trees * 5)
    leaves = [
        trees.Tree(generator.choice(words[word]), (word,)) for word in chosen
    ]
    return [
        random_tree(generator, leaves[n : n + 5])
        for n in range(0, len(leaves), 5)
    ]


def test_each_word_may_have_the_tag_that_its_own_treebank_gives_it():
    treebank = random_treebank(random.Random(3), num_words=99, num_trees=200)
    lines = [" ".join(trees.words(tree)) for tree in treebank]
    vocabulary = learning.learn(
        lines, "bpe", 400, symbols=trees.symbols(treebank)
    )
    dictionary = learn(treebank, vocabulary)
    found = tags_of(dictionary, vocabulary, lines)
    sizes = [len(tags) for tags in itertools.chain(*found)]
    assert min(sizes) == 1
    assert np.mean(sizes) < len(TAGS) / 2
    for tree, tags_N in zip(treebank, found, strict=True):
        for tag, tags in zip(trees.tags(tree), tags_N, strict=True):
            assert tag in tags


def test_it_comes_back_from_its_file(dictionary, tmp_path):
    dictionary.save(tmp_path / "tags.npz")
    loaded = TagDictionary.load(tmp_path / "tags.npz")
    np.testing.assert_array_equal(loaded.may_have_RT, dictionary.may_have_RT)
    assert [path.name for path in tmp_path.iterdir()] == ["tags.npz"]


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_a_file_that_is_cut_short_is_refused(dictionary, tmp_path, part):
    path = tmp_path / "tags.npz"
    dictionary.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(InputError, match="cannot read the tags of words"):
        TagDictionary.load(path)


@pytest.mark.parametrize("save", [np.save, np.savez])
def test_a_file_of_other_arrays_is_refused(save, tmp_path):
    path = tmp_path / "tags.npz"
    with open(path, "wb") as file:
        save(file, **{"arr" if save is np.save else "may_have": np.ones(3)})
    with pytest.raises(InputError, match="cannot read the tags of words"):
        TagDictionary.load(path)


def test_tags_of_another_vocabulary_are_refused(dictionary, vocabulary):
    other = TagDictionary(dictionary.may_have_RT[:, :3])
    require_fits(dictionary, vocabulary)
    with pytest.raises(InputError, match="put back the tags"):
        require_fits(other, vocabulary)


@pytest.mark.parametrize("content", [None, b"", b"PK no", b"no zip"])
def test_a_file_that_is_none_is_refused(content, tmp_path):
    path = tmp_path / "tags.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="cannot read the tags of") as error:
        TagDictionary.load(path)
    assert "pickle" not in str(error.value)  # np.load would suggest it.
