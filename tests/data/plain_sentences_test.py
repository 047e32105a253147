"""The hand-written sentences: their form, and which answers are right."""

import collections
import re

import pytest

from t2t_lite_data import lexicon, plain_sentences
from t2t_lite_data.plain_sentences import PLAIN, UNKNOWN, PlainSentence

PLAIN_SENTENCES = plain_sentences.sentences(PLAIN)
UNKNOWN_SENTENCES = plain_sentences.sentences(UNKNOWN)
ALL = PLAIN_SENTENCES + UNKNOWN_SENTENCES

# English words that no rule of the lexicon inflects, or that no table has.
FUNCTION_WORDS = """
i you he she it we they me him her us my your his our the a an this
and am is are was were do does did not cannot will who what where when why which
there home hospital years no any very too than already yesterday o'clock play
next to in at on of by never often would must may can should under has wants
two three four six eight nine ten twelve ninety
"""


def lexicon_words() -> set[str]:
    """Returns every English form of the lexicon's tables, in lower case."""
    forms = set()
    for noun in lexicon.NOUN_LIST:
        forms |= {noun.english, noun.english_plural}
    for verb in [*lexicon.VERB_LIST, *lexicon.VERB.values()]:
        third = lexicon.third_person(verb.base)
        forms |= {verb.base, verb.past, verb.participle, verb.particle, third}
        forms.add(lexicon.progressive(verb.base))
    for adjective in lexicon.ADJECTIVE_LIST:
        forms |= {adjective.english, adjective.comparative}
    for table in ("CITIES", "COUNTRIES", "LANGUAGES", "PASTIMES", "OPINIONS"):
        forms |= {text.english for text in getattr(lexicon, table)}
    for times in lexicon.TIMES.values():
        forms |= {time.english for time in times}
    forms |= {job for job, *_ in lexicon.PROFESSIONS}
    forms |= {what for _, what, _ in lexicon.HINDRANCES}
    forms |= {*lexicon.WOMEN, *lexicon.MEN}
    return {word.lower() for form in forms for word in form.split()}


def words_of(sentence: str) -> list[str]:
    return [re.sub("'s$", "", w.strip(".?")) for w in sentence.lower().split()]


def strange_words(sentence: str) -> list[str]:
    known = lexicon_words() | set(FUNCTION_WORDS.split())
    return [word for word in words_of(sentence) if word not in known]


def test_there_are_two_hundred_plain_and_twenty_with_an_unknown_word():
    assert len(PLAIN_SENTENCES) == 200
    assert len(UNKNOWN_SENTENCES) == 20


def test_no_sentence_occurs_twice_and_no_answer_twice_in_a_sentence():
    counts = collections.Counter(sentence.source for sentence in ALL)
    assert [source for source, count in counts.items() if count > 1] == []
    for sentence in ALL:
        assert len(set(sentence.answers)) == len(sentence.answers), sentence


def test_sentences_have_two_to_eight_words():
    for sentence in ALL:
        assert 2 <= len(sentence.source.split()) <= 8, sentence.source


def test_plain_sentences_have_words_of_the_lexicon_alone():
    for sentence in PLAIN_SENTENCES:
        assert strange_words(sentence.source) == [], sentence.source


def test_the_others_have_one_word_that_is_not_in_the_lexicon():
    for sentence in UNKNOWN_SENTENCES:
        assert len(strange_words(sentence.source)) == 1, sentence.source


@pytest.mark.parametrize("sentence", ALL, ids=lambda s: s.source)
def test_every_answer_is_a_sentence_with_the_mark_of_its_source(sentence):
    assert sentence.answers
    for answer in sentence.answers:
        assert answer[-1] == sentence.source[-1]
        assert answer[0].isupper() or answer[0] == "*"
        assert re.fullmatch(r"[\wäöüß* ]+[.?]", answer), answer
        assert "  " not in answer, answer


def test_only_the_answers_to_unknown_words_have_a_wildcard():
    for sentence in PLAIN_SENTENCES:
        assert not any("*" in answer for answer in sentence.answers)
    for sentence in UNKNOWN_SENTENCES:
        assert all(answer.count("*") == 1 for answer in sentence.answers)


def test_most_nouns_of_the_lexicon_occur():
    text = " ".join(" ".join(words_of(s.source)) for s in PLAIN_SENTENCES)
    missing = [
        noun.english
        for noun in lexicon.NOUN_LIST
        if not re.search(rf"\b({noun.english}|{noun.english_plural})\b", text)
    ]
    assert len(missing) < len(lexicon.NOUN_LIST) / 5, missing


def test_an_answer_is_right_to_the_letter():
    sentence = PlainSentence("Where are you?", ("Wo bist du?", "Wo seid ihr?"))
    assert sentence.is_right("Wo bist du?")
    assert sentence.is_right("Wo seid ihr?")
    assert not sentence.is_right("Wo bist du.")
    assert not sentence.is_right("wo bist du?")
    assert not sentence.is_right("Wo bist du? Wo")


def test_a_wildcard_is_one_word():
    sentence = PlainSentence("Xenia sleeps.", ("* schläft.",))
    assert sentence.is_right("Xenia schläft.")
    assert sentence.is_right("Xen-a schläft.")
    assert not sentence.is_right("schläft.")
    assert not sentence.is_right("Die Xenia schläft.")
    assert not sentence.is_right("Xenia, schläft.")
