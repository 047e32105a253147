"""Words are cut at random as often as the sources say."""

import collections
import itertools
import random

import pytest
import sentencepiece
from bilingual_text import CORPUS
from sentencepiece import sentencepiece_model_pb2
from subword_samples import LINES, sample
from token_pairs import pairs_in_memory

from t2t_lite.errors import InputError
from t2t_lite.text import learning, segmentation, subword_sampling
from t2t_lite.text.subword_sampling import SubwordSampler
from t2t_lite.text.vocabulary import Vocabulary


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def vocabulary(request):
    return learning.learn(CORPUS, request.param, 420)


@pytest.fixture(scope="module")
def pairs(vocabulary):
    return pairs_in_memory(
        vocabulary.encode(LINES), vocabulary.encode(LINES[::-1])
    )


def drop_merges(scores, word, rate, draw):
    """Returns the pieces of a word by Provilkov et al.'s algorithm 1."""
    pieces = list(word)
    while True:
        merges = [
            (-scores[merged], place)
            for place, merged in enumerate(
                map("".join, itertools.pairwise(pieces))
            )
            if merged in scores and draw() >= rate
        ]
        if not merges:
            return pieces
        _, place = min(merges)
        pieces[place : place + 2] = ["".join(pieces[place : place + 2])]


def lines_of_merges(vocabulary, line, count, rate):
    """Samples of a line by the algorithm as it is printed, word by word."""
    model = sentencepiece_model_pb2.ModelProto.FromString(vocabulary.model)
    scores = {p.piece: p.score for p in model.pieces if p.type == p.NORMAL}
    draw = random.Random(3).random
    return [
        [
            piece
            for word in line.split()
            for piece in drop_merges(scores, "\u2581" + word, rate, draw=draw)
        ]
        for _ in range(count)
    ]


def lines_of_sentencepiece(vocabulary, line, count, rate):
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=vocabulary.model
    )
    return processor.encode(
        [line] * count,
        enable_sampling=True,
        alpha=rate,
        nbest_size=-1,
        out_type=str,
    )


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize(
    ("kind", "samples"),
    [("bpe", lines_of_merges), ("unigram", lines_of_sentencepiece)],
)
def test_samples_are_distributed_as_their_source_says(kind, samples, rate):
    vocabulary = learning.learn(CORPUS, kind, 420)
    line, count = "Ein Mädchen läuft.", 20_000
    ids = vocabulary.encode([line] * count)
    found, _ = sample(vocabulary, pairs_in_memory(ids, ids), rate=rate)
    counts = [
        collections.Counter(
            (place, piece)
            for pieces in sampled
            for place, piece in enumerate(pieces)
        )
        for sampled in (
            [vocabulary.tokens(drawn)[:-1] for drawn in found],
            samples(vocabulary, line, count, rate=rate),
        )
    ]
    for key in counts[0].keys() | counts[1].keys():
        share = (counts[0][key] + counts[1][key]) / (2 * count)
        deviation = (2 * count * share * (1 - share)) ** 0.5
        assert abs(counts[0][key] - counts[1][key]) <= 5 * deviation + 3, key


def test_a_higher_rate_drops_more_merges():
    vocabulary = learning.learn(CORPUS, "bpe", 420)
    ids = vocabulary.encode(LINES)
    pairs = pairs_in_memory(ids, ids)
    lengths = [
        sum(map(len, sample(vocabulary, pairs, rate=rate)[0]))
        for rate in (1e-9, 0.1, 0.5, 0.999)
    ]
    assert lengths[0] == sum(map(len, ids))
    assert lengths == sorted(set(lengths))
    # Without merges, each character is a piece; each line also has the sign
    # for a space at its beginning, and EOS.
    characters = sum(len(line) + 2 for line in LINES)
    assert 0.95 * characters < lengths[3]


def test_of_equal_merges_the_first_is_done_first():
    vocabulary = learning.learn(["aaa aaaaa"] * 9, "bpe", 269)
    lines = ["a" * n for n in range(1, 9)]
    ids = vocabulary.encode(lines)
    assert vocabulary.tokens(ids[5]) == ["\u2581aa", "aaaa", "</s>"]
    pairs = pairs_in_memory(ids, ids)
    assert sample(vocabulary, pairs, rate=1e-9)[0] == ids


def test_merges_are_dropped_as_often_as_asked_for():
    vocabulary = learning.learn(["ab"] * 9, "bpe", 300)
    lines = ["ab"] * 4000
    ids = vocabulary.encode(lines)
    pairs = pairs_in_memory(ids, ids)
    pieces = collections.Counter(
        tuple(vocabulary.tokens(ids))
        for ids in sample(vocabulary, pairs, rate=0.3)[0]
    )
    # The merges that can come first, "ab" and "\u2581a", are both dropped with
    # probability 0.09: 360 times in 4000, with a standard deviation of 18.
    num_unmerged = pieces["\u2581", "a", "b", "</s>"]
    assert num_unmerged == pytest.approx(360, abs=70)


def test_characters_that_the_vocabulary_lacks_stay_unknown(vocabulary):
    ids = [[vocabulary.unknown_id, 1], *vocabulary.encode(LINES)]
    source, _ = sample(vocabulary, pairs_in_memory(ids, ids))
    assert source[0] == ids[0]
    assert source != ids


def test_a_vocabulary_of_characters_cannot_be_sampled(tmp_path):
    prefix = tmp_path / "characters"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_prefix=str(prefix),
        model_type="char",
        minloglevel=2,
    )
    vocabulary = Vocabulary.load(f"{prefix}.model")
    with pytest.raises(InputError, match="needs a vocabulary of BPE or unigra"):
        SubwordSampler(vocabulary, 0.1, 1)


@pytest.mark.parametrize("max_nodes", [0, 500])
def test_a_graph_that_is_begun_anew_draws_the_same(
    vocabulary, pairs, monkeypatch, max_nodes
):
    monkeypatch.setattr(subword_sampling, "_LINES_AT_ONCE", 50)
    expected = sample(vocabulary, pairs)
    monkeypatch.setattr(segmentation, "_MAX_NODES", max_nodes)
    monkeypatch.setattr(segmentation, "_ROOM", 1)
    assert sample(vocabulary, pairs) == expected


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_reserved_symbols_are_never_split(kind, rate):
    vocabulary = learning.learn(CORPUS, kind, 420, reserved=["<bt>"])
    lines = [f"<bt> {line}" for line in CORPUS]
    ids = vocabulary.encode(lines)
    reserved = tuple(vocabulary.reserved_ids(["<bt>"]).values())
    source, _ = sample(vocabulary, pairs_in_memory(ids, ids), rate=rate)
    assert {line[0] for line in source} == set(reserved)
    assert vocabulary.decode(source) == lines
    assert source != ids
