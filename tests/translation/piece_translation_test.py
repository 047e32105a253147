"""Pieces get their terms in place of words, or else by a search."""

import math
import re

import numpy as np
import pytest
from tiny_translator import LINES

from t2t_lite.alignment.word_alignment import Pair, WordWeights
from t2t_lite.constraints.terms import Term
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.engine import Engine
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.piece_prefix import NO_PREFIX, PiecePrefix
from t2t_lite.translation.piece_translation import PieceTranslator, Request


@pytest.fixture
def make(vocabulary):
    """A function from what searches find to (PieceTranslator, calls).

    The n-th word of a translation attends to the n-th character of its source.
    """

    def hypotheses(found):
        texts = [text for several in found for text, _ in several]
        encoded = vocabulary.encode(texts, num_threads=1)
        ids = np.zeros((len(texts), max(map(len, encoded))), np.int32)
        for row, each in zip(ids, encoded, strict=True):
            row[: len(each)] = each
        scores = np.array([[score for _, score in each] for each in found])
        return Hypotheses(ids.reshape(*scores.shape, -1), scores)

    def weights_of(pair):
        words = [m.span() for m in re.finditer(r"\w+", pair.target)]
        starts_S = np.arange(len(pair.source))
        return WordWeights(
            pair=pair,
            words=words,
            weights_WS=np.eye(len(words), len(starts_S)),
            starts_S=starts_S,
            ends_S=starts_S + 1,
        )

    def weigh(pairs):
        return [weights_of(pair) for pair in pairs]

    def make(drafts, scores=None, searched=()):
        calls = []

        def score_texts(ids, texts):
            calls.append(texts)
            return np.array([scores[text] for text in texts])

        def translate_with_terms(ids, beginnings, is_complete, terms):
            calls.append(terms)
            return hypotheses(searched)

        engine = Engine(
            lambda ids: hypotheses(drafts),
            max_length=99,
            description="a fake",
            translate_prefixed=lambda ids, *_: hypotheses(drafts),
            translate_with_terms=translate_with_terms,
            score_texts=score_texts,
        )
        nbest = len(drafts[0])
        return PieceTranslator(engine, vocabulary, nbest, weigh=weigh), calls

    return make


@pytest.fixture
def cat(vocabulary):
    """The term "cat" for the second character of a source."""
    ((*ids, _),) = vocabulary.encode(["cat"], num_threads=1)
    return Term(tuple(ids), 1, ((1, 2),))


def request(*terms, beginning=NO_PREFIX):
    return Request([5, 1], "abcd", beginning, terms=terms)


def test_what_lacks_no_term_is_left_as_it_is(make, cat):
    drafts = [[("the cat", -1.0)], [("the dog", -2.0)]]
    translator, calls = make(drafts)
    found = translator.best([request(cat), request()])
    assert found == [[Translation(*best)] for (best,) in drafts]
    assert calls == []


def test_a_term_is_put_in_and_the_score_is_that_of_what_comes_of_it(make, cat):
    translator, calls = make(
        [[("the dog", -1.0)], [("the old cat", -2.0)]], {"the cat": -3.0}
    )
    found = translator.best([request(cat), request(cat)])
    assert found[0] == [Translation("the cat", -3.0)]
    assert found[1] == [Translation("the old cat", -2.0)]
    assert calls == [["the cat"]]


@pytest.mark.parametrize(
    ("draft", "scores", "num_calls"),
    [
        ("the", {}, 1),  # No second word.
        ("the cat cat", {}, 1),  # One too many.
        ("the dog", {"the cat": -math.inf}, 2),
    ],
)
def test_what_cannot_be_put_in_is_searched_for(
    make, cat, draft, scores, num_calls
):
    translator, calls = make(
        [[(draft, -1.0)]], scores, searched=[[("a cat", -9.0)]]
    )
    assert translator.best([request(cat)]) == [[Translation("a cat", -9.0)]]
    assert calls[-1] == [(cat,)]
    assert len(calls) == num_calls


def test_what_no_plain_search_finds_is_searched_for(make, cat):
    drafts, found = [[("", -math.inf)]], [[("a cat", -9.0)]]
    translator, calls = make(drafts, searched=found)
    assert translator.best([request(cat)]) == [[Translation("a cat", -9.0)]]
    assert calls == [[(cat,)]]
    assert translator.best([request()]) == [[Translation("", -math.inf)]]


def test_those_that_become_alike_are_one_and_others_are_searched_for(make, cat):
    drafts = ("the dog", -1.0), ("the hill", -2.0), ("a dog", -3.0)
    scores = {"the cat": -6.0, "a cat": -5.0}
    found = ("a cat", -5.0), ("old cat", -7.0), ("", -math.inf)
    translator, _ = make([drafts], scores, searched=[found])
    assert translator.best([request(cat)]) == [
        [
            Translation("the cat", -6.0),
            Translation("a cat", -5.0),
            Translation("old cat", -7.0),
        ]
    ]


def test_those_that_there_are_not_are_blank(make, cat):
    drafts = ("the dog", -1.0), ("the hill", -2.0)
    found = ("the cat", -6.0), ("", -math.inf)
    translator, _ = make([drafts], {"the cat": -6.0}, searched=[found])
    assert translator.best([request(cat)]) == [
        [Translation("the cat", -6.0), Translation("", -math.inf)]
    ]


def test_the_best_is_that_of_the_best_draft(make, cat):
    drafts = ("the", -1.0), ("the dog", -2.0)
    found = ("a cat", -6.0), ("old cat", -7.0)
    translator, calls = make([drafts], {"the cat": -5.0}, searched=[found])
    assert translator.best([request(cat)]) == [
        [Translation(*each) for each in found]
    ]
    assert len(calls) == 2


def test_what_a_prefix_says_stays(make, cat):
    beginning = PiecePrefix("the do", is_complete=False)
    translator, calls = make(
        [[("the dog is", -1.0)]], searched=[[("the dog cat", -9.0)]]
    )
    found = translator.best([request(cat, beginning=beginning)])
    assert found == [[Translation("the dog cat", -9.0)]]
    assert calls == [[(cat,)]]


def test_what_ends_with_its_prefix_has_no_terms(make, cat):
    translator, calls = make([[("the dog", -1.0)]])
    beginning = PiecePrefix("the dog", is_complete=True)
    found = translator.best([request(cat, beginning=beginning)])
    assert found == [[Translation("the dog", -1.0)]]
    assert calls == []


def test_no_pieces_have_no_translations(make):
    translator, _ = make([[("", 0.0)]])
    assert translator.best([]) == []


def test_a_term_takes_the_place_of_the_word_that_attends_to_it(
    steered, vocabulary
):
    plain = steered()
    lines = LINES[1], LINES[4]
    num_placed = 0
    for line, text in zip(lines, plain(list(lines)), strict=True):
        (ids,) = vocabulary.encode([line])
        (weights,) = plain._aligner.weights([Pair(ids, line, text)])
        for match in re.finditer(r"\w+", line):
            weight_W = weights.span_weights(*match.span())
            best = int(weight_W.argmax())
            greatest = weights.weights_WS[best].max()
            is_word = line.split().count(match[0]) == 1 and "house" not in text
            if not is_word or weight_W[best] < 0.5 * greatest:
                continue
            start, end = weights.words[best]
            translator = steered(glossary={match[0]: "house"})
            expected = f"{text[:start]}house{text[end:]}"
            assert translator(line) == expected
            num_placed += 1
    assert num_placed > 1
