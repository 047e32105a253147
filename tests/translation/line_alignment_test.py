"""Lines translated to themselves have each word linked to itself."""

import pytest
from joined_pieces import join_pieces
from tiny_translator import MAX_LENGTH, learn_vocabulary, sentence

from t2t_lite.decoding.line_predictor import Translation, as_lines
from t2t_lite.text.long_lines import LineSplitter, Pieces
from t2t_lite.text.sentences import Splitting
from t2t_lite.translation.line_alignment import with_links

TOKEN = ">>deu<< "


class SameWords:
    """An Aligner that links each target word to the same word of its source."""

    def links(self, pairs):
        found = []
        for pair in pairs:
            sources = pair.source.removeprefix(TOKEN).split()
            skipped = len(pair.source.split()) - len(sources)
            targets = pair.target.split()
            found.append(
                [(sources.index(w) + skipped, t) for t, w in enumerate(targets)]
            )
        return [found, "of another head"]


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


def aligned(vocabulary, lines, splitting, aligner=None):
    """Returns lines as they are, and reversed piece by piece, with links."""
    splitter = LineSplitter(vocabulary, MAX_LENGTH, splitting)
    pieces = splitter.split_lines(lines)
    texts = [text.removeprefix(TOKEN) for text in pieces.texts]
    by_piece = [
        [
            Translation(text, -1.0),
            Translation(" ".join(text.split()[::-1]), -2.0),
        ]
        for text in texts
    ]
    found = join_pieces(pieces, by_piece, len(lines))
    linked = with_links(
        found, lines, pieces, by_piece=by_piece, aligner=aligner or SameWords()
    )
    texts_and_scores = [
        [Translation(each.text, each.score) for each in several]
        for several in linked
    ]
    assert texts_and_scores == found
    return linked


def assert_each_word_is_linked_to_itself(lines, linked):
    for line, several in zip(lines, linked, strict=True):
        words = line.split()
        for text, _, links in several:
            targets = text.split()
            assert [t for _, t in links] == list(range(len(targets)))
            for source, target in links:
                assert words[source] == targets[target]
            # Not to the same word of another sentence: no two share one.
            assert len({source for source, _ in links}) == len(targets)


LINES = [
    "the red dog runs. A cat sees the old boat.",
    "",
    "A dog sits. Two red men. The dog sits on a hill. A bird.",
    "a  dog\u00a0runs ",
]


def test_links_are_of_the_words_of_the_line(vocabulary):
    linked = aligned(vocabulary, LINES, Splitting())
    assert_each_word_is_linked_to_itself(LINES, linked)
    assert linked[1] == [("", -1.0, ()), ("", -2.0, ())]
    assert [len(first.links) for first, _ in linked] == [10, 0, 14, 3]


def test_a_language_token_moves_no_link(vocabulary):
    lines = [f"{TOKEN}A dog runs. The dog sits. A dog sees a boat."]
    linked = aligned(vocabulary, lines, Splitting(language_tokens=True))
    first, _ = linked[0]
    assert first.links == tuple((n + 1, n) for n in range(11))


class FirstWords:
    """An Aligner that links every target word to the first source word."""

    def links(self, pairs):
        return [
            [[(0, t) for t, _ in enumerate(p.target.split())] for p in pairs]
        ]


def test_the_token_of_a_line_is_its_first_word_in_each_sentence(vocabulary):
    line = f"{TOKEN}A dog runs. The dog sits."
    linked = aligned(
        vocabulary,
        [line],
        Splitting(language_tokens=True),
        aligner=FirstWords(),
    )
    assert linked[0][0].links == tuple((0, n) for n in range(6))


def test_what_is_written_in_another_way_begins_at_the_next_word(vocabulary):
    lines = ["a dog\u00a0 runs  by the½ water"]
    ids = [[5, 1], [6, 1]]
    pieces = Pieces(
        ids, [0, 0], [True, False], texts=["a dog", "runs by the1/2 wa"]
    )
    by_piece = [[Translation(text, -1.0)] for text in pieces.texts]
    found = [[Translation(" ".join(pieces.texts), -2.0)]]
    (((_, _, links),),) = with_links(
        found, lines, pieces, by_piece=by_piece, aligner=SameWords()
    )
    assert links == tuple((n, n) for n in range(6))


def test_links_of_a_sentence_that_is_cut_are_of_its_line(vocabulary):
    line = sentence(24)
    linked = aligned(vocabulary, [f"a dog runs. {line}"], Splitting())
    assert_each_word_is_linked_to_itself([f"a dog runs. {line}"], linked)


def test_a_line_without_a_translation_has_no_links(vocabulary):
    pieces = LineSplitter(vocabulary, MAX_LENGTH, Splitting()).split_lines(
        ["A dog. A cat."]
    )
    by_piece = [[Translation("A dog.", -1.0)], [Translation("", -float("inf"))]]
    found = [[Translation("", -float("inf"))]]
    (((text, _, links),),) = with_links(
        found, ["A dog. A cat."], pieces, by_piece=by_piece, aligner=SameWords()
    )
    assert (text, links) == ("", ())


def test_links_stand_behind_a_translation(vocabulary):
    ((first, second), *_) = aligned(vocabulary, ["the dog runs"], Splitting())
    assert as_lines([first]) == "the dog runs ||| 0-0 1-1 2-2\n"
    assert as_lines([first, second], number=7) == (
        "7 ||| the dog runs ||| -1.0000 ||| 0-0 1-1 2-2\n"
        "7 ||| runs dog the ||| -2.0000 ||| 0-2 1-1 2-0\n"
    )
    assert as_lines([first], with_score=True) == (
        "-1.0000\tthe dog runs ||| 0-0 1-1 2-2\n"
    )
