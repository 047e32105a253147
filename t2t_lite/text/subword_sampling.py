"""Subword sampling: a corpus tokenized anew for each epoch.

SentencePiece can do this too, but what it draws differs from process to
process, whatever seed it is given; a run could not be resumed. Here words walk
through a graph of decisions. Each distinct word has a node where it begins; a
node asks a question that is answered yes with some probability, and the ids
that are emitted on the way are the word's. The words of many lines walk side by
side, and the graph grows where a word comes for the first time:

    BPE      Is this merge done? The next one is asked about until none is left.
    unigram  Is this the next piece? If not, the next best is asked about.

Sources: Provilkov et al. 2020, "BPE-Dropout"; Kudo 2018, "Subword
Regularization".
"""

import abc
import itertools
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from t2t_lite.errors import InputError
from t2t_lite.text.token_files import TokenPairs
from t2t_lite.text.vocabulary import FIRST_PIECE, SPACE, FlatIds, Vocabulary

_LINES_AT_ONCE = 10_000  # A change of it changes what is drawn.
_SIDES = ("source", "target")
_SUBWORDS = 0xFFFFFFFE  # Begins the seeds, where others have the seed.
_MAX_NODES = 2_000_000  # Of a graph, before it is begun anew.
_ROOM = 1 << 16  # For nodes, at first.
_END, _UNKNOWN = -1, -2  # In place of a node: no more, not looked at yet.


class SubwordSampler:
    """Draws the token ids of a corpus, as a function of (seed, epoch).

    A sequence whose sample is longer than allowed keeps its usual ids.

    Args:
        vocabulary: Vocabulary.
        rate: float, in (0, 1). BPE drops each merge with this probability; for
            unigram it is the exponent of probabilities, Kudo's alpha.
        seed: int.
        targets_are_text: bool; if not, targets keep their usual ids.

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
        self._graph = _graph(vocabulary, rate)

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
                key = _SUBWORDS, self._seed, epoch, n
                blocks = self._blocks(ids, offsets, key, max_lengths[n])
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
            generator = np.random.default_rng((*key, start))
            sample = self._graph.sample(usual, generator)
            yield _chosen(sample.lengths <= max_length, sample, usual)


class _Graph(abc.ABC):
    """The decisions by which words become pieces.

    A word begins where a piece begins with a space. What is no piece of text,
    and what is never split, is a word by itself.
    """

    def __init__(self, vocabulary: Vocabulary, pieces: Sequence):
        kind = type(pieces[0])
        self._names = ["", "", *(piece.piece for piece in pieces)]
        # By name: (id, score).
        self._pieces = {
            piece.piece: (n, piece.score)
            for n, piece in enumerate(pieces, start=FIRST_PIECE)
            if piece.type == kind.NORMAL
        }
        self._is_whole_V = np.ones(vocabulary.size, bool)
        self._is_whole_V[[i for i, _ in self._pieces.values()]] = False
        self._begins_V = self._is_whole_V | np.array(
            [name.startswith(SPACE) for name in self._names]
        )
        self._clear()

    def _clear(self) -> None:
        self._beginnings: dict[bytes, int] = {}  # The nodes of words.
        self._num_nodes = 0
        # Of each node, those of `_add`.
        self._emitted, self._yes, self._no = np.zeros((3, _ROOM), np.int32)
        self._probability = np.zeros(_ROOM)

    def _resize(self, size: int) -> None:
        """Makes room for so many nodes."""
        self._emitted, self._yes, self._no = (
            np.resize(array, size)
            for array in (self._emitted, self._yes, self._no)
        )
        self._probability = np.resize(self._probability, size)

    def _add(
        self,
        emitted: int,
        probability: float = 1.0,
        yes: int = _END,
        no: int = _END,
    ) -> int:
        """Returns a new node.

        Args:
            emitted: the id that a word emits here; 0 for none.
            probability: of going on to `yes`.
            yes: a node, _END or _UNKNOWN.
            no: likewise.
        """
        n = self._num_nodes
        if n == len(self._emitted):
            self._resize(2 * n)
        self._emitted[n], self._probability[n] = emitted, probability
        self._yes[n], self._no[n] = yes, no
        self._num_nodes += 1
        return n

    def _chain(self, ids: Sequence[int]) -> int:
        """Returns the first of the nodes that emit some ids."""
        node = _END
        for i in reversed(ids):
            node = self._add(i, yes=node)
        return node

    def _beginning(self, word: bytes) -> int:
        """Returns the node of a word, the bytes of its usual ids."""
        if word not in self._beginnings:
            ids = np.frombuffer(word, np.int32).tolist()
            text = "".join(self._names[i] for i in ids)
            is_text = not self._is_whole_V[ids[0]] and all(
                character in self._pieces for character in text
            )
            self._beginnings[word] = (
                self._text_node(text) if is_text else self._chain(ids)
            )
        return self._beginnings[word]

    @abc.abstractmethod
    def _text_node(self, text: str) -> int:
        """Returns the node where a word's text begins."""

    def _look_at(self, node: int, is_yes: bool) -> None:
        """Makes the node that is _UNKNOWN behind another one."""
        raise NotImplementedError

    def sample(self, usual: FlatIds, generator: np.random.Generator) -> FlatIds:
        """Returns other pieces of the same text, one sequence for each."""
        if self._num_nodes > _MAX_NODES:
            self._clear()
        ends = np.cumsum(usual.lengths)
        is_start = self._begins_V[usual.ids]
        is_start[1:] |= self._is_whole_V[usual.ids[:-1]]
        is_start[ends[:-1]] = is_start[0] = True
        starts = np.flatnonzero(is_start)
        raw = usual.ids.astype(np.int32, copy=False).tobytes()
        edges = [*(4 * starts).tolist(), len(raw)]
        nodes = np.array(
            [self._beginning(raw[a:b]) for a, b in itertools.pairwise(edges)]
        )
        ids, lengths = self._walk(nodes, generator)
        first_words = np.searchsorted(starts, ends - usual.lengths)
        return FlatIds(ids, np.add.reduceat(lengths, first_words))

    def _walk(
        self, nodes: np.ndarray, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids that words emit from their nodes on, and how many.

        Args:
            nodes: int [W], one for each word.
            generator: np.random.Generator.
        """
        words = np.arange(len(nodes))
        num_words = len(nodes)
        emitted_ids, emitting_words = [], []
        while len(nodes):
            emitted = self._emitted[nodes]
            emitted_ids.append(emitted[emitted > 0])
            emitting_words.append(words[emitted > 0])
            is_yes = generator.random(len(nodes)) < self._probability[nodes]
            following = np.where(is_yes, self._yes[nodes], self._no[nodes])
            if (following == _UNKNOWN).any():
                self._look_at_all(nodes, is_yes, following == _UNKNOWN)
                following = np.where(is_yes, self._yes[nodes], self._no[nodes])
            nodes = following[following != _END]
            words = words[following != _END]
        word_of_id = np.concatenate(emitting_words)
        ids = np.concatenate(emitted_ids)[np.argsort(word_of_id, kind="stable")]
        return ids, np.bincount(word_of_id, minlength=num_words)

    def _look_at_all(
        self, nodes: np.ndarray, is_yes: np.ndarray, is_unknown: np.ndarray
    ) -> None:
        ways = np.unique(2 * nodes[is_unknown] + is_yes[is_unknown])
        for way in ways.tolist():
            self._look_at(way // 2, bool(way % 2))


class _BpeGraph(_Graph):
    """Words by their merges, each of them dropped with one probability.

    The best merge that is left is done or dropped. One that was dropped comes
    back when a merge beside it has made another pair of it.
    """

    def __init__(self, vocabulary: Vocabulary, pieces: Sequence, rate: float):
        self._rate = rate
        super().__init__(vocabulary, pieces)

    def _clear(self) -> None:
        super()._clear()
        # By node: the word, where its pieces begin and end, which of these
        # places are left to be asked about, and which one is.
        self._states: dict[int, tuple] = {}

    def _text_node(self, text: str) -> int:
        edges = tuple(range(len(text) + 1))
        return self._node(text, edges, self._mergeable(text, edges, edges))

    def _merged(self, text, edges, place):
        """Returns what the pieces on both sides of a place are together."""
        n = edges.index(place)
        return text[edges[n - 1] : edges[n + 1]]

    def _mergeable(self, text, edges, places):
        """Returns those places where two pieces are one together."""
        return [
            place
            for place in places
            if edges[0] < place < edges[-1]
            and self._merged(text, edges, place) in self._pieces
        ]

    def _node(self, text, edges, places):
        if not places:
            parts = itertools.pairwise(edges)
            return self._chain([self._pieces[text[a:b]][0] for a, b in parts])
        scores = [self._pieces[self._merged(text, edges, p)][1] for p in places]
        best = places[scores.index(max(scores))]  # The first of equals.
        node = self._add(0, 1 - self._rate, _UNKNOWN, _UNKNOWN)
        self._states[node] = text, edges, places, best
        return node

    def _look_at(self, node: int, is_yes: bool) -> None:
        text, edges, places, best = self._states[node]
        left = [place for place in places if place != best]
        if is_yes:
            n = edges.index(best)
            beside = edges[n - 1], edges[n + 1]
            edges = edges[:n] + edges[n + 1 :]
            new = self._mergeable(text, edges, beside)
            left = sorted({*left} - {*beside} | {*new})
        following = self._node(text, edges, left)
        # Not in one line: the arrays may be others by now.
        (self._yes if is_yes else self._no)[node] = following
        if self._yes[node] != _UNKNOWN and self._no[node] != _UNKNOWN:
            del self._states[node]


class _UnigramGraph(_Graph):
    """Words by their pieces, with probabilities to the power of alpha."""

    def __init__(self, vocabulary: Vocabulary, pieces: Sequence, alpha: float):
        self._alpha = alpha
        super().__init__(vocabulary, pieces)
        self._longest = max(map(len, self._pieces))

    def _text_node(self, text: str) -> int:
        end = len(text)
        # Of each place: the node from there on, and the logarithm of the sum
        # over all ways from there to the end.
        nodes, log_sums = {end: _END}, {end: 0.0}
        for start in reversed(range(end)):
            ways = []
            for stop in range(start + 1, min(end, start + self._longest) + 1):
                i, score = self._pieces.get(text[start:stop], (0, 0.0))
                if i:
                    log_weight = self._alpha * score + log_sums[stop]
                    ways.append((log_weight, i, nodes[stop]))
            nodes[start], log_sums[start] = self._choice(ways)
        return nodes[0]

    def _choice(self, ways: list[tuple[float, int, int]]) -> tuple[int, float]:
        """Returns the node that asks for one of some ways, and their log sum.

        Args:
            ways: (logarithm of its weight, id that it emits, node behind it).
        """
        ways = sorted(ways)
        largest = ways[-1][0]
        total, node = 0.0, _END
        for log_weight, i, following in ways:
            weight = math.exp(log_weight - largest)
            total += weight
            # The least likely way is asked about last, and is certain then.
            emitting = self._add(i, yes=following)
            node = self._add(0, weight / total, emitting, node)
        return node, largest + math.log(total)


def _graph(vocabulary: Vocabulary, rate: float) -> _Graph:
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto.FromString(vocabulary.model)
    spec = model.trainer_spec
    if spec.model_type == spec.BPE:
        return _BpeGraph(vocabulary, model.pieces, rate)
    if spec.model_type == spec.UNIGRAM:
        return _UnigramGraph(vocabulary, model.pieces, rate)
    raise InputError(
        "subword_sampling needs a vocabulary of BPE or unigram pieces; this "
        "one is neither"
    )


def _chosen(is_first: np.ndarray, first: FlatIds, other: FlatIds) -> FlatIds:
    """Returns for each sequence that of `first` or that of `other`.

    >>> first = FlatIds.from_lists([[5, 6, 1], [7, 1]])
    >>> other = FlatIds.from_lists([[8, 1], [9, 1]])
    >>> _chosen(np.array([True, False]), first, other).ids.tolist()
    [5, 6, 1, 9, 1]
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
