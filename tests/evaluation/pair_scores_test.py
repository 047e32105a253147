"""Scores of given pairs are the model's and equal those of a search."""

import dataclasses
import json
import math

import numpy as np
import pytest
import tensorflow as tf
from tiny_translator import LEARNED, LINES, TINY, learn_vocabulary, random_model

from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.evaluation import pair_scores
from t2t_lite.evaluation.pair_scores import score_pairs
from t2t_lite.model.transformer import shift_right
from t2t_lite.text.vocabulary import FlatIds
from t2t_lite.token_ids import EOS, PAD
from t2t_lite.translation.line_translator import LineTranslator

SHALLOW, SHALLOW_LEARNED = (
    dataclasses.replace(hparams, num_layers=1) for hparams in (TINY, LEARNED)
)
PAIRS = [*zip(LINES, reversed(LINES), strict=True)]


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


@pytest.fixture(scope="module")
def model(vocabulary):
    return random_model(SHALLOW, vocabulary)


def by_hand(model, vocabulary, source, target):
    """Returns log p of each token of one target, in a batch of one."""
    source_ids, target_ids = (
        tf.constant([ids]) for ids in vocabulary.encode([source, target])
    )
    logits_BTV = model((source_ids, shift_right(target_ids)))
    # Without the logit of padding.
    log_p_TV = tf.nn.log_softmax(logits_BTV[:, :, 1:])[0].numpy()
    return [log_p_TV[n, i - 1] for n, i in enumerate(target_ids[0].numpy())]


def test_scores_are_the_models(model, vocabulary):
    found = [*score_pairs(model, vocabulary, PAIRS)]
    assert len(found) == len(PAIRS)
    for score, pair in zip(found, PAIRS, strict=True):
        expected = by_hand(model, vocabulary, *pair)
        np.testing.assert_allclose(
            score.log_probabilities, expected, rtol=1e-5, atol=1e-5
        )
        assert score.log_probability == pytest.approx(sum(expected), abs=1e-4)
        ids = vocabulary.encode([pair[1]])[0]
        assert score.tokens == vocabulary.tokens(ids)


def test_what_a_search_has_found_has_its_score(model, vocabulary):
    options = SearchOptions(30, 0.0, 6)  # Wide enough for some to end.
    translator = LineTranslator.from_model(model, vocabulary, options)
    sources = [line for line in LINES if line]
    ids = tf.ragged.constant(vocabulary.encode(sources), tf.int32)
    found = translator.translate_ids(ids)
    hypotheses = [
        (source, target[target != PAD].tolist(), score)
        for source, beam, scores in zip(
            sources, found.ids_BWT.numpy(), found.scores_BW.numpy(), strict=True
        )
        for target, score in zip(beam, scores, strict=True)
    ]
    sources, targets, expected = zip(*hypotheses, strict=True)
    # Given as ids: their text would be tokenized into other pieces.
    scores = score_pairs(
        model,
        vocabulary,
        [(source, "") for source in sources],
        encode_targets=lambda _: FlatIds.from_lists(targets),
    )
    np.testing.assert_allclose(
        [score.log_probability for score in scores], expected, atol=1e-4
    )
    assert any(EOS in target for target in targets)


def test_blocks_have_the_scores_of_all(model, vocabulary, monkeypatch):
    whole = [*score_pairs(model, vocabulary, PAIRS)]
    monkeypatch.setattr(pair_scores, "_PAIRS_AT_ONCE", 3)
    found = [*score_pairs(model, vocabulary, iter(PAIRS))]
    for one, other in zip(found, whole, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_allclose(
            one.log_probabilities, other.log_probabilities, atol=2e-5
        )


def test_nothing_has_no_scores(model, vocabulary):
    assert [*score_pairs(model, vocabulary, [])] == []


def test_a_pair_that_is_too_long_is_not_scored(vocabulary):
    long = " ".join(["dog"] * 30)
    pairs = [("the dog", long), *PAIRS[:2]]
    model = random_model(SHALLOW_LEARNED, vocabulary)
    found = score_pairs(model, vocabulary, pairs)
    first, *rest = found
    assert math.isnan(first.log_probability)
    assert first.as_text() == "nan"
    assert json.loads(first.as_json())["log_probability"] is None
    assert all(math.isfinite(each.log_probability) for each in rest)


def test_json_has_each_token(model, vocabulary):
    (score,) = score_pairs(model, vocabulary, PAIRS[1:2])
    parsed = json.loads(score.as_json())
    assert parsed["log_probability"] == score.log_probability
    tokens, log_probabilities = zip(*parsed["tokens"], strict=True)
    assert list(tokens) == score.tokens
    assert list(log_probabilities) == score.log_probabilities
