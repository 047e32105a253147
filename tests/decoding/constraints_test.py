"""Constraints rule out exactly what brute force shows that they must."""

import itertools
import re

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops
from search_tables import (
    EOS,
    V,
    exhaustive,
    random_table,
    search,
    without_padding,
)

from t2t_lite.decoding import constraints, suppression
from t2t_lite.decoding.constraints import Batch
from t2t_lite.decoding.prefix import PrefixTokens
from t2t_lite.decoding.suppression import WordAutomaton
from t2t_lite.errors import InputError

T = 4
# The text of each id of a table.
TEXTS = [b" a", b"", b"a", b"b"]


def everything(T=T):
    """Returns the width of a beam that holds every hypothesis."""
    return 3**T


def batch(num_rows=1, T=T, **others):
    return Batch(
        source_ids_BS=np.ones((num_rows, 1), "int32"),
        max_lengths_B=ops.convert_to_tensor(np.full(num_rows, T, "int32")),
        max_length=T,
        beam_width=everything(T),
        **{"num_target_ids": V} | others,
    )


def text_of(ids, texts=TEXTS):
    return b"".join(texts[i] for i in ids).decode()


def ended(table_NV, T=T):
    """Returns [(score, ids)] of what finishes, best first."""
    return [pair for pair in exhaustive(table_NV, T, 0.6) if EOS in pair[1]]


def assert_finds(ids_WT, scores_W, expected):
    """Checks that the finished hypotheses are just the expected ones."""
    found = [without_padding(ids_T) for ids_T in ids_WT]
    is_possible = scores_W > -np.inf
    is_ended = [EOS in ids for ids in found] & is_possible
    assert sum(is_ended) == len(expected)
    for n, (score, ids) in enumerate(expected):
        assert found[n] == ids
        np.testing.assert_allclose(scores_W[n], score, rtol=1e-5)


def assert_constrained(constraint, is_right, T=T):
    table = random_table(seed=11, batch_size=1, T=T)
    pairs = ended(table[0], T)
    expected = [pair for pair in pairs if is_right(pair[1])]
    assert 0 < len(expected) < len(pairs)
    W = everything(T)
    ids_BWT, scores_BW = search(
        table, [T], constraint=constraint, num_best=W, beam_width=W
    )
    assert_finds(ids_BWT[0], scores_BW[0], expected)
    return [*map(without_padding, ids_BWT[0][scores_BW[0] > -np.inf])]


@pytest.mark.parametrize("least", [1, 2, 3])
def test_translations_have_at_least_so_many_tokens(least):
    assert_constrained(
        constraints.min_length(batch(), least), lambda ids: len(ids) > least
    )


def test_what_has_no_room_for_the_least_length_fills_its_room():
    assert_constrained(
        constraints.min_length(batch(), 100), lambda ids: len(ids) == T
    )


@pytest.mark.parametrize(("n", "T"), [(1, 4), (2, 4), (3, 5)])
def test_no_ngram_is_repeated(n, T):
    def is_right(ids):
        ngrams = [ids[i : i + n] for i in range(len(ids) - n + 1)]
        return len({*ngrams}) == len(ngrams)

    constraint = constraints.no_repeated_ngrams(batch(T=T), n)
    assert_constrained(constraint, is_right, T)


def test_all_of_some_constraints_hold():
    both = constraints.all_of(
        [
            constraints.min_length(batch(), 2),
            constraints.no_repeated_ngrams(batch(), 1),
        ]
    )
    assert_constrained(
        both, lambda ids: len({*ids}) == len(ids) and len(ids) > 2
    )


def test_pieces_are_left_out():
    assert_constrained(
        suppression.without_pieces([2], batch()), lambda ids: 2 not in ids
    )


@pytest.mark.parametrize(
    "words", [["a"], ["b"], ["ab"], ["aa", "b"], ["a a"], ["a", "ab", "aab"]]
)
def test_words_are_left_out_however_they_are_segmented(words):
    pattern = "|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words)
    constraint = WordAutomaton(words, TEXTS).constraint(batch())
    found = assert_constrained(
        constraint, lambda ids: not re.search(pattern, text_of(ids))
    )
    # Not even in translations that stop for lack of room.
    texts = [text_of(ids) for ids in found]
    assert any(texts)
    assert not any(re.search(pattern, text) for text in texts)


_CHARACTERS = "ab .-_ä"
_WORDS = st.lists(
    st.text(_CHARACTERS, min_size=1, max_size=4).filter(
        lambda word: word == word.strip()
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=300)
@given(_WORDS, st.lists(st.text(_CHARACTERS, max_size=3), max_size=6))
def test_the_automaton_finds_what_a_regular_expression_does(words, tokens):
    """As whole words, however tokens divide the text."""
    texts = [t.encode() for t in [*_CHARACTERS, *tokens]]
    token_bytes = [b"", b"", *texts]
    automaton = WordAutomaton(words, token_bytes)
    state, is_found = 0, False
    for i in [*range(2 + len(_CHARACTERS), len(token_bytes)), EOS]:
        is_found |= automaton._completes_SV[state, i]
        state = automaton._after_SV[state, i]
    # Where a word begins or ends with a sign, a letter may be next to it.
    pattern = "|".join(
        (r"(?<!\w)" if re.match(r"\w", word) else "")
        + re.escape(word)
        + (r"(?!\w)" if re.match(r"\w", word[-1]) else "")
        for word in words
    )
    assert is_found == bool(re.search(pattern, "".join(tokens)))


def test_too_many_words_are_refused_at_once():
    letters = [letter.encode() for letter in "abcdefghij"]
    words = [
        f"{n:06}".translate(str.maketrans("0123456789", "abcdefghij"))
        for n in range(40_000)
    ]
    with pytest.raises(InputError, match="cannot suppress 40000 words with a"):
        WordAutomaton(words, [b"", b"", *letters])


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("", "not be empty, or begin or end with a space; received word="),
        ("a ", "empty, or begin or end with a space; received word='a '"),
        ("c", "the vocabulary has no piece for 'c': 'c' cannot be suppressed"),
    ],
)
def test_a_word_that_cannot_be_suppressed_is_refused(word, message):
    with pytest.raises(InputError, match=re.escape(message)):
        WordAutomaton([word], TEXTS)


# Prefixes.

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
        of_batch, then=constraints.no_repeated_ngrams(of_batch, 1)
    )
    found = ended_with(constraint)
    assert found == {
        *((a, a, EOS), (a, a, ab, EOS), (a, a, other, EOS)),
        *((a, ab, EOS), (a, ab, other, EOS)),
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
