"""Sampled subwords: the same text, drawn anew for each epoch."""

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from bilingual_text import CORPUS
from subword_samples import LINES, LONG, sample, sides
from token_pairs import arrays_of, pairs_in_memory

from t2t_lite.text import batching, learning, subword_sampling
from t2t_lite.text.subword_sampling import SubwordSampler
from t2t_lite.text.vocabulary import FlatIds
from t2t_lite.text.word_links import WordLinks, packed


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def vocabulary(request):
    return learning.learn(CORPUS, request.param, 420)


@pytest.fixture(scope="module")
def pairs(vocabulary):
    return pairs_in_memory(
        vocabulary.encode(LINES), vocabulary.encode(LINES[::-1])
    )


def test_samples_are_other_pieces_of_the_same_text(vocabulary, pairs):
    for sampled, usual, lines in zip(
        sample(vocabulary, pairs),
        sides(pairs),
        (LINES, LINES[::-1]),
        strict=True,
    ):
        assert vocabulary.decode(sampled) == lines
        differing = sum(a != b for a, b in zip(sampled, usual, strict=True))
        assert differing > 0.9 * len(lines)
        assert all(ids[-1] == 1 and 1 not in ids[:-1] for ids in sampled)


def test_samples_keep_the_links_of_their_words(vocabulary, pairs):
    links = FlatIds.from_lists([packed([(0, 1), (1, 0)]) for _ in LINES])
    offsets = np.arange(len(LINES) + 1) * 2
    linked = pairs._replace(
        links=WordLinks(links.ids, offsets).for_vocabulary(vocabulary)
    )
    sampled = SubwordSampler(vocabulary, 0.3, 7).sample(linked, 0, LONG)
    index = np.array([3])
    longest = max(sampled.source_lengths.max(), sampled.target_lengths.max())
    *ids, is_linked_TS = (
        array[0] for array in batching.pad_batch(sampled, index, *[longest] * 2)
    )
    sources, targets = (_visible(vocabulary, side) for side in ids)
    for s, source in sources:
        for t, target in targets:
            expected = (source, target) in ((0, 1), (1, 0))
            assert is_linked_TS[t, s] == expected
    assert len(sources) > len(LINES[3].split())


def _visible(vocabulary, ids):
    """Returns (position, word index) of each token that is not just a space."""
    names = [vocabulary.token_bytes[i] for i in ids]
    return [
        (place, len(b"".join(names[: place + 1]).split()) - 1)
        for place, name in enumerate(names)
        if name.strip()
    ]


def test_samples_are_a_function_of_seed_and_epoch(vocabulary, pairs):
    drawn = [
        sample(vocabulary, pairs, epoch, seed=seed)
        for epoch, seed in ((0, 7), (1, 7), (0, 8), (1, 7))
    ]
    assert drawn[1] == drawn[3]
    for some, other in ((0, 1), (0, 2), (1, 2)):
        for side in (0, 1):
            assert drawn[some][side] != drawn[other][side]


def test_both_sides_of_a_copy_are_drawn_apart(vocabulary):
    ids = vocabulary.encode(LINES)
    source, target = sample(vocabulary, pairs_in_memory(ids, ids))
    assert source != target


PROGRAM = """
import sys
from token_pairs import arrays_of, pairs_in_memory
from t2t_lite.text.subword_sampling import SubwordSampler
from t2t_lite.text.vocabulary import Vocabulary

vocabulary = Vocabulary.load(sys.argv[1])
ids = vocabulary.encode(sys.argv[2].splitlines())
pairs = pairs_in_memory(ids, ids)
sample = SubwordSampler(vocabulary, 0.3, 7).sample(pairs, 3, (10**6, 10**6))
print([array.tolist() for array in arrays_of(sample)])
"""


def test_samples_are_the_same_in_every_process(vocabulary, tmp_path):
    vocabulary.save(tmp_path / "vocabulary.model")
    lines = CORPUS[:50]
    ids = vocabulary.encode(lines)
    found = SubwordSampler(vocabulary, 0.3, 7).sample(
        pairs_in_memory(ids, ids), 3, LONG
    )
    arguments = str(tmp_path / "vocabulary.model"), "\n".join(lines)
    out = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(out) == [array.tolist() for array in arrays_of(found)]


def test_targets_that_are_no_text_keep_their_ids(vocabulary, pairs):
    source, target = sample(vocabulary, pairs, targets_are_text=False)
    usual = sides(pairs)
    assert target == usual[1]
    assert source == sample(vocabulary, pairs)[0]


def test_a_sample_that_is_too_long_gives_way_to_the_usual_ids(
    vocabulary, pairs
):
    usual = sides(pairs)
    free = sample(vocabulary, pairs)
    limits = tuple(max(map(len, side)) for side in usual)
    found = sample(vocabulary, pairs, max_lengths=limits)
    for side in (0, 1):
        expected = [
            drawn if len(drawn) <= limits[side] else ids
            for drawn, ids in zip(free[side], usual[side], strict=True)
        ]
        assert found[side] == expected != free[side]


@pytest.mark.parametrize("lines_at_once", [1, 7])
def test_corpora_of_several_blocks_are_whole(
    vocabulary, pairs, monkeypatch, lines_at_once
):
    monkeypatch.setattr(subword_sampling, "_LINES_AT_ONCE", lines_at_once)
    few = pairs.take(np.arange(30))
    source, target = sample(vocabulary, few)
    assert vocabulary.decode(source) == LINES[:30]
    assert vocabulary.decode(target) == LINES[::-1][:30]


def test_a_block_of_the_same_lines_is_drawn_anew(vocabulary, monkeypatch):
    monkeypatch.setattr(subword_sampling, "_LINES_AT_ONCE", 20)
    ids = vocabulary.encode(CORPUS[:20] * 2)
    source, _ = sample(vocabulary, pairs_in_memory(ids, ids))
    assert source[:20] != source[20:]


def test_sampling_can_be_given_up(vocabulary, pairs, tmp_path):
    sampler = SubwordSampler(vocabulary, 0.1, 7)
    given_up = sampler.sample(
        pairs, 0, LONG, folder=tmp_path, should_stop=lambda: True
    )
    assert given_up is None
    assert sampler.sample(pairs, 0, LONG, folder=tmp_path) is not None
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_named(vocabulary, pairs, tmp_path):
    sampler = SubwordSampler(vocabulary, 0.1, 7)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        with pytest.raises(OSError) as error:
            sampler.sample(pairs, 0, LONG, folder=tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert error.value.filename == str(tmp_path)
