"""Lines translated to themselves come back with all that they keep."""

import re

import pytest
from tiny_translator import MAX_LENGTH, learn_vocabulary, sentence

from t2t_lite.decoding.keeping import KeptLines
from t2t_lite.decoding.kept import Keeper
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.long_lines import LineSplitter
from t2t_lite.decoding.tags import Word
from t2t_lite.text.sentences import Splitting

_TOKEN = re.compile("(?:>>[a-z]+<< )?")


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


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
    joined = [
        [
            Translation(
                " ".join(
                    by_piece[n][rank].text
                    for n, line in enumerate(pieces.line_indices)
                    if line == index
                ),
                -1.0 - rank,
            )
            for rank in range(2)
        ]
        for index in range(len(lines))
    ]
    found = kept.put_back(joined, pieces, by_piece, same_words)
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
        vocabulary, lines, Splitting(), ["tags", "placeholders"]
    )
    assert found == lines


def test_what_has_no_translation_is_left_blank(vocabulary):
    kept = KeptLines(Keeper(["tags"], vocabulary), ["<b>a</b>"])
    pieces = LineSplitter(vocabulary, MAX_LENGTH, Splitting()).split_lines(
        kept.lines
    )
    nothing = [[Translation("", -float("inf"))]]
    assert kept.put_back(nothing, pieces, nothing, same_words) == nothing
