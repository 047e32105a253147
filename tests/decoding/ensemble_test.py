"""Models translate together by the mean of their log probabilities."""

import dataclasses
import shutil

import in_process
import numpy as np
import pytest
import tensorflow as tf
from tiny_translator import (
    LEARNED,
    LINES,
    ONE_LAYER,
    OTHER,
    learn_vocabulary,
    random_model,
)

from t2t_lite import Translator
from t2t_lite.decoding.engine import model_engine
from t2t_lite.decoding.ensemble import Ensemble
from t2t_lite.decoding.search import SearchOptions, ids_translator, search
from t2t_lite.errors import InputError
from t2t_lite.evaluation.report import evaluate
from t2t_lite.evaluation.scores import score_text
from t2t_lite.model.transformer import shift_right
from t2t_lite.text import learning
from t2t_lite.token_ids import PAD
from t2t_lite.translation.line_translator import LineTranslator

TWO = ["/device:CPU:0"] * 2
TEXTS = [line for line in LINES if line]
SHORT = [text for text in TEXTS if len(text) < 30]
VOCABULARY = learn_vocabulary()
OPTIONS = SearchOptions.from_hparams(
    ONE_LAYER, length_penalty=0.0, nbest=4, tokens_at_once=32
)


@pytest.fixture(scope="module")
def models():
    """The models of the last checkpoints of `directories`."""
    hparams = (ONE_LAYER, 4), (OTHER, 5)
    return [random_model(each, VOCABULARY, seed) for each, seed in hparams]


@pytest.fixture(scope="module")
def engine(models):
    """The Engine that searches with both models."""
    return model_engine(Ensemble(models), VOCABULARY, OPTIONS, xla=False)


def as_ids(lines):
    return tf.ragged.constant(VOCABULARY.encode(lines), tf.int32)


def log_probs(model, source_ids, ids_WT):
    """Returns the log probability of each sequence, from full passes."""
    sources = np.repeat([source_ids], len(ids_WT), axis=0)
    logits_WTV = model((sources, shift_right(ids_WT))).numpy()
    logits_WTV[..., PAD] = -np.inf
    log_probs_WTV = tf.nn.log_softmax(logits_WTV).numpy()
    found_WT = np.take_along_axis(log_probs_WTV, ids_WT[..., None], 2)[..., 0]
    return np.where(ids_WT == PAD, 0.0, found_WT).sum(axis=1)


@pytest.mark.slow
def test_a_score_is_the_mean_of_the_models_log_probabilities(models, engine):
    found = engine.translate_ids(as_ids(TEXTS))
    for n, source_ids in enumerate(VOCABULARY.encode(TEXTS)):
        ids_WT = found.ids_BWT[n].numpy()
        each = [log_probs(model, source_ids, ids_WT) for model in models]
        mean_W = np.mean(each, axis=0)
        np.testing.assert_allclose(found.scores_BW[n], mean_W, atol=1e-4)
        assert np.ptp(each, axis=0).max() > 1  # The models disagree.


@pytest.mark.slow
def test_xla_finds_the_same(models, engine):
    ids = as_ids(SHORT)  # All of one shape.
    compiled = ids_translator(Ensemble(models), OPTIONS, xla=True)
    found, expected = compiled(ids), engine.translate_ids(ids)
    np.testing.assert_array_equal(found.ids_BWT, expected.ids_BWT)
    np.testing.assert_allclose(found.scores_BW, expected.scores_BW, atol=1e-4)


@pytest.mark.slow
def test_several_devices_find_the_same(models, engine):
    divided = model_engine(
        Ensemble(models), VOCABULARY, OPTIONS, xla=False, devices=TWO
    )
    ids = as_ids(LINES * 3)
    found, expected = (each.translate_ids(ids) for each in (divided, engine))
    np.testing.assert_array_equal(found.ids_BWT, expected.ids_BWT)
    np.testing.assert_array_equal(found.scores_BW, expected.scores_BW)
    assert divided.num_devices == 2


def test_several_directories_are_opened_together(directories, models):
    translator = Translator(directories)
    assert_weights(translator.model.models, models)
    first, second = directories
    assert translator.description == (
        f"{first} ({first}/checkpoints/step-2) and "
        f"{second} ({second}/checkpoints/step-1)"
    )


def test_checkpoints_of_one_run_translate_together(directories):
    first, _ = directories
    paths = [f"{first}/checkpoints/step-{step}" for step in (1, 2)]
    expected = [random_model(ONE_LAYER, VOCABULARY, seed) for seed in (3, 4)]
    assert_weights(Translator(first, paths).model.models, expected)


def assert_weights(models, expected):
    for found, right in zip(models, expected, strict=True):
        for weight, other in zip(found.weights, right.weights, strict=True):
            np.testing.assert_array_equal(weight, other)


@pytest.mark.slow
def test_what_steers_one_model_steers_several(models, engine):
    plain = LineTranslator(engine, VOCABULARY, OPTIONS)
    source, begun = "a dog runs", "men "
    *_, third = plain.alternatives(source, begun, 3)
    word = third.text.split()[1]
    options = OPTIONS._replace(suppress=(word,))
    steered = model_engine(Ensemble(models), VOCABULARY, options, xla=False)
    with_terms, translator = (
        LineTranslator(steered, VOCABULARY, each)
        for each in (options._replace(glossary=(("the", "hill"),)), options)
    )
    text = with_terms("the dog", prefix="men by")
    assert text.startswith("men by")
    assert "hill" in text.split()
    found = translator.alternatives(source, begun, 3)
    assert len({each.text.split()[1] for each in found} - {word}) == 3


@pytest.mark.slow
def test_samples_are_drawn_from_all(models):
    greedy, drawn = (
        search(
            Ensemble(models),
            as_ids(SHORT).to_tensor(),
            SearchOptions.from_hparams(
                ONE_LAYER, max_extra_length=2, **options
            ),
        )
        for options in ({"beam_width": 1}, {"sample_top_k": 1, "nbest": 2})
    )
    np.testing.assert_array_equal(drawn.ids_BWT[:, :1], greedy.ids_BWT)
    np.testing.assert_allclose(
        drawn.scores_BW[:, :1], greedy.scores_BW, atol=1e-4
    )


@pytest.mark.slow
def test_lengths_suit_all_models(models):
    learned = dataclasses.replace(
        LEARNED,
        num_layers=1,
        num_decoder_layers=2,
        max_length=5,
        learned_positions=7,
    )
    ensemble = Ensemble([models[0], random_model(learned, VOCABULARY)])
    hparams = ensemble.hparams
    assert (hparams.max_length, hparams.learned_positions) == (5, 7)
    found = search(ensemble, tf.constant([[5] * 4 + [1]]), OPTIONS)
    assert found.ids_BWT.shape[2] == 7


def test_models_of_other_ids_are_refused(models):
    other = random_model(ONE_LAYER, learning.learn(LINES, "bpe", 290))
    with pytest.raises(InputError, match="must have the same numbers of sou"):
        Ensemble([models[0], other])


def test_no_model_is_refused():
    for empty in ([], ()):
        with pytest.raises(InputError, match="give one checkpoint per mod"):
            Translator(empty, empty)
    with pytest.raises(InputError, match="an ensemble needs a model"):
        Ensemble([])


def test_models_of_the_same_weights_are_refused(directories, tmp_path):
    copy = shutil.copytree(directories[0], tmp_path / "copy")
    with pytest.raises(InputError, match="have the same weights: models that"):
        Translator([directories[0], copy])


def test_what_takes_one_model_refuses_several(directories):
    translator = Translator(directories)
    with pytest.raises(InputError, match="an ensemble is not supported here"):
        evaluate(
            translator,
            {"dev": [("a dog", "a dog")]},
            score_text,
            encode_targets=list,
        )


@pytest.mark.slow
def test_an_output_knows_each_of_its_models():
    def sha256(*models):
        engine = model_engine(Ensemble(models), VOCABULARY, OPTIONS, xla=False)
        return LineTranslator(engine, VOCABULARY, OPTIONS).sha256()

    gelu = dataclasses.replace(ONE_LAYER, activation="gelu")
    one, like_it, other = (
        random_model(each, VOCABULARY) for each in (ONE_LAYER, ONE_LAYER, gelu)
    )
    assert sha256(one, one) == sha256(one, like_it) != sha256(one, other)


@pytest.mark.slow
def test_the_program_translates_with_several(engine, directories, tmp_path):
    path = tmp_path / "lines"
    path.write_text("".join(f"{line}\n" for line in LINES))
    status, out, errors = in_process.run(
        "translate",
        *(f"--model_dir={each}" for each in directories),
        f"--input={path}",
        "--nbest=4",
        "--length_penalty=0",
    )
    assert status == 0, errors
    _, texts, scores = zip(
        *(line.split(" ||| ") for line in out.splitlines()), strict=True
    )
    nbest = LineTranslator(engine, VOCABULARY, OPTIONS).translate(LINES)
    found = [each for several in nbest for each in several]
    assert list(texts) == [each.text for each in found]
    np.testing.assert_allclose(
        [*map(float, scores)], [each.score for each in found], atol=2e-4
    )
