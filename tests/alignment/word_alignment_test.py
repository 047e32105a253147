"""Words stand for what the decoder attends to, whatever else is aligned."""

import re
import types

import numpy as np
import pytest
from tiny_translator import (
    LEARNED,
    TINY,
    WORDS,
    learn_vocabulary,
    random_model,
    sentence,
)

from t2t_lite.alignment import word_alignment
from t2t_lite.alignment.word_alignment import Aligner, Pair
from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.token_ids import EOS
from t2t_lite.visualization import maps


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


@pytest.fixture(scope="module")
def model(vocabulary):
    return random_model(TINY, vocabulary)


@pytest.fixture(scope="module")
def aligner(model, vocabulary):
    return Aligner(model, vocabulary)


# Each word of the vocabulary is one token; "dogs" and "ä" are several.
TEXTS = [
    ("a red ball", "the old cat sits."),
    ("two men, near the boat.", "dogs runs (by) a tree"),
    ("the dogs", "ä ball"),
    ("a", ""),
    ("the house and the hill over the water", "bird"),
]


def as_pair(vocabulary, source, target):
    (ids,) = vocabulary.encode([source])
    return Pair(ids, source, target)


def places_of(vocabulary, text):
    """Returns the (start, end) of each piece of a text."""
    (ids,) = vocabulary.encode([text])
    places, done = [], 0
    for piece in vocabulary.tokens(ids[:-1]):
        name = piece.replace("\u2581", "")
        if name.startswith("<0x"):
            byte = int(name[1:-1], 16)
            name = chr(byte) if byte < 128 else ""
        start = text.index(name, done) if name else done
        done = start + len(name)
        places.append((start, done))
    return places


@pytest.mark.parametrize(("source", "target"), TEXTS[:2])
def test_a_word_stands_for_what_its_pieces_attend_to(
    source, target, model, vocabulary, aligner
):
    pair = as_pair(vocabulary, source, target)
    (words,) = aligner([pair])
    assert [target[w.start : w.end] for w in words] == {
        TEXTS[0][1]: ["the", "old", "cat", "sits", "."],
        TEXTS[1][1]: ["dogs", "runs", "(", "by", ")", "a", "tree"],
    }[target]
    (target_ids,) = vocabulary.encode([target])
    weights_HTS = maps.compute_maps_from_ids(
        model, vocabulary, source_ids=pair.source_ids, target_ids=target_ids
    ).encoder_decoder.weights_NHLM[-1]
    weights_TS = weights_HTS.mean(axis=0)
    sources = places_of(vocabulary, source)
    targets = places_of(vocabulary, target)
    for word in words:
        rows = [
            n
            for n, (start, end) in enumerate(targets)
            if start < word.end and end > word.start
        ]
        attended_S = weights_TS[rows].sum(axis=0)[: len(sources)]
        start, _ = sources[int(attended_S.argmax())]
        assert word.source_offset == start


def test_other_pairs_change_nothing(vocabulary, aligner):
    pairs = [as_pair(vocabulary, *texts) for texts in TEXTS]
    together = aligner(pairs)
    assert together == [aligner([pair])[0] for pair in pairs]
    assert together[3] == []
    assert len({word.source_offset for words in together for word in words}) > 2
    assert aligner(pairs[::-1]) == together[::-1]


@pytest.mark.parametrize(
    "text",
    ["ä red ball", "日本 a red dog", "a red dog 日本", "😀 a cat 😀 dog"],
)
def test_what_is_spelled_in_bytes_moves_no_other_word(vocabulary, text):
    (ids,) = vocabulary.encode([text])
    starts, _ = word_alignment._spans(vocabulary, ids, text)
    pieces = vocabulary.tokens(ids[:-1])
    assert len(starts) == len(pieces)
    for piece, start in zip(pieces, starts, strict=True):
        word = piece.removeprefix("\u2581")
        if word in WORDS:
            assert text[start:].startswith(word)
    assert (starts[1:] >= starts[:-1]).all()


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        # The vocabulary does not know the last character.
        ("the dog Ω", [b" the", b" dog", b" ", b""], [[0], [1], [3]]),
        # NFKC writes the ligature differently.
        ("ﬁne dog", [b" fi", b"ne", b" dog"], [[1], [2]]),
    ],
)
def test_words_of_texts_that_are_written_otherwise_have_pieces(
    text, pieces, expected
):
    vocabulary = types.SimpleNamespace(token_bytes=[b"", b"", *pieces])
    ids = [*range(2, 2 + len(pieces)), EOS]
    words = word_alignment._spaced(text)
    is_part_WT = word_alignment._parts(vocabulary, ids, text, words=words)
    assert [np.flatnonzero(each).tolist() for each in is_part_WT] == expected


def test_accents_and_apostrophes_are_parts_of_words(vocabulary, aligner):
    text = "he\u0301 can't 'a' हिन्दी"
    (words,) = aligner([as_pair(vocabulary, "the dog", text)])
    found = [text[word.start : word.end] for word in words]
    assert found == ["he\u0301", "can't", "'", "a", "'", "हिन्दी"]


@pytest.fixture(scope="module")
def learned(vocabulary):
    """An Aligner whose model has learned positions."""
    return Aligner(random_model(LEARNED, vocabulary), vocabulary)


def test_a_longer_target_than_the_model_takes_is_aligned(vocabulary, learned):
    target = sentence(40)
    (words,) = learned([as_pair(vocabulary, "a red ball", target)])
    assert len(words) == 41
    assert {word.source_offset for word in words} <= {0, 2, 6}


def test_words_behind_what_the_model_takes_have_no_links(vocabulary, learned):
    longest = LEARNED.learned_positions
    pair = as_pair(vocabulary, "a red ball", sentence(40))
    ((links,),) = learned.links([pair])
    assert {target for _, target in links} == set(range(longest))
    (words,) = learned([pair])
    behind = {word.source_offset for word in words[longest:]}
    assert behind == {words[longest - 1].source_offset}


def parts_of(vocabulary, text):
    """Returns, for each word of a text, the numbers of its pieces."""
    places = places_of(vocabulary, text)
    return [
        [
            n
            for n, (start, end) in enumerate(places)
            if start < match.end() and end > match.start()
        ]
        for match in re.finditer(r"\S+", text)
    ]


HEADS = [
    AlignmentHead(0),
    AlignmentHead(0, 2),
    AlignmentHead(1, 0),
    AlignmentHead(1, 1, reads=True),
]


@pytest.fixture(scope="module")
def of_heads(model, vocabulary):
    return Aligner(model, vocabulary, HEADS)


def test_words_are_linked_by_the_heads_that_are_asked(
    model, vocabulary, of_heads
):
    texts = [each for each in TEXTS if "ä" not in each[1]]  # "ä" is two pieces.
    pairs = [as_pair(vocabulary, *each) for each in texts]
    found = of_heads.links(pairs)
    for n, (source, target) in enumerate(texts):
        (target_ids,) = vocabulary.encode([target])
        weights_NHTS = maps.compute_maps_from_ids(
            model,
            vocabulary,
            source_ids=pairs[n].source_ids,
            target_ids=target_ids,
        ).encoder_decoder.weights_NHLM
        for head, by_pair in zip(HEADS, found, strict=True):
            weights_HTS = weights_NHTS[head.layer]
            weights_TS = (
                weights_HTS.mean(axis=0)
                if head.head is None
                else weights_HTS[head.head]
            )
            if head.reads:  # The next row, which EOS lacks.
                weights_TS = weights_TS[1:]
            expected = []
            for t, target_parts in enumerate(parts_of(vocabulary, target)):
                shares = [
                    weights_TS[np.ix_(target_parts, source_parts)].sum()
                    for source_parts in parts_of(vocabulary, source)
                ]
                expected += [
                    (s, t)
                    for s, share in enumerate(shares)
                    if share >= max(shares) / 2
                ]
            assert by_pair[n] == sorted(expected)
    assert found[1] != found[2] != found[3]
    counts = [len(of_pair) for by_pair in found for of_pair in by_pair]
    words = [len(target.split()) for _, target in texts] * len(HEADS)
    assert any(count > num for count, num in zip(counts, words, strict=True))


@pytest.mark.slow
def test_the_first_head_says_what_words_stand_for(
    model, vocabulary, aligner, of_heads
):
    pairs = [as_pair(vocabulary, *texts) for texts in TEXTS]
    expected = Aligner(model, vocabulary, HEADS[:1])(pairs)
    assert of_heads(pairs) == expected
    assert aligner.heads == [AlignmentHead(1)]
    assert aligner(pairs) != expected
