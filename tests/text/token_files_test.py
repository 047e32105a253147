"""A corpus is stored as the token ids of pairs that fit, or not at all."""

import collections
import itertools

import numpy as np
import pytest
from token_pairs import pairs_in_memory

from t2t_lite.errors import InputError
from t2t_lite.text import batching, learning, pharaoh, token_files
from t2t_lite.text.token_files import LinkedPair

TEXT = [
    ("A dog runs.", "Ein Hund rennt."),
    ("", "Niemand."),
    ("A cat sleeps by the old boat.", "Eine Katze schläft."),
    ("Nobody.", " \t "),
    ("word " * 30, "Wort"),
    ("Wort", "word " * 30),
    ("Two men", "Zwei Männer"),
    ("   ", ""),
    ("The boat.", "Das alte Boot, das am Ufer liegt."),
]
KEPT = [TEXT[n] for n in (0, 2, 6, 8)]
MAX_LENGTH = 29


@pytest.fixture(scope="module")
def vocabulary():
    lines = [side for pair in TEXT for side in pair]
    return learning.learn(lines, "bpe", 320)


def tokenize(vocabulary, directory, text=TEXT, max_length=MAX_LENGTH):
    tokenizer = token_files.PairTokenizer(
        vocabulary, vocabulary.encode_flat, max_length
    )
    return token_files.tokenize_pairs([iter(text)], tokenizer, directory)


def assert_is_text(pairs, vocabulary, text):
    sides = (
        (pairs.source_ids, pairs.source_offsets),
        (pairs.target_ids, pairs.target_offsets),
    )
    for n, (ids, offsets) in enumerate(sides):
        expected = vocabulary.encode([pair[n] for pair in text])
        assert offsets[0] == 0
        assert offsets[-1] == len(ids)
        assert [
            ids[start:end].tolist()
            for start, end in itertools.pairwise(offsets)
        ] == expected


def test_tokenized_pairs_are_those_that_fit_and_the_rest_is_counted(
    tmp_path, vocabulary
):
    report = tokenize(vocabulary, tmp_path / "tokens")
    pairs, loaded_report = token_files.load_pairs(tmp_path / "tokens")
    assert_is_text(pairs, vocabulary, KEPT)
    assert loaded_report == report
    counts = report.kept, report.dropped_long, report.dropped_blank
    assert counts == (4, 2, 3)
    assert str(report) == "4 pairs; dropped 2 over-long and 3 with a blank side"


def test_a_pair_of_just_the_largest_length_is_kept(tmp_path, vocabulary):
    lengths = [
        max(len(ids) for ids in vocabulary.encode(list(pair))) for pair in KEPT
    ]
    longest = max(lengths)
    report = tokenize(vocabulary, tmp_path / "a", KEPT, max_length=longest)
    assert (report.kept, report.dropped_long) == (4, 0)
    report = tokenize(vocabulary, tmp_path / "b", KEPT, max_length=longest - 1)
    assert report.dropped_long == lengths.count(longest)


@pytest.mark.parametrize("lines_at_once", [1, 2, 4, len(TEXT)])
def test_corpora_of_several_chunks_give_the_same_files(
    tmp_path, vocabulary, monkeypatch, lines_at_once
):
    tokenize(vocabulary, tmp_path / "whole")
    monkeypatch.setattr(token_files, "_LINES_AT_ONCE", lines_at_once)
    tokenize(vocabulary, tmp_path / "chunks")
    files = [
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        for name in ("whole", "chunks")
    ]
    assert files[0] == files[1]
    assert len(files[0]) == 6


def test_the_report_names_the_text_as_hash_pairs_does(tmp_path, vocabulary):
    report = tokenize(vocabulary, tmp_path / "tokens")
    assert report.data_sha256 == token_files.hash_pairs(TEXT)
    assert report.key == token_files.TokensKey(
        token_files.hash_pairs(TEXT), vocabulary.sha256, MAX_LENGTH
    )


def test_hashes_depend_on_order_and_on_what_is_source():
    texts = [[("a", "b"), ("c", "d")], [("c", "d"), ("a", "b")], [("b", "a")]]
    texts += [[("a", "b")], [("ab", "")], [("a", "b"), ("c", "d"), ("", "")]]
    hashes = collections.Counter(map(token_files.hash_pairs, texts))
    assert set(hashes.values()) == {1}


def test_ids_are_mapped_into_memory(tmp_path, vocabulary):
    tokenize(vocabulary, tmp_path / "tokens")
    pairs, _ = token_files.load_pairs(tmp_path / "tokens")
    for ids in (pairs.source_ids, pairs.target_ids):
        assert isinstance(ids, np.memmap)
        assert ids.dtype == np.int32
        assert not ids.flags.writeable


def test_mapped_ids_make_the_batches_of_those_in_memory(tmp_path, vocabulary):
    tokenize(vocabulary, tmp_path / "tokens")
    mapped, _ = token_files.load_pairs(tmp_path / "tokens")
    in_memory = pairs_in_memory(
        *(vocabulary.encode([p[n] for p in KEPT]) for n in (0, 1))
    )
    indices = np.array([3, 0, 2])
    for a, b in zip(
        batching.pad_batch(mapped, indices, source_length=29, target_length=30),
        batching.pad_batch(
            in_memory, indices, source_length=29, target_length=30
        ),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


LINKS = ["0-0 1-1", "", "0-1 6-0", "", "0-0", "", "1-0 1-1", "", "0-0 1-6"]
LINKED_TEXT = [
    LinkedPair(*pair, links) for pair, links in zip(TEXT, LINKS, strict=True)
]


@pytest.mark.parametrize("lines_at_once", [2, 100])
def test_pairs_that_are_kept_have_their_links(
    tmp_path, vocabulary, monkeypatch, lines_at_once
):
    monkeypatch.setattr(token_files, "_LINES_AT_ONCE", lines_at_once)
    report = tokenize(vocabulary, tmp_path / "tokens", LINKED_TEXT)
    pairs, _ = token_files.load_pairs(tmp_path / "tokens")
    assert_is_text(pairs, vocabulary, KEPT)
    found = [
        {(int(n) >> 15, int(n) & 32767) for n in pairs.links.packed[start:end]}
        for start, end in itertools.pairwise(pairs.links.offsets)
    ]
    assert found == [pharaoh.parse(LINKS[TEXT.index(pair)]) for pair in KEPT]
    assert token_files.are_whole(tmp_path / "tokens")
    # The hash depends on the links, and on whether there are any.
    hashes = {
        token_files.hash_pairs(text)
        for text in (TEXT, LINKED_TEXT, [LinkedPair(*p, "0-0") for p in TEXT])
    }
    assert len(hashes) == 3
    assert report.data_sha256 == token_files.hash_pairs(LINKED_TEXT)
    links = tmp_path / "tokens" / "links.ids"
    links.write_bytes(links.read_bytes()[::-1])
    assert not token_files.are_whole(tmp_path / "tokens")


def test_batches_have_the_links_of_tokens(tmp_path, vocabulary):
    tokenize(vocabulary, tmp_path / "tokens", LINKED_TEXT)
    pairs, _ = token_files.load_pairs(tmp_path / "tokens")
    pairs = pairs._replace(links=pairs.links.for_vocabulary(vocabulary))
    indices = np.array([3, 0])
    *ids, is_linked = batching.pad_batch(
        pairs, indices, source_length=29, target_length=28
    )
    assert is_linked.shape == (2, 28, 29)
    np.testing.assert_array_equal(
        is_linked, pairs.links.matrices(indices, *ids)
    )
    assert is_linked.any(axis=(1, 2)).all()
    some = pairs.take(indices)
    again = batching.pad_batch(
        some, np.array([0, 1]), source_length=29, target_length=28
    )
    for array, other in zip(again, (*ids, is_linked), strict=True):
        np.testing.assert_array_equal(array, other)


def test_alignments_without_any_link_are_refused(tmp_path, vocabulary):
    message = "none of the training pairs kept has usable links"
    with pytest.raises(InputError, match=message):
        tokenize(vocabulary, tmp_path / "t", [LinkedPair(*p, "") for p in TEXT])
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("error", [OSError("unreadable"), KeyboardInterrupt()])
def test_a_corpus_that_fails_in_the_middle_leaves_nothing(
    tmp_path, vocabulary, monkeypatch, error
):
    monkeypatch.setattr(token_files, "_LINES_AT_ONCE", 2)
    target = tmp_path / "tokens"

    def failing():
        yield from TEXT[:5]
        assert not target.exists()
        assert list(tmp_path.iterdir())  # Written under another name.
        raise error

    with pytest.raises(type(error)):
        tokenize(vocabulary, target, failing())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", [[], TEXT[1:2], TEXT[3:6]], ids=["empty", "blank", "over-long"]
)
def test_a_corpus_of_which_nothing_is_left_is_refused(
    tmp_path, vocabulary, text
):
    with pytest.raises(InputError, match=f"no pair of the {len(text)} .*=29"):
        tokenize(vocabulary, tmp_path / "tokens", text)
    assert list(tmp_path.iterdir()) == []


def test_pairs_in_memory_are_their_ids_and_lengths():
    source, target = [[5, 1], [6, 7, 1], [1]], [[8, 1], [9, 1], [2, 3, 4, 1]]
    pairs = pairs_in_memory(source, target)
    assert pairs.source_lengths.tolist() == [2, 3, 1]
    assert pairs.target_lengths.tolist() == [2, 2, 4]
    assert pairs.source_ids.tolist() == [5, 1, 6, 7, 1, 1]
    assert pairs.target_ids.tolist() == [8, 1, 9, 1, 2, 3, 4, 1]
    assert pairs.source_ids.dtype == np.int32


def test_corpora_are_tokenized_one_after_the_other_and_counted(
    tmp_path, vocabulary
):
    tokenizer = token_files.PairTokenizer(
        vocabulary, vocabulary.encode_flat, MAX_LENGTH
    )
    corpora = [iter(TEXT[:3]), iter(()), iter(TEXT[3:])]
    report = token_files.tokenize_pairs(corpora, tokenizer, tmp_path / "tokens")
    assert report.kept_by_corpus == [2, 0, 2]
    pairs, loaded_report = token_files.load_pairs(tmp_path / "tokens")
    assert loaded_report == report
    assert_is_text(pairs, vocabulary, KEPT)
    assert report.data_sha256 == token_files.hash_corpora(
        [TEXT[:3], [], TEXT[3:]]
    )


def test_the_hash_of_corpora_tells_where_each_ends():
    hashes = {
        token_files.hash_corpora(corpora)
        for corpora in ([TEXT], [TEXT[:2], TEXT[2:]], [TEXT[:3], TEXT[3:]])
    }
    assert len(hashes) == 3
    assert token_files.hash_pairs(TEXT) in hashes
