"""The ways to cut words into subwords, as graphs that are walked at random.

Each distinct word has a node where it begins; a node asks a question that is
answered yes with some probability, and the ids emitted along the way are the
word's. The words of many lines walk side by side, and the graph grows when a
word occurs for the first time:

    BPE      Is this merge done? If so, all are asked about anew; if not, the
             next best is asked about.
    unigram  Is this the next piece? If not, the next best is asked about.

Sources: Provilkov et al. 2020, "BPE-Dropout"; Kudo 2018, "Subword
Regularization".
"""

import abc
import itertools
import math
from collections.abc import Sequence

import numpy as np
from sentencepiece import sentencepiece_model_pb2

from t2t_lite.errors import InputError
from t2t_lite.text.vocabulary import (
    FIRST_PIECE,
    SPACE,
    FlatIds,
    Vocabulary,
)

_MAX_NODES = 2_000_000  # Of a graph, before it starts over.
_ROOM = 1 << 16  # For nodes, at first.
_END, _UNKNOWN = -1, -2  # In place of a node: no more, not made yet.


class SegmentationGraph(abc.ABC):
    """The decisions by which words become pieces.

    A word begins where a piece begins with a space. A piece that is not text,
    or that is never split, is a word by itself.
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
        self._roots: dict[bytes, int] = {}  # The nodes of words.
        self._num_nodes = 0
        # By node, the arguments of `_add`.
        self._emitted, self._yes, self._no = np.zeros((3, _ROOM), np.int32)
        self._probability = np.zeros(_ROOM)

    def _resize(self, size: int) -> None:
        """Makes room for that many nodes."""
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
            probability: of continuing to `yes`.
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

    def _root(self, word: bytes) -> int:
        """Returns the node of a word, given the bytes of its unsampled ids."""
        if word not in self._roots:
            ids = np.frombuffer(word, np.int32).tolist()
            text = "".join(self._names[i] for i in ids)
            is_text = not self._is_whole_V[ids[0]] and all(
                character in self._pieces for character in text
            )
            self._roots[word] = (
                self._text_node(text) if is_text else self._chain(ids)
            )
        return self._roots[word]

    @abc.abstractmethod
    def _text_node(self, text: str) -> int:
        """Returns the node where a word's text begins."""

    def _expand(self, node: int, is_yes: bool) -> None:
        """Makes the _UNKNOWN node that follows another one.

        A graph that has such nodes overrides it.
        """
        raise NotImplementedError

    def sample(
        self, unsampled: FlatIds, generator: np.random.Generator
    ) -> FlatIds:
        """Returns other pieces of the same text, one sequence for each."""
        if self._num_nodes > _MAX_NODES:
            self._clear()
        ends = np.cumsum(unsampled.lengths)
        is_start = self._begins_V[unsampled.ids]
        is_start[1:] |= self._is_whole_V[unsampled.ids[:-1]]
        is_start[ends[:-1]] = is_start[0] = True
        starts = np.flatnonzero(is_start)
        raw = unsampled.ids.astype(np.int32, copy=False).tobytes()
        edges = [*(4 * starts).tolist(), len(raw)]
        nodes = np.array(
            [self._root(raw[a:b]) for a, b in itertools.pairwise(edges)]
        )
        ids, lengths = self._walk(nodes, generator)
        first_words = np.searchsorted(starts, ends - unsampled.lengths)
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
                self._expand_all(nodes, is_yes, following == _UNKNOWN)
                following = np.where(is_yes, self._yes[nodes], self._no[nodes])
            nodes = following[following != _END]
            words = words[following != _END]
        word_of_id = np.concatenate(emitting_words)
        ids = np.concatenate(emitted_ids)[np.argsort(word_of_id, kind="stable")]
        return ids, np.bincount(word_of_id, minlength=num_words)

    def _expand_all(
        self, nodes: np.ndarray, is_yes: np.ndarray, is_unknown: np.ndarray
    ) -> None:
        ways = np.unique(2 * nodes[is_unknown] + is_yes[is_unknown])
        for way in ways.tolist():
            self._expand(way // 2, bool(way % 2))


class BpeGraph(SegmentationGraph):
    """Words by their merges, of which some are dropped at each step.

    At each step, each possible merge is dropped with the same probability, and
    the best of the others is done. The word is finished when none is left.

    Source: algorithm 1 of Provilkov et al. 2020. (SentencePiece, at the same
    probability, cuts words more often: a dropped merge does not come back.)
    """

    def __init__(self, vocabulary: Vocabulary, pieces: Sequence, rate: float):
        self._rate = rate
        super().__init__(vocabulary, pieces)

    def _clear(self) -> None:
        super()._clear()
        # By word and edges of its pieces: the node where a step begins.
        self._steps: dict[tuple, int] = {}
        # By node that is not yet expanded both ways: the word, the edges of its
        # pieces, and the merges left to ask about, best first, each named by
        # the edge that it removes.
        self._states: dict[int, tuple] = {}

    def _text_node(self, text: str) -> int:
        return self._step_node(text, tuple(range(len(text) + 1)))

    def _step_node(self, text, edges):
        """Returns the node where all possible merges are asked about."""
        if (text, edges) not in self._steps:
            scores = {}
            for start, edge, end in zip(
                edges, edges[1:], edges[2:], strict=False
            ):
                if text[start:end] in self._pieces:
                    _, scores[edge] = self._pieces[text[start:end]]
            # The first of equals comes first.
            merges = sorted(scores, key=scores.get, reverse=True)
            self._steps[text, edges] = self._node(text, edges, merges)
        return self._steps[text, edges]

    def _node(self, text, edges, merges):
        """Returns a new node where some merges are asked about, in order."""
        if not merges:
            parts = itertools.pairwise(edges)
            return self._chain([self._pieces[text[a:b]][0] for a, b in parts])
        node = self._add(0, 1 - self._rate, yes=_UNKNOWN, no=_UNKNOWN)
        self._states[node] = text, edges, merges
        return node

    def _expand(self, node: int, is_yes: bool) -> None:
        text, edges, (merge, *others) = self._states[node]
        if is_yes:
            remaining = tuple(edge for edge in edges if edge != merge)
            following = self._step_node(text, remaining)
        else:
            following = self._node(text, edges, others)
        # Not in one line: `_node` may have replaced the arrays.
        (self._yes if is_yes else self._no)[node] = following
        if self._yes[node] != _UNKNOWN and self._no[node] != _UNKNOWN:
            del self._states[node]


class UnigramGraph(SegmentationGraph):
    """Words by their pieces, with probabilities to the power of alpha."""

    def __init__(self, vocabulary: Vocabulary, pieces: Sequence, alpha: float):
        self._alpha = alpha
        super().__init__(vocabulary, pieces)
        self._longest = max(map(len, self._pieces))

    def _text_node(self, text: str) -> int:
        end = len(text)
        # By place: the node from there on, and the logarithm of the sum over
        # all ways from there to the end.
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
            ways: (logarithm of its weight, id that it emits, node after it).
        """
        ways = sorted(ways)
        largest = ways[-1][0]
        total, node = 0.0, _END
        for log_weight, i, following in ways:
            weight = math.exp(log_weight - largest)
            total += weight
            # The least likely way is asked about last, and is then certain.
            emitting = self._add(i, yes=following)
            node = self._add(0, weight / total, yes=emitting, no=node)
        return node, largest + math.log(total)


def require_all_ids(vocabulary: Vocabulary) -> None:
    """Raises InputError if text has pieces without ids.

    Args:
        vocabulary: Vocabulary; neither of its sides may have such pieces.
    """
    for side in (vocabulary, vocabulary.target):
        if side.has_outside:
            raise InputError(
                "subword_sampling must be 0 with a vocabulary that has pieces "
                "without ids, as imported ones may have: set it to 0, or use "
                "another vocabulary"
            )


def make_graph(vocabulary: Vocabulary, rate: float) -> "SegmentationGraph":
    """Returns the graph of a vocabulary's words.

    Args:
        vocabulary: Vocabulary.
        rate: float, that of SubwordSampler.

    Raises:
        InputError: the vocabulary is neither BPE nor unigram, or has pieces
            without ids.
    """
    require_all_ids(vocabulary)
    model = sentencepiece_model_pb2.ModelProto.FromString(vocabulary.model)
    spec = model.trainer_spec
    if spec.model_type == spec.BPE:
        return BpeGraph(vocabulary, model.pieces, rate)
    if spec.model_type == spec.UNIGRAM:
        return UnigramGraph(vocabulary, model.pieces, rate)
    raise InputError(
        "subword_sampling needs a vocabulary of BPE or unigram pieces; this "
        "one is neither"
    )
