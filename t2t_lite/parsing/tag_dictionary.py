"""Which parts of speech a word may have: those that training has shown.

They bring back a parser that has lost its place among the words: one that must
tag "administrative" cannot leave it out.

A word is known only by its last piece, and by whether it has others:
"administr|ative" has the tags of all words that end in "ative" and are longer.
A piece that was rarely seen may also have the tags that new words have.

Source: Ratnaparkhi 1996, "A Maximum Entropy Model for Part-Of-Speech Tagging",
section on the tag dictionary.
"""

import collections
import os
import zipfile
import zlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from keras import ops

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.model.rows import gather, take
from t2t_lite.parsing import encoding, trees
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.tensor import Tensor
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS

FILE = "tags.npz"  # In the model directory of a parser.
_OFTEN = 5  # A piece seen this often has shown all its tags.


class TagDictionary(NamedTuple):
    """The tags of words."""

    # bool; R is 2 V: a row for each piece that is a word, then one for each
    # piece that ends a longer word. T is the number of target ids.
    may_have_RT: np.ndarray

    def save(self, path: str | os.PathLike) -> None:
        """Writes it to `path`, atomically."""
        with files.atomic_file(path, "wb") as file:
            np.savez_compressed(file, may_have=self.may_have_RT)

    @classmethod
    def load(cls, path: str | os.PathLike) -> "TagDictionary":
        """Returns the TagDictionary that `save` wrote to `path`.

        Raises:
            InputError: it cannot be read.
        """
        try:
            with (
                files.to_path(path).open("rb") as file,
                # `np.load` would take what is not a zip for a pickle.
                np.lib.npyio.NpzFile(file) as arrays,
            ):
                may_have_RT = arrays["may_have"]
            if may_have_RT.dtype != bool:
                raise ValueError(f"they must be bool, not {may_have_RT.dtype}")
            if not may_have_RT.any(axis=-1).all():
                raise ValueError("some kind of word has no tags")
            return cls(may_have_RT)
        except (
            EOFError,
            KeyError,
            OSError,
            ValueError,
            zipfile.BadZipFile,
            zlib.error,
        ) as error:
            raise InputError(
                f"cannot read the tags of words in {path}: {error}"
            ) from None

    def tags(self, source_ids: Tensor, starts_word_V: np.ndarray) -> Tensor:
        """Returns bool [B, S, T]: the tags that the n-th word may have.

        Args:
            source_ids: int32 [B, S], words with EOS at each end, padded with 0.
            starts_word_V: bool, which ids begin a word.

        Returns:
            those of S words; there are fewer words, and the rest means nothing.
        """
        V = len(starts_word_V)
        starts_BS = take(starts_word_V, source_ids)
        is_piece_BS = source_ids > EOS
        next_BS = ops.roll(starts_BS | ~is_piece_BS, -1, axis=1)
        is_last_BS = is_piece_BS & next_BS
        row_BS = ops.where(starts_BS, source_ids, source_ids + V)
        # Word n ends where n words have ended before it.
        ended_BS = ops.cumsum(ops.cast(is_last_BS, "int32"), axis=1)
        n_S = ops.arange(ops.shape(source_ids)[1], dtype="int32")
        before_BSS = ops.expand_dims(ended_BS, 1) <= n_S[:, None]
        place_BS = ops.sum(ops.cast(before_BSS, "int32"), axis=2)
        place_BS = ops.minimum(place_BS, ops.shape(source_ids)[1] - 1)
        return take(self.may_have_RT, gather(row_BS, place_BS))


def require_fits(tags: TagDictionary, vocabulary: Vocabulary) -> None:
    """Raises InputError if the tags are those of another vocabulary."""
    expected = 2 * vocabulary.size, encoding.num_target_ids(vocabulary)
    if tags.may_have_RT.shape != expected:
        raise InputError(
            f"the tags of words must be those of this vocabulary, "
            f"{list(expected)}; received {list(tags.may_have_RT.shape)}: put "
            f"back the {FILE} of this model"
        )


def load_tags(directory: ModelDirectory) -> TagDictionary | None:
    """Returns the TagDictionary of a model directory, None if it has none."""
    if not directory.settings().hparams.tag_dictionary:
        return None
    return TagDictionary.load(directory.path / FILE)


def learn(
    treebank: Iterable[trees.Tree], vocabulary: Vocabulary
) -> TagDictionary:
    """Returns the TagDictionary of a treebank.

    Args:
        treebank: iterable of Tree.
        vocabulary: Vocabulary with the symbols of these trees.
    """
    leaves = (leaf for tree in treebank for leaf in trees.pre_terminals(tree))
    counts = collections.Counter(
        (leaf.children[0], leaf.label) for leaf in leaves
    )
    seen = collections.Counter()
    for (word, _), count in counts.items():
        seen[word] += count
    words = list(seen)
    pieces = dict(zip(words, vocabulary.encode(words), strict=True))
    R, T = 2 * vocabulary.size, encoding.num_target_ids(vocabulary)
    counts_RT, new_T = np.zeros((R, T), np.int64), np.zeros(T, np.int64)
    for (word, tag), count in counts.items():
        *others, last, _ = pieces[word]
        row = last + vocabulary.size * bool(others)
        counts_RT[row, vocabulary.control_symbols[tag]] += count
        if seen[word] == 1:
            new_T[vocabulary.control_symbols[tag]] += 1
    is_of_new_T = new_T >= min(_OFTEN, new_T.max())
    if not new_T.any():
        is_of_new_T = counts_RT.any(axis=0)
    may_have_RT = counts_RT > 0
    may_have_RT[counts_RT.sum(axis=1) < _OFTEN] |= is_of_new_T
    return TagDictionary(may_have_RT)
