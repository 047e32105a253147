"""URLs, placeholders and quantities come out as they went in."""

import re

import pytest
from tiny_translator import learn_vocabulary

from t2t_lite.decoding.kept import Keeper
from t2t_lite.decoding.search_options import KEPT
from t2t_lite.errors import InputError
from t2t_lite.text import learning


@pytest.fixture(scope="module")
def vocabulary():
    """One that knows all numbers of two digits."""
    numbers = " ".join(map(str, range(10, 100)))
    lines = [f"{numbers} send it to the dog, by the boat", "Aa Bb see at for ."]
    return learning.learn(lines, "bpe", 500)


@pytest.fixture(scope="module")
def keeper(vocabulary):
    return Keeper(KEPT, vocabulary)


# (kind, a line with what is kept between bars)
_FOUND = [
    ("urls", "see |https://a.org/b?c=d#e|."),
    ("urls", "(|http://a.org/b_(c)| is it)"),
    ("urls", "|www.a.org|, |ftp://b.org/c|!"),
    ("urls", "to |ann.b+c@sub.a-b.org|."),
    ("urls", "a@b, http:// and www. are none"),
    ("placeholders", "by |{date}| and |${x}|, |{{ a b }}|"),
    ("placeholders", "|%s| of |%(n)d|, |%1$s|, |{0}|; |{}|"),
    ("placeholders", "100% sure, 5 %silly, { a }"),
    ("quantities", "|5 km|, |3,5 kg|, |-2 °C|, |20%|, |€5|, |1.000,50 €|"),
    ("quantities", "|10 m²| in |3 h|, |5 GB|"),
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
    line = f"{LINE} 10 11 12 13"
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


def test_all_is_put_back(vocabulary):
    keeper = Keeper(["urls", "placeholders", "quantities"], vocabulary)
    kept = keeper.take_out(LINE)
    assert keeper.put_back(kept, kept.text) == LINE
    first, second, *_ = kept.items
    assert keeper.put_back(kept, f"({second}) x{first}, {first}.") == (
        f"({{date}}) x{first}, ann@a.org."
    )
    # The same word twice, in other pieces.
    assert keeper.put_back(kept, f"{first} und {first}") == "ann@a.org und "


def test_letters_do_not_touch_a_stand_in(vocabulary):
    kept = Keeper(["placeholders"], vocabulary).take_out("{n}th, pre{a}/{b}")
    first, second, third = kept.items
    assert kept.text == f"{first} th, pre {second}/{third}"


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
    # What the translation begins with has it already.
    assert keeper.terms(kept, kept.text, kept.text, room=20) == ([], [])


def test_what_has_no_room_is_said(keeper):
    kept = keeper.take_out("{a} and {b}")
    size = sum(len(t.ids) for t in keeper.terms(kept, kept.text, "", 99)[0])
    terms, messages = keeper.terms(kept, kept.text, "", room=size - 1)
    assert len(terms) == 1
    assert messages == ["there is no room for '{b}': it is left out"]


def test_prefixes_have_stand_ins_too(keeper):
    kept = keeper.take_out("<i>See</i> {a} at {b}.")
    first, second = kept.items
    found = keeper.in_prefix("<i>Aa</i> {b} {c} {a", kept)
    assert found == f"Aa {second} {{c}} {{a"
    assert keeper.in_prefix("<i>Aa</i> ", kept) == "Aa "
    assert keeper.in_prefix("{a}th", kept) == f"{first} th"
    kept = keeper.take_out("{a} {a}")
    found = keeper.in_prefix("{a} {a} {a}", kept)
    assert found == " ".join([*kept.items, "{a}"])


def test_what_nothing_can_stand_in_for_is_named(vocabulary):
    keeper = Keeper(["placeholders"], vocabulary)
    items = [f"{{{letter * 3}}}" for letter in "abcdefghijklmnopqrstuvw"] * 5
    kept = keeper.take_out(" ".join(items))
    assert len(kept.items) == 89  # 11 to 99
    assert kept.left == items[89:]
    assert kept.text.endswith(" ".join(items[89:]))


def test_words_stand_in_where_there_are_no_numbers():
    keeper = Keeper(["placeholders"], learn_vocabulary())
    kept = keeper.take_out("the water {a} {b}")
    # The longest first, and none of the line's.
    assert [*kept.items] == ["grass", "house"]


def test_a_vocabulary_without_words_is_refused():
    vocabulary = learning.learn(["- . ! - ."], "bpe", 270)
    with pytest.raises(InputError, match="no word that can stand in for what"):
        Keeper(["urls"], vocabulary)
    assert Keeper(["tags"], vocabulary).take_out("<b>-</b>").text == "-"
