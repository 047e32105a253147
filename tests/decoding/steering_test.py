"""Options steer a search together, and those that cannot are refused."""

import numpy as np
import pytest
import tensorflow as tf
from tiny_searches import ALL_THAT_STEERS, PREFIXES
from tiny_translator import LINES

from t2t_lite.errors import InputError
from t2t_lite.token_ids import EOS
from t2t_lite.translation.line_translator import LineTranslator


@pytest.mark.slow
def test_what_steers_a_search_is_the_same_with_xla(
    steered, translator, model, vocabulary
):
    plain = steered(**ALL_THAT_STEERS)
    compiled = LineTranslator.from_model(
        model, vocabulary, plain.options, xla=True
    )
    lines, prefixes = LINES[::3], PREFIXES[::3]  # All of one shape.
    found, expected, without = (
        each(lines, prefix=prefixes) for each in (compiled, plain, translator)
    )
    assert found == expected != without


def test_options_steer_translations(steered, translator):
    plain = translator(LINES)
    words = {word for text in plain for word in text.split()}
    suppressed = tuple(sorted(words)[:5])
    found = steered(suppress=suppressed)(LINES)
    assert not {word for text in found for word in text.split()} & {*suppressed}


def test_pieces_are_suppressed(steered, vocabulary, translator):
    sources = tf.ragged.constant(vocabulary.encode(LINES), tf.int32)
    plain = np.asarray(translator.translate_ids(sources).ids_BWT)
    newest = plain[plain > EOS][0]
    (piece,) = vocabulary.tokens([newest])
    without = steered(suppress_pieces=[piece])
    assert newest not in np.asarray(without.translate_ids(sources).ids_BWT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suppress": ["\u732b"]}, "the vocabulary has no piece for '\u732b'"),
        ({"suppress_pieces": ["zebra"]}, "has no piece 'zebra' to suppress"),
        ({"suppress_pieces": ["</s>"]}, "has no piece '</s>' to suppress"),
        ({"suppress": "the"}, "suppress must be a list of str"),
        ({"min_length": -1}, "min_length must be"),
        ({"no_repeat_ngram_size": 1.5}, "no_repeat_ngram_size must be"),
    ],
)
def test_options_that_cannot_steer_are_refused(steered, options, message):
    with pytest.raises(InputError, match=message):
        steered(**options)
