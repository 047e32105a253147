"""Translations contain the terms of a glossary."""

import re

import numpy as np
import pytest
import tensorflow as tf
from tiny_searches import ALL_THAT_STEERS, GLOSSARY, words_in
from tiny_translator import LINES, assert_same

from t2t_lite.alignment.glossary import Glossary
from t2t_lite.text.sentences import Splitting

WITH_TERMS = ["a red boat", "two men, men", "the dog", "He sits."]
REQUIRED = [["old cat"], ["the water", "the water"], [], ["two"]]


@pytest.mark.slow
def test_translations_have_the_terms_of_a_glossary(steered, translator):
    with_glossary = steered(glossary=GLOSSARY, nbest=3)
    found = with_glossary.translate(WITH_TERMS)
    without = translator.translate(WITH_TERMS)
    assert_same(found[2:3], without[2:3])
    for several, before, terms in zip(found, without, REQUIRED, strict=True):
        assert several[0].score <= before[0].score
        for best in several:
            for term in terms:
                assert words_in(best.text, term) == terms.count(term)
    assert_same(with_glossary.translate(WITH_TERMS[::-1]), found[::-1])


@pytest.mark.slow
def test_the_best_of_several_with_terms_is_the_best(steered):
    lines = [WITH_TERMS[0], *WITH_TERMS[2:], *LINES]  # One beam width.
    alone, several = (
        steered(glossary=GLOSSARY, nbest=n).translate(lines) for n in (1, 3)
    )
    assert_same(alone, [each[:1] for each in several])
    for each in several:
        texts = [text for text, _ in each if text]
        assert len(set(texts)) == len(texts)


@pytest.mark.slow
def test_terms_go_with_whatever_else_steers(steered):
    translator = steered(glossary=GLOSSARY, **ALL_THAT_STEERS)
    prefixes = ["the ", "", "dog"]
    twice, without, with_two = translator(WITH_TERMS[1:], prefix=prefixes)
    # It would repeat the bigram "the water": there is no such translation.
    assert twice == ""
    assert len(without.split()) > 1
    assert with_two.startswith("dog")
    for text in (without, with_two.removeprefix("dog")):
        words = set(re.findall(r"\w+", text))
        assert words.isdisjoint(ALL_THAT_STEERS["suppress"])
    assert words_in(with_two, "two") == 1


@pytest.mark.slow
def test_sentences_have_the_terms_of_their_own(steered):
    translator = steered(Splitting(), glossary=GLOSSARY, nbest=3)
    line = "A red boat. Two men. The dog."
    alone = [translator(text) for text in ("A red boat.", "Two men.")]
    assert translator(line) == " ".join([*alone, translator("The dog.")])
    begun = translator(line, prefix="the old hill. the r")
    assert begun.startswith("the old hill. the r")
    assert words_in(begun, "old cat") == 0
    assert words_in(begun, "the water") == 1


@pytest.mark.slow
def test_a_term_that_is_left_out_is_warned_of(steered, caplog):
    translator = steered(glossary={"boat": "the old cat"}, max_extra_length=0)
    with caplog.at_level("WARNING"):
        translator(["the dog", "boat"])
    assert "Line 2: there is no room for 'the old cat'" in caplog.text


@pytest.mark.slow
def test_terms_are_the_same_with_xla_and_on_several_devices(
    engine_of, compiled, divided, vocabulary
):
    lines = ["a red boat", "He sits."]
    ids = tf.ragged.constant(vocabulary.encode(lines), tf.int32)
    glossary = Glossary(tuple(GLOSSARY.items()), vocabulary)
    asked = [glossary.terms(line, room=9)[0] for line in lines]

    def found_by(engine):
        found = engine.translate_with_terms(
            ids, ["", "the"], [False] * 2, terms=asked
        )
        texts = vocabulary.decode(np.asarray(found.ids_BWT)[:, 0])
        return texts, found.scores_BW, engine.score_texts(ids, texts)

    texts, *expected = found_by(engine_of())
    for text, term in zip(texts, ["old cat", "two"], strict=True):
        assert words_in(text, term) == 1
    for other in (compiled, divided):
        others, *scores = found_by(other)
        assert others == texts
        for some, right in zip(scores, expected, strict=True):
            np.testing.assert_allclose(some, right, atol=1e-4)
