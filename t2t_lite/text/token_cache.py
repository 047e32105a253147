"""Token files that runs share: one copy for each text, vocabulary and length.

NAME/       what token_files.tokenize_pairs writes
NAME.lock   held by the run that makes NAME

A copy appears when it is complete, and nobody writes to it after that. One
whose checksums do not match is made again.
"""

import os
import pathlib
import shutil
from collections.abc import Callable, Iterable

from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.text import token_files
from t2t_lite.text.token_files import (
    AnyPairs,
    CorpusReport,
    PairTokenizer,
    TokenPairs,
)

_FORMAT = 1  # Raise it when the files or the ids of a text change.


def shared_tokens(
    cache_dir: str | os.PathLike,
    read_corpora: Callable[[], Iterable[AnyPairs]],
    data_sha256: str,
    tokenizer: PairTokenizer,
) -> tuple[TokenPairs, CorpusReport]:
    """Returns the tokens of a corpus, which are made if nobody has yet.

    Several processes may ask at once: one makes them, the others wait for it.

    Args:
        cache_dir: path, created if missing.
        read_corpora: a function; each call reads the corpora, the (source,
            target) pairs or LinkedPairs of each.
        data_sha256: their hash, as from token_files.hash_corpora.
        tokenizer: PairTokenizer.

    Returns:
        (TokenPairs mapped into memory, CorpusReport)

    Raises:
        InputError: no pair is left, or the text is not that of `data_sha256`.
    """
    key = tokenizer.key(data_sha256)
    path = pathlib.Path(cache_dir) / (
        f"{key.data_sha256[:16]}-{key.vocabulary_sha256[:16]}"
        f"-{key.max_length}-{_FORMAT}"
    )
    if not _is_sound(path, key):
        path.parent.mkdir(parents=True, exist_ok=True)
        with files.locked(path.with_name(f"{path.name}.lock")):
            # Another process may have made them while this one waited.
            if not _is_sound(path, key):
                _make(path, read_corpora(), tokenizer, key=key)
                return token_files.load_pairs(path)
    logging.info("Using the tokens in %s.", path)
    return token_files.load_pairs(path)


def _is_sound(path, key):
    if not token_files.are_whole(path):
        return False
    _, report = token_files.load_pairs(path)
    return report.key == key


def _make(path, corpora, tokenizer, key):
    """Writes the tokens aside and moves them to `path`; needs the lock."""
    if path.exists():
        logging.warning("%s is damaged: writing it again.", path)
        shutil.rmtree(path)
    files.remove_leftovers(path.parent, path.name)
    logging.info("Tokenizing the training corpus into %s.", path)
    with files.atomic_folder(path) as folder:
        report = token_files.write_pairs(corpora, tokenizer, folder)
        if report.key != key:
            raise InputError("the training text changed while it was read")
