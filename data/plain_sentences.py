"""Plain English sentences, and all the right German translations of each.

They were written by hand, apart from the grammar: what somebody may type first
into a model of the embedded corpus, in the words of its lexicon.  The test
split comes from the patterns that training comes from; these do not, so they
say whether a model has learned the words or only the patterns.

A row is a sentence and its right answers; a line that begins with `|` continues
the row above.  `{a,b}` is either of the two.  Right is whatever German grammar
allows: du, ihr and Sie for `you`, Perfekt and Präteritum, every natural order.
The words are the lexicon's: other words for the same thing are listed only
where they are just as common.

In UNKNOWN one word is not in the lexicon.  `*` is any one word in its place,
and the rest of the sentence must be right.
"""

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

PLAIN = """
The dog sleeps. | Der Hund schläft.
The children are singing. | Die Kinder singen.
Birds sing. | Vögel singen.
She is dancing in the theatre. | Sie tanzt im Theater.
The girl cried. | Das Mädchen hat geweint. | Das Mädchen weinte.
We laughed. | Wir haben gelacht. | Wir lachten.
The bank is next to the library.
  | Die Bank {ist,liegt,steht} neben der Bibliothek.
The ducks are swimming in the river. | Die Enten schwimmen im Fluss.
Our neighbour often sings in the cellar. | Unser Nachbar singt oft im Keller.
  | Oft singt unser Nachbar im Keller.
The cat is sleeping in the armchair. | Die Katze schläft im Sessel.
The man sees the dog. | Der Mann sieht den Hund.
The dog sees the man. | Der Hund sieht den Mann.
The cat sees the mouse. | Die Katze sieht die Maus.
The boy has a rabbit. | Der Junge hat ein Kaninchen.
We see an elephant. | Wir sehen einen Elefanten.
The lion sees the monkey. | Der Löwe sieht den Affen.
My aunt has two horses. | Meine Tante hat zwei Pferde.
I hear a wolf. | Ich höre einen Wolf.
He is drawing a fox. | Er zeichnet einen Fuchs.
The tourists are photographing the castle.
  | Die Touristen fotografieren das Schloss.
The farmer is feeding the pigs. | Der Bauer füttert die Schweine.
The farmer's geese are white. | Die Gänse {des,vom} Bauern sind weiß.
The donkey eats a carrot. | Der Esel frisst eine Karotte.
The woman is reading the newspaper. | Die Frau liest die Zeitung.
My sister writes poems. | Meine Schwester schreibt Gedichte.
The waiter brings the bill. | Der Kellner bringt die Rechnung.
She is peeling a potato. | Sie schält eine Kartoffel.
We are baking a cake. | Wir backen einen Kuchen.
The guest orders a salad. | Der Gast bestellt einen Salat.
I drink tea. | Ich trinke Tee.
My father drinks coffee in the morning. | Mein Vater trinkt am Morgen Kaffee.
  | Mein Vater trinkt Kaffee am Morgen. | Am Morgen trinkt mein Vater Kaffee.
Julia is wearing a red dress. | Julia trägt ein rotes Kleid.
He is putting on his raincoat. | Er zieht {,sich }{seinen,den} Regenmantel an.
She takes off her shoes. | Sie zieht {,sich }{ihre,die} Schuhe aus.
I need an umbrella. | Ich brauche einen Regenschirm.
We need a new fridge. | Wir brauchen einen neuen Kühlschrank.
Peter is repairing the motorbike. | Peter repariert das Motorrad.
The engineer repairs the washing machine.
  | Der Ingenieur repariert die Waschmaschine.
My mother is cleaning the windows. | Meine Mutter putzt die Fenster.
Anna opens the drawer. | Anna öffnet die Schublade.
I am closing the garden gate. | Ich schließe das Gartentor.
The policeman locks the front door. | Der Polizist schließt die Haustür ab.
He turns on the radio. | Er macht das Radio an.
She turns off the desk lamp. | Sie macht die Schreibtischlampe aus.
The boy is looking for his ball. | Der Junge sucht {seinen,nach seinem} Ball.
I am looking for a pharmacy. | Ich suche {eine,nach einer} Apotheke.
The musician plays the guitar. | Der Musiker spielt Gitarre.
The children are playing in the park. | Die Kinder spielen im Park.
We love nature. | Wir lieben die Natur.
She likes chocolate. | Sie mag Schokolade.
I like your new jumper. | Ich mag {deinen,euren,Ihren} neuen Pullover.
  | {Dein,Euer,Ihr} neuer Pullover gefällt mir.
  | Mir gefällt {dein,euer,Ihr} neuer Pullover.
The girl's doll is new. | Die Puppe {des Mädchens,vom Mädchen} ist neu.
The chef needs a pan and a spoon.
  | Der Koch braucht eine Pfanne und einen Löffel.
The painter buys fruit at the market. | Der Maler kauft {auf dem,am} Markt Obst.
  | Der Maler kauft Obst {auf dem,am} Markt.
  | Auf dem Markt kauft der Maler Obst.
The gardener waters the flowers. | Der Gärtner gießt die Blumen.
She is wearing a black coat. | Sie trägt einen schwarzen Mantel.
We are eating bread and cheese. | Wir essen Brot und Käse.
The nurse drinks apple juice. | Die Krankenschwester trinkt Apfelsaft.
The monkeys eat bananas. | Die Affen fressen Bananen.
The teacher helps the pupil. | Der Lehrer hilft dem Schüler.
The dog follows the woman. | Der Hund folgt der Frau.
She thanks the nurse. | Sie dankt der Krankenschwester.
I trust my doctor. | Ich vertraue meinem Arzt.
The bicycle belongs to my brother. | Das Fahrrad gehört meinem Bruder.
The house belongs to the actress. | Das Haus gehört der Schauspielerin.
The boy gives the goat an apple. | Der Junge gibt der Ziege einen Apfel.
The baker gives the guests rolls. | Der Bäcker gibt den Gästen Brötchen.
He shows the tourists the church. | Er zeigt den Touristen die Kirche.
She lends her colleague a pencil. | Sie leiht ihrem Kollegen einen Bleistift.
I am sending my aunt a postcard. | Ich schicke meiner Tante eine Postkarte.
The grandmother tells the girls a fairy tale.
  | Die Großmutter erzählt den Mädchen ein Märchen.
The judge explains the rule to the lawyer.
  | Der Richter erklärt dem Anwalt die Regel.
  | Der Richter erklärt die Regel dem Anwalt.
My uncle gives me ten euros. | Mein Onkel gibt mir zehn Euro.
The waitress brings us two glasses. | Die Kellnerin bringt uns zwei Gläser.
I am giving my sister a birthday present.
  | Ich gebe meiner Schwester ein Geburtstagsgeschenk.
The man lends the students a car. | Der Mann leiht den Studenten ein Auto.
I see him. | Ich sehe ihn.
He knows her. | Er kennt sie.
They are helping us. | Sie helfen uns.
Can you hear me? | {Kannst du,Könnt ihr,Können Sie} mich hören?
I love you. | Ich liebe {dich,euch,Sie}.
She does not know him. | Sie kennt ihn nicht.
I am waiting for the bus. | Ich warte auf den Bus.
We are waiting for you. | Wir warten auf {dich,euch,Sie}.
She is thinking of the weekend. | Sie denkt an das Wochenende.
  | Sie denkt ans Wochenende.
They are talking about politics. | Sie {sprechen,reden} über {,die }Politik.
The actor is talking to the writer.
  | Der Schauspieler spricht mit dem Schriftsteller.
My daughter is looking forward to the party.
  | Meine Tochter freut sich auf die Party.
He is interested in art and history.
  | Er interessiert sich für {,die }Kunst und {,die }Geschichte.
  | Er ist an Kunst und Geschichte interessiert.
The girl is afraid of snakes.
  | Das Mädchen {fürchtet sich,hat Angst} vor Schlangen.
I remember the journey. | Ich erinnere mich an die Reise.
My daughter takes care of the rabbits.
  | Meine Tochter kümmert sich um die Kaninchen.
The guests are complaining about the food.
  | Die Gäste beschweren sich über das Essen.
She gets into the taxi. | Sie steigt {ins,in das} Taxi ein.
  | Sie steigt {ins,in das} Taxi.
We are getting out of the tram. | Wir steigen aus der Straßenbahn aus.
  | Wir steigen aus der Straßenbahn.
The pupils laugh at the joke. | Die Schüler lachen über den Witz.
The soup is hot. | Die Suppe ist heiß.
The tomatoes are ripe. | Die Tomaten sind reif.
The bridge is very old. | Die Brücke ist sehr alt.
This riddle is difficult. | Dieses Rätsel ist schwierig.
Our flat is small. | Unsere Wohnung ist klein.
The weather is bad. | Das Wetter ist schlecht.
The music was too loud. | Die Musik war zu laut.
The orange juice is cold. | Der Orangensaft ist kalt.
The television is broken. | Der Fernseher ist kaputt.
The football match was boring. | Das Fußballspiel war langweilig.
The plums and cherries are sweet. | Die Pflaumen und {,die }Kirschen sind süß.
She is a lawyer. | Sie ist {,eine }Anwältin.
My son is a chef. | Mein Sohn ist {,ein }Koch.
He is not a painter. | Er ist {kein,nicht} Maler.
Simon is eight years old. | Simon ist acht Jahre alt.
The film is exciting. | Der Film ist spannend.
My hat is bigger than your cap.
  | Mein Hut ist größer als {deine,eure,Ihre} Mütze.
The bear is bigger than the hedgehog. | Der Bär ist größer als der Igel.
The man is in the garden. | Der Mann ist im Garten.
The knives are on the kitchen table.
  | Die Messer {sind,liegen} auf dem Küchentisch.
My friend is in hospital. | Mein Freund {ist,liegt} im Krankenhaus.
The pupils are in the classroom. | Die Schüler sind im Klassenzimmer.
The suitcase is in the bedroom. | Der Koffer {ist,steht,liegt} im Schlafzimmer.
I am at the airport. | Ich bin {am,auf dem,im} Flughafen.
The towels are not in the wardrobe.
  | Die Handtücher {sind,liegen} nicht im Kleiderschrank.
The boots are under the bed. | Die Stiefel {sind,stehen,liegen} unter dem Bett.
The photo is hanging next to the mirror. | Das Foto hängt neben dem Spiegel.
The blanket is lying on the sofa. | Die Decke liegt auf dem Sofa.
The vase is on the bookshelf. | Die Vase {ist,steht} auf dem Bücherregal.
The picture is hanging on the wall. | Das Bild hängt an der Wand.
There is a bag under the chair. | Unter dem Stuhl {ist,liegt,steht} eine Tasche.
  | Unter dem Stuhl gibt es eine Tasche. | Es gibt eine Tasche unter dem Stuhl.
  | {Da,Es} {ist,liegt,steht} eine Tasche unter dem Stuhl.
There are three restaurants in the village.
  | Im Dorf {gibt es,sind} drei Restaurants. | Es gibt drei Restaurants im Dorf.
  | Es gibt im Dorf drei Restaurants.
I am going to the supermarket. | Ich gehe {in den,zum} Supermarkt.
She goes to the bakery. | Sie geht {in die,zur} Bäckerei.
We are going home. | Wir gehen nach Hause.
The boys are going to the playground.
  | Die Jungen gehen {auf den,zum} Spielplatz.
My boss is flying to Italy. | Mein Chef fliegt nach Italien.
He comes home at six o'clock. | Er kommt um sechs Uhr nach Hause.
  | Um sechs Uhr kommt er nach Hause.
The girl runs into the living room. | Das Mädchen {läuft,rennt} ins Wohnzimmer.
  | Das Mädchen {läuft,rennt} in das Wohnzimmer.
Paul lives in Vienna. | Paul {wohnt,lebt} in Wien.
The train departs at nine o'clock. | Der Zug fährt um neun Uhr ab.
  | Um neun Uhr fährt der Zug ab.
He does not eat meat. | Er isst kein Fleisch.
I do not know. | Ich weiß {,es }nicht. | Das weiß ich nicht.
I do not have a camera. | Ich habe keine Kamera.
She does not drink wine. | Sie trinkt keinen Wein.
The dog is not sleeping. | Der Hund schläft nicht.
We are not going to the cinema. | Wir gehen nicht {ins,in das,zum} Kino.
My neighbour does not like dogs. | Mein Nachbar mag keine Hunde.
  | Mein Nachbar mag Hunde nicht.
The students do not read magazines. | Die Studenten lesen keine Zeitschriften.
He is not buying the suit. | Er kauft den Anzug nicht.
The wallet does not belong to me. | Die Geldbörse gehört mir nicht.
  | Die Geldbörse gehört nicht mir.
I am not tired. | Ich bin nicht müde.
You must not open the parcel.
  | {Du darfst,Ihr dürft,Sie dürfen} das Paket nicht öffnen.
I have no time. | Ich habe keine Zeit.
They never eat onions. | Sie essen nie Zwiebeln.
She did not answer the policeman. | Sie hat dem Polizisten nicht geantwortet.
  | Sie antwortete dem Polizisten nicht.
The sausages are not fresh. | Die Würste sind nicht frisch.
He does not have any sugar. | Er hat keinen Zucker.
Where is the key? | Wo ist der Schlüssel?
Where are my gloves? | Wo sind meine Handschuhe?
Where is the town hall? | Wo ist das Rathaus?
Where do you live?
  | Wo {wohnst du,wohnt ihr,wohnen Sie,lebst du,lebt ihr,leben Sie}?
Where are you going? | Wohin {gehst du,geht ihr,gehen Sie}?
  | Wo {gehst du,geht ihr,gehen Sie} hin?
Who is this woman? | Wer ist diese Frau?
Who is working in the garage? | Wer arbeitet in der Garage?
Who has the train tickets? | Wer hat die Fahrkarten?
What is the child eating? | Was isst das Kind?
What are you reading? | Was {liest du,lest ihr,lesen Sie}?
When does the concert begin? | Wann beginnt das Konzert?
When is the exam? | Wann ist die Prüfung?
Why are you laughing? | Warum {lachst du,lacht ihr,lachen Sie}?
Why is the boy sad? | Warum ist der Junge traurig?
Do you like strawberries? | {Magst du,Mögt ihr,Mögen Sie} Erdbeeren?
Does your brother have a computer? | Hat {dein,euer,Ihr} Bruder einen Computer?
Is your mother at home? | Ist {deine,eure,Ihre} Mutter zu Hause?
Is the water cold? | Ist das Wasser kalt?
Did you find the house key?
  | {Hast du,Habt ihr,Haben Sie} den Hausschlüssel gefunden?
  | {Fandest du,Fandet ihr,Fanden Sie} den Hausschlüssel?
Does she speak French? | Spricht sie Französisch?
Which novel are you reading? | Welchen Roman {liest du,lest ihr,lesen Sie}?
Who is helping the fisherman? | Wer hilft dem Fischer?
Are the forks in the basket? | {Sind,Liegen} die Gabeln im Korb?
I have three sisters. | Ich habe drei Schwestern.
She is buying twelve eggs. | Sie kauft zwölf Eier.
The jacket costs ninety euros. | Die Jacke kostet neunzig Euro.
Four men are carrying the boxes. | Vier Männer tragen die Kisten.
Two cows are lying in the meadow. | Zwei Kühe liegen {auf,in} der Wiese.
  | {Auf,In} der Wiese liegen zwei Kühe.
He is drinking a bottle of beer. | Er trinkt eine Flasche Bier.
I can swim. | Ich kann schwimmen.
We must buy milk and butter. | Wir müssen Milch und Butter kaufen.
She wants to buy a ring. | Sie will einen Ring kaufen.
May I eat the ice cream? | Darf ich das Eis essen?
I would like to order a pizza. | Ich möchte eine Pizza bestellen.
  | Ich würde gern eine Pizza bestellen.
The children like to eat pancakes. | Die Kinder essen gern Pfannkuchen.
He cannot find his toothbrush. | Er kann seine Zahnbürste nicht finden.
The student must hand in the report. | Der Student muss den Bericht abgeben.
The tailor bought a lorry. | Der Schneider hat einen Lastwagen gekauft.
  | Der Schneider kaufte einen Lastwagen.
I have already read the letter. | Ich habe den Brief schon gelesen.
  | Ich habe schon den Brief gelesen.
Emma lost her scarf. | Emma hat ihren Schal verloren. | Emma verlor ihren Schal.
We ate rice yesterday. | Wir {haben gestern Reis gegessen,aßen gestern Reis}.
  | Gestern {haben wir Reis gegessen,aßen wir Reis}.
Yesterday he visited the zoo.
  | Gestern {hat er den Zoo besucht,besuchte er den Zoo}.
  | Er {hat gestern den Zoo besucht,besuchte gestern den Zoo}.
I will visit my grandmother tomorrow.
  | Ich werde morgen meine Großmutter besuchen.
  | Ich werde meine Großmutter morgen besuchen.
  | Morgen werde ich meine Großmutter besuchen.
  | Ich besuche {morgen meine Großmutter,meine Großmutter morgen}.
  | Morgen besuche ich meine Großmutter.
It is raining. | Es regnet.
Anna's skirt is blue. | Annas Rock ist blau. | Der Rock von Anna ist blau.
The journalist's questions are important.
  | Die Fragen {des,vom} Journalisten sind wichtig.
"""

UNKNOWN = """
Xenia sleeps. | * schläft.
Thorsten is reading a book. | * liest ein Buch.
I know Brigitte. | Ich kenne *.
The dog sees Felix. | Der Hund sieht *.
Sabine lives in Berlin. | * {wohnt,lebt} in Berlin.
We are flying to Oslo. | Wir fliegen nach *.
Where is Kevin? | Wo ist *?
Is Ursula at home? | Ist * zu Hause?
Bruno and Anna are tired. | * und Anna sind müde.
The man gives Heidi a flower. | Der Mann gibt * eine Blume.
The zebra is sleeping. | {Der,Die,Das} * schläft.
I need a screwdriver. | Ich brauche {ein,eine,einen} *.
She is eating a kiwi. | Sie isst {ein,eine,einen} *.
The chidl is sleeping. | {Der,Die,Das} * schläft.
The dog slepes. | Der Hund *.
The house is purple. | Das Haus ist *.
We are playing volleyball. | Wir spielen *.
My frend is ill. | {Mein,Meine} * ist krank.
He speaks Danish. | Er spricht *.
Lukas does not have a car. | * hat kein Auto.
"""


class PlainSentence(NamedTuple):
    """A sentence and its right translations, in which `*` is any word."""

    source: str
    answers: tuple[str, ...]

    def is_right(self, output: str) -> bool:
        """Returns whether `output` is one of the right translations."""
        return any(
            re.fullmatch(re.escape(answer).replace(r"\*", WORD), output)
            for answer in self.answers
        )


WORD = r"[^\s.,?!]+"


def expanded(answers: str) -> Iterator[str]:
    """Yields what the braces of `answers` stand for.

    >>> list(expanded("Wo {bist du,seid ihr}?"))
    ['Wo bist du?', 'Wo seid ihr?']
    """
    parts = re.split(r"{([^}]*)}", answers)
    choices = [
        part.split(",") if n % 2 else [part] for n, part in enumerate(parts)
    ]
    return map("".join, itertools.product(*choices))


def by_name() -> dict[str, list[PlainSentence]]:
    """Returns both tables, by the names that their scores have."""
    return {
        "plain_sentences": sentences(PLAIN),
        "unknown_words": sentences(UNKNOWN),
    }


def sentences(table: str) -> list[PlainSentence]:
    """Returns the rows of PLAIN or UNKNOWN."""
    whole_rows = re.sub(r"\n *\|", " |", table).strip().splitlines()
    return [
        PlainSentence(source, tuple(itertools.chain(*map(expanded, patterns))))
        for source, *patterns in (row.split(" | ") for row in whole_rows)
    ]
