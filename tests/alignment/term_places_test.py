"""Terms that a translation lacks go where attention says that they belong."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_translator import learn_vocabulary

from t2t_lite.alignment.term_places import TermPlaces
from t2t_lite.alignment.word_alignment import Pair, WordWeights
from t2t_lite.constraints.terms import Term

SOURCE = "A B C D"  # A piece is a letter, with the space after it.


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary().target


@pytest.fixture(scope="module")
def places(vocabulary):
    return TermPlaces(vocabulary)


def term(vocabulary, text, sources):
    """Returns the Term of a text for some spans of SOURCE."""
    ((*ids, _),) = vocabulary.encode([text], num_threads=1)
    spans = [(SOURCE.index(s[0]), SOURCE.index(s[-1]) + 1) for s in sources]
    return Term(tuple(ids), len(spans), tuple(spans))


def weights_of(text, *attended):
    """Returns WordWeights, given {letter of SOURCE: weight} for each word."""
    words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    pieces = SOURCE.split()
    weights_WS = np.array(
        [[each.get(piece, 0.0) for piece in pieces] for each in attended]
    ).reshape(len(words), len(pieces))
    starts_S = np.array([SOURCE.index(piece) for piece in pieces])
    return WordWeights(
        pair=Pair([], SOURCE, text),
        words=words,
        weights_WS=weights_WS,
        starts_S=starts_S,
        ends_S=starts_S + 2,
    )


DOG = "the dog is old"
OF_DOG = {"A": 0.9}, {"B": 0.8, "A": 0.2}, {"B": 0.3, "C": 0.7}, {"D": 1.0}


@pytest.mark.parametrize(
    ("text", "sources", "expected"),
    [
        ("the cat is old", "B", True),
        ("the cats are old", "B", False),
        ("the cat\N{COMBINING ACUTE ACCENT} is", "B", False),
        ("the old cat", "B", False),
        ("\N{COMBINING ACUTE ACCENT}the cat", "B", False),
        ("the cat, the cat", "B", False),
        ("the cat, the cat", "BD", True),
        ("", "B", False),
    ],
)
def test_a_term_is_there_as_often_as_it_is_a_word(
    places, vocabulary, text, sources, expected
):
    terms = [term(vocabulary, "the cat", sources)]
    assert places.has_all(text, terms) == expected


def test_nothing_is_lacking_without_terms(places):
    assert places.has_all("a dog", [])


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["B"], "the cat is old"),
        (["A"], "cat dog is old"),
        (["C"], "the dog cat old"),
        (["A", "D"], "cat dog is cat"),
    ],
)
def test_a_term_is_put_where_its_source_is_attended_to_the_most(
    places, vocabulary, sources, expected
):
    terms = [term(vocabulary, "cat", sources)]
    found = places.filled(weights_of(DOG, *OF_DOG), terms)
    assert found == expected


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("cat", "AB", "cat is old"),  # "the" and "dog" attend to "A B" most.
        ("cat", "B", "the cat is old"),
        ("red cat", "B", "the red cat old"),
    ],
)
def test_it_takes_the_place_of_as_many_words_as_it_or_its_source_has(
    places, vocabulary, text, source, expected
):
    weights = weights_of(
        DOG, {"A": 0.9}, {"B": 0.9}, {"B": 0.8, "C": 0.1}, {"B": 0.7, "D": 0.3}
    )
    found = places.filled(weights, [term(vocabulary, text, [source])])
    assert found == expected


def test_of_words_that_attend_as_much_it_takes_the_longest(places, vocabulary):
    text = "he is asleep"
    weights = weights_of(text, {"A": 1.0}, {"B": 0.9}, {"B": 0.8})
    found = places.filled(weights, [term(vocabulary, "cat", "B")])
    assert found == "he is cat"
    weights = weights_of(text, {"A": 1.0}, {"B": 0.9}, {"B": 0.7})
    found = places.filled(weights, [term(vocabulary, "cat", "B")])
    assert found == "he cat asleep"


@pytest.mark.parametrize(
    ("text", "attended", "expected"),
    [
        ("the T-Shirt", [{"A": 1}, {"B": 0.4}, {}, {"B": 1}], "the cat"),
        ("the T-Shirt", [{"A": 1}, {"B": 1}, {}, {"B": 0.4}], "the cat"),
        ("a Mini-Hund", [{}, {"C": 1}, {}, {"B": 1}], "a Mini-cat"),
        ("a dog - old", [{}, {"B": 1}, {}, {"B": 0.4}], "a cat - old"),
    ],
)
def test_parts_of_a_word_with_hyphens_go_together(
    places, vocabulary, text, attended, expected
):
    terms = [term(vocabulary, "cat", "B")]
    assert places.filled(weights_of(text, *attended), terms) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("the man's hat", "the cat's hat"), ("le l'homme a", "le l'cat a")],
)
def test_what_is_tied_to_a_word_by_an_apostrophe_stays(
    places, vocabulary, text, expected
):
    words = [match.span() for match in re.finditer(r"[\w']+", text)]
    weights = weights_of("a b c", {}, {"B": 1}, {})
    weights = weights._replace(pair=Pair([], SOURCE, text), words=words)
    terms = [term(vocabulary, "cat", "B")]
    assert places.filled(weights, terms) == expected


def test_a_word_takes_the_place_of_no_sign(places, vocabulary):
    weights = weights_of("the dog .", {"A": 1.0}, {"B": 0.4}, {"B": 0.5})
    found = places.filled(weights, [term(vocabulary, "cat", "B")])
    assert found == "the cat ."


def test_what_attends_to_a_sign_is_a_place_all_the_same(places, vocabulary):
    weights = weights_of("the dog", {"A": 1.0}, {"B": 0.2, "D": 0.8})
    weights = weights._replace(pair=Pair([], "A B C .", "the dog"))
    found = places.filled(weights, [term(vocabulary, "cat", "B")])
    assert found == "the cat"


def test_pieces_of_a_word_of_the_source_count_together(places, vocabulary):
    weights = weights_of("the dog", {"A": 1}, {"B": 0.3, "C": 0.4, "D": 0.3})
    terms = [term(vocabulary, "cat", "B")]
    assert places.filled(weights, terms) == "the cat"
    weights = weights._replace(pair=Pair([], "A B CCC", "the dog"))
    assert places.filled(weights, terms) is None


def test_terms_of_one_word_have_different_places(places, vocabulary):
    terms = [term(vocabulary, "cat", "B"), term(vocabulary, "red", "C")]
    weights = weights_of(DOG, {}, {"B": 0.9, "C": 0.5}, {"C": 0.3}, {"D": 1})
    assert places.filled(weights, terms) == "the cat red old"
    weights = weights_of(DOG, {}, {"B": 0.9, "C": 0.5}, {"C": 0.2}, {"D": 1})
    assert places.filled(weights, terms) is None


def test_no_word_that_attends_to_something_else_is_a_place(places, vocabulary):
    terms = [term(vocabulary, "cat", "B")]
    weights = weights_of(DOG, {}, {"B": 0.4, "C": 0.6}, {}, {})
    assert places.filled(weights, terms) == "the cat is old"
    weights = weights_of(DOG, {}, {"B": 0.2, "C": 0.6}, {}, {})
    assert places.filled(weights, terms) is None


def test_a_term_takes_no_place_of_another(places, vocabulary):
    text = "the two is old"
    terms = [term(vocabulary, "two", "A"), term(vocabulary, "cat", "B")]
    weights = weights_of(text, {}, {"A": 0.9, "B": 0.5}, {"B": 0.4}, {})
    assert places.filled(weights, terms) == "the two cat old"


def test_what_is_there_is_not_put_there_again(places, vocabulary):
    text = "the cat and the dog"
    weights = weights_of(text, {}, {"B": 0.9}, {}, {}, {"D": 0.8})
    terms = [term(vocabulary, "cat", ["BD"])]
    assert places.filled(weights, terms) == "the cat and the dog"
    terms = [term(vocabulary, "cat", ["B", "D"])]
    assert places.filled(weights, terms) == "the cat and the cat"
    terms = [term(vocabulary, "old cat", ["D"])]
    assert places.filled(weights, terms) == "the cat and the old cat"


def test_a_term_that_is_there_too_often_is_left_to_the_search(
    places, vocabulary
):
    text = "cat and cat"
    weights = weights_of(text, {"A": 1}, {}, {"B": 1})
    assert places.filled(weights, [term(vocabulary, "cat", "A")]) is None


def test_what_stays_as_it_is_gets_no_term(places, vocabulary):
    terms = [term(vocabulary, "cat", "B")]
    weights = weights_of(DOG, *OF_DOG)
    assert places.filled(weights, terms, first=4) == "the cat is old"
    assert places.filled(weights, terms, first=5) is None


def test_what_nothing_attends_to_has_no_place(places, vocabulary):
    weights = weights_of(DOG, {}, {}, {}, {})
    assert places.filled(weights, [term(vocabulary, "cat", "B")]) is None


def test_a_blank_translation_has_no_places(places, vocabulary):
    assert places.filled(weights_of(""), [term(vocabulary, "cat", "B")]) is None


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_all_but_the_places_stays_as_it_was(places, vocabulary, data):
    size = data.draw(st.integers(3, 8))
    words = st.sampled_from(["the", "old", "dog", "cat", "two", "."])
    text = " ".join(data.draw(st.lists(words, min_size=size, max_size=size)))
    letters = st.sampled_from("ABCD")
    weights = st.dictionaries(letters, st.floats(0.2, 1), max_size=2)
    attended = data.draw(st.lists(weights, min_size=size, max_size=size))
    sources = st.lists(letters, unique=True, min_size=1, max_size=2)
    terms = [
        term(vocabulary, name, data.draw(sources)) for name in ("cat", "bird")
    ]
    found = places.filled(weights_of(text, *attended), terms)
    if found is None:
        return
    assert places.has_all(found, terms)
    num_new = 0
    old = text.split()
    for word in found.split():
        if old and word == old[0]:
            old.pop(0)
        else:
            assert word in ("cat", "bird")
            num_new += 1
            old.pop(0)
    assert old == []
    assert num_new <= sum(each.count for each in terms)


def test_a_term_within_another_comes_beside_it(places, vocabulary):
    terms = [term(vocabulary, "the cat", "B"), term(vocabulary, "cat", "D")]
    found = places.filled(weights_of(DOG, *OF_DOG), terms)
    assert found == "the the cat is cat"
    assert not places.has_all("the cat is", terms)
    weights = weights_of("the cat dog", {}, {"B": 1}, {"D": 1})
    assert places.filled(weights, terms) == "the cat cat"


def test_behind_a_sign_it_is_within_another_too(places, vocabulary):
    terms = [term(vocabulary, "bird (cat)", "B"), term(vocabulary, "cat", "D")]
    assert places.has_all("the bird (cat) is a cat", terms)
    assert not places.has_all("the bird (cat) is", terms)
