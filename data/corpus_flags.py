"""The flags that name a corpus, shared by the programs that read one."""

import functools
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

from absl import flags

from t2t_lite.errors import InputError
from t2t_lite.files import is_url
from t2t_lite_data import corpora, text_files

_TEXT_FLAGS = [
    f"{split}_{side}"
    for split in corpora.SPLITS
    for side in ("source", "target")
]
_WEIGHTS = "corpus_weights"
_TREE_FLAGS = [f"{split}_trees" for split in corpora.SPLITS]
_ALIGNMENT_FLAGS = [f"{split}_alignments" for split in corpora.SPLITS]


def define(
    default: str = corpora.DEFAULT, several: str = "to train on all of them"
) -> None:
    """Defines --corpus, --train_source, --train_target and so on.

    Args:
        default: in words, which corpus it is if none is given.
        several: in words, what several corpora are given for.
    """
    names = ", ".join([*corpora.CORPORA, *corpora.PLACES])
    flags.DEFINE_string(
        "corpus",
        None,
        f"One of {names}, or several separated by commas, {several}. Default: "
        f"the files given, or else {default}.",
    )
    for name in _TEXT_FLAGS:
        split, side = name.split("_")
        flags.DEFINE_string(
            name,
            None,
            f"Text files of the {side} side of {split}. Globs and .gz work.",
        )
    for name in _TREE_FLAGS:
        split, _ = name.split("_")
        flags.DEFINE_string(
            name,
            None,
            f"Treebank files of {split}, bracketed. Globs and .gz work.",
        )
    flags.DEFINE_string(
        "wsj_dir", None, "Folder of the Penn Treebank, for --corpus=wsj."
    )
    flags.DEFINE_string(
        "high_confidence_trees",
        None,
        "Treebank files of automatically parsed text, for "
        "--corpus=wsj,high_confidence.",
    )


def define_weights() -> None:
    """Defines --corpus_weights, for programs that train."""
    flags.DEFINE_string(
        _WEIGHTS,
        None,
        "How often to train on pairs of each name in --corpus, or of each "
        "pattern in --train_source or --train_trees, relative to the others: "
        "comma-separated numbers, such as 2,1. Default: all equally often.",
    )


def define_alignments(*splits: str) -> None:
    """Defines --train_alignments and so on, for the programs that read them.

    Args:
        *splits: those whose alignments are read.
    """
    for split in splits:
        flags.DEFINE_string(
            f"{split}_alignments",
            None,
            f"Files of word alignments, one line per pair of {split}, such as "
            "0-0 1-2: word numbers in the source and the target, from 0. Globs "
            "and .gz work. Default: the corpus' own, if it has any, as "
            "embedded does.",
        )


def given_flags(
    default: str | None = corpora.DEFAULT,
) -> dict[str, str] | None:
    """Returns the flags that name the corpus, for `find_corpus`.

    Args:
        default: the corpus if no flag is given; None to return None then.
    """
    path_flags = [*_TEXT_FLAGS, *_TREE_FLAGS, *corpora.PLACES.values()]
    # Absolute, so that a model directory can be used from any folder.
    names = {
        name: text_files.absolute(flags.FLAGS[name].value)
        for name in path_flags
        if flags.FLAGS[name].value
    }
    weights = flags.FLAGS[_WEIGHTS].value if _WEIGHTS in flags.FLAGS else None
    if weights and not names and not flags.FLAGS.corpus:
        raise InputError(
            "--corpus_weights needs corpora to weigh: give --corpus, "
            "--train_source and --train_target, or --train_trees"
        )
    corpus_name = flags.FLAGS.corpus or (None if names else default)
    if weights:
        names[_WEIGHTS] = weights
    return (names | {"corpus": corpus_name} if corpus_name else names) or None


def given_files() -> list[str]:
    """Returns the files of text and trees that the flags name."""
    names = [*_TEXT_FLAGS, *_TREE_FLAGS, "high_confidence_trees"]
    patterns = [flags.FLAGS[name].value for name in names]
    patterns += _given_alignments().values()
    return [path for p in patterns if p for path in text_files.files(p)]


def _given_alignments() -> dict[str, str]:
    """Returns the flags that name files of alignments."""
    defined = [name for name in _ALIGNMENT_FLAGS if name in flags.FLAGS]
    return {
        name: text_files.absolute(flags.FLAGS[name].value)
        for name in defined
        if flags.FLAGS[name].value
    }


def flags_of_run(previous: dict[str, str] | None) -> dict[str, str]:
    """Returns the flags that name the corpus of a run, for `find_corpus`.

    Args:
        previous: those of the run that is resumed, used if none are given; None
            for a new run.
    """
    names = given_flags(default=None) or previous or given_flags()
    return names | _given_alignments()


def require_trainable(corpus: corpora.Corpus, task: str) -> None:
    """Checks that a run for a task can train on a corpus.

    Raises:
        InputError: it is for another task, or a flag names a pipe.
    """
    require_task(corpus, task)
    for path in given_files():
        if not is_url(path) and pathlib.Path(path).is_fifo():
            raise InputError(
                f"{path} is a pipe, which can be read only once, and training "
                "text is read again to resume or evaluate: give a file"
            )


def find_corpus(names: dict[str, str]) -> corpora.Corpus:
    """Returns the corpora.Corpus that the flags in `names` mean.

    Raises:
        InputError: they mean no corpus, or two; or the weights do not suit it.
    """
    corpus = _unweighted_corpus(names)
    files = {
        split: text_files.files(names[name])
        for split, name in zip(corpora.SPLITS, _ALIGNMENT_FLAGS, strict=True)
        if name in names
    }
    corpus = corpora.with_alignments(corpus, files)
    if _WEIGHTS not in names:
        return corpus
    return corpora.weighted(corpus, names[_WEIGHTS])


def read_scored(
    names: dict[str, str], task: str, splits: list[str] | None = None
) -> tuple[corpora.Corpus, dict[str, list[tuple[str, str]]]]:
    """Returns the Corpus that a model is scored on, and its pairs.

    Args:
        names: as for `scored_corpus`.
        task: the name of the model's task.
        splits: those to score; all except "train" when not given.

    Raises:
        InputError: there is no such text, or it is for another task.
    """
    corpus = scored_corpus(names)
    require_task(corpus, task)
    found = held_out(corpus, splits)
    return corpus, {name: [*pairs] for name, pairs in found}


def scored_corpus(names: dict[str, str]) -> corpora.Corpus:
    """Returns the Corpus of the flags, or else that of a run.

    Args:
        names: the flags that name the corpus of the run.

    Raises:
        InputError: they mean no corpus, or the run's is no longer there.
    """
    given, alignments = given_flags(default=None), _given_alignments()
    # The links of words that it learned from are not text to score on.
    names = {k: v for k, v in names.items() if k != "train_alignments"}
    if given:
        return find_corpus(given | alignments)
    remedy = (
        "give text to score with --test_source and --test_target, or "
        "--test_trees"
    )
    if not names:
        raise InputError(f"the model records no corpus: {remedy}")
    try:
        return find_corpus(names | alignments)
    except InputError as error:
        raise InputError(
            "cannot read the text that the model was trained with: "
            f"{error}; or {remedy}"
        ) from None


def text_of_run(
    corpus: corpora.Corpus, names: dict[str, str], guided_alignment: float
) -> dict[str, Any]:
    """Returns the arguments of the TrainingText of a run, by name.

    Args:
        corpus: corpora.Corpus.
        names: the flags that name it.
        guided_alignment: as in the run's HParams.

    Raises:
        InputError: that needs alignments and there are none, or they would
            have no effect.
    """
    return {
        "flags": names,
        "readers": readers(corpus),
        "source_language": corpus.source_language,
        "corpora": corpus.train_parts,
        "weights": corpus.weights,
        "read_checks": corpus.read_checks,
        "alignments": _train_alignments(corpus, names, guided_alignment),
    }


def _train_alignments(
    corpus: corpora.Corpus, names: dict[str, str], weight: float
) -> Callable[[], Iterable[str]] | None:
    """Returns the reader of the alignments that a run learns from, if any."""
    if not weight:
        if "train_alignments" in names:
            raise InputError(
                "--train_alignments has no effect alone: give "
                "--override=guided_alignment=0.2 too"
            )
        return None
    if "train" not in corpus.alignments:
        raise InputError(
            f"guided_alignment={weight} needs the links of words: give "
            "--train_alignments, or --override=guided_alignment=0"
        )
    return corpus.alignments["train"]


def read_alignments(
    corpus: corpora.Corpus, splits: Iterable[str]
) -> dict[str, list[str]]:
    """Returns the lines of alignments of dev, and of other splits with any.

    Args:
        corpus: corpora.Corpus.
        splits: those that are read, if they have alignments.

    Raises:
        InputError: dev is not one of them, or has no alignments.
    """
    if "dev" not in splits:
        raise InputError(
            "choosing an alignment head needs dev text: give --splits=dev, or "
            "--dev_source and --dev_target"
        )
    if "dev" not in corpus.alignments:
        raise InputError(
            f"{corpus.name} has no alignments for dev: give --dev_alignments"
        )
    readers = {
        s: corpus.alignments[s] for s in splits if s in corpus.alignments
    }
    return {split: list(read()) for split, read in readers.items()}


def _unweighted_corpus(names: dict[str, str]) -> corpora.Corpus:
    kinds = [
        [name for name in kind if name in names]
        for kind in (["corpus"], _TEXT_FLAGS, _TREE_FLAGS)
    ]
    given_kinds = [kind[0] for kind in kinds if kind]
    if len(given_kinds) > 1:
        first, second = given_kinds[:2]
        raise InputError(
            "give only one of --corpus, text files and treebank files; "
            f"received --{first}={names[first]} and --{second}={names[second]}"
        )
    _refuse_places_of_other_corpora(names)
    if "corpus" in names:
        return corpora.named(names["corpus"], names)
    if any(name in names for name in _TREE_FLAGS):
        return corpora.from_tree_files(*map(names.get, _TREE_FLAGS))
    return corpora.from_text_files(
        **{
            split: (names.get(f"{split}_source"), names.get(f"{split}_target"))
            for split in corpora.SPLITS
        }
    )


def require_task(corpus: corpora.Corpus, task: str) -> None:
    """Raises InputError if a Corpus is for another task.

    Args:
        corpus: corpora.Corpus.
        task: str, the name of a model's task.
    """
    if corpus.task not in (None, task):
        raise InputError(
            f"{corpus.name} is a corpus for {corpus.task}, and the model is "
            f"for {task}: give a corpus for {task}, or train a "
            f"model for {corpus.task} (--hparams)"
        )


def _refuse_places_of_other_corpora(names):
    """Raises InputError if a flag would have no effect."""
    given_names = names.get("corpus", "").split(",")
    for name, flag in corpora.PLACES.items():
        if flag in names and name not in given_names:
            raise InputError(
                f"--{flag} is for the corpus {name}; add {name} to --corpus"
            )


def readers(
    corpus: corpora.Corpus,
) -> dict[str, Callable[[], corpora.Pairs]]:
    """Returns, for each split of a Corpus, the function that reads it.

    There is always one for "train", which says what is missing.
    """
    splits = dict.fromkeys(("train", *corpus.splits))
    return {split: functools.partial(corpus.pairs, split) for split in splits}


def held_out(
    corpus: corpora.Corpus, splits: list[str] | None = None
) -> list[tuple[str, corpora.Pairs]]:
    """Returns (split, its pairs) of the splits that a model is scored on.

    Args:
        corpus: corpora.Corpus.
        splits: list of str; all except "train" when not given.

    Raises:
        InputError: there are none.
    """
    splits = splits or [split for split in corpus.splits if split != "train"]
    if not splits:
        raise InputError(
            "this model was trained without dev or test text: give some with "
            "--dev_source and --dev_target, --test_source and --test_target, "
            "--dev_trees or --test_trees"
        )
    return [(split, corpus.pairs(split)) for split in splits]
