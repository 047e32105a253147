"""Links between words as links between tokens, whatever the tokenization.

A link is kept as one number, its source word times 2^15 plus its target word.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from t2t_lite.text.pharaoh import Link
from t2t_lite.text.vocabulary import FlatIds, Vocabulary
from t2t_lite.token_ids import EOS

_BITS = 15
_MOST = 2**_BITS  # Words of a side.
_WITHIN, _BEGINS, _SPACE = range(3)  # What a token is to a word.


def packed(links: Iterable[Link]) -> list[int]:
    """Returns links as ascending numbers, except those of far too long text.

    >>> packed([(1, 2), (0, 1)])
    [1, 32770]
    """
    return sorted(
        source << _BITS | target
        for source, target in links
        if max(source, target) < _MOST
    )


@dataclasses.dataclass(frozen=True)
class WordLinks:
    """The links of sentence pairs, P of them, one after the other.

    Args:
        packed: int32, in memory or mapped.
        offsets: int64 [P + 1], where those of each pair begin.
        kinds: `token_kinds` of both sides; None if they are not known.
    """

    packed: np.ndarray
    offsets: np.ndarray
    kinds: tuple[np.ndarray, np.ndarray] | None = None

    def for_vocabulary(self, vocabulary: Vocabulary) -> "WordLinks":
        """Returns the links for tokens of a vocabulary."""
        return dataclasses.replace(self, kinds=token_kinds(vocabulary))

    def take(self, indices: np.ndarray) -> "WordLinks":
        """Returns the links of the pairs of some indices, in memory."""
        found = [self._packed_links(n) for n in indices]
        lengths = [len(part) for part in found]
        return dataclasses.replace(
            self,
            packed=np.concatenate(found),
            offsets=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        )

    def _packed_links(self, index: int) -> np.ndarray:
        return self.packed[self.offsets[index] : self.offsets[index + 1]]

    def matrices(
        self,
        indices: np.ndarray,
        source_ids_BS: np.ndarray,
        target_ids_BT: np.ndarray,
    ) -> np.ndarray:
        """Returns uint8 [B, T, S]: 1 where the words of two tokens are linked.

        Args:
            indices: int [B], of pairs.
            source_ids_BS: int32, the tokens of their sources, padded.
            target_ids_BT: int32, those of their targets.
        """
        sources_BS, targets_BT = (
            _words(ids, kinds_V)
            for ids, kinds_V in zip(
                (source_ids_BS, target_ids_BT), self.kinds, strict=True
            )
        )
        B, (S, T) = len(indices), (sources_BS.shape[1], targets_BT.shape[1])
        found_BTS = np.zeros((B, T, S), np.uint8)
        for row, index in enumerate(indices):
            links = self._packed_links(index)
            # Word by word, with a place for tokens that belong to none.
            is_linked = np.zeros((T + 1, S + 1), np.uint8)
            source, target = links >> _BITS, links & (_MOST - 1)
            fits = (source < S) & (target < T)
            is_linked[target[fits], source[fits]] = 1
            found_BTS[row] = is_linked[targets_BT[row]][:, sources_BS[row]]
        return found_BTS


def token_kinds(vocabulary: Vocabulary) -> tuple[np.ndarray, np.ndarray]:
    """Returns what the tokens of each side are to words, int8 [V]."""
    return tuple(
        np.array([_kind(text) for text in side.token_bytes], np.int8)
        for side in (vocabulary, vocabulary.target)
    )


def _kind(text: bytes) -> int:
    if not text.startswith(b" "):
        return _WITHIN
    return _BEGINS if text.strip(b" ") else _SPACE


def word_counts(sequences: FlatIds, kinds_V: np.ndarray) -> np.ndarray:
    """Returns int64 [P], how many words each sequence of ids has."""
    is_begun = _begins_word(sequences.ids, kinds_V)
    ends = np.concatenate([[0], np.cumsum(is_begun)])
    offsets = np.concatenate([[0], np.cumsum(sequences.lengths)])
    return np.diff(ends[offsets])


def _words(ids_BL: np.ndarray, kinds_V: np.ndarray) -> np.ndarray:
    """Returns int [B, L], the number of each token's word; -1 for none."""
    words_BL = np.cumsum(_begins_word(ids_BL, kinds_V), axis=1) - 1
    return np.where(ids_BL > EOS, words_BL, -1)


def _begins_word(ids: np.ndarray, kinds_V: np.ndarray) -> np.ndarray:
    """Returns for each token whether it begins a word, bool.

    A space that is a token does if a part of a word follows; if none does, it
    is one of several spaces, or the last.

    Args:
        ids: [..., L], with EOS at the end of each sequence.
        kinds_V: that of one side.
    """
    kinds = kinds_V[ids]
    goes_on = np.zeros_like(ids, bool)
    goes_on[..., :-1] = (kinds[..., 1:] == _WITHIN) & (ids[..., 1:] > EOS)
    return (kinds == _BEGINS) | ((kinds == _SPACE) & goes_on)


def pack_consistent_links(
    links: Sequence[Iterable[Link]],
    pairs: Sequence[tuple[str, str]],
    ids: tuple[FlatIds, FlatIds],
    kinds: tuple[np.ndarray, np.ndarray],
) -> tuple[FlatIds, np.ndarray]:
    """Returns packed links of pairs, and bool [P]: whose are left out.

    If the vocabulary splits a text into different words than str.split does,
    its links would be of the wrong words.

    Args:
        links: those of each pair.
        pairs: (source, target).
        ids: of the sources and of the targets.
        kinds: `token_kinds` of both sides.
    """
    is_same = np.ones(len(pairs), bool)
    for side in (0, 1):
        counts = word_counts(ids[side], kinds[side])
        is_same &= counts == [len(pair[side].split()) for pair in pairs]
    kept = [
        packed(each) if same else []
        for each, same in zip(links, is_same, strict=True)
    ]
    has_links = np.array([bool(each) for each in links], bool)
    return FlatIds.from_lists(kept), has_links & ~is_same
