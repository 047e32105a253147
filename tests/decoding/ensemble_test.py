"""Models that translate together: the mean of their log probabilities."""

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
    TINY,
    WORDS,
    assert_same,
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
VOCABULARY = learn_vocabulary()
OTHER = dataclasses.replace(TINY, num_layers=1, d_ff=16, activation="gelu")
OPTIONS = SearchOptions.from_hparams(TINY, length_penalty=0.0, nbest=4)


@pytest.fixture(scope="module")
def models():
    hparams = (TINY, 3), (OTHER, 5)
    return [random_model(each, VOCABULARY, seed) for each, seed in hparams]


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    """Two model directories; the first has two checkpoints."""
    folder = tmp_path_factory.mktemp("ensemble")
    first = write_model(folder / "first", VOCABULARY, seeds=(3, 4))
    return first.path, write_model(
        folder / "second", VOCABULARY, OTHER, (5,)
    ).path


@pytest.fixture(scope="module")
def translator(directories):
    return Translator(directories, nbest=4, length_penalty=0.0)


def found_by(model, lines=TEXTS, options=OPTIONS, **arguments):
    ids = tf.ragged.constant(VOCABULARY.encode(lines), dtype=tf.int32)
    return ids_translator(model, options, **arguments)(ids)


def log_probs(model, source_ids, ids_WT):
    """Returns the log probability of each sequence, by whole passes."""
    sources = np.repeat([source_ids], len(ids_WT), axis=0)
    logits_WTV = model((sources, shift_right(ids_WT))).numpy()
    logits_WTV[..., PAD] = -np.inf
    log_probs_WTV = tf.nn.log_softmax(logits_WTV).numpy()
    found_WT = np.take_along_axis(log_probs_WTV, ids_WT[..., None], 2)[..., 0]
    return np.where(ids_WT == PAD, 0.0, found_WT).sum(axis=1)


@pytest.mark.slow
def test_a_score_is_the_mean_of_the_models_log_probabilities(models):
    found = found_by(Ensemble(models))
    for n, source_ids in enumerate(VOCABULARY.encode(TEXTS)):
        ids_WT = found.ids_BWT[n].numpy()
        each = [log_probs(model, source_ids, ids_WT) for model in models]
        mean_W = np.mean(each, axis=0)
        np.testing.assert_allclose(found.scores_BW[n], mean_W, atol=1e-4)
        assert np.ptp(each, axis=0).max() > 1  # They do not agree.


@pytest.mark.slow
def test_xla_finds_the_same(models):
    """With caches of other sizes, windows and starts."""
    odd = dataclasses.replace(OTHER, attention_window=3, decoder_start="zeros")
    model = Ensemble([models[0], random_model(odd, VOCABULARY, 6)])
    found = [found_by(model, xla=xla, max_length=12) for xla in (False, True)]
    np.testing.assert_array_equal(found[0].ids_BWT, found[1].ids_BWT)
    np.testing.assert_allclose(*(f.scores_BW for f in found), atol=1e-4)


@pytest.mark.slow
def test_several_devices_find_the_same(models):
    options = OPTIONS._replace(tokens_at_once=32)
    one, two = (
        model_engine(
            Ensemble(models), VOCABULARY, options, xla=False, devices=names
        )
        for names in (TWO[:1], TWO)
    )
    ids = tf.ragged.constant(VOCABULARY.encode(LINES * 3), dtype=tf.int32)
    found = [engine.translate_ids(ids) for engine in (one, two)]
    np.testing.assert_array_equal(*(f.ids_BWT for f in found))
    np.testing.assert_array_equal(*(f.scores_BW for f in found))
    assert two.num_devices == 2


@pytest.mark.slow
def test_several_directories_translate_together(translator, directories):
    last = [
        random_model(TINY, VOCABULARY, 4),
        random_model(OTHER, VOCABULARY, 5),
    ]
    assert_weights(translator.model.models, last)
    found = found_by(translator.model)
    scores = [[t.score for t in n] for n in translator.translate(TEXTS)]
    np.testing.assert_allclose(scores, found.scores_BW, atol=1e-4)
    first, second = directories
    assert translator.description == (
        f"{first} ({first}/checkpoints/step-2) and "
        f"{second} ({second}/checkpoints/step-1)"
    )


def test_checkpoints_of_one_run_translate_together(directories):
    first, _ = directories
    paths = [f"{first}/checkpoints/step-{step}" for step in (1, 2)]
    expected = [random_model(TINY, VOCABULARY, seed) for seed in (3, 4)]
    assert_weights(Translator(first, paths).model.models, expected)


def assert_weights(models, expected):
    for found, right in zip(models, expected, strict=True):
        for weight, other in zip(found.weights, right.weights, strict=True):
            np.testing.assert_array_equal(weight, other)


@pytest.mark.slow
def test_what_steers_one_model_steers_several(directories):
    plain = Translator(list(directories))
    (text,) = plain(["a dog runs"])
    steered = Translator(directories, glossary={"dog": "hill"})
    (with_term,) = steered(["a dog runs"])
    assert "hill" not in text
    assert "hill" in with_term
    (begun,) = plain(["a dog runs"], prefix=["men by"])
    assert begun.startswith("men by")
    found = plain.alternatives("a dog runs", "men ", 3)
    assert len({each.text.split()[1] for each in found}) == 3
    (word, *_) = text.split()
    (without,) = Translator(directories, suppress=[word])(["a dog runs"])
    assert word not in without.split()


@pytest.mark.slow
def test_samples_are_drawn_from_all(directories):
    options = {"sample_top_k": 1, "nbest": 2}
    greedy = Translator(directories, beam_width=1).translate(LINES)
    drawn = Translator(directories, **options).translate(LINES)
    assert_same([nbest[:1] for nbest in drawn], greedy)


@pytest.mark.slow
def test_lengths_suit_all_models():
    learned = random_model(
        dataclasses.replace(LEARNED, max_length=9), VOCABULARY
    )
    ensemble = Ensemble([random_model(TINY, VOCABULARY), learned])
    hparams = ensemble.hparams
    assert (hparams.max_length, hparams.learned_positions) == (9, 23)
    found = search(ensemble, tf.constant([[5] * 20 + [1]]), OPTIONS)
    assert found.ids_BWT.shape[2] == 23


def test_models_of_other_ids_are_refused(models):
    other = random_model(TINY, learning.learn(LINES, "bpe", 290))
    with pytest.raises(InputError, match="together must have as many ids"):
        Ensemble([models[0], other])


def test_models_of_other_vocabularies_are_refused(directories, tmp_path):
    lines = [" ".join(reversed(WORDS))] * 3 + ["."]
    vocabulary = learning.learn(lines, "unigram", VOCABULARY.size)
    other = write_model(tmp_path / "other", vocabulary).path
    with pytest.raises(InputError, match="has another vocabulary than"):
        Translator([directories[0], other])


@pytest.mark.parametrize(
    ("checkpoints", "message"),
    [
        (["last"] * 3, "give one checkpoint for each model directory, or sev"),
        ([], "give one checkpoint for each"),
        ("a/checkpoints/step-1", "the path of a checkpoint is of one model"),
    ],
)
def test_checkpoints_that_do_not_pair_are_refused(
    directories, checkpoints, message
):
    with pytest.raises(InputError, match=message):
        Translator(directories, checkpoints)


def test_no_model_is_refused():
    for empty in ([], ()):
        with pytest.raises(InputError, match="give one checkpoint for each"):
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

    set_both(value, None)  # What is not known is not compared.
    require_together(members)
    set_both(value, "en")
    with pytest.raises(InputError, match=f"must have the same {name}"):
        require_together(members)


def test_a_parser_beside_a_translator_is_refused(directories):
    with pytest.raises(InputError, match="parsing was trained for parsing"):
        Translator([directories[0], GOLDEN / "parsing"])


def test_what_takes_one_model_refuses_several(directories):
    translator = Translator(directories)
    with pytest.raises(InputError, match="this takes one model, no ensemble"):
        evaluate(translator, {"dev": [("a dog", "a dog")]}, score_text)


@pytest.mark.slow
def test_an_output_knows_each_of_its_models(models):
    def sha256(*hparams):
        weights = [random_model(each, VOCABULARY) for each in hparams]
        engine = model_engine(Ensemble(weights), VOCABULARY, OPTIONS, xla=False)
        return LineTranslator(engine, VOCABULARY, OPTIONS).sha256()

    other = dataclasses.replace(TINY, activation="gelu")
    assert sha256(TINY, TINY) == sha256(TINY, TINY) != sha256(TINY, other)


@pytest.mark.slow
def test_the_program_translates_with_several(translator, directories, tmp_path):
    path = tmp_path / "lines"
    path.write_text("".join(f"{line}\n" for line in LINES))
    status, out, errors = in_process.run(
        "translate",
        *(f"--model_dir={each}" for each in directories),
        *(f"--input={path}", "--nbest=4", "--length_penalty=0"),
    )
    assert status == 0, errors
    texts = [line.split(" ||| ")[1] for line in out.splitlines()]
    found = translator.translate(LINES)
    assert texts == [each.text for nbest in found for each in nbest]
