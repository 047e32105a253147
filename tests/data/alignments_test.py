"""The word alignments of the embedded corpus, which its grammar provides."""

import pytest

from t2t_lite.errors import InputError
from t2t_lite_data import corpora, embedded, marks, patterns, short_patterns
from t2t_lite_data.lexicon import Text


@pytest.fixture(scope="module")
def links() -> dict[tuple[str, str], list[tuple[int, int]]]:
    """The links of each pair of the test split."""
    lines = embedded.alignments("test")
    parsed = map(links_of, lines)
    return dict(zip(embedded.pairs("test"), parsed, strict=True))


def links_of(line: str) -> list[tuple[int, int]]:
    return [tuple(map(int, link.split("-"))) for link in line.split()]


def readable(pair: tuple[str, str], links: list[tuple[int, int]]) -> str:
    """Returns each English word with its German ones: `did=hat+gekauft`."""
    source, target = (side.rstrip(".?").replace(",", "") for side in pair)
    words = target.split()
    return " ".join(
        f"{word}=" + "+".join(words[j] for i, j in links if i == place)
        for place, word in enumerate(source.split())
    )


# --- The lines ---


def test_there_is_a_line_for_each_pair():
    assert len(embedded.alignments("test")) == embedded.SIZES["test"]


def test_a_split_is_aligned_as_it_is_drawn_behind_those_before_it():
    pairs, lines = embedded.pairs("dev"), embedded.alignments("dev")
    assert len(lines) == len(pairs)
    for (source, target), line in zip(pairs, lines, strict=True):
        places = [link.split("-") for link in line.split()]
        assert max(int(i) for i, _ in places) < len(source.split())
        assert max(int(j) for _, j in places) < len(target.split())


def test_links_are_sorted_and_within_their_sentences(links):
    for (source, target), found in links.items():
        assert found == sorted(set(found))
        assert all(0 <= i < len(source.split()) for i, _ in found)
        assert all(0 <= j < len(target.split()) for _, j in found)


@pytest.mark.parametrize("side", [0, 1])
def test_nearly_all_words_are_linked(links, side):
    linked = sum(len({link[side] for link in ls}) for ls in links.values())
    assert linked >= 0.99 * sum(len(pair[side].split()) for pair in links)


def test_an_unknown_split_is_an_input_error():
    with pytest.raises(InputError, match="received 'valid'"):
        embedded.alignments("valid")


def test_only_the_embedded_corpus_knows_its_alignments():
    known = [name for name, c in corpora.CORPORA.items() if c.alignments]
    assert known == ["embedded"]
    readers = corpora.named("embedded").alignments
    assert [*readers] == [*corpora.SPLITS]
    assert readers["test"]() == embedded.alignments("test")


# --- The links ---


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        # Separated prefixes, participles, infinitives and auxiliaries.
        (
            short_patterns.doing,
            "The=Der farmer=Bauer is=leiht+aus not=kein borrowing=leiht+aus "
            "a=kein cookbook=Kochbuch",
        ),
        (
            short_patterns.already,
            "Has=Hat+mitgenommen she=sie already=schon taken=Hat+mitgenommen "
            "it=es along=Hat+mitgenommen",
        ),
        (
            patterns.obligation,
            "I=Ich must=muss take=ausziehen off=ausziehen a=eine cap=Mütze",
        ),
        # Subordinate and relative clauses.
        (
            patterns.doubt,
            "He=Er does=weiß not=nicht know=weiß whether=ob you=du "
            "worked=gearbeitet+hast",
        ),
        (
            patterns.reason,
            "Simon=Simon ate=hat+gegessen meat=Fleisch quickly=schnell "
            "because=weil he=er was=war happy=glücklich",
        ),
        (
            patterns.object_relative,
            "He=Er is=füttert feeding=füttert the=das rabbit=Kaninchen "
            "that=das Paul=Paul photographed=fotografiert+hat",
        ),
        (
            short_patterns.remark,
            "The=Die jumpers=Pullover that=die we=wir saw=gesehen+haben "
            "were=waren grey=grau",
        ),
        # kein is linked with `not` and, if there is one, with `a`.
        (
            short_patterns.profession,
            "She=Sie is=ist not=keine a=keine tailor=Schneiderin",
        ),
        (
            short_patterns.doing,
            "You=Du did=hast+gepflückt not=keine pick=hast+gepflückt "
            "sweet=süßen strawberries=Erdbeeren",
        ),
        (
            short_patterns.existence,
            "There=es is=gibt no=keinen honey=Honig in=Im the=Im cinema=Kino",
        ),
        # Contracted prepositions, also a verb's, are linked with `the` too.
        (
            short_patterns.existence,
            "There=es is=gibt coffee=Kaffee in=Im the=Im zoo=Zoo",
        ),
        (
            short_patterns.concern,
            "I=Ich dreamt=habe+geträumt of=vom the=vom honey=Honig",
        ),
        # An adverbial, a measure, a genitive and a profession.
        (
            patterns.thirst,
            "On=Am Saturday=Samstag she=sie drank=hat+getrunken a=eine "
            "bottle=Flasche of= wine=Wein",
        ),
        (
            short_patterns.belongings,
            "The=des fox's=Fuchses beer=Bier is=ist cold=kalt",
        ),
        (short_patterns.profession, "She=Sie was=war an= engineer=Ingenieurin"),
        (
            short_patterns.comparison,
            "Your=Deine wallet=Geldbörse is=ist much=viel shorter=kürzer "
            "than=als his=sein armchair=Sessel",
        ),
        (
            short_patterns.comparison,
            "My=Mein plate=Teller was=war as=so famous=berühmt as=wie his=sein "
            "hospital=Krankenhaus",
        ),
        # `not ... yet` is `noch nicht`.
        (
            short_patterns.already,
            "I=Ich have=habe+ausgemacht not=nicht turned=habe+ausgemacht "
            "off=habe+ausgemacht my=meinen computer=Computer yet=noch",
        ),
        (
            short_patterns.still,
            "She=Sie was=war not=nicht satisfied=zufrieden yet=noch",
        ),
        (
            short_patterns.excess,
            "Their=Ihre chairs=Stühle are=sind too=zu small=klein for=für "
            "the=die old=alte nurse=Krankenschwester",
        ),
    ],
)
def test_words_are_linked_with_what_they_became(pattern, expected):
    draw = patterns.Draw(3)
    with marks.noted() as lines:
        for _ in range(1000):
            pattern(draw)
    assert expected in [readable(p, links_of(ls)) for p, ls in lines.items()]


# --- The marks ---


def test_marking_leaves_the_text_as_it_is():
    with marks.noted():
        marked = some_of_every_pattern()
    assert marked == some_of_every_pattern()


def some_of_every_pattern() -> list[tuple[str, str]]:
    draw = patterns.Draw(3)
    table = patterns.PATTERNS + short_patterns.PATTERNS
    return [pattern(draw) for _, pattern in table for _ in range(30)]


def test_without_a_reader_nothing_is_marked():
    assert marks.marked("the boy", 1) == "the boy"
    assert marks.double("im") == "im"


def test_words_keep_their_marks():
    with marks.noted():
        boy = marks.marked("the boy", 1)
        whole = marks.marked(f"with {boy},", 2)
        assert marks.pharaoh(whole, boy) == "1-0 1-1 2-0 2-1"
        assert marks.removed(whole) == "with the boy,"


def test_a_double_word_takes_two_marks_and_no_third():
    with marks.noted():
        word = marks.double("kein")
        for origin in (1, 2, 3):
            word = marks.marked(word, origin)
        others = " ".join(marks.marked("not", i) for i in (1, 2, 3))
        assert marks.pharaoh(word, others) == "0-0 0-1"
        assert marks.removed(word) == "kein"


@pytest.mark.parametrize(
    ("english", "german", "line"),
    [
        ("last week", "letzte Woche", "0-0 1-1"),
        ("a lot of work", "viel Arbeit", "0-0 1-0 2-0 3-1"),
        ("in front of", "vor", "0-0 1-0 2-0"),
        ("yesterday", "gestern", "0-0"),
        ("", "gern", ""),
    ],
)
def test_texts_are_linked_as_wholes_or_by_their_last_words(
    english, german, line
):
    with marks.noted():
        text = marks.apart(Text(english, german))
        assert marks.pharaoh(text.english, text.german) == line
