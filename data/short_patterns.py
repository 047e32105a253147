"""Plain sentences of every kind, with every noun in every case and number.

What the patterns of two clauses teach, a learner can copy from its context;
here there is none, so each word must be known by itself.  A pattern is as in
`patterns`; most end in `uttered`, which states, denies or asks.

Now and then a word is an invented one, which German copies: a name, a town, a
thing.  So a model learns to leave alone what it does not know.
"""

import functools
import re
from collections.abc import Callable
from dataclasses import replace

from t2t_lite_data import lexicon as words
from t2t_lite_data import marks, patterns
from t2t_lite_data.grammar import (
    ACCUSATIVE,
    DATIVE,
    NOMINATIVE,
    POSSESSIVES,
    PRONOUN,
    Both,
    Clause,
    Name,
    NounPhrase,
    Phrase,
    Pronoun,
    english,
    german,
)
from t2t_lite_data.lexicon import NOUN, VERB, Noun, Text, Verb
from t2t_lite_data.patterns import SUBJECTS, Draw, Pair, say, state, written

INVENTED = 0.12  # The share of names, towns and things that are invented.
PLURAL = 0.35

# --- Words that are in no dictionary ---

ONSETS = (
    "b br c ch d dr f fl g gr h j k kl kr l m n p ph pr r s sch sp st t th tr "
    "v w x y z"
)
VOWELS = "a a a e e e i i i o o u u y ai au ei ie oo"
ENDS = (
    "a a e i o us as is er en el in et on an ix eck old im and ip ert ott itz"
)


def invented(draw: Draw) -> str:
    """Returns an unknown word of one to three syllables: tralu, mizo, krad."""
    syllables = draw.choices([0, 1, 2], [2, 5, 2])[0]
    word = "".join(syllable(draw) for _ in range(syllables))
    if draw.chance(0.15):
        word = draw.choice("aeiou") + word
    word += draw.choice(ONSETS.split()) + draw.choice(ENDS.split())
    is_new = len(word) > 2 and word not in words_of_tables()
    return word if is_new else invented(draw)


def syllable(draw: Draw) -> str:
    """Returns an onset, a vowel and now and then a coda."""
    coda = draw.choice("lmnrstx") if draw.chance(0.35) else ""
    return draw.choice(ONSETS.split()) + draw.choice(VOWELS.split()) + coda


@functools.cache
def words_of_tables() -> frozenset[str]:
    """Returns the words of both languages that an invented one must not be."""
    tables = words.NOUNS + words.VERBS + words.SPECIAL_VERBS + words.ADJECTIVES
    return frozenset(re.findall(r"\w+", tables.lower() + REAL_WORDS))


REAL_WORDS = """
    aber ago are bin bis can den dieser five has her him hin his jeden let net
    one pen schon seinen seiner set six ten than the this tin ton wen wer wet
    yet
"""


def invented_noun(draw: Draw) -> Noun:
    """Returns an unknown thing, masculine for want of a better gender."""
    word = invented(draw)
    plural = words.third_person(word)
    return Noun(
        english=word,
        english_plural=plural,
        german=word.capitalize(),
        german_plural=plural.capitalize(),
        gender="m",
        weak=False,
        classes=frozenset({"invented"}),
    )


def name(draw: Draw) -> Name:
    """Returns Anna, Peter or, of either sex, somebody unheard of."""
    if draw.chance(0.7):
        return Name(invented(draw).capitalize(), draw.one_of("he", "she"))
    return patterns.name(draw)


# --- Phrases ---

ABSTRACT = (
    "event", "learned", "topic", "trouble", "problem", "rule", "tale", "course",
)  # fmt: skip


@functools.cache
def things() -> list[Noun]:
    """Returns nouns of what can be seen and stand somewhere, except people."""
    return [
        noun
        for noun in words.NOUN_LIST
        if noun.classes.isdisjoint({"person", "money", *ABSTRACT})
    ]


@functools.cache
def movables() -> list[Noun]:
    """Returns the things that can be given, carried and put somewhere."""
    fixed = {"building", "room", "green", "spot", "waters", "settlement"}
    loose = [noun for noun in things() if noun.classes.isdisjoint(fixed)]
    return [noun for noun in loose if noun.classes.isdisjoint({"side", "tree"})]


@functools.cache
def people() -> list[Noun]:
    return patterns.nouns_of("person")


def some(draw: Draw, noun: Noun) -> NounPhrase:
    """Returns the noun with any determiner, in either number."""
    if draw.chance(INVENTED / 2):
        noun = invented_noun(draw)
    qualities = patterns.adjectives(draw, noun, 0.12)
    if noun.mass:
        word = draw.one_of("the", "", "")
        if not noun.classes.isdisjoint({"learned", "trouble"}):
            word = "" if "learned" in noun.classes else "the"
        return NounPhrase(noun, word, qualities)
    plural = draw.chance(PLURAL)
    choices = {"the": 8, "this": 1, draw.choice(POSSESSIVES): 3}
    choices |= {draw.randint(2, 12): 3, "": 5} if plural else {"a": 7}
    determiner = draw.choices(list(choices), list(choices.values()))[0]
    return NounPhrase(noun, determiner, qualities, plural=plural)


def known(draw: Draw, noun: Noun) -> NounPhrase:
    """Returns the noun with a definite determiner, as a subject has it."""
    phrase = some(draw, noun)
    if phrase.definite:
        return phrase
    return replace(phrase, determiner=draw.one_of("the", "my"))


def human(draw: Draw) -> NounPhrase:
    """Returns a person by role or relation: the waiter, my sisters."""
    noun = draw.choice(people())
    if patterns.family(noun):
        plural = "single" not in noun.classes and draw.chance(PLURAL)
        whose = draw.one_of("the", *POSSESSIVES)
        return NounPhrase(noun, whose, (), plural=plural)
    phrase = known(draw, noun)
    own = phrase.determiner in POSSESSIVES
    if own and "known" not in noun.classes and draw.chance(0.8):
        return replace(phrase, determiner="the")
    return phrase


def who(draw: Draw) -> Phrase:
    """Returns anybody, mostly in a single word or two."""
    roll = draw.random()
    if roll < 0.4:
        return PRONOUN[draw.one_of("I", "I", "you", "you", *SUBJECTS[2:])]
    if roll < 0.55:
        return name(draw)
    if roll < 0.58:
        return Both(name(draw), human(draw))
    return human(draw)


def whom(draw: Draw, subject: Phrase) -> Phrase:
    """Returns anybody else, for an object: him, Anna, the waiters."""
    if draw.chance(0.4):
        key = draw.choice([k for k in SUBJECTS if PRONOUN[k] != subject])
        selves = PRONOUN["I"], PRONOUN["we"]  # Not `I help us`.
        among_us = subject in selves and PRONOUN[key] in selves
        return PRONOUN["they" if among_us else key]
    return name(draw) if draw.chance(0.2) else human(draw)


def pair_of(draw: Draw, nouns: list[Noun]) -> Both:
    """Returns bread and milk; a pan and a spoon; the cats and the dogs."""
    first, second = draw.sample(nouns, 2)
    word = draw.one_of("", "a", "the", "my")
    if "learned" in first.classes:
        word = ""
    one, other = (
        NounPhrase(
            noun,
            "" if noun.mass and word == "a" else word,
            plural=word == "" and not noun.mass,
        )
        for noun in (first, second)
    )
    return Both(one, other)


def object_of(draw: Draw, nouns: list[Noun]) -> Phrase:
    """Returns one of `nouns`, or a pair of them."""
    if draw.chance(0.08) and len(nouns) > 1:
        return pair_of(draw, nouns)
    return some(draw, draw.choice(nouns))


# --- Stating, denying and asking ---


def uttered(draw: Draw, clause: Clause) -> Pair:
    """Returns the clause as a statement, a denial or a question."""
    roll = draw.random()
    if roll < 0.58:
        return say(clause)
    if roll < 0.8:
        return say(denied(draw, clause))
    if clause.subject == PRONOUN["I"] and clause.modal not in ASKING:
        to_you = "you" in marks.removed(english(clause)).split()
        asked_of = PRONOUN["they" if to_you else "you"]
        clause = replace(clause, subject=asked_of)
    if draw.chance(0.2) and (clause.verb == BE or not clause.verb.stative):
        asked = ("why", "warum")
        if clause.verb != BE and draw.chance(0.5):
            asked = ("when", "wann")
        return say(replace(clause, fronted=Text(*asked)), "?")
    return say(clause, "?")


BE = VERB["be"]
ASKING = ("can", "may", "must", "should")


def denied(draw: Draw, clause: Clause) -> Clause:
    """Returns the clause negated; `not ... any` is as good as a bare `not`."""
    clause, thing = patterns.negated(clause), clause.accusative
    if clause.negative:
        chosen = patterns.NEGATIVE_MODALS.get(clause.modal, clause.modal)
        clause = replace(clause, modal=chosen)
    bare = isinstance(thing, NounPhrase) and thing.determiner == ""
    if clause.negative and bare and draw.chance(0.4):
        return replace(clause, accusative=replace(thing, determiner="any"))
    return clause


TENSES = ("present", "progressive", "progressive", "past", "past", "future")
MODALS = ("can", "must", "may", "should", "would like", "want", "had")


def told(draw: Draw, clause: Clause) -> Clause:
    """Returns the clause in any tense, or under a modal."""
    if draw.chance(0.2) and not clause.verb.stative:
        return replace(clause, modal=draw.choice(MODALS))
    if draw.chance(0.1) and clause.verb.label in ("see", "hear"):
        return replace(clause, modal="can")
    tense = draw.choice(TENSES)
    return replace(clause, tense=patterns.steady(clause.verb, tense))


# --- Patterns: each draws one plain sentence. ---


def doing(draw: Draw) -> Pair:
    """The boy reads a book; we are not singing; did you sleep?"""
    tense = draw.choice(TENSES)
    clause = patterns.doing(draw, who(draw), tense, extras=0.15)
    if draw.chance(0.15):
        clause = patterns.timed(draw, clause)
    return uttered(draw, patterns.unfronted(clause))


def now(draw: Draw) -> Pair:
    """I am closing the door; you laugh; why are you crying?"""
    subject = PRONOUN[draw.one_of("I", "you", *SUBJECTS)]
    tense = draw.one_of("present", "progressive")
    clause = patterns.activity(draw, subject, tense, extras=0.1)
    if draw.chance(0.3):
        clause = replace(clause, subject=PRONOUN[draw.one_of(*SUBJECTS[1:])])
        asked = draw.one_of(("why", "warum"), ("when", "wann"))
        if clause.verb.stative or draw.chance(0.5):
            return say(clause, "?")
        return say(replace(clause, fronted=Text(*asked)), "?")
    return say(denied(draw, clause) if draw.chance(0.25) else clause)


def modal(draw: Draw) -> Pair:
    """I can swim; may I eat the cake?; she wants to buy a ring."""
    clause = patterns.doing(draw, who(draw), "future", extras=0.1)
    chosen = draw.one_of(*MODALS)
    clause = replace(clause, tense="present", modal=chosen)
    if draw.chance(0.25):
        return say(denied(draw, clause))
    asked = draw.chance(0.35) and chosen in (*ASKING, "want")
    return say(clause, "?" if asked else ".")


def possession(draw: Draw) -> Pair:
    """I have a dog; she does not have any sugar; we have no car."""
    nouns = people() if draw.chance(0.15) else things()
    thing = object_of(draw, nouns)
    clause = Clause(who(draw), VERB["have"], accusative=thing)
    if draw.chance(0.2) and isinstance(thing, NounPhrase) and not thing.owner:
        plural = thing.plural and draw.chance(0.5)
        none = replace(thing, determiner="no", plural=plural)
        return say(replace(clause, accusative=none))
    tense = draw.one_of("present", "present", "past")
    if draw.chance(0.15):
        clause = replace(clause, subject=PRONOUN["who"], tense=tense)
        return written(english(clause), german(clause), "?")
    return uttered(draw, replace(clause, tense=tense))


ON_THINGS = "see, look for, find, need, buy, sell, draw, like, own"
ON_MOVABLES = "see, look for, find, need, buy, sell, carry, clean, lose, bring"
ON_BEINGS = "see, hear, look for, know, love, like, find, draw, photograph"


def dealing(draw: Draw) -> Pair:
    """The man sees the dog; I need an umbrella; they are drawing a tree."""
    roll = draw.random()
    if roll < 0.3:
        nouns, labels = things(), ON_THINGS
    elif roll < 0.6:
        nouns, labels = movables(), ON_MOVABLES
    else:
        nouns = people() + patterns.nouns_of("animal")
        labels = ON_BEINGS
    verb = draw.choice(plain_verbs(labels))
    subject = who(draw)
    animal = draw.chance(0.12) and labels == ON_BEINGS
    if animal:
        subject = known(draw, draw.choice(patterns.nouns_of("animal")))
        verb = draw.choice(plain_verbs("see, hear, look for, find"))
    clause = told(draw, Clause(subject, verb))
    clause = replace(clause, accusative=object_of(draw, nouns))
    return uttered(draw, clause)


@functools.cache
def plain_verbs(labels: str) -> list[Verb]:
    """Returns one verb for each label, from the lexicon's first table."""
    return list({v.label: v for v in patterns.verbs_named(labels)}.values())


def encounter(draw: Draw) -> Pair:
    """I see him; they are helping us; we are waiting for the guests."""
    verb = draw.choice(verbs_about_people())
    ((role, _),) = verb.frame
    subject = who(draw)
    clause = told(draw, Clause(subject, verb))
    other = whom(draw, subject)
    if role == "acc":
        clause = replace(clause, accusative=other)
    elif role == "dat":
        clause = replace(clause, dative=other)
    else:
        preposition, case = role.split("+")
        clause = replace(clause, complement=led(preposition, case, other))
    return uttered(draw, clause)


@functools.cache
def verbs_about_people() -> list[Verb]:
    """Returns the verbs with a person for their only object."""
    verbs = [verb for verb in words.VERB_LIST if len(verb.frame) == 1]
    kinds = {"person", "known", "family"}
    return [
        verb
        for verb in verbs
        for _, classes in verb.frame
        if not kinds.isdisjoint(classes)
    ]


def led(preposition: str, case: str, phrase: Phrase) -> Text:
    """Returns `for him`, `auf ihn`: English has its preposition in the verb."""
    number_of_case = ACCUSATIVE if case == "acc" else DATIVE
    return patterns.located(Text("", preposition), phrase, number_of_case)


def concern(draw: Draw) -> Pair:
    """She dreams of a wedding; they are talking about politics."""
    verb = draw.choice(prepositional_verbs())
    if draw.chance(0.4):
        verb = draw.choice(plain_verbs(ON_ANYTHING))
    role, classes = verb.frame[0]
    preposition, case = role.split("+")
    nouns = patterns.nouns_of(*classes)
    if verb in plain_verbs(ON_ANYTHING) and draw.chance(0.8):
        nouns = draw.one_of(words.NOUN_LIST, patterns.nouns_of(*ABSTRACT))
    thing = object_of(draw, nouns)
    clause = Clause(who(draw), verb, complement=led(preposition, case, thing))
    return uttered(draw, told(draw, clause))


ON_ANYTHING = "dream of, be afraid of, think of, talk about"


@functools.cache
def prepositional_verbs() -> list[Verb]:
    verbs = [verb for verb in words.VERB_LIST if len(verb.frame) == 1]
    return [verb for verb in verbs for role, _ in verb.frame if "+" in role]


def handing(draw: Draw) -> Pair:
    """The boy gives the goat an apple; she lends me a pencil."""
    verb = draw.choice(plain_verbs("send, give, show, lend, bring"))
    subject = who(draw)
    taker = whom(draw, subject)
    if draw.chance(0.15):
        taker = known(draw, draw.choice(patterns.nouns_of("animal")))
    clause = told(draw, Clause(subject, verb))
    thing = object_of(draw, movables())
    if draw.chance(0.15):
        money = NounPhrase(NOUN["euro"], draw.randint(2, 99), plural=True)
        clause, thing = replace(clause, verb=GIVE), money
    return uttered(draw, replace(clause, accusative=thing, dative=taker))


GIVE = next(verb for verb in words.VERB_LIST if verb.label == "give")


def explanation(draw: Draw) -> Pair:
    """The judge explains the rule to the lawyer."""
    verb = draw.choice(plain_verbs("explain, tell"))
    subject = who(draw)
    clause = told(draw, Clause(subject, verb, dative=whom(draw, subject)))
    (classes,) = (kinds for role, kinds in verb.frame if role == "acc")
    thing = some(draw, draw.choice(patterns.nouns_of(*classes)))
    to_whom = verb.label == "explain"
    return uttered(draw, replace(clause, accusative=thing, recipient=to_whom))


def favor(draw: Draw) -> Pair:
    """My aunt buys a ring for Anna; he is not baking a cake for us."""
    verb = draw.choice(plain_verbs("buy, bake, cook, draw, carry"))
    subject = who(draw)
    clause = patterns.fill(draw, told(draw, Clause(subject, verb)))
    other = patterns.located(FOR, whom(draw, subject), ACCUSATIVE)
    return uttered(draw, replace(clause, complement=other))


FOR = Text("for", "für")


def property_of(draw: Draw) -> Pair:
    """The bicycle belongs to my brother; the car does not belong to me."""
    thing = known(draw, draw.choice(things()))
    clause = Clause(thing, VERB["belong to"], dative=whom(draw, thing))
    return uttered(draw, clause)


# --- Where things are ---

INSIDES = (
    "box", "bag", "basket", "drawer", "cupboard", "wardrobe", "fridge",
    "suitcase", "house", "classroom", "flat", "castle", "school", "car", "bus",
    "train", "taxi", "tram", "bookshelf", "shelf",
)  # fmt: skip
IN, ON = Text("in", "in"), Text("on", "auf")
UNDER, *BESIDE = words.RELATIONS[1:]


def spot(draw: Draw) -> Text:
    """Returns `in the kitchen`, `on the table`, `behind the church`."""
    roll = draw.random()
    if roll < 0.5:
        noun, where, _ = draw.choice(all_places())
        phrase = NounPhrase(noun, "the", patterns.adjectives(draw, noun, 0.05))
        return patterns.located(where, phrase, DATIVE)
    if roll < 0.6:
        return patterns.located(IN, container(draw), DATIVE)
    if roll < 0.75:
        top = draw.choice(patterns.nouns_of("surface", "furniture"))
        return patterns.located(ON, base(draw, top), DATIVE)
    if roll < 0.8:
        under = draw.choice(patterns.nouns_of("surface"))
        return patterns.located(UNDER, base(draw, under), DATIVE)
    landmark = base(draw, draw.choice(things()))
    return patterns.located(draw.choice(BESIDE), landmark, DATIVE)


@functools.cache
def all_places() -> list[tuple[Noun, Text, Text]]:
    """Returns all the places of the lexicon."""
    kinds = {k for *_, tags in words.rows(words.PLACES) for k in tags.split()}
    return patterns.places_for(*sorted(kinds))


def container(draw: Draw) -> NounPhrase:
    """Returns the box, my bag, this drawer."""
    return base(draw, NOUN[draw.one_of(*INSIDES)])


def base(draw: Draw, noun: Noun) -> NounPhrase:
    """Returns what something lies on or stands next to."""
    choices = ["the", draw.choice(POSSESSIVES), "this"]
    determiner = draw.choices(choices, [8, 2, 1])[0]
    plural = not noun.mass and draw.chance(0.25)
    return NounPhrase(noun, determiner, plural=plural)


def whereabouts(draw: Draw) -> Pair:
    """Where is the key?  The key is on the table."""
    being = draw.chance(0.35)
    pool = movables() if draw.chance(0.75) else things()
    subject = who(draw) if being else known(draw, draw.choice(pool))
    tense = draw.one_of("present", "present", "present", "past")
    clause = Clause(subject, VERB["be"], tense)
    if draw.chance(0.25):
        if clause.subject == PRONOUN["I"]:
            clause = replace(clause, subject=PRONOUN["you"])
        return say(replace(clause, fronted=Text("where", "wo")), "?")
    if pool is not things():
        where = words.HOME if being and draw.chance(0.2) else spot(draw)
    else:
        where = patterns.located(draw.choice(BESIDE), base_of(draw), DATIVE)
    if being and draw.chance(0.08):
        where = draw.one_of(IN_HOSPITAL, patterns.city(draw), town(draw))
    return uttered(draw, replace(clause, complement=where))


IN_HOSPITAL = Text("in hospital", "im Krankenhaus")


def town(draw: Draw) -> Text:
    """Returns where: in a town that nobody knows."""
    place = invented(draw).capitalize()
    return Text(f"in {place}", f"in {place}")


def beside(draw: Draw) -> Pair:
    """The bag is next to the books; who is behind the tree?"""
    noun = draw.choice(things())
    plural = not noun.mass and draw.chance(0.5)
    landmark = NounPhrase(noun, draw.one_of("the", "the", "my"), plural=plural)
    where = patterns.located(draw.choice(BESIDE), landmark, DATIVE)
    subject = draw.one_of(who(draw), known(draw, draw.choice(movables())))
    clause = Clause(subject, VERB["be"], draw.one_of(*STATES))
    return uttered(draw, replace(clause, complement=where))


def lying(draw: Draw) -> Pair:
    """Two cows are lying in the meadow; the vase stands on the table."""
    if draw.chance(0.2):
        hanging = known(draw, draw.choice(patterns.nouns_of("hanging")))
        where = patterns.located(draw.choice(BESIDE), base_of(draw), DATIVE)
        if draw.chance(0.6):
            wall = NounPhrase(NOUN["wall"])
            where = patterns.located(Text("on", "an"), wall, DATIVE)
        clause = Clause(hanging, VERB["hang"], "progressive", complement=where)
        return uttered(draw, clause)
    flat = draw.chance(0.6)
    kinds = ("flat", "animal", "small") if flat else ("upright", "furniture")
    thing = some(draw, draw.choice(patterns.nouns_of(*kinds)))
    verb, tense = ("lie", "progressive") if flat else ("stand", "present")
    clause = Clause(thing, VERB[verb], tense, complement=spot(draw))
    return uttered(draw, clause)


def base_of(draw: Draw) -> NounPhrase:
    return base(draw, draw.choice(things()))


def existence(draw: Draw) -> Pair:
    """There is a bag under the chair; is there any milk in the fridge?"""
    noun = draw.choice(people() if draw.chance(0.1) else movables())
    built = draw.chance(0.2)
    if built:
        noun = draw.choice(patterns.nouns_of("building", "green", "tree"))
    several = not noun.mass and draw.chance(0.4)
    count = draw.one_of("", draw.randint(2, 12)) if several else "a"
    if noun.mass:
        count = ""
    thing = NounPhrase(
        noun, count, patterns.adjectives(draw, noun, 0.1), plural=several
    )
    is_are = "are" if several else "is"
    if draw.chance(0.2):
        thing = replace(thing, determiner="no")
    where = town_or_landmark(draw) if built else spot(draw)
    if draw.chance(0.2) and thing.determiner != "no":
        return patterns.existing(is_are, thing, where, end="?")
    return patterns.existing(is_are, thing, where)


def town_or_landmark(draw: Draw) -> Text:
    """Returns `in the village`, `in Rome`, `behind the church`."""
    if draw.chance(0.3):
        return patterns.city(draw)
    if draw.chance(0.4):
        place = NounPhrase(draw.choice(patterns.nouns_of("settlement")))
        island = place.noun.english == "island"
        return patterns.located(ON if island else IN, place, DATIVE)
    building = draw.choice(patterns.nouns_of("building"))
    return patterns.located(draw.choice(BESIDE), base(draw, building), DATIVE)


# --- What things and people are ---

PLAIN_QUALITIES = ("big", "small", "old", "new", "beautiful", "expensive")
COLORS = ("red", "blue", "green", "white", "black", "brown", "yellow", "grey")


@functools.cache
def qualities() -> dict[str, words.Adjective]:
    return {row.english: row for row in words.ADJECTIVE_LIST}


def quality(draw: Draw, noun: Noun) -> Text:
    """Returns an adjective for what a thing is, at times an invented one."""
    if draw.chance(INVENTED):
        word = invented(draw)
        return Text(word, word)
    fitting = patterns.adjectives_for(noun)
    if draw.chance(0.35) or not fitting:
        row = qualities()[draw.one_of(*PLAIN_QUALITIES, *COLORS)]
    else:
        row = draw.choice(fitting)
    return Text(row.english, row.german)


def predicate(draw: Draw, word: Text) -> Text:
    """Returns the adjective, bare or strengthened."""
    if draw.chance(0.7):
        return word
    degree = draw.choice([*words.DEGREES, Text("too", "zu")])
    return Text(
        f"{degree.english} {word.english}", f"{degree.german} {word.german}"
    )


STATES = ("present", "present", "past")


def description(draw: Draw) -> Pair:
    """The soup is hot; are the tomatoes ripe?"""
    noun = draw.choice(all_but_people())
    how = predicate(draw, quality(draw, noun))
    if draw.chance(0.06) and not noun.mass:
        return say(state(pair_in_plural(draw, noun), how))
    thing = known(draw, noun)
    return uttered(draw, state(thing, how, draw.one_of(*STATES)))


@functools.cache
def all_but_people() -> list[Noun]:
    return [n for n in words.NOUN_LIST if "person" not in n.classes]


def pair_in_plural(draw: Draw, noun: Noun) -> Both:
    """Returns the plums and cherries; the plums and the cherries."""
    kinds = [n for n in things() if not n.mass and n != noun]
    other = draw.choice(kinds)
    determiner = draw.one_of("the", "")
    first = NounPhrase(noun, "the", plural=True)
    if not determiner:
        return Both(first, NounPhrase(other, "", plural=True))
    return Both(first, NounPhrase(other, "the", plural=True))


def feeling(draw: Draw) -> Pair:
    """I am not tired; were you ill?; why is the boy sad?"""
    subject = who(draw)
    how = predicate(draw, draw.choice(words.OPINIONS))
    if isinstance(subject, NounPhrase) and draw.chance(0.4):
        how = predicate(draw, quality_of_person(draw, subject.noun))
    clause = state(subject, how, draw.one_of(*STATES))
    if draw.chance(0.1) and clause.tense == "past":
        clause = replace(clause, time=draw.choice(words.TIMES["past"]))
    return uttered(draw, clause)


def quality_of_person(draw: Draw, noun: Noun) -> Text:
    row = draw.choice(patterns.adjectives_for(noun) or [qualities()["old"]])
    return Text(row.english, row.german)


def still(draw: Draw) -> Pair:
    """He is still ill; the pears are not ripe yet."""
    subject, how = who(draw), draw.choice(words.OPINIONS)
    if draw.chance(0.5):
        noun = draw.choice(things())
        subject, how = known(draw, noun), quality(draw, noun)
    clause = state(subject, how, draw.one_of(*STATES))
    if draw.chance(0.5):
        return say(later(clause))
    clause = replace(clause, frequency=Text("still", "noch"))
    return say(clause, "?" if draw.chance(0.2) else ".")


def already(draw: Draw) -> Pair:
    """Have you already eaten?  I have not found it yet; he has never slept.

    What is counted stays: I have bought six tomatoes.
    """
    clause = patterns.activity(draw, who(draw), "past", extras=0)
    clause = replace(clause, tense="perfect")
    thing = clause.accusative
    if isinstance(thing, NounPhrase) and not clause.dative and draw.chance(0.5):
        key = thing.pronoun
        it_ = PRONOUN["it n" if key.startswith("it") else key]
        clause = replace(clause, accusative=it_)
    roll = draw.random()
    if roll < 0.4 and clause.subject != PRONOUN["I"]:
        return say(replace(clause, frequency=Text("already", "schon")), "?")
    taker = clause.dative
    counted = patterns.counted(clause.accusative) or patterns.counted(taker)
    if roll < 0.6 and not counted:
        return say(replace(clause, frequency=Text("never", "nie")))
    # Not `einem Arzt noch nicht gedankt`: this means one whom one knows.
    vague = clause.accusative is None and taker and not taker.definite
    return say(clause if counted or vague else later(clause))


def later(clause: Clause) -> Clause:
    """Returns the clause as what is not so yet.

    German has `noch nicht`, and English `yet` at its end.
    """
    yet = marks.apart(Text("yet", "noch"))
    return replace(
        clause,
        negative=True,
        time=Text(yet.english, ""),
        yet=Text("", yet.german),
    )


ANYONE = (
    Pronoun(("nobody", "nobody"), ("niemand", "niemanden", "niemandem")),
    Pronoun(("somebody", "somebody"), ("jemand", "jemanden", "jemandem")),
    Pronoun(("everybody", "everybody"), ("jeder", "jeden", "jedem")),
)
ANYTHING = (
    Pronoun(("something", "something"), ("etwas", "etwas", "etwas")),
    Pronoun(("nothing", "nothing"), ("nichts", "nichts", "nichts")),
)


def anybody(draw: Draw) -> Pair:
    """Nobody sees me; I hear somebody; she found nothing."""
    tense = draw.choice(TENSES)
    roll = draw.random()
    if roll < 0.5:
        subject = draw.choice(ANYONE)
        if draw.chance(0.3):
            how = predicate(draw, draw.choice(words.OPINIONS))
            return say(state(subject, how, draw.one_of(*STATES)))
        clause = patterns.doing(draw, subject, tense, extras=0.1)
        if subject == ANYONE[0] and patterns.counted(clause.accusative):
            return anybody(draw)  # Not `Nobody pays some bills.`
        return say(clause)
    others, labels = ANYONE, ON_BEINGS
    if roll > 0.75:
        others, labels = ANYTHING, ON_MOVABLES + ", eat, drink, read"
    clause = told(draw, Clause(who(draw), draw.choice(plain_verbs(labels))))
    other = draw.choice(others)
    clause = replace(clause, accusative=other)
    none = other.english() in ("nobody", "nothing")
    if none and clause.modal in ("must", "had"):  # Not `muss nichts essen`.
        clause = replace(clause, modal="can")
    asked = not none and clause.subject != PRONOUN["I"] and draw.chance(0.3)
    return say(clause, "?" if asked else ".")


WITH, WITHOUT = Text("with", "mit"), Text("without", "ohne")


def company(draw: Draw) -> Pair:
    """Clara came home without her jacket; does he live with his dogs?"""
    subject, tense = who(draw), draw.choice(TENSES)
    labels = "work, sing, dance, laugh"
    verb = draw.choice([*plain_verbs(labels), VERB["live"], VERB["play"]])
    clause = Clause(subject, verb, patterns.steady(verb, tense))
    if draw.chance(0.4):
        clause = patterns.motion(draw, subject, tense)
    other = whom(draw, subject)
    if draw.chance(0.4):
        noun = draw.choice(movables() + patterns.nouns_of("animal"))
        other = some(draw, noun)
        own = patterns.possessive(subject)
        if own and not noun.mass and draw.chance(0.6):
            other = replace(other, determiner=own, adjectives=())
    how = patterns.located(WITH, other, DATIVE)
    if draw.chance(0.35) and clause.verb != VERB["live"]:
        how = patterns.located(WITHOUT, other, ACCUSATIVE)
    return uttered(draw, replace(clause, manner=how))


def pointing(draw: Draw) -> Pair:
    """This is my brother; are those your keys?; whose umbrella is this?"""
    noun = draw.choice(people() + things() + patterns.nouns_of("event"))
    plural = not noun.mass and draw.chance(PLURAL)
    one = draw.one_of("this", "that")
    if plural:
        one = {"this": "these", "that": "those"}[one]
    this = Pronoun((one, one), ("das", "das", "das"), plural=plural)
    tense = draw.one_of(*STATES)
    if draw.chance(0.2) and not noun.mass:
        thing = nominative(NounPhrase(noun, "", plural=plural))
        whose = Text(f"whose {thing.english}", f"wessen {thing.german}")
        return say(replace(state(this, patterns.NOTHING), fronted=whose), "?")
    determiner = draw.one_of("a", "the", *POSSESSIVES)
    owner = None
    if noun.mass or (plural and determiner == "a"):
        determiner = "the"
    if draw.chance(0.2):
        owner = patterns.name(draw)
    qualities = patterns.adjectives(draw, noun, 0.15)
    phrase = NounPhrase(noun, determiner, qualities, plural=plural, owner=owner)
    clause = state(this, nominative(phrase), tense)
    if determiner == "a" and owner is None:
        return say(clause, "?" if draw.chance(0.25) else ".")
    return uttered(draw, clause)


def excess(draw: Draw) -> Pair:
    """The dress is too expensive for me."""
    noun = draw.choice(things())
    thing = known(draw, noun)
    for_whom = patterns.located(FOR, whom(draw, thing), ACCUSATIVE)
    how = in_a_row(Text("too", "zu"), quality(draw, noun), for_whom)
    return uttered(draw, state(thing, how, draw.one_of(*STATES)))


def how_many(draw: Draw) -> Pair:
    """How many dogs do you see?  How much does the lamp cost?"""
    if draw.chance(0.25):
        thing = known(draw, draw.choice(movables()))
        much = Text("how much", "wie viel")
        clause = Clause(thing, VERB["cost"], draw.one_of("present", "past"))
        return say(replace(clause, fronted=much), "?")
    noun = draw.choice([n for n in things() if not n.mass])
    phrase = NounPhrase(noun, "", plural=True)
    many = Text(
        f"how many {phrase.english()}", f"wie viele {phrase.german(ACCUSATIVE)}"
    )
    verb = draw.one_of(VERB["have"], draw.choice(plain_verbs(ON_THINGS)))
    tense = patterns.steady(verb, draw.choice(TENSES))
    clause = Clause(asked_one(draw), verb, tense, fronted=many)
    return say(clause, "?")


def circumstances(draw: Draw) -> Pair:
    """I have no time; she is on holiday; do you have a headache?"""
    rows = words.HINDRANCES + words.OCCASIONS + words.PHASES
    row = draw.choice([row for row in rows if "young" not in row])
    clause = patterns.being(who(draw), row, draw.one_of(*STATES))
    if draw.chance(0.2) and clause.subject != PRONOUN["I"]:
        return say(clause, "?")
    return say(clause)


def profession(draw: Draw) -> Pair:
    """She is a lawyer; my son is a chef; he is not a painter."""
    subject = draw.one_of(PRONOUN["he"], PRONOUN["she"], patterns.name(draw))
    if draw.chance(0.4):
        noun = draw.choice(patterns.nouns_of("family"))
        subject = NounPhrase(noun, draw.choice(POSSESSIVES))
    job, man, woman = draw.choice(words.PROFESSIONS)
    is_she = patterns.pronoun_of(subject) == "she"
    title = marks.apart(Text(job, woman if is_she else man))
    denied_title = ("keine " if is_she else "kein ") + title.german
    a_job = f"{patterns.grammar.article(job)} {title.english}"
    tense = draw.one_of(*STATES)
    roll = draw.random()
    if roll < 0.25:
        not_one = Text(f"not {a_job}", denied_title)
        return say(state(subject, not_one, tense))
    clause = state(subject, Text(a_job, title.german), tense)
    return say(clause, "?" if roll < 0.4 else ".")


def identity(draw: Draw) -> Pair:
    """Who is this woman?  The man is my uncle."""
    person = replace(human(draw), plural=False)
    if draw.chance(0.5) or isinstance(person.determiner, int):
        asked = draw.one_of(person, name(draw))
        tense = draw.one_of("present", "present", "past")
        clause = state(PRONOUN["who"], nominative(asked), tense)
        return written(english(clause), german(clause), "?")
    relation = replace(patterns.relation(draw), plural=False, adjectives=())
    return uttered(draw, state(person, nominative(relation)))


def nominative(phrase: Phrase) -> Text:
    return Text(phrase.english(), phrase.german(NOMINATIVE))


def age(draw: Draw) -> Pair:
    """I am twenty-one years old."""
    old = patterns.old(draw.randint(2, 99))
    return uttered(draw, state(who(draw), old))


def remark(draw: Draw) -> Pair:
    """The dog that Anna sees is old; the coats that I bought were not cheap."""
    nouns, labels = things(), ON_THINGS
    if draw.chance(0.3):
        nouns, labels = people() + patterns.nouns_of("animal"), ON_BEINGS
    noun = draw.choice(nouns)
    plural = not noun.mass and draw.chance(PLURAL)
    phrase = NounPhrase(noun, "the", plural=plural)
    verb = draw.choice(plain_verbs(labels))
    tense = patterns.steady(verb, draw.choice(TENSES))
    which = patterns.relative_word(phrase, ACCUSATIVE)
    inner = Clause(another(draw, phrase), verb, tense, fronted=which)
    after = Text(english(inner), german(inner, "last"))
    is_person = noun in people()
    how = quality_of_person(draw, noun) if is_person else quality(draw, noun)
    how = predicate(draw, how)
    thing = replace(phrase, after=after)
    return uttered(draw, state(thing, how, draw.one_of(*STATES)))


def another(draw: Draw, *others: Phrase) -> Phrase:
    """Returns he, Anna, the waiter: nobody who is one of the others."""
    if draw.chance(0.5):
        return PRONOUN[draw.one_of(*SUBJECTS)]
    return patterns.someone_else(draw, *others)


MUCH, THAN = Text("much", "viel"), Text("than", "als")
AS = Text("as", "so"), Text("as", "wie")


def comparison(draw: Draw) -> Pair:
    """My hat is bigger than your cap; is the boy older than you?"""
    grades = [qualities()[word] for word in PLAIN_QUALITIES]
    grades = [row for row in grades if row.comparative]
    rows = [row for row in words.ADJECTIVE_LIST if row.comparative]
    one = draw.one_of(draw.choice(grades), draw.choice(rows))
    pool = people() if draw.chance(0.3) else things()
    first, second = draw.sample([n for n in pool if not n.mass], 2)
    left, right = (
        NounPhrase(noun, draw.one_of("the", "the", *POSSESSIVES[:3]))
        for noun in (first, second)
    )
    if first in people() and one.english in ("long", "short"):
        return comparison(draw)  # German has other words for people.
    if first in people() and draw.chance(0.5):
        newcomer = another(draw, left, right)
        left, right = draw.one_of((left, newcomer), (newcomer, right))
    other = Text(right.english(True), right.german(NOMINATIVE))
    more = Text(one.comparative, one.german_comparative)
    tense, roll = draw.one_of(*STATES), draw.random()
    if roll < 0.15:
        how = in_a_row(MUCH, more, THAN, other)
        return say(state(left, how, tense))
    how = in_a_row(more, THAN, other)
    if roll < 0.45:
        how = in_a_row(AS[0], Text(one.english, one.german), AS[1], other)
    return uttered(draw, state(left, how, tense))


def in_a_row(*parts: Text) -> Text:
    """Returns the parts one after the other, each linked by itself."""
    linked = [marks.apart(part) for part in parts]
    return Text(
        " ".join(part.english for part in linked),
        " ".join(part.german for part in linked),
    )


GROCERIES = "eat, drink, buy, cook, bake"


def amount(draw: Draw) -> Pair:
    """You drink too much coffee; she has so many books."""
    subject = who(draw)
    clause = patterns.deed(draw, subject, "present", labels=GROCERIES)
    verb, noun = clause.verb, clause.accusative.noun
    if draw.chance(0.3):
        verb, noun = VERB["have"], draw.choice(movables())
    many = "much" if noun.mass else "many"
    degree = f"{draw.one_of('so', 'too')} {many}"
    phrase = NounPhrase(noun, degree, plural=not noun.mass)
    clause = told(draw, Clause(subject, verb, accusative=phrase))
    asked = subject != PRONOUN["I"] and draw.chance(0.15)
    return say(clause, "?" if asked else ".")


def where_done(draw: Draw) -> Pair:
    """Where did you lose your keys?  Where can she buy bread?"""
    labels = "see, look for, find, need, buy, sell, clean, lose, eat"
    clause = told(
        draw, Clause(asked_one(draw), draw.choice(plain_verbs(labels)))
    )
    clause = replace(patterns.fill(draw, clause), fronted=Text("where", "wo"))
    return say(clause, "?")


def asked_one(draw: Draw) -> Phrase:
    """Returns whom a question is about: nobody asks what he does himself."""
    subject = who(draw)
    return PRONOUN["you"] if subject == PRONOUN["I"] else subject


def chosen(draw: Draw) -> Pair:
    """Which shirt do you want to buy?  What must he bring?"""
    noun = draw.choice(movables())
    plural = not noun.mass and draw.chance(PLURAL)
    phrase = NounPhrase(noun, "which", plural=plural)
    what = Text(phrase.english(), phrase.german(ACCUSATIVE))
    if draw.chance(0.3):
        what = Text("what", "was")
    verb = draw.choice(plain_verbs("buy, bring, draw, sell, see, look for"))
    clause = Clause(asked_one(draw), verb, modal=draw.choice(MODALS))
    return say(replace(clause, fronted=what), "?")


def in_such_weather(draw: Draw) -> Pair:
    """If it rains, we will stay at home; she sleeps because it is cold."""
    if draw.chance(0.4):
        tense, now = draw.one_of(("progressive", "present"), ("past", "past"))
        cause = patterns.sub("because weil", patterns.weather(draw, now))
        clause = patterns.doing(draw, who(draw), tense, extras=0.1)
        return patterns.joined(draw, clause, cause)
    condition = Clause(PRONOUN["it n"], VERB[draw.one_of("rain", "snow")])
    if draw.chance(0.4):
        condition = state(PRONOUN["it n"], draw.choice(words.WEATHER))
    clause = patterns.doing(draw, who(draw), "future", extras=0.1)
    return patterns.joined(draw, clause, patterns.sub("if wenn", condition))


def unknowing(draw: Draw) -> Pair:
    """Do you know when the train arrives?  I do not know where she is."""
    asker = PRONOUN[draw.choice(SUBJECTS)]
    link = draw.one_of("whether ob", "why warum", "when wann", "where wo")
    clause = patterns.doing(draw, who(draw), draw.choice(TENSES), extras=0)
    tense = draw.one_of(*STATES)
    if link == "where wo":
        thing = known(draw, draw.choice(movables()))
        subject = draw.one_of(who(draw), thing)
        where = "be" if subject is thing else draw.one_of("be", "live")
        clause = Clause(subject, VERB[where], tense)
    elif link == "when wann" and draw.chance(0.5):
        noun = draw.choice(patterns.nouns_of("event", "course", "transit"))
        arrives = "transit" in noun.classes
        kinds = ("arrive", "depart") if arrives else ("begin", "end")
        thing = NounPhrase(noun, draw.one_of("the", "this", "my"))
        clause = Clause(thing, VERB[draw.one_of(*kinds)], tense)
    asked = asker != PRONOUN["I"] and draw.chance(0.5)
    trailing = patterns.sub(link, clause)
    know = Clause(asker, VERB["know"], negative=not asked, trailing=trailing)
    return say(know, "?" if asked else ".")


def belongings(draw: Draw) -> Pair:
    """Anna's skirt is blue; the boy's shoes are new; where is his bag?"""
    noun = draw.choice(things())
    owner = name(draw)
    if draw.chance(0.7):
        pool = people() + patterns.nouns_of("animal", "pet")
        owner = NounPhrase(draw.choice(pool))
        if patterns.family(owner.noun) or draw.chance(0.2):
            owner = replace(owner, determiner=draw.choice(POSSESSIVES))
    if isinstance(owner, Name) and owner.word[-1] in "sxz":
        owner = patterns.name(draw)
    plural = not noun.mass and draw.chance(PLURAL)
    thing = NounPhrase(noun, plural=plural, owner=owner)
    roll = draw.random()
    if roll < 0.6:
        how = predicate(draw, quality(draw, noun))
        return uttered(draw, state(thing, how, draw.one_of(*STATES)))
    if roll < 0.75:
        where = Text("where", "wo")
        return say(Clause(thing, VERB["be"], fronted=where), "?")
    verb = draw.choice(plain_verbs(ON_THINGS))
    clause = told(draw, Clause(who(draw), verb))
    return uttered(draw, replace(clause, accusative=thing))


# --- Other plain things to say ---


def liking(draw: Draw) -> Pair:
    """She likes chocolate; do you like cherries?; we like to swim."""
    if draw.chance(0.3):
        clause = patterns.activity(draw, who(draw), "present", extras=0.2)
        clause = patterns.liked(patterns.general(clause))
        asked = draw.chance(0.2) and clause.subject != PRONOUN["I"]
        return say(clause, "?" if asked else ".")
    noun = draw.choice(things())
    kind = NounPhrase(noun, "", plural=not noun.mass)
    verb = draw.choice(plain_verbs("like"))
    return uttered(draw, Clause(who(draw), verb, accusative=kind))


def love(draw: Draw) -> Pair:
    """We love nature: die Natur."""
    noun = draw.choice([*patterns.nouns_of("learned"), NOUN["music"]])
    verb = draw.choice(plain_verbs("love, like"))
    clause = Clause(who(draw), verb)
    thing = NounPhrase(noun, "the")
    bare = replace(thing, determiner="").english()
    subject = clause.subject
    asked = draw.chance(0.15) and subject != PRONOUN["I"]
    return say(
        replace(clause, complement=Text(bare, thing.german(ACCUSATIVE))),
        "?" if asked else ".",
    )


def going(draw: Draw) -> Pair:
    """I am going to the market; where are you going?"""
    tense = draw.one_of("present", "progressive", "progressive", "past")
    roll = draw.random()
    if roll < 0.12:
        verb, _ = patterns.direction(draw)
        clause = Clause(patterns.asked_about(draw), verb, tense)
        if draw.chance(0.5):
            subject = PRONOUN[draw.choice(SUBJECTS[1:])]
            clause = Clause(subject, VERB["go"], tense)
        return say(replace(clause, fronted=Text("where", "wohin")), "?")
    if roll < 0.2:
        place = invented(draw).capitalize()
        verb = VERB[draw.one_of("fly", "drive", "travel")]
        where = Text(f"to {place}", f"nach {place}")
        clause = Clause(who(draw), verb, tense, complement=where)
        return uttered(draw, clause)
    clause = patterns.motion(draw, who(draw), tense)
    if draw.chance(0.15):
        clause = replace(clause, time=patterns.clock(draw))
    return uttered(draw, clause)


def living(draw: Draw) -> Pair:
    """Paul lives in Vienna; where do you live?"""
    verb = VERB[draw.one_of("live", "live", "study")]
    where = town(draw) if draw.chance(0.3) else patterns.city(draw)
    if draw.chance(0.1):
        where = spot(draw)
    clause = Clause(who(draw), verb, draw.one_of("present", "past"))
    if draw.chance(0.2) and clause.subject != PRONOUN["I"]:
        return say(replace(clause, fronted=Text("where", "wo")), "?")
    return uttered(draw, replace(clause, complement=where))


def wondering(draw: Draw) -> Pair:
    """Who is singing?  What are you reading?  Which book do you need?"""
    tense = draw.choice(TENSES)
    roll = draw.random()
    if roll < 0.35:
        clause = patterns.doing(draw, PRONOUN["who"], tense, extras=0.3)
        return written(english(clause), german(clause), "?")
    if roll < 0.45:
        where = spot(draw)
        nothing = Pronoun(("what", "what"), ("was", "was", "was"))
        clause = state(nothing, where, draw.one_of("present", "past"))
        return written(english(clause), german(clause), "?")
    subject = who(draw)
    if subject == PRONOUN["I"]:
        subject = PRONOUN["you"]
    if draw.chance(0.15):
        clause = Clause(human(draw), draw.choice(plain_verbs("eat")), tense)
        if draw.chance(0.4):
            animal = known(draw, draw.choice(patterns.nouns_of("animal")))
            clause = Clause(animal, VERB["eat"], tense)
        return say(replace(clause, fronted=Text("what", "was")), "?")
    kind = draw.one_of("what", "which")
    if draw.chance(0.4):
        subject, tense = PRONOUN["you"], draw.one_of("present", "progressive")
    return patterns.gap_question(draw, kind, subject, tense=tense)


def schedule(draw: Draw) -> Pair:
    """When is the exam?  When does the concert begin?  It ends at six."""
    noun = draw.choice(patterns.nouns_of("event", "course", "transit"))
    thing = NounPhrase(noun, draw.one_of("the", "the", "this", "my"))
    kinds = ("begin", "end")
    if "transit" in noun.classes:
        kinds = ("arrive", "depart")
    verb = VERB[draw.one_of("be", *kinds)]
    if "transit" in noun.classes and verb.base == "be":
        verb = VERB["depart"]
    tense = draw.one_of("present", "present", "past")
    clause = Clause(thing, verb, tense)
    if draw.chance(0.5):
        return say(replace(clause, fronted=Text("when", "wann")), "?")
    time = draw.one_of(patterns.clock(draw), draw.choice(words.WEEKDAYS))
    if verb.base == "be":
        return say(replace(clause, complement=time))
    return say(replace(clause, time=time))


def weather(draw: Draw) -> Pair:
    """It is raining; was it cold?; it will snow tomorrow."""
    tense = draw.one_of("present", "past")
    if draw.chance(0.35):
        verb = VERB[draw.one_of("rain", "snow")]
        tense = draw.one_of("progressive", "past", "future")
        clause = Clause(PRONOUN["it n"], verb, tense)
        if draw.chance(0.4):
            clause = replace(clause, time=draw.choice(words.TIMES[tense]))
    else:
        clause = patterns.weather(draw, tense)
    return uttered(draw, clause)


def it(draw: Draw) -> Pair:
    """It is new; I see it: es, for what nobody has named."""
    thing = PRONOUN["it n"]
    if draw.chance(0.5):
        row = draw.choice(words.ADJECTIVE_LIST)
        how = predicate(draw, Text(row.english, row.german))
        return uttered(draw, state(thing, how, draw.one_of(*STATES)))
    verb = draw.choice(plain_verbs(ON_THINGS + ", read, eat, drink, open"))
    clause = told(draw, Clause(who(draw), verb))
    return uttered(draw, replace(clause, accusative=thing))


def knowing(draw: Draw) -> Pair:
    """I do not know; she does not know him; do you know Anna?"""
    clause = Clause(who(draw), VERB["know"])
    if draw.chance(0.4):
        other = whom(draw, clause.subject)
        known_one = replace(clause, verb=KNOW_SOMEBODY, accusative=other)
        return uttered(draw, known_one)
    if draw.chance(0.3) and clause.subject != PRONOUN["I"]:
        return written(
            english(clause, "question"),
            german(replace(clause, complement=Text("", "es")), "question"),
            "?",
        )
    return say(replace(clause, negative=True))


KNOW_SOMEBODY = next(v for v in words.VERB_LIST if v.label == "know")


def creature(draw: Draw) -> Pair:
    """Birds sing; the donkey is eating a carrot; does the dog sleep?"""
    noun = draw.choice(patterns.nouns_of("animal"))
    subject = known(draw, noun)
    if draw.chance(0.15):
        subject = NounPhrase(noun, "", plural=True)
    tense = draw.choice(TENSES)
    if draw.chance(0.4):
        food = some(draw, draw.choice(patterns.nouns_of("food")))
        clause = Clause(subject, VERB["eat"], tense, accusative=food)
        return uttered(draw, clause)
    if draw.chance(0.25):
        follow = draw.choice(plain_verbs("follow"))
        whom_ = whom(draw, subject)
        return uttered(draw, Clause(subject, follow, tense, dative=whom_))
    verb = draw.choice(plain_verbs("sleep, sing, swim, wake up"))
    if draw.chance(0.2):
        verb = VERB["run"]
    clause = Clause(subject, verb, tense)
    if draw.chance(0.35):
        clause = replace(clause, place=spot(draw))
    return uttered(draw, clause)


def staying(draw: Draw) -> Pair:
    """The cat is sleeping in the armchair; who is working in the garage?"""
    labels = "sleep, work, sing, dance, laugh, cry, wake up"
    verb = draw.choice([*plain_verbs(labels), VERB["play"]])
    where = words.HOME if draw.chance(0.1) else spot(draw)
    if draw.chance(0.3):
        where = Text("", "")
    subject = who(draw)
    if draw.chance(0.15):
        subject = known(draw, draw.choice(patterns.nouns_of("pet")))
        verb = draw.choice(plain_verbs("sleep"))
    clause = Clause(subject, verb, draw.choice(TENSES), place=where)
    if draw.chance(0.1):
        who_ = replace(clause, subject=PRONOUN["who"])
        return written(english(who_), german(who_), "?")
    if draw.chance(0.15) and clause.tense == "present":
        often = draw.choice(words.FREQUENCIES)
        return say(replace(clause, frequency=often))
    return uttered(draw, clause)


def pastime(draw: Draw) -> Pair:
    """We are playing chess; does she speak French?"""
    clause = patterns.pastime(draw, who(draw), draw.choice(TENSES))
    what = clause.complement
    if draw.chance(0.3):
        what = draw.choice(words.LANGUAGES)
        clause = replace(clause, verb=VERB["speak"], tense="present")
    if draw.chance(0.15):
        word = invented(draw)
        if clause.verb.base != "play":
            word = word.capitalize()
        what = Text(word, word.capitalize())
    return uttered(draw, replace(clause, complement=what))


def errand(draw: Draw) -> Pair:
    """We must buy milk and butter; she is buying twelve eggs."""
    verb = draw.choice(plain_verbs("eat, drink, buy, order, need, cook, bake"))
    _, classes = verb.frame[0]
    classes = tuple(k for k in classes if k not in ("vehicle", "clothes"))
    nouns = patterns.nouns_of(*classes) or things()
    both = draw.chance(0.3)
    thing = pair_of(draw, nouns) if both else object_of(draw, nouns)
    clause = told(draw, Clause(who(draw), verb))
    return uttered(draw, replace(clause, accusative=thing))


def cost(draw: Draw) -> Pair:
    """The jacket costs ninety euros."""
    thing = known(draw, draw.choice(movables()))
    money = NounPhrase(NOUN["euro"], draw.randint(2, 99), plural=True)
    return say(Clause(thing, VERB["cost"], accusative=money))


def counting(draw: Draw) -> Pair:
    """Four men are carrying the boxes; many pupils slept."""
    noun = draw.choice(people())
    numbers = draw.randint(2, 12), draw.randint(2, 12)
    count = draw.one_of(*numbers, "some", "many", "")
    several = NounPhrase(noun, count, plural=True)
    tense = draw.choice(TENSES)
    return say(patterns.doing(draw, several, tense, extras=0.1))


def lately(draw: Draw) -> Pair:
    """I have already read the letter; yesterday he visited the zoo."""
    if draw.chance(0.4):
        clause = patterns.activity(draw, who(draw), "past", extras=0)
        already = Text("already", "schon")
        return say(replace(clause, tense="perfect", frequency=already))
    tense = draw.one_of("past", "past", "future", "progressive")
    clause = patterns.doing(draw, who(draw), tense, extras=0)
    return say(patterns.timed(draw, clause))


PATTERNS: list[tuple[int, Callable[[Draw], Pair]]] = [
    (18, doing),
    (16, now),
    (8, modal),
    (9, possession),
    (12, dealing),
    (10, encounter),
    (10, concern),
    (7, handing),
    (2, explanation),
    (3, favor),
    (3, property_of),
    (11, whereabouts),
    (9, beside),
    (4, lying),
    (4, existence),
    (12, description),
    (6, feeling),
    (3, circumstances),
    (4, profession),
    (2, identity),
    (1, age),
    (5, comparison),
    (2, amount),
    (3, where_done),
    (3, chosen),
    (3, in_such_weather),
    (4, unknowing),
    (5, remark),
    (5, belongings),
    (4, liking),
    (1, love),
    (5, going),
    (2, living),
    (8, wondering),
    (2, schedule),
    (1, weather),
    (2, it),
    (4, knowing),
    (4, creature),
    (4, staying),
    (2, pastime),
    (4, errand),
    (2, patterns.thirst),
    (1, cost),
    (4, counting),
    (3, still),
    (2, already),
    (5, anybody),
    (4, company),
    (4, pointing),
    (2, excess),
    (2, how_many),
    (3, lately),
]
