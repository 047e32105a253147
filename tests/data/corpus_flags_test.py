"""The flags that name a corpus: of trees, of places, and of weights."""

import pytest
from absl import flags
from written_trees import refusal, sentences, write, write_wsj

from t2t_lite.errors import InputError
from t2t_lite_data import corpus_flags


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
    assert refusal(given, "--corpus_weights=1,2") == (
        "--corpus_weights needs corpora to weigh: give --corpus, "
        "--train_source and --train_target, or --train_trees"
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
