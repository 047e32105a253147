"""What searches with tiny_translator's models find, without any graph."""

import dataclasses
import re

import numpy as np
import tensorflow as tf
from tiny_translator import LEARNED, ONE_LAYER

from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.search import search
from t2t_lite.token_ids import EOS, PAD

SEED = 4  # With its weights, a beam search finds the best there is.


def eager_search(model, vocabulary, options, lines, constraint=None):
    """Returns the Hypotheses of lines that are not blank, without any graph."""
    ids = tf.ragged.constant(vocabulary.encode(lines), tf.int32)
    return search(model, ids.to_tensor(), options, constraint=constraint)


def eager_translations(model, vocabulary, options, lines):
    """Returns the `nbest` Translations of each line, without any graph."""
    texts = [line for line in lines if line]
    hypotheses = eager_search(model, vocabulary, options, lines=texts)
    found = {"": [Translation("", 0.0)] * options.nbest}
    for n, text in enumerate(texts):
        best = vocabulary.decode(hypotheses.ids_BWT[n].numpy())
        scores = hypotheses.scores_BW[n].numpy().tolist()
        translations = map(Translation, best, scores)
        found[text] = list(translations)[: options.nbest]
    return [found[line] for line in lines]


# Settings that change decoding and that ONE_LAYER lacks.
UNLIKE = {
    "positions": "learned",
    "learned_positions": LEARNED.learned_positions,
    "attention_window": 5,
}
UNLIKE_ONE_LAYER = dataclasses.replace(ONE_LAYER, **UNLIKE)


def score_of(model, source_ids, target_ids, alpha):
    """Returns the log probability of a target divided by its length penalty."""
    inputs = np.array([source_ids]), np.array([[EOS, *target_ids[:-1]]])
    logits_TV = np.array(model(inputs)[0], np.float64)
    # Padding is not a token: its probability goes to the others.
    logits_TV[:, PAD] = -1e9
    log_probs_TV = logits_TV - np.logaddexp.reduce(logits_TV, 1, keepdims=True)
    log_prob = sum(log_probs_TV[t, i] for t, i in enumerate(target_ids))
    return log_prob / ((5 + len(target_ids)) / 6) ** alpha


PREFIXES = ["the c", "a red ", "", "m", "two men and a b", "old", "."]
GLOSSARY = {"red boat": "old cat", "men": "the water", "sits": "two"}


def words_in(text, term):
    return len(re.findall(rf"(?<!\w){re.escape(term)}(?!\w)", text))


ALL_THAT_STEERS = {
    "min_length": 3,
    "no_repeat_ngram_size": 2,
    "suppress": ["bird", "men"],
}
