"""Sentences and their constituency trees, from treebank files.

A pair is a sentence, its words with single spaces between them, and its
normalized tree as one line:

    The cat sleeps .
    (TOP (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)) (. .)))

Words are written as in the treebank: `(` is -LRB-.

Source: section 6.3
"""

import itertools
import os
from collections.abc import Iterable, Iterator

from absl import logging

from t2t_lite.errors import InputError
from t2t_lite.files import is_folder, to_path
from t2t_lite.parsing import trees
from t2t_lite_data import text_files

# The sections of the Wall Street Journal, as all results on it split them.
WSJ_SECTIONS = {
    "train": tuple(f"{section:02}" for section in range(2, 22)),
    "dev": ("22",),
    "test": ("23",),
}
_WSJ_FOLDERS = ("", "wsj", "parsed/mrg/wsj", "PARSED/MRG/WSJ")


def pairs(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the (sentence, tree) of all trees in the files.

    A tree that holds only traces has no sentence. It is left out, and at the
    end the log says how many of them there were.

    Args:
        files: paths; gzipped if they end in .gz.

    Raises:
        InputError: while reading, a file cannot be read, is empty, is not
            UTF-8, or holds something other than trees.
    """
    empty = 0
    for path in files:
        for tree in trees.read(text_files.lines(path), path):
            normalized = trees.normalize(tree)
            if normalized is None:
                empty += 1
            else:
                sentence = " ".join(trees.words(normalized))
                yield sentence, trees.write(normalized)
    if empty:
        logging.warning("Left out %d trees that hold only traces.", empty)


def wsj_files(directory: str, split: str) -> list[str]:
    """Returns the files of a split of the Wall Street Journal treebank.

    Sections 02-21 are for training, 22 is the development and 23 the test set.

    Args:
        directory: of the Penn Treebank, or the folder in it that holds the
            sections.
        split: of WSJ_SECTIONS.

    Raises:
        InputError: there is no such folder, or a section is not in it.
    """
    folders = [os.path.join(directory, folder) for folder in _WSJ_FOLDERS]
    sections = WSJ_SECTIONS[split]
    for folder in folders:
        files = {s: _mrg_files(os.path.join(folder, s)) for s in sections}
        if any(files.values()):
            break
    missing = [section for section in sections if not files[section]]
    if missing:
        raise InputError(
            f"--wsj_dir={directory} must hold the Penn Treebank's Wall Street "
            "Journal files, such as 02/wsj_0201.mrg, directly or in "
            f"parsed/mrg/wsj; section {missing[0]} has no files (the treebank "
            "needs a license: LDC99T42 of the Linguistic Data Consortium)"
        )
    return list(itertools.chain.from_iterable(files.values()))


def _mrg_files(section: str) -> list[str]:
    found = to_path(section).iterdir() if is_folder(section) else []
    return sorted(str(path) for path in found if _is_mrg(path.name))


def _is_mrg(name: str) -> bool:
    is_hidden = name.startswith(".")
    return not is_hidden and name.lower().endswith((".mrg", ".mrg.gz"))
