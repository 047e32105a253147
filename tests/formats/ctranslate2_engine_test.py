"""The engine translates a model directory as a Translator does."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from tiny_ctranslate2 import VARIANTS, conversions
from tiny_translator import LINES, assert_same, sentence

from t2t_lite.errors import InputError
from t2t_lite.formats import ctranslate2
from t2t_lite.formats.ctranslate2_engine import open_translator


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture(scope="module")
def parts(variant, make_parts):
    return make_parts(variant)


@pytest.fixture(scope="module")
def parts_directory(variant, make_directory):
    return make_directory(variant)


def test_options_that_steer_are_kept(tiny, directory):
    """The library's steered scores are replaced by the model's own."""
    translator = open_translator(
        directory.path,
        length_penalty=0.0,
        min_length=4,
        no_repeat_ngram_size=2,
        suppress_pieces=["\u2581dog"],
    )
    unsteered = open_translator(directory.path, length_penalty=0.0)
    sources = tf.ragged.constant(tiny.vocabulary.encode(LINES[:2]), tf.int32)
    found, plain = (
        each.translate_ids(sources) for each in (translator, unsteered)
    )
    (dog,) = tiny.vocabulary.encode(["dog"])[0][:-1]
    for ids_WT, scores_W in zip(*found, strict=True):
        ids = ids_WT[0][ids_WT[0] > 0].tolist()
        assert len(ids) > 4
        assert dog not in ids
        pairs = [*itertools.pairwise(ids)]
        assert len({*pairs}) == len(pairs)
        assert scores_W[0] < 0
    assert found.ids_BWT.tolist() != plain.ids_BWT.tolist()


def test_what_has_ended_has_the_models_score(tiny, directory):
    steered = open_translator(
        directory.path, length_penalty=0.0, suppress_pieces=["\u2581dog"]
    )
    plain = open_translator(directory.path, length_penalty=0.0)
    sources = tiny.vocabulary.encode(LINES[:2])
    target = tiny.vocabulary.encode(["the old cat"])[0]
    for n, source in enumerate(sources):
        (log_probs,) = plain.translate_ids._scores([source], [target])
        assert len(log_probs) == len(target)
        (hypotheses,) = steered.translate_ids.search([source])
        for hypothesis in hypotheses:
            if hypothesis.has_ended:
                (again,) = plain.translate_ids._scores(
                    [source], [hypothesis.ids]
                )
                np.testing.assert_allclose(hypothesis.log_prob, sum(again))
        assert hypotheses, n


def test_prefixes_are_kept(directory):
    translator = open_translator(directory.path, length_penalty=0.0)
    lines = ["a dog runs", "the old cat", "Two men. A cat. The old dog."]
    prefixes = ["the wat", "", "the grass. two birds"]
    found = translator.translate(lines, prefixes=prefixes)
    for (best, *_), prefix in zip(found, prefixes, strict=True):
        assert best.text.startswith(prefix)
    assert_same(found[1:2], translator.translate(lines[1:2]))
    ended = translator.translate(["a dog. men."], prefixes=["the cat. men"])
    assert ended[0][0].text.startswith("the cat. men")


@pytest.mark.slow
def test_a_written_folder_is_translated_with_alone(
    parts, parts_directory, tmp_path
):
    folder = ctranslate2.write(parts, tmp_path / "model")
    expected = open_translator(parts_directory.path, nbest=2)
    found = open_translator(folder, nbest=2)
    lines = [*LINES, sentence(40)]
    assert_same(found.translate(lines), expected.translate(lines))
    with pytest.raises(InputError, match="holds one model: checkpoint must be"):
        open_translator(folder, checkpoint="best")
    (folder / "metadata.json").write_text("{}")
    with pytest.raises(InputError, match="is not a complete folder"):
        open_translator(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xla": True}, "xla must be None or False; received xla=True"),
        (
            {"precision": "bfloat16"},
            "leave it at float32, and set quantization to",
        ),
        ({"devices": 2}, "devices must be all, or from 1 to 1 on this machine"),
        ({"devices": "two"}, "devices must be all, or from 1"),
        ({"quantization": "int4"}, "quantization must be None or one of"),
        ({"constraint": None}, "unknown option 'constraint'"),
        ({"checkpoint": "best"}, "has no checkpoint in best/"),
        ({"average_last": 3}, "too few to average the last 3"),
        ({"nbest": 9}, "nbest must be at most beam_width=4"),
        ({"suppress": ["the"]}, "not words: give suppress_pieces instead; rec"),
        (
            {"alternatives": 3},
            "alternatives are not available with the CTranslate2 engine: "
            "leave them out;",
        ),
        (
            {"glossary": {"a": "b"}},
            "a glossary is not available with the CTranslate2 engine: leave "
            "it out;",
        ),
        (
            {"keep": ["tags"]},
            "keep is not available with the CTranslate2 engine: leave it out;",
        ),
        ({"sample_top_k": 3}, "samples depend on their batch: leave it out;"),
    ],
)
def test_what_the_engine_cannot_keep_is_refused(directory, options, message):
    error = TypeError if "constraint" in options else InputError
    with pytest.raises(error, match=message) as raised:
        open_translator(directory.path, **options)
    assert "\n" not in str(raised.value)
    assert conversions(directory) == []


def test_a_quantization_that_the_device_has_not_is_refused(
    directory, monkeypatch
):
    import ctranslate2 as library

    monkeypatch.setattr(
        library, "get_supported_compute_types", lambda _: {"int8", "float32"}
    )
    message = "cpu supports: float32, int8; received quantization='float16'"
    with pytest.raises(InputError, match=message):
        open_translator(directory.path, quantization="float16")


def test_a_model_directory_of_another_machine_is_refused():
    with pytest.raises(
        InputError, match="only local files: copy gs://bucket/run to"
    ):
        open_translator("gs://bucket/run")
