"""One derivation, two sentences: the synchronous English-German grammar.

A sentence is derived once, as a `Clause` of `Phrase`s.  Either language then
reads the same tree: `english(clause)` puts auxiliaries and `not` where English
wants them, `german(clause, order)` declines every phrase for its case and
builds the verbal bracket.  The German middle field has one fixed order,

    subject, reflexive, pronouns, time, frequency, dative, definite accusative,
    nicht, manner, place, indefinite accusative, complement,

so every English sentence has exactly one German one.  Words are marked as they
are put together, for their links: see `marks`.

    NEW = Text("new", "neu")
    Clause(subject=NounPhrase(NOUN["boy"]), verb=VERB["hang up"], tense="past",
           accusative=NounPhrase(NOUN["picture"], "a", (NEW,)),
           time=Text("yesterday", "gestern"), fronted="time")

    english  yesterday the boy hung up a new picture
    main     gestern hat der Junge ein neues Bild aufgehängt
    last     (weil) der Junge gestern ein neues Bild aufgehängt hat
"""

from dataclasses import dataclass, replace

from t2t_lite_data import marks
from t2t_lite_data.lexicon import (
    Noun,
    Text,
    Verb,
    german_stem,
    number,
    progressive,
    third_person,
)

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)

# Endings of der-words by gender ("p" is the plural) and case.
STRONG = {
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
# ein-words: after the three bare forms, the adjective takes the strong ending.
MIXED = STRONG | {"m": ("", "en", "em", "es"), "n": ("", "", "em", "es")}
ARTICLE = {
    "m": ("der", "den", "dem", "des"),
    "f": ("die", "die", "der", "der"),
    "n": ("das", "das", "dem", "des"),
    "p": ("die", "die", "den", "der"),
}
RELATIVE = ARTICLE | {
    "m": ("der", "den", "dem", "dessen"),
    "f": ("die", "die", "der", "deren"),
    "n": ("das", "das", "dem", "dessen"),
    "p": ("die", "die", "denen", "deren"),
}

DER_WORDS = {"this": "dies", "all the": "all", "which": "welch"}
EIN_WORDS = {
    "a": "ein", "not a": "kein", "any": "kein", "not": "kein", "no": "kein",
    "my": "mein", "your": "dein", "his": "sein", "her": "ihr", "our": "unser",
    "their": "ihr",
}  # fmt: skip
QUANTIFIERS = {
    "many": "viel",
    "some": "einig",
    "so many": "so viel",
    "too many": "zu viel",
}
# Before what cannot be counted, and without an ending.
AMOUNTS = {"so much": "so viel", "too much": "zu viel"}
DENIED = ("not a", "any", "not")  # kein, which says `not` as well
VAGUE = ("a", "no", "", *DENIED, *QUANTIFIERS, *AMOUNTS)
POSSESSIVES = ("my", "your", "his", "her", "our", "their")

CONTRACTIONS = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans",
    "zu dem": "zum", "zu der": "zur", "von dem": "vom", "bei dem": "beim",
}  # fmt: skip


def article(word: str) -> str:
    """Returns `a` or `an`, by the sound the next word begins with."""
    vowel = word[0] in "aeiou" and not word.startswith(("uni", "eu", "use"))
    return "an" if vowel or word.startswith("hour") else "a"


def join(*parts: str) -> str:
    """Returns the parts that are not empty, one blank between them."""
    return " ".join(filter(None, parts))


@dataclass(frozen=True)
class Pronoun:
    """I, he, it ...: forms are (subject, object) and the German cases."""

    forms: tuple[str, str]
    cases: tuple[str, str, str]
    person: int = 3
    plural: bool = False
    definite = True
    after: Text | None = None

    def english(self, objective: bool = False) -> str:
        subject, object_ = self.forms
        return object_ if objective else subject

    def german(self, case: int) -> str:
        return self.cases[case]


PRONOUN = {
    "I": Pronoun(("I", "me"), ("ich", "mich", "mir"), 1),
    "you": Pronoun(("you", "you"), ("du", "dich", "dir"), 2),
    "he": Pronoun(("he", "him"), ("er", "ihn", "ihm")),
    "she": Pronoun(("she", "her"), ("sie", "sie", "ihr")),
    "it m": Pronoun(("it", "it"), ("er", "ihn", "ihm")),
    "it f": Pronoun(("it", "it"), ("sie", "sie", "ihr")),
    "it n": Pronoun(("it", "it"), ("es", "es", "ihm")),
    "we": Pronoun(("we", "us"), ("wir", "uns", "uns"), 1, plural=True),
    "they": Pronoun(("they", "them"), ("sie", "sie", "ihnen"), plural=True),
    "who": Pronoun(("who", "whom"), ("wer", "wen", "wem")),
}
POSSESSIVE_OF = {
    "I": "my", "you": "your", "he": "his", "she": "her", "we": "our",
    "they": "their",
}  # fmt: skip


@dataclass(frozen=True)
class Name:
    """A person's name, the same in both languages and all cases but one."""

    word: str
    pronoun: str
    person = 3
    plural = False
    definite = True
    after: Text | None = None

    def english(self, objective: bool = False) -> str:
        return self.word

    def german(self, case: int) -> str:
        return f"{self.word}s" if case == GENITIVE else self.word


@dataclass(frozen=True)
class Both:
    """Two phrases joined by `and`."""

    first: "Phrase"
    second: "Phrase"
    person = 3
    plural = True
    after: Text | None = None
    number: int = marks.numbered()

    @property
    def definite(self) -> bool:
        return self.first.definite and self.second.definite

    def english(self, objective: bool = False) -> str:
        one, two = self.first.english(objective), self.second.english(objective)
        return marks.joined(self.number, one, "and", two)

    def german(self, case: int) -> str:
        one, two = self.first.german(case), self.second.german(case)
        return marks.joined(self.number, one, "und", two)


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its company, declined as a whole.

    `determiner` is an English word of the tables above, "the", "" or a count;
    `adjectives` are pairs of stems; `owner` becomes `Anna's` or a genitive;
    `measured` is what a cup or a glass holds; `after` is a relative clause.
    """

    noun: Noun
    determiner: str | int = "the"
    adjectives: tuple[Text, ...] = ()
    plural: bool = False
    owner: "Phrase | None" = None
    measured: Noun | None = None
    after: Text | None = None
    number: int = marks.numbered()
    person = 3

    @property
    def definite(self) -> bool:
        vague = self.determiner in VAGUE
        return self.owner is not None or not (
            vague or isinstance(self.determiner, int)
        )

    @property
    def pronoun(self) -> str:
        """The key in PRONOUN of the pronoun that stands for this phrase."""
        if self.plural:
            return "they"
        classes = self.noun.classes
        sex = "he" if "he" in classes else "she" if "she" in classes else ""
        return sex or f"it {self.noun.gender}"

    def english(self, objective: bool = False) -> str:
        noun = self.noun.english_plural if self.plural else self.noun.english
        words = [*(adjective.english for adjective in self.adjectives), noun]
        if self.measured:
            words += ["of", self.measured.english]
        determiner = self.english_determiner(words[0])
        return marks.joined(self.number, determiner, *words)

    def english_determiner(self, following: str) -> str:
        """Returns the article, possessive or count before `following`."""
        if self.owner:
            owner = self.owner.english()
            return owner + "'s"
        if isinstance(self.determiner, int):
            return number(self.determiner).english
        if self.determiner in ("a", "not a"):
            return article(following)
        if self.determiner == "not":  # The verb says it: does not eat meat.
            return ""
        if self.determiner == "this" and self.plural:
            return "these"
        return self.determiner

    def german(self, case: int) -> str:
        key = "p" if self.plural else self.noun.gender
        determiner, ending = self.german_determiner(key, case)
        if self.determiner in DENIED:
            determiner = marks.double(determiner)
        words = [
            inflect(adjective.german, ending) for adjective in self.adjectives
        ]
        words += [decline(self.noun, self.plural, case)]
        if self.measured:
            words += ["", self.measured.german]  # English has `of`.
        possessor = self.german_possessor()
        return marks.joined(self.number, determiner, *words, possessor)

    def german_determiner(self, key: str, case: int) -> tuple[str, str]:
        """Returns the determiner, and the ending of an adjective after it."""
        strong = STRONG[key][case]
        word = self.determiner
        weak = weak_ending(key, case)
        if isinstance(self.owner, Name):
            return self.owner.german(GENITIVE), strong
        if self.owner or word == "the":
            return ARTICLE[key][case], weak
        if word in DER_WORDS:
            return DER_WORDS[word] + strong, weak
        if word in EIN_WORDS:
            ending = MIXED[key][case]
            return EIN_WORDS[word] + ending, weak if ending else strong
        if word in QUANTIFIERS:
            return QUANTIFIERS[word] + strong, strong
        if isinstance(word, int):
            return number(word).german, strong
        return AMOUNTS.get(word, ""), strong

    def german_possessor(self) -> str:
        """Returns `des Lehrers`, after the noun; a name goes in front."""
        if self.owner is None or isinstance(self.owner, Name):
            return ""
        return self.owner.german(GENITIVE)


Phrase = NounPhrase | Pronoun | Name | Both


def weak_ending(key: str, case: int) -> str:
    """Returns the adjective ending after a determiner that shows the case."""
    plain = case == NOMINATIVE or (case == ACCUSATIVE and key != "m")
    return "e" if plain and key != "p" else "en"


def inflect(adjective: str, ending: str) -> str:
    """Returns `alter`, `teure`: teuer loses its e before an ending."""
    stem = adjective[:-2] + "r" if adjective == "teuer" else adjective
    return stem + ending


def decline(noun: Noun, plural: bool, case: int) -> str:
    """Returns the noun in its case.

    The dative plural ends in -n, the genitive in -s, a weak noun in -n or -en.
    """
    if plural:
        bare = noun.german_plural.endswith(("n", "s")) or case != DATIVE
        return noun.german_plural if bare else f"{noun.german_plural}n"
    if noun.weak and case != NOMINATIVE:
        return noun.german_plural
    if case == GENITIVE and noun.gender != "f":
        return noun.german + genitive_ending(noun.german)
    return noun.german


def genitive_ending(word: str) -> str:
    """Returns -es or -s: `Kindes`, `Lehrers`.

    It is -es after a single syllable or a hissing sound.
    """
    vowels = [i for i, letter in enumerate(word.lower()) if letter in VOWELS]
    single = vowels[-1] - vowels[0] < 2 and word[-1] not in VOWELS + "f"
    return "es" if single or word.endswith(("s", "ß", "z", "x")) else "s"


VOWELS = "aeiouyäöü"


def prepositional(preposition: str, phrase: Phrase, case: int) -> str:
    """Returns `im Garten`: `in` merges with a plain definite article."""
    words = phrase.german(case)
    melts = (
        isinstance(phrase, NounPhrase)
        and phrase.determiner == "the"
        and phrase.after is None
        and not isinstance(phrase.owner, Name)
    )
    article, rest = words[:3], words[3:]
    short = CONTRACTIONS.get(f"{preposition} {article}") if melts else None
    return marks.double(short) + rest if short else f"{preposition} {words}"


NOTHING = Text("", "")


@dataclass(frozen=True)
class Clause:
    """A subject, a verb and their company, neither English nor German yet.

    `tense` is "present", "progressive", "past", "future" or "perfect", unless
    `modal` names a row of MODALS.  `complement` closes the middle field: a
    predicate, a direction or a prepositional object.  `fronted` is "time",
    "place" or a Text (a question or relative word) that opens both sides.
    """

    subject: Phrase
    verb: Verb
    tense: str = "present"
    modal: str = ""
    negative: bool = False
    accusative: Phrase | None = None
    dative: Phrase | None = None
    recipient: bool = False  # the English dative is `to the pupil`
    complement: Text = NOTHING
    time: Text = NOTHING
    frequency: Text = NOTHING
    manner: Text = NOTHING
    place: Text = NOTHING
    yet: Text = NOTHING  # German only, right before the negation: noch nicht
    fronted: str | Text = ""
    trailing: Text | None = None  # a clause that ends both sides
    number: int = marks.numbered()

    def marked(self, words: str, slot: str) -> str:
        """Returns `words` with the mark of a slot of this clause."""
        return marks.marked(words, self.number, slot)

    def text(self, slot: str) -> Text:
        """Returns an adverbial in its usual place; nothing if it is fronted."""
        text = getattr(self, slot)
        if text is NOTHING or self.fronted == slot:
            return NOTHING
        return marks.linked(text, self.number, slot)

    @property
    def front(self) -> Text:
        """What opens the clause besides the subject."""
        front = self.fronted
        if not front:
            return NOTHING
        text = front if isinstance(front, Text) else getattr(self, front)
        return marks.linked(text, self.number, "front")

    @property
    def object(self) -> Phrase | None:
        """The accusative; in a negative clause an indefinite one is kein."""
        phrase = self.accusative
        if not self.negative or phrase is None or phrase.definite:
            return phrase
        denied = {"a": "not a", "": "not"}
        return replace(phrase, determiner=denied.get(phrase.determiner, "any"))


# English auxiliary, its link to the infinitive, and the German forms for ich,
# du, er and the plural.  Without an auxiliary, the key is a verb that takes do.
MODALS = {
    "can": ("can", "", "kann kannst kann können"),
    "could": ("could", "", "konnte konntest konnte konnten"),
    "must": ("must", "", "muss musst muss müssen"),
    "must not": ("must", "", "darf darfst darf dürfen"),
    "may": ("may", "", "darf darfst darf dürfen"),
    "should": ("should", "", "sollte solltest sollte sollten"),
    "would like": ("would", "like to", "möchte möchtest möchte möchten"),
    "like": ("", "to", ""),  # no verb in German but an adverb: gern
    "want": ("", "to", "will willst will wollen"),
    "have": ("", "to", "muss musst muss müssen"),
    "wanted": ("", "to", "wollte wolltest wollte wollten"),
    "had": ("", "to", "musste musstest musste mussten"),
}
LEXICAL_MODALS = {"wanted": "want", "had": "have"}

PRESENT = {
    "sein": "bin bist ist sind",
    "haben": "habe hast hat haben",
    "werden": "werde wirst wird werden",
    "wissen": "weiß weißt weiß wissen",
    "mögen": "mag magst mag mögen",
}
PRETERITE = {
    "sein": "war warst war waren",
    "haben": "hatte hattest hatte hatten",
}
REFLEXIVE = ("mich", "dich", "sich", "uns")


def form(forms: str, subject: Phrase) -> str:
    """Returns which of four forms (ich, du, er, plural) fits `subject`."""
    return forms.split()[3 if subject.plural else subject.person - 1]


def conjugate(verb: Verb, subject: Phrase) -> str:
    """Returns the German present without its prefix: ich lese, du liest."""
    if verb.infinitive in PRESENT:
        return form(PRESENT[verb.infinitive], subject)
    if subject.plural:
        return verb.infinitive
    if subject.person == 1:
        return german_stem(verb.infinitive) + "e"
    if subject.person == 3:
        return verb.third
    return verb.third[:-1] + ("t" if verb.third[-2] in "sßz" else "st")


def german_verb(clause: Clause) -> tuple[str, str, str]:
    """Returns the finite verb, the prefix it left, and the bracket's end."""
    verb, subject = clause.verb, clause.subject
    infinitive = verb.prefix + verb.infinitive
    if clause.modal and MODALS[clause.modal][2]:
        finite = form(MODALS[clause.modal][2], subject)
        return clause.marked(finite, "modal"), "", infinitive
    if clause.tense == "future":
        return form(PRESENT["werden"], subject), "", infinitive
    if clause.tense in ("past", "perfect", "pluperfect"):
        if verb.infinitive in PRETERITE:
            return form(PRETERITE[verb.infinitive], subject), "", ""
        forms = PRETERITE if clause.tense == "pluperfect" else PRESENT
        finite = form(forms[verb.auxiliary], subject)
        return finite, "", verb.german_participle
    return conjugate(verb, subject), verb.prefix, ""


def reflexive(clause: Clause) -> str:
    """Returns `sich` in the subject's form, or nothing."""
    if not clause.verb.reflexive:
        return ""
    third = clause.subject.person == 3
    sich = "sich" if third else form(" ".join(REFLEXIVE), clause.subject)
    return clause.marked(sich, "verb")


def german_subject(clause: Clause) -> str:
    """Returns the subject and its reflexive, which only a pronoun precedes."""
    subject = bare_subject(clause)
    if isinstance(clause.subject, Pronoun):
        return join(subject, reflexive(clause))
    return join(reflexive(clause), subject)


def bare_subject(clause: Clause) -> str:
    """Returns the subject with its relative clause."""
    subject = clause.subject.german(NOMINATIVE) + relative(clause.subject)
    return clause.marked(subject, "subject")


def relative(phrase: Phrase) -> str:
    """Returns the German relative clause after `phrase`, set off by commas."""
    return f" , {phrase.after.german} ," if phrase.after else ""


def german_middle(clause: Clause) -> str:
    """Returns the middle field after the subject, in its one order."""
    direct, indirect = clause.object, clause.dative
    pronouns, nouns, vague = [], [], []
    if direct is not None:
        heavy = nouns if direct.definite else vague
        place = pronouns if isinstance(direct, Pronoun) else heavy
        slot = "accusative" if direct.definite else "negation"
        place.append(clause.marked(direct.german(ACCUSATIVE), slot))
    if indirect is not None:
        words = clause.marked(indirect.german(DATIVE), "dative")
        if isinstance(indirect, Pronoun):
            pronouns.append(words)
        else:
            nouns.insert(0, words)
    nicht = "nicht" if clause.negative and not vague else ""
    slots = [clause.text(slot).german for slot in ("time", "frequency")]
    after = [clause.text(slot).german for slot in ("manner", "place")]
    return join(
        *pronouns,
        *slots,
        *nouns,
        clause.text("yet").german,
        clause.marked(nicht, "negation"),
        *after,
        *vague,
        clause.text("complement").german,
    )


def german(clause: Clause, order: str = "main") -> str:
    """Returns the German clause: "main", "question" (verb first) or "last"."""
    finite, prefix, closing = german_verb(clause)
    middle = german_middle(clause)
    trailing = f", {clause.trailing.german}" if clause.trailing else ""
    front = clause.front.german
    if order == "main" and not front:
        front, subject = bare_subject(clause), reflexive(clause)
    else:
        subject = german_subject(clause)
    if order == "last":
        bracket = clause.marked(join(closing, prefix + finite), "verb")
        return join(front, subject, middle, bracket, trailing)
    finite = clause.marked(finite, "verb")
    tail = clause.marked(join(prefix, closing), "verb")
    return join(front, finite, subject, middle, tail, trailing)


def german_infinitive(clause: Clause) -> str:
    """Returns the clause without its subject.

    Its `zu` may be in the verb: die Tür zu öffnen, früh aufzustehen.
    """
    verb = clause.verb
    middle = join(reflexive(clause), german_middle(clause))
    if verb.prefix:
        whole = marks.double(f"{verb.prefix}zu{verb.infinitive}")
        return join(middle, clause.marked(clause.marked(whole, "verb"), "to"))
    infinitive = clause.marked(verb.infinitive, "verb")
    return join(middle, clause.marked("zu", "to"), infinitive)


BE = {"present": ("am", "is", "are"), "past": ("was", "was", "were")}


def agree(forms: tuple[str, str, str], subject: Phrase) -> str:
    """Returns which of the forms for I, he and the rest fits `subject`."""
    first, third, rest = forms
    if subject.plural or subject.person == 2:
        return rest
    return first if subject.person == 1 else third


def english_auxiliary(clause: Clause) -> tuple[str, str]:
    """Returns the auxiliary of the tense or modal, and what follows it."""
    verb, subject = clause.verb, clause.subject
    if clause.modal:
        auxiliary, link, _ = MODALS[clause.modal]
        return auxiliary, join(link, clause.marked(verb.base, "verb"))
    if clause.tense == "future":
        return "will", verb.base
    if clause.tense == "perfect":
        return agree(("have", "has", "have"), subject), verb.participle
    if clause.tense == "pluperfect":
        return "had", verb.participle
    if clause.tense == "progressive":
        return agree(BE["present"], subject), progressive(verb.base)
    if verb.base == "be":
        return agree(BE[clause.tense], subject), ""
    return "", ""


def english_verb(clause: Clause, support: bool) -> tuple[str, str]:
    """Returns auxiliary and main verb; `support` adds do if there is none."""
    auxiliary, main = english_auxiliary(clause)
    if auxiliary:
        return auxiliary, main
    base, past = clause.verb.base, clause.verb.past
    rest = ""
    if clause.modal:
        base = LEXICAL_MODALS.get(clause.modal, clause.modal)
        past, rest = clause.modal, main
    if clause.tense == "past" or clause.modal in LEXICAL_MODALS:
        return ("did", join(base, rest)) if support else ("", join(past, rest))
    if support:
        do = agree(("do", "does", "do"), clause.subject)
        return do, join(base, rest)
    third = "has" if base == "have" else third_person(base)
    return "", join(agree((base, third, base), clause.subject), rest)


def english_objects(clause: Clause) -> str:
    """Returns particle and objects; a pronoun goes first: turn it on."""
    direct = clause.object
    accusative = direct.english(True) if direct is not None else ""
    accusative = clause.marked(accusative, "accusative")
    indirect = clause.dative.english(True) if clause.dative else ""
    indirect = clause.marked(indirect, "dative")
    if clause.recipient:
        return join(accusative, clause.marked("to", "recipient"), indirect)
    particle = english_particle(clause)
    separate = clause.verb.particle in SEPARATE_PARTICLES
    if separate and isinstance(direct, Pronoun):
        return join(accusative, particle)
    return join(particle, indirect, accusative)


def english_particle(clause: Clause) -> str:
    """Returns `on`, `forward to`.

    Its last word may be a German preposition.
    """
    if not clause.verb.particle:
        return ""
    rest, _, last = clause.verb.particle.rpartition(" ")
    governs = any("+" in role for role, _ in clause.verb.frame)
    last = clause.marked(last, "complement" if governs else "verb")
    return join(clause.marked(rest, "verb"), last)


SEPARATE_PARTICLES = ("up", "on", "off", "in", "away", "along")


def english_rest(clause: Clause) -> str:
    """Returns everything after the verb, in English order."""
    slots = [clause.text(slot).english for slot in ("manner", "place", "time")]
    trailing = clause.trailing.english if clause.trailing else ""
    complement = clause.text("complement").english
    return join(english_objects(clause), complement, *slots, trailing)


def english(clause: Clause, order: str = "main") -> str:
    """Returns the English clause: "main", or "question" (auxiliary first)."""
    inverted = order == "question"
    auxiliary, main = english_verb(clause, clause.negative or inverted)
    after = clause.subject.after
    subject = join(clause.subject.english(), after.english if after else "")
    subject = clause.marked(subject, "subject")
    negation = clause.marked("not" if clause.negative else "", "negation")
    if auxiliary == "can" and negation and not inverted:
        auxiliary = clause.marked(marks.double("cannot"), "negation")
        negation = ""
    slot = "modal" if clause.modal else "verb"
    auxiliary, main = clause.marked(auxiliary, slot), clause.marked(main, slot)
    opening = (auxiliary, subject) if inverted else (subject, auxiliary)
    frequency = clause.text("frequency").english
    rest = english_rest(clause)
    front = clause.front.english
    return join(front, *opening, negation, frequency, main, rest)


def english_infinitive(clause: Clause) -> str:
    """Returns the clause without its subject: to open the door."""
    base = clause.marked(clause.verb.base, "verb")
    return join(clause.marked("to", "to"), base, english_rest(clause))


def sentence(words: str, end: str = ".") -> str:
    """Returns words with commas in place, a capital and a final mark."""
    text = " ".join(words.replace(",", " , ").split())
    while " , ," in text:
        text = text.replace(" , ,", " ,")
    text = text.removesuffix(" ,").replace(" ,", ",")
    return text[0].upper() + text[1:] + end
