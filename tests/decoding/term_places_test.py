"""Where terms that a translation lacks are put."""

import re

import numpy as np
import pytest
from tiny_translator import learn_vocabulary

from t2t_lite.decoding.alignment import WordWeights
from t2t_lite.decoding.term_places import TermPlaces
from t2t_lite.decoding.terms import Term

SOURCE = "A B C D"  # Each letter is a piece, and so is the space behind it.


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary().target


@pytest.fixture(scope="module")
def places(vocabulary):
    return TermPlaces(vocabulary)


def term(vocabulary, text, sources, count=None):
    """Returns the Term of a text for some letters of SOURCE."""
    ((*ids, _),) = vocabulary.encode([text], num_threads=1)
    spans = tuple(
        (SOURCE.index(s[0]), SOURCE.index(s[-1]) + 1) for s in sources
    )
    return Term(tuple(ids), len(spans) if count is None else count, spans)


def weights_of(text, *attended):
    """Returns WordWeights; {letter of SOURCE: weight} for each word."""
    words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    pieces = SOURCE.split()
    weights_WS = np.array(
        [[each.get(piece, 0.0) for piece in pieces] for each in attended]
    ).reshape(len(words), len(pieces))
    starts_S = np.array([SOURCE.index(piece) for piece in pieces])
    return WordWeights(words, weights_WS, starts_S, starts_S + 2)


DOG = "the dog is old"
OF_DOG = {"A": 0.9}, {"B": 0.8, "A": 0.2}, {"B": 0.3, "C": 0.7}, {"D": 1.0}


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ("the cat is old", 1, True),
        ("the cats are old", 1, False),
        ("the old cat", 1, False),
        ("the cat, the cat", 1, False),
        ("the cat, the cat", 2, True),
        ("", 1, False),
    ],
)
def test_a_term_is_there_as_often_as_it_is_a_word(
    places, vocabulary, text, count, expected
):
    terms = [term(vocabulary, "the cat", "B", count)]
    assert places.has_all(text, terms) == expected


def test_nothing_is_lacking_without_terms(places):
    assert places.has_all("a dog", [])


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["B"], "the cat is old"),
        (["A"], "cat dog is old"),
        (["C"], "the dog cat old"),
        (["AB"], "cat is old"),  # Both attend about as much to both.
        (["A", "D"], "cat dog is cat"),
    ],
)
def test_a_term_is_put_where_its_source_is_attended_to_the_most(
    places, vocabulary, sources, expected
):
    terms = [term(vocabulary, "cat", sources)]
    found = places.filled(DOG, terms, weights_of(DOG, *OF_DOG))
    assert found == expected


def test_terms_of_one_word_have_different_places(places, vocabulary):
    terms = [term(vocabulary, "cat", "B"), term(vocabulary, "red", "C")]
    weights = weights_of(DOG, {}, {"B": 0.9, "C": 0.5}, {"C": 0.3}, {"D": 1})
    assert places.filled(DOG, terms, weights) == "the cat red old"
    weights = weights_of(DOG, {}, {"B": 0.9, "C": 0.5}, {"C": 0.2}, {"D": 1})
    assert places.filled(DOG, terms, weights) is None


def test_what_is_there_is_not_put_there_again(places, vocabulary):
    text = "the cat and the dog"
    weights = weights_of(text, {}, {"B": 0.9}, {}, {}, {"D": 0.8})
    terms = [term(vocabulary, "cat", ["BD"])]
    assert places.filled(text, terms, weights) == "the cat and the dog"
    terms = [term(vocabulary, "cat", ["B", "D"])]
    assert places.filled(text, terms, weights) == "the cat and the cat"
    terms = [term(vocabulary, "old cat", ["D"])]
    assert places.filled(text, terms, weights) == "the cat and the old cat"


def test_a_term_that_is_there_too_often_is_left_to_the_search(
    places, vocabulary
):
    text = "cat and cat"
    weights = weights_of(text, {"A": 1}, {}, {"B": 1})
    assert places.filled(text, [term(vocabulary, "cat", "A")], weights) is None


def test_what_stays_as_it_is_gets_no_term(places, vocabulary):
    terms = [term(vocabulary, "cat", "B")]
    weights = weights_of(DOG, *OF_DOG)
    assert places.filled(DOG, terms, weights, first=4) == "the cat is old"
    assert places.filled(DOG, terms, weights, first=5) is None


def test_what_nothing_attends_to_has_no_place(places, vocabulary):
    weights = weights_of(DOG, {}, {}, {}, {})
    assert places.filled(DOG, [term(vocabulary, "cat", "B")], weights) is None


def test_a_term_without_a_place_in_the_source_has_none(places, vocabulary):
    terms = [term(vocabulary, "cat", "", count=1)]
    assert places.filled(DOG, terms, weights_of(DOG, *OF_DOG)) is None


def test_a_blank_translation_has_no_places(places, vocabulary):
    assert (
        places.filled("", [term(vocabulary, "cat", "B")], weights_of(""))
        is None
    )


def test_a_term_within_another_comes_beside_it(places, vocabulary):
    terms = [
        term(vocabulary, "the cat", ["B"]),
        term(vocabulary, "cat", ["D"], count=2),
    ]
    found = places.filled(DOG, terms, weights_of(DOG, *OF_DOG))
    assert found == "the the cat is cat"
