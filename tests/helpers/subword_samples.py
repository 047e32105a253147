"""Samples of the subwords of a corpus, as lists."""

import itertools

from bilingual_text import CORPUS

from t2t_lite.text.subword_sampling import SubwordSampler

LINES = [*CORPUS, "Words  never seen: ᚠ ", " "]
LONG = (10**6, 10**6)


def lists(ids, offsets):
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def sides(pairs):
    return (
        lists(pairs.source_ids, pairs.source_offsets),
        lists(pairs.target_ids, pairs.target_offsets),
    )


def sample(vocabulary, pairs, epoch=0, rate=0.3, max_lengths=LONG, **options):
    sampler = SubwordSampler(
        vocabulary, rate, options.pop("seed", 7), **options
    )
    return sides(sampler.sample(pairs, epoch, max_lengths))
