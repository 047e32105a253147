"""Lines translated to themselves come back with all that they keep."""

import re

import pytest
from joined_pieces import join_pieces
from tiny_searches import words_in
from tiny_translator import MAX_LENGTH, assert_same, sentence

from t2t_lite.alignment.kept_spans import Keeper
from t2t_lite.alignment.tags import Word
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.text.long_lines import LineSplitter
from t2t_lite.text.sentences import Splitting
from t2t_lite.translation.kept_lines import KeptLines

_TOKEN = re.compile("(?:>>[a-z]+<< )?")


def same_words(pairs):
    """Returns what an Aligner would for translations equal to their sources."""
    return [
        [
            Word(*match.span(), pair.source.index(pair.target) + match.start())
            for match in re.finditer(r"\w+|[^\w\s]", pair.target)
        ]
        for pair in pairs
    ]


def there_and_back(vocabulary, lines, splitting, kinds=("tags",)):
    """Returns lines that were taken apart, left unchanged and put back."""
    kept = KeptLines(Keeper(kinds, vocabulary), lines)
    splitter = LineSplitter(vocabulary, MAX_LENGTH, splitting)
    pieces = splitter.split_lines(kept.lines)
    texts = [text[_TOKEN.match(text).end() :] for text in pieces.texts]
    # The second best differs at most in white space.
    by_piece = [
        [Translation(text, -1.0), Translation(" ".join(text.split()), -2.0)]
        for text in texts
    ]
    joined = join_pieces(pieces, by_piece, len(lines))
    found = kept.put_back(joined, pieces, by_piece, aligner=same_words)
    for first, second in found:
        assert first.text == second.text
        assert (first.score, second.score) == (-1.0, -2.0)
    return [first.text for first, _ in found]


LINES = [
    "the <b>red dog</b> runs. A <i>cat</i> sees the boat.",
    "<p>Two men. The <b>old</b> cat.</p>",
    "A dog <x/>. <b>Two</b> men. The <i>house. A bird</i> runs.",
    "a dog",
    "",
    "<br/>",
]


def test_tags_of_all_sentences_are_put_back(vocabulary):
    assert there_and_back(vocabulary, LINES, Splitting()) == LINES


def test_a_language_token_moves_no_tag(vocabulary):
    lines = [">>deu<< A <b>dog</b>. The <i>cat</i>. Two <u>men</u> run."]
    splitting = Splitting(language_tokens=True)
    (found,) = there_and_back(vocabulary, lines, splitting)
    assert found == lines[0].removeprefix(">>deu<< ")


def test_tags_of_a_sentence_that_is_cut_are_put_back(vocabulary):
    words = sentence(40).split()
    words[30] = f"<b>{words[30]}</b>"
    words[35] = f"<i>{words[35]}"
    words[37] += "</i>"
    line = " ".join(words)
    assert there_and_back(vocabulary, [line], Splitting()) == [line]


def test_items_and_tags_are_put_back_together(vocabulary):
    lines = ["the <b>{name}</b> runs. A <i>cat</i> sees ({x}) and {y}."]
    found = there_and_back(
        vocabulary, lines, Splitting(), kinds=["tags", "placeholders"]
    )
    assert found == lines


def test_what_has_no_translation_is_left_blank(vocabulary):
    kept = KeptLines(Keeper(["tags"], vocabulary), ["<b>a</b>"])
    pieces = LineSplitter(vocabulary, MAX_LENGTH, Splitting()).split_lines(
        kept.lines
    )
    nothing = [[Translation("", -float("inf"))]]
    assert (
        kept.put_back(nothing, pieces, nothing, aligner=same_words) == nothing
    )


KEPT_LINES = [
    "the <b>red dog</b> sees {name}",
    "two men",
    "see a@b.org, or <i>the {x} and {y}</i>. A <br/>bird.",
    "<hr/>",
]
ITEMS = [
    ["<b>", "</b>", "{name}"],
    [],
    ["a@b.org", "<i>", "</i>", "{x}", "{y}", "<br/>"],
    ["<hr/>"],
]
ALL_KINDS = ["tags", "urls", "placeholders", "quantities"]


def without(text, items):
    for item in items:
        text = text.replace(item, "")
    return " ".join(text.split())


@pytest.mark.slow
def test_what_is_kept_is_there_once(steered, translator):
    keeping = steered(Splitting(), keep=ALL_KINDS, nbest=3)
    found = keeping.translate(KEPT_LINES)
    for several, items in zip(found, ITEMS, strict=True):
        for best in several:
            for item in items:
                assert best.text.count(item) == 1
    assert found[2][0].text.index("<i>") < found[2][0].text.index("</i>")
    assert [best.text for best in found[3]] == ["<hr/>"] * 3
    # A line with nothing to keep is translated as usual.
    plain = translator.translate(KEPT_LINES[1:2])
    assert_same(found[1:2], plain)
    assert_same(keeping.translate(KEPT_LINES[::-1]), found[::-1])


@pytest.mark.slow
def test_tags_leave_the_words_as_they_are(steered, translator):
    keeping = steered(keep=["tags"])
    lines = ["the <b>red</b> <i>ball on</i> a boat", "<p>men<br/></p>"]
    found = keeping.translate(lines)
    plain = translator.translate(["the red ball on a boat", "men"])
    names = ["<b>", "</b>", "<i>", "</i>", "<p>", "</p>", "<br/>"]
    for (best,), (expected, *_) in zip(found, plain, strict=True):
        assert without(best.text, names) == expected.text
        assert best.score == pytest.approx(expected.score, abs=1e-4)
        assert best.text != expected.text


def test_all_sentences_of_a_line_share_its_tags(steered):
    keeping = steered(Splitting(), keep=["tags"])
    (found,) = keeping.translate(["<b>A dog. Two men.</b> The <i>old</i> cat."])
    bold = found[0].text.partition("<b>")[2].partition("</b>")[0]
    alone = [keeping(text) for text in ("A dog.", "Two men.", "The old cat.")]
    assert without(found[0].text, ["<b>", "</b>", "<i>", "</i>"]) == " ".join(
        alone
    )
    assert len(bold.split()) >= 2


@pytest.mark.slow
def test_a_prefix_may_have_what_is_kept(steered):
    keeping = steered(keep=["tags", "placeholders"], nbest=3)
    line = "the <b>dog</b> sees {name} and {other}"
    found = keeping(line, prefix="the {name} a")
    assert found.replace("<b>", "").replace("</b>", "").startswith("the {name}")
    for item in ("{name}", "{other}", "<b>", "</b>"):
        assert found.count(item) == 1


@pytest.mark.slow
def test_a_glossary_and_what_is_kept_go_together(steered):
    keeping = steered(
        keep=["placeholders"], glossary={"dog": "old cat"}, nbest=3
    )
    found = keeping("the dog sees {name}")
    assert words_in(found, "old cat") == 1
    assert found.count("{name}") == 1


def test_what_cannot_be_kept_is_warned_of(steered, caplog):
    keeping = steered(keep=["placeholders"], max_extra_length=0)
    items = [f"{{{number}}}" for number in range(99)]
    with caplog.at_level("WARNING"):
        keeping._kept(["a dog", " ".join(items)], first_line=1, prefixes=None)
    assert "Line 2 has too many items to keep, so '{98}' is" in caplog.text
    assert "'{0}'" not in caplog.text
