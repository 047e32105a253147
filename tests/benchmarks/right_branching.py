"""The F1 that a parser must beat: that of the best right-branching trees.

    python tests/benchmarks/right_branching.py TEST_TREES TRAIN_TREES...

All constituents of a right-branching tree end where the sentence ends. (The
final punctuation counts for nothing in bracketing, so it may stand inside.)
Given the gold tags, the training trees teach which labels open before a word.
The first variant is the classical one: a bracket before every word, one label
for the first word, one for the last and one for the others. The last three open
brackets only where that raises F1 on the training trees.
"""

import argparse
import collections
import pathlib
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, the code that this belongs to

from t2t_lite.parsing import evalb as bracketing
from t2t_lite.parsing import trees
from t2t_lite.parsing.trees import Tree
from t2t_lite_data import text_files


def by_place(tags):
    """Returns for each word whether it is the first, and whether the last."""
    counted = [i for i, tag in enumerate(tags) if bracketing.is_counted(tag)]
    return [(i in counted[:1], i in counted[-1:]) for i in range(len(tags))]


def by_tag(tags):
    """Returns for each word its place, and its tag."""
    return list(zip(by_place(tags), tags, strict=True))


def by_two_tags(tags):
    """Returns for each word its place, its tag and the one before."""
    before = [None, *tags[:-1]]
    return list(zip(by_place(tags), before, tags, strict=True))


class Counts(NamedTuple):
    """What the training trees have where a right-branching bracket could be."""

    places: collections.Counter  # by context
    matches: collections.Counter  # by (context, label)
    gold: int  # constituents of any shape


def counts(training, contexts_of):
    """Returns the Counts of trees, each word in the context it is given."""
    places, matches, gold = collections.Counter(), collections.Counter(), 0
    for tree in training:
        tags = trees.tags(tree)
        contexts = [
            context
            for context, tag in zip(contexts_of(tags), tags, strict=True)
            if bracketing.is_counted(tag)
        ]
        constituents = bracketing.analysis(tree).constituents
        gold += len(constituents)
        places.update(contexts)
        matches.update(
            (contexts[start], label)
            for label, start, end in set(constituents)
            if end == len(contexts)
        )
    return Counts(places, matches, gold)


def everywhere(counts):
    """Returns (context, label) pairs: of each context the most frequent one."""
    best = {}
    for (context, label), _ in counts.matches.most_common():
        best.setdefault(context, label)
    return set(best.items())


def where_f1_gains(counts):
    """Returns the (context, label) pairs with the best F1 in training.

    Brackets are taken in the order of their precision for as long as they help.
    """
    precision = {
        pair: number / counts.places[pair[0]]
        for pair, number in counts.matches.items()
    }
    ranked = sorted(precision, key=lambda pair: (-precision[pair], str(pair)))
    best_f1, best_size, matched, predicted = 0.0, 0, 0, 0
    for size, pair in enumerate(ranked, start=1):
        matched += counts.matches[pair]
        predicted += counts.places[pair[0]]
        f1 = 2 * matched / (predicted + counts.gold)
        if f1 > best_f1:
            best_f1, best_size = f1, size
    return set(ranked[:best_size])


def right_branching(leaves, contexts_of, pairs):
    """Returns the right-branching tree of a sentence.

    Args:
        leaves: pre-terminals, words with their tags.
        contexts_of: from the tags to a context for each.
        pairs: set of (context, label): a constituent of this label opens before
            each word in this context.
    """
    labels = collections.defaultdict(list)
    for context, label in sorted(pairs, key=str):
        labels[context].append(label)
    contexts = contexts_of([leaf.label for leaf in leaves])
    children = ()
    for leaf, context in zip(reversed(leaves), reversed(contexts), strict=True):
        children = (leaf, *children)
        if bracketing.is_counted(leaf.label):
            for label in labels[context]:
                children = (Tree(label, children),)
    return Tree(trees.ROOT, children)


VARIANTS = {
    "a bracket before every word": (by_place, everywhere),
    "the same, labels by tag": (by_tag, everywhere),
    "brackets that help, by place": (by_place, where_f1_gains),
    "brackets that help, by tag": (by_tag, where_f1_gains),
    "brackets that help, by two tags": (by_two_tags, where_f1_gains),
}


def report(training, gold, variant):
    """Returns the bracketing.Report of one of VARIANTS."""
    contexts_of, choose = VARIANTS[variant]
    pairs = choose(counts(training, contexts_of))
    parses = [
        right_branching(list(trees.pre_terminals(tree)), contexts_of, pairs)
        for tree in gold
    ]
    return bracketing.report(gold, parses)


def read(path):
    """Returns the normalized trees of a file."""
    found = map(trees.normalized, trees.read(text_files.lines(path), path))
    return [tree for tree in found if tree is not None]


def main():
    """Prints the scores of all variants."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("test_trees")
    parser.add_argument("train_trees", nargs="+")
    args = parser.parse_args()
    gold = read(args.test_trees)
    training = [tree for path in args.train_trees for tree in read(path)]
    print(f"{len(training)} trees to learn from")
    for variant in VARIANTS:
        print(
            f"{variant}\n{bracketing.as_text(report(training, gold, variant))}"
        )


if __name__ == "__main__":
    main()
