"""What differs between the paper's two tasks, translation and parsing."""

from collections.abc import Callable
from typing import NamedTuple

from t2t_lite import bracketing, evaluation, parsing, translation, trees
from t2t_lite.errors import InputError
from t2t_lite.model_directory import ModelDirectory


class Task(NamedTuple):
    """One task: lines to lines, and how good they are.

    metric: what the best model is best in, 0 to 100.
    open: (model_dir, **options) to the Translator or Parser of a directory.
    of_model: (model, vocabulary, options) to that of a model in memory.
    score: (list of outputs, list of references) to (the metric's value, a
        line that says it and by which rules).
    checked_pair: (source, target) to the pair as it is learned from. Raises
        InputError where it cannot be.
    """

    metric: str
    open: Callable
    of_model: Callable
    score: Callable
    checked_pair: Callable


def _bleu(translations, references):
    scores = evaluation.score_text(translations, references)
    return scores.bleu, f"BLEU {scores.bleu:.2f} ({scores.bleu_signature})"


def _f1(predicted, gold):
    report = bracketing.report(
        [trees.read_one(line) for line in gold],
        [trees.read_one(line) if line else None for line in predicted],
    )
    scores = report.all
    f1 = 100 * scores.f1
    return f1, (
        f"F1 {f1:.2f} (labelled recall {100 * scores.recall:.2f}, precision "
        f"{100 * scores.precision:.2f}, EVALB with COLLINS.prm)"
    )


def _words_and_tree(source, target):
    """Returns the pair with its tree normalized."""
    tree = trees.normalized(trees.read_one(target))
    words = [] if tree is None else trees.words(tree)
    if source.split() != words:
        raise InputError(
            "to learn to parse, a target line must be the tree of the source "
            f"line's words; received {source!r} and {target!r}"
        )
    return source, trees.write(tree) if words else ""


_TASKS = {
    "translation": Task(
        "BLEU",
        translation.Translator,
        translation.LineTranslator.of_model,
        _bleu,
        lambda source, target: (source, target),
    ),
    "parsing": Task(
        "F1", parsing.Parser, parsing.LineParser, _f1, _words_and_tree
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
