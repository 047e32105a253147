"""Subword sampling: a corpus tokenized anew for each epoch.

Sources: Provilkov et al. 2020, "BPE-Dropout"; Kudo 2018, "Subword
Regularization".
"""

import os
import tempfile
from collections.abc import Callable, Iterator

import numpy as np

from t2t_lite.text.token_files import TokenPairs
from t2t_lite.text.vocabulary import FlatIds, Vocabulary

_LINES_AT_ONCE = 10_000  # A change of it changes what is drawn.
_SIDES = ("source", "target")


class SubwordSampler:
    """Draws the token ids of a corpus, as a function of (seed, epoch).

    The text is that of the usual ids, which a pair keeps where its sample is
    longer than allowed, splits a reserved symbol, or would lose characters that
    the vocabulary lacks.

    Args:
        vocabulary: Vocabulary.
        rate: float, that of Vocabulary.sample_flat.
        seed: int.
        targets_are_text: bool; if not, targets keep their usual ids.
        reserved_ids: the ids of the symbols that are never split.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        rate: float,
        seed: int,
        targets_are_text: bool = True,
        reserved_ids: tuple[int, ...] = (),
    ):
        self._vocabulary, self._rate, self._seed = vocabulary, rate, seed
        self._sides = _SIDES if targets_are_text else _SIDES[:1]
        self._reserved_ids = reserved_ids

    def sample(
        self,
        pairs: TokenPairs,
        epoch: int,
        max_lengths: tuple[int, int],
        folder: str | os.PathLike | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> TokenPairs | None:
        """Returns the TokenPairs of an epoch; None if it was stopped.

        Args:
            pairs: TokenPairs, the usual ids.
            epoch: int.
            max_lengths: the most tokens of a source and of a target, at least
                the usual ones.
            folder: path, on whose disk the ids are kept in a file without a
                name; a temporary one when not given.
            should_stop: once it returns True, the work is given up.
        """
        sampled = {}
        for n, side in enumerate(_SIDES):
            ids = getattr(pairs, f"{side}_ids")
            offsets = getattr(pairs, f"{side}_offsets")
            if side in self._sides:
                blocks = self._blocks(
                    ids, offsets, (self._seed, epoch, n), max_lengths[n]
                )
                found = _written(blocks, folder, should_stop)
                if found is None:
                    return None
                ids, offsets = found
            sampled |= {f"{side}_ids": ids, f"{side}_offsets": offsets}
        return TokenPairs(**sampled)

    def _blocks(
        self,
        ids: np.ndarray,
        offsets: np.ndarray,
        key: tuple[int, ...],
        max_length: int,
    ) -> Iterator[FlatIds]:
        """Yields the samples of one side, some lines after the other."""
        num_lines = len(offsets) - 1
        for start in range(0, num_lines, _LINES_AT_ONCE):
            end = min(start + _LINES_AT_ONCE, num_lines)
            usual = FlatIds(
                np.asarray(ids[offsets[start] : offsets[end]]),
                np.diff(offsets[start : end + 1]),
            )
            yield self._sampled(usual, (*key, start), max_length)

    def _sampled(
        self, usual: FlatIds, key: tuple[int, ...], max_length: int
    ) -> FlatIds:
        lines = self._vocabulary.decode(usual.to_lists())
        sample = self._vocabulary.sample_flat(lines, self._rate, _seed(key))
        unknown = [self._vocabulary.unknown_id]
        is_sampled = (
            (sample.lengths <= max_length)
            & (_counts(usual, unknown) == 0)
            & (
                _counts(sample, self._reserved_ids)
                == _counts(usual, self._reserved_ids)
            )
        )
        return _chosen(is_sampled, sample, usual)


def _seed(key: tuple[int, ...]) -> int:
    """Returns a number below 2^31: SentencePiece takes some larger for none."""
    return int(np.random.SeedSequence(key).generate_state(1)[0] >> 1)


def _counts(sequences: FlatIds, wanted: list[int]) -> np.ndarray:
    """Returns how often each sequence has one of some ids, int [N]."""
    lengths = sequences.lengths
    index = np.repeat(np.arange(len(lengths)), lengths)
    is_wanted = np.isin(sequences.ids, wanted)
    return np.bincount(index[is_wanted], minlength=len(lengths))


def _chosen(is_first: np.ndarray, first: FlatIds, other: FlatIds) -> FlatIds:
    """Returns for each sequence that of `first` or that of `other`.

    >>> first = FlatIds.from_lists([[5, 6, 1], [7, 1]])
    >>> other = FlatIds.from_lists([[8, 1], [9, 1]])
    >>> _chosen(np.array([True, False]), first, other).to_lists()
    [[5, 6, 1], [9, 1]]
    """
    lengths = np.where(is_first, first.lengths, other.lengths)
    ids = np.empty(lengths.sum(), np.int32)
    of_first = np.repeat(is_first, lengths)
    ids[of_first] = first.ids[np.repeat(is_first, first.lengths)]
    ids[~of_first] = other.ids[np.repeat(~is_first, other.lengths)]
    return FlatIds(ids, lengths)


def _written(
    blocks: Iterator[FlatIds],
    folder: str | os.PathLike | None,
    should_stop: Callable[[], bool],
) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns (ids mapped into memory, offsets); None if it was stopped."""
    all_lengths = [np.zeros(1, np.int64)]
    # It has no name, so that it is gone with its last reader.
    with tempfile.TemporaryFile(dir=folder) as file:
        for ids, lengths in blocks:
            if should_stop():
                return None
            file.write(ids.tobytes())
            all_lengths.append(lengths)
        file.flush()
        mapped = np.memmap(file, np.int32, mode="r")
    return mapped, np.cumsum(np.concatenate(all_lengths))
