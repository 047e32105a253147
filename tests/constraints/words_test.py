"""Tokens begin something new where a regular expression divides the text."""

import re

import numpy as np
import pytest
from keras import ops

from t2t_lite.constraints.words import Words

TEXTS = [" Hund", "e", ".", ") ", " ", "a_", " -", "ä.", "\u00a0b"]


def runs(text):
    """Returns the runs of white space, letters and digits, and signs."""
    return re.findall(r"\s+|\w+|[^\w\s]+", text)


def is_divided(before, token):
    """Returns whether the kind of character changes between two tokens."""
    return len(runs(before + token)) == len(runs(before)) + len(runs(token))


@pytest.mark.parametrize("before", TEXTS)
def test_tokens_begin_something_new_where_the_kind_of_character_changes(before):
    words = Words([text.encode() for text in TEXTS])
    V = len(TEXTS)
    ids_BW = np.array([[TEXTS.index(before)] * V])
    kind_BW = words.kind_after(ids_BW, is_first_BW=np.zeros((1, V), bool))
    is_new_BWV = ops.convert_to_numpy(words.begins_new(kind_BW))
    may_begin_BW = words.may_begin(kind_BW, np.arange(V)[None])
    after_space = before[-1].isspace()
    changes = [is_divided(before, token) for token in TEXTS]
    assert is_new_BWV[0, 0].tolist() == [
        each and not after_space for each in changes
    ]
    assert ops.convert_to_numpy(may_begin_BW)[0].tolist() == [
        each or after_space for each in changes
    ]


def test_what_comes_first_follows_a_space():
    words = Words([text.encode() for text in TEXTS])
    kind_BW = words.kind_after(np.array([[1]]), is_first_BW=np.array([[True]]))
    assert not np.any(words.begins_new(kind_BW))
