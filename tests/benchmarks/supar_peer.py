r"""The F1 of SuPar's chart parser, trained on the same trees as ours.

    python tests/benchmarks/supar_peer.py --model=FILE --minutes=60 \
        --train_trees=TREES,... --dev_trees=TREES --test_trees=TREES,...

It needs an environment of its own, without TensorFlow:

    pip install supar absl-py 'numpy<2' 'transformers<5'

Spans are scored by words and characters in a BiLSTM, and a conditional random
field over charts finds the best tree (Zhang, Zhou and Li 2020), with their
sizes and no pretrained vectors. The epoch in which the minutes end is the last
one; the parser that did best on dev is scored.

This package normalizes and scores the trees. SuPar predicts no tags: those of
its outputs are the gold ones, so EVALB leaves out no sentence for a wrong tag.
"""

import argparse
import contextlib
import functools
import os
import pathlib
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

_HERE = pathlib.Path(__file__).absolute().parent
sys.path[:0] = [str(_HERE), str(_HERE.parents[1] / "bin")]

import checkout  # noqa: F401, this checkout's packages
import machine
import measuring
from right_branching import read_trees

from t2t_lite.parsing import evalb, trees
from t2t_lite.parsing.trees import Tree

FRAGMENT = "FRAGMENT"  # The one bracket below the root that SuPar needs.
# Those of SuPar's configuration for the Penn Treebank.
_SETTINGS = {
    "lr": 2e-3,
    "mu": 0.9,
    "nu": 0.9,
    "eps": 1e-12,
    "weight_decay": 0,
    "decay": 0.75,
    "decay_steps": 5000,
}


class TimeUpError(Exception):
    """The minutes are over."""


def with_one_bracket(tree: Tree) -> Tree:
    """Returns a tree with exactly one constituent below its root.

    SuPar reads the first child of a root and no other.
    """
    if len(tree.children) == 1 and not tree.children[0].is_pre_terminal:
        return tree
    return Tree(tree.label, (Tree(FRAGMENT, tree.children),))


def without_fragments(tree: Tree) -> Tree:
    """Returns a tree in which the children of each FRAGMENT take its place."""
    return Tree(tree.label, tuple(_children_without_fragments(tree)))


def _children_without_fragments(tree: Tree) -> Iterator[Tree]:
    for child in tree.children:
        if child.is_pre_terminal:
            yield child
        elif child.label == FRAGMENT:
            yield from _children_without_fragments(child)
        else:
            yield without_fragments(child)


def write_trees(path: str, found: Iterable[Tree]) -> str:
    """Writes trees for SuPar, one per line, and returns the path."""
    with open(path, "w", encoding="utf-8") as file:
        for tree in found:
            file.write(trees.write(with_one_bracket(tree)) + "\n")
    return path


def train(
    model: str, minutes: float, training: Sequence[Tree], dev: Sequence[Tree]
):
    """Trains a parser, and keeps the one of the best epoch in a file.

    Args:
        model: path of the file; FILE.train and the like are written beside it.
        minutes: how long to train; the epoch in which they end is finished.
        training: normalized trees.
        dev: normalized trees, of which each epoch is scored.
    """
    from supar import CRFConstituencyParser  # Only its environment has it.

    end = time.monotonic() + 60 * minutes

    class Parser(CRFConstituencyParser):
        """Begins no epoch once the time is over."""

        def _train(self, loader):
            if time.monotonic() > end:
                raise TimeUpError
            super()._train(loader)

    files = {
        "train": write_trees(f"{model}.train", training),
        "dev": write_trees(f"{model}.dev", dev),
        # SuPar scores it, too, after each epoch; nothing is done with it.
        "test": write_trees(f"{model}.again", dev[:1]),
    }
    parser = Parser.build(
        model,
        build=True,
        encoder="lstm",
        feat=["char"],
        embed=None,
        checkpoint=False,
        **files,
    )
    with contextlib.suppress(TimeUpError):
        parser.train(**files, **_SETTINGS)
    print(f"the best epoch on dev: {parser.best_e}")


def score(model: str, gold: Sequence[Tree]) -> evalb.Report:
    """Returns the scores of a trained parser on gold trees."""
    from supar import CRFConstituencyParser

    parsed = f"{model}.parsed"
    CRFConstituencyParser.load(model).predict(
        write_trees(f"{model}.gold", gold), pred=parsed, verbose=False
    )
    with open(parsed, encoding="utf-8") as lines:
        predicted = [without_fragments(t) for t in trees.read(lines, parsed)]
    return evalb.report(gold, predicted)


def main():
    """Trains, and prints the scores of each test set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=measuring.positive_int, required=True)
    for flag in ("--model", "--train_trees", "--dev_trees", "--test_trees"):
        parser.add_argument(flag, required=True)
    args = parser.parse_args()
    with measuring.usage_errors(parser):
        training = [
            tree
            for path in args.train_trees.split(",")
            for tree in read_trees(path)
        ]
        dev = read_trees(args.dev_trees)
        tests = {path: read_trees(path) for path in args.test_trees.split(",")}

    import torch

    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    # SuPar's files hold Python objects.
    torch.load = functools.partial(torch.load, weights_only=False)
    machine.print_machine(f"{len(training)} trees to learn from")
    train(args.model, args.minutes, training=training, dev=dev)
    for path, gold in tests.items():
        print(f"{path}\n{evalb.as_text(score(args.model, gold))}")


if __name__ == "__main__":
    main()
