"""A search finds the ids that plain decoding finds, whatever compiles it."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_searches import (
    UNLIKE,
    UNLIKE_ONE_LAYER,
    eager_search,
    eager_translations,
    score_of,
)
from tiny_translator import (
    LEARNED,
    LINES,
    ONE_LAYER,
    TINY,
    assert_same,
    random_model,
)

import t2t_lite
from t2t_lite.decoding.ensemble import Ensemble
from t2t_lite.decoding.search import SearchOptions, ids_translator, search
from t2t_lite.errors import InputError
from t2t_lite.hardware import GIB, Hardware
from t2t_lite.token_ids import EOS, PAD
from t2t_lite.translation.line_translator import LineTranslator


@pytest.mark.slow
@pytest.mark.parametrize("num_parts", [1, 3, 4])
def test_the_number_of_parts_changes_no_translation(
    model, vocabulary, translator, num_parts
):
    ids = tf.ragged.constant(vocabulary.encode(LINES[:6]), tf.int32)
    translate_ids = ids_translator(
        model,
        translator.options,
        xla=False,
        hardware=Hardware("CPU", GIB, num_cores=num_parts),
    )
    found, expected = translate_ids(ids), translator.translate_ids(ids)
    np.testing.assert_array_equal(found.ids_BWT, expected.ids_BWT)
    np.testing.assert_allclose(
        found.scores_BW, expected.scores_BW, rtol=1e-5, atol=1e-5
    )


@pytest.mark.slow
def test_xla_changes_no_translation(vocabulary):
    hparams = dataclasses.replace(TINY, **UNLIKE)
    model = random_model(hparams, vocabulary)
    options = SearchOptions.from_hparams(
        hparams, beam_width=2, max_extra_length=2
    )
    compiled = LineTranslator.from_model(model, vocabulary, options, xla=True)
    lines = ["", LINES[6], LINES[5]]
    assert_same(
        compiled.translate(lines),
        eager_translations(model, vocabulary, options, lines),
    )
    assert compiled.translate([]) == []


def test_without_a_gpu_xla_compiles_what_it_is_told_to_alone(
    vocabulary, monkeypatch
):
    compiled = []
    function = tf.function

    def noting(*args, jit_compile=None, **kwargs):
        compiled.append(jit_compile)
        return function(*args, jit_compile=jit_compile, **kwargs)

    monkeypatch.setattr(tf, "function", noting)
    options = SearchOptions.from_hparams(ONE_LAYER)
    for xla, gpus, expected in (
        (None, [], False),
        (None, ["a GPU"], True),
        (True, [], True),
        (False, ["a GPU"], False),
    ):
        monkeypatch.setattr(
            tf.config, "get_visible_devices", lambda _, gpus=gpus: gpus
        )
        compiled.clear()
        LineTranslator.from_model(
            random_model(ONE_LAYER, vocabulary), vocabulary, options, xla=xla
        )
        assert (True in compiled) == expected


@pytest.mark.slow
def test_xla_changes_no_translation_in_int8(vocabulary):
    model = random_model(dataclasses.replace(TINY, **UNLIKE), vocabulary)
    options = SearchOptions(2, 0.6, 2)
    lines = [LINES[6], LINES[5]]
    in_float32 = eager_translations(model, vocabulary, options, lines)
    model.search_in_int8()
    expected = eager_translations(model, vocabulary, options, lines)
    assert expected[0][0].score != in_float32[0][0].score
    compiled = LineTranslator.from_model(model, vocabulary, options, xla=True)
    assert_same(compiled.translate(lines), expected)


@pytest.mark.parametrize(
    ("xla", "gpus", "message"),
    [
        (False, [], "for searches that XLA compiles: give xla=True; received"),
        (None, [], "for searches that XLA compiles: give xla=True; received"),
        (True, ["a GPU"], "for a CPU: choose another one, or hide the GPUs"),
    ],
)
def test_a_search_in_int8_needs_xla_and_a_cpu(
    vocabulary, monkeypatch, xla, gpus, message
):
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda _: gpus)
    models = [random_model(ONE_LAYER, vocabulary, seed) for seed in (1, 2)]
    models[1].search_in_int8()
    for model in (models[1], Ensemble(models)):
        with pytest.raises(InputError, match=message):
            ids_translator(model, SearchOptions(2, 0.6, 0), xla)


def greedy(model, ids, max_length):
    """Returns the likeliest next id at each step, from full passes."""
    found = []
    while len(found) < max_length and EOS not in found:
        target = [EOS, *found, *[PAD] * (max_length - len(found))]
        logits_TV = model((np.array([ids]), np.array([target])))[0]
        logits_V = np.array(logits_TV[len(found)])
        logits_V[PAD] = -1e9
        found.append(int(np.argmax(logits_V)))
    return found


def test_a_beam_of_one_is_greedy(model, vocabulary):
    options = SearchOptions.from_hparams(
        ONE_LAYER, beam_width=1, max_extra_length=3
    )
    lines = [LINES[0], LINES[5]]
    hypotheses = eager_search(model, vocabulary, options, lines)
    for ids, ids_T in zip(
        vocabulary.encode(lines), hypotheses.ids_BWT[:, 0].numpy(), strict=True
    ):
        expected = greedy(model, ids, len(ids) + 3)
        assert ids_T[ids_T != PAD].tolist() == expected


def test_scores_are_log_probabilities_over_the_length_penalty(
    model, vocabulary
):
    options = SearchOptions.from_hparams(ONE_LAYER, length_penalty=0.7)
    (ids,) = vocabulary.encode([LINES[0]])
    found = search(model, np.array([ids], np.int32), options)
    best = [i for i in np.array(found.ids_BWT)[0, 0].tolist() if i != PAD]
    expected = score_of(model, ids, best, alpha=0.7)
    assert float(found.scores_BW[0, 0]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("extra", [0, 1, 5])
def test_translations_have_at_most_so_many_tokens_more(model, extra):
    source_ids = np.zeros((3, 9), np.int32)
    for row, length in enumerate((4, 9, 6)):
        source_ids[row, :length] = [*range(260, 259 + length), EOS]
    options = SearchOptions.from_hparams(
        ONE_LAYER, beam_width=2, max_extra_length=extra
    )
    found = search(model, source_ids, options)
    lengths = (np.array(found.ids_BWT) != PAD).sum(axis=2)
    assert (lengths <= np.array([[4], [9], [6]]) + extra).all()
    assert (lengths[:, 0] > 0).all()


def test_padding_is_never_found_however_likely(vocabulary):
    model = random_model(ONE_LAYER, vocabulary)
    embedding = model.embedding.trainable_variables[0]
    likelier = np.where(np.arange(vocabulary.size) == PAD, 100.0, 1.0)
    embedding.assign(embedding * likelier[:, None])
    rows = [[n, n + 1, n + 2, EOS] for n in (260, 270, 280)]
    options = SearchOptions.from_hparams(ONE_LAYER, beam_width=2)
    found = search(model, np.array(rows, np.int32), options)
    for ids in np.array(found.ids_BWT).reshape(6, 10).tolist():
        tokens = [i for i in ids if i != PAD]
        assert tokens == ids[: len(tokens)]
        assert len(tokens) == 10 or tokens[-1] == EOS


def test_rows_of_padding_end_at_once_and_change_nothing(model):
    row = [*range(270, 276), EOS]
    options = SearchOptions.from_hparams(ONE_LAYER, beam_width=2)
    alone, filled = (
        search(model, np.array(rows, np.int32), options)
        for rows in ([row], [row, [PAD] * 7, [PAD] * 7])
    )
    np.testing.assert_array_equal(alone.ids_BWT[0], filled.ids_BWT[0])
    assert not np.any(filled.ids_BWT[1:])


def test_learned_positions_end_at_their_table(vocabulary):
    model = random_model(LEARNED, vocabulary)
    rows = [[*range(260, 282), EOS], [*range(270, 280), EOS, *[PAD] * 12]]
    options = SearchOptions.from_hparams(LEARNED, max_extra_length=50)
    found = search(model, np.array(rows, np.int32), options)
    assert found.ids_BWT.shape[2] == 23
    assert np.isfinite(np.array(found.scores_BW)).all()


def test_a_beam_that_cannot_be_counted_is_refused(model, vocabulary):
    options = SearchOptions(10**8, 0.6, 5)
    message = f"beam_width must be at most .* for {vocabulary.size} ids"
    with pytest.raises(InputError, match=message):
        LineTranslator.from_model(model, vocabulary, options)


@pytest.fixture
def float64():
    """Keras with float64 as its default."""
    policy = keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy(policy)


@pytest.mark.slow
@pytest.mark.parametrize("hparams", [ONE_LAYER, UNLIKE_ONE_LAYER])
def test_models_and_searches_work_where_keras_prefers_float64(
    float64, vocabulary, hparams
):
    model = random_model(hparams, vocabulary)
    options = SearchOptions.from_hparams(hparams, max_extra_length=1)
    translator = LineTranslator.from_model(
        model, vocabulary, options, xla=False
    )
    assert model.dtype == "float64"
    lines = [LINES[0], LINES[6]]
    expected = eager_translations(model, vocabulary, options, lines)
    assert_same(translator.translate(lines), expected)
    ids = tf.ragged.constant(vocabulary.encode(lines), tf.int32).to_tensor()
    loss = t2t_lite.LabelSmoothedCrossEntropy()
    model.compile("sgd", loss, run_eagerly=True)
    model.fit((ids, ids), ids, verbose=0)


def test_hardware_that_is_none_is_refused(model):
    options = SearchOptions(4, 0.6, max_extra_length=5)
    with pytest.raises(InputError, match="hardware must be a"):
        ids_translator(model, options, hardware="GPU")
