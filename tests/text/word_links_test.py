"""Links between words become links between tokens in any tokenization."""

import numpy as np
import pytest
from bilingual_text import CORPUS
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_lite.text import learning, word_links
from t2t_lite.text.vocabulary import FlatIds, Vocabulary
from t2t_lite.text.word_links import WordLinks

TEXTS = [
    ("A dog sees a red ball.", "Ein Hund springt auf"),
    ("Zwei  Hunde ö1ä ", "x"),
    (" the <bt> water", "das Gras den Fluss?"),
]
LINKS = [
    {(0, 0), (1, 1), (3, 1), (5, 3), (5, 2)},
    {(2, 0)},
    {(0, 2), (2, 0), (1, 1), (2, 3)},
]


@pytest.fixture(scope="module")
def vocabulary():
    sources = learning.learn(CORPUS, "bpe", 330, reserved=["<bt>"])
    targets = learning.learn(CORPUS, "unigram", 320)
    return Vocabulary(sources.model, targets)


def make(links, vocabulary):
    flat = FlatIds.from_lists([word_links.packed(each) for each in links])
    offsets = np.concatenate([[0], np.cumsum(flat.lengths)])
    return WordLinks(flat.ids, offsets).for_vocabulary(vocabulary)


def padded(sequences, extra):
    length = max(map(len, sequences)) + extra
    return np.array([ids + [0] * (length - len(ids)) for ids in sequences])


def word_of_each(vocabulary, text):
    """Returns the (position, word index) of each visible token of a text."""
    (ids,) = vocabulary.encode([text])
    names = [vocabulary.token_bytes[i] for i in ids]
    return [
        (place, len(b"".join(names[: place + 1]).split()) - 1)
        for place, name in enumerate(names)
        if name.strip()
    ]


@given(st.permutations(range(3)), st.integers(0, 3))
@settings(max_examples=20, deadline=None)
def test_tokens_are_linked_as_their_words_are(vocabulary, order, extra):
    sources, targets = zip(*(TEXTS[n] for n in order), strict=True)
    source_ids = vocabulary.encode(list(sources))
    target_ids = vocabulary.target.encode(list(targets))
    found = make(LINKS, vocabulary).matrices(
        np.array(order),
        padded(source_ids, extra),
        padded(target_ids, 3 - extra),
    )
    assert found.dtype == np.uint8
    for row, n in enumerate(order):
        source, target = TEXTS[n]
        for s, source_word in word_of_each(vocabulary, source):
            for t, word in word_of_each(vocabulary.target, target):
                assert found[row, t, s] == ((source_word, word) in LINKS[n])
        assert found[row].any()
        assert not found[row, len(target_ids[row]) - 1 :].any()
        assert not found[row, :, len(source_ids[row]) - 1 :].any()


def test_links_are_packed_as_numbers():
    links = {(0, 7), (32767, 0), (5, 32767)}
    numbers = word_links.packed([*links, (32768, 0), (0, 32768)])
    assert {(n >> 15, n & 32767) for n in numbers} == links
    assert numbers == sorted(numbers)
    assert max(numbers) < 2**31


def test_links_of_some_pairs(vocabulary):
    some = make(LINKS, vocabulary).take(np.array([2, 0, 2]))
    assert some.offsets.tolist() == [0, 4, 9, 13]
    expected = [word_links.packed(LINKS[n]) for n in (2, 0, 2)]
    assert some.packed.tolist() == [n for part in expected for n in part]
    assert some.kinds is not None


def test_links_that_no_token_has_do_no_harm(vocabulary):
    # As if the links belonged to a longer text than the tokens.
    ids = np.array([vocabulary.encode(["A dog"])[0]])
    target_ids = np.array([vocabulary.target.encode(["Ein"])[0]])
    links = make([{(0, 0), (9000, 0), (0, 9000)}], vocabulary)
    found_TS = links.matrices(np.array([0]), ids, target_ids)[0]
    assert found_TS[:, 0].any()
    assert not found_TS[:, -1].any()  # EOS
    assert not found_TS[-1].any()


def test_words_that_a_vocabulary_takes_for_others_have_no_links(vocabulary):
    # This vocabulary treats a no-break space as part of a word.
    pairs = [("A dog", "Ein Hund"), ("A\u00a0dog", "Ein Hund"), (" a  ", "b")]
    links = [{(0, 0), (1, 1)}] * 2 + [{(0, 0)}]
    sides = vocabulary, vocabulary.target
    ids = tuple(
        side.encode_flat([pair[n] for pair in pairs])
        for n, side in enumerate(sides)
    )
    kinds = word_links.token_kinds(vocabulary)
    found, is_left_out = word_links.pack_consistent_links(
        links, pairs, ids, kinds=kinds
    )
    assert is_left_out.tolist() == [False, True, False]
    assert found.lengths.tolist() == [2, 0, 1]
    assert found.ids.tolist() == [*word_links.packed(links[0]), 0]
