"""What each model of the benchmark on a small corpus is trained on, and how."""

import argparse

import pytest
from benchmarks import small_corpus

from t2t_lite import hparams
from t2t_lite.hparams import PRESETS

GIVEN = {
    "train_source": "train.en",
    "train_target": "train.de",
    "dev_source": "val.en",
    "dev_target": "val.de",
}
PAIRS = [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D"), ("e", "E")]


def test_halves_share_no_pair(tmp_path):
    small_corpus.write_halves(tmp_path, PAIRS)
    assert (tmp_path / "half.source").read_text() == "a\nc\ne\n"
    assert (tmp_path / "half.target").read_text() == "A\nC\nE\n"
    assert (tmp_path / "other.target").read_text() == "B\nD\n"


@pytest.mark.parametrize("name", ["whole", "sampling", "6+6", "6+2"])
def test_most_models_are_trained_on_all_pairs(tmp_path, name):
    assert small_corpus.text_of(name, tmp_path, GIVEN) == GIVEN


def test_a_reverse_model_reads_targets(tmp_path):
    assert small_corpus.text_of("reverse", tmp_path, GIVEN) == {
        "train_source": str(tmp_path / "half.target"),
        "train_target": str(tmp_path / "half.source"),
        "dev_source": "val.de",
        "dev_target": "val.en",
    }


def test_back_translated_text_is_added_to_the_half(tmp_path):
    half = small_corpus.text_of("half", tmp_path, GIVEN)
    text = small_corpus.text_of("back-translation", tmp_path, GIVEN)
    assert text["train_source"].split(",") == [
        half["train_source"],
        str(tmp_path / "back.source"),
    ]
    assert text["train_target"].split(",") == [
        half["train_target"],
        str(tmp_path / "other.target"),
    ]


def test_baselines_are_trained_before_what_is_compared_to_them():
    order = list(small_corpus.MODELS)
    for name, baseline in small_corpus.BASELINES.items():
        assert order.index(baseline) < order.index(name)


def test_chosen_models_are_trained_in_order():
    assert small_corpus.chosen_models("6+2,6+6") == ["6+6", "6+2"]
    names = "back-translation,half,reverse"
    expected = ["reverse", "half", "back-translation"]
    assert small_corpus.chosen_models(names) == expected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("6+2", "6\\+2 needs 6\\+6: name it, too"),
        ("half,back-translation", "back-translation needs reverse: name it"),
        ("6+6,7+7", "unknown: 7\\+7; there are reverse, half, "),
        ("", "unknown: ; there are"),
    ],
)
def test_models_that_cannot_be_chosen(names, message):
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        small_corpus.chosen_models(names)


@pytest.mark.parametrize("name", small_corpus.MODELS)
def test_the_rate_rises_and_then_falls_with_any_model(name):
    fields = small_corpus.overrides(name, updates=1850)
    settings = hparams.override(
        PRESETS["transformer_multi30k"],
        [f"{field}={value}" for field, value in fields.items()],
    )
    assert settings.warmup_steps == settings.cooldown_steps == 925
    assert (settings.d_model, settings.d_k) == (256, 64)
    assert settings.vocabulary_size == 5000
    assert settings.tokens_per_batch == 2048
    assert 10 * settings.save_every_steps <= 1850


def test_models_of_other_arguments_are_told_apart(tmp_path):
    folder = tmp_path / "models"
    assert not small_corpus.is_of_other_arguments(folder, {"updates": 20})
    assert not small_corpus.is_of_other_arguments(folder, {"updates": 20})
    assert small_corpus.is_of_other_arguments(folder, {"updates": 30})


def test_a_difference_is_chance_only_between_similar_outputs(tmp_path):
    texts = {
        "reference": "a b c d e\nf g h i j\nk l m n o\np q r s t\n" * 5,
        "worse": "a b c x e\nf g x i j\nx l m n o\np q r x x\n" * 5,
        "as_bad": "a b x x e\nf g h i x\nk x m n o\np q r s x\n" * 5,
    }
    reference, worse, as_bad = (tmp_path / name for name in texts)
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    find_p = small_corpus.bootstrap_p_value
    assert find_p(str(reference), worse, output=reference) < 0.05
    assert find_p(str(reference), worse, output=as_bad) > 0.05
