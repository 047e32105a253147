"""Lines that are too long: cut where a reader would, and nothing is lost."""

import math

import pytest
from tiny_translator import MAX_LENGTH, learn_vocabulary, sentence

from t2t_lite.decoding.long_lines import LineSplitter
from t2t_lite.token_ids import EOS


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


@pytest.fixture(scope="module")
def splitter(vocabulary):
    return LineSplitter(vocabulary, MAX_LENGTH)


def without_eos(pieces):
    assert all(piece[-1] == EOS for piece in pieces)
    return [i for piece in pieces for i in piece[:-1]]


def assert_hold_all(pieces, line, vocabulary):
    assert all(1 < len(piece) <= MAX_LENGTH for piece in pieces)
    (ids,) = vocabulary.encode([line])
    assert [*without_eos(pieces), EOS] == ids


def test_long_lines_are_cut_between_sentences(splitter, vocabulary, caplog):
    sizes = (3, 9, 7, 4, 21, 2, 1, 12, 1)
    sentences = [sentence(size, n) for n, size in enumerate(sizes)]
    line = " ".join(sentences)
    pieces = splitter.split(line, 1)
    assert_hold_all(pieces, line, vocabulary)
    # Words and full stops are an id each; as many sentences as fit go together.
    joined = [[3, 9, 7], [4], [21], [2, 1, 12, 1]]
    assert [len(piece) for piece in pieces] == [
        sum(size + 1 for size in group) + 1 for group in joined
    ]
    assert caplog.messages == []


@pytest.mark.parametrize(
    "end", [".", "!", "?", "…", '."', ".'", ".”", ".»", "!)", "?]", "。"]
)
def test_a_sentence_ends_at_any_of_these(splitter, vocabulary, end):
    parts = [sentence(11, n)[:-1] + end for n in range(4)]
    pieces = splitter.split(" ".join(parts), 1)
    texts = vocabulary.decode(pieces)
    assert " ".join(texts) == " ".join(parts)
    assert all(text.endswith(end) for text in texts)
    assert len(texts) >= 2


def test_sentences_need_no_space_between_them_in_chinese(splitter, vocabulary):
    line = "你好。" * 7  # Nine bytes each, and an id for what has no space.
    pieces = splitter.split(line, 1)
    texts = vocabulary.decode(pieces)
    assert "".join(texts).replace(" ", "") == line
    assert all(text.endswith("。") for text in texts)
    assert all(len(piece) <= MAX_LENGTH for piece in pieces)


def test_a_line_of_just_the_largest_length_is_not_cut(splitter, vocabulary):
    fits, too_long = "the dog. " + sentence(18), "the dog. " + sentence(19)
    lengths = [len(ids) for ids in vocabulary.encode([fits, too_long])]
    assert lengths == [MAX_LENGTH, MAX_LENGTH + 1]
    assert len(splitter.split(fits, 1)) == 1
    assert [len(p) for p in splitter.split(too_long, 1)] == [4, 21]


def test_a_sentence_too_long_is_cut_between_words_with_a_warning(
    splitter, vocabulary, caplog
):
    line = sentence(5) + " " + sentence(61) + " " + sentence(2)
    pieces = splitter.split(line, 83)
    assert_hold_all(pieces, line, vocabulary)
    for piece in pieces:
        assert vocabulary.tokens(piece)[0].startswith("▁")
    (warning,) = caplog.messages
    assert warning.startswith("Line 83 has a sentence of 63 tokens")
    assert f"more than the {MAX_LENGTH}" in warning


def test_a_word_stays_whole_where_a_sentence_is_cut(splitter, vocabulary):
    line = " ".join(["xyzzy"] * 13)  # Bytes: no piece of the vocabulary.
    (ids,) = vocabulary.encode(["xyzzy"])
    assert len(ids) > 5
    pieces = splitter.split(line, 1)
    assert_hold_all(pieces, line, vocabulary)
    assert all(
        set(text.split()) == {"xyzzy"} for text in vocabulary.decode(pieces)
    )


def test_a_line_without_any_space_is_cut_too(splitter, vocabulary, caplog):
    line = "x" * 101
    pieces = splitter.split(line, 1)
    assert_hold_all(pieces, line, vocabulary)
    assert len(pieces) == math.ceil((101 + 1) / (MAX_LENGTH - 1))
    assert len(caplog.messages) == 1
