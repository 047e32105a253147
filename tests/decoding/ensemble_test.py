"""Models translate together by the mean of their log probabilities."""

import dataclasses
import json
import shutil

import in_process
import numpy as np
import pytest
import tensorflow as tf
from paths import ROOT
from tiny_translator import (
    LEARNED,
    LINES,
    ONE_LAYER,
    WORDS,
    learn_vocabulary,
    random_model,
    write_model,
)

from t2t_lite import Translator
from t2t_lite.decoding.engine import model_engine
from t2t_lite.decoding.ensemble import Ensemble
from t2t_lite.decoding.members import members_of, require_together
from t2t_lite.decoding.search import SearchOptions, ids_translator, search
from t2t_lite.decoding.translation import LineTranslator
from t2t_lite.errors import InputError
from t2t_lite.evaluation.report import evaluate
from t2t_lite.evaluation.scores import score_text
from t2t_lite.model.transformer import shift_right
from t2t_lite.text import learning
from t2t_lite.token_ids import PAD

GOLDEN = ROOT / "tests" / "golden" / "0.1.0"
TWO = ["/device:CPU:0"] * 2
TEXTS = [line for line in LINES if line]
SHORT = [text for text in TEXTS if len(text) < 30]
VOCABULARY = learn_vocabulary()
# Another inner size, activation and window, and another start of the decoder.
OTHER = dataclasses.replace(
    ONE_LAYER,
    d_ff=16,
    activation="gelu",
    attention_window=3,
    decoder_start="zeros",
)
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


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """Two model directories; the first has two checkpoints."""
    folder = tmp_path_factory.mktemp("ensemble")
    return tuple(
        write_model(folder / name, VOCABULARY, hparams, seeds).path
        for name, hparams, seeds in (
            ("first", ONE_LAYER, (3, 4)),
            ("second", OTHER, (5,)),
        )
    )


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


def test_models_of_other_vocabularies_are_refused(directories, tmp_path):
    lines = [" ".join(reversed(WORDS))] * 3 + ["."]
    vocabulary = learning.learn(lines, "unigram", VOCABULARY.size)
    other = write_model(tmp_path / "other", vocabulary).path
    with pytest.raises(InputError, match="have different vocabularies: models"):
        Translator([directories[0], other])


@pytest.mark.parametrize(
    ("checkpoints", "message"),
    [
        (["last"] * 3, "give one checkpoint per model directory, or several"),
        ([], "give one checkpoint per"),
        ("a/checkpoints/step-1", "a single checkpoint must be last, best or"),
    ],
)
def test_checkpoints_that_do_not_pair_are_refused(
    directories, checkpoints, message
):
    with pytest.raises(InputError, match=message):
        Translator(directories, checkpoints)


def test_no_model_is_refused():
    for empty in ([], ()):
        with pytest.raises(InputError, match="give one checkpoint per mod"):
            Translator(empty, empty)
    with pytest.raises(InputError, match="an ensemble needs a model"):
        Ensemble([])


def test_a_model_that_is_given_twice_is_refused(directories, tmp_path):
    (tmp_path / "link").symlink_to(directories[0])
    for other in (directories[0], tmp_path / "link"):
        with pytest.raises(InputError, match="is given twice with the checkp"):
            Translator([directories[0], other])
    with pytest.raises(
        InputError, match="given twice with the checkpoint last"
    ):
        Translator(directories[0], ["last", "last"])


def test_models_of_the_same_weights_are_refused(directories, tmp_path):
    copy = shutil.copytree(directories[0], tmp_path / "copy")
    with pytest.raises(InputError, match="have the same weights: models that"):
        Translator([directories[0], copy])


@pytest.mark.parametrize(
    ("name", "value"), [("source_language", "de"), ("language_tokens", True)]
)
def test_models_of_other_languages_are_refused(
    directories, tmp_path, name, value
):
    members = members_of(
        [shutil.copytree(each, tmp_path / each.name) for each in directories]
    )

    def set_both(*values):
        for member, value in zip(members, values, strict=True):
            path = member.model_dir / "settings.json"
            settings = json.loads(path.read_text()) | {name: value}
            path.write_text(json.dumps(settings))

    set_both(value, None)  # A value that is not known is not compared.
    require_together(members)
    set_both(value, "en")
    with pytest.raises(InputError, match=f"must have the same {name}"):
        require_together(members)


def test_a_parser_beside_a_translator_is_refused(directories):
    with pytest.raises(InputError, match="parsing was trained for parsing"):
        Translator([directories[0], GOLDEN / "parsing"])


def test_what_takes_one_model_refuses_several(directories):
    translator = Translator(directories)
    with pytest.raises(InputError, match="an ensemble is not supported here"):
        evaluate(translator, {"dev": [("a dog", "a dog")]}, score_text)


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
        *(f"--input={path}", "--nbest=4", "--length_penalty=0"),
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
