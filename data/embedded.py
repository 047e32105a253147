"""An English-German corpus that this project writes itself.

No file and no network: `pairs` draws derivations of `data.grammar` with a
seeded generator.  A pattern below is a kind of sentence (a question, a reason,
a relative clause); it picks words by their classes and reads the clause off in
both languages.  One pattern, one draw:

    reason  ->  clause(activity: the boy, read, a long letter; past)
                + because + clause(he, be tired, negative: no)
    The boy did not read the long letter because he was tired.
    Der Junge hat den langen Brief nicht gelesen, weil er müde war.

English decides German throughout: `you` is du, the past is the Perfekt (the
Präteritum for sein, haben and modals), and every word has one translation.
"""

import functools
import random
from collections.abc import Callable
from dataclasses import replace

from data import grammar, lexicon
from data.grammar import (
    ACCUSATIVE,
    DATIVE,
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
    prepositional,
    sentence,
)
from data.lexicon import NOUN, VERB, Noun, Text, Verb, number
from t2t_lite.errors import InputError

SEED = 2017
SIZES = {"test": 500, "dev": 500, "train": 24000}
SHORTEST, LONGEST = 3, 30

Pair = tuple[str, str]


SUBJECTS = ("I", "you", "he", "she", "we", "they")


class Draw(random.Random):
    """A seeded generator with the few ways of choosing the patterns need."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def one_of(self, *choices):
        return self.choice(choices)


@functools.cache
def nouns_of(*classes: str) -> list[Noun]:
    """The nouns in any of `classes`, in the order of the lexicon."""
    return [n for n in lexicon.NOUN_LIST if not n.classes.isdisjoint(classes)]


@functools.cache
def adjectives_for(noun: Noun) -> list[lexicon.Adjective]:
    """The adjectives that make sense with `noun`."""
    fits = lexicon.ADJECTIVE_LIST
    return [a for a in fits if not a.classes.isdisjoint(noun.classes)]


def adjectives(draw: Draw, noun: Noun, probability: float) -> tuple[Text, ...]:
    """One fitting adjective, or none."""
    fitting = adjectives_for(noun)
    if not fitting or not draw.chance(probability):
        return ()
    chosen = draw.choice(fitting)
    return (Text(chosen.english, chosen.german),)


def pronoun_of(phrase: Phrase) -> str:
    """The key of the pronoun that stands for `phrase` in a later clause."""
    if isinstance(phrase, Pronoun):
        return next((k for k in SUBJECTS if PRONOUN[k] == phrase), "")
    return "they" if isinstance(phrase, Both) else phrase.pronoun


def possessive(phrase: Phrase) -> str:
    """`his` for the boy; "" where English and German gender may disagree."""
    neuter = isinstance(phrase, NounPhrase) and phrase.noun.gender == "n"
    if neuter and not phrase.plural:
        return ""
    return POSSESSIVE_OF.get(pronoun_of(phrase), "")


def name(draw: Draw) -> Name:
    """Anna or Peter."""
    if draw.chance(0.5):
        return Name(draw.choice(lexicon.WOMEN), "she")
    return Name(draw.choice(lexicon.MEN), "he")


def relation(draw: Draw, owner: str = "") -> NounPhrase:
    """Somebody's family, friend or colleague: my mother, her old friend."""
    noun = draw.choice(nouns_of("family", "known"))
    whose = owner or draw.choice(grammar.POSSESSIVES)
    plural = "single" not in noun.classes and draw.chance(0.15)
    return NounPhrase(noun, whose, adjectives(draw, noun, 0.1), plural)


def somebody(draw: Draw) -> NounPhrase:
    """A person by role: the teacher, a young waiter, the children."""
    noun = draw.choice(strangers())
    determiner = draw.choices(["the", "a", "this"], [14, 1, 2])[0]
    plural = determiner == "the" and draw.chance(0.2)
    return NounPhrase(noun, determiner, adjectives(draw, noun, 0.2), plural)


def family(noun: Noun) -> bool:
    return "family" in noun.classes


def person(draw: Draw) -> Phrase:
    """Anybody who can be the subject of a sentence."""
    roll = draw.random()
    if roll < 0.2:
        return PRONOUN[draw.choice(SUBJECTS)]
    if roll < 0.35:
        return name(draw)
    if roll < 0.4:
        return Both(name(draw), relation(draw, "my"))
    return relation(draw) if roll < 0.65 else somebody(draw)


def third_party(draw: Draw, subject: Phrase) -> Phrase:
    """Somebody other than `subject`, for an object."""
    whose = possessive(subject)
    if draw.chance(0.35) and whose:
        return relation(draw, whose)
    return name(draw) if draw.chance(0.2) else somebody(draw)


# Things people call their own, and things that are always *the* thing at home.
PRIVATE = {"clothes", "thing", "owned", "carried", "pet", "known", "furniture"}
FAMILIAR = {"openable", "device", "cleanable", "messy", "pet", "farm", "plant"}


@functools.cache
def things_in(classes: tuple[str, ...]) -> list[Noun]:
    """The nouns in any of `classes` that are nobody."""
    return [noun for noun in nouns_of(*classes) if not person_noun(noun)]


def people_in(classes: tuple[str, ...]) -> bool:
    return len(things_in(classes)) < len(nouns_of(*classes))


@functools.cache
def strangers() -> list[Noun]:
    """The people who are not family."""
    return [noun for noun in nouns_of("person") if not family(noun)]


def item(draw: Draw, subject: Phrase, classes: tuple[str, ...]) -> Phrase:
    """An object in one of `classes` that `subject` could deal with."""
    things = things_in(classes)
    if not things or (people_in(classes) and draw.chance(0.7)):
        return third_party(draw, subject)
    noun = draw.choice(things)
    described = adjectives(draw, noun, 0.3)
    if noun.mass:
        near = "trouble" in noun.classes or draw.chance(0.4)
        far = "learned" in noun.classes
        return NounPhrase(noun, "the" if near and not far else "", described)
    if draw.chance(0.1) and not noun.classes.isdisjoint(PRIVATE):
        return NounPhrase(noun, adjectives=described, owner=owner(draw))
    plural = draw.chance(0.7 if "plenty" in noun.classes else 0.25)
    return NounPhrase(
        noun, determiner(draw, subject, noun, plural), described, plural
    )


def owner(draw: Draw) -> Phrase:
    """Anna or the teacher, about to become Anna's and the teacher's."""
    if draw.chance(0.5):
        return name(draw)
    return NounPhrase(draw.choice(nouns_of("adult", "minor")))


def person_noun(noun: Noun) -> bool:
    return "person" in noun.classes


def determiner(draw: Draw, subject: Phrase, noun: Noun, plural: bool):
    """An article, possessive, quantifier or count that suits the noun."""
    whose = possessive(subject)
    if whose and not noun.classes.isdisjoint(PRIVATE) and draw.chance(0.35):
        return whose
    if noun.classes.isdisjoint(FAMILIAR) and plural:
        return draw.one_of("", "the", "many", "some", draw.randint(2, 12))
    if plural:
        return draw.one_of("the", "this", "all the", draw.randint(2, 12))
    return draw.choices(["the", "a", "this"], [6, 4, 1])[0]


TENSES = ("present", "progressive", "past", "future")
MODALS = ("can", "must", "may", "should", "would like", "want", "wanted", "had")
NEGATIVE_MODALS = {"must": "have", "may": "must not", "had": "could"}


def activity(draw: Draw, subject: Phrase, tense: str, extras=0.3) -> Clause:
    """`subject` doing something: a verb with fitting objects and adverbials."""
    verb = draw.choice(verbs_for(tense))
    clause = fill(draw, Clause(subject, verb, steady(verb, tense)))
    return adorn(draw, clause, extras)


@functools.cache
def verbs_for(tense: str) -> list[Verb]:
    """The verbs that go with `tense`; owning and knowing are not events."""
    return [
        verb
        for verb in lexicon.VERB_LIST
        if (tense == "present" or not verb.stative)
        and (tense in ("past", "pluperfect") or "moment" not in verb.manners)
    ]


def steady(verb: Verb, tense: str) -> str:
    """`tense`, or the plain present for what has no progressive."""
    return "present" if tense == "progressive" and verb.stative else tense


def fill(draw: Draw, clause: Clause) -> Clause:
    """The clause with the objects its verb's frame asks for."""
    for role, classes in clause.verb.frame:
        given = clause.verb.label in ACQUIRING and role == "acc"
        thing = item(draw, PRONOUN["who"] if given else clause.subject, classes)
        if role == "acc":
            clause = replace(clause, accusative=thing)
        elif role in ("dat", "to"):
            clause = replace(clause, dative=thing, recipient=role == "to")
        else:
            clause = replace(clause, complement=governed(role, thing))
    return clause


def governed(role: str, phrase: Phrase) -> Text:
    """A prepositional object: `auf+acc` and the bus give `auf den Bus`."""
    preposition, case = role.split("+")
    if isinstance(phrase, NounPhrase) and not phrase.noun.mass:
        phrase = (
            phrase if phrase.definite else replace(phrase, determiner="the")
        )
    case = ACCUSATIVE if case == "acc" else DATIVE
    return Text(phrase.english(True), prepositional(preposition, phrase, case))


def adorn(draw: Draw, clause: Clause, probability: float) -> Clause:
    """The clause with a place or a manner, if its verb has one to offer."""
    verb = clause.verb
    kinds = [kind for kind in verb.manners if kind in lexicon.MANNERS]
    if verb.places and draw.chance(probability):
        return replace(clause, place=place(draw, verb.places))
    if kinds and draw.chance(probability / 2):
        return replace(
            clause, manner=draw.choice(lexicon.MANNERS[draw.choice(kinds)])
        )
    return clause


@functools.cache
def places_for(*kinds: str) -> list[list[str]]:
    """The rows of PLACES of any of these kinds."""
    table = lexicon.rows(lexicon.PLACES)
    return [row for row in table if not set(kinds).isdisjoint(row[3].split())]


def place(draw: Draw, kinds: tuple[str, ...]) -> Text:
    """Where: `in the kitchen`; the German two-way words take the dative."""
    if draw.chance(0.1) and "home" in kinds:
        return lexicon.HOME
    noun, where, *_ = draw.choice(places_for(*kinds))
    return located(where, spot(draw, noun), DATIVE)


def spot(draw: Draw, noun: str) -> NounPhrase:
    """`the kitchen`, sometimes described."""
    return NounPhrase(NOUN[noun], "the", adjectives(draw, NOUN[noun], 0.15))


def located(words: str, phrase: Phrase, case: int) -> Text:
    """A row's two prepositions in front of `phrase`."""
    english_word, german_word = words.replace("|", " ").rsplit(maxsplit=1)
    case = DATIVE if german_word == "zu" else case
    return Text(
        f"{english_word} {phrase.english(True)}",
        prepositional(german_word, phrase, case),
    )


def direction(draw: Draw) -> tuple[Verb, Text]:
    """A verb of motion and where to; two-way words take the accusative."""
    verbs = ["go", "go", "run", "drive", "fly", "travel", "move"]
    verb = VERB[draw.choice(verbs)]
    if verb.base in ("go", "run"):
        if draw.chance(0.25):
            return VERB["go"], draw.choice(lexicon.DIRECTIONS)
        noun, _, where, _ = draw.choice(places_for("walk"))
        return verb, located(where, spot(draw, noun), ACCUSATIVE)
    if verb.base == "drive" and draw.chance(0.4):
        noun, _, where, _ = draw.choice(places_for("drive"))
        return verb, located(where, spot(draw, noun), ACCUSATIVE)
    goal = draw.choice(lexicon.CITIES + lexicon.COUNTRIES)
    return verb, Text(f"to {goal.english}", f"nach {goal.german}")


def city(draw: Draw) -> Text:
    """`in Vienna`, `in Wien`."""
    goal = draw.choice(lexicon.CITIES)
    return Text(f"in {goal.english}", f"in {goal.german}")


def motion(draw: Draw, subject: Phrase, tense: str) -> Clause:
    """Somebody going somewhere."""
    roll = draw.random()
    if roll < 0.1:
        place = draw.choice([lexicon.HOME, city(draw)])
        return Clause(subject, VERB["stay"], tense, complement=place)
    if roll < 0.2:
        home = lexicon.DIRECTIONS[0]
        return Clause(subject, VERB["come"], tense, complement=home)
    verb, goal = direction(draw)
    if verb.base == "move" and tense == "present":
        tense = "past"  # nobody moves house every day
    return Clause(subject, verb, tense, complement=goal)


def pastime(draw: Draw, subject: Phrase, tense: str) -> Clause:
    """Somebody learning a language or playing something, article or not."""
    if draw.chance(0.4):
        what = draw.choice(lexicon.LANGUAGES)
        return Clause(subject, VERB["learn"], tense, complement=what)
    what = draw.choice(lexicon.PASTIMES)
    return Clause(subject, VERB["play"], tense, complement=what)


def doing(draw: Draw, subject: Phrase, tense: str, extras=0.3) -> Clause:
    """Any of the above."""
    roll = draw.random()
    if roll < 0.13:
        return motion(draw, subject, tense)
    if roll < 0.2:
        return pastime(draw, subject, tense)
    return activity(draw, subject, tense, extras)


def being(subject: Phrase, row: list[str], tense: str = "present") -> Clause:
    """A row of HINDRANCES or OCCASIONS said of `subject`."""
    verb, *words = row
    return Clause(subject, VERB[verb], tense, complement=Text(*words))


def weather(draw: Draw, tense: str) -> Clause:
    """It is raining; it was cold."""
    it = PRONOUN["it n"]
    if draw.chance(0.4):
        verb = VERB[draw.one_of("rain", "snow")]
        now = "progressive" if tense == "present" else tense
        return Clause(it, verb, now)
    return Clause(
        it, VERB["be"], tense, complement=draw.choice(lexicon.WEATHER)
    )


def when(draw: Draw, tense: str) -> Text:
    """A time that goes with `tense`."""
    if tense in ("past", "future"):
        if draw.chance(0.25):
            return draw.choice(lexicon.WEEKDAYS)
        if draw.chance(0.15):
            return clock(draw)
        if draw.chance(0.2):
            return distance(draw, tense)
    return draw.choice(lexicon.TIMES[tense])


def clock(draw: Draw) -> Text:
    """`at eight o'clock`, `um acht Uhr`."""
    hour = number(draw.randint(2, 12))
    return Text(f"at {hour.english} o'clock", f"um {hour.german} Uhr")


def distance(draw: Draw, tense: str) -> Text:
    """`three days ago`, `vor drei Tagen`; `in three days`."""
    count, unit = number(draw.randint(2, 20)), draw.choice(lexicon.PERIODS)
    german_word = "vor" if tense == "past" else "in"
    english_side = f"{count.english} {unit.english}"
    return Text(
        english_side + " ago" if tense == "past" else "in " + english_side,
        f"{german_word} {count.german} {unit.german}",
    )


def timed(draw: Draw, clause: Clause) -> Clause:
    """The clause with a time, in front (then the German verb precedes)."""
    if clause.verb.stative:
        return clause
    time = when(draw, clause.tense)
    if clause.tense == "present":
        clause = general(clause)
    if clause.tense == "present" and draw.chance(0.4):
        return replace(clause, frequency=draw.choice(lexicon.FREQUENCIES))
    return replace(clause, time=time, fronted=draw.one_of("", "time"))


def negated(draw: Draw, clause: Clause) -> Clause:
    """The clause denied, where denying it makes sense."""
    never = clause.frequency.english not in ("", "often")
    counted = isinstance(clause.accusative, NounPhrase) and not (
        clause.accusative.determiner in ("a", "", "the", "this")
        or clause.accusative.determiner in grammar.POSSESSIVES
    )
    if never or counted or clause.verb.base == "learn":
        return clause
    if clause.tense == "present":  # `every day he does not read` says little
        clause = replace(clause, time=NOTHING, fronted="")
    if clause.accusative is not None:  # `not in the garden` would be another
        clause = replace(clause, place=NOTHING)  # claim: where, not whether
    return replace(clause, negative=True)


def modal(draw: Draw, clause: Clause, negative: bool) -> Clause:
    """The clause under a modal verb; denied, some modals change."""
    chosen = draw.choice(MODALS)
    if negative:
        denied = negated(draw, clause)
        chosen = (
            NEGATIVE_MODALS.get(chosen, chosen) if denied.negative else chosen
        )
        clause = denied
    return replace(clause, tense="present", modal=chosen)


def say(clause: Clause, end: str = ".") -> Pair:
    """A main clause or, with a question mark, a question as a sentence."""
    order = "question" if end == "?" else "main"
    return written(english(clause, order), german(clause, order), end)


def written(english_side: str, german_side: str, end: str = ".") -> Pair:
    """Both sides as sentences."""
    return sentence(english_side, end), sentence(german_side, end)


def sub(conjunctions: str, clause: Clause) -> Text:
    """A subordinate clause: the German verb goes last.  `because weil`."""
    english_word, german_word = conjunctions.split()
    return Text(
        f"{english_word} {english(clause)}",
        f"{german_word} {german(clause, 'last')}",
    )


def before(draw: Draw, clause: Clause, subordinate: Text) -> Pair:
    """Main and subordinate clause in either order; German inverts behind it."""
    if draw.chance(0.35):
        front = Text(subordinate.english + ",", subordinate.german + ",")
        return say(replace(clause, fronted=front))
    return say(replace(clause, trailing=subordinate))


def unfronted(clause: Clause) -> Clause:
    return replace(clause, fronted="")


# --- Patterns: each draws one sentence. ---


def event(draw: Draw) -> Clause:
    """Something somebody does, at some time."""
    tense = draw.choices(TENSES, [3, 3, 4, 2])[0]
    clause = doing(draw, person(draw), tense)
    return timed(draw, clause) if draw.chance(0.6) else clause


def statement(draw: Draw) -> Pair:
    """The boy is reading a book in the garden."""
    return say(event(draw))


def denial(draw: Draw) -> Pair:
    """The boy did not buy a book."""
    return say(negated(draw, event(draw)))


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
        clause = negated(draw, clause)
    return say(clause, "?")


QUESTION_WORDS = {"when": "wann", "why": "warum", "where": "wo"}


def asked_about(draw: Draw) -> Phrase:
    """Anybody but the one who asks."""
    somebody_else = person(draw)
    myself = somebody_else == PRONOUN["I"]
    return PRONOUN["you"] if myself else somebody_else


def open_question(draw: Draw) -> Pair:
    """When, why, where, who, what ...?"""
    kind = draw.one_of(
        "when", "why", "where", "who", "what", "which", "whither"
    )
    tense = draw.choices(TENSES, [2, 3, 4, 2])[0]
    subject = asked_about(draw)
    if kind in QUESTION_WORDS:
        clause = localized(draw, subject, kind, tense)
        front = Text(kind, QUESTION_WORDS[kind])
        return say(replace(clause, fronted=front), "?")
    if kind == "whither":
        verb, _ = direction(draw)
        front = Text("where", "wohin")
        return say(Clause(subject, verb, tense, fronted=front), "?")
    if kind == "who":
        clause = doing(draw, PRONOUN["who"], tense)
        return written(english(clause), german(clause), "?")
    return gap_question(draw, kind, subject, tense)


def localized(draw: Draw, subject: Phrase, kind: str, tense: str) -> Clause:
    """A clause to ask `when`, `why` or `where` about; where wants no place."""
    if kind == "where":
        return leisure(draw, subject, tense, 0)
    return doing(draw, subject, tense)


def leisure(draw: Draw, subject: Phrase, tense: str, extras=0.3) -> Clause:
    """Something done in a place of its own."""
    placed = [verb for verb in verbs_for("progressive") if verb.places]
    clause = Clause(subject, draw.choice(placed), tense)
    return adorn(draw, fill(draw, clause), extras)


def gap_question(draw: Draw, kind: str, subject: Phrase, tense: str) -> Pair:
    """What did he buy?  Which book is she reading?"""
    clause = transitive(draw, subject, tense)
    noun = clause.accusative.noun
    asked = Text("what", "was")
    if kind == "which":
        phrase = NounPhrase(noun, "which", plural=clause.accusative.plural)
        asked = Text(phrase.english(), phrase.german(ACCUSATIVE))
    return say(replace(clause, accusative=None, fronted=asked), "?")


def transitive(draw: Draw, subject: Phrase, tense: str) -> Clause:
    """A clause with a thing for its accusative object."""
    while True:
        clause = activity(draw, subject, tense, 0.2)
        thing = clause.accusative
        if isinstance(thing, NounPhrase) and not person_noun(thing.noun):
            return clause


def quality(draw: Draw) -> Pair:
    """My brother is tired.  The new car is expensive."""
    tense = draw.one_of("present", "present", "past")
    if draw.chance(0.4):
        subject = person(draw)
        if isinstance(subject, NounPhrase) and not subject.definite:
            subject = plain(subject)
        clause = Clause(subject, VERB["be"], tense)
        return say(
            toned(
                draw, replace(clause, complement=draw.choice(lexicon.OPINIONS))
            )
        )
    noun = draw.choice([n for n in lexicon.NOUN_LIST if adjectives_for(n)])
    one = draw.choice(adjectives_for(noun))
    plural = (
        not noun.mass and draw.chance(0.25) and "single" not in noun.classes
    )
    which = "my" if family(noun) else draw.one_of("the", "this")
    phrase = NounPhrase(noun, which, plural=plural)
    predicate = Text(one.english, one.german)
    return say(
        toned(draw, Clause(phrase, VERB["be"], tense, complement=predicate))
    )


def toned(draw: Draw, clause: Clause) -> Clause:
    """The predicate strengthened or denied, now and then."""
    if draw.chance(0.3):
        degree, word = draw.choice(lexicon.DEGREES), clause.complement
        stronger = Text(
            f"{degree.english} {word.english}", f"{degree.german} {word.german}"
        )
        clause = replace(clause, complement=stronger)
    return replace(clause, negative=draw.chance(0.25))


def comparable(kind: str) -> bool:
    """Whether nouns of a class are alike enough to be measured together."""
    return len(countable(kind)) > 2 and kind not in (
        "thing",
        "gift",
        "parcel",
        "event",
    )


def countable(kind: str) -> list[Noun]:
    return [noun for noun in nouns_of(kind) if not noun.mass]


def comparison(draw: Draw) -> Pair:
    """The train is faster than the bus."""
    degrees = [a for a in lexicon.ADJECTIVE_LIST if a.comparative]
    one = draw.choice([a for a in degrees if any(map(comparable, a.classes))])
    kinds = sorted(filter(comparable, one.classes))
    first, second = draw.sample(countable(draw.choice(kinds)), 2)
    left, right = (compared(draw, noun) for noun in (first, second))
    than = Text(
        f"{one.comparative} than {right.english(True)}",
        f"{one.german_comparative} als {right.german(0)}",
    )
    tense = draw.one_of("present", "present", "past")
    return say(Clause(left, VERB["be"], tense, complement=than))


def compared(draw: Draw, noun: Noun) -> NounPhrase:
    """A side of a comparison."""
    if not noun.classes.isdisjoint({"family", "known", "owned"}):
        whose = draw.choice(grammar.POSSESSIVES)
        return NounPhrase(noun, whose)
    return NounPhrase(noun, draw.one_of("the", "this"))


def reason(draw: Draw) -> Pair:
    """He did not come because he was ill; she reads although she is tired."""
    tense = draw.one_of("progressive", "past")
    subject = person(draw)
    clause = doing(draw, subject, tense)
    state = {"progressive": "present"}.get(tense, tense)
    kind = draw.one_of("because not", "although", "because", "weather")
    other = PRONOUN[pronoun_of(subject)]
    if kind == "because not":
        clause = negated(draw, clause)
        kind = "because" if clause.negative else "although"
        cause = being(other, draw.choice(lexicon.HINDRANCES), state)
    elif kind == "although":
        cause = being(other, draw.choice(lexicon.HINDRANCES), state)
    elif kind == "because":
        clause = leisure(draw, subject, tense)
        cause = being(other, draw.choice(lexicon.OCCASIONS), state)
    else:
        kind, cause = "although", weather(draw, state)
    words = {"because": "because weil", "although": "although obwohl"}[kind]
    return before(draw, clause, sub(words, cause))


def condition(draw: Draw) -> Pair:
    """If it rains, we will stay at home; when he has time, he often reads."""
    subject = person(draw)
    clause = leisure(draw, subject, "future")
    if draw.chance(0.3):
        chosen = draw.one_of("can", "may", "should", "want", "would like")
        clause = replace(clause, tense="present", modal=chosen)
    other = PRONOUN[pronoun_of(subject)]
    cause = being(other, draw.choice(lexicon.OCCASIONS))
    return before(draw, clause, sub("if wenn", cause))


def simultaneous(draw: Draw) -> Pair:
    """My father is cooking while the children are playing."""
    first, second = person(draw), person(draw)
    clause = doing(draw, first, "progressive", 0.2)
    other = doing(draw, second, "progressive", 0.3)
    return before(draw, clause, sub("while während", other))


def sequence(draw: Draw) -> Pair:
    """After he had eaten the soup, he went home; before she ..."""
    subject = person(draw)
    other = PRONOUN[pronoun_of(subject)]
    clause = doing(draw, subject, "past", 0.2)
    if draw.chance(0.6):
        earlier = doing(draw, other, "pluperfect", 0.2)
        return before(draw, clause, sub("after nachdem", earlier))
    return before(draw, clause, sub("before bevor", doing(draw, other, "past")))


def report(draw: Draw) -> Pair:
    """The teacher says that the children are reading."""
    verb = VERB[draw.one_of("say", "believe", "know", "hope")]
    speaker, subject = person(draw), person(draw)
    tense = draw.choices(TENSES, [2, 2, 4, 3])[0]
    inner = doing(draw, subject, tense)
    if draw.chance(0.3):
        inner = timed(draw, inner)
    elif draw.chance(0.3):
        inner = negated(draw, inner)
    told = sub("that dass", unfronted(inner))
    retold = verb.base == "say" and tense == "past"
    spoken = "past" if retold else "present"
    return say(Clause(speaker, verb, spoken, trailing=told))


def doubt(draw: Draw) -> Pair:
    """I do not know whether he came; do you know where she lives?"""
    asker = PRONOUN[draw.choice(SUBJECTS)] if draw.chance(0.5) else person(draw)
    tense = draw.one_of("past", "future", "progressive")
    words = draw.one_of("whether ob", "why warum", "when wann", "where wo")
    clause = localized(draw, person(draw), words.split()[0], tense)
    asked = sub(words, clause)
    if draw.chance(0.3):
        verb, past = VERB["ask"], replace(clause, tense="past")
        return say(Clause(asker, verb, "past", trailing=sub(words, past)))
    unknowing = Clause(asker, VERB["know"], trailing=asked)
    if draw.chance(0.3) and asker != PRONOUN["I"]:
        return say(unknowing, "?")
    return say(replace(unknowing, negative=True))


def relative_word(phrase: NounPhrase, case: int) -> Text:
    """`who`, `whom` or `that`, and der, die, das in its case."""
    key = "p" if phrase.plural else phrase.noun.gender
    human = "whom" if case == DATIVE else "who"
    return Text(
        human if person_noun(phrase.noun) else "that", RELATIVE[key][case]
    )


def acting(draw: Draw, phrase: NounPhrase, tense: str) -> Text:
    """A relative clause whose subject is `phrase`: who lives in Berlin."""
    word = relative_word(phrase, 0)
    stand_in = Pronoun(
        (word.english, word.english), (word.german, "", ""), 3, phrase.plural
    )
    if tense == "present":
        verb = VERB[draw.one_of("live", "study")]
        clause = Clause(stand_in, verb, tense, complement=city(draw))
    else:
        clause = doing(draw, stand_in, tense, 0.5)
    return Text(english(clause), german(clause, "last"))


def plain(phrase: NounPhrase) -> NounPhrase:
    """The phrase with a definite article, as a relative clause wants it."""
    return replace(phrase, determiner="the", adjectives=())


def who_relative(draw: Draw) -> Pair:
    """The man who lives in Berlin bought a car."""
    phrase = plain(somebody(draw))
    tense = draw.one_of("present", "past", "progressive")
    subject = replace(phrase, after=acting(draw, phrase, tense))
    if draw.chance(0.3):
        return say(
            Clause(
                subject, VERB["be"], complement=draw.choice(lexicon.OPINIONS)
            )
        )
    return say(doing(draw, subject, draw.one_of("present", "past", "future")))


def met_relative(draw: Draw) -> Pair:
    """I know the woman who works in the bakery."""
    phrase = plain(somebody(draw))
    meeting = draw.choice(
        [v for v in lexicon.VERB_LIST if v.frame == (("acc", ("person",)),)]
    )
    tense = draw.one_of("past", "future")
    trailing = acting(draw, phrase, draw.one_of("present", "past"))
    return say(
        Clause(
            person(draw), meeting, tense, accusative=phrase, trailing=trailing
        )
    )


def object_relative(draw: Draw) -> Pair:
    """He is reading the book that his sister bought yesterday."""
    tense = draw.one_of("progressive", "past", "future")
    clause = transitive(draw, person(draw), tense)
    if clause.verb.base in CREATING or not verbs_taking(clause.accusative.noun):
        return object_relative(draw)
    noun = clause.accusative.noun
    phrase = NounPhrase(noun, "the", plural=clause.accusative.plural)
    inner = source(draw, noun, clause.verb)
    word = relative_word(phrase, ACCUSATIVE)
    if draw.chance(0.3):
        inner = unfronted(replace(inner, time=when(draw, inner.tense)))
    inner = replace(inner, accusative=None, fronted=word)
    trailing = Text(english(inner), german(inner, "last"))
    return say(
        replace(
            clause,
            accusative=phrase,
            place=NOTHING,
            manner=NOTHING,
            trailing=trailing,
        )
    )


# What is made now cannot have had a past, and what is gone has no future.
CREATING = {"bake", "cook", "write", "knit", "draw", "paint", "plant", "order"}
ENDING = {
    "eat", "drink", "throw", "sell", "peel", "lose", "return", "hand", "open",
    "unpack",
}  # fmt: skip


def source(draw: Draw, noun: Noun, used: Verb) -> Clause:
    """Somebody having bought, found, seen ... a thing like `noun`."""
    fitting = [verb for verb in verbs_taking(noun) if verb.base != used.base]
    verb = draw.choice(fitting or verbs_taking(noun))
    return fill(draw, Clause(person(draw), verb, "past"))


@functools.cache
def verbs_taking(noun: Noun) -> list[Verb]:
    """The verbs with `noun` among their objects that leave it to be used."""
    return [
        verb
        for verb in verbs_for("past")
        for role, classes in verb.frame
        if role == "acc" and not noun.classes.isdisjoint(classes)
        if verb.base not in ENDING
    ]


PURPOSES = {
    "buy", "meet", "visit", "help", "borrow", "return", "photograph", "read",
    "draw", "write", "work", "sleep", "wait", "look", "thank", "ask", "pick",
}  # fmt: skip


def purpose(draw: Draw, subject: Phrase) -> Clause:
    """Something worth an effort, without a place of its own."""
    verbs = [verb for verb in verbs_for("future") if verb.base in PURPOSES]
    return fill(draw, Clause(subject, draw.choice(verbs), "future"))


def intention(draw: Draw) -> Pair:
    """She tries to open the door; he goes to the market to buy apples."""
    subject = person(draw)
    inner = purpose(draw, subject)
    aim = Text(
        grammar.english_infinitive(inner), grammar.german_infinitive(inner)
    )
    if draw.chance(0.5):
        verb = VERB[draw.one_of("try", "decide", "forget")]
        tense = (
            "past" if verb.base != "try" else draw.one_of("past", "progressive")
        )
        return say(Clause(subject, verb, tense, trailing=aim))
    verb, goal = direction(draw)
    tense = draw.one_of("past", "progressive", "future")
    clause = Clause(subject, verb, tense, complement=goal)
    return say(replace(clause, trailing=Text(aim.english, "um " + aim.german)))


def coordination(draw: Draw) -> Pair:
    """My father is cooking and my mother is reading; ... but ..."""
    tense = draw.one_of("progressive", "past", "future")
    first = doing(draw, person(draw), tense, 0.3)
    second = doing(draw, person(draw), tense, 0.3)
    if draw.chance(0.4):
        first = replace(first, time=when(draw, tense), fronted="time")
    if draw.chance(0.5):
        second = negated(draw, second)
    linking = (", but", ", aber") if second.negative else ("and", "und")
    return written(
        f"{english(first)} {linking[0]} {english(second)}",
        f"{german(first)} {linking[1]} {german(second)}",
    )


def general(clause: Clause) -> Clause:
    """The clause about things of a kind: reads novels, drinks milk."""
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
    clause = leisure(draw, person(draw), "present", 0.5)
    if draw.chance(0.3):
        clause = pastime(draw, clause.subject, "present")
    clause = replace(general(clause), modal="like")
    return say(replace(clause, frequency=Text("", "gern")))


def position(draw: Draw) -> Pair:
    """The book is lying on the table; the boy laid it there."""
    lying = draw.chance(0.5)
    noun = draw.choice(nouns_of("flat" if lying else "upright"))
    plural = draw.chance(0.2)
    thing = NounPhrase(noun, "the", adjectives(draw, noun, 0.3), plural)
    base = NounPhrase(
        draw.choice(nouns_of("surface")), draw.one_of("the", "this")
    )
    preposition = draw.choice(lexicon.RELATIONS)
    words = f"{preposition.english}|{preposition.german}"
    if draw.chance(0.5):
        where = located(words, base, DATIVE)
        verb = VERB["lie" if lying else "stand"]
        tense = "progressive" if lying else "present"
        return say(Clause(thing, verb, tense, complement=where))
    verb = VERB["put" if lying else "place"]
    where = located(words, base, ACCUSATIVE)
    tense = draw.one_of("progressive", "past", "future")
    return say(
        Clause(person(draw), verb, tense, accusative=thing, complement=where)
    )


def fluency(draw: Draw) -> Pair:
    """My sister speaks German very well: spricht sehr gut Deutsch."""
    language, well = (
        draw.choice(lexicon.LANGUAGES),
        draw.choice(lexicon.FLUENCY),
    )
    words = Text(
        f"{language.english} {well.english}", f"{well.german} {language.german}"
    )
    clause = Clause(person(draw), VERB["speak"], complement=words)
    return say(replace(clause, modal=draw.one_of("", "", "can", "want")))


def creature(draw: Draw) -> Pair:
    """The cat drinks milk; animals eat with another verb, fressen."""
    noun = draw.choice(nouns_of("animal"))
    subject = NounPhrase(
        noun, "the", adjectives(draw, noun, 0.4), draw.chance(0.3)
    )
    tense = draw.one_of("progressive", "past", "future")
    if draw.chance(0.4):
        hunter = "hunter" in noun.classes
        menu = ("meat", "fish") if hunter else ("bread", "apple", "carrot")
        food = NOUN[draw.choice(menu)]
        meal = NounPhrase(food, draw.one_of("the", ""), (), not food.mass)
        clause = Clause(subject, VERB["eat"], tense, accusative=meal)
        return say(timed(draw, clause))
    where = place(draw, ("green", "garden"))
    verb = draw.choice([v for v in lexicon.VERB_LIST if v.base == "sleep"])
    clause = Clause(subject, verb, tense, place=where)
    return say(timed(draw, clause))


def hanging(draw: Draw) -> Pair:
    """The picture is hanging on the wall; she hung it up."""
    noun = draw.choice(nouns_of("hanging"))
    thing = NounPhrase(noun, "the", adjectives(draw, noun, 0.5))
    wall = NounPhrase(NOUN["wall"], draw.one_of("the", "this"))
    if draw.chance(0.4):
        where = located("on|an", wall, DATIVE)
        return say(Clause(thing, VERB["hang"], "progressive", complement=where))
    clause = Clause(
        person(draw), VERB["hang up"], draw.one_of("past", "future")
    )
    return say(timed(draw, replace(clause, accusative=thing)))


def existence(draw: Draw) -> Pair:
    """There is a big garden behind the house."""
    noun = draw.choice(nouns_of("building", "green", "plant"))
    base = NounPhrase(draw.choice(nouns_of("building")))
    preposition = draw.choice(lexicon.RELATIONS[2:])
    words = f"{preposition.english}|{preposition.german}"
    where = located(words, base, DATIVE)
    count = draw.randint(2, 9) if draw.chance(0.4) else "a"
    thing = NounPhrase(noun, count, adjectives(draw, noun, 0.5), count != "a")
    there = "there is" if count == "a" else "there are"
    return written(
        f"{there} {thing.english()} {where.english}",
        f"{where.german} gibt es {thing.german(ACCUSATIVE)}",
    )


def age(draw: Draw) -> Pair:
    """My brother is twenty-three years old."""
    years = number(draw.randint(4, 99))
    words = Text(f"{years.english} years old", f"{years.german} Jahre alt")
    subject = (
        PRONOUN[draw.choice(SUBJECTS)] if draw.chance(0.2) else singular(draw)
    )
    return say(Clause(subject, VERB["be"], complement=words))


def singular(draw: Draw) -> Phrase:
    """One person, named or described."""
    if draw.chance(0.4):
        return name(draw)
    return replace(relation(draw), plural=False)


def price(draw: Draw) -> Pair:
    """The red coat costs ninety euros."""
    noun = draw.choice(nouns_of("clothes", "thing", "gift"))
    phrase = NounPhrase(
        noun, draw.one_of("the", "this"), adjectives(draw, noun, 0.5)
    )
    value = draw.choice([draw.randint(2, 99), 100 * draw.randint(2, 9)])
    money = NounPhrase(NOUN["euro"], value, plural=True)
    clause = Clause(phrase, VERB["cost"], accusative=money)
    return say(clause)


def profession(draw: Draw) -> Pair:
    """My aunt is a lawyer: no article in German, but a feminine."""
    subject = singular(draw)
    job, man, woman = draw.choice(lexicon.PROFESSIONS)
    word = woman if pronoun_of(subject) == "she" else man
    title = Text(f"{grammar.article(job)} {job}", word)
    if draw.chance(0.3):
        title = Text(
            f"not {title.english}", f"kein{'e' * (word == woman)} {word}"
        )
    tense = draw.one_of("present", "past")
    return say(Clause(subject, VERB["be"], tense, complement=title))


def belonging(draw: Draw) -> Pair:
    """The red car belongs to my uncle."""
    noun = draw.choice(nouns_of("owned", "clothes", "carried", "thing", "pet"))
    thing = NounPhrase(
        noun, draw.one_of("the", "this"), adjectives(draw, noun, 0.6)
    )
    clause = Clause(thing, VERB["belong to"], dative=singular(draw))
    return say(replace(clause, negative=draw.chance(0.3)))


def timetable(draw: Draw) -> Pair:
    """The train will arrive at the railway station at eight o'clock."""
    tense = draw.one_of("present", "past", "future")
    if draw.chance(0.5):
        noun, verb = (
            draw.choice(nouns_of("show", "course")),
            draw.one_of("begin", "end"),
        )
    else:
        noun, verb = (
            draw.choice(nouns_of("transit")),
            draw.one_of("arrive", "depart"),
        )
    subject = NounPhrase(noun, draw.one_of("the", "this"))
    time = clock(draw) if draw.chance(0.6) else draw.choice(lexicon.WEEKDAYS)
    clause = Clause(subject, VERB[verb], tense, time=time)
    return say(replace(clause, fronted=draw.one_of("", "time")))


def thirst(draw: Draw) -> Pair:
    """He is drinking two cups of coffee."""
    drink = draw.choice(nouns_of("drink"))
    vessel = "cup" if "hot" in drink.classes else draw.one_of("glass", "bottle")
    count = draw.randint(2, 12) if draw.chance(0.5) else "a"
    phrase = NounPhrase(NOUN[vessel], count, (), count != "a", measured=drink)
    verb = draw.choice(
        [v for v in lexicon.VERB_LIST if v.base in ("drink", "order")]
    )
    clause = Clause(person(draw), verb, draw.choice(TENSES), accusative=phrase)
    return say(timed(draw, clause))


def duration(draw: Draw) -> Pair:
    """She has lived in Vienna for three years: sie wohnt seit drei Jahren."""
    verb, subject = VERB[draw.one_of("live", "study")], person(draw)
    count, unit = number(draw.randint(2, 30)), draw.choice(lexicon.PERIODS[1:4])
    clause = Clause(subject, verb, "perfect", complement=city(draw))
    since = Text("", f"seit {count.german} {unit.german}")
    return written(
        f"{english(clause)} for {count.english} {unit.english}",
        german(replace(clause, tense="present", time=since)),
    )


def completion(draw: Draw) -> Pair:
    """He has already read the letter."""
    clause = activity(draw, person(draw), "past", 0)
    already = Text("already", "schon")
    return say(replace(clause, tense="perfect", frequency=already))


CRITICAL = {"buy", "wear", "order", "read", "borrow", "carry", "try on"}
FAULTS = {
    "expensive", "big", "small", "old", "long", "heavy", "boring", "difficult",
    "ugly", "slow", "loud", "sweet",
}  # fmt: skip


def faults(noun: Noun) -> list[lexicon.Adjective]:
    """What a thing can be too much of; nothing for bread and milk."""
    if "load" in noun.classes:
        return [a for a in adjectives_for(noun) if a.english == "heavy"]
    fitting = [a for a in adjectives_for(noun) if a.english in FAULTS]
    return [] if noun.mass else fitting


def criticism(draw: Draw) -> Pair:
    """She is not buying the coat because it is too expensive: weil er ..."""
    clause = transitive(draw, person(draw), draw.one_of("progressive", "past"))
    noun, plural = clause.accusative.noun, clause.accusative.plural
    if not faults(noun) or clause.verb.label not in CRITICAL:
        return criticism(draw)
    quality = draw.choice(faults(noun))
    thing = NounPhrase(noun, "the", plural=plural)
    words = Text(f"too {quality.english}", f"zu {quality.german}")
    tense = "past" if clause.tense == "past" else "present"
    judged = Clause(PRONOUN[thing.pronoun], VERB["be"], tense, complement=words)
    denied = replace(clause, accusative=thing, negative=True)
    return before(draw, denied, sub("because weil", judged))


ACQUIRING = {
    "buy", "borrow", "find", "own", "order", "bring along", "take along",
}  # fmt: skip


def reuse(draw: Draw) -> Pair:
    """He bought a coat, but he did not wear it: aber er hat ihn ..."""
    clause = transitive(draw, person(draw), draw.one_of("past", "future"))
    thing = clause.accusative
    choices = [
        v for v in verbs_taking(thing.noun) if v.base != clause.verb.base
    ]
    choices = [v for v in choices if len(v.frame) == 1]
    choices = [v for v in choices if v.label not in ACQUIRING | CREATING]
    unfit = thing.noun.mass or clause.verb.label not in ACQUIRING
    if unfit or not choices or "plenty" in thing.noun.classes:
        return reuse(draw)
    other = PRONOUN[pronoun_of(clause.subject)]
    again = Clause(other, draw.choice(choices), clause.tense)
    again = replace(
        again, accusative=PRONOUN[thing.pronoun], negative=draw.chance(0.5)
    )
    link = (", but", ", aber") if again.negative else ("and", "und")
    return written(
        f"{english(clause)} {link[0]} {english(again)}",
        f"{german(clause)} {link[1]} {german(again)}",
    )


def ownership(draw: Draw) -> Pair:
    """The woman whose son is playing the piano is tired: deren Sohn."""
    phrase = replace(plain(somebody(draw)), plural=False)
    noun = draw.choice(nouns_of("family", "known"))
    word = RELATIVE[phrase.noun.gender][grammar.GENITIVE]
    kin = Name(noun.english, "")
    inner = doing(draw, kin, draw.one_of("progressive", "past"))
    german_inner = german(replace(inner, subject=Name(noun.german, "")), "last")
    after = Text(f"whose {english(inner)}", f"{word} {german_inner}")
    clause = Clause(replace(phrase, after=after), VERB["be"])
    return say(
        toned(draw, replace(clause, complement=draw.choice(lexicon.OPINIONS)))
    )


def judgement(draw: Draw) -> Pair:
    """It is important to learn German."""
    inner = leisure(draw, PRONOUN["who"], "future", 0.6)
    if draw.chance(0.4):
        inner = pastime(draw, PRONOUN["who"], "future")
    aim = Text(
        grammar.english_infinitive(inner), grammar.german_infinitive(inner)
    )
    clause = Clause(PRONOUN["it n"], VERB["be"], draw.one_of("present", "past"))
    word = draw.choice(lexicon.JUDGEMENTS)
    return say(
        replace(
            clause, complement=word, trailing=aim, negative=draw.chance(0.2)
        )
    )


def memory(draw: Draw) -> Pair:
    """When he was ill, he often read novels: als, not wenn."""
    subject = person(draw)
    clause = general(leisure(draw, subject, "past"))
    clause = replace(clause, frequency=lexicon.FREQUENCIES[0])
    other = PRONOUN[pronoun_of(subject)]
    was = being(other, draw.choice(lexicon.PHASES), "past")
    return before(draw, clause, sub("when als", was))


def tale(draw: Draw) -> Pair:
    """A report whose content has a clause of its own."""
    speaker, subject = person(draw), person(draw)
    tense = draw.one_of("past", "progressive")
    clause = leisure(draw, subject, tense)
    other = PRONOUN[pronoun_of(subject)]
    state = "past" if tense == "past" else "present"
    cause = being(other, draw.choice(lexicon.OCCASIONS), state)
    inner = replace(clause, trailing=sub("because weil", cause))
    verb = VERB[draw.one_of("say", "believe", "know", "hope")]
    return say(Clause(speaker, verb, trailing=sub("that dass", inner)))


def scene(draw: Draw) -> Pair:
    """Three people, three doings: a long sentence."""
    tense = draw.one_of("progressive", "past")
    first, second = (doing(draw, person(draw), tense) for _ in range(2))
    time = replace(first, time=when(draw, tense), fronted="time")
    third = sub("while während", doing(draw, person(draw), tense))
    second = replace(second, trailing=third)
    return written(
        f"{english(time)} and {english(second)}",
        f"{german(time)} und {german(second)}",
    )


PATTERNS: list[tuple[int, Callable[[Draw], Pair]]] = [
    (14, statement),
    (5, denial),
    (7, obligation),
    (6, question),
    (8, open_question),
    (4, quality),
    (4, comparison),
    (8, reason),
    (5, condition),
    (5, simultaneous),
    (5, sequence),
    (6, report),
    (5, doubt),
    (5, who_relative),
    (4, met_relative),
    (6, object_relative),
    (6, intention),
    (5, coordination),
    (4, fondness),
    (5, position),
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
    (4, judgement),
    (4, memory),
    (5, tale),
    (6, scene),
]


@functools.cache
def corpus() -> dict[str, list[Pair]]:
    """All splits at once: what one has drawn no other may have."""
    draw = Draw(SEED)
    weights = [weight for weight, _ in PATTERNS]
    patterns = [pattern for _, pattern in PATTERNS]
    seen: set[str] = set()
    splits: dict[str, list[Pair]] = {split: [] for split in SIZES}
    for split, size in SIZES.items():
        while len(splits[split]) < size:
            pair = draw.choices(patterns, weights)[0](draw)
            if fits(pair) and seen.isdisjoint(pair):
                seen.update(pair)
                splits[split].append(pair)
    return splits


def fits(pair: Pair) -> bool:
    """Whether both sides are neither too short nor too long."""
    return all(SHORTEST <= len(side.split()) <= LONGEST for side in pair)


def pairs(split: str) -> list[Pair]:
    """English-German sentence pairs of `split` ("train", "dev" or "test")."""
    if split not in SIZES:
        raise InputError(f"No split {split!r}; take one of train, dev, test.")
    return list(corpus()[split])
