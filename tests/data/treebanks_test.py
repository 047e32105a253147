"""Treebanks are corpora: tree files, the Wall Street Journal, and mixtures."""

import gzip
import logging
import pathlib

import pytest
from absl import flags

from t2t_lite.errors import InputError
from t2t_lite.parsing import trees
from t2t_lite_data import corpora, corpus_flags, treebanks

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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path, *words, text=None):
    """Writes a file with a tree for each word, or with the given text."""
    text = text or "".join(f"( (NN {word}))\n" for word in words)
    content = text.encode()
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    gzipped = path.suffix == ".gz"
    path.write_bytes(gzip.compress(content) if gzipped else content)


def sentences(corpus, split):
    return [sentence for sentence, _ in corpus.pairs(split)]


def refusal(function, *args, **kwargs):
    """Returns the one-line message of the InputError that a function raises."""
    with pytest.raises(InputError) as raised:
        function(*args, **kwargs)
    assert "\n" not in str(raised.value)
    return str(raised.value)


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

LAYOUTS = [
    "{:02}/wsj_{:02}01.mrg",
    "wsj/{:02}/wsj_{:02}01.mrg",
    "parsed/mrg/wsj/{:02}/wsj_{:02}01.mrg",
    "PARSED/MRG/WSJ/{:02}/WSJ_{:02}01.MRG",
    "{:02}/wsj_{:02}01.mrg.gz",
]


def write_wsj(directory, layout=LAYOUTS[0], sections=range(25)):
    for section in sections:
        name = layout.format(section, section)
        write(f"{directory}/{name}", f"of{section:02}")


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
        *("first", "of23", *(sentence for sentence, _ in MRG_PAIRS)),
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


# Flags.


@pytest.fixture
def given(monkeypatch):
    """A function that returns corpus_flags.given_flags() of a command line."""

    def given(*arguments):
        values = flags.FlagValues()
        monkeypatch.setattr(flags, "FLAGS", values)
        monkeypatch.setattr(
            flags,
            "DEFINE_string",
            lambda *args: defined(*args, flag_values=values),
        )
        corpus_flags.define()
        corpus_flags.define_weights()
        values(["program", *arguments])
        return corpus_flags.given_flags()

    defined = flags.DEFINE_string
    return given


def test_flags_of_trees_name_the_corpus_from_any_folder(
    folder, given, monkeypatch
):
    write("train.mrg", "a")
    write("more.mrg", "b")
    write("test,x.mrg", "c")
    names = given("--train_trees=train.mrg,m*.mrg", "--test_trees=test,x.mrg")
    assert names == {
        "train_trees": f"{folder}/train.mrg,{folder}/m*.mrg",
        "test_trees": f"{folder}/test,x.mrg",
    }
    monkeypatch.chdir("/")
    corpus = corpus_flags.find_corpus(names)
    assert corpus.splits == ("train", "test")
    assert sentences(corpus, "train") == ["a", "b"]
    assert sentences(corpus, "test") == ["c"]


def test_flags_of_places_name_the_corpus_from_any_folder(
    folder, given, monkeypatch
):
    write_wsj("ptb")
    write("x.mrg", "x")
    names = given(
        "--corpus=wsj,high_confidence",
        "--wsj_dir=ptb",
        "--high_confidence_trees=x.mrg",
    )
    assert names == {
        "corpus": "wsj,high_confidence",
        "wsj_dir": f"{folder}/ptb",
        "high_confidence_trees": f"{folder}/x.mrg",
    }
    monkeypatch.chdir("/")
    corpus = corpus_flags.find_corpus(names)
    assert sentences(corpus, "train")[-2:] == ["of21", "x"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--corpus=wsj", "--train_trees=a"],
            "give only one of --corpus, text files and treebank files; "
            "received --corpus=wsj and --train_trees=",
        ),
        (
            ["--dev_trees=a", "--train_source=b"],
            "received --train_source=",
        ),
        (
            ["--corpus=embedded", "--wsj_dir=a"],
            "--wsj_dir is for the corpus wsj; add wsj to --corpus",
        ),
        (["--wsj_dir=a"], "add wsj to --corpus"),
        (
            ["--corpus=wsj", "--wsj_dir=a", "--high_confidence_trees=b"],
            "add high_confidence to --corpus",
        ),
        (["--corpus=wjs"], "did you mean 'wsj'?"),
        (["--corpus=wsj,"], "unknown corpus ''; the corpora are"),
        (["--corpus=wsj", "--wsj_dir=none"], "none must hold the Penn Tree"),
    ],
)
def test_wrong_flags_are_refused(folder, given, arguments, message):
    if message.startswith("unknown"):
        write_wsj("ptb")
        arguments = [*arguments, "--wsj_dir=ptb"]
    assert message in refusal(corpus_flags.find_corpus, given(*arguments))


def test_each_pattern_of_trees_has_a_weight(folder, given):
    write("a.mrg", "a")
    write("b1.mrg", "b")
    write("b2.mrg", "c")
    names = given("--train_trees=b*.mrg,a.mrg", "--corpus_weights=1,2")
    corpus = corpus_flags.find_corpus(names)
    assert corpus.weights == (1.0, 2.0)
    assert [
        [sentence for sentence, _ in read()] for read in corpus.train_parts
    ] == [["b", "c"], ["a"]]


def test_weights_of_nothing_are_refused(given):
    assert "--corpus_weights needs what it weighs" in refusal(
        given, "--corpus_weights=1,2"
    )


def test_a_corpus_of_a_run_that_is_gone_is_called_so(folder, given):
    write("test.mrg", "a")
    given()
    names = {"train_trees": f"{folder}/gone.mrg"}
    message = (
        "cannot read the text that the model was trained with: .*gone.mrg.*; "
        "or give text to score"
    )
    with pytest.raises(InputError, match=message):
        corpus_flags.scored_corpus(names)
    with pytest.raises(InputError, match="records no corpus: give"):
        corpus_flags.scored_corpus({})
    given("--test_trees=test.mrg")
    assert corpus_flags.scored_corpus(names).splits == ("test",)
