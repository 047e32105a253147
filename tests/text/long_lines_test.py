"""Lines that are too long are cut where a reader would, without loss."""

import math

import pytest
from tiny_translator import MAX_LENGTH, learn_vocabulary, sentence

from t2t_lite.errors import InputError
from t2t_lite.text import learning
from t2t_lite.text.long_lines import LineSplitter
from t2t_lite.text.sentences import Splitting
from t2t_lite.token_ids import EOS


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


@pytest.fixture(scope="module")
def splitter(vocabulary):
    return LineSplitter(vocabulary, MAX_LENGTH, Splitting())


def without_eos(pieces):
    assert all(piece[-1] == EOS for piece in pieces)
    return [i for piece in pieces for i in piece[:-1]]


def assert_hold_all(pieces, line, vocabulary):
    assert all(1 < len(piece) <= MAX_LENGTH for piece in pieces)
    (ids,) = vocabulary.encode([line])
    assert [*without_eos(pieces), EOS] == ids


def test_each_sentence_is_a_piece_however_short(splitter, vocabulary, caplog):
    sizes = (3, 9, 1, 21, 2)
    parts = [sentence(size, n) for n, size in enumerate(sizes)]
    pieces = splitter.split_lines([" ".join(parts), "", parts[2]])
    assert vocabulary.decode(pieces.ids) == [*parts, parts[2]]
    assert pieces.line_indices == [0, 0, 0, 0, 0, 2]
    assert caplog.messages == []


def test_lines_up_to_a_length_are_one_piece(vocabulary):
    fits, too_long = "the dog. " + sentence(8), "the dog. " + sentence(9)
    lengths = [len(ids) for ids in vocabulary.encode([fits, too_long])]
    assert lengths == [13, 14]
    splitter = LineSplitter(vocabulary, MAX_LENGTH, Splitting(None, 13))
    pieces = splitter.split_lines([fits, too_long])
    assert pieces.line_indices == [0, 1, 1]
    assert [len(ids) for ids in pieces.ids] == [13, 4, 11]


def test_a_line_longer_than_the_model_takes_is_split_in_any_case(vocabulary):
    fits, too_long = "the dog. " + sentence(18), "the dog. " + sentence(19)
    splitter = LineSplitter(vocabulary, MAX_LENGTH, Splitting(None, 1000))
    pieces = splitter.split_lines([fits, too_long])
    assert pieces.line_indices == [0, 1, 1]
    assert [len(ids) for ids in pieces.ids] == [MAX_LENGTH, 4, 21]


def test_a_sentence_too_long_is_cut_between_words_with_a_warning(
    splitter, vocabulary, caplog
):
    line = sentence(5) + " " + sentence(61) + " " + sentence(2)
    pieces = splitter.split_lines([line], 83).ids
    assert_hold_all(pieces, line, vocabulary)
    for piece in pieces:
        assert vocabulary.tokens(piece)[0].startswith("▁")
    (warning,) = caplog.messages
    assert warning.startswith("Line 83 has a sentence of 63 tokens")
    assert f"more than the {MAX_LENGTH}" in warning


def test_a_word_stays_whole_where_a_sentence_is_cut(splitter, vocabulary):
    line = " ".join(["xyzzy"] * 13)  # Spelled in bytes, not in one piece.
    (ids,) = vocabulary.encode(["xyzzy"])
    assert len(ids) > 5
    pieces = splitter.split_lines([line]).ids
    assert_hold_all(pieces, line, vocabulary)
    assert all(
        set(text.split()) == {"xyzzy"} for text in vocabulary.decode(pieces)
    )


def test_a_line_without_any_space_is_cut_too(splitter, vocabulary, caplog):
    line = "x" * 101
    pieces = splitter.split_lines([line]).ids
    assert_hold_all(pieces, line, vocabulary)
    assert len(pieces) == math.ceil((101 + 1) / (MAX_LENGTH - 1))
    assert len(caplog.messages) == 1


def test_a_model_that_takes_hardly_any_gets_one_id_at_a_time():
    lines = [">>deu<< the dog", "the cat >>deu<<", "abcdefg"]
    vocabulary = learning.learn(lines, "bpe", 300, reserved=[">>deu<<"])
    splitting = Splitting(language_tokens=True)
    splitter = LineSplitter(vocabulary, 2, splitting)
    pieces = splitter.split_lines(["the dog"]).ids
    assert 1 < len(pieces) < 20
    assert all(len(piece) == 2 for piece in pieces)
    with pytest.raises(InputError, match="max_length must be at least 3 where"):
        splitter.split_lines([">>deu<< the dog"])
