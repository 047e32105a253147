"""What differs between the paper's two tasks, translation and parsing."""

from collections.abc import Callable
from typing import NamedTuple

from t2t_lite.decoding import translation
from t2t_lite.errors import InputError
from t2t_lite.evaluation.scores import Score, score_text
from t2t_lite.parsing import evalb as bracketing
from t2t_lite.parsing import parser as parsing
from t2t_lite.parsing import trees
from t2t_lite.storage.model_directory import ModelDirectory


class Task(NamedTuple):
    """One task: lines to lines, and how good they are.

    open: (model_dir, **options) to the Translator or Parser of a directory.
    of_model: (model, ModelDirectory, SearchOptions) to that of a model in
        memory, the rest of which is in the directory; without XLA.
    scores: (list of outputs, list of references, language=None,
        with_margins=False) to a dict of Score by their names in
        JSON. What the first one says decides which model is best.
    checked_pair: (source, target) to the pair as it is learned from. Raises
        InputError where it cannot be.
    """

    open: Callable
    of_model: Callable
    scores: Callable
    checked_pair: Callable

    def score(self, outputs, references):
        """Returns the Score that decides which model is best."""
        return next(iter(self.scores(outputs, references).values()))


def _bracketing_scores(predicted, gold, **_):
    """Returns the Scores of parses, in per cent: by EVALB's rules."""
    found = bracketing.report(
        [trees.read_one(line) for line in gold],
        [trees.read_one(line) if line else None for line in predicted],
    )
    scores, short = found.all, found.short
    signature = (
        f"EVALB, COLLINS.prm, {scores.sentences} sentences, {scores.errors} "
        f"errors, {scores.skips} skips"
    )
    return {
        key: Score(name, 100 * value, signature)
        for key, name, value in (
            # First, for what EVALB leaves out must not make a model the best.
            ("f1_of_all", "F1 of all", scores.f1_of_all),
            ("f1", "F1 without errors and skips", scores.f1),
            ("recall", "labelled recall", scores.recall),
            ("precision", "labelled precision", scores.precision),
            ("complete_match", "complete match", scores.complete_match),
            ("tagging_accuracy", "tagging accuracy", scores.tagging_accuracy),
            (
                "f1_short",
                f"F1 of {short.sentences} sentences of up to "
                f"{bracketing.MAX_WORDS} words",
                short.f1,
            ),
        )
    }


def _words_and_tree(source, target):
    """Returns the pair with its tree normalized."""
    tree = _normalized(target) if target.strip() else None
    words = [] if tree is None else trees.words(tree)
    if trees.split_words(source) != words:
        raise InputError(
            "to learn to parse, a target line must be the tree of the source "
            f"line's words; received {source!r} and {target!r}"
        )
    return source, trees.write(tree) if words else ""


def _normalized(line):
    try:
        return trees.normalized(trees.read_one(line))
    except InputError as error:
        raise InputError(
            "a parser's target lines are trees (treebanks go in --train_trees, "
            f"--dev_trees and --test_trees), and one is none: {error}"
        ) from None


_TASKS = {
    "translation": Task(
        translation.Translator,
        lambda model, directory, options: translation.LineTranslator.from_model(
            model, directory.vocabulary(), options, xla=False
        ),
        score_text,
        lambda source, target: (source, target),
    ),
    "parsing": Task(
        parsing.Parser,
        lambda model, directory, options: parsing.LineParser(
            model,
            directory.vocabulary(),
            options,
            tag_dictionary=directory.tag_dictionary(),
        ),
        _bracketing_scores,
        _words_and_tree,
    ),
}


def task_of(hparams):
    """Returns the Task of an HParams."""
    return _TASKS[hparams.task]


def open_model(model_dir, **options):
    """Returns the Translator or the Parser of a model directory.

    Args:
        model_dir: path of a model directory.
        **options: those of either; None for its default.

    Raises:
        InputError: the directory has no such model, or an option is wrong.
    """
    task = task_of(ModelDirectory(model_dir).settings().hparams)
    given = {k: v for k, v in options.items() if v is not None}
    return task.open(model_dir, **given)
