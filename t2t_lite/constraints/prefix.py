r"""Translations that begin with a given text, cut within a word or not.

A hypothesis takes the tokens of the text, as the vocabulary segments it, and
may leave them for any token that begins with all the rest of the text. If the
text "a do" is the tokens "a", " d" and "o", then " dog" and " door" may follow
"a", too, and "og" and "oor" may follow " d".

Such tokens are found in a trie. Its nodes are the beginnings of all tokens:

    tokens        "a"  "ab"  "abc"  "b"      in this order: rank 0, 1, 2, 3
    node          ""   "a"   "ab"   "abc"  "b"
    ranks below   0-4  0-3   1-3    2-3    3-4
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from keras import ops

from t2t_lite.constraints.constrained_step import Constraint
from t2t_lite.constraints.goals import Goal
from t2t_lite.constraints.token_constraints import SearchBatch
from t2t_lite.model.rows import gather, take
from t2t_lite.tensor import Tensor
from t2t_lite.token_ids import EOS, PAD

# Codes are the bytes of a text plus 1, and these:
_NO_CODE = 0  # Pads the codes of a batch.
_END = 257  # That of EOS.
_NO_TEXT = 258  # That of other tokens that stand for no text.
_NUM_CODES = 259


class _Trie(NamedTuple):
    """All beginnings of tokens. Node 0, the root, is the empty one."""

    edges: np.ndarray  # int32, rising: node * _NUM_CODES + code
    children: np.ndarray  # int32, the node that each edge leads to
    low: np.ndarray  # int32, the ranks of the tokens below each node
    high: np.ndarray  # int32


class _Progress(NamedTuple):
    """How far hypotheses are in their prefix."""

    num_tokens_BW: Tensor  # int32
    num_codes_BW: Tensor  # int32, their bytes


class PrefixTokens:
    """The tokens of a vocabulary, to begin translations with.

    Args:
        token_bytes: those of the Vocabulary of targets.
    """

    def __init__(self, token_bytes: Sequence[bytes]):
        codes = [
            [byte + 1 for byte in text] or [_NO_TEXT] for text in token_bytes
        ]
        codes[PAD], codes[EOS] = [], [_END]
        self._length_V = np.array([*map(len, codes)], np.int32)
        self._codes_VL = np.zeros((len(codes), self._length_V.max()), np.int16)
        for i, each in enumerate(codes):
            self._codes_VL[i, : len(each)] = each
        # Those without text come last and are not part of the trie.
        is_text = [each not in ([], [_NO_TEXT]) for each in codes]
        order = sorted(
            range(len(codes)), key=lambda i: (not is_text[i], codes[i])
        )
        self._is_text_V = np.array(is_text)
        self._rank_V = np.argsort(order).astype(np.int32)
        self._trie = _make_trie([codes[i] for i in order if is_text[i]])

    def places(self, ids_BK: Tensor) -> Tensor:
        """Returns what may come next after each number of tokens.

        Args:
            ids_BK: int32, what translations begin with, padded with 0; EOS at
                the end of one that is all of its translation.

        Returns:
            int32 [B, K, 3]: the ids, and the ranks from which, and below which,
            tokens extend beyond the end.
        """
        lengths_BK = take(self._length_V, ids_BK)
        ranks = self._ranks_beyond(ids_BK, lengths_BK)
        return ops.stack([ids_BK, *ranks], axis=-1)

    def forced(self, ids_BK: Tensor) -> Tensor:
        """Returns what `places` does, allowing only these tokens."""
        none_BK = ops.zeros_like(ids_BK)
        return ops.stack([ids_BK, none_BK, none_BK], axis=-1)

    def codes(self, ids_NK: Tensor) -> Tensor:
        """Returns int32 [N, Q], equal where the text of the tokens is.

        Args:
            ids_NK: int32; 0 stands for nothing.

        Returns:
            the bytes of each text as numbers above 0, padded with 0.
        """
        N, K = ops.shape(ids_NK)
        codes_NKL = ops.cast(take(self._codes_VL, ids_NK), "int32")
        longest = self._codes_VL.shape[1]
        return _packed(ops.reshape(codes_NKL, (N, K * longest)))

    def constraint(
        self, batch: SearchBatch, then: Constraint | None = None
    ) -> Constraint:
        """Returns the Constraint to what begins with the prefixes of a batch.

        Args:
            batch: SearchBatch with prefixes_BK3.
            then: Constraint on the tokens after the prefix; it is told of all
                tokens. Its ends count once the hypothesis is longer than the
                prefix.
        """
        if then is None:
            then = Constraint((), lambda state, _: state, lambda *_: True)
        # One more place, because K may be 0.
        places_BK3 = ops.pad(batch.prefixes_BK3, ((0, 0), (0, 1), (0, 0)))
        B, K, _ = ops.shape(places_BK3)
        length_V = ops.convert_to_tensor(self._length_V)

        def advance(state, ids_BW):
            (num_tokens_BW, num_codes_BW), inner = state
            added_BW = take(length_V, ids_BW)
            # What is given first is not a token of the translation.
            is_first_BW = num_tokens_BW < 0
            num_codes_BW = ops.where(is_first_BW, 0, num_codes_BW + added_BW)
            progress = _Progress(num_tokens_BW + 1, num_codes_BW)
            return progress, then.advance(inner, ids_BW)

        def allowed(state, constants):
            progress, inner = state
            (length_B, places_BK3), others = constants
            # Hypotheses still within the prefix have taken its own tokens.
            place_BW = ops.minimum(progress.num_tokens_BW, K - 1)
            may_follow_BWV = self._may_follow(gather(places_BK3, place_BW))
            is_done_BW = progress.num_codes_BW >= length_B[:, None]
            return ops.where(
                is_done_BW[..., None],
                then.allowed(inner, others),
                may_follow_BWV,
            )

        def ends(state, constants):
            progress, inner = state
            (length_B, _), others = constants
            # Something must have come after the prefix.
            is_beyond_BW = progress.num_codes_BW > length_B[:, None]
            ids_V = ops.arange(batch.num_target_ids, dtype="int32")
            is_end_BWV = then.ends(inner, others)
            return ops.equal(ids_V, EOS) | (
                is_beyond_BW[..., None] & is_end_BWV
            )

        def progress(state, constants):
            _, inner = state
            _, others = constants
            return then.goal.progress(inner, others)

        def next_ids(state, constants):
            done, inner = state
            (length_B, _), others = constants
            is_done_BW = done.num_codes_BW >= length_B[:, None]
            next_BWP = then.goal.next_ids(inner, others)
            return ops.where(is_done_BW[..., None], next_BWP, -1)

        lengths_BK = take(length_V, places_BK3[..., 0])
        none_BW = ops.zeros((B, batch.beam_width), "int32")
        return Constraint(
            state=(_Progress(none_BW - 1, none_BW), then.state),
            advance=advance,
            allowed=allowed,
            constants=(
                (ops.sum(lengths_BK, axis=1), places_BK3),
                then.constants,
            ),
            ends=None if then.ends is None else ends,
            goal=None if then.goal is None else Goal(progress, next_ids),
        )

    def _may_follow(self, places_BW3: Tensor) -> Tensor:
        """Returns bool [B, W, V]: whether a token goes on with the prefix."""
        next_BW1, low_BW1, high_BW1 = (
            places_BW3[..., n : n + 1] for n in range(3)
        )
        rank_V = ops.convert_to_tensor(self._rank_V)
        ids_V = ops.arange(rank_V.shape[0], dtype="int32")
        return (ops.equal(ids_V, next_BW1) & self._is_text_V) | (
            (rank_V >= low_BW1) & (rank_V < high_BW1)
        )

    def _ranks_beyond(
        self, ids_BK: Tensor, lengths_BK: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns which tokens may replace all tokens from each place on.

        Args:
            ids_BK: int32.
            lengths_BK: int32, how many codes each one has.

        Returns:
            int32 [B, K], the ranks from which, and below which, tokens begin
            with the text of the tokens from k on.
        """
        trie = _Trie(*map(ops.convert_to_tensor, self._trie))
        longest = self._codes_VL.shape[1]
        codes_BQ = self.codes(ids_BK)
        codes_BQ = ops.pad(codes_BQ, ((0, 0), (0, longest + 1)))
        start_BK = ops.cumsum(lengths_BK, axis=1) - lengths_BK

        def read(n, found):
            node_BK, low_BK, high_BK = found
            code_BK = gather(codes_BQ, start_BK + n)
            is_end_BK = ops.equal(code_BK, _NO_CODE) & (node_BK >= 0)
            here_BK = ops.maximum(node_BK, 0)
            return (
                # There is no node after the end.
                ops.where(is_end_BK, -1, _child(trie, node_BK, code_BK)),
                ops.where(is_end_BK, take(trie.low, here_BK), low_BK),
                ops.where(is_end_BK, take(trie.high, here_BK), high_BK),
            )

        none_BK = ops.zeros_like(ids_BK)
        _, low_BK, high_BK = ops.fori_loop(
            0, longest + 1, read, (none_BK, none_BK, none_BK)
        )
        return low_BK, high_BK


def _packed(codes_BQ: Tensor) -> Tensor:
    """Returns codes in their order, with the padding moved to the end."""
    Q = ops.shape(codes_BQ)[1]
    place_Q = ops.arange(Q, dtype="int32")
    is_none_BQ = ops.equal(codes_BQ, _NO_CODE)
    order_BQ = ops.argsort(ops.where(is_none_BQ, place_Q + Q, place_Q), axis=1)
    return gather(codes_BQ, ops.cast(order_BQ, "int32"))


def _make_trie(codes: list[list[int]]) -> _Trie:
    """Returns the _Trie of tokens, given as their codes, by rising rank."""
    edges: dict[int, int] = {}
    low, high = [0], [len(codes)]
    for rank, token_codes in enumerate(codes):
        node = 0
        for code in token_codes:
            edge = node * _NUM_CODES + code
            if edge not in edges:
                edges[edge] = len(low)
                low.append(rank)
                high.append(rank)
            node = edges[edge]
            high[node] = rank + 1
    keys = sorted(edges)
    arrays = (keys, [edges[key] for key in keys], low, high)
    return _Trie(*(np.array(each, np.int32) for each in arrays))


def _child(trie: _Trie, node_BK: Tensor, code_BK: Tensor) -> Tensor:
    """Returns int32 [B, K]: the node that a code leads to; -1 for none.

    Args:
        trie: _Trie, of tensors.
        node_BK: int32; -1 for none.
        code_BK: int32.
    """
    edge_BK = ops.where(node_BK < 0, -1, node_BK * _NUM_CODES + code_BK)
    place_N = ops.searchsorted(trie.edges, ops.reshape(edge_BK, (-1,)))
    place_BK = ops.reshape(ops.cast(place_N, "int32"), ops.shape(edge_BK))
    place_BK = ops.minimum(place_BK, trie.edges.shape[0] - 1)
    is_edge_BK = ops.equal(take(trie.edges, place_BK), edge_BK)
    return ops.where(is_edge_BK, take(trie.children, place_BK), -1)
