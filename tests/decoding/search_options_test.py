"""Options that no search can have are refused."""

import math
import re

import pytest
from tiny_translator import ONE_LAYER

from t2t_lite.decoding.search import SearchOptions
from t2t_lite.errors import InputError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam_width": 0}, "beam_width must be at least 1; .*beam_width=0"),
        ({"length_penalty": -0.5}, "length_penalty must be at least 0"),
        ({"max_extra_length": -1}, "max_extra_length must be at least 0"),
        ({"nbest": 0}, "nbest must be at least 1"),
        ({"nbest": 5}, "at most beam_width=4; received nbest=5"),
        ({"nbest": 3, "beam_width": 2}, "at most beam_width=2"),
        ({"beam_width": 4.5}, "beam_width must be an integer"),
        ({"max_extra_length": "9"}, "max_extra_length must be an integer"),
        ({"length_penalty": math.inf}, "length_penalty must be finite; .*=inf"),
        ({"length_penalty": "1"}, "length_penalty must be a number; .*='1'"),
    ],
)
def test_options_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        SearchOptions.from_hparams(ONE_LAYER, **changes)


def test_options_are_those_of_the_settings_but_for_those_given():
    assert SearchOptions.from_hparams(ONE_LAYER) == SearchOptions(4, 0.6, 6)
    changes = {"beam_width": 7, "length_penalty": None, "nbest": 7}
    expected = SearchOptions(7, 0.6, 6, nbest=7)
    assert SearchOptions.from_hparams(ONE_LAYER, **changes) == expected


@pytest.mark.parametrize("options", [{"nbest": 2}, {"sample_top_k": 3}])
def test_alternatives_are_refused_beside_other_translations(options):
    message = "alternatives cannot be combined with nbest or sampling"
    with pytest.raises(InputError, match=message):
        SearchOptions.from_hparams(ONE_LAYER, alternatives=2, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"glossary": "terms.tsv"}, "glossary must be a dict of str, or pairs"),
        ({"glossary": 3}, "glossary must be a dict of str, or pairs of str"),
        ({"glossary": ["ab"]}, "glossary must be a dict of str, or pairs of"),
        ({"glossary": [("a", 1)]}, "glossary must be a dict of str, or pairs"),
        (
            {"glossary": {"a": "b"}, "sample_top_k": 2},
            "a glossary cannot be combined with sampling or alternatives; "
            "received sample_top_k=2, glossary='1 terms'",
        ),
        (
            {"glossary": {"a": "b"}, "alternatives": 2},
            "a glossary cannot be combined with sampling or alternatives; rec",
        ),
        *(
            (
                {"glossary": {"x": target}, "suppress": ["one", word]},
                "a suppressed word must not be in a glossary translation; "
                f"received suppress={[word]}, translation={target!r}",
            )
            for word, target in [
                ("two", "two"),
                ("two", "a two, three"),
                ("a two", "is a two"),
                ("a two", "is a  two"),
                ("C++", "C++11"),
            ]
        ),
    ],
)
def test_a_glossary_that_cannot_be_kept_is_refused(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        SearchOptions.from_hparams(ONE_LAYER, **options)


@pytest.mark.parametrize("word", ["two", "Twos", "", "s, two"])
def test_a_glossary_may_have_words_like_those_suppressed(word):
    options = {"glossary": {"x": "twos, two_a"}, "suppress": [word]}
    assert SearchOptions.from_hparams(ONE_LAYER, **options).suppress == (word,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_top_p": 1.5}, "sample_top_p must be a number from 0 to 1"),
        ({"sample_top_k": -1}, "sample_top_k must be"),
        (
            {"sample_top_k": 2, "temperature": 0},
            "temperature must be a number above 0",
        ),
        ({"sample_top_k": 2, "beam_width": 3}, "there is no beam in sampling"),
        ({"seed": 3}, "need sample_top_k or sample_top_p; received seed=3$"),
        ({"temperature": 2.0}, "seed and temperature need sample_top_k or"),
    ],
)
def test_options_that_cannot_be_drawn_by_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        SearchOptions.from_hparams(ONE_LAYER, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "tags"}, "keep must be a list of str"),
        ({"keep": ["tag"]}, "keep may hold only tags, urls, placeholders"),
        (
            {"keep": ["tags"], "sample_top_k": 2},
            "keep cannot be combined with sampling or alternatives; received",
        ),
        (
            {"keep": ["tags"], "alternatives": 2},
            "keep cannot be combined with sampling or alternatives; received",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        SearchOptions.from_hparams(ONE_LAYER, **options)


@pytest.mark.parametrize("options", [{"keep": ["tags"]}, {"alignments": "yes"}])
def test_alignments_that_cannot_be_are_refused(options):
    with pytest.raises(InputError, match="alignments"):
        SearchOptions.from_hparams(
            ONE_LAYER, **({"alignments": True} | options)
        )
