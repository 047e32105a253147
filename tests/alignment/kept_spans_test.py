"""URLs, placeholders and quantities come out as they went in."""

import re

import pytest
from tiny_translator import learn_vocabulary

from t2t_lite.alignment.kept_spans import Keeper
from t2t_lite.decoding.search_options import KEPT
from t2t_lite.errors import InputError
from t2t_lite.text import learning


@pytest.fixture(scope="module")
def vocabulary():
    """A Vocabulary that knows all numbers of two digits."""
    numbers = " ".join(map(str, range(10, 100)))
    lines = [f"{numbers} send it to the dog, by the boat", "Aa Bb see at for ."]
    return learning.learn(lines, "bpe", 500)


@pytest.fixture(scope="module")
def keeper(vocabulary):
    return Keeper(KEPT, vocabulary)


# (kind, a line in which bars enclose what is kept)
_FOUND = [
    ("urls", "see |https://a.org/b?c=d#e|."),
    ("urls", "(|http://a.org/b_(c)| is it)"),
    ("urls", "|www.a.org|, |ftp://b.org/c|!"),
    ("urls", "to |ann.b+c@sub.a-b.org|."),
    ("urls", "a@b, http:// and www. are none"),
    ("urls", "|https://a.org/{id}?q={q}|, |http://b.org/a[1]|; (|www.a.org|)."),
    ("urls", "“|https://a.org|” 見て|https://a.org|。犬 请联系|ann@a.org|的人"),
    ("placeholders", "by |{date}| and |${x}|, |{{ a b }}|"),
    ("placeholders", "|%s| of |%(n)d|, |%1$s|, |{0}|; |{}|"),
    ("placeholders", "100% sure, 5 %silly, { a }"),
    # Adjacent ones are kept as one.
    ("placeholders", "|{a}{b}|, |{{a}}{{b}}| |%s%d|"),
    ("quantities", "|5 km|, |3,5 kg|, |-2 °C|, |20%|, |€5|, |1.000,50 €|"),
    ("quantities", "|10 m²| in |3 h|, |5 GB|; |5-10 km|, |10 000 km|"),
    ("quantities", "in 2020 |5 km|, |10 000,5 km|, in 2024 |500 km|"),
    ("quantities", "1/2 l, 12:30 h, the 1990s and 80s, Apartment 3 B, 2.A"),
    ("quantities", "5 dogs, 3 meters, x5 km, in 1999"),
]


@pytest.mark.parametrize(("kind", "marked"), _FOUND)
def test_what_is_kept_is_found(kind, marked, vocabulary):
    line = marked.replace("|", "")
    expected = re.findall(r"\|(.+?)\|", marked)
    kept = Keeper([kind], vocabulary).take_out(line)
    assert list(kept.items.values()) == expected
    for other in KEPT:
        if other not in (kind, "tags"):
            found = Keeper([other], vocabulary).take_out(line).items.values()
            assert not {*expected} & {*found}


LINE = 'Send <b>it</b> to ann@a.org by {date}, or {date}; 5 km at <x u="http://b"/>.'


def test_stand_ins_are_words_that_the_line_has_not(keeper):
    line = f"{LINE} 99 98 97 90"
    kept = keeper.take_out(line)
    assert list(kept.items.values()) == [
        "ann@a.org",
        "{date}",
        "{date}",
        "5 km",
    ]
    for word in kept.items:
        assert word not in line
        assert re.fullmatch("[1-9][0-9]", word)
        assert len(re.findall(rf"\b{word}\b", kept.text)) == 1
    assert "<" not in kept.text
    assert "@" not in kept.text


# (line, what is translated, with letters for the stand-ins)
_TOGETHER = [
    ("Buy 5 ${items} now, 5 %d, 3 %(n)s", "Buy 5 A now, 5 B, 3 C"),
    ("<b>{a}</b><i>{b}</i> c", "A B c"),
    ("<td>{a}</td><td>{b}</td>", "A B"),
    ("{a}<br/><br/>{b}", "A B"),
    ("{first}_{last} _{name}_", "A _ B _ C _"),
    ("Item<b>{n}</b> a<b>{n}</b>b", "Item A a B b"),
    ("5<b> km</b> {a<b>}", "5 km {a}"),
]


@pytest.mark.parametrize(("line", "expected"), _TOGETHER)
def test_stand_ins_are_words_of_their_own(line, expected, keeper):
    kept = keeper.take_out(line)
    text = kept.text
    for name, word in zip("ABCD", kept.items, strict=False):
        text = text.replace(word, name)
    assert text == expected
    terms, messages = keeper.terms(kept, kept.text, "", room=99)
    spans = [span for term in terms for span in term.spans]
    assert [kept.text[slice(*span)] for span in spans] == [*kept.items]
    assert len(terms) == len(kept.items)
    assert messages == []


def test_all_is_put_back(vocabulary):
    keeper = Keeper(["urls", "placeholders", "quantities"], vocabulary)
    kept = keeper.take_out(LINE)
    assert keeper.put_back(kept, kept.text) == LINE
    first, second, *_ = kept.items
    assert keeper.put_back(kept, f"({second}) x{first}, {first}.") == (
        f"({{date}}) x{first}, ann@a.org."
    )
    # If the model writes the same number itself, the first one is replaced.
    found = keeper.put_back(kept, f"{first} und {first}")
    assert found == f"ann@a.org und {first}"


def test_signs_touch_an_item_again(vocabulary):
    keeper = Keeper(["placeholders"], vocabulary)
    line = 'a ({name}), "{b}" a/{c} - {d}'
    kept = keeper.take_out(line)
    words = [*kept.items]
    assert kept.text == (
        f'a ( {words[0]}), " {words[1]}" a/ {words[2]} - {words[3]}'
    )
    assert keeper.put_back(kept, kept.text) == line
    assert keeper.put_back(kept, f"({words[0]})") == "({name})"
    assert keeper.put_back(kept, f"„ {words[1]}“") == "„{b}“"
    # Other signs keep their space.
    assert keeper.put_back(kept, f"a. {words[0]}.") == "a. {name}."


def test_letters_do_not_touch_a_stand_in(vocabulary):
    kept = Keeper(["placeholders"], vocabulary).take_out("{n}th, pre{a}/{b}")
    first, second, third = kept.items
    assert kept.text == f"{first} th, pre {second}/ {third}"


def test_stand_ins_are_no_words_of_others(vocabulary):
    keeper = Keeper(["urls"], vocabulary, apart_from=["a 99", "98th b"])
    (word,) = keeper.take_out("www.a.org").items
    assert word == "97"


def test_german_ordinals_do_not_stand_in():
    numbers = " ".join(map(str, range(10, 200)))
    vocabulary = learning.learn([numbers, "Aa Bb . at"], "bpe", 700)
    (word,) = Keeper(["urls"], vocabulary, "de").take_out("www.a.org").items
    assert re.fullmatch("[0-9]{3}", word)


@pytest.mark.parametrize("line", ["a" * 50_000, "9" * 50_000, "+1" * 25_000])
def test_long_words_take_no_time(keeper, line):
    # In quadratic time, it took half a minute.
    assert keeper.take_out(line).text == line


def test_the_search_is_asked_for_those_of_a_sentence(keeper, vocabulary):
    kept = keeper.take_out(LINE)
    words = [*kept.items]
    terms, messages = keeper.terms(kept, kept.text, "", room=20)
    assert messages == []
    texts = vocabulary.decode([term.ids for term in terms])
    assert texts == words
    assert {term.count for term in terms} == {1}
    terms, _ = keeper.terms(kept, f"a {words[2]}.", "", room=20)
    assert vocabulary.decode([term.ids for term in terms]) == [words[2]]
    # The prefix has them all already.
    assert keeper.terms(kept, kept.text, kept.text, room=20) == ([], [])


def test_what_has_no_room_is_said(keeper):
    kept = keeper.take_out("{a} and {b}")
    size = sum(
        len(t.ids) for t in keeper.terms(kept, kept.text, "", room=99)[0]
    )
    terms, messages = keeper.terms(kept, kept.text, "", room=size - 1)
    assert len(terms) == 1
    assert messages == ["there is no room for '{b}': it is left out"]


def test_prefixes_have_stand_ins_too(keeper):
    kept = keeper.take_out("<i>See</i> {a} at {b}.")
    first, second = kept.items
    assert keeper.in_prefix("<i>Aa</i> {b} {c}", kept) == f"Aa {second} {{c}}"
    assert keeper.in_prefix("<i>Aa</i> ", kept) == "Aa "
    assert keeper.in_prefix("{a}th", kept) == f"{first} th"
    kept = keeper.take_out("{a} {a}")
    found = keeper.in_prefix("{a} {a} {a}", kept)
    assert found == " ".join([*kept.items, "{a}"])
    # An item at the end, cut or not, is completed, and a space follows it.
    kept = keeper.take_out("http://a.org http://a.org/b")
    short, long = kept.items
    found = keeper.in_prefix("at http://a.org/b and http://a.org to", kept)
    assert found == f"at {long} and {short} to"
    assert keeper.in_prefix("at http:/", kept) == f"at {short} "
    assert keeper.in_prefix("at http://a.org/b", kept) == f"at {long} "


# (line, prefix, the prefix for the search, with letters for the stand-ins)
_PREFIXES = [
    # Words and numbers are not completed, even if they end as items begin.
    ("See https://a.org", "Das ist nicht", "Das ist nicht"),
    ("Mail ann@a.org", "Wer kann", "Wer kann"),
    ("Buy 20 kg", "Im Jahr 2020", "Im Jahr 2020"),
    ("Run 5 km", "Nach 15 km", "Nach 15 km"),
    ("at 100 km", "Seite 10", "Seite 10"),
    # A whole item is not extended to a longer one.
    ("http://a.org http://a.org/b", "at http://a.org", "at A "),
    # A tag that is cut off is left out.
    ("{a} <b>c</b>", "{a} <b>d</b", "A d"),
]


@pytest.mark.parametrize(("line", "prefix", "expected"), _PREFIXES)
def test_a_prefix_stays_as_it_is(line, prefix, expected, keeper):
    kept = keeper.take_out(line, prefix)
    found = keeper.in_prefix(prefix, kept)
    for name, word in zip("AB", kept.items, strict=False):
        found = found.replace(word, name)
    assert found == expected


def test_no_stand_in_is_a_word_of_the_prefix(keeper):
    (word,) = keeper.take_out("{n} people", "Es sind 99 Leute und ").items
    assert word == "98"


def test_tags_part_no_sign_from_its_item(keeper):
    for line in ("(<b>{n}</b>)", "\u201c<b>{n}</b>", "'<i>{n}</i>'"):
        kept = keeper.take_out(line)
        (word,) = kept.items
        assert (
            keeper.put_back(
                kept._replace(nodes=()),
                line[0] + " " + line[1:].replace("{n}", word),
            )
            == line
        )
    kept = keeper.take_out('Press "OK" ("{key}")')
    (word,) = kept.items
    text = f'"OK" {word} "a" {word}'
    assert keeper.put_back(kept, text).startswith('"OK" {key}')


def test_what_nothing_can_stand_in_for_is_named(vocabulary):
    keeper = Keeper(["placeholders"], vocabulary)
    items = [f"{{{letter * 3}}}" for letter in "abcdefghijklmnopqrstuvw"] * 5
    kept = keeper.take_out(" ".join(items))
    assert len(kept.items) == 89  # 11 to 99
    assert kept.unkept == items[89:]
    assert kept.text.endswith(" ".join(items[89:]))


def test_words_stand_in_where_there_are_no_numbers():
    keeper = Keeper(["placeholders"], learn_vocabulary())
    kept = keeper.take_out("the water {a} {b}")
    # The longest words first, except those of the line.
    assert [*kept.items] == ["grass", "house"]


def test_a_vocabulary_without_words_is_refused():
    vocabulary = learning.learn(["- . ! - ."], "bpe", 270)
    with pytest.raises(InputError, match="no word that can stand in for kept"):
        Keeper(["urls"], vocabulary)
    assert Keeper(["tags"], vocabulary).take_out("<b>-</b>").text == "-"
