"""Subword sampling: a corpus tokenized anew for each epoch.

SentencePiece can do this too, but what it draws differs from process to
process, whatever seed it is given, so a run could not be resumed.
"""

import os
import tempfile
from collections.abc import Callable, Iterator

import numpy as np

from t2t_lite import files
from t2t_lite.text.segmentation import SegmentationGraph, make_graph
from t2t_lite.text.token_files import TokenPairs
from t2t_lite.text.vocabulary import FlatIds, Vocabulary

_LINES_AT_ONCE = 10_000  # Changing it changes what is drawn.
_SIDES = ("source", "target")
_SUBWORDS = 0xFFFFFFFE  # Begins the seeds; others begin with the seed.


class SubwordSampler:
    """Draws the token ids of a corpus, as a function of (seed, epoch).

    A sequence whose sample is longer than allowed keeps its unsampled ids.

    Args:
        vocabulary: Vocabulary.
        rate: float, in (0, 1). Before every merge, BPE drops each possible one
            with this probability; for unigram it is the exponent of
            probabilities, Kudo's alpha.
        seed: int.
        targets_are_text: bool; if not, targets keep their unsampled ids.

    Raises:
        InputError: the vocabulary is neither BPE nor unigram.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        rate: float,
        seed: int,
        targets_are_text: bool = True,
    ):
        self._seed = seed
        self._sides = _SIDES if targets_are_text else _SIDES[:1]
        self._graphs = [make_graph(vocabulary, rate)]
        if vocabulary.target is not vocabulary and targets_are_text:
            self._graphs.append(make_graph(vocabulary.target, rate))

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
            pairs: TokenPairs, the unsampled ids.
            epoch: int.
            max_lengths: the most tokens of a source and of a target, at least
                the unsampled ones.
            folder: path, on whose disk the ids are kept in a file without a
                name; a temporary one when not given.
            should_stop: once it returns True, the work is abandoned.
        """
        sampled = {}
        for n, side in enumerate(_SIDES):
            ids = getattr(pairs, f"{side}_ids")
            offsets = getattr(pairs, f"{side}_offsets")
            if side in self._sides:
                key = _SUBWORDS, self._seed, epoch, n
                graph = self._graphs[min(n, len(self._graphs) - 1)]
                blocks = _blocks(
                    graph, ids, offsets, key=key, max_length=max_lengths[n]
                )
                found = _write(blocks, folder, should_stop)
                if found is None:
                    return None
                ids, offsets = found
            sampled |= {f"{side}_ids": ids, f"{side}_offsets": offsets}
        return TokenPairs(**sampled, links=pairs.links)


def _blocks(
    graph: SegmentationGraph,
    ids: np.ndarray,
    offsets: np.ndarray,
    key: tuple[int, ...],
    max_length: int,
) -> Iterator[FlatIds]:
    """Yields the samples of one side, a block of lines at a time."""
    num_lines = len(offsets) - 1
    for start in range(0, num_lines, _LINES_AT_ONCE):
        end = min(start + _LINES_AT_ONCE, num_lines)
        unsampled = FlatIds(
            np.asarray(ids[offsets[start] : offsets[end]]),
            np.diff(offsets[start : end + 1]),
        )
        generator = np.random.default_rng((*key, start))
        sample = graph.sample(unsampled, generator)
        yield _select(sample.lengths <= max_length, sample, unsampled)


def _select(is_first: np.ndarray, first: FlatIds, other: FlatIds) -> FlatIds:
    """Returns sequences, each from `first` or from `other`.

    >>> first = FlatIds.from_lists([[5, 6, 1], [7, 1]])
    >>> other = FlatIds.from_lists([[8, 1], [9, 1]])
    >>> _select(np.array([True, False]), first, other).ids.tolist()
    [5, 6, 1, 9, 1]
    """
    lengths = np.where(is_first, first.lengths, other.lengths)
    ids = np.empty(lengths.sum(), np.int32)
    is_from_first = np.repeat(is_first, lengths)
    ids[is_from_first] = first.ids[np.repeat(is_first, first.lengths)]
    ids[~is_from_first] = other.ids[np.repeat(~is_first, other.lengths)]
    return FlatIds(ids, lengths)


def _write(
    blocks: Iterator[FlatIds],
    folder: str | os.PathLike | None,
    should_stop: Callable[[], bool],
) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns (ids mapped into memory, offsets); None if it was stopped."""
    all_lengths = [np.zeros(1, np.int64)]
    # It has no name, so it disappears with its last reader.
    with (
        files.name_path_in_errors(folder or tempfile.gettempdir()),
        tempfile.TemporaryFile(dir=folder) as file,
    ):
        for ids, lengths in blocks:
            if should_stop():
                return None
            file.write(ids.tobytes())
            all_lengths.append(lengths)
        file.flush()
        mapped = np.memmap(file, np.int32, mode="r")
    return mapped, np.cumsum(np.concatenate(all_lengths))
