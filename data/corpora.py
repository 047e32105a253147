"""Where sentence pairs come from: corpora by name, and files of your own.

    named("wmt14_en_de").pairs("dev")
    from_text_files(train=("train.en.gz", "train.de.gz")).pairs("train")
    from_tree_files(train="train.mrg").pairs("train")

Each call of `pairs` is a fresh pass over the split, in the same order.
"""

import difflib
import functools
import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from t2t_lite.errors import InputError
from t2t_lite_data import plain_sentences, text_files, treebanks, wmt14
from t2t_lite_data.plain_sentences import PlainSentence

SPLITS = ("train", "dev", "test")
DEFAULT = "embedded"

Pairs = Iterable[tuple[str, str]]
Patterns = tuple[str | None, str | None] | None


class Corpus(NamedTuple):
    """Sentence pairs of one origin; reading starts when a split is asked for.

    name: stable and fit for a file name, so that runs can be named after it.
    source_language, target_language: labels; ISO 639-1 codes for translations,
        "words" and "trees" for treebanks.
    pairs: from a split of SPLITS to its (source, target) sentences. Raises
        InputError if the split is absent or cannot be read.
    splits: those of SPLITS that it has.
    task: the name of the task that it is for; None where that depends on what
        is in the files.
    train_parts: functions; each reads the training pairs of one of the names
        or patterns that this corpus was given by; none if it has no parts.
    weights: how often pairs of each part are drawn, in proportion; none if
        all are drawn equally often.
    read_checks: returns lists of sentences, by name, that know their right
        outputs: what a model of this corpus should have learned.
    alignments: functions, by split; each reads the links of the words of each
        pair in Pharaoh format. Splits whose links are not known have none.
    """

    name: str
    source_language: str
    target_language: str
    pairs: Callable[[str], Pairs]
    splits: tuple[str, ...] = SPLITS
    task: str | None = None
    train_parts: tuple[Callable[[], Pairs], ...] = ()
    weights: tuple[float, ...] = ()
    read_checks: Callable[[], Mapping[str, Sequence[PlainSentence]]] = dict
    alignments: Mapping[str, Callable[[], Iterable[str]]] = {}


def _embedded_pairs(split: str) -> Pairs:
    from t2t_lite_data import embedded

    return embedded.pairs(split)


def _embedded_alignments(split: str) -> Iterable[str]:
    from t2t_lite_data import embedded

    return embedded.alignments(split)


CORPORA = {
    "embedded": Corpus(
        name="embedded",
        source_language="en",
        target_language="de",
        pairs=_embedded_pairs,
        task="translation",
        read_checks=plain_sentences.by_name,
        alignments={
            split: functools.partial(_embedded_alignments, split)
            for split in SPLITS
        },
    )
} | {
    name: Corpus(
        name=name,
        source_language="en",
        target_language=language,
        pairs=functools.partial(wmt14.pairs, language),
        task="translation",
    )
    for name, language in (("wmt14_en_de", "de"), ("wmt14_en_fr", "fr"))
}


# Corpora whose place is given by a flag.
PLACES = {"wsj": "wsj_dir", "high_confidence": "high_confidence_trees"}


def named(names: str, places: Mapping[str, str | None] | None = None) -> Corpus:
    """Returns the corpus of this name, or the mixture of several.

    Args:
        names: one of CORPORA or PLACES, or several with commas between them.
        places: where the corpora of PLACES are, by the name of the flag.

    Raises:
        InputError: there is no such corpus, and the message names the nearest
            and lists all; or its place is not given, or holds nothing.
    """
    corpora = [_named(name, places or {}) for name in names.split(",")]
    return corpora[0] if len(corpora) == 1 else mixed(corpora)


def _named(name: str, places: Mapping[str, str | None]) -> Corpus:
    if name in CORPORA:
        return CORPORA[name]
    if name in PLACES:
        flag = PLACES[name]
        if not places.get(flag):
            raise InputError(f"--corpus={name} needs --{flag}, its location")
        return _PLACED[name](places[flag])
    known = [*CORPORA, *PLACES]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise InputError(
        f"unknown corpus {name!r}{hint}; the corpora are {', '.join(known)}, "
        "and files of your own go in --train_source and --train_target, or in "
        "--train_trees"
    )


def mixed(corpora: Sequence[Corpus]) -> Corpus:
    """Returns a corpus that trains on several, one after the other.

    Its dev and test text are those of the first corpus that has them.

    Raises:
        InputError: their languages are not the same.
    """
    languages = {(c.source_language, c.target_language) for c in corpora}
    if len(languages) > 1:
        raise InputError(
            "corpora that are mixed must have the same languages; received "
            + ", ".join(
                f"{c.name} ({c.source_language}-{c.target_language})"
                for c in corpora
            )
        )
    first = corpora[0]
    return Corpus(
        name="-".join(corpus.name for corpus in corpora),
        source_language=first.source_language,
        target_language=first.target_language,
        pairs=functools.partial(_mixed_pairs, corpora),
        splits=tuple(s for s in SPLITS if any(s in c.splits for c in corpora)),
        task=first.task,
        train_parts=tuple(
            functools.partial(corpus.pairs, "train")
            for corpus in corpora
            if "train" in corpus.splits
        ),
    )


def _mixed_pairs(corpora: Sequence[Corpus], split: str) -> Pairs:
    having = [corpus for corpus in corpora if split in corpus.splits]
    if split == "train" and having:
        return itertools.chain.from_iterable(c.pairs(split) for c in having)
    return (having or corpora)[0].pairs(split)


def weighted(corpus: Corpus, weights: str) -> Corpus:
    """Returns a corpus whose parts are drawn in proportion to weights.

    Args:
        corpus: Corpus.
        weights: numbers above 0 with commas between them, one for each part.

    Raises:
        InputError: they are anything else.
    """
    numbers = tuple(map(_number, weights.split(",")))
    if not all(0 < number < math.inf for number in numbers):
        raise InputError(
            "--corpus_weights must be numbers above 0 with commas between "
            f"them; received --corpus_weights={weights}"
        )
    count = len(corpus.train_parts) or 1
    if len(numbers) != count:
        raise InputError(
            "--corpus_weights must have one number for each name in --corpus, "
            "or each pattern in --train_source or --train_trees, "
            f"{count} in all; received --corpus_weights={weights}"
        )
    is_even = len(set(numbers)) == 1
    return corpus._replace(weights=() if is_even else numbers)


def with_alignments(corpus: Corpus, files: Mapping[str, list[str]]) -> Corpus:
    """Returns a corpus whose alignments are those of files.

    Args:
        corpus: Corpus.
        files: paths by split; other splits keep the corpus's alignments.
    """
    readers = {
        split: functools.partial(_read_lines, paths)
        for split, paths in files.items()
    }
    return corpus._replace(alignments={**corpus.alignments, **readers})


def _read_lines(paths: list[str]) -> Iterable[str]:
    return itertools.chain.from_iterable(map(text_files.lines, paths))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def from_text_files(
    train: Patterns = None, dev: Patterns = None, test: Patterns = None
) -> Corpus:
    """Returns the corpus of line-aligned text files.

    Args:
        train: the patterns of source and target, as in `text_files.pairs`. A
            split is absent where it is None or both its patterns are None or
            "".
        dev: likewise.
        test: likewise.

    Returns:
        A Corpus named after its first source file, with its folder, and its
        target language: `multi30k/train.en.gz` and `multi30k/train.de.gz` give
        `multi30k-train.en-de`. A language is a file's last suffix before
        `.gz`, or the name of a file that has no suffix.

    Raises:
        InputError: no split is given, one has a source without a target or a
            target without a source, or files are missing.
    """
    given = {
        split: patterns
        for split, patterns in zip(SPLITS, (train, dev, test), strict=True)
        if patterns and any(patterns)
    }
    files = {
        split: text_files.paired_files(*_both(split, patterns))
        for split, patterns in given.items()
    }
    if not files:
        raise InputError(
            "no text files; give them with --train_source and --train_target"
        )
    splits = tuple(given)
    source, target = files[splits[0]][0]
    return Corpus(
        name=_run_name(source, target),
        source_language=_language(source),
        target_language=_language(target),
        pairs=functools.partial(_text_pairs, given),
        splits=splits,
        train_parts=_text_parts(given, files),
    )


def _text_parts(given: dict[str, tuple[str, str]], files: dict[str, list]):
    """Returns the readers of the training files of each source pattern."""
    if "train" not in given:
        return ()
    paths = iter(files["train"])
    return tuple(
        functools.partial(
            text_files.pairs_of_files,
            list(itertools.islice(paths, len(sources))),
        )
        for sources in text_files.files_by_pattern(given["train"][0])
    )


def _both(split: str, patterns: tuple[str | None, str | None]):
    """Returns `patterns`; raises InputError if one of them is missing."""
    flags = f"--{split}_source", f"--{split}_target"
    if not all(patterns):
        given, missing = flags if patterns[0] else reversed(flags)
        raise InputError(f"{given} needs {missing}, which is not given")
    return patterns


def _text_pairs(given: dict[str, tuple[str, str]], split: str) -> Pairs:
    _require(split, given, "--{0}_source and --{0}_target")
    return text_files.pairs(*given[split])


def from_tree_files(
    train: str | None = None, dev: str | None = None, test: str | None = None
) -> Corpus:
    """Returns the corpus of sentences and trees in treebank files.

    Args:
        train: patterns of files, as in `text_files.files`. A split is absent
            where it is None or "".
        dev: likewise.
        test: likewise.

    Returns:
        A Corpus named after its first file, with its folder: `gum/train.ptb`
        gives `gum-train.ptb`.

    Raises:
        InputError: no split is given, or files are missing.
    """
    given = {
        split: text_files.files(patterns)
        for split, patterns in zip(SPLITS, (train, dev, test), strict=True)
        if patterns
    }
    if not given:
        raise InputError("no treebank files; give them with --train_trees")
    splits = list(given)
    parts = text_files.files_by_pattern(train) if train else []
    name = _path_name(given[splits[0]][0])
    return _treebank(name, given, "--{}_trees")._replace(
        train_parts=tuple(functools.partial(treebanks.pairs, p) for p in parts)
    )


def _treebank(name: str, files: dict[str, list[str]], flags: str) -> Corpus:
    return Corpus(
        name=name,
        source_language="words",
        target_language="trees",
        pairs=functools.partial(_tree_pairs, files, flags),
        splits=tuple(files),
        task="parsing",
    )


def _tree_pairs(files: dict[str, list[str]], flags: str, split: str) -> Pairs:
    _require(split, files, flags)
    return treebanks.pairs(files[split])


def _wsj(directory: str) -> Corpus:
    files = {split: treebanks.wsj_files(directory, split) for split in SPLITS}
    return _treebank("wsj", files, "--wsj_dir")


def _high_confidence(patterns: str) -> Corpus:
    """Returns the trees that parsers made, which are only to train on."""
    files = {"train": text_files.files(patterns)}
    return _treebank("high_confidence", files, "--corpus=wsj,high_confidence")


_PLACED = {"wsj": _wsj, "high_confidence": _high_confidence}


def _require(split: str, given: Iterable[str], flags: str) -> None:
    """Raises InputError, naming the flags, if a split is not given."""
    if split not in SPLITS:
        raise InputError(
            f"split must be one of {', '.join(SPLITS)}; received {split!r}"
        )
    if split not in given:
        raise InputError(
            f"no {split} files; give them with {flags.format(split)}"
        )


def _run_name(source: str, target: str) -> str:
    return _file_safe(f"{_path_name(source)}-{_language(target)}")


def _path_name(path: str) -> str:
    """Returns the name of a file and its folder, fit for a file name."""
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return _file_safe("-".join(filter(None, [folder, _file_name(path)])))


def _file_safe(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name)


def _language(path: str) -> str:
    return _file_name(path).rpartition(".")[2]


def _file_name(path: str) -> str:
    return os.path.basename(path).removesuffix(".gz")
