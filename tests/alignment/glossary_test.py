"""A glossary finds the terms of a text, and asks for their translations."""

import types

import pytest
from tiny_translator import learn_vocabulary

from t2t_lite.alignment.glossary import Glossary
from t2t_lite.errors import InputError
from t2t_lite.token_ids import EOS

PAIRS = [
    ("red", "old"),
    ("red boat", "water"),
    ("boat on the hill", "dog"),
    ("Man", "cat"),
    ("man's", "bird"),
    ("two", "the cat"),
    ("cats", "dogs"),
]


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


@pytest.fixture(scope="module")
def glossary(vocabulary):
    return Glossary(PAIRS, vocabulary)


def asked(glossary, vocabulary, text, room=50):
    """Returns {target: count}, and the messages."""
    terms, messages = glossary.terms(text, room)
    found = {
        vocabulary.target.decode([term.ids])[0]: term.count for term in terms
    }
    return found, messages


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a dog", {}),
        ("a red dog", {"old": 1}),
        ("Red, red and RED.", {"old": 3}),
        ("a red boat", {"water": 1}),
        ("the red  boat is red", {"water": 1, "old": 1}),
        ("redder boats", {}),
        ("a Man", {"cat": 1}),
        ("a man, a MAN", {}),
        ("a Man\N{RIGHT SINGLE QUOTATION MARK}s", {"cat": 1}),
        ("a Man's", {"bird": 1}),
        ("a r\N{COMBINING DIAERESIS}ed", {}),
        ("\N{FULLWIDTH LATIN SMALL LETTER R}ed", {"old": 1}),
    ],
)
def test_the_longest_terms_are_found_in_whole_words(
    glossary, vocabulary, text, expected
):
    assert asked(glossary, vocabulary, text) == (expected, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a red dog, RED!", ["red", "RED"]),
        ("the red  boat", ["red  boat"]),
        ("a dog's red", ["red"]),
        # If NFKC changes the length of a chunk, the span is all of the chunk.
        ("wait\N{HORIZONTAL ELLIPSIS} a red dog", ["red"]),
        ("a red\N{HORIZONTAL ELLIPSIS} dog", ["red\N{HORIZONTAL ELLIPSIS}"]),
        (
            "\N{FULLWIDTH LATIN SMALL LETTER R}ed",
            ["\N{FULLWIDTH LATIN SMALL LETTER R}ed"],
        ),
        (">>red<< a red dog", ["red"]),
    ],
)
def test_a_term_says_where_the_source_has_it(glossary, text, expected):
    (term,), _ = glossary.terms(text, room=50)
    found = [text[start:end] for start, end in term.spans]
    assert found == expected[: len(found)]
    assert len(found) == term.count == len(expected)
    assert term.spans[-1][0] == text.rindex(expected[-1])


def test_what_overlaps_is_told(glossary, vocabulary):
    found, messages = asked(glossary, vocabulary, "a red boat on the hill")
    assert found == {"water": 1}
    assert messages == [
        "the terms 'red boat' and 'boat on the hill' overlap: 'boat on the "
        "hill' is left out there"
    ]


def test_what_there_is_no_room_for_is_told(glossary, vocabulary):
    (term,), _ = glossary.terms("red red", room=50)
    room = 2 * len(term.ids)
    assert asked(glossary, vocabulary, "red red", room=room) == ({"old": 2}, [])
    found, messages = asked(glossary, vocabulary, "red red", room=room - 1)
    assert found == {}
    assert messages == ["there is no room for 'old': it is left out"]
    found, messages = asked(glossary, vocabulary, "red red Man", room=room)
    assert found == {"old": 2}
    assert messages == ["there is no room for 'cat': it is left out"]


def test_a_target_term_within_another_comes_beside_it(glossary, vocabulary):
    found, _ = asked(glossary, vocabulary, "two")
    assert found == {"the cat": 1}
    found, _ = asked(glossary, vocabulary, "two, Man, Man")
    assert found == {"the cat": 1, "cat": 3}
    # "dog" is not found in "dogs": it is another word.
    found, _ = asked(glossary, vocabulary, "cats, boat on the hill")
    assert found == {"dogs": 1, "dog": 1}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "b"), (" ", "c")], "a term of a glossary must not be blank"),
        ([("a", " ")], "the translation of a term must not be blank"),
        ([("a", "b\u2581c")], "a translation must have spaces, not U+2581"),
        (
            [("a b", "the"), ("a  b", "dog")],
            "'a b' must have one translation in a glossary; received "
            "given=\"'the' and 'dog'\"",
        ),
    ],
)
def test_terms_that_make_no_sense_are_refused(vocabulary, pairs, message):
    with pytest.raises(InputError) as raised:
        Glossary(pairs, vocabulary)
    assert message in str(raised.value)


def test_what_a_vocabulary_cannot_spell_is_refused():
    """As with vocabularies of imported models that have no byte pieces."""
    target = types.SimpleNamespace(
        unknown_id=2, encode=lambda texts, num_threads: [[3, 2, EOS]]
    )
    with pytest.raises(InputError, match="for a character of 'b': leave it"):
        Glossary([("a", "b")], types.SimpleNamespace(target=target))


def test_a_term_may_come_twice_with_one_translation(vocabulary):
    twice = Glossary([("a", "the"), ("a", "\nthe\t")], vocabulary)
    assert asked(twice, vocabulary, "a") == ({"the": 1}, [])
