"""An English-German corpus that this project writes itself.

It needs no file and no network: `pairs` draws derivations of `data.grammar`
with a seeded generator, by the patterns of `data.patterns` (sentences of two
clauses, of all lengths) and `data.short_patterns` (plain ones: every noun in
every case and number, in every kind of sentence).

The English determines the German throughout: `you` is du, the past is the
Perfekt (the Präteritum for sein, haben and modals), and every word has one
translation.

The grammar knows which word came from which: `alignments` has their links.
"""

import functools
import itertools
from types import ModuleType

from t2t_lite.errors import InputError
from t2t_lite_data import marks, patterns, short_patterns
from t2t_lite_data.patterns import Draw, Pair

SEED = 2017
SIZES = {"test": 500, "dev": 500, "train": 100000}
SHORTEST, LONGEST = 2, 30
SHORT = 0.85  # The share of sentences that are plain.


@functools.cache
def drawn_until(split: str) -> list[Pair]:
    """Returns the pairs of `split`; no later split is drawn for them."""
    return drawn_splits(sizes_until(split))[split]


def sizes_until(split: str) -> dict[str, int]:
    """Returns the sizes of `split` and of those before it."""
    if split not in SIZES:
        raise InputError(
            f"split must be one of train, dev, test; received {split!r}"
        )
    names = list(SIZES)
    needed = names[: names.index(split) + 1]
    return {name: SIZES[name] for name in needed}


def drawn_splits(sizes: dict[str, int]) -> dict[str, list[Pair]]:
    """Returns splits of these sizes, in this order, with no sentence twice.

    What one has drawn, none after it has, so the small ones come first.
    """
    draw = Draw(SEED)
    seen: set[str] = set()
    splits: dict[str, list[Pair]] = {split: [] for split in sizes}
    for split, size in sizes.items():
        while len(splits[split]) < size:
            pair = drawn(draw)
            if fits(pair) and seen.isdisjoint(pair):
                seen.update(pair)
                splits[split].append(pair)
    return splits


def drawn(draw: Draw) -> Pair:
    """Returns a pair of any pattern."""
    table = short_patterns if draw.chance(SHORT) else patterns
    choices, sums = weighted(table)
    return draw.choices(choices, cum_weights=sums)[0](draw)


@functools.cache
def weighted(table: ModuleType) -> tuple[tuple, list[int]]:
    """Returns the patterns of a table, and their weights' cumulative sums."""
    weights, choices = zip(*table.PATTERNS, strict=True)
    return choices, list(itertools.accumulate(weights))


def fits(pair: Pair) -> bool:
    """Returns whether both sides are neither too short nor too long."""
    return all(SHORTEST <= len(side.split()) <= LONGEST for side in pair)


def pairs(split: str) -> list[Pair]:
    """Returns the sentence pairs of "train", "dev" or "test"."""
    return list(drawn_until(split))


def alignments(split: str) -> list[str]:
    """Returns the links of each of `pairs(split)`, in Pharaoh format."""
    return list(_drawn_links(split))


@functools.cache
def _drawn_links(split: str) -> list[str]:
    with marks.noted() as links:
        drawn_again = drawn_splits(sizes_until(split))[split]
    return [links[pair] for pair in drawn_again]
