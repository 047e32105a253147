"""Kinds of sentences: how the embedded corpus draws them.

A pattern is a function that picks words by their classes and reads the clause
off in both languages; its docstring is an example of its sentences, not a
description.  One pattern, one draw:

    reason  ->  Clause(the boy, read, past, negative, the long letter)
                + because weil + Clause(he, be, past, tired müde)
    The boy did not read the long letter because he was tired.
    Der Junge hat den langen Brief nicht gelesen, weil er müde war.

`short_patterns` has the plain sentences.
"""

import functools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from t2t_lite_data import grammar, marks
from t2t_lite_data import lexicon as words
from t2t_lite_data.grammar import (
    ACCUSATIVE,
    DATIVE,
    GENITIVE,
    NOMINATIVE,
    NOTHING,
    POSSESSIVE_OF,
    PRONOUN,
    RELATIVE,
    Both,
    Clause,
    Name,
    NounPhrase,
    Phrase,
    Pronoun,
    english,
    german,
    join,
    prepositional,
    sentence,
)
from t2t_lite_data.lexicon import NOUN, VERB, Noun, Text, Verb, number

Pair = tuple[str, str]
SUBJECTS = ("I", "you", "he", "she", "we", "they")


class Draw(random.Random):
    """A seeded generator with the few ways of choosing that patterns need."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def one_of(self, *choices: Any) -> Any:
        return self.choice(choices)


@functools.cache
def nouns_of(*classes: str) -> list[Noun]:
    """Returns the nouns in any of `classes`, in the order of the lexicon."""
    return [n for n in words.NOUN_LIST if not n.classes.isdisjoint(classes)]


@functools.cache
def adjectives_for(noun: Noun) -> list[words.Adjective]:
    """Returns the adjectives that make sense with `noun`."""
    fits = words.ADJECTIVE_LIST
    return [a for a in fits if not a.classes.isdisjoint(noun.classes)]


def adjectives(draw: Draw, noun: Noun, probability: float) -> tuple[Text, ...]:
    """Returns one fitting adjective, or none."""
    fitting = adjectives_for(noun)
    if not fitting or not draw.chance(probability):
        return ()
    chosen = draw.choice(fitting)
    return (Text(chosen.english, chosen.german),)


def described(draw: Draw, noun: Noun, plural: bool = False) -> NounPhrase:
    """Returns `the` or `this` noun, half the time with an adjective."""
    which = draw.one_of("the", "this")
    return NounPhrase(noun, which, adjectives(draw, noun, 0.5), plural=plural)


def pronoun_of(phrase: Phrase) -> str:
    """Returns the key of the pronoun for `phrase` in a later clause."""
    if isinstance(phrase, Pronoun):
        return next((k for k in SUBJECTS if PRONOUN[k] == phrase), "")
    return "they" if isinstance(phrase, Both) else phrase.pronoun


def possessive(phrase: Phrase) -> str:
    """Returns `his` for the boy; "" if English and German gender may differ."""
    neuter = isinstance(phrase, NounPhrase) and phrase.noun.gender == "n"
    if neuter and not phrase.plural:
        return ""
    return POSSESSIVE_OF.get(pronoun_of(phrase), "")


def name(draw: Draw) -> Name:
    """Returns Anna or Peter."""
    if draw.chance(0.5):
        return Name(draw.choice(words.WOMEN), "she")
    return Name(draw.choice(words.MEN), "he")


def relation(draw: Draw, owner: str = "") -> NounPhrase:
    """Returns family, a friend or a colleague: my mother, her old friend."""
    noun = draw.choice(nouns_of("family", "known"))
    whose = owner or draw.choice(grammar.POSSESSIVES)
    plural = "single" not in noun.classes and draw.chance(0.15)
    return NounPhrase(noun, whose, adjectives(draw, noun, 0.1), plural=plural)


def somebody(draw: Draw) -> NounPhrase:
    """Returns a person by role: the teacher, a young waiter, the children."""
    noun = draw.choice(strangers())
    determiner = draw.choices(["the", "a", "this"], [14, 1, 2])[0]
    plural = determiner == "the" and draw.chance(0.2)
    return NounPhrase(
        noun, determiner, adjectives(draw, noun, 0.2), plural=plural
    )


def family(noun: Noun) -> bool:
    return "family" in noun.classes


def person(draw: Draw) -> Phrase:
    """Returns anybody who can be the subject of a sentence."""
    roll = draw.random()
    if roll < 0.2:
        return PRONOUN[draw.choice(SUBJECTS)]
    if roll < 0.35:
        return name(draw)
    if roll < 0.4:
        return Both(name(draw), relation(draw, "my"))
    return relation(draw) if roll < 0.65 else somebody(draw)


def someone_else(draw: Draw, *others: Phrase) -> Phrase:
    """Returns anybody who is not mentioned yet."""
    taken = {word for other in others for word in english_words(other)}
    while True:
        newcomer = person(draw)
        if taken.isdisjoint(english_words(newcomer)[-1:]):
            return newcomer


def english_words(phrase: Phrase) -> list[str]:
    return marks.removed(phrase.english()).split()


def third_party(draw: Draw, subject: Phrase) -> Phrase:
    """Returns somebody other than `subject`, for an object."""
    whose = possessive(subject)
    if draw.chance(0.35) and whose:
        return relation(draw, whose)
    return name(draw) if draw.chance(0.2) else somebody(draw)


# Things people call their own, and things that are always *the* thing at home.
PRIVATE = {"clothes", "thing", "owned", "carried", "pet", "known", "furniture"}
FAMILIAR = {"openable", "device", "cleanable", "messy", "pet", "farm", "plant"}


@functools.cache
def things_in(classes: tuple[str, ...]) -> list[Noun]:
    """Returns the nouns in any of `classes` that are not people."""
    return [noun for noun in nouns_of(*classes) if not person_noun(noun)]


def people_in(classes: tuple[str, ...]) -> bool:
    return len(things_in(classes)) < len(nouns_of(*classes))


@functools.cache
def strangers() -> list[Noun]:
    """Returns the people who are not family."""
    return [noun for noun in nouns_of("person") if not family(noun)]


def item(draw: Draw, subject: Phrase, classes: tuple[str, ...]) -> Phrase:
    """Returns an object in one of `classes` that `subject` may deal with."""
    things = things_in(classes)
    if not things or (people_in(classes) and draw.chance(0.7)):
        return third_party(draw, subject)
    noun = draw.choice(things)
    qualities = adjectives(draw, noun, 0.3)
    if noun.mass:
        near = "trouble" in noun.classes or draw.chance(0.4)
        far = "learned" in noun.classes
        return NounPhrase(noun, "the" if near and not far else "", qualities)
    if draw.chance(0.1) and not noun.classes.isdisjoint(PRIVATE):
        return NounPhrase(noun, adjectives=qualities, owner=owner(draw))
    often = 0.7 if "plenty" in noun.classes else 0.25
    plural = draw.chance(often) and "cabin" not in classes
    return NounPhrase(
        noun,
        determiner(draw, subject, noun, plural=plural),
        qualities,
        plural=plural,
    )


def owner(draw: Draw) -> Phrase:
    """Returns Anna or the teacher, about to become Anna's and the teacher's."""
    if draw.chance(0.5):
        return name(draw)
    return NounPhrase(draw.choice(nouns_of("adult", "minor")))


def person_noun(noun: Noun) -> bool:
    return "person" in noun.classes


def determiner(
    draw: Draw, subject: Phrase, noun: Noun, plural: bool
) -> str | int:
    """Returns an article, possessive, quantifier or count for the noun."""
    whose = possessive(subject)
    if whose and not noun.classes.isdisjoint(PRIVATE) and draw.chance(0.35):
        return whose
    if noun.classes.isdisjoint(FAMILIAR) and plural:
        return draw.one_of("", "the", "many", "some", draw.randint(2, 12))
    if plural:
        return draw.one_of("the", "this", "all the", draw.randint(2, 12))
    return draw.choices(["the", "a", "this"], [6, 4, 1])[0]


# Verbs by what they do to a sentence's sense.
MEETING = "see, visit, meet, ask, call, invite, pick up, wake, greet"
ACQUIRING = "buy, borrow, find, own, order, bring along, take along"
REUSED = "buy, borrow, find, bring along, take along"
CREATING = "bake, cook, write, knit, draw, paint, plant, order"
ENDING = (
    "eat, drink, throw away, sell, peel, lose, return, hand in, open, unpack"
)
CRITICAL = "buy, wear, order, read, carry, try on"
PURPOSES = (
    "buy, meet, visit, help, borrow, return, photograph, read, draw, write, "
    "work, sleep, look for, thank, pick up, talk to, swim, sell"
)

TENSES = ("present", "progressive", "past", "future")
MODALS = ("can", "must", "may", "should", "would like", "want", "wanted", "had")
NEGATIVE_MODALS = {"must": "have", "may": "must not", "had": "could"}


def activity(
    draw: Draw, subject: Phrase, tense: str, extras: float = 0.3
) -> Clause:
    """Returns `subject` doing something: verb, fitting objects, adverbials."""
    verb = draw.choice(verbs_for(tense))
    clause = fill(draw, Clause(subject, verb, steady(verb, tense)))
    return adorn(draw, clause, extras)


@functools.cache
def verbs_for(tense: str) -> list[Verb]:
    """Returns the verbs that go with `tense`.

    Owning and knowing are not events.
    """
    return [
        verb
        for verb in words.VERB_LIST
        if (tense == "present" or not verb.stative)
        and (tense in ("past", "pluperfect") or "moment" not in verb.manners)
    ]


def steady(verb: Verb, tense: str) -> str:
    """Returns `tense`, or the present for states and what is done at once."""
    plain = verb.stative or "moment" in verb.manners
    return "present" if tense == "progressive" and plain else tense


def deed(draw: Draw, subject: Phrase, tense: str, labels: str) -> Clause:
    """Returns `subject` doing one of a few things."""
    verb = draw.choice(verbs_named(labels))
    return fill(draw, Clause(subject, verb, tense))


@functools.cache
def verbs_named(labels: str) -> list[Verb]:
    """Returns the verbs of a table of labels."""
    wanted = labels.split(", ")
    return [verb for verb in words.VERB_LIST if verb.label in wanted]


def fill(draw: Draw, clause: Clause) -> Clause:
    """Returns the clause with the objects its verb's frame asks for."""
    for role, classes in clause.verb.frame:
        # What is yet to be acquired is nobody's: he buys *a* coat.
        foreign = role == "acc" and clause.verb in verbs_named(ACQUIRING)
        finder = PRONOUN["who"] if foreign else clause.subject
        thing = item(draw, finder, classes)
        if role == "acc":
            clause = replace(clause, accusative=thing)
        elif role in ("dat", "to"):
            clause = replace(clause, dative=thing, recipient=role == "to")
        else:
            clause = replace(clause, complement=governed(role, thing))
    return clause


def governed(role: str, phrase: Phrase) -> Text:
    """Returns a prepositional object.

    The role `auf+acc` and the bus give `auf den Bus`.
    """
    preposition, name_of_case = role.split("+")
    vague = isinstance(phrase, NounPhrase) and not phrase.definite
    if vague and not phrase.noun.mass:
        phrase = replace(phrase, determiner="the")
    case = ACCUSATIVE if name_of_case == "acc" else DATIVE
    return located(Text("", preposition), phrase, case)


def adorn(draw: Draw, clause: Clause, probability: float) -> Clause:
    """Returns the clause with a place or a manner, if its verb has one."""
    verb = clause.verb
    kinds = [kind for kind in verb.manners if kind in words.MANNERS]
    if verb.places and draw.chance(probability):
        return replace(clause, place=place(draw, verb.places))
    if kinds and draw.chance(probability / 2):
        manner = draw.choice(words.MANNERS[draw.choice(kinds)])
        return replace(clause, manner=manner)
    return clause


@functools.cache
def places_for(*kinds: str) -> list[tuple[Noun, Text, Text]]:
    """Returns places of any of these kinds.

    Each has its prepositions for where and for where to.
    """
    return [
        (NOUN[noun], Text(*where.split()), Text(*goal.split()))
        for noun, where, goal, tags in words.rows(words.PLACES)
        if not set(kinds).isdisjoint(tags.split())
    ]


def place(draw: Draw, kinds: tuple[str, ...]) -> Text:
    """Returns where: `in the kitchen`; German two-way words take the dative."""
    if draw.chance(0.1) and "home" in kinds:
        return words.HOME
    noun, where, _ = draw.choice(places_for(*kinds))
    return located(where, spot(draw, noun), DATIVE)


def spot(draw: Draw, noun: Noun) -> NounPhrase:
    """Returns `the kitchen`, sometimes described."""
    return NounPhrase(noun, "the", adjectives(draw, noun, 0.15))


def located(pair: Text, phrase: Phrase, case: int) -> Text:
    """Returns a pair of prepositions in front of `phrase`."""
    origin = next(marks.NUMBERS)
    german_side = prepositional(pair.german, phrase, case)
    preposition, _, rest = german_side.partition(" ")
    return Text(
        join(pair.english, marks.marked(phrase.english(True), origin)),
        join(preposition, marks.marked(rest, origin)),
    )


def goal(draw: Draw, kind: str) -> Text:
    """Returns where to: `into the kitchen`.

    The German two-way words take the accusative.
    """
    noun, _, where = draw.choice(places_for(kind))
    case = DATIVE if where.german == "zu" else ACCUSATIVE
    return located(where, spot(draw, noun), case)


def direction(draw: Draw) -> tuple[Verb, Text]:
    """Returns a verb of motion and where to."""
    verb = VERB[
        draw.one_of("go", "go", "run", "drive", "fly", "travel", "move")
    ]
    if verb.base in ("go", "run"):
        if draw.chance(0.25):
            return VERB["go"], draw.choice(words.DIRECTIONS)
        return verb, goal(draw, "walk")
    if verb.base == "drive" and draw.chance(0.4):
        return verb, goal(draw, "drive")
    far = draw.choice(words.CITIES + words.COUNTRIES)
    return verb, Text(f"to {far.english}", f"nach {far.german}")


def city(draw: Draw) -> Text:
    """Returns `in Vienna`, `in Wien`."""
    town = draw.choice(words.CITIES)
    return Text(f"in {town.english}", f"in {town.german}")


def motion(draw: Draw, subject: Phrase, tense: str) -> Clause:
    """Returns somebody going somewhere, coming home or staying."""
    roll = draw.random()
    if roll < 0.1:
        where = draw.one_of(words.HOME, city(draw))
        return Clause(subject, VERB["stay"], tense, complement=where)
    if roll < 0.2:
        home = words.DIRECTIONS[0]
        return Clause(subject, VERB["come"], tense, complement=home)
    verb, where = direction(draw)
    if verb.base == "move" and tense == "present":
        tense = "past"  # nobody moves house every day
    return Clause(subject, verb, tense, complement=where)


def pastime(draw: Draw, subject: Phrase, tense: str) -> Clause:
    """Returns somebody learning a language or playing, article or not."""
    if draw.chance(0.4):
        what = draw.choice(words.LANGUAGES)
        return Clause(subject, VERB["learn"], tense, complement=what)
    what = draw.choice(words.PASTIMES)
    return Clause(subject, VERB["play"], tense, complement=what)


def doing(
    draw: Draw, subject: Phrase, tense: str, extras: float = 0.3
) -> Clause:
    """Returns any of the above."""
    roll = draw.random()
    if roll < 0.13:
        return motion(draw, subject, tense)
    if roll < 0.2:
        return pastime(draw, subject, tense)
    return activity(draw, subject, tense, extras=extras)


def state(subject: Phrase, predicate: Text, tense: str = "present") -> Clause:
    """Returns `subject` being tired, old or a doctor."""
    return Clause(subject, VERB["be"], tense, complement=predicate)


def again(phrase: Phrase) -> Pronoun:
    """Returns the pronoun for somebody mentioned before."""
    return PRONOUN[pronoun_of(phrase)]


def being(subject: Phrase, row: list[str], tense: str = "present") -> Clause:
    """Returns a row of HINDRANCES or OCCASIONS said of `subject`."""
    verb, *words = row
    return Clause(subject, VERB[verb], tense, complement=Text(*words))


def weather(draw: Draw, tense: str) -> Clause:
    """Returns a clause on the weather: it is raining; it was cold."""
    it = PRONOUN["it n"]
    if draw.chance(0.4):
        now = "progressive" if tense == "present" else tense
        return Clause(it, VERB[draw.one_of("rain", "snow")], now)
    return state(it, draw.choice(words.WEATHER), tense)


def when(draw: Draw, tense: str) -> Text:
    """Returns a time that goes with `tense`."""
    if tense in ("past", "future"):
        if draw.chance(0.25):
            return draw.choice(words.WEEKDAYS)
        if draw.chance(0.15):
            return clock(draw)
        if draw.chance(0.2):
            return distance(draw, tense)
    return draw.choice(words.TIMES[tense])


def clock(draw: Draw) -> Text:
    """Returns `at eight o'clock`, `um acht Uhr`."""
    hour = marks.apart(number(draw.randint(2, 12)))
    return Text(f"at {hour.english} o'clock", f"um {hour.german} Uhr")


def distance(draw: Draw, tense: str) -> Text:
    """Returns `three days ago`, `vor drei Tagen`; `in three days`."""
    units = words.PERIODS if tense == "past" else words.PERIODS[:2]
    span = period(number(draw.randint(2, 12)), draw.choice(units))
    if tense == "past":
        return Text(f"{span.english} ago", f"vor {span.german}")
    return Text(f"in {span.english}", f"in {span.german}")


def period(count: Text, unit: Text) -> Text:
    """Returns `three days`, `drei Tagen`."""
    return marks.apart(
        Text(f"{count.english} {unit.english}", f"{count.german} {unit.german}")
    )


def timed(draw: Draw, clause: Clause) -> Clause:
    """Returns the clause with a time; in front, it inverts the German."""
    if clause.verb.stative:
        return clause
    time = when(draw, clause.tense)
    if clause.tense == "present":
        clause = general(clause)
    if clause.tense == "present" and draw.chance(0.4):
        return replace(clause, frequency=draw.choice(words.FREQUENCIES))
    return replace(clause, time=time, fronted=draw.one_of("", "time"))


def negated(clause: Clause) -> Clause:
    """Returns the clause negated, where negating it makes sense."""
    never = clause.frequency.english not in ("", "often")
    if never or counted(clause.accusative) or clause.verb.base == "learn":
        return clause
    if clause.tense == "present":  # `every day he does not read` says little
        clause = replace(clause, time=NOTHING, fronted="")
    if clause.accusative is not None:  # `not in the garden` would be another
        clause = replace(clause, place=NOTHING)  # claim: where, not whether
    return replace(clause, negative=True)


def counted(phrase: Phrase | None) -> bool:
    """Returns whether it is three, some or all of a kind: hard to negate."""
    if isinstance(phrase, Both):
        return not phrase.definite
    if not isinstance(phrase, NounPhrase):
        return False
    simple = ("a", "", "the", "this", *grammar.POSSESSIVES)
    return phrase.determiner not in simple


def modal(draw: Draw, clause: Clause, negative: bool) -> Clause:
    """Returns the clause under a modal verb; some change when negated."""
    chosen = draw.choice(MODALS)
    if negative:
        clause = negated(clause)
    if clause.negative:
        chosen = NEGATIVE_MODALS.get(chosen, chosen)
    return replace(clause, tense="present", modal=chosen)


def say(clause: Clause, end: str = ".") -> Pair:
    """Returns the clause as a sentence or, with a question mark, a question."""
    order = "question" if end == "?" else "main"
    return written(english(clause, order), german(clause, order), end)


def written(english_side: str, german_side: str, end: str = ".") -> Pair:
    """Returns both sides as sentences."""
    return marks.read(sentence(english_side, end), sentence(german_side, end))


def sub(conjunctions: str, clause: Clause) -> Text:
    """Returns a subordinate clause, its German verb last.  `because weil`."""
    conjunction = marks.apart(Text(*conjunctions.split()))
    return Text(
        f"{conjunction.english} {english(clause)}",
        f"{conjunction.german} {german(clause, 'last')}",
    )


def joined(draw: Draw, clause: Clause, subordinate: Text) -> Pair:
    """Returns both clauses in either order.

    German inverts after a subordinate one.
    """
    if draw.chance(0.35):
        front = Text(subordinate.english + ",", subordinate.german + ",")
        return say(replace(clause, fronted=front))
    return say(replace(clause, trailing=subordinate))


def unfronted(clause: Clause) -> Clause:
    return replace(clause, fronted="")


# --- Patterns: each draws one sentence. ---


def event(draw: Draw) -> Clause:
    """Returns something somebody does, at some time."""
    tense = draw.choices(TENSES, [3, 3, 4, 2])[0]
    clause = doing(draw, person(draw), tense)
    return timed(draw, clause) if draw.chance(0.6) else clause


def statement(draw: Draw) -> Pair:
    """The boy is reading a book in the garden."""
    return say(event(draw))


def denial(draw: Draw) -> Pair:
    """The boy did not buy a book."""
    return say(negated(event(draw)))


def obligation(draw: Draw) -> Pair:
    """The boy must help his mother."""
    clause = doing(draw, person(draw), "future")
    return say(modal(draw, clause, draw.chance(0.3)))


def question(draw: Draw) -> Pair:
    """Did the boy buy a book?"""
    clause = unfronted(event(draw))
    if clause.subject == PRONOUN["I"]:
        clause = replace(clause, subject=PRONOUN["you"])
    if draw.chance(0.3):
        chosen = draw.one_of("can", "must", "may", "should", "want")
        clause = replace(clause, tense="present", modal=chosen)
        clause = replace(clause, time=NOTHING, frequency=NOTHING)
    if draw.chance(0.15):
        clause = negated(clause)
    return say(clause, "?")


QUESTION_WORDS = {"when": "wann", "why": "warum", "where": "wo"}


def asked_about(draw: Draw) -> Phrase:
    """Returns anybody but the one who asks."""
    anybody = person(draw)
    if anybody == PRONOUN["I"]:
        return PRONOUN["you"]
    if isinstance(anybody, NounPhrase) and not anybody.definite:
        return plain(anybody)
    return anybody


def open_question(draw: Draw) -> Pair:
    """When, why, where, who, what ...?"""
    kind = draw.one_of(
        "when", "why", "where", "who", "what", "which", "whither"
    )
    tense = draw.choices(TENSES, [2, 3, 4, 2])[0]
    subject = asked_about(draw)
    if kind in QUESTION_WORDS:
        clause = localized(draw, subject, kind, tense=tense)
        front = Text(kind, QUESTION_WORDS[kind])
        return say(replace(clause, fronted=front), "?")
    if kind == "whither":
        verb, _ = direction(draw)
        front = Text("where", "wohin")
        return say(Clause(subject, verb, tense, fronted=front), "?")
    if kind == "who":
        clause = doing(draw, PRONOUN["who"], tense)
        return written(english(clause), german(clause), "?")
    return gap_question(draw, kind, subject, tense=tense)


def localized(draw: Draw, subject: Phrase, kind: str, tense: str) -> Clause:
    """Returns a clause to ask `when`, `why` or `where` about.

    `where` wants no place.
    """
    if kind == "where":
        return leisure(draw, subject, tense, extras=0)
    return doing(draw, subject, tense)


def leisure(
    draw: Draw, subject: Phrase, tense: str, extras: float = 0.3
) -> Clause:
    """Returns something done in a place of its own."""
    placed = [verb for verb in verbs_for("progressive") if verb.places]
    clause = Clause(subject, draw.choice(placed), tense)
    return adorn(draw, fill(draw, clause), extras)


def gap_question(draw: Draw, kind: str, subject: Phrase, tense: str) -> Pair:
    """Returns a question: What did he buy?  Which book is she reading?"""
    clause = transitive(draw, subject, tense)
    noun = clause.accusative.noun
    asked = Text("what", "was")
    if kind == "which":
        phrase = NounPhrase(noun, "which", plural=clause.accusative.plural)
        asked = Text(phrase.english(), phrase.german(ACCUSATIVE))
    return say(replace(clause, accusative=None, fronted=asked), "?")


def transitive(draw: Draw, subject: Phrase, tense: str) -> Clause:
    """Returns a clause with a thing for its accusative object."""
    while True:
        clause = activity(draw, subject, tense, extras=0.2)
        thing = clause.accusative
        if isinstance(thing, NounPhrase) and not person_noun(thing.noun):
            return clause


def mood(draw: Draw) -> Pair:
    """My brother is tired."""
    subject = person(draw)
    if isinstance(subject, NounPhrase) and not subject.definite:
        subject = plain(subject)
    clause = state(subject, draw.choice(words.OPINIONS))
    return say(toned(draw, replace(clause, tense=draw.one_of(*STATES))))


def quality(draw: Draw) -> Pair:
    """The new car is expensive."""
    known = [n for n in words.NOUN_LIST if adjectives_for(n) and not family(n)]
    noun = draw.choice(known)
    plural = not noun.mass and draw.chance(0.25)
    thing = NounPhrase(noun, draw.one_of("the", "this"), plural=plural)
    one = draw.choice(adjectives_for(noun))
    clause = state(thing, Text(one.english, one.german), draw.one_of(*STATES))
    return say(toned(draw, clause))


STATES = ("present", "present", "past")


def toned(draw: Draw, clause: Clause) -> Clause:
    """Returns the predicate, now and then strengthened or negated."""
    if draw.chance(0.25):
        return replace(clause, negative=True)
    if draw.chance(0.4):
        degree, word = draw.choice(words.DEGREES), clause.complement
        stronger = Text(
            f"{degree.english} {word.english}", f"{degree.german} {word.german}"
        )
        return replace(clause, complement=stronger)
    return clause


def comparable(kind: str) -> bool:
    """Returns whether nouns of a class are alike enough to be compared."""
    mixed = ("thing", "gift", "parcel", "event")
    return len(countable(kind)) > 2 and kind not in mixed


def countable(kind: str) -> list[Noun]:
    return [noun for noun in nouns_of(kind) if not noun.mass]


def comparison(draw: Draw) -> Pair:
    """The train is faster than the bus."""
    degrees = [a for a in words.ADJECTIVE_LIST if a.comparative]
    one = draw.choice([a for a in degrees if any(map(comparable, a.classes))])
    kinds = sorted(filter(comparable, one.classes))
    pair = draw.sample(countable(draw.choice(kinds)), 2)
    left, right = (compared(draw, noun) for noun in pair)
    than = Text(
        f"{one.comparative} than {right.english(True)}",
        f"{one.german_comparative} als {right.german(NOMINATIVE)}",
    )
    return say(state(left, than, draw.one_of(*STATES)))


def compared(draw: Draw, noun: Noun) -> NounPhrase:
    """Returns a side of a comparison."""
    own = not noun.classes.isdisjoint({"family", "known", "owned"})
    choices = grammar.POSSESSIVES if own else ("the", "this")
    return NounPhrase(noun, draw.choice(choices))


def reason(draw: Draw) -> Pair:
    """He did not come because he was ill; she reads because she has time."""
    tense, state_tense = draw.one_of(
        ("progressive", "present"), ("past", "past")
    )
    subject = person(draw)
    if draw.chance(0.4):
        clause = leisure(draw, subject, tense)
        row = draw.choice(words.OCCASIONS)
    else:
        clause = negated(doing(draw, subject, tense))
        row = draw.choice(words.HINDRANCES)
    cause = being(again(subject), row, state_tense)
    fitting = clause.negative or row in words.OCCASIONS
    link = "because weil" if fitting else "although obwohl"
    return joined(draw, clause, sub(link, cause))


def defiance(draw: Draw) -> Pair:
    """She is reading although she is tired; he swam although it was cold."""
    tense, state_tense = draw.one_of(
        ("progressive", "present"), ("past", "past")
    )
    subject = person(draw)
    clause = doing(draw, subject, tense)
    obstacle = weather(draw, state_tense)
    if draw.chance(0.5):
        row = draw.choice(words.HINDRANCES)
        obstacle = being(again(subject), row, state_tense)
    return joined(draw, clause, sub("although obwohl", obstacle))


def condition(draw: Draw) -> Pair:
    """If he has time, he will read in the garden."""
    subject = person(draw)
    clause = leisure(draw, subject, "future")
    if draw.chance(0.3):
        chosen = draw.one_of("can", "may", "want", "would like")
        clause = replace(clause, tense="present", modal=chosen)
    chance = being(again(subject), draw.choice(words.OCCASIONS))
    return joined(draw, clause, sub("if wenn", chance))


def simultaneous(draw: Draw) -> Pair:
    """My father is cooking while the children are playing."""
    first = person(draw)
    second = someone_else(draw, first)
    clause = doing(draw, first, "progressive", extras=0.2)
    other = doing(draw, second, "progressive", extras=0.3)
    return joined(draw, clause, sub("while während", other))


def sequence(draw: Draw) -> Pair:
    """After he had eaten the soup, he went home; before she ..."""
    subject = person(draw)
    other = again(subject)
    clause = doing(draw, subject, "past", extras=0.2)
    if draw.chance(0.6):
        earlier = doing(draw, other, "pluperfect", extras=0.2)
        return joined(draw, clause, sub("after nachdem", earlier))
    return joined(draw, clause, sub("before bevor", doing(draw, other, "past")))


def report(draw: Draw) -> Pair:
    """The teacher says that the children are reading."""
    verb = VERB[draw.one_of("say", "believe", "know", "hope")]
    speaker = person(draw)
    subject = someone_else(draw, speaker)
    tense = draw.choices(TENSES, [2, 2, 4, 3])[0]
    inner = doing(draw, subject, tense)
    if draw.chance(0.3):
        inner = timed(draw, inner)
    elif draw.chance(0.3):
        inner = negated(inner)
    told = sub("that dass", unfronted(inner))
    retold = verb.base == "say" and tense == "past"
    spoken = "past" if retold else "present"
    return say(Clause(speaker, verb, spoken, trailing=told))


def doubt(draw: Draw) -> Pair:
    """I do not know whether he came; do you know where she lives?"""
    asker = PRONOUN[draw.choice(SUBJECTS)] if draw.chance(0.5) else person(draw)
    tense = draw.one_of("past", "future", "progressive")
    link = draw.one_of("whether ob", "why warum", "when wann", "where wo")
    subject = someone_else(draw, asker)
    clause = localized(draw, subject, link.split()[0], tense=tense)
    if draw.chance(0.3):
        asked = sub(link, replace(clause, tense="past"))
        return say(Clause(asker, VERB["ask"], "past", trailing=asked))
    unknowing = Clause(asker, VERB["know"], trailing=sub(link, clause))
    if draw.chance(0.3) and asker != PRONOUN["I"]:
        return say(unknowing, "?")
    return say(replace(unknowing, negative=True))


def relative_word(phrase: NounPhrase, case: int) -> Text:
    """Returns `who` or `that`, and der, die, das in its case."""
    key = "p" if phrase.plural else phrase.noun.gender
    word = "who" if person_noun(phrase.noun) else "that"
    return Text(word, RELATIVE[key][case])


def acting(draw: Draw, phrase: NounPhrase, tense: str) -> Text:
    """Returns a relative clause whose subject is `phrase`: who is singing."""
    word = relative_word(phrase, NOMINATIVE)
    forms = (word.english, word.english), (word.german, "", "")
    stand_in = Pronoun(*forms, plural=phrase.plural)
    if tense == "present":
        verb = VERB[draw.one_of("live", "study")]
        clause = Clause(stand_in, verb, tense, complement=city(draw))
    else:
        clause = doing(draw, stand_in, tense, extras=0.5)
    return Text(english(clause), german(clause, "last"))


def plain(phrase: NounPhrase) -> NounPhrase:
    """Returns the phrase with a definite article, for a relative clause."""
    return replace(phrase, determiner="the", adjectives=())


def who_relative(draw: Draw) -> Pair:
    """The man who lives in Berlin bought a car."""
    phrase = plain(somebody(draw))
    tense = draw.one_of("present", "past", "progressive")
    subject = replace(phrase, after=acting(draw, phrase, tense))
    if draw.chance(0.3):
        return say(state(subject, draw.choice(words.OPINIONS)))
    return say(doing(draw, subject, draw.one_of("present", "past", "future")))


def met_relative(draw: Draw) -> Pair:
    """I met the woman who works in the bakery."""
    phrase = plain(somebody(draw))
    tense = draw.one_of("past", "future")
    clause = deed(draw, person(draw), tense, labels=MEETING)
    trailing = acting(draw, phrase, draw.one_of("present", "past"))
    return say(replace(clause, accusative=phrase, trailing=trailing))


def object_relative(draw: Draw) -> Pair:
    """He is reading the book that his sister bought yesterday."""
    tense = draw.one_of("progressive", "past", "future")
    clause = transitive(draw, person(draw), tense)
    noun = clause.accusative.noun
    if clause.verb in verbs_named(CREATING) or not sources(noun, clause.verb):
        return object_relative(draw)
    phrase = NounPhrase(noun, "the", plural=clause.accusative.plural)
    # The relative clause follows the bracket, so its noun must come last in it.
    clause = replace(clause, place=NOTHING, manner=NOTHING, accusative=phrase)
    earlier = draw.choice(sources(noun, clause.verb))
    owner_before = someone_else(draw, clause.subject)
    inner = fill(draw, Clause(owner_before, earlier, "past"))
    if draw.chance(0.3):
        inner = replace(inner, time=when(draw, "past"))
    word = relative_word(phrase, ACCUSATIVE)
    inner = replace(inner, accusative=None, fronted=word)
    trailing = Text(english(inner), german(inner, "last"))
    return say(replace(clause, trailing=trailing))


def sources(noun: Noun, used: Verb) -> list[Verb]:
    """Returns what may have happened to a thing before it is `used`."""
    return [verb for verb in verbs_taking(noun) if verb.base != used.base]


@functools.cache
def verbs_taking(noun: Noun) -> list[Verb]:
    """Returns the verbs with `noun` for an object that leave it to be used."""
    return [
        verb
        for verb in verbs_for("past")
        for role, classes in verb.frame
        if role == "acc" and not noun.classes.isdisjoint(classes)
        if verb not in verbs_named(ENDING)
    ]


def aim(clause: Clause) -> Text:
    """Returns `to open the door`, `die Tür zu öffnen`."""
    return Text(
        grammar.english_infinitive(clause), grammar.german_infinitive(clause)
    )


def intention(draw: Draw) -> Pair:
    """She decided to open the door: die Tür zu öffnen."""
    subject = person(draw)
    what = aim(deed(draw, subject, "future", labels=PURPOSES))
    verb, tense = draw.one_of(
        ("try", "past"), ("try", "progressive"), ("decide", "past"),
        ("forget", "past"),
    )  # fmt: skip
    return say(Clause(subject, VERB[verb], tense, trailing=what))


def errand(draw: Draw) -> Pair:
    """He went to the market to buy apples: um Äpfel zu kaufen."""
    subject = person(draw)
    purpose = deed(draw, subject, "future", labels=PURPOSES)
    what, um = aim(purpose), purpose.marked("um", "to")
    tense = draw.one_of("past", "progressive", "future")
    verb = VERB[draw.one_of("go", "run")]
    clause = Clause(subject, verb, tense, complement=goal(draw, "walk"))
    return say(
        replace(clause, trailing=Text(what.english, f"{um} {what.german}"))
    )


def coordination(draw: Draw) -> Pair:
    """My father is cooking and my mother is reading."""
    tense = draw.one_of("progressive", "past", "future")
    first = doing(draw, person(draw), tense)
    second = doing(draw, someone_else(draw, first.subject), tense)
    if draw.chance(0.4):
        first = replace(first, time=when(draw, tense), fronted="time")
    if draw.chance(0.5):
        second = negated(second)
    return linked(first, second)


def general(clause: Clause) -> Clause:
    """Returns the clause about things of a kind: reads novels, drinks milk."""
    thing = clause.accusative
    if not isinstance(thing, NounPhrase) or person_noun(thing.noun):
        return clause
    if (
        thing.measured
        or not thing.noun.classes.isdisjoint(FAMILIAR)
        or thing.owner
    ):
        return clause
    thing = replace(thing, determiner="", plural=not thing.noun.mass)
    return replace(clause, accusative=thing)


def fondness(draw: Draw) -> Pair:
    """She likes to read books: sie liest gern Bücher."""
    clause = leisure(draw, person(draw), "present", extras=0.5)
    if draw.chance(0.3):
        clause = pastime(draw, clause.subject, "present")
    return say(liked(general(clause)))


def liked(clause: Clause) -> Clause:
    """Returns the clause as what one likes to do.

    An adverb is the German modal.
    """
    gladly = Text("", clause.marked("gern", "modal"))
    return replace(clause, modal="like", frequency=gladly)


def position(draw: Draw) -> Pair:
    """The book is lying on the table; the vase stands behind the sofa."""
    flat = draw.chance(0.5)
    noun = draw.choice(nouns_of("flat" if flat else "upright"))
    thing = described(draw, noun, draw.chance(0.2))
    where = located(draw.choice(words.RELATIONS), base(draw), DATIVE)
    verb, tense = ("lie", "progressive") if flat else ("stand", "present")
    return say(Clause(thing, VERB[verb], tense, complement=where))


def putting(draw: Draw) -> Pair:
    """She puts the book on the table (legt) but places the vase (stellt)."""
    flat = draw.chance(0.5)
    noun = draw.choice(nouns_of("flat" if flat else "upright"))
    thing = described(draw, noun, draw.chance(0.2))
    where = located(draw.choice(words.RELATIONS), base(draw), ACCUSATIVE)
    verb, tense = VERB["put" if flat else "place"], draw.one_of(*TENSES[1:])
    clause = Clause(person(draw), verb, tense, accusative=thing)
    return say(replace(clause, complement=where))


def base(draw: Draw) -> NounPhrase:
    """Returns a piece of furniture to put something on, under or behind."""
    noun = draw.choice(nouns_of("surface"))
    return NounPhrase(noun, draw.one_of("the", "this"))


def fluency(draw: Draw) -> Pair:
    """My sister speaks German very well: spricht sehr gut Deutsch."""
    language = marks.apart(draw.choice(words.LANGUAGES))
    well = draw.choice(words.FLUENCY)
    how = Text(
        f"{language.english} {well.english}", f"{well.german} {language.german}"
    )
    clause = Clause(person(draw), VERB["speak"], complement=how)
    return say(replace(clause, modal=draw.one_of("", "", "can")))


def creature(draw: Draw) -> Pair:
    """The cat eats fish: animals have a verb of their own, fressen."""
    noun = draw.choice(nouns_of("animal"))
    subject = described(draw, noun, draw.chance(0.3))
    tense = draw.one_of(*TENSES[1:])
    if draw.chance(0.4):
        clause = deed(draw, subject, tense, labels="sleep")
        where = place(draw, ("green", "garden"))
        return say(timed(draw, replace(clause, place=where)))
    hunter = "hunter" in noun.classes
    food = NOUN[draw.one_of(*(MEAL if hunter else FODDER))]
    meal = NounPhrase(food, draw.one_of("the", ""), plural=not food.mass)
    clause = Clause(subject, VERB["eat"], tense, accusative=meal)
    return say(timed(draw, clause))


MEAL, FODDER = ("meat", "fish", "ham"), ("bread", "apple", "carrot")


def hanging(draw: Draw) -> Pair:
    """The picture is hanging on the wall; she hung up the picture."""
    thing = described(draw, draw.choice(nouns_of("hanging")))
    if draw.chance(0.4):
        wall = NounPhrase(NOUN["wall"], draw.one_of("the", "this"))
        where = located(Text("on", "an"), wall, DATIVE)
        return say(Clause(thing, VERB["hang"], "progressive", complement=where))
    tense = draw.one_of("past", "future")
    clause = Clause(person(draw), VERB["hang up"], tense, accusative=thing)
    return say(timed(draw, clause))


def existence(draw: Draw) -> Pair:
    """There is a big garden behind the house: hinter dem Haus gibt es."""
    noun = draw.choice(nouns_of("building", "green", "plant"))
    landmark = NounPhrase(draw.choice(nouns_of("building")))
    where = located(draw.choice(words.RELATIONS[2:]), landmark, DATIVE)
    count = draw.randint(2, 9) if draw.chance(0.4) else "a"
    thing = NounPhrase(
        noun, count, adjectives(draw, noun, 0.5), plural=count != "a"
    )
    return existing("is" if count == "a" else "are", thing, where)


def existing(
    is_are: str, thing: NounPhrase, where: Text, end: str = "."
) -> Pair:
    """Returns a sentence or a question: there is a thing; is there a thing?"""
    there = marks.apart(Text("there", "es"))
    verb = marks.apart(Text(is_are, "gibt"))
    where = marks.apart(where)
    if end == "?":
        opening = f"{verb.english} {there.english}"
        german_opening = f"{verb.german} {there.german} {where.german}"
    else:
        opening = f"{there.english} {verb.english}"
        german_opening = f"{where.german} {verb.german} {there.german}"
    return written(
        f"{opening} {thing.english()} {where.english}",
        f"{german_opening} {thing.german(ACCUSATIVE)}",
        end,
    )


ELDERS = {"father", "mother", "uncle", "aunt", "boss", "colleague"}


def age(draw: Draw) -> Pair:
    """My brother is twenty-three years old."""
    subject = singular(draw)
    kin = subject.noun.english if isinstance(subject, NounPhrase) else ""
    youngest = 60 if kin.startswith("grand") else 40 if kin in ELDERS else 6
    return say(state(subject, old(draw.randint(youngest, youngest + 35))))


def old(age: int) -> Text:
    """Returns `three years old`, `drei Jahre alt`."""
    years = marks.apart(number(age))
    return Text(f"{years.english} years old", f"{years.german} Jahre alt")


def singular(draw: Draw) -> Phrase:
    """Returns one person, named or described."""
    if draw.chance(0.4):
        return name(draw)
    return replace(relation(draw), plural=False)


def price(draw: Draw) -> Pair:
    """The red coat costs ninety euros."""
    noun = draw.choice(nouns_of("clothes", "thing", "gift"))
    dear = "apparatus" in noun.classes
    value = 100 * draw.randint(2, 9) if dear else draw.randint(2, 99)
    money = NounPhrase(NOUN["euro"], value, plural=True)
    return say(Clause(described(draw, noun), VERB["cost"], accusative=money))


def profession(draw: Draw) -> Pair:
    """My aunt is a lawyer: no article in German, but a feminine."""
    subject = singular(draw)
    job, man, woman = draw.choice(words.PROFESSIONS)
    word, none = (
        (woman, "keine") if pronoun_of(subject) == "she" else (man, "kein")
    )
    title = marks.apart(Text(job, word))
    a_title = Text(f"{grammar.article(job)} {title.english}", title.german)
    if draw.chance(0.3):
        a_title = Text(f"not {a_title.english}", f"{none} {a_title.german}")
    return say(state(subject, a_title, draw.one_of(*STATES)))


def belonging(draw: Draw) -> Pair:
    """The red car belongs to my uncle."""
    noun = draw.choice(nouns_of("owned", "clothes", "carried", "thing", "pet"))
    thing, holder = described(draw, noun), singular(draw)
    clause = Clause(thing, VERB["belong to"], dative=holder)
    return say(replace(clause, negative=draw.chance(0.3)))


def timetable(draw: Draw) -> Pair:
    """The train will arrive at eight o'clock; the concert began on Monday."""
    show = draw.chance(0.5)
    kinds = ("show", "course") if show else ("transit",)
    verb = draw.one_of(*(("begin", "end") if show else ("arrive", "depart")))
    subject = NounPhrase(
        draw.choice(nouns_of(*kinds)), draw.one_of("the", "this")
    )
    time = clock(draw) if draw.chance(0.6) else draw.choice(words.WEEKDAYS)
    tense = draw.one_of("present", "past", "future")
    clause = Clause(subject, VERB[verb], tense, time=time)
    return say(replace(clause, fronted=draw.one_of("", "time")))


def thirst(draw: Draw) -> Pair:
    """He is drinking two cups of coffee: zwei Tassen Kaffee."""
    drink = draw.choice(nouns_of("drink"))
    vessel = "cup" if "hot" in drink.classes else draw.one_of("glass", "bottle")
    count = draw.randint(2, 5) if draw.chance(0.5) else "a"
    phrase = NounPhrase(
        NOUN[vessel], count, (), plural=count != "a", measured=drink
    )
    clause = deed(
        draw, person(draw), draw.choice(TENSES), labels="drink, order"
    )
    return say(timed(draw, replace(clause, accusative=phrase)))


def duration(draw: Draw) -> Pair:
    """She has lived in Vienna for three years: sie wohnt seit drei Jahren."""
    verb, subject = VERB[draw.one_of("live", "study")], person(draw)
    span = period(number(draw.randint(2, 30)), draw.choice(words.PERIODS[1:4]))
    clause = Clause(subject, verb, "perfect", complement=city(draw))
    since = Text(f"for {span.english}", f"seit {span.german}")
    clause = replace(clause, time=since)
    return written(english(clause), german(replace(clause, tense="present")))


def completion(draw: Draw) -> Pair:
    """He has already read the letter."""
    clause = activity(draw, person(draw), "past", extras=0)
    already = Text("already", "schon")
    return say(replace(clause, tense="perfect", frequency=already))


FAULTS = {
    "expensive", "big", "small", "old", "long", "heavy", "boring", "difficult",
    "ugly", "slow", "loud", "sweet",
}  # fmt: skip


def faults(noun: Noun) -> list[words.Adjective]:
    """Returns what a thing can be too much of; nothing for bread and milk."""
    if "load" in noun.classes:
        return [a for a in adjectives_for(noun) if a.english == "heavy"]
    fitting = [a for a in adjectives_for(noun) if a.english in FAULTS]
    return [] if noun.mass else fitting


def criticism(draw: Draw) -> Pair:
    """She is not buying the coat because it is too expensive: weil er ..."""
    tense, now = draw.one_of(("progressive", "present"), ("past", "past"))
    clause = deed(draw, person(draw), tense, labels=CRITICAL)
    noun = clause.accusative.noun
    if not faults(noun):
        return criticism(draw)
    fault = draw.choice(faults(noun))
    thing = NounPhrase(noun, "the", plural=clause.accusative.plural)
    too = Text(f"too {fault.english}", f"zu {fault.german}")
    denied = replace(clause, accusative=thing, negative=True)
    cause = state(PRONOUN[thing.pronoun], too, now)
    return joined(draw, denied, sub("because weil", cause))


@functools.cache
def uses(noun: Noun) -> list[Verb]:
    """Returns what can be done with a thing once one has it."""
    done = verbs_named(f"{ACQUIRING}, {CREATING}, look for, take off, pick up")
    verbs = [verb for verb in verbs_taking(noun) if len(verb.frame) == 1]
    lasting = [verb for verb in verbs if "moment" not in verb.manners]
    return [verb for verb in lasting if verb not in done]


def reuse(draw: Draw) -> Pair:
    """He bought a coat, but he did not wear it: aber er hat ihn ..."""
    first = deed(
        draw, person(draw), draw.one_of("past", "future"), labels=REUSED
    )
    thing = first.accusative
    choices = uses(thing.noun)
    if thing.noun.mass or not choices or "plenty" in thing.noun.classes:
        return reuse(draw)
    second = Clause(again(first.subject), draw.choice(choices), first.tense)
    it, denied = PRONOUN[thing.pronoun], draw.chance(0.5)
    return linked(first, replace(second, accusative=it, negative=denied))


def linked(first: Clause, second: Clause) -> Pair:
    """Returns two main clauses, `but` before a denial and `and` otherwise."""
    link = Text(", but", ", aber") if second.negative else Text("and", "und")
    link = marks.apart(link)
    return written(
        f"{english(first)} {link.english} {english(second)}",
        f"{german(first)} {link.german} {german(second)}",
    )


def ownership(draw: Draw) -> Pair:
    """The woman whose son is playing the piano is tired: deren Sohn."""
    phrase = replace(plain(somebody(draw)), plural=False)
    noun = draw.choice(nouns_of("family", "known"))
    word = RELATIVE[phrase.noun.gender][GENITIVE]
    tense = draw.one_of("progressive", "past")
    inner = doing(draw, Name(noun.english, ""), tense)
    own = german(replace(inner, subject=Name(noun.german, "")), "last")
    after = marks.apart(Text(f"whose {english(inner)}", f"{word} {own}"))
    mood_of_owner = draw.choice(words.OPINIONS)
    return say(toned(draw, state(replace(phrase, after=after), mood_of_owner)))


def judgment(draw: Draw) -> Pair:
    """It is important to learn German."""
    anybody = PRONOUN["who"]
    inner = leisure(draw, anybody, "future", extras=0.6)
    if draw.chance(0.4):
        inner = pastime(draw, anybody, "future")
    clause = state(PRONOUN["it n"], draw.choice(words.JUDGMENTS))
    clause = replace(clause, negative=draw.chance(0.2), trailing=aim(inner))
    return say(replace(clause, tense=draw.one_of(*STATES)))


def memory(draw: Draw) -> Pair:
    """When he was ill, he often read novels: als, not wenn."""
    subject = person(draw)
    clause = general(leisure(draw, subject, "past"))
    clause = replace(clause, frequency=words.FREQUENCIES[0])
    was = being(again(subject), draw.choice(words.PHASES), "past")
    return joined(draw, clause, sub("when als", was))


def tale(draw: Draw) -> Pair:
    """He says that she is singing because she is happy."""
    tense, now = draw.one_of(("progressive", "present"), ("past", "past"))
    speaker = person(draw)
    subject = someone_else(draw, speaker)
    clause = leisure(draw, subject, tense)
    cause = being(again(subject), draw.choice(words.OCCASIONS), now)
    inner = replace(clause, trailing=sub("because weil", cause))
    verb = VERB[draw.one_of("say", "believe", "know", "hope")]
    return say(Clause(speaker, verb, trailing=sub("that dass", inner)))


def scene(draw: Draw) -> Pair:
    """Now he is reading and she is singing while they are cooking."""
    tense = draw.one_of("progressive", "past")
    cast = [person(draw)]
    cast += [someone_else(draw, *cast)]
    cast += [someone_else(draw, *cast)]
    first, second, third = (doing(draw, actor, tense) for actor in cast)
    first = replace(first, time=when(draw, tense), fronted="time")
    meanwhile = sub("while während", third)
    return linked(first, replace(second, trailing=meanwhile))


PATTERNS: list[tuple[int, Callable[[Draw], Pair]]] = [
    (14, statement),
    (5, denial),
    (7, obligation),
    (6, question),
    (8, open_question),
    (2, mood),
    (2, quality),
    (4, comparison),
    (5, reason),
    (3, defiance),
    (5, condition),
    (5, simultaneous),
    (5, sequence),
    (6, report),
    (5, doubt),
    (5, who_relative),
    (4, met_relative),
    (6, object_relative),
    (3, intention),
    (3, errand),
    (5, coordination),
    (4, fondness),
    (3, position),
    (3, putting),
    (2, hanging),
    (2, fluency),
    (2, creature),
    (2, existence),
    (2, age),
    (3, price),
    (2, profession),
    (2, belonging),
    (3, timetable),
    (3, thirst),
    (2, duration),
    (3, completion),
    (5, criticism),
    (4, reuse),
    (4, ownership),
    (4, judgment),
    (4, memory),
    (5, tale),
    (3, scene),
]
