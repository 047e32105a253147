"""Translations begin with any prefix that they are given."""

import itertools
import re

import numpy as np
import tensorflow as tf
from constrained_tables import (
    T,
    assert_finds,
    batch,
    ended,
    everything,
    text_of,
)
from search_tables import EOS, random_table, search, without_padding

from t2t_lite.constraints import token_constraints
from t2t_lite.constraints.prefix import PrefixTokens
from t2t_lite.constraints.suppression import WordAutomaton

PREFIX_T = 5
PREFIX_TEXTS = [b"", b"", b"a", b"ab"]  # Id 0 is in no prefix.


def greedy(text):
    """Returns the ids of a text: from the left, the longest tokens that fit."""
    ids = []
    while text:
        _, token = max(
            (len(each), i)
            for i, each in enumerate(PREFIX_TEXTS)
            if each and text.startswith(each)
        )
        ids.append(token)
        text = text[len(PREFIX_TEXTS[token]) :]
    return ids


def begins(ids, begun, is_complete):
    """Returns whether ids follow a prefix, up to a token that has its rest.

    After a complete prefix, only EOS may follow.
    """
    if is_complete:
        return ids == (*begun, EOS)
    for n in range(len(begun)):
        rest = text_of(begun[n:], PREFIX_TEXTS)
        if PREFIX_TEXTS[ids[n]].decode().startswith(rest):
            return True
        if ids[n] != begun[n]:
            return False
    return True


def test_every_prefix_of_every_text_is_kept_and_nothing_else_changes():
    """All prefixes of up to five letters, complete or not, in one batch."""
    prefixes = [
        (greedy("".join(letters).encode()), is_complete)
        for n in range(6)
        for letters in itertools.product("ab", repeat=n)
        if re.fullmatch("(a|ab)*", "".join(letters))
        for is_complete in (False, True)
    ]
    table = random_table(seed=7, batch_size=1, T=PREFIX_T)
    pairs = ended(table[0], PREFIX_T)
    rows = [ids + [EOS] * is_complete for ids, is_complete in prefixes]
    tokens = PrefixTokens(PREFIX_TEXTS)
    ids_BK = tf.ragged.constant(rows, tf.int32).to_tensor()
    constraint = tokens.constraint(
        batch(len(prefixes), PREFIX_T, prefixes_BK3=tokens.places(ids_BK))
    )
    found = search(
        np.repeat(table, len(prefixes), axis=0),
        [PREFIX_T] * len(prefixes),
        constraint=constraint,
        num_best=everything(PREFIX_T),
        beam_width=everything(PREFIX_T),
    )
    for (begun, is_complete), *one in zip(prefixes, *found, strict=True):
        expected = [
            (score, ids)
            for score, ids in pairs
            if begins(ids, begun, is_complete)
        ]
        assert_finds(*one, expected)
        for _, ids in expected:
            text = text_of(ids, PREFIX_TEXTS)
            assert text.startswith(text_of(begun, PREFIX_TEXTS))


def ended_with(constraint):
    """Returns the set of all finished hypotheses, each a tuple of ids."""
    ids_BWT, scores_BW = search(
        random_table(seed=5, batch_size=1, T=T),
        [T],
        constraint=constraint,
        num_best=everything(),
        beam_width=everything(),
    )
    return {
        without_padding(ids_T)
        for ids_T, score in zip(ids_BWT[0], scores_BW[0], strict=True)
        if score > -np.inf and EOS in ids_T
    }


def test_nothing_else_is_asked_of_what_a_prefix_says():
    """No token may occur twice, except those of the prefix "aa"."""
    other, a, ab = 0, 2, 3
    tokens = PrefixTokens(PREFIX_TEXTS)
    of_batch = batch(prefixes_BK3=tokens.places(tf.constant([[a, a]])))
    constraint = tokens.constraint(
        of_batch, then=token_constraints.no_repeated_ngrams(of_batch, 1)
    )
    found = ended_with(constraint)
    assert found == {
        (a, a, EOS),
        (a, a, ab, EOS),
        (a, a, other, EOS),
        (a, ab, EOS),
        (a, ab, other, EOS),
    }


def test_a_suppressed_word_may_stand_in_a_prefix():
    """After it, the search continues as after any other word."""
    texts = [b"", b"", b" a", b" b"]
    tokens = PrefixTokens(texts)
    a, b = 2, 3
    of_batch = batch(prefixes_BK3=tokens.places(tf.constant([[a, b]])))
    constraint = tokens.constraint(
        of_batch, then=WordAutomaton(["a"], texts).constraint(of_batch)
    )
    found = ended_with(constraint)
    assert found == {(a, b, EOS), (a, b, b, EOS), (a, b, 0, EOS)}


def test_what_no_token_spells_begins_no_translation():
    tokens = PrefixTokens([*PREFIX_TEXTS, b""])
    places_BK3 = tokens.places(tf.constant([[4]]))
    constraint = tokens.constraint(
        batch(prefixes_BK3=places_BK3, num_target_ids=5)
    )
    _, scores_BW = search(
        random_table(seed=1, batch_size=1, V=5, T=3),
        [3],
        constraint=constraint,
        beam_width=everything(),
    )
    assert np.all(scores_BW == -np.inf)
