"""Treebanks are corpora: tree files, the Wall Street Journal, and mixtures."""

import logging

import pytest
from written_trees import LAYOUTS, refusal, sentences, write, write_wsj

from t2t_lite.parsing import trees
from t2t_lite_data import corpora, treebanks

MRG = """
( (S
    (NP-SBJ-1 (NNP Mr.) (NNP Vinken) )
    (VP (VBZ is)
      (NP (-NONE- *-1) ))
    (. .) ))

( (NP (-LRB- -LRB-) (NN a\u00a0b) ))
"""
MRG_PAIRS = [
    (
        "Mr. Vinken is .",
        "(TOP (S (NP (NNP Mr.) (NNP Vinken)) (VP (VBZ is)) (. .)))",
    ),
    ("-LRB- a\u00a0b", "(TOP (NP (-LRB- -LRB-) (NN a\u00a0b)))"),
]


# Tree files.


@pytest.mark.parametrize("name", ["a.mrg", "a.mrg.gz"])
def test_a_pair_is_a_sentence_and_its_normalized_tree(folder, name):
    write(name, text=MRG)
    assert list(treebanks.pairs([name])) == MRG_PAIRS


def test_a_tree_of_a_pair_has_the_words_of_its_sentence(folder):
    write("a.mrg", text=MRG)
    for sentence, line in treebanks.pairs(["a.mrg"]):
        (tree,) = trees.read(line)
        assert trees.words(tree) == sentence.split(" ")
        assert trees.normalize(tree) == tree


def test_trees_without_words_are_left_out_and_counted(folder, caplog):
    trace = "( (S (-NONE- *) ))\n"
    write("a.mrg", text=trace + "(NN a)\n" + trace)
    write("b.mrg", text=trace + "(NN b)\n")
    with caplog.at_level(logging.WARNING, logger="absl"):
        pairs = list(treebanks.pairs(["a.mrg", "b.mrg"]))
    assert [sentence for sentence, _ in pairs] == ["a", "b"]
    assert "Left out 3 trees that hold only traces." in caplog.text


def test_nothing_is_logged_where_all_trees_have_words(folder, caplog):
    write("a.mrg", text=MRG)
    list(treebanks.pairs(["a.mrg"]))
    assert not caplog.text


def test_a_wrong_tree_is_refused_with_its_file_and_line(folder):
    write("a.mrg", text="(NN a)\n(NN b))\n")
    pairs = treebanks.pairs(["a.mrg"])
    assert [next(pairs)[0], next(pairs)[0]] == ["a", "b"]
    assert refusal(next, pairs) == (
        "a.mrg, line 2: a closing bracket stands outside of any tree"
    )


def test_tree_files_become_a_corpus(folder):
    write("gum/train-1.ptb", "a")
    write("gum/train-0.ptb.gz", "b")
    write("gum/more.ptb", "c")
    write("gum/dev.ptb", "d")
    corpus = corpora.from_tree_files(
        train="gum/train-*,gum/more.ptb", dev="gum/dev.ptb", test=""
    )
    assert corpus.name == "gum-train-0.ptb"
    assert corpus.source_language == "words"
    assert corpus.target_language == "trees"
    assert corpus.splits == ("train", "dev")
    assert sentences(corpus, "train") == ["b", "a", "c"]
    assert sentences(corpus, "dev") == ["d"]
    assert sentences(corpus, "train") == ["b", "a", "c"]


def test_missing_tree_files_are_refused_at_once(folder):
    assert refusal(corpora.from_tree_files) == (
        "no treebank files; give them with --train_trees"
    )
    assert refusal(corpora.from_tree_files, train="none") == (
        "no file matches 'none'; check the path"
    )


def test_a_split_without_tree_files_is_refused_with_its_flag(folder):
    write("a.mrg", "a")
    corpus = corpora.from_tree_files(train="a.mrg")
    assert refusal(corpus.pairs, "dev") == (
        "no dev files; give them with --dev_trees"
    )
    assert "received 'valid'" in refusal(corpus.pairs, "valid")


# The Wall Street Journal.


@pytest.mark.parametrize("layout", LAYOUTS)
def test_wsj_has_the_sections_that_results_are_published_on(folder, layout):
    write_wsj("ptb", layout)
    corpus = corpora.named("wsj", {"wsj_dir": "ptb"})
    assert corpus.name == "wsj"
    assert corpus.splits == corpora.SPLITS
    assert sentences(corpus, "train") == [f"of{n:02}" for n in range(2, 22)]
    assert sentences(corpus, "dev") == ["of22"]
    assert sentences(corpus, "test") == ["of23"]


def test_the_files_of_a_section_are_read_in_order(folder):
    write_wsj("ptb")
    write("ptb/23/wsj_2300.mrg", "first")
    write("ptb/23/wsj_2302.mrg", text=MRG)
    write("ptb/23/readme", text="not trees")
    corpus = corpora.named("wsj", {"wsj_dir": "ptb"})
    assert sentences(corpus, "test") == [
        "first",
        "of23",
        *(sentence for sentence, _ in MRG_PAIRS),
    ]


@pytest.mark.parametrize(
    ("sections", "missing"),
    [([], "02"), ([0, 1, 24], "02"), ([*range(12), *range(13, 25)], "12")],
)
def test_a_missing_section_is_refused_at_once(folder, sections, missing):
    write_wsj("ptb", sections=sections)
    line = refusal(corpora.named, "wsj", {"wsj_dir": "ptb"})
    assert line.startswith(
        "--wsj_dir=ptb must hold the Penn Treebank's Wall Street Journal"
    )
    assert "files, such as 02/wsj_0201.mrg" in line
    assert f"section {missing} has no files (the treebank needs" in line
    assert "license: LDC99T42" in line


@pytest.mark.parametrize("missing", [22, 23])
def test_dev_and_test_are_looked_for_at_once(folder, missing):
    write_wsj("ptb", sections=set(range(25)) - {missing})
    line = refusal(corpora.named, "wsj", {"wsj_dir": "ptb"})
    assert f"section {missing} has no files" in line


@pytest.mark.parametrize(
    ("name", "flag"),
    [("wsj", "wsj_dir"), ("high_confidence", "high_confidence_trees")],
)
def test_a_corpus_somewhere_needs_the_flag_that_says_where(name, flag):
    assert refusal(corpora.named, name) == (
        f"--corpus={name} needs --{flag}, its location"
    )


# Mixtures.


def test_high_confidence_trees_are_added_to_the_training_trees(folder):
    write_wsj("ptb")
    write("parsed.mrg", "x", "y")
    places = {"wsj_dir": "ptb", "high_confidence_trees": "parsed.mrg"}
    corpus = corpora.named("wsj,high_confidence", places)
    assert corpus.name == "wsj-high_confidence"
    assert corpus.splits == corpora.SPLITS
    assert sentences(corpus, "train")[-3:] == ["of21", "x", "y"]
    assert len(sentences(corpus, "train")) == 22
    assert sentences(corpus, "test") == ["of23"]
    swapped = corpora.named("high_confidence,wsj", places)
    assert sentences(swapped, "train")[:3] == ["x", "y", "of02"]
    assert sentences(swapped, "dev") == ["of22"]


def test_dev_and_test_of_a_mixture_are_of_the_first_that_has_them(folder):
    for name in ("a", "b", "c"):
        write(f"{name}.mrg", name)
    corpus = corpora.mixed(
        [
            corpora.from_tree_files(dev="a.mrg"),
            corpora.from_tree_files(train="b.mrg", test="b.mrg"),
            corpora.from_tree_files(train="c.mrg", dev="c.mrg", test="c.mrg"),
        ]
    )
    assert sentences(corpus, "train") == ["b", "c"]
    assert sentences(corpus, "dev") == ["a"]
    assert sentences(corpus, "test") == ["b"]


def test_a_mixture_lacks_what_all_its_corpora_lack(folder):
    write("a.mrg", "a")
    corpus = corpora.mixed(2 * [corpora.from_tree_files(train="a.mrg")])
    assert corpus.splits == ("train",)
    assert refusal(corpus.pairs, "dev").startswith("no dev files; give them")


def test_corpora_of_other_languages_are_not_mixed(folder):
    write("a.mrg", "a")
    line = refusal(
        corpora.named,
        "embedded,high_confidence",
        {"high_confidence_trees": "a.mrg"},
    )
    assert line == (
        "corpora that are mixed must have the same languages; received "
        "embedded (en-de), high_confidence (words-trees)"
    )
