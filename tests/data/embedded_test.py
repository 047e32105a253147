"""The embedded corpus: its sizes, its determinism and its German."""

import hashlib
import re
import statistics

import pytest

from t2t_lite.errors import InputError
from t2t_lite_data import embedded, grammar, lexicon, patterns, short_patterns
from t2t_lite_data.grammar import (
    ACCUSATIVE,
    DATIVE,
    GENITIVE,
    NOMINATIVE,
    PRONOUN,
    Clause,
    Name,
    NounPhrase,
    english,
    german,
    german_infinitive,
    prepositional,
    sentence,
)
from t2t_lite_data.lexicon import NOUN, VERB, Text, number

SPLITS = ("train", "dev", "test")
VERBS = {verb.label: verb for verb in lexicon.VERB_LIST} | VERB
BOY, BOOK = NounPhrase(NOUN["boy"]), NounPhrase(NOUN["book"])
OLD, NEW, RED = Text("old", "alt"), Text("new", "neu"), Text("red", "rot")
YESTERDAY = Text("yesterday", "gestern")
EVERY_PATTERN = patterns.PATTERNS + short_patterns.PATTERNS

# To print it, in tests/data:
# python -c "import embedded_test; print(embedded_test.digest())"
GOLDEN = "dfb4de5c6d6738c1cc238f0b6231aa38af83cea15772fb9b0d830bccf864a041"


def digest() -> str:
    """Returns the SHA-256 of all pairs of all splits, in order."""
    lines = (
        f"{split}\t{source}\t{target}\n"
        for split in SPLITS
        for source, target in embedded.pairs(split)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def everything() -> list[tuple[str, str]]:
    return [pair for split in SPLITS for pair in embedded.pairs(split)]


def words(side: int) -> set[str]:
    return {w.strip(".,?") for pair in everything() for w in pair[side].split()}


# --- The corpus ---


def test_train_dev_and_test_have_their_sizes():
    sizes = {split: len(embedded.pairs(split)) for split in SPLITS}
    assert sizes == {"train": 100000, "dev": 500, "test": 500}


def test_an_unknown_split_is_an_input_error_of_one_line():
    with pytest.raises(
        InputError, match=r"train, dev, test; received 'valid'"
    ) as caught:
        embedded.pairs("valid")
    assert "\n" not in str(caught.value)


def test_no_source_and_no_target_occurs_twice_in_any_split():
    sources, targets = zip(*everything(), strict=True)
    assert len(set(sources)) == len(sources)
    assert len(set(targets)) == len(targets)


def test_no_dev_or_test_source_occurs_in_training():
    trained = {source for source, _ in embedded.pairs("train")}
    held_out = [*embedded.pairs("dev"), *embedded.pairs("test")]
    assert trained.isdisjoint(source for source, _ in held_out)


def test_every_word_of_dev_and_test_occurs_in_training():
    trained = {w for pair in embedded.pairs("train") for w in words_of(pair)}
    held_out = [*embedded.pairs("dev"), *embedded.pairs("test")]
    unseen = {
        word
        for source, target in held_out
        for word in words_of((source, target))
        if word not in trained and word not in copied(source, target)
    }
    assert len(unseen) <= 10


def copied(source: str, target: str) -> set[str]:
    """Returns the words that both sides share, even if one is a genitive."""
    both = {word.removesuffix("'s") for word in words_of((source, ""))}
    both &= {word.removesuffix("s") for word in words_of(("", target))} | {
        *words_of(("", target))
    }
    return both | {f"{word}'s" for word in both} | {f"{word}s" for word in both}


def words_of(pair: tuple[str, str]) -> list[str]:
    return [word.strip(".,?").lower() for word in " ".join(pair).split()]


@pytest.mark.parametrize("side", [0, 1])
def test_sentences_are_two_to_thirty_words_and_most_are_short(side):
    lengths = [len(pair[side].split()) for pair in everything()]
    assert min(lengths) == 2
    assert 25 <= max(lengths) <= 30
    assert 5 <= statistics.median(lengths) <= 7
    assert sum(length > 12 for length in lengths) > 1000


@pytest.mark.parametrize("side", [0, 1])
def test_every_sentence_begins_with_a_capital_and_ends_with_one_mark(side):
    for pair in everything():
        text = pair[side]
        assert text[0].isupper(), text
        assert text[-1] in ".?", text
        assert not set(text[:-1]) & set(".?!"), text
        assert "  " not in text, text
        assert " ," not in text, text
        assert ",," not in text, text


def test_a_question_is_a_question_in_both_languages():
    assert all(pair[0][-1] == pair[1][-1] for pair in everything())


def test_subordinate_clauses_follow_a_comma_and_end_with_their_verb():
    for source, target in embedded.pairs("train"):
        if " because " in source:
            before, _, after = target.partition(" weil ")
            assert before.endswith(","), target
            assert after.split()[-1].strip(".") in FINITE_ENDS, target


FINITE_ENDS = {
    "bin", "bist", "ist", "sind", "war", "warst", "waren", "habe", "hast",
    "hat", "haben", "hatte", "hattest", "hatten", "regnet", "schneit",
}  # fmt: skip


def test_the_vocabulary_has_several_hundred_words_in_each_language():
    assert len(lexicon.NOUN_LIST) >= 250
    assert len({verb.label for verb in lexicon.VERB_LIST}) >= 95
    assert len({row.english for row in lexicon.ADJECTIVE_LIST}) >= 50
    assert len(words(0)) >= 800
    assert len(words(1)) >= 1000


def test_the_corpus_is_the_same_as_ever():
    assert digest() == GOLDEN


def test_another_draw_of_the_same_seed_is_the_same_corpus():
    again = embedded.drawn_splits({"test": 500, "dev": 500})
    assert again["test"] == embedded.pairs("test")
    assert again["dev"] == embedded.pairs("dev")


def test_the_caller_may_change_his_copy():
    embedded.pairs("dev").clear()
    assert len(embedded.pairs("dev")) == 500


def test_one_english_sentence_always_has_one_german_sentence():
    """Draws sentences afresh, so that no filter of the corpus hides a clash."""
    draw, known = patterns.Draw(7), {}
    for _, pattern in EVERY_PATTERN * 100:
        source, target = pattern(draw)
        assert known.setdefault(source, target) == target, source


# --- Plain sentences ---


def short_pairs() -> list[tuple[str, str]]:
    pairs = embedded.pairs("train")
    return [pair for pair in pairs if len(pair[0].split()) <= 8]


def counted(pattern: str, side: int = 0) -> int:
    return sum(bool(re.search(pattern, pair[side])) for pair in short_pairs())


def test_two_of_three_sentences_have_no_more_than_eight_words():
    assert len(short_pairs()) > 2 / 3 * len(embedded.pairs("train"))


@pytest.mark.parametrize("case", [NOMINATIVE, ACCUSATIVE, DATIVE])
def test_every_noun_stands_in_every_case_in_plain_sentences(case, declined):
    nouns = [noun for noun in lexicon.NOUN_LIST if noun.english != "euro"]
    singular = {(noun.english, False, case) for noun in nouns}
    plural = {
        (noun.english, True, case)
        for noun in nouns
        if not noun.mass and "single" not in noun.classes
    }
    assert sorted((singular | plural) - declined) == []


# Runs before all tests, so that the corpus is drawn only once.
@pytest.fixture(scope="module", autouse=True)
def declined() -> set[tuple[str, bool, int]]:
    """The (noun, plural, case) of nouns in sentences of at most eight words."""
    found, latest = set(), []
    german_of_phrase, drawn = NounPhrase.german, embedded.drawn

    def recorded_german(phrase: NounPhrase, case: int) -> str:
        latest.append((phrase.noun.english, phrase.plural, case))
        return german_of_phrase(phrase, case)

    def recorded_pair(draw: patterns.Draw) -> tuple[str, str]:
        latest.clear()
        pair = drawn(draw)
        if len(pair[0].split()) <= 8:
            found.update(latest)
        return pair

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NounPhrase, "german", recorded_german)
        patch.setattr(embedded, "drawn", recorded_pair)
        embedded.drawn_until.cache_clear()
        embedded.drawn_until("train")
    return found


def test_every_person_owns_something_in_the_genitive(declined):
    people = [n.english for n in patterns.nouns_of("person")]
    owners = {noun for noun, _, case in declined if case == GENITIVE}
    assert sorted(set(people) - owners) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "^Where (is|are|was|were) ",
        "^Who (is|was) ",
        "^Who has ",
        "^What (is|are|did|will) ",
        "^When (is|does|did) ",
        "^Why ",
        "^Which ",
        r"^(Is|Are|Was|Were) .*\?$",
        r"^(Do|Does|Did) .*\?$",
        r"^(Can|May|Must) .*\?$",
        "^There (is|are) no ",
        "^There (is|are) (?!no )",
        "^I (am|was) (?!.*ing)",
        " (is|are|was|were) (not )?(in|on|at|under|behind|next to) ",
        "(do|does|did) not have ",
        " (have|has) no ",
        " (me|him|us|them)[.?]",
        " (and|or) (?!.*,)",
        " [a-z]+'s ",
        "^(This|That|These|Those) (is|are|was|were) ",
        "^Whose ",
        "^How many ",
        "^How much ",
        "^(Nobody|Somebody|Everybody) ",
        " (nobody|somebody|everybody|something|nothing)[.?]",
        " yet[.]",
        " (is|are|was|were) still ",
        " already .*[?]",
        " without ",
        " too .* for ",
        r"^The \w+ (who|that) (I|you|he|she|we|they) .* (is|are|was|were) ",
        " more [a-z]+ than ",
        " much [a-z]+er than ",
        " as [a-z]+ as ",
        " (so|too) (many|much) ",
        "^Where (did|does|do|can|must|should|is|are|will) .* (find|lose|buy)",
        "^Which .* (want|like|have) to ",
        r"(^| )[Ii]f it (rains|snows|is)\b",
        "(do|does) not know (when|where|why|whether) ",
        "(Do|Does) .* know (when|where|why|whether) ",
    ],
)
def test_plain_sentences_of_every_kind_are_many(pattern):
    assert counted(pattern) > 100


def test_plain_denials_are_made_with_nicht_and_with_kein():
    assert counted(r"\bnicht\b", side=1) > 2000
    assert counted(r"\b[Kk]ein(e|en|em|er)?\b", side=1) > 1000


def test_not_yet_is_noch_nicht_or_noch_kein():
    late = [pair for pair in short_pairs() if pair[0].endswith(" yet.")]
    assert len(late) > 100
    for source, target in late:
        assert re.search(r"\bnoch (nicht|kein)", target), source


def test_this_and_these_point_with_das():
    pointing = re.compile("(This|That|These|Those) (is|are|was|were) ")
    pairs = [pair for pair in short_pairs() if pointing.match(pair[0])]
    assert len(pairs) > 100
    for source, target in pairs:
        assert target.startswith("Das "), source


def test_know_without_an_object_is_wissen():
    draw = patterns.Draw(2)
    pairs = dict(short_patterns.knowing(draw) for _ in range(500))
    assert pairs["I do not know."] == "Ich weiß nicht."
    assert pairs["Does she know?"] == "Weiß sie es?"


def test_invented_words_are_none_of_the_lexicon_and_are_copied():
    draw = patterns.Draw(5)
    known = short_patterns.words_of_tables()
    coined = [short_patterns.invented(draw) for _ in range(2000)]
    assert known.isdisjoint(coined)
    thing = short_patterns.invented_noun(draw)
    phrase = NounPhrase(thing)
    assert phrase.german(ACCUSATIVE) == f"den {thing.english.capitalize()}"


# --- The words ---


def test_every_english_noun_has_one_german_noun():
    names = [noun.english for noun in lexicon.NOUN_LIST]
    assert len(set(names)) == len(names)


def test_every_class_a_verb_asks_for_has_a_noun():
    frames = [slot for verb in lexicon.VERB_LIST for slot in verb.frame]
    for _, classes in frames:
        assert all(patterns.nouns_of(name) for name in classes), classes


@pytest.mark.parametrize(
    ("value", "in_english", "in_german"),
    [
        (2, "two", "zwei"),
        (12, "twelve", "zwölf"),
        (16, "sixteen", "sechzehn"),
        (17, "seventeen", "siebzehn"),
        (21, "twenty-one", "einundzwanzig"),
        (23, "twenty-three", "dreiundzwanzig"),
        (30, "thirty", "dreißig"),
        (67, "sixty-seven", "siebenundsechzig"),
        (300, "three hundred", "dreihundert"),
    ],
)
def test_german_numbers_say_the_unit_before_the_ten(
    value, in_english, in_german
):
    assert number(value) == Text(in_english, in_german)


def test_compounds_take_the_gender_of_their_last_part():
    lamp = NounPhrase(NOUN["desk lamp"], "a", (NEW,))
    hospital = NounPhrase(NOUN["hospital"])
    assert lamp.german(ACCUSATIVE) == "eine neue Schreibtischlampe"
    assert NounPhrase(NOUN["front door"]).german(0) == "die Haustür"
    assert prepositional("in", hospital, DATIVE) == "im Krankenhaus"


# --- The noun phrase ---


def cases(phrase: NounPhrase) -> list[str]:
    return [phrase.german(case) for case in range(4)]


def test_the_masculine_shows_all_four_cases():
    assert cases(NounPhrase(NOUN["teacher"], "the", (OLD,))) == [
        "der alte Lehrer",
        "den alten Lehrer",
        "dem alten Lehrer",
        "des alten Lehrers",
    ]


def test_weak_masculines_end_in_n_outside_the_nominative():
    assert cases(BOY) == ["der Junge", "den Jungen", "dem Jungen", "des Jungen"]
    student, bear = NounPhrase(NOUN["student"]), NounPhrase(NOUN["bear"])
    assert student.german(ACCUSATIVE) == "den Studenten"
    assert bear.german(GENITIVE) == "des Bären"


def test_the_dative_plural_ends_in_n_unless_it_cannot():
    children = NounPhrase(NOUN["child"], "the", plural=True)
    cars = NounPhrase(NOUN["car"], "the", plural=True)
    assert children.german(DATIVE) == "den Kindern"
    assert cars.german(DATIVE) == "den Autos"


@pytest.mark.parametrize(
    ("determiner", "endings"),
    [
        ("the", ["der rote Hut", "den roten Hut", "dem roten Hut"]),
        ("a", ["ein roter Hut", "einen roten Hut", "einem roten Hut"]),
        ("my", ["mein roter Hut", "meinen roten Hut", "meinem roten Hut"]),
        ("this", ["dieser rote Hut", "diesen roten Hut", "diesem roten Hut"]),
    ],
)
def test_adjectives_are_weak_or_mixed_behind_a_determiner(determiner, endings):
    phrase = NounPhrase(NOUN["hat"], determiner, (RED,))
    assert cases(phrase)[:3] == endings


def test_adjectives_are_strong_where_no_determiner_shows_the_case():
    fresh, cold = Text("fresh", "frisch"), Text("cold", "kalt")
    assert NounPhrase(NOUN["milk"], "", (cold,)).german(1) == "kalte Milch"
    assert NounPhrase(NOUN["water"], "", (cold,)).german(2) == "kaltem Wasser"
    rolls = NounPhrase(NOUN["roll"], 3, (fresh,), plural=True)
    assert rolls.german(ACCUSATIVE) == "drei frische Brötchen"


def test_teuer_and_its_kind_lose_an_e():
    dear = Text("expensive", "teuer")
    assert NounPhrase(NOUN["car"], "a", (dear,)).german(0) == "ein teures Auto"


def test_names_own_in_front_and_nouns_behind():
    anna = NounPhrase(NOUN["car"], adjectives=(NEW,), owner=Name("Anna", "she"))
    doctor = NounPhrase(NOUN["car"], owner=NounPhrase(NOUN["doctor"]))
    child = NounPhrase(NOUN["child"])
    assert anna.english() == "Anna's new car"
    assert anna.german(0) == "Annas neues Auto"
    assert doctor.german(DATIVE) == "dem Auto des Arztes"
    assert child.german(GENITIVE) == "des Kindes"


def test_two_way_prepositions_take_dative_for_where_and_accusative_for_to():
    garden = NounPhrase(NOUN["garden"])
    table = NounPhrase(NOUN["table"])
    assert prepositional("in", garden, DATIVE) == "im Garten"
    assert prepositional("in", garden, ACCUSATIVE) == "in den Garten"
    assert prepositional("auf", table, DATIVE) == "auf dem Tisch"
    assert prepositional("auf", table, ACCUSATIVE) == "auf den Tisch"


# --- The clause ---


def test_the_past_is_a_perfekt_with_its_participle_at_the_end():
    clause = Clause(BOY, VERBS["read"], "past", accusative=BOOK)
    assert english(clause) == "the boy read the book"
    assert german(clause) == "der Junge hat das Buch gelesen"


def test_motion_forms_its_perfekt_with_sein():
    home = Text("home", "nach Hause")
    clause = Clause(BOY, VERBS["go"], "past", complement=home)
    assert german(clause) == "der Junge ist nach Hause gegangen"


def test_the_accusative_of_the_masculine_is_marked():
    apple = NounPhrase(NOUN["apple"], "a")
    clause = Clause(BOY, EAT, "present", accusative=apple)
    assert english(clause) == "the boy eats an apple"
    assert german(clause) == "der Junge isst einen Apfel"


EAT = next(verb for verb in lexicon.VERB_LIST if verb.label == "eat")


def test_the_verb_comes_second_behind_a_time_and_last_behind_weil():
    clause = Clause(BOY, VERBS["read"], "past", accusative=BOOK, time=YESTERDAY)
    fronted = grammar.replace(clause, fronted="time")
    assert english(fronted) == "yesterday the boy read the book"
    assert german(fronted) == "gestern hat der Junge das Buch gelesen"
    assert german(clause, "last") == "der Junge gestern das Buch gelesen hat"


def test_the_prefix_leaves_in_main_clauses_and_stays_in_subordinate_ones():
    lamp = NounPhrase(NOUN["lamp"])
    clause = Clause(BOY, VERBS["turn on"], accusative=lamp)
    assert english(clause) == "the boy turns on the lamp"
    assert german(clause) == "der Junge macht die Lampe an"
    assert german(clause, "last") == "der Junge die Lampe anmacht"
    assert german_infinitive(clause) == "die Lampe anzumachen"
    past = grammar.replace(clause, tense="past")
    assert german(past) == "der Junge hat die Lampe angemacht"


def test_a_pronoun_object_precedes_the_english_particle():
    clause = Clause(BOY, VERBS["turn on"], accusative=PRONOUN["it f"])
    assert english(clause) == "the boy turns it on"
    assert german(clause) == "der Junge macht sie an"


def test_a_modal_sends_the_infinitive_to_the_end():
    clause = Clause(BOY, VERBS["read"], modal="want", accusative=BOOK)
    assert english(clause) == "the boy wants to read the book"
    assert german(clause) == "der Junge will das Buch lesen"
    assert german(clause, "last") == "der Junge das Buch lesen will"


def test_an_indefinite_object_is_denied_with_kein():
    phrase = NounPhrase(NOUN["letter"], "a")
    clause = Clause(BOY, VERBS["write"], negative=True, accusative=phrase)
    assert english(clause) == "the boy does not write a letter"
    assert german(clause) == "der Junge schreibt keinen Brief"
    milk = grammar.replace(clause, accusative=NounPhrase(NOUN["milk"], ""))
    assert english(milk) == "the boy does not write milk"
    assert german(milk) == "der Junge schreibt keine Milch"
    milk = grammar.replace(milk, accusative=NounPhrase(NOUN["milk"], "any"))
    assert english(milk) == "the boy does not write any milk"
    assert german(milk) == "der Junge schreibt keine Milch"
    no_milk = NounPhrase(NOUN["milk"], "no")
    none = grammar.replace(milk, negative=False, accusative=no_milk)
    assert english(none) == "the boy writes no milk"
    assert german(none) == "der Junge schreibt keine Milch"


def test_nicht_follows_a_definite_object_and_precedes_a_predicate():
    clause = Clause(BOY, VERBS["read"], "past", negative=True, accusative=BOOK)
    tired = Text("tired", "müde")
    state = Clause(BOY, VERBS["be"], negative=True, complement=tired)
    assert english(clause) == "the boy did not read the book"
    assert german(clause) == "der Junge hat das Buch nicht gelesen"
    assert english(state) == "the boy is not tired"
    assert german(state) == "der Junge ist nicht müde"


def test_questions_begin_with_the_verb_or_the_question_word():
    clause = Clause(PRONOUN["you"], VERBS["read"], "past", accusative=BOOK)
    assert english(clause, "question") == "did you read the book"
    assert german(clause, "question") == "hast du das Buch gelesen"
    why = grammar.replace(clause, fronted=Text("why", "warum"))
    assert english(why, "question") == "why did you read the book"
    assert german(why, "question") == "warum hast du das Buch gelesen"


def test_the_dative_precedes_the_accusative_and_pronouns_precede_both():
    woman = NounPhrase(NOUN["woman"])
    clause = Clause(BOY, VERBS["give"], accusative=BOOK, dative=woman)
    assert german(clause) == "der Junge gibt der Frau das Buch"
    clause = grammar.replace(clause, accusative=PRONOUN["it n"])
    assert german(clause) == "der Junge gibt es der Frau"


def test_the_reflexive_agrees_with_its_subject():
    exam = Text("the party", "auf die Party")
    joy = VERBS["look forward to"]
    me = Clause(PRONOUN["I"], joy, complement=exam)
    boy = Clause(BOY, joy, complement=exam)
    assert german(me) == "ich freue mich auf die Party"
    assert german(boy, "last") == "sich der Junge auf die Party freut"


@pytest.mark.parametrize(
    ("who", "verb", "form"),
    [
        ("you", "read", "liest"),
        ("you", "drive", "fährst"),
        ("you", "work", "arbeitest"),
        ("I", "take care of", "kümmere"),
        ("you", "invite", "lädst"),
        ("they", "forget", "vergessen"),
        ("he", "open", "öffnet"),
    ],
)
def test_verbs_conjugate(who, verb, form):
    assert grammar.conjugate(VERBS[verb], PRONOUN[who]) == form


def test_relative_clauses_stand_between_commas():
    after = Text("who lives in Berlin", "der in Berlin wohnt")
    man = NounPhrase(NOUN["man"], after=after)
    tired = Clause(man, VERBS["be"], complement=Text("tired", "müde"))
    assert sentence(english(tired)) == "The man who lives in Berlin is tired."
    assert sentence(german(tired)) == "Der Mann, der in Berlin wohnt, ist müde."


@pytest.mark.parametrize("pattern", [row[1] for row in EVERY_PATTERN])
def test_every_pattern_draws_and_explains_itself(pattern):
    draw = patterns.Draw(1)
    assert pattern.__doc__
    for _ in range(20):
        source, target = pattern(draw)
        assert source.split()
        assert target.split()
