"""Vocabularies have the requested size, or a message says why not."""

import pytest
from bilingual_text import CORPUS

from t2t_lite.errors import InputError
from t2t_lite.text import learning

KINDS = ("bpe", "unigram")
SIZE = 420


@pytest.mark.parametrize("size", [330, 341, 419])
def test_bpe_has_the_size_that_was_asked_for(size):
    assert learning.learn(CORPUS, "bpe", size).size == size


def test_unigram_has_the_size_that_was_asked_for():
    assert learning.learn(CORPUS, "unigram", 311).size == 311


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_corpus_gets_the_most_it_supports_and_a_warning(kind, caplog):
    vocabulary = learning.learn(CORPUS[:9], kind, 5003)
    # The bytes and the characters of these lines, and not much more.
    assert 256 + 20 < vocabulary.size < 1000
    (warning,) = caplog.messages
    assert f"vocabulary of 5003: learning one of {vocabulary.size}" in warning
    assert vocabulary.decode(vocabulary.encode(CORPUS)) == CORPUS


@pytest.mark.parametrize("kind", KINDS)
def test_too_small_a_size_is_refused_with_the_least(kind):
    # PAD and EOS, the unknown piece, bytes, characters, the sign for a space.
    characters = set("".join(CORPUS)) - {" "}
    least = 2 + 1 + 256 + len(characters) + 1
    with pytest.raises(InputError, match=f"at least {least}.*received 100"):
        learning.learn(CORPUS, kind, 100)
    with pytest.raises(InputError, match=f"at least {least}"):
        learning.learn(CORPUS, kind, least - 1)
    assert learning.learn(CORPUS, kind, least).size <= least


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_sizes_without_room_for_a_piece_are_refused(kind, size):
    message = "vocabulary_size must .* for the bytes and the characters"
    with pytest.raises(InputError, match=message):
        learning.learn(CORPUS, kind, size)


@pytest.mark.parametrize("lines", [[], ["", " ", "\t"]])
def test_no_text_is_refused(lines):
    with pytest.raises(InputError, match="no text"):
        learning.learn(lines, "bpe", SIZE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_corpus_of_one_word_can_be_learned_from(kind):
    vocabulary = learning.learn(["dog"], kind, 300)
    assert vocabulary.decode(vocabulary.encode(["a dog"])) == ["a dog"]


@pytest.mark.parametrize("kind", KINDS)
def test_very_long_lines_are_learned_from(kind):
    # By default, SentencePiece skips lines of more than 4192 bytes.
    long = "Ein Mädchen läuft. " * 400
    learned = learning.learn([long, long + "dog"], kind, 300)
    (ids,) = learned.encode(["Ein Mädchen läuft."])
    assert not [name for name in learned.tokens(ids) if "<0x" in name]


@pytest.mark.parametrize("kind", KINDS)
def test_learning_twice_gives_the_same_bytes(kind):
    first = learning.learn(iter(CORPUS), kind, 345)
    assert learning.learn(iter(CORPUS), kind, 345).model == first.model


def test_more_lines_than_are_learned_from_are_sampled(monkeypatch):
    monkeypatch.setattr(learning, "_LINES_LEARNED_FROM", 40)
    assert learning._sample(CORPUS[:40]) == CORPUS[:40]
    samples = [learning._sample(iter(CORPUS)) for _ in range(2)]
    assert samples[0] == samples[1]
    assert len(set(samples[0])) == 40
    assert set(samples[0]) <= set(CORPUS)
    # The sample comes from the whole corpus, not just its beginning or end.
    places = [CORPUS.index(line) for line in samples[0]]
    assert min(places) < len(CORPUS) / 4
    assert max(places) > len(CORPUS) * 3 / 4
    # The vocabulary is the one that is learned from the sample alone.
    learned = learning.learn(CORPUS, "bpe", 330)
    assert learned.model == learning.learn(samples[0], "bpe", 330).model


def test_each_line_is_as_likely_to_be_sampled_as_another(monkeypatch):
    monkeypatch.setattr(learning, "_LINES_LEARNED_FROM", 3000)
    sample = learning._sample(map(str, range(12_000)))
    quarters = [sum(int(n) // 3000 == q for n in sample) for q in range(4)]
    # 750 are expected from each quarter, with a standard deviation of about 21.
    assert max(abs(count - 750) for count in quarters) < 100


@pytest.mark.parametrize("kind", KINDS)
def test_reserved_symbols_come_after_the_control_symbols(kind):
    vocabulary = learning.learn(
        CORPUS, kind, 323, symbols=["(A", "B"], reserved=["<bt>", "<x>"]
    )
    assert vocabulary.control_symbols == {"(A": 3, "B": 4}
    assert vocabulary.reserved_ids(["<x>", "<bt>"]) == {"<bt>": 5, "<x>": 6}
