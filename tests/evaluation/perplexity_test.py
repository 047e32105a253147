"""Perplexity does not depend on how pairs are batched."""

import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from eagerly import eagerly
from token_pairs import pairs_in_memory

from t2t_lite.evaluation.perplexity import (
    TokenScorer,
    TokenScores,
    scoring_functions,
)
from t2t_lite.hparams import HParams
from t2t_lite.model import loss
from t2t_lite.model.transformer import Transformer

V = 311
TINY = HParams(
    num_layers=1,
    d_model=12,
    d_ff=20,
    num_heads=3,
    d_k=4,
    d_v=5,
    tokens_per_batch=100,
    max_length=31,
    num_buckets=5,
    max_extra_length=3,
    label_smoothing=0.3,
    dropout=0.5,
)
LEARNED = HParams(
    **(TINY.__dict__ | {"positions": "learned", "learned_positions": 37})
)
EOS = 1


def random_model(hparams):
    keras.utils.set_random_seed(5)
    model = Transformer(hparams, V)
    model.build()
    for variable in model.trainable_variables:
        if len(variable.shape) > 1:
            variable.assign(variable * 2.0)
    return model


@pytest.fixture(scope="module")
def model():
    return random_model(TINY)


@pytest.fixture(scope="module")
def learned():
    return random_model(LEARNED)


def random_pairs(num_pairs, longest=53, seed=4):
    """Returns (source, target) id lists of many lengths, each ending in EOS."""
    generator = np.random.default_rng(seed)
    return tuple(
        [
            [*generator.integers(2, V, length - 1).tolist(), EOS]
            for length in generator.integers(1, longest + 1, num_pairs)
        ]
        for _ in ("source", "target")
    )


traced_scoring = functools.cache(scoring_functions)


@functools.cache
def traced_once(model):
    ids = tf.TensorSpec([1, None], tf.int32)
    return tf.function(
        lambda *inputs: model(inputs),
        input_signature=[ids, ids],
        autograph=False,
    )


def loss_by_hand(model, pairs):
    """Returns (nats, tokens): the loss summed over pairs, one by one."""
    call, nats = traced_once(model), 0.0
    for source, target in pairs:
        inputs = tf.constant([source]), tf.constant([[EOS, *target[:-1]]])
        logits_TV = np.array(call(*inputs)[0], np.float64)
        log_sums_T = np.logaddexp.reduce(logits_TV, axis=1)
        nats += sum(
            log_sums_T[t] - logits_TV[t, i] for t, i in enumerate(target)
        )
    return nats, sum(len(target) for _, target in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_pairs", "max_tokens_per_batch"),
    [(1, 4096), (19, 4096), (19, 59), (7, 13)],
    ids=["one pair", "one batch each", "some batches", "longer than a batch"],
)
def test_the_loss_is_that_of_one_pair_after_the_other(
    model, num_pairs, max_tokens_per_batch
):
    sides = random_pairs(num_pairs)
    pairs = pairs_in_memory(*sides)
    assert max(pairs.target_lengths) > 13
    functions = traced_scoring(model)
    scores = TokenScorer(
        model, pairs, max_tokens_per_batch, functions=functions
    )()
    nats, tokens = loss_by_hand(model, list(zip(*sides, strict=True)))
    assert scores.tokens == tokens
    assert scores.loss == pytest.approx(nats / tokens, rel=1e-5)
    assert scores.perplexity == pytest.approx(math.exp(scores.loss))
    assert scores.left_out == 0


def test_a_scorer_sees_what_the_model_has_learned_since(model):
    sides = random_pairs(5)
    scorer = TokenScorer(model, pairs_in_memory(*sides))
    before = scorer()
    assert scorer() == before  # There is no dropout.
    weights = model.get_weights()
    model.set_weights([0.9 * weight for weight in weights])
    after = scorer()
    nats, tokens = loss_by_hand(model, list(zip(*sides, strict=True)))
    model.set_weights(weights)
    assert after.loss == pytest.approx(nats / tokens, rel=1e-5)
    assert after.loss != before.loss


def test_pairs_beyond_learned_positions_are_left_out_and_counted(learned):
    sides = random_pairs(23)
    scores = TokenScorer(learned, pairs_in_memory(*sides))()
    kept = [
        (source, target)
        for source, target in zip(*sides, strict=True)
        if max(len(source), len(target)) <= 37
    ]
    assert scores.left_out == 23 - len(kept) > 0
    nats, tokens = loss_by_hand(learned, kept)
    assert scores.tokens == tokens
    assert scores.loss == pytest.approx(nats / tokens, rel=1e-5)


def test_pairs_that_just_fit_the_learned_positions_are_scored(learned):
    sides = [[[7] * 36 + [EOS]] * 2, [[8] * 36 + [EOS], [9] * 37 + [EOS]]]
    scores = TokenScorer(learned, pairs_in_memory(*sides))()
    assert (scores.tokens, scores.left_out) == (37, 1)


def test_a_corpus_that_is_left_out_whole_has_no_tokens(learned):
    sides = [[[7] * 40 + [EOS]] * 3, [[8, EOS]] * 3]
    scores = TokenScorer(learned, pairs_in_memory(*sides))()
    assert scores == TokenScores(0.0, 0, 3)


def test_perplexity_is_e_to_the_loss_and_never_overflows():
    assert TokenScores(math.log(17), 5, 0).perplexity == pytest.approx(17)
    assert TokenScores(0.0, 5, 0).perplexity == 1
    assert math.isfinite(TokenScores(1e6, 5, 0).perplexity)


def test_no_more_logits_than_a_chunk_exist_at_a_time(model, monkeypatch):
    pairs = pairs_in_memory(*random_pairs(19))
    expected = TokenScorer(model, pairs)()
    sizes, token_losses = [], loss.token_losses

    def noting(logits, *arguments):
        sizes.append(math.prod(logits.shape))
        return token_losses(logits, *arguments)

    monkeypatch.setattr(loss, "token_losses", noting)
    monkeypatch.setattr(loss, "CHUNK_LOGITS", 7 * V + 5)
    scorer = TokenScorer(model, pairs)
    with eagerly():
        found = scorer()
    assert max(sizes) == 7 * V
    assert found.tokens == expected.tokens
    assert found.loss == pytest.approx(expected.loss, rel=1e-6)
