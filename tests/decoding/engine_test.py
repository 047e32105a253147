"""Given texts have the scores of translations."""

import math

import numpy as np
import tensorflow as tf
from tiny_searches import score_of
from tiny_translator import ONE_LAYER

from t2t_lite.decoding.engine import model_engine
from t2t_lite.decoding.search import SearchOptions


def test_texts_have_the_scores_of_translations(model, vocabulary):
    options = SearchOptions.from_hparams(ONE_LAYER, length_penalty=0.7)
    engine = model_engine(model, vocabulary, options, xla=False)
    sources, targets = ["a red boat", "men, men"], ["the old cat", "two"]
    encoded = [vocabulary.encode(each) for each in (sources, targets)]
    ids = tf.ragged.constant(encoded[0], tf.int32)
    np.testing.assert_allclose(
        engine.score_texts(ids, targets),
        [score_of(model, *pair, 0.7) for pair in zip(*encoded, strict=True)],
        rtol=1e-5,
    )
    # There is no room for so long a text.
    assert engine.score_texts(ids[:1], ["the dog " * 50])[0] == -math.inf


def test_texts_that_the_options_rule_out_have_no_score(model, vocabulary):
    options = SearchOptions.from_hparams(
        ONE_LAYER, suppress=["old"], min_length=2, no_repeat_ngram_size=1
    )
    engine = model_engine(model, vocabulary, options, xla=False)
    texts = ["the dog", "the old dog", "", "the the"]
    ids = tf.ragged.constant(vocabulary.encode(["a dog"] * 4), tf.int32)
    is_possible = engine.score_texts(ids, texts) > -math.inf
    assert is_possible.tolist() == [True, False, False, False]
