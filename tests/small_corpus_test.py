"""Which text each model of the benchmark on a small corpus is trained on."""

import pytest
from benchmarks import small_corpus

GIVEN = {
    "train_source": "train.en",
    "train_target": "train.de",
    "dev_source": "val.en",
    "dev_target": "val.de",
}


def test_halves_share_no_pair(tmp_path):
    pairs = [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D"), ("e", "E")]
    small_corpus.write_halves(tmp_path, pairs)
    assert (tmp_path / "first.source").read_text() == "a\nb\n"
    assert (tmp_path / "first.target").read_text() == "A\nB\n"
    assert (tmp_path / "second.target").read_text() == "C\nD\nE\n"


@pytest.mark.parametrize("name", ["whole", "sampling", "6+6", "6+2"])
def test_most_models_are_trained_on_all_pairs(tmp_path, name):
    assert small_corpus.text_of(name, tmp_path, GIVEN) == GIVEN


def test_a_reverse_model_reads_targets(tmp_path):
    assert small_corpus.text_of("reverse", tmp_path, GIVEN) == {
        "train_source": str(tmp_path / "first.target"),
        "train_target": str(tmp_path / "first.source"),
        "dev_source": "val.de",
        "dev_target": "val.en",
    }


def test_back_translated_text_is_added_to_the_half(tmp_path):
    half = small_corpus.text_of("half", tmp_path, GIVEN)
    text = small_corpus.text_of("back-translation", tmp_path, GIVEN)
    first, back = text["train_source"].split(",")
    assert (first, back) == (
        half["train_source"],
        str(tmp_path / "back.source"),
    )
    first, second = text["train_target"].split(",")
    assert (first, second) == (
        half["train_target"],
        str(tmp_path / "second.target"),
    )


def test_baselines_are_trained_before_what_is_compared_to_them():
    order = list(small_corpus.MODELS)
    for name, baseline in small_corpus.BASELINES.items():
        assert order.index(baseline) < order.index(name)
