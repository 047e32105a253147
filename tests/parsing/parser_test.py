"""Parsers find trees over exactly the words."""

import collections
import dataclasses
import functools
import itertools
import random

import pytest
import tensorflow as tf
from tiny_models import tiny_transformer
from tiny_trees import PARSING, TREES, WORDS

from t2t_lite.decoding import search as decoding
from t2t_lite.errors import InputError
from t2t_lite.parsing import encoding, tag_dictionary, trees
from t2t_lite.parsing import parser as parsing
from t2t_lite.text import learning

WIDE = {"beam_width": 9, "max_extra_length": 80}


def parser_of(
    vocabulary,
    hparams=PARSING,
    seed=0,
    tag_dictionary=None,
    xla=False,
    devices=(),
    **options,
):
    """Returns a parser with random weights."""
    model = tiny_transformer(
        hparams,
        seed,
        vocabulary_size=vocabulary.size,
        num_target_ids=encoding.num_target_ids(vocabulary),
    )
    options = decoding.SearchOptions.from_hparams(hparams, **options)
    return parsing.LineParser(
        model,
        vocabulary,
        options,
        xla=xla,
        tag_dictionary=tag_dictionary,
        devices=devices,
    )


@pytest.fixture(scope="module")
def parser(vocabulary):
    return parser_of(vocabulary, nbest=3)


def assert_parses(line, words):
    """Asserts that a line is a normalized tree of the words."""
    tree = trees.read_one(line)
    assert trees.words(tree) == words
    assert trees.normalize(tree) == tree


@functools.cache
def random_lines():
    """Returns lines of 1, 3, ..., 59 words."""
    rng, words = random.Random(0), WORDS[0].split()
    return [" ".join(rng.choices(words, k=n)) for n in range(1, 60, 2)]


@pytest.fixture(scope="module")
def parsed(vocabulary):
    """The trees of `random_lines`, by a wide beam with ample room."""
    return parser_of(vocabulary, **WIDE)(random_lines())


@pytest.mark.slow
def test_every_output_is_a_tree_over_exactly_the_words(parsed):
    for line, tree in zip(random_lines(), parsed, strict=True):
        assert_parses(tree, line.split())
    assert len({tree.count("(") for tree in parsed}) > 15


@pytest.mark.slow
def test_xla_changes_no_tree(vocabulary, parsed):
    """With XLA the cache has a fixed size; otherwise it grows with the tree."""
    some = slice(8, 11)
    compiled = parser_of(vocabulary, xla=True, **WIDE)(random_lines()[some])
    assert compiled == parsed[some]


@pytest.fixture(scope="module")
def cramped(vocabulary):
    """A parser with few positions and room for the outermost brackets only."""
    hparams = dataclasses.replace(
        PARSING, positions="learned", learned_positions=10, max_length=10
    )
    return parser_of(vocabulary, hparams, max_extra_length=2, seed=2)


@pytest.fixture(scope="module")
def treebank():
    return [trees.read_one(line) for line in TREES] * 5


@pytest.fixture(scope="module")
def strict(vocabulary, treebank):
    """A parser with a tag dictionary and room for few brackets."""
    dictionary = tag_dictionary.learn(treebank, vocabulary)
    return parser_of(vocabulary, tag_dictionary=dictionary, max_extra_length=7)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cramped", "strict"])
def test_output_is_whole_where_there_is_little_room(request, name):
    parser = request.getfixturevalue(name)
    for line, tree in zip(WORDS, parser(WORDS), strict=True):
        assert_parses(tree, line.split())


@pytest.mark.slow
def test_words_have_only_the_tags_of_a_dictionary(strict, parser, treebank):
    shown = collections.defaultdict(set)
    for leaf in itertools.chain(*map(trees.pre_terminals, treebank)):
        shown[leaf.children[0]].add(leaf.label)

    def wrong_tags(parser):
        for line, found in zip(WORDS, parser(WORDS), strict=True):
            assert_parses(found, line.split())
            for leaf in trees.pre_terminals(trees.read_one(found)):
                if leaf.label not in shown[leaf.children[0]]:
                    yield leaf

    assert not list(wrong_tags(strict))
    assert len(list(wrong_tags(parser))) > 5


@pytest.mark.slow
def test_two_devices_find_the_trees_of_one(vocabulary, parser):
    devices = ["/device:CPU:0"] * 2  # Tests have only one device.
    two = parser_of(vocabulary, nbest=3, devices=devices)
    lines = ["", *WORDS, WORDS[0] * 3, "  "]
    assert list(two.stream(lines, 2)) == list(parser.stream(lines, 2))


def test_the_hash_of_a_parser_is_that_of_its_dictionary_too(vocabulary):
    treebank = [trees.read_one(line) for line in TREES]
    dictionaries = [None]
    for known in (treebank, treebank[:1]):
        dictionaries.append(tag_dictionary.learn(known, vocabulary))
    found = {
        parser_of(vocabulary, tag_dictionary=each).sha256()
        for each in dictionaries
    }
    assert len(found) == 3


def test_odd_words_come_back(parser):
    words = [
        "na\u00efve",
        "\u2581",
        "a\u2581b",
        "\U0001f600",
        "x\u00a0y",
        "<NN>",
        "(NP",
    ]
    assert_parses(
        parser(" ".join(words)), [*words[:-1], trees.escape(words[-1])]
    )
    assert_parses(parser("  the \t cat  "), ["the", "cat"])


def test_parentheses_are_parsed_as_a_treebank_writes_them(parser):
    texts = ["the ( cat )", "the -LRB- cat -RRB-"]
    found, scores = parser(texts, with_scores=True)
    assert found[0] == found[1]
    assert scores[0] == scores[1]


def test_a_blank_line_has_a_blank_tree_and_a_list_keeps_its_order(parser):
    lines = ["", *WORDS, "  "]
    found = parser(lines)
    assert found[0] == found[-1] == ""
    assert found[1:-1] == [parser(line) for line in WORDS]
    assert parser([]) == []


def test_scores_and_n_best_are_those_of_trees(parser):
    (found,) = parser.translate([WORDS[1]])
    assert len({t.text for t in found}) == 3
    assert found[0].score >= found[1].score >= found[2].score
    best, score = parser(WORDS[1], with_scores=True)
    assert (best, score) == found[0]


def test_a_string_tensor_is_refused(parser):
    with pytest.raises(TypeError, match="a str or a list of str"):
        parser(tf.constant(["the cat"]))


@pytest.mark.slow
def test_learned_positions_end_with_a_message(cramped):
    assert_parses(cramped("the cat"), ["the", "cat"])
    with pytest.raises(InputError, match=r"line 2 has 9 .* leave room for 8"):
        cramped(["the", "the cat " * 4])


def test_a_vocabulary_without_trees_is_no_parsers(vocabulary):
    without = learning.learn(WORDS * 9, "bpe", 2000)
    with pytest.raises(InputError, match="task=parsing"):
        parser_of(without)


def test_a_search_without_room_for_brackets_is_refused(vocabulary):
    with pytest.raises(InputError, match=r"at least 2 to parse.*=1"):
        parser_of(vocabulary, max_extra_length=1)


@pytest.mark.parametrize("lines", ["a dog", None, [b"a dog"]])
def test_what_is_no_list_is_not_parsed(parser, lines):
    with pytest.raises(TypeError, match="lines must be a list of str; receiv"):
        parser.translate(lines)


def test_a_parser_is_compiled_or_not(vocabulary):
    with pytest.raises(InputError, match="xla must be True, False or None"):
        parser_of(vocabulary, xla="yes")


def test_a_parser_in_int8_that_is_not_compiled_is_refused_at_once(parser):
    model = type(parser.model).from_config(parser.model.get_config())
    model.build()
    model.search_in_int8()
    with pytest.raises(InputError, match="that XLA compiles: give xla=True"):
        parsing.LineParser(model, parser.vocabulary, parser.options)
