"""The words of the embedded English-German corpus, as tables to be read.

Every row is one word in both languages; columns are divided by `|`.  What a
rule can derive is left out: English `-s` and `-ing`, German cases and persons.

Nouns        english[/plural] | article singular [plural] | classes
             No German plural marks a mass noun; `*` after the singular marks
             the weak nouns, whose other cases are like the plural (der Junge,
             den Jungen, die Jungen).
Verbs        base [past [participle]] [+ particle] | [sich] infinitive
             [third] [ist] [participle] | frame | places | manners
             `auf_stehen` is separable; `ist` before the participle picks the
             auxiliary sein; the third person is written without the prefix.
             Manners also mark the `stative` verbs, which have no progressive,
             and those of a `moment`, told only in the past.
Adjectives   english[/comparative] | german[/comparative] | classes they fit

Classes carry the meaning: a verb's frame names the classes of its objects, so
that people eat food and open doors.
"""

from dataclasses import dataclass

DOUBLING = {
    "swim",
    "sit",
    "run",
    "get",
    "put",
    "forget",
    "begin",
    "knit",
    "travel",
}
UNSTRESSED_PREFIXES = ("be", "er", "ver", "ge", "ent", "über")


@dataclass(frozen=True)
class Text:
    """A constituent that never inflects: its two sides."""

    english: str
    german: str


@dataclass(frozen=True, eq=False)
class Noun:
    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str  # "m", "f" or "n"
    weak: bool
    classes: frozenset[str]

    @property
    def mass(self) -> bool:
        return not self.german_plural


@dataclass(frozen=True, eq=False)
class Verb:
    base: str
    past: str
    participle: str
    particle: str
    infinitive: str
    prefix: str
    third: str
    german_participle: str
    auxiliary: str  # "haben" or "sein"
    reflexive: bool
    frame: tuple[tuple[str, tuple[str, ...]], ...]
    places: tuple[str, ...]
    manners: tuple[str, ...]

    @property
    def label(self) -> str:
        """The verb as English quotes it: take off."""
        return f"{self.base} {self.particle}".strip()

    @property
    def stative(self) -> bool:
        """Whether English says `owns` and never `is owning`."""
        return "stative" in self.manners


@dataclass(frozen=True, eq=False)
class Adjective:
    english: str
    comparative: str
    german: str
    german_comparative: str
    classes: frozenset[str]


def rows(table: str) -> list[list[str]]:
    """Returns the rows of a table, each a list of stripped columns."""
    lines = (line for line in table.splitlines() if line.strip())
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def texts(table: str) -> list[Text]:
    """Returns the rows of a table of two columns."""
    return [Text(*row) for row in rows(table)]


def third_person(base: str) -> str:
    """Returns `reads`, `watches`, `carries`; nouns take the same ending."""
    if base.endswith(("s", "x", "ch", "sh", "go", "do", "potato", "tomato")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeou":
        return base[:-1] + "ies"
    return base + "s"


def progressive(base: str) -> str:
    """Returns `reading`, `writing`, `lying`, `swimming`."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + base[-1] * (base in DOUBLING) + "ing"


def parse_noun(english: str, german: str, classes: str) -> Noun:
    """Returns the noun of one row of NOUNS."""
    singular, _, plural = english.partition("/")
    article, word, *rest = german.split()
    return Noun(
        english=singular,
        english_plural=plural or third_person(singular),
        german=word.rstrip("*"),
        german_plural=rest[0] if rest else "",
        gender={"der": "m", "die": "f", "das": "n"}[article],
        weak=word.endswith("*"),
        classes=frozenset(classes.split()),
    )


def parse_frame(frame: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Returns `dat:person acc:gift,food` as (role, classes) pairs.

    A frame without objects is `-`.
    """
    if frame == "-":
        return ()
    slots = (slot.partition(":") for slot in frame.split())
    return tuple((role, tuple(names.split(","))) for role, _, names in slots)


def regular_past(base: str) -> str:
    """Returns `opened`, `baked`, `carried`."""
    if base.endswith("y") and base[-2] not in "aeou":
        return base[:-1] + "ied"
    doubled = base[-1] * (base in DOUBLING)
    return base + doubled + ("d" if base.endswith("e") else "ed")


def german_stem(infinitive: str) -> str:
    """Returns `kauf` of kaufen, `kletter` of klettern."""
    return infinitive.removesuffix("n").removesuffix("e")


def third_person_german(infinitive: str) -> str:
    """Returns `kauft`, `arbeitet`, `öffnet`.

    An e separates a hard stem from the t.
    """
    stem = german_stem(infinitive)
    hard = stem.endswith(("t", "d", "ffn", "gn", "chn"))
    return stem + ("et" if hard else "t")


def regular_participle(infinitive: str) -> str:
    """Returns `gekauft`, `besucht`: unstressed beginnings take no ge-."""
    third = third_person_german(infinitive)
    bare = infinitive.startswith(UNSTRESSED_PREFIXES)
    return third if bare or infinitive.endswith("ieren") else "ge" + third


def german_forms(german: str) -> tuple[str, str, str, str, str]:
    """Returns the forms of a row.

    They are prefix, infinitive, third person, participle and auxiliary.
    """
    infinitive, *given = german.split()
    auxiliary = "sein" if "ist" in given else "haben"
    given = [form for form in given if form != "ist"]
    prefix, _, stem = infinitive.rpartition("_")
    participle = given[-1] if given else prefix + regular_participle(stem)
    third = given[0] if len(given) > 1 else third_person_german(stem)
    return prefix, stem, third, participle, auxiliary


def parse_verb(
    english: str,
    german: str,
    frame: str = "-",
    places: str = "-",
    manners: str = "-",
) -> Verb:
    """Returns the verb of one row of VERBS."""
    forms, _, particle = english.partition(" + ")
    base, *past = forms.split()
    past = past or [regular_past(base)]
    prefix, infinitive, third, participle, auxiliary = german_forms(
        german.removeprefix("sich ")
    )
    return Verb(
        base=base,
        past=past[0],
        participle=past[-1],
        particle=particle,
        infinitive=infinitive,
        prefix=prefix,
        third=third,
        german_participle=participle,
        auxiliary=auxiliary,
        reflexive=german.startswith("sich "),
        frame=parse_frame(frame),
        places=tuple(places.replace("-", "").split()),
        manners=tuple(manners.replace("-", "").split()),
    )


def parse_adjective(english: str, german: str, classes: str) -> Adjective:
    """Returns the adjective of one row of ADJECTIVES."""
    positive, _, comparative = english.partition("/")
    german_positive, _, german_comparative = german.partition("/")
    return Adjective(
        english=positive,
        comparative=comparative,
        german=german_positive,
        german_comparative=german_comparative or german_positive + "er",
        classes=frozenset(classes.split()),
    )


NOUNS = """
man/men | der Mann Männer | person he adult
woman/women | die Frau Frauen | person she adult
child/children | das Kind Kinder | person young minor
boy | der Junge* Jungen | person he young minor
girl | das Mädchen Mädchen | person she young minor
mother | die Mutter Mütter | person she family single
father | der Vater Väter | person he family single
brother | der Bruder Brüder | person he family young
sister | die Schwester Schwestern | person she family young
son | der Sohn Söhne | person he family young
daughter | die Tochter Töchter | person she family young
grandmother | die Großmutter Großmütter | person she family single
grandfather | der Großvater Großväter | person he family single
aunt | die Tante Tanten | person she family
uncle | der Onkel Onkel | person he family
teacher | der Lehrer Lehrer | person he job adult
doctor | der Arzt Ärzte | person he job adult
nurse | die Krankenschwester Krankenschwestern | person she job adult
student | der Student* Studenten | person he adult
pupil | der Schüler Schüler | person he young minor
neighbour | der Nachbar* Nachbarn | person he adult known
friend | der Freund Freunde | person he adult known
colleague | der Kollege* Kollegen | person he adult known
boss | der Chef Chefs | person he adult known
baker | der Bäcker Bäcker | person he job adult
farmer | der Bauer* Bauern | person he job adult
gardener | der Gärtner Gärtner | person he job adult
policeman/policemen | der Polizist* Polizisten | person he job adult
painter | der Maler Maler | person he job adult
musician | der Musiker Musiker | person he job adult
waiter | der Kellner Kellner | person he job adult
waitress | die Kellnerin Kellnerinnen | person she job adult
actor | der Schauspieler Schauspieler | person he job adult
actress | die Schauspielerin Schauspielerinnen | person she job adult
guest | der Gast Gäste | person he adult
tourist | der Tourist* Touristen | person he adult
engineer | der Ingenieur Ingenieure | person he job adult
lawyer | der Anwalt Anwälte | person he job adult
journalist | der Journalist* Journalisten | person he job adult
fisherman/fishermen | der Fischer Fischer | person he job adult
chef | der Koch Köche | person he job adult
tailor | der Schneider Schneider | person he job adult
judge | der Richter Richter | person he job adult
writer | der Schriftsteller Schriftsteller | person he job adult
dog | der Hund Hunde | animal pet runner hunter
cat | die Katze Katzen | animal pet runner hunter
horse | das Pferd Pferde | animal farm runner
bird | der Vogel Vögel | animal pet
cow | die Kuh Kühe | animal farm
pig | das Schwein Schweine | animal farm
mouse/mice | die Maus Mäuse | animal runner
rabbit | das Kaninchen Kaninchen | animal pet runner
duck | die Ente Enten | animal farm
goose/geese | die Gans Gänse | animal farm
goat | die Ziege Ziegen | animal farm runner
donkey | der Esel Esel | animal farm
elephant | der Elefant* Elefanten | animal wild
lion | der Löwe* Löwen | animal wild hunter
bear | der Bär* Bären | animal wild hunter
monkey | der Affe* Affen | animal wild
fox | der Fuchs Füchse | animal wild runner hunter
wolf/wolves | der Wolf Wölfe | animal wild runner hunter
hedgehog | der Igel Igel | animal
snake | die Schlange Schlangen | animal wild
apple | der Apfel Äpfel | food fruit count peelable plenty
pear | die Birne Birnen | food fruit count peelable plenty
banana | die Banane Bananen | food count peelable
orange | die Orange Orangen | food count peelable
plum | die Pflaume Pflaumen | food fruit count plenty
cherry | die Kirsche Kirschen | food fruit count plenty
strawberry | die Erdbeere Erdbeeren | food fruit count plenty
tomato | die Tomate Tomaten | food count fruit plenty
potato | die Kartoffel Kartoffeln | food count dish peelable plenty
carrot | die Karotte Karotten | food count dish peelable plenty
onion | die Zwiebel Zwiebeln | count peelable grocery
egg | das Ei Eier | food count dish plenty
cake | der Kuchen Kuchen | food baked count portion
biscuit | der Keks Kekse | food baked count plenty
roll | das Brötchen Brötchen | food baked count
pizza | die Pizza Pizzen | food baked count order
soup | die Suppe Suppen | food dish count order
salad | der Salat Salate | food count order
sausage | die Wurst Würste | food count order
pancake | der Pfannkuchen Pfannkuchen | food baked count order
bread | das Brot | food baked massive portion
cheese | der Käse | food massive portion
rice | der Reis | food dish massive
meat | das Fleisch | food dish massive order
fish | der Fisch | food dish massive order
ham | der Schinken | food massive order
honey | der Honig | massive grocery
chocolate | die Schokolade | food massive portion
ice cream | das Eis | food massive order
fruit | das Obst | food massive
butter | die Butter | massive grocery
sugar | der Zucker | massive grocery
flour | das Mehl | massive grocery
water | das Wasser | drink cold
milk | die Milch | drink cold
coffee | der Kaffee | drink hot order
tea | der Tee | drink hot order
juice | der Saft | drink cold order
apple juice | der Apfelsaft | drink cold order
orange juice | der Orangensaft | drink cold order
beer | das Bier | drink cold alcohol order
wine | der Wein | drink alcohol order
lemonade | die Limonade | drink cold order
book | das Buch Bücher | text flat gift owned written loan
newspaper | die Zeitung Zeitungen | text flat waste
letter | der Brief Briefe | text flat written mail
novel | der Roman Romane | text flat gift written loan
poem | das Gedicht Gedichte | text written
magazine | die Zeitschrift Zeitschriften | text flat waste loan
story/stories | die Geschichte Geschichten | text written tale
fairy tale | das Märchen Märchen | text tale
joke | der Witz Witze | tale joke
report | der Bericht Berichte | text written homework mail
message | die Nachricht Nachrichten | text written mail
postcard | die Postkarte Postkarten | text flat written mail
cookbook | das Kochbuch Kochbücher | text flat gift owned loan
dictionary | das Wörterbuch Wörterbücher | flat gift owned loan
textbook | das Lehrbuch Lehrbücher | text flat owned loan
children's book | das Kinderbuch Kinderbücher | text flat gift written loan
travel guide | der Reiseführer Reiseführer | text flat gift owned loan
exercise | die Aufgabe Aufgaben | problem homework
question | die Frage Fragen | problem
riddle | das Rätsel Rätsel | problem
rule | die Regel Regeln | topic rule
shirt | das Hemd Hemden | clothes
dress | das Kleid Kleider | clothes gift
jacket | die Jacke Jacken | clothes coatlike
coat | der Mantel Mäntel | clothes coatlike
winter coat | der Wintermantel Wintermäntel | clothes coatlike
raincoat | der Regenmantel Regenmäntel | clothes coatlike
hat | der Hut Hüte | clothes coatlike
skirt | der Rock Röcke | clothes
scarf/scarves | der Schal Schals | clothes knitted gift
jumper | der Pullover Pullover | clothes knitted gift
cap | die Mütze Mützen | clothes knitted
tie | die Krawatte Krawatten | clothes gift
suit | der Anzug Anzüge | clothes
shoe | der Schuh Schuhe | clothes paired
glove | der Handschuh Handschuhe | clothes paired knitted
boot | der Stiefel Stiefel | clothes paired
table | der Tisch Tische | furniture surface
kitchen table | der Küchentisch Küchentische | furniture surface
desk | der Schreibtisch Schreibtische | furniture surface
chair | der Stuhl Stühle | furniture surface
armchair | der Sessel Sessel | furniture surface
sofa | das Sofa Sofas | furniture surface
bed | das Bett Betten | furniture surface
shelf/shelves | das Regal Regale | furniture
bookshelf/bookshelves | das Bücherregal Bücherregale | furniture
cupboard | der Schrank Schränke | furniture openable
wardrobe | der Kleiderschrank Kleiderschränke | furniture openable
mirror | der Spiegel Spiegel | thing hanging cleanable
lamp | die Lampe Lampen | thing device upright
desk lamp | die Schreibtischlampe Schreibtischlampen | thing device upright
carpet | der Teppich Teppiche | thing cleanable
door | die Tür Türen | openable door
front door | die Haustür Haustüren | openable door
garden gate | das Gartentor Gartentore | openable door
window | das Fenster Fenster | openable cleanable
kitchen window | das Küchenfenster Küchenfenster | openable cleanable
drawer | die Schublade Schubladen | openable
box | die Kiste Kisten | openable load upright
suitcase | der Koffer Koffer | openable load packable upright
bag | die Tasche Taschen | openable load upright small
basket | der Korb Körbe | load upright
knife/knives | das Messer Messer | thing flat small
fork | die Gabel Gabeln | flat small
spoon | der Löffel Löffel | flat small
plate | der Teller Teller | thing upright crockery
cup | die Tasse Tassen | thing upright crockery
glass | das Glas Gläser | upright crockery
bottle | die Flasche Flaschen | upright
pan | die Pfanne Pfannen | thing upright crockery
key | der Schlüssel Schlüssel | small flat carried
house key | der Hausschlüssel Hausschlüssel | small flat carried
umbrella | der Regenschirm Regenschirme | thing small carried
wallet | die Geldbörse Geldbörsen | thing small carried flat gift
mobile phone | das Handy Handys | thing small carried flat gift
camera | die Kamera Kameras | thing small carried gift apparatus
computer | der Computer Computer | thing device apparatus
radio | das Radio Radios | thing device apparatus
television | der Fernseher Fernseher | thing device apparatus
washing machine | die Waschmaschine Waschmaschinen | thing device apparatus
vacuum cleaner | der Staubsauger Staubsauger | thing apparatus
fridge | der Kühlschrank Kühlschränke | thing openable apparatus
clock | die Uhr Uhren | thing hanging apparatus gift
toothbrush | die Zahnbürste Zahnbürsten | small carried
pencil | der Bleistift Bleistifte | small flat
ball | der Ball Bälle | small gift
doll | die Puppe Puppen | small gift
picture | das Bild Bilder | thing hanging painted gift
photo | das Foto Fotos | hanging flat
vase | die Vase Vasen | thing upright gift
candle | die Kerze Kerzen | upright gift
flower | die Blume Blumen | plant gift plenty picked
rose | die Rose Rosen | plant gift plenty picked
tree | der Baum Bäume | plant tree
ring | der Ring Ringe | gift small
present | das Geschenk Geschenke | parcel
birthday present | das Geburtstagsgeschenk Geburtstagsgeschenke | parcel
parcel | das Paket Pakete | parcel mail load
blanket | die Decke Decken | thing flat
towel | das Handtuch Handtücher | thing flat
wall | die Wand Wände | side
euro | der Euro Euro | money
bill | die Rechnung Rechnungen | bill
train ticket | die Fahrkarte Fahrkarten | small flat carried
car | das Auto Autos | vehicle owned road cabin
bicycle | das Fahrrad Fahrräder | vehicle owned gift
motorbike | das Motorrad Motorräder | vehicle owned
lorry | der Lastwagen Lastwagen | vehicle road
bus | der Bus Busse | vehicle transit road cabin
train | der Zug Züge | vehicle transit cabin
tram | die Straßenbahn Straßenbahnen | vehicle transit cabin
taxi | das Taxi Taxis | vehicle road cabin
ship | das Schiff Schiffe | vehicle
house | das Haus Häuser | building home
hospital | das Krankenhaus Krankenhäuser | building
school | die Schule Schulen | building
church | die Kirche Kirchen | building sight
castle | das Schloss Schlösser | building sight
bridge | die Brücke Brücken | building sight
museum | das Museum Museen | building sight
library | die Bibliothek Bibliotheken | building
railway station | der Bahnhof Bahnhöfe | building
airport | der Flughafen Flughäfen | building
hotel | das Hotel Hotels | building eatery
restaurant | das Restaurant Restaurants | building eatery
café | das Café Cafés | building eatery
cinema | das Kino Kinos | building
theatre | das Theater Theater | building
market | der Markt Märkte | spot
supermarket | der Supermarkt Supermärkte | building
bakery | die Bäckerei Bäckereien | building
bookshop | die Buchhandlung Buchhandlungen | building
pharmacy | die Apotheke Apotheken | building
bank | die Bank Banken | building
town hall | das Rathaus Rathäuser | building sight
university | die Universität Universitäten | building
factory | die Fabrik Fabriken | building
office | das Büro Büros | room
kitchen | die Küche Küchen | room cleanable
living room | das Wohnzimmer Wohnzimmer | room messy
bedroom | das Schlafzimmer Schlafzimmer | room messy
bathroom | das Badezimmer Badezimmer | room cleanable
cellar | der Keller Keller | room messy
garage | die Garage Garagen | room messy
flat | die Wohnung Wohnungen | room home
classroom | das Klassenzimmer Klassenzimmer | room
balcony | der Balkon Balkone | spot
garden | der Garten Gärten | green spot
park | der Park Parks | green spot
forest | der Wald Wälder | green spot
meadow | die Wiese Wiesen | green spot
lake | der See Seen | waters
river | der Fluss Flüsse | waters
beach | der Strand Strände | spot
village | das Dorf Dörfer | settlement
town | die Stadt Städte | settlement
island | die Insel Inseln | settlement
zoo | der Zoo Zoos | spot
playground | der Spielplatz Spielplätze | spot
swimming pool | das Schwimmbad Schwimmbäder | building
concert | das Konzert Konzerte | event show
football match | das Fußballspiel Fußballspiele | event show
film | der Film Filme | event show topic
party | die Party Partys | event
wedding | die Hochzeit Hochzeiten | event
exam | die Prüfung Prüfungen | exam event topic course
meeting | die Besprechung Besprechungen | event course
journey | die Reise Reisen | event topic
birthday | der Geburtstag Geburtstage | event
weekend | das Wochenende Wochenenden | event
competition | der Wettbewerb Wettbewerbe | event course
course | der Kurs Kurse | course show
weather | das Wetter | topic trouble
music | die Musik | topic trouble
noise | der Lärm | trouble
food | das Essen | trouble
history | die Geschichte | learned
art | die Kunst | learned
sport | der Sport | learned
politics | die Politik | topic learned
technology | die Technik | learned
nature | die Natur | learned
"""

VERBS = """
eat ate eaten | essen isst gegessen | acc:food | home eatery green | pace
drink drank drunk | trinken getrunken | acc:drink | home eatery green | pace
buy bought | kaufen | acc:clothes,thing,gift,count,massive,vehicle
buy bought | kaufen | acc:count,massive,grocery | shop
sell sold | verkaufen | acc:vehicle,thing,home
order | bestellen | acc:order | eatery
cook | kochen | acc:dish | kitchen
bake | backen gebacken | acc:baked | kitchen
peel | schälen | acc:peelable | kitchen | care
pick | pflücken | acc:fruit,picked | garden | care
read read | lesen liest gelesen | acc:text | home green | pace attention
write wrote written | schreiben geschrieben | acc:written | desk | pace
translate | übersetzen | acc:text | desk | pace
borrow | aus_leihen ausgeliehen | acc:loan | library
return | zurück_geben gibt zurückgegeben | acc:loan
send sent | schicken | dat:person acc:mail,parcel,painted
give gave given | geben gibt gegeben | dat:person acc:gift,parcel,carried
show showed shown | zeigen | dat:person acc:owned,hanging,gift,sight
lend lent | leihen geliehen | dat:person acc:owned,carried
bring brought | bringen gebracht | dat:person acc:gift,parcel,count,crockery
tell told | erzählen | dat:person acc:tale
explain | erklären | acc:problem,rule to:person | - | patience pace
see saw seen | sehen sieht gesehen | acc:person,animal | garden | stative
hear heard | hören | acc:person,animal | garden | stative
find found | finden gefunden | acc:small,carried,clothes | home | moment
look + for | suchen | acc:small,carried,pet,clothes | home
lose lost | verlieren verloren | acc:carried,small | town | moment
forget forgot forgotten | vergessen vergisst vergessen | acc:carried | | moment
need | brauchen | acc:clothes,carried,apparatus,furniture | - | stative
know knew known | kennen gekannt | acc:person,settlement,sight | - | stative
love | lieben | acc:family,pet,green | - | stative
own | besitzen besessen | acc:owned,home,pet,farm | - | stative
like | mögen mag gemocht | acc:food,drink,pet,known | - | stative
visit | besuchen | acc:person,sight
meet met | treffen trifft getroffen | acc:person | town eatery
ask | fragen | acc:person
call | an_rufen angerufen | acc:person
invite | ein_laden lädt eingeladen | acc:person
pick + up | ab_holen | acc:person,parcel
wake woke woken | wecken | acc:person
greet | begrüßen | acc:person | - | warmth
help | helfen hilft geholfen | dat:person | kitchen garden
thank | danken | dat:person | - | warmth
answer | antworten | dat:person | - | pace
congratulate | gratulieren | dat:person | - | warmth
listen + to | zu_hören | dat:person | - | attention patience
follow | folgen ist gefolgt | dat:person,animal | - | pace
trust | vertrauen | dat:person | - | stative
turn + on | an_machen | acc:device
turn + off | aus_machen | acc:device
open | öffnen | acc:openable,parcel | - | care
close | schließen geschlossen | acc:openable | - | care
lock | ab_schließen abgeschlossen | acc:door
put put + on | an_ziehen angezogen | acc:clothes | - | pace
take took taken + off | aus_ziehen ausgezogen | acc:clothes | - | pace
try + on | an_probieren | acc:clothes
wear wore worn | tragen trägt getragen | acc:clothes
carry | tragen trägt getragen | acc:load | - | care
wash | waschen wäscht gewaschen | acc:clothes,road | - | thorough
clean | putzen | acc:cleanable,paired | - | thorough
tidy + up | auf_räumen | acc:messy | - | pace
repair | reparieren | acc:vehicle,apparatus | garage | pace
paint | malen | acc:painted | home green
knit | stricken | acc:knitted | home
draw drew drawn | zeichnen gezeichnet | acc:plant,animal,sight | home
photograph | fotografieren | acc:sight,animal
feed fed | füttern | acc:pet,farm
water | gießen gegossen | acc:plant | garden
plant | pflanzen | acc:plant | garden
solve | lösen | acc:problem | - | pace
hand + in | ab_geben gibt abgegeben | acc:homework
understand understood | verstehen verstanden | acc:problem,text | - | stative
pay paid | bezahlen | acc:bill | eatery
pack | packen | acc:packable | bedroom | pace
unpack | aus_packen | acc:packable,parcel | home | care
throw threw thrown + away | weg_werfen wirft weggeworfen | acc:waste,clothes
bring brought + along | mit_bringen mitgebracht | acc:gift,parcel,portion
take took taken + along | mit_nehmen nimmt mitgenommen | acc:carried,coatlike
wait + for | warten | auf+acc:person,transit | - | patience
think thought + of | denken gedacht | an+acc:person,event
dream dreamt + of | träumen | von+dat:event,home,pet
talk + about | sprechen spricht gesprochen | über+acc:topic,event,text | eatery
talk + to | sprechen spricht gesprochen | mit+dat:person | town eatery | voice
laugh + at | lachen | über+acc:joke | - | voice
look + forward to | sich freuen | auf+acc:event
be was been + interested in | sich interessieren | für+acc:learned | - | stative
be was been + afraid of | sich fürchten | vor+dat:wild,exam | - | stative
remember | sich erinnern | an+acc:person,event | - | stative
take took taken + care of | sich kümmern | um+acc:person,pet,farm
complain + about | sich beschweren | über+acc:trouble | - | voice
take took taken + part in | teil_nehmen nimmt teilgenommen | an+dat:course
get got + into | ein_steigen ist eingestiegen | in+acc:cabin | - | pace
get got + out of | aus_steigen ist ausgestiegen | aus+dat:cabin | - | pace
get got + up | auf_stehen ist aufgestanden | - | - | pace
wake woke woken + up | auf_wachen ist aufgewacht
fall fell fallen + asleep | ein_schlafen schläft ist eingeschlafen
watch + television | fern_sehen sieht ferngesehen | - | home
go went gone + shopping | ein_kaufen | - | shop | pace
work | arbeiten | - | work garden | pace
sleep slept | schlafen schläft geschlafen | - | home
sing sang sung | singen gesungen | - | home green | voice
dance | tanzen | - | home green | pace
laugh | lachen | - | - | voice
cry | weinen | - | - | voice
swim swam swum | schwimmen ist geschwommen | - | water | pace
"""

# Verbs that the sentence patterns ask for by their English label.
SPECIAL_VERBS = """
be was been | sein ist ist gewesen | - | - | stative
have had | haben hat gehabt | - | - | stative
go went gone | gehen ist gegangen
drive drove driven | fahren fährt ist gefahren
fly flew flown | fliegen ist geflogen
travel travelled | reisen ist gereist
run ran run | laufen läuft ist gelaufen
move | um_ziehen ist umgezogen
come came come | kommen ist gekommen
stay | bleiben ist geblieben
live | wohnen | - | - | stative
study | studieren
lie lay lain | liegen gelegen
stand stood | stehen gestanden
hang hung | hängen gehangen
put put | legen
place | stellen
hang hung + up | auf_hängen
speak spoke spoken | sprechen spricht gesprochen | - | - | stative
learn | lernen
play | spielen
begin began begun | beginnen begonnen
end | enden
arrive | an_kommen ist angekommen
depart | ab_fahren fährt ist abgefahren
cost cost | kosten | - | - | stative
belong + to | gehören | - | - | stative
eat ate eaten | fressen frisst gefressen
say said | sagen
believe | glauben | - | - | stative
know knew known | wissen weiß gewusst | - | - | stative
hope | hoffen
ask | fragen
try | versuchen
decide | beschließen beschlossen
forget forgot forgotten | vergessen vergisst vergessen
rain | regnen
snow | schneien
"""

ADJECTIVES = """
old/older | alt/älter | adult tree animal text clothes furniture thing vehicle
old/older | alt/älter | building room owned hanging settlement
young/younger | jung/jünger | adult animal
big/bigger | groß/größer | animal clothes furniture thing load vehicle building
big/bigger | groß/größer | room green waters settlement parcel gift
small/smaller | klein | young animal furniture thing load vehicle building room
small/smaller | klein | green waters settlement parcel gift
new/newer | neu | text clothes furniture thing vehicle building home
new/newer | neu | device openable carried
beautiful/more beautiful | schön | clothes furniture gift picked building home
beautiful/more beautiful | schön | green settlement event
ugly/uglier | hässlich | clothes furniture thing building
expensive/more expensive | teuer/teurer | clothes furniture thing vehicle gift
cheap/cheaper | billig | clothes furniture thing vehicle
good/better | gut/besser | known text food event job
bad/worse | schlecht | text show weather
long/longer | lang/länger | text event tale clothes_long
short/shorter | kurz/kürzer | text tale course
interesting/more interesting | interessant | text show topic sight course
boring/more boring | langweilig | text show topic course
exciting/more exciting | spannend | text tale show journey
difficult/more difficult | schwierig | problem homework course
easy/easier | einfach | problem homework
important/more important | wichtig | problem topic event mail
friendly/friendlier | freundlich | person
strict/stricter | streng | family job
clever/cleverer | klug/klüger | person pet
famous/more famous | berühmt | job sight
nice/nicer | nett | person
funny/funnier | lustig | young known tale
tall/taller | groß/größer | adult minor tree
thin/thinner | dünn | animal adult
fat/fatter | dick | animal
wild/wilder | wild | wild
fast/faster | schnell | vehicle runner
slow/slower | langsam | vehicle farm
loud/louder | laut | vehicle apparatus
quiet/quieter | ruhig | green settlement building
modern/more modern | modern | building apparatus furniture
comfortable/more comfortable | bequem | paired surface
warm/warmer | warm/wärmer | coatlike knitted
elegant/more elegant | elegant | clothes
fresh/fresher | frisch | fruit baked massive
sweet/sweeter | süß | fruit portion
ripe/riper | reif | fruit
hot/hotter | heiß | hot
cold/colder | kalt/kälter | cold
heavy/heavier | schwer | load
light/lighter | leicht | load
red | rot | clothes picked vehicle crockery
blue | blau | clothes vehicle crockery
green | grün | clothes furniture
white | weiß | clothes crockery furniture picked pet
black | schwarz | clothes vehicle pet runner
brown | braun | furniture coatlike runner
yellow | gelb | clothes picked
grey | grau | clothes runner
broken | kaputt | vehicle apparatus device
tired/more tired | müde/müder | mood
hungry | hungrig | appetite
thirsty | durstig | appetite
happy | glücklich | mood
sad | traurig | mood
nervous | nervös | mood
ill | krank | mood
angry | wütend | mood
satisfied | zufrieden | mood
healthy | gesund | health
"""

# place noun | English, German where | English, German where to | kinds
PLACES = """
kitchen          | in in | into in  | home kitchen near
living room      | in in | into in  | home near
bedroom          | in in | into in  | home bedroom near
bathroom         | in in | into in  | near
cellar           | in in | into in  | near
garage           | in in | into in  | garage near
garden           | in in | into in  | garden green near
balcony          | on auf | onto auf | home near
park             | in in | to in    | green town walk
forest           | in in | into in  | walk
meadow           | in auf | to auf  | green near
beach            | on an | to an    | green walk
lake             | in in | to an    | water walk
river            | in in | to an    | water walk
swimming pool    | in in | to in    | water walk
market           | at auf | to auf  | shop town walk
supermarket      | at in | to in    | shop town walk
bakery           | in in | to in    | work walk
bookshop         | in in | to in    | work walk
library          | in in | to in    | work library desk town walk
museum           | in in | to in    | town walk
hospital         | in in | to in    | work walk
pharmacy         | in in | to in    | work walk
bank             | in in | to zu    | work walk
factory          | in in | to in    | work walk
office           | in in | to in    | work desk walk
restaurant       | in in | to in    | eatery town walk
café             | in in | to in    | eatery town walk
hotel            | in in | to in    | eatery town walk
cinema           | in in | to in    | town walk
theatre          | in in | to in    | town walk
railway station  | at an | to zu    | town walk
airport          | at an | to zu    | town walk
town hall        | in in | to zu    | work walk
university       | at an | to zu    | work walk
church           | in in | to in    | walk
zoo              | in in | to in    | town walk
playground       | on auf | to auf  | green walk
village          | in in | to in    | drive
town             | in in | to in    | drive town
island           | on auf | to auf  | drive
"""

CITIES = texts("""
Berlin   | Berlin
Hamburg  | Hamburg
Munich   | München
Cologne  | Köln
Vienna   | Wien
Zurich   | Zürich
Leipzig  | Leipzig
Paris    | Paris
Rome     | Rom
Prague   | Prag
""")

COUNTRIES = texts("""
Germany  | Deutschland
Italy    | Italien
France   | Frankreich
Spain    | Spanien
Austria  | Österreich
Poland   | Polen
Sweden   | Schweden
England  | England
""")

# No name ends in s, x or z: the genitive is a plain -s (Annas Auto).
NAMES = """
Anna Maria Julia Laura Emma Sophie Clara Paula
Peter Paul Martin Jan David Daniel Simon Oliver Leon Stefan
"""
WOMEN, MEN = (line.split() for line in NAMES.strip().splitlines())

LANGUAGES = texts("""
German   | Deutsch
English  | Englisch
French   | Französisch
Italian  | Italienisch
Spanish  | Spanisch
Polish   | Polnisch
""")

PASTIMES = texts("""
football   | Fußball
tennis     | Tennis
chess      | Schach
cards      | Karten
the piano  | Klavier
the guitar | Gitarre
the violin | Geige
the flute  | Flöte
""")

TIMES = {
    "past": texts("""
        yesterday | gestern
        yesterday evening | gestern Abend
        last week | letzte Woche
        last month | letzten Monat
        last summer | letzten Sommer
        last year | letztes Jahr
        this morning | heute Morgen
        the day before yesterday | vorgestern
    """),
    "future": texts("""
        tomorrow | morgen
        tomorrow evening | morgen Abend
        the day after tomorrow | übermorgen
        next week | nächste Woche
        next month | nächsten Monat
        this evening | heute Abend
        soon | bald
        later | später
    """),
    "progressive": texts("""
        now | jetzt
        at the moment | im Moment
        today | heute
    """),
    "present": texts("""
        every day | jeden Tag
        every morning | jeden Morgen
        every evening | jeden Abend
        in the morning | am Morgen
        in the evening | am Abend
        at the weekend | am Wochenende
        in summer | im Sommer
        in winter | im Winter
        after work | nach der Arbeit
        after breakfast | nach dem Frühstück
        before dinner | vor dem Abendessen
    """),
}
WEEKDAYS = texts("""
    on Monday | am Montag
    on Tuesday | am Dienstag
    on Wednesday | am Mittwoch
    on Thursday | am Donnerstag
    on Friday | am Freitag
    on Saturday | am Samstag
    on Sunday | am Sonntag
""")
PERIODS = texts("""
    days | Tagen
    weeks | Wochen
    months | Monaten
    years | Jahren
    hours | Stunden
    minutes | Minuten
""")
FREQUENCIES = texts("""
    often | oft
    always | immer
    sometimes | manchmal
    usually | normalerweise
    rarely | selten
    never | nie
""")
MANNERS = {
    "pace": texts("slowly | langsam\nquickly | schnell"),
    "care": texts("carefully | vorsichtig\nquickly | schnell"),
    "thorough": texts("thoroughly | gründlich"),
    "voice": texts("loudly | laut\nquietly | leise"),
    "patience": texts("patiently | geduldig"),
    "attention": texts("attentively | aufmerksam"),
    "warmth": texts("warmly | herzlich"),
}
DIRECTIONS = texts("""
    home | nach Hause
    to school | zur Schule
    to work | zur Arbeit
""")
HOME = Text("at home", "zu Hause")

# What keeps people from doing something: `not ... because`, or `although`.
HINDRANCES = rows("""
    be   | tired             | müde
    be   | ill               | krank
    be   | sad               | traurig
    be   | very tired        | sehr müde
    be   | nervous           | nervös
    have | little time       | wenig Zeit
    have | no time           | keine Zeit
    have | a headache        | Kopfschmerzen
    have | a lot of work     | viel Arbeit
""")
# What lets them do it: `because`, `if`, `when`.
OCCASIONS = rows("""
    have | a lot of time     | viel Zeit
    have | time              | Zeit
    have | a day off         | einen freien Tag
    be   | on holiday        | im Urlaub
    be   | bored             | gelangweilt
    be   | happy             | glücklich
    be   | in a good mood    | gut gelaunt
""")
OPINIONS = texts("""
    tired     | müde
    hungry    | hungrig
    thirsty   | durstig
    happy     | glücklich
    sad       | traurig
    nervous   | nervös
    ill       | krank
    healthy   | gesund
    angry     | wütend
    satisfied | zufrieden
    punctual  | pünktlich
    busy      | beschäftigt
    curious   | neugierig
    lonely    | einsam
    proud     | stolz
""")
WEATHER = texts("""
    cold   | kalt
    warm   | warm
    hot    | heiß
    dark   | dunkel
    windy  | windig
    foggy  | neblig
    late   | spät
    early  | früh
""")
DEGREES = texts("very | sehr\nquite | ziemlich\nreally | wirklich\nso | so")

# Times of life, for the German als of the past.
PHASES = rows("""
    be   | young             | jung
    be   | ill               | krank
    be   | in hospital       | im Krankenhaus
    be   | on holiday        | im Urlaub
    be   | very lonely       | sehr einsam
    have | no work           | keine Arbeit
    have | little money      | wenig Geld
    have | a dog             | einen Hund
    have | a garden          | einen Garten
    have | a boat            | ein Boot
""")
FLUENCY = texts("""
    well       | gut
    very well  | sehr gut
    fluently   | fließend
    badly      | schlecht
""")
PROFESSIONS = rows("""
teacher    | Lehrer          | Lehrerin
doctor     | Arzt            | Ärztin
baker      | Bäcker          | Bäckerin
farmer     | Bauer           | Bäuerin
gardener   | Gärtner         | Gärtnerin
painter    | Maler           | Malerin
musician   | Musiker         | Musikerin
engineer   | Ingenieur       | Ingenieurin
lawyer     | Anwalt          | Anwältin
journalist | Journalist      | Journalistin
tailor     | Schneider       | Schneiderin
judge      | Richter         | Richterin
writer     | Schriftsteller  | Schriftstellerin
chef       | Koch            | Köchin
student    | Student         | Studentin
""")
# Two-way prepositions: dative for where, accusative for where to.
RELATIONS = texts("""
on          | auf
under       | unter
next to     | neben
behind      | hinter
in front of | vor
""")
JUDGMENTS = texts("""
important   | wichtig
easy        | einfach
difficult   | schwierig
nice        | schön
boring      | langweilig
interesting | interessant
possible    | möglich
""")

NOUN_LIST = [parse_noun(*row) for row in rows(NOUNS)]
VERB_LIST = [parse_verb(*row) for row in rows(VERBS)]
ADJECTIVE_LIST = [parse_adjective(*row) for row in rows(ADJECTIVES)]
NOUN = {noun.english: noun for noun in NOUN_LIST}
VERB = {
    verb.label: verb
    for verb in (parse_verb(*row) for row in rows(SPECIAL_VERBS))
}

UNITS = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
ENGLISH_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def number(value: int) -> Text:
    """Returns `value` in words, up to 99 or full hundreds: dreiundzwanzig."""
    if value >= 100:
        hundreds = number(value // 100)
        return Text(hundreds.english + " hundred", hundreds.german + "hundert")
    return Text(english_number(value), german_number(value))


def english_number(value: int) -> str:
    """Returns `value` below 100 in English: seven, forty-two."""
    if value < 20:
        return ENGLISH_UNITS.split()[value]
    ten, unit = divmod(value, 10)
    tail = "-" + ENGLISH_UNITS.split()[unit] if unit else ""
    return ENGLISH_TENS.split()[ten - 2] + tail


def german_number(value: int) -> str:
    """Returns `value` below 100, unit before ten: zweiundvierzig."""
    ten, unit = divmod(value, 10)
    word = UNITS.split()
    if value < len(word):
        return word[value]
    if value < 20:
        return {6: "sech", 7: "sieb"}.get(unit, word[unit]) + "zehn"
    head = ("ein" if unit == 1 else word[unit]) + "und" if unit else ""
    return head + TENS.split()[ten - 2]
