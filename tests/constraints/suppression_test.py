"""Words and pieces are left out, as regular expressions show."""

import re

import pytest
from constrained_tables import TEXTS, assert_constrained, batch, text_of
from hypothesis import given, settings
from hypothesis import strategies as st
from search_tables import EOS

from t2t_lite.constraints import suppression
from t2t_lite.constraints.suppression import WordAutomaton
from t2t_lite.errors import InputError


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
