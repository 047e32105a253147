"""Corpora: by their names, of text files, and with weights."""

import os
import subprocess
import sys

import pytest
from paths import ROOT
from written_text import write

from t2t_lite.errors import InputError
from t2t_lite_data import corpora, embedded


def test_every_corpus_is_called_by_its_name():
    assert corpora.DEFAULT in corpora.CORPORA
    for name, corpus in corpora.CORPORA.items():
        assert corpora.named(name) is corpus
        assert corpus.name == name


def test_an_unknown_corpus_is_refused_with_the_nearest():
    with pytest.raises(InputError) as refusal:
        corpora.named("wmt14-en-de")
    assert str(refusal.value) == (
        "unknown corpus 'wmt14-en-de' (did you mean 'wmt14_en_de'?); the "
        "corpora are embedded, wmt14_en_de, wmt14_en_fr, wsj, high_confidence, "
        "and files of your own go in --train_source and --train_target, or in "
        "--train_trees"
    )


def test_a_name_like_no_other_is_refused_without_a_guess():
    with pytest.raises(InputError, match="unknown corpus 'x'; the corpora are"):
        corpora.named("x")


@pytest.fixture
def small_embedded(monkeypatch):
    """Makes the embedded corpus draw only one training pair."""
    monkeypatch.setitem(embedded.SIZES, "train", 1)
    uncached = embedded.drawn_until.__wrapped__
    monkeypatch.setattr(embedded, "drawn_until", uncached)


@pytest.mark.usefixtures("small_embedded")
@pytest.mark.parametrize("split", corpora.SPLITS)
def test_the_embedded_corpus_has_every_split(split):
    pairs = list(corpora.named("embedded").pairs(split))
    assert len(pairs) == embedded.SIZES[split]


def test_the_embedded_corpus_brings_its_plain_sentences():
    checks = corpora.named("embedded").read_checks()
    assert {name: len(rows) for name, rows in checks.items()} == {
        "plain_sentences": 200,
        "unknown_words": 20,
    }


def test_other_corpora_bring_no_checks(tmp_path):
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("one\n", "utf-8")
    files = (str(tmp_path / "a.en"), str(tmp_path / "a.de"))
    assert corpora.from_text_files(train=files).read_checks() == {}
    assert corpora.named("wmt14_en_de").read_checks() == {}


def test_text_files_become_a_corpus_that_can_be_read_again(folder):
    write(t_en=b"one\n", t_de=b"eins\n", d_en=b"two\n", d_de=b"zwei\n")
    corpus = corpora.from_text_files(
        train=("t.en", "t.de"), dev=("d.en", "d.de"), test=(None, None)
    )
    assert list(corpus.pairs("train")) == [("one", "eins")]
    assert list(corpus.pairs("dev")) == [("two", "zwei")]
    assert list(corpus.pairs("train")) == [("one", "eins")]


@pytest.mark.parametrize(
    ("source", "target", "name", "languages"),
    [
        ("tr.en", "tr.de", "multi30k-tr.en-de", ("en", "de")),
        ("tr.en.gz", "tr.fr.gz", "multi30k-tr.en-fr", ("en", "fr")),
        ("*-0.en,tr.en", "tr.de,tr.de", "multi30k-p-0.en-de", ("en", "de")),
        ("my src", "tgt", "multi30k-my_src-tgt", ("my src", "tgt")),
    ],
)
def test_a_corpus_of_files_is_called_by_its_first_files(
    folder, source, target, name, languages
):
    directory = folder / "multi30k"
    directory.mkdir()
    os.chdir(directory)
    files = ["tr.en", "tr.de", "p-0.en", "my src", "tgt"]
    for file in [*files, "tr.en.gz", "tr.fr.gz"]:
        (directory / file).touch()
    corpus = corpora.from_text_files(train=(source, target))
    assert corpus.name == name
    assert (corpus.source_language, corpus.target_language) == languages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no text files; give them with --train_source and --train_target"),
        ({"train": ("", "")}, "no text files; give them with --train_source"),
        (
            {"train": ("a.en", None)},
            "--train_source needs --train_target, which is not given",
        ),
        (
            {"train": ("a.en", "a.de"), "dev": ("", "a.de")},
            "--dev_target needs --dev_source, which is not given",
        ),
        (
            {"train": ("a.en", "a.de"), "test": ("a.en", "none")},
            "no file matches 'none'; check the path",
        ),
    ],
)
def test_incomplete_text_files_are_refused_at_once(folder, arguments, message):
    write(a_en=b"one\n", a_de=b"eins\n")
    with pytest.raises(InputError) as refusal:
        corpora.from_text_files(**arguments)
    assert message in str(refusal.value)


def test_an_absent_split_is_refused_with_its_flags(folder):
    write(a_en=b"one\n", a_de=b"eins\n")
    corpus = corpora.from_text_files(train=("a.en", "a.de"))
    with pytest.raises(InputError) as refusal:
        corpus.pairs("dev")
    assert str(refusal.value) == (
        "no dev files; give them with --dev_source and --dev_target"
    )


@pytest.mark.parametrize("name", ["wmt14_en_de", "text files"])
def test_an_unknown_split_is_refused(folder, name):
    write(a_en=b"one\n", a_de=b"eins\n")
    files = corpora.from_text_files(train=("a.en", "a.de"))
    corpus = corpora.CORPORA.get(name, files)
    with pytest.raises(InputError, match=r"train, dev, test; received 'valid'"):
        corpus.pairs("valid")


@pytest.mark.slow
def test_importing_corpora_loads_neither_tensorflow_nor_tfds():
    heavy = {"tensorflow", "tensorflow_datasets", "requests"}
    program = (
        "import sys, checkout, t2t_lite_data.corpora; "
        f"exit(any(map(sys.modules.get, {heavy})))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT / "bin"
        ).returncode
        == 0
    )


# Weights.


def test_each_pattern_of_text_has_a_weight(folder):
    write(a_en=b"a\n", b1_en=b"b\n", b2_en=b"c\n", a_de=b"A\n", b_de=b"B\n")
    write(c_de=b"C\n")
    corpus = corpora.from_text_files(train=("a.en,b*.en", "a.de,b.de,c.de"))
    weighted = corpora.weighted(corpus, "2,.5")
    assert weighted.weights == (2.0, 0.5)
    assert [list(read()) for read in weighted.train_parts] == [
        [("a", "A")],
        [("b", "B"), ("c", "C")],
    ]
    assert list(weighted.pairs("train")) == list(corpus.pairs("train"))


@pytest.mark.usefixtures("small_embedded")
def test_each_name_of_a_corpus_has_a_weight():
    corpus = corpora.weighted(corpora.named("embedded,embedded"), "1,3")
    first, second = (next(iter(read())) for read in corpus.train_parts)
    assert first == second == next(iter(corpus.pairs("train")))
    assert corpus.weights == (1.0, 3.0)


@pytest.mark.parametrize("weights", ["1,1", "0.3,0.3"])
def test_equal_weights_are_none(weights):
    corpus = corpora.named("embedded,embedded")
    assert corpora.weighted(corpus, weights).weights == ()
    assert corpora.weighted(corpora.named("embedded"), "5").weights == ()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("1,0", "must be numbers above 0 with commas between them; received"),
        ("1,-2", "numbers above 0"),
        ("1,nan", "numbers above 0"),
        ("1,inf", "numbers above 0"),
        ("1,", "numbers above 0"),
        ("1,x", "numbers above 0"),
        ("1", "--train_trees, 2 in all; received --corpus_weights=1"),
        ("1,2,3", "2 in all; received --corpus_weights=1,2,3"),
    ],
)
def test_wrong_weights_are_refused(weights, message):
    corpus = corpora.named("embedded,embedded")
    with pytest.raises(InputError, match=message):
        corpora.weighted(corpus, weights)
