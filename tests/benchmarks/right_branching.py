"""The F1 that a parser must beat: that of the best right-branching trees.

    python tests/benchmarks/right_branching.py TEST_TREES TRAIN_TREES...

All constituents of a right-branching tree end where the sentence ends. (The
final punctuation does not count in bracketing, so it may be inside.) Which
labels open before a word is learned from the training trees, given gold tags.
The first variant is the classical one: a bracket before every word, one label
for the first word, one for the last and one for the others. The last three open
brackets only where that raises F1 on the training trees.
"""

import argparse
import collections
import pathlib
import sys
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeAlias

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages

from t2t_lite.parsing import evalb, trees
from t2t_lite.parsing.trees import Tree
from t2t_lite_data import text_files

Context: TypeAlias = Hashable  # What is known of a word: place, tags.
GetContexts: TypeAlias = Callable[[Sequence[str]], list[Context]]
# A constituent of this label opens before each word in this context.
Brackets: TypeAlias = set[tuple[Context, str]]


def by_place(tags: Sequence[str]) -> list[Context]:
    """Returns (is the first that counts, is the last) for each word."""
    counted = [i for i, tag in enumerate(tags) if evalb.is_counted(tag)]
    return [(i in counted[:1], i in counted[-1:]) for i in range(len(tags))]


def by_tag(tags: Sequence[str]) -> list[Context]:
    """Returns for each word its place, and its tag."""
    return list(zip(by_place(tags), tags, strict=True))


def by_two_tags(tags: Sequence[str]) -> list[Context]:
    """Returns for each word its place, its tag and the one before."""
    before = [None, *tags[:-1]]
    return list(zip(by_place(tags), before, tags, strict=True))


class Counts(NamedTuple):
    """Counts of words in training trees, and of constituents that open."""

    places: collections.Counter  # words, by context
    matches: collections.Counter  # constituents to the end, by (context, label)
    gold: int  # constituents of any shape


def count_brackets(
    training: Sequence[Tree], get_contexts: GetContexts
) -> Counts:
    """Returns the Counts of trees, each word in its context."""
    places, matches, gold = collections.Counter(), collections.Counter(), 0
    for tree in training:
        tags = trees.tags(tree)
        contexts = [
            context
            for context, tag in zip(get_contexts(tags), tags, strict=True)
            if evalb.is_counted(tag)
        ]
        constituents = evalb.analyze(tree).constituents
        gold += len(constituents)
        places.update(contexts)
        matches.update(
            (contexts[start], label)
            for label, start, end in set(constituents)
            if end == len(contexts)
        )
    return Counts(places, matches, gold)


def most_frequent(counts: Counts) -> Brackets:
    """Returns for each context its most frequent label."""
    best = {}
    for (context, label), _ in counts.matches.most_common():
        best.setdefault(context, label)
    return set(best.items())


def best_f1(counts: Counts) -> Brackets:
    """Returns the (context, label) pairs with the best F1 in training.

    Pairs are ranked by precision; the ranks down to the highest F1 are taken.
    """
    precision = {
        pair: number / counts.places[pair[0]]
        for pair, number in counts.matches.items()
    }
    ranked = sorted(precision, key=lambda pair: (-precision[pair], str(pair)))
    highest, best_size, matched, predicted = 0.0, 0, 0, 0
    for size, pair in enumerate(ranked, start=1):
        matched += counts.matches[pair]
        predicted += counts.places[pair[0]]
        f1 = 2 * matched / (predicted + counts.gold)
        if f1 > highest:
            highest, best_size = f1, size
    return set(ranked[:best_size])


def right_branching(
    leaves: Sequence[Tree], get_contexts: GetContexts, brackets: Brackets
) -> Tree:
    """Returns the right-branching tree of a sentence.

    Args:
        leaves: pre-terminals, words with their tags.
        get_contexts: function from the tags to a context for each.
        brackets: which constituents open where.
    """
    labels = collections.defaultdict(list)
    for context, label in sorted(brackets, key=str):
        labels[context].append(label)
    contexts = get_contexts([leaf.label for leaf in leaves])
    children = ()
    for leaf, context in zip(reversed(leaves), reversed(contexts), strict=True):
        children = (leaf, *children)
        if evalb.is_counted(leaf.label):
            for label in labels[context]:
                children = (Tree(label, children),)
    return Tree(trees.ROOT, children)


VARIANTS = {
    "a bracket before every word": (by_place, most_frequent),
    "the same, labels by tag": (by_tag, most_frequent),
    "brackets that help, by place": (by_place, best_f1),
    "brackets that help, by tag": (by_tag, best_f1),
    "brackets that help, by two tags": (by_two_tags, best_f1),
}


def score_variant(
    training: Sequence[Tree], gold: Sequence[Tree], variant: str
) -> evalb.Report:
    """Returns the evalb.Report of one of VARIANTS."""
    get_contexts, choose = VARIANTS[variant]
    brackets = choose(count_brackets(training, get_contexts))
    parses = [
        right_branching(list(trees.pre_terminals(tree)), get_contexts, brackets)
        for tree in gold
    ]
    return evalb.report(gold, parses)


def read_trees(path: str) -> list[Tree]:
    """Returns the normalized trees of a file."""
    found = map(trees.normalize, trees.read(text_files.lines(path), path))
    return [tree for tree in found if tree is not None]


def main():
    """Prints the scores of all variants."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("test_trees")
    parser.add_argument("train_trees", nargs="+")
    args = parser.parse_args()
    gold = read_trees(args.test_trees)
    training = [tree for path in args.train_trees for tree in read_trees(path)]
    print(f"{len(training)} trees to learn from")
    for variant in VARIANTS:
        report = score_variant(training, gold, variant)
        print(f"{variant}\n{evalb.as_text(report)}")


if __name__ == "__main__":
    main()
