"""Where sentence pairs come from: corpora by name, and your own text files.

    named("wmt14_en_de").pairs("dev")
    from_text_files(train=("train.en.gz", "train.de.gz")).pairs("train")

Each call of `pairs` is a fresh pass over the split, in the same order.
"""

import difflib
import functools
import os
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from data import text_files, wmt14
from t2t_lite.errors import InputError

SPLITS = ("train", "dev", "test")
DEFAULT = "embedded"

Pairs = Iterable[tuple[str, str]]
Patterns = tuple[str | None, str | None] | None


class Corpus(NamedTuple):
    """Sentence pairs of one origin; reading starts when a split is asked for.

    name: stable and fit for a file name, so that runs can be named by it.
    source_language, target_language: labels, for corpora of this module ISO
      639-1 codes.
    pairs: from a split of SPLITS to its (source, target) sentences. Raises
      InputError where the split is absent or cannot be read.
    splits: those of SPLITS that there are.
    """

    name: str
    source_language: str
    target_language: str
    pairs: Callable[[str], Pairs]
    splits: tuple[str, ...] = SPLITS


def _embedded_pairs(split: str) -> Pairs:
    from data import embedded

    return embedded.pairs(split)


CORPORA = {
    "embedded": Corpus("embedded", "en", "de", _embedded_pairs),
    "wmt14_en_de": Corpus(
        "wmt14_en_de", "en", "de", functools.partial(wmt14.pairs, "de")
    ),
    "wmt14_en_fr": Corpus(
        "wmt14_en_fr", "en", "fr", functools.partial(wmt14.pairs, "fr")
    ),
}


def named(name: str) -> Corpus:
    """Return the corpus called `name`.

    Raises:
      InputError: there is none; the message names the nearest and lists all.
    """
    if name in CORPORA:
        return CORPORA[name]
    near = difflib.get_close_matches(name, CORPORA, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise InputError(
        f"unknown corpus {name!r}{hint}; the corpora are {', '.join(CORPORA)}, "
        "and files of your own go in --train_source and --train_target"
    )


def from_text_files(
    train: Patterns = None, dev: Patterns = None, test: Patterns = None
) -> Corpus:
    """Return the corpus of line-aligned text files.

    Args:
      train: the patterns of source and target, as in `text_files.pairs`. A
        split is absent where it is None or both its patterns are None or "".
      dev: likewise.
      test: likewise.

    Returns:
      A Corpus called by its first source file, with its folder, and by its
      target language: `multi30k/train.en.gz` and `multi30k/train.de.gz` give
      `multi30k-train.en-de`. A language is a file's last suffix before `.gz`,
      or the name of a file that has no suffix.

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
    source, target = next(iter(files.values()))[0]
    return Corpus(
        _run_name(source, target),
        _language(source),
        _language(target),
        functools.partial(_text_pairs, given),
        tuple(given),
    )


def _both(split: str, patterns: tuple[str | None, str | None]):
    """Return `patterns`, or raise InputError where one of them is missing."""
    flags = f"--{split}_source", f"--{split}_target"
    if not all(patterns):
        given, missing = flags if patterns[0] else reversed(flags)
        raise InputError(f"{given} needs {missing}, which is not given")
    return patterns


def _text_pairs(given: dict[str, tuple[str, str]], split: str) -> Pairs:
    if split not in SPLITS:
        raise InputError(
            f"split must be one of {', '.join(SPLITS)}; received {split!r}"
        )
    if split not in given:
        raise InputError(
            f"no {split} files; give them with --{split}_source and "
            f"--{split}_target"
        )
    return text_files.pairs(*given[split])


def _run_name(source: str, target: str) -> str:
    folder = os.path.basename(os.path.dirname(os.path.abspath(source)))
    parts = [folder, _file_name(source), _language(target)]
    return re.sub(r"[^\w.-]", "_", "-".join(filter(None, parts)))


def _language(path: str) -> str:
    return _file_name(path).rpartition(".")[2]


def _file_name(path: str) -> str:
    return os.path.basename(path).removesuffix(".gz")
