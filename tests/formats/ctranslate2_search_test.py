"""CTranslate2's search finds what ours finds."""

import math

import numpy as np
import pytest
import tensorflow as tf
from tiny_ctranslate2 import (
    FEW_TOKENS,
    SOMETIMES,
    VARIANTS,
    Parts,
    encoded,
    random_model,
    random_sentences,
    search_options,
)
from tiny_translator import LINES, TINY, assert_same, sentence

from t2t_lite import hardware
from t2t_lite.decoding.engine import model_engine
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.search import ids_translator
from t2t_lite.formats import ctranslate2
from t2t_lite.formats.ctranslate2_engine import open_translator
from t2t_lite.formats.ctranslate2_search import CTranslate2Search, find_workers
from t2t_lite.token_ids import EOS, PAD
from t2t_lite.translation.line_translator import LineTranslator


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture(scope="module")
def parts(variant, make_parts):
    return make_parts(variant)


@pytest.fixture(scope="module")
def parts_directory(variant, make_directory):
    return make_directory(variant)


@pytest.fixture(scope="module")
def tiny_ending(vocabulary):
    return Parts(random_model(TINY, vocabulary, end=SOMETIMES), vocabulary)


def written_search(parts, folder, options, quantization=None):
    """Writes a model to a folder and returns its CTranslate2Search."""
    ctranslate2.write(parts, folder, quantization=quantization)
    library = find_workers(quantization=quantization).load(folder)
    return CTranslate2Search(
        library, parts.vocabulary, parts.hparams, options=options
    )


def pieces_of(ids):
    return [i for i in np.asarray(ids).tolist() if i != PAD]


def log_probs(model, sources, targets):
    """Returns the model's log probability of each target, leaving out PAD."""

    def padded(lists):
        return tf.ragged.constant(lists, tf.int32).to_tensor().numpy()

    shifted = padded([[EOS, *target[:-1]] for target in targets])
    logits_BTV = model((padded(sources), shifted)).numpy().astype("f8")
    logits_BTV[..., PAD] = -np.inf
    log_probs_BTV = logits_BTV - np.logaddexp.reduce(
        logits_BTV, axis=-1, keepdims=True
    )
    return [
        log_probs_TV[np.arange(len(target)), target].sum()
        for log_probs_TV, target in zip(log_probs_BTV, targets, strict=True)
    ]


@pytest.fixture(scope="module")
def ours(parts):
    """The Engine that searches `parts` with this package."""
    options = search_options(parts, nbest=4, **FEW_TOKENS)
    return model_engine(parts.model, parts.vocabulary, options, xla=False)


@pytest.mark.slow
def test_beam_search_finds_what_ours_finds(parts, ours, tmp_path):
    options = search_options(parts, nbest=4, **FEW_TOKENS)
    ids = encoded(parts, random_sentences())
    found = written_search(parts, tmp_path / "model", options)(ids)
    expected = ours.translate_ids(ids)
    np.testing.assert_array_equal(found.ids_BWT, expected.ids_BWT)
    np.testing.assert_allclose(found.scores_BW, expected.scores_BW, atol=1e-4)
    assert len({tuple(pieces_of(each[0])) for each in found.ids_BWT}) > 15


@pytest.fixture(scope="module")
def ending(parts):
    """Like `parts`, but with hypotheses that end."""
    model = random_model(parts.hparams, parts.vocabulary, end=SOMETIMES)
    return Parts(model, parts.vocabulary)


@pytest.fixture
def ours_ending(parts, ending, ours):
    """`ours` with the weights of `ending`, to save tracing a second graph."""
    weights = parts.model.get_weights()
    parts.model.set_weights(ending.model.get_weights())
    yield ours
    parts.model.set_weights(weights)


@pytest.mark.slow
def test_ends_behind_the_beam_are_all_that_ours_finds_more(
    ending, ours_ending, tmp_path
):
    options = search_options(ending, **FEW_TOKENS)
    ids = encoded(ending, random_sentences())
    found = written_search(ending, tmp_path / "model", options)(ids)
    expected = ours_ending.translate_ids(ids)
    for ids_WT, our_ids_WT, (score,), (our_score, *_) in zip(
        found.ids_BWT,
        expected.ids_BWT,
        found.scores_BW,
        expected.scores_BW.numpy(),
        strict=True,
    ):
        best, our_best = pieces_of(ids_WT[0]), pieces_of(our_ids_WT[0])
        if best == our_best:
            assert abs(score - our_score) < 1e-4
        elif best[-1] == EOS:
            assert our_best[-1] == EOS
            assert score < our_score


def test_scores_are_the_models_log_probabilities(ending, tmp_path):
    options = search_options(ending, nbest=4, max_extra_length=2)
    lines = random_sentences(8)
    search = written_search(ending, tmp_path / "model", options)
    found = search(encoded(ending, lines))
    sources = [s for s in ending.vocabulary.encode(lines) for _ in range(4)]
    targets = [pieces_of(ids_T) for ids_WT in found.ids_BWT for ids_T in ids_WT]
    assert any(target[-1] == EOS for target in targets)
    np.testing.assert_allclose(
        found.scores_BW.ravel(),
        log_probs(ending.model, sources, targets),
        atol=1e-4,
    )


def test_a_translation_has_at_most_its_own_limit_of_tokens(tiny, tmp_path):
    options = search_options(tiny, nbest=4, max_extra_length=1)
    lines = ["the dog.", "a dog runs.", sentence(12), sentence(20)]
    search = written_search(tiny, tmp_path / "model", options)
    together = search(encoded(tiny, lines))
    lengths = (together.ids_BWT != PAD).sum(-1).max(-1)
    limits = [len(ids) + 1 for ids in tiny.vocabulary.encode(lines)]
    assert (lengths <= limits).all()
    assert (lengths == limits).any()
    expected = ids_translator(tiny.model, options, xla=False)(
        encoded(tiny, lines)
    )
    T = expected.ids_BWT.shape[-1]
    ids_BT = np.pad(together.ids_BWT[:, 0], [(0, 0), (0, T)])[:, :T]
    np.testing.assert_array_equal(ids_BT, expected.ids_BWT[:, 0])


@pytest.mark.parametrize("name", ["tiny", "tiny_ending"])
def test_batch_mates_change_no_translation(name, request, tmp_path):
    parts = request.getfixturevalue(name)
    options = search_options(parts, nbest=2, max_extra_length=3)
    search = written_search(parts, tmp_path / "model", options)
    lines = random_sentences(12)
    together = search.search(parts.vocabulary.encode(lines))
    for line, expected in zip(lines, together, strict=True):
        (alone,) = search.search(parts.vocabulary.encode([line]))
        assert [f.ids for f in alone] == [f.ids for f in expected]


def test_with_a_penalty_the_papers_formula_ranks(tiny_ending, tmp_path):
    alpha = 1.5
    plain = search_options(tiny_ending, nbest=4)
    search = written_search(tiny_ending, tmp_path / "model", plain)
    options = search_options(tiny_ending, nbest=2, length_penalty=alpha)
    ranking = CTranslate2Search(
        search._library, tiny_ending.vocabulary, TINY, options=options
    )
    ids = encoded(tiny_ending, random_sentences(20))
    all_ids_BWT, log_probs_BW = search(ids)
    lengths_BW = (all_ids_BWT != PAD).sum(-1)
    scores_BW = log_probs_BW / ((5 + lengths_BW) / 6) ** alpha
    order_BW = np.argsort(-scores_BW, axis=1)[:, :2]
    assert (order_BW[:, 0] != 0).any()
    found = ranking(ids)
    np.testing.assert_allclose(
        found.scores_BW, np.take_along_axis(scores_BW, order_BW, 1), rtol=1e-5
    )


def test_a_source_without_tokens_has_no_translation(tiny, tmp_path):
    options = search_options(tiny, nbest=2)
    search = written_search(tiny, tmp_path / "model", options)
    ids = tf.ragged.constant([[], [EOS], [5, EOS]], tf.int32)
    found = search(ids)
    np.testing.assert_array_equal(found.ids_BWT[:2], 0)
    np.testing.assert_array_equal(found.scores_BW[:2], [[0, -math.inf]] * 2)
    assert found.scores_BW[2, 1] > -math.inf


@pytest.mark.parametrize("quantization", ["int8", "int8_float32", "bfloat16"])
def test_quantized_models_find_nearly_the_same(tiny, tmp_path, quantization):
    options = search_options(tiny, nbest=4)
    ids = encoded(tiny, random_sentences(10))
    exact = written_search(tiny, tmp_path / "float32", options)(ids)
    ctranslate2.write(tiny, tmp_path / "model", quantization=quantization)
    library = find_workers().load(tmp_path / "model")
    search = CTranslate2Search(library, tiny.vocabulary, TINY, options=options)
    found = search(ids)
    size, whole = (
        (tmp_path / name / "model.bin").stat().st_size
        for name in ("model", "float32")
    )
    assert size < 0.8 * whole
    difference_BW = np.abs(found.scores_BW - exact.scores_BW)
    assert 0 < np.median(difference_BW) < 0.6


@pytest.mark.slow
def test_lines_are_translated_as_by_ours(parts, parts_directory, ours):
    directory = parts_directory
    translator = open_translator(
        directory.path, length_penalty=0.0, nbest=2, **FEW_TOKENS
    )
    our_translator = LineTranslator(
        ours,
        parts.vocabulary,
        search_options(parts, nbest=4, **FEW_TOKENS),
        splitting=directory.settings().splitting(),
    )
    lines = [*LINES, " ", f"{sentence(4)} {sentence(3)}", sentence(40)]
    found, expected = (
        translator.translate(lines),
        our_translator.translate(lines),
    )
    assert [len(each) for each in found] == [2] * len(lines)
    assert_same(found, [each[:2] for each in expected])
    assert found[2] == found[7] == [Translation("", 0.0)] * 2
    assert_same(translator.translate(lines[::-1]), found[::-1])
    assert list(translator.stream(iter(lines), lines_at_once=4))[4] == found[4]
    assert translator(lines[:2]) == [each[0].text for each in found[:2]]


@pytest.mark.parametrize("lacks_vnni", [False, True])
def test_int8_without_instructions_for_it_is_warned_of(
    tiny, tmp_path, monkeypatch, caplog, lacks_vnni
):
    monkeypatch.setattr(hardware, "lacks_vnni", lambda: lacks_vnni)
    monkeypatch.setenv("CT2_USE_MKL", "0")
    ctranslate2.write(tiny, tmp_path / "model", quantization="int8")
    with caplog.at_level("WARNING"):
        find_workers().load(tmp_path / "model")
    assert ("no instructions for int8" in caplog.text) == lacks_vnni
    caplog.clear()
    find_workers(quantization="float32").load(tmp_path / "model")
    assert "int8" not in caplog.text


def test_cores_search_side_by_side(monkeypatch):
    monkeypatch.setattr(hardware, "num_cores", lambda: 32)
    workers = find_workers()
    assert (workers.inter_threads, workers.intra_threads) == (16, 2)
