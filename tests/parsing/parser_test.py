"""Parsers find trees over exactly the words, and a run learns to parse."""

import collections
import dataclasses
import functools
import itertools
import random

import pytest
import tensorflow as tf
from random_trees import random_leaves, random_tree
from tiny_models import tiny_transformer

from t2t_lite import tasks
from t2t_lite.decoding import search as decoding
from t2t_lite.decoding import translation
from t2t_lite.errors import InputError
from t2t_lite.evaluation.card import make_card
from t2t_lite.evaluation.report import evaluate
from t2t_lite.hparams import HParams
from t2t_lite.parsing import encoding, tag_dictionary, trees
from t2t_lite.parsing import parser as parsing
from t2t_lite.serving import export
from t2t_lite.serving import signatures as serving
from t2t_lite.storage import model_directory
from t2t_lite.text import learning
from t2t_lite.training import run
from t2t_lite.training.options import RunOptions
from t2t_lite.training.training_text import TrainingText

TREES = [
    "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .)))",
    "(TOP (S (NP (PRP it)) (VP (VBD saw) (NP (DT a) (NN dog))) (. .)))",
    "(TOP (NP (DT the) (NN dog)))",
    "(TOP (UH oh))",
    "(TOP (S (NP (DT a) (NN cat)) (VP (VBD saw) (NP (DT the) (NN dog)))))",
]
WORDS = [" ".join(trees.words(trees.read_one(line))) for line in TREES]
PARSING = HParams(
    task="parsing",
    num_layers=1,
    d_model=32,
    d_ff=64,
    num_heads=2,
    d_k=16,
    d_v=16,
    dropout=0.0,
    tokens_per_batch=96,
    num_buckets=1,
    max_length=48,
    warmup_steps=40,
    steps=120,
    learning_rate_scale=1.0,
    beam_width=4,
    length_penalty=0.3,
    max_extra_length=40,
    average_last=1,
)
WIDE = {"beam_width": 9, "max_extra_length": 80}


@pytest.fixture(scope="module")
def vocabulary():
    symbols = trees.symbols(map(trees.read_one, TREES))
    return learning.learn(WORDS * 9, "bpe", 2000, symbols)


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
        xla,
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


def test_a_run_refuses_a_vocabulary_of_the_other_task(tmp_path, vocabulary):
    pairs = list(zip(WORDS, TREES, strict=True))
    learning.learn(WORDS * 9, "bpe", 2000).save(tmp_path / "words.model")
    vocabulary.save(tmp_path / "trees.model")
    for task, name in (("parsing", "words"), ("translation", "trees")):
        hparams = dataclasses.replace(PARSING, task=task)
        options = RunOptions(vocabulary=tmp_path / f"{name}.model")
        with pytest.raises(InputError, match=f"a vocabulary for {task} must"):
            run.train(tmp_path / "run", hparams, text_of(pairs), options)


def test_a_run_refuses_a_vocabulary_without_its_labels(tmp_path, vocabulary):
    vocabulary.save(tmp_path / "trees.model")
    pairs = [*zip(WORDS, TREES, strict=True), ("oh", "(TOP (INTJ (UH oh)))")]
    options = RunOptions(vocabulary=tmp_path / "trees.model")
    with pytest.raises(InputError, match=r"lacks 2 of the symbols.*\(INTJ"):
        run.train(tmp_path / "run", PARSING, text_of(pairs), options)
    assert not (tmp_path / "run").exists()


# Symbols in a vocabulary.


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
    odd = learning.learn(WORDS * 9, "bpe", 2000, symbols)
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


# A training run.


def test_a_sentence_that_evalb_leaves_out_makes_no_model_better():
    """Its period is not tagged as punctuation, so EVALB sees other words."""
    wrong = TREES[0].replace("(. .)", "(DT .)")
    task = tasks.task_of(PARSING)
    assert task.scores([wrong, TREES[1]], TREES[:2])["f1"].value == 100
    # 4 of 7 brackets are found, and no others count: 2 * 4 / (4 + 7).
    score = task.score([wrong, TREES[1]], TREES[:2])
    assert score.value == pytest.approx(800 / 11)


def text_of(pairs):
    return TrainingText(
        {"corpus": "of this test"},
        {split: lambda: pairs for split in ("train", "dev")},
    )


@pytest.mark.slow
def test_a_run_learns_to_parse_and_its_directory_parses(tmp_path):
    pairs = list(zip(WORDS, TREES, strict=True)) * 4
    pairs.append(("", ""))  # As from a blank line at the end of a file.
    hparams = dataclasses.replace(
        PARSING, vocabulary_size=2000, tag_dictionary=True
    )
    options = RunOptions(save_every_steps=60, evaluate_every_steps=120)
    report = run.train(
        tmp_path / "run", hparams, text_of(pairs), options
    ).report
    assert "dev F1 of all 100.00 (EVALB, COLLINS.prm, 21 sentences" in report
    assert "0 errors, 1 skips)" in report
    parser = tasks.open_model(tmp_path / "run", checkpoint="best")
    assert parser(WORDS) == TREES
    directory = model_directory.ModelDirectory(tmp_path / "run")
    task = tasks.task_of(hparams)
    report = evaluate(
        parser,
        {"dev": pairs},
        score=task.scores,
        encode_targets=functools.partial(
            task.encode_targets, parser.vocabulary
        ),
    )
    text = make_card(report, directory, parser).as_markdown()
    assert "| F1 of all | 100.00 |" in text
    assert "EVALB" in text
    assert "bootstrap" not in text
    with pytest.raises(InputError, match="was trained for parsing"):
        translation.Translator(directory.path)
    options = serving.ServingOptions(
        decoding.SearchOptions.from_hparams(hparams), 48
    )
    with pytest.raises(InputError, match="was trained for parsing"):
        export.export(directory, tmp_path / "export", options)
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("the cat", "outside of any tree"),
        ("(TOP (NN cat)) (TOP (NN cat))", "must be one tree"),
        ("(TOP (NN dog))", "must be the tree of the source line's words"),
    ],
)
def test_a_target_that_is_not_the_words_tree_is_refused(
    tmp_path, target, message
):
    text = text_of([("cat", target)])
    with pytest.raises(InputError, match=message):
        run.train(tmp_path / "run", PARSING, text, RunOptions())
    assert not (tmp_path / "run").exists()


def test_only_ascii_white_space_separates_words():
    pair = ("10\u00a0km off", "(TOP (CD 10\u00a0km) (RB off))")
    check = tasks.task_of(PARSING).check_pair
    assert check(*pair) == pair
    assert check("", " ") == ("", "")


def test_targets_are_learned_from_as_normalized_trees():
    pair = (
        "it saw",
        "((S (NP-SBJ-1 (PRP it)) (VP (VBD saw) (NP (-NONE- *T*)))))",
    )
    check = tasks.task_of(PARSING).check_pair
    assert check(*pair) == (
        "it saw",
        "(TOP (S (NP (PRP it)) (VP (VBD saw))))",
    )


def test_random_trees_survive_the_vocabulary():
    rng = random.Random(0)
    some = [random_tree(rng, random_leaves(rng, n)) for n in range(1, 30)]
    vocabulary = learning.learn(["a b c"] * 9, "bpe", 2000, trees.symbols(some))
    names = {i: name for name, i in vocabulary.control_symbols.items()}
    for tree, ids in zip(
        some,
        encoding.encode_trees(vocabulary, map(trees.write, some)),
        strict=True,
    ):
        symbols = [names[i] for i in ids[:-1]]
        assert trees.delinearize(symbols, trees.words(tree)) == tree


@pytest.mark.parametrize("lines", ["a dog", None, [b"a dog"]])
def test_what_is_no_list_is_not_parsed(parser, lines):
    with pytest.raises(TypeError, match="lines must be a list of str; receiv"):
        parser.translate(lines)


def test_a_parser_is_compiled_or_not(vocabulary):
    with pytest.raises(InputError, match="xla must be True, False or None"):
        parser_of(vocabulary, xla="yes")
