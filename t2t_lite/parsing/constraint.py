"""Which symbols may come next, so that a beam search gives only trees."""

from typing import NamedTuple

import numpy as np
from keras import ops

from t2t_lite.constraints.constrained_step import Constraint
from t2t_lite.errors import InputError
from t2t_lite.model.rows import gather, take
from t2t_lite.parsing import trees
from t2t_lite.tensor import Tensor
from t2t_lite.token_ids import EOS

MAX_OPEN = trees.MAX_DEPTH - 1  # A word's own bracket is the innermost.


class TreeState(NamedTuple):
    """Where hypotheses stand in their trees."""

    closing_BWN: Tensor  # int32, the ids that close the open brackets
    depth_BW: Tensor  # int32, how many brackets are open
    is_empty_BW: Tensor  # bool, whether the innermost one is still empty
    words_left_BW: Tensor  # int32, words that have no tag yet
    tokens_left_BW: Tensor  # int32, how long a hypothesis may still become


class TreeSymbols:
    """The symbols of linearized trees among the ids of a vocabulary.

    V is one more than the largest of their ids: no larger id is ever allowed.

    Args:
        ids: dict, the id of each symbol, as from `trees.symbols`.

    Raises:
        InputError: a bracket that can be opened cannot be closed, or the
            outermost one is missing.
    """

    def __init__(self, ids: dict[str, int]):
        self.V = max(ids.values(), default=EOS) + 1
        self.is_opening_V = np.zeros(self.V, bool)
        self.is_tag_V = np.zeros(self.V, bool)
        self.closing_V = np.zeros(self.V, "int32")
        for symbol, i in ids.items():
            if trees.is_opening(symbol):
                self.is_opening_V[i] = True
                self.closing_V[i] = ids.get(trees.closing(symbol[1:]), 0)
            elif not trees.is_closing(symbol):
                self.is_tag_V[i] = True
        root = ids.get(trees.opening(trees.ROOT))
        if root is None or not self.closing_V[self.is_opening_V].all():
            raise InputError(
                "the vocabulary has no tree symbols: learn one with "
                "task=parsing"
            )
        self.is_root_V = np.arange(self.V) == root
        self.is_opening_V[root] = False

    def constraint(
        self,
        num_words_B: Tensor,
        max_lengths_B: Tensor,
        beam_width: int,
        tags_BNV: Tensor | None = None,
    ) -> Constraint:
        """Returns the Constraint to trees over the words of B sentences.

        The outermost bracket is TOP, which appears nowhere else, each bracket
        holds something, each word has one tag, and a hypothesis opens no
        bracket that it has no room to close.

        Args:
            num_words_B: int32, at least 1.
            max_lengths_B: int32, the most tokens of each sentence, EOS
                included: at least num_words_B + 3.
            beam_width: int, W.
            tags_BNV: bool, the tags that each word may have, at least one; None
                for all tags.
        """
        B, W = ops.shape(num_words_B)[0], beam_width

        def for_each_hypothesis(x_B):
            return ops.broadcast_to(ops.cast(x_B, "int32")[:, None], (B, W))

        state = TreeState(
            closing_BWN=ops.zeros((B, W, MAX_OPEN), "int32"),
            depth_BW=ops.zeros((B, W), "int32"),
            is_empty_BW=ops.ones((B, W), "bool"),
            words_left_BW=for_each_hypothesis(num_words_B),
            tokens_left_BW=for_each_hypothesis(max_lengths_B),
        )

        if tags_BNV is None:
            all_tags_V = ops.convert_to_tensor(self.is_tag_V)
            return Constraint(
                state,
                self.advance,
                lambda state, _: self.allowed(state, all_tags_V),
            )

        def allowed(state, constants):
            num_words_B, tags_BNV = constants
            word_BW = num_words_B[:, None] - state.words_left_BW
            last = ops.shape(tags_BNV)[1] - 1
            word_BW = ops.clip(word_BW, 0, last)
            return self.allowed(state, gather(tags_BNV, word_BW))

        return Constraint(
            state, self.advance, allowed, constants=(num_words_B, tags_BNV)
        )

    def advance(self, state: TreeState, ids_BW: Tensor) -> TreeState:
        """Returns the TreeState after one more symbol of each hypothesis."""
        opens_BW = take(self.is_opening_V | self.is_root_V, ids_BW)
        is_tag_BW = take(self.is_tag_V, ids_BW)
        is_start_BW = ops.equal(state.depth_BW, 0)
        closes_BW = ~(opens_BW | is_tag_BW | is_start_BW)
        place_N = ops.arange(MAX_OPEN, dtype="int32")
        is_new_BWN = opens_BW[..., None] & ops.equal(
            place_N, state.depth_BW[..., None]
        )
        closing_BW = take(self.closing_V, ids_BW)
        moves_BW = opens_BW | is_tag_BW | closes_BW
        return TreeState(
            closing_BWN=ops.where(
                is_new_BWN, closing_BW[..., None], state.closing_BWN
            ),
            depth_BW=state.depth_BW + _count(opens_BW) - _count(closes_BW),
            is_empty_BW=opens_BW,
            words_left_BW=state.words_left_BW - _count(is_tag_BW),
            tokens_left_BW=state.tokens_left_BW - _count(moves_BW),
        )

    def allowed(self, state: TreeState, tags_BWV: Tensor) -> Tensor:
        """Returns bool [B, W, V]: the symbols that may come next.

        Args:
            state: TreeState.
            tags_BWV: bool, the tags that the next word may have.
        """
        depth_BW, words_left_BW = state.depth_BW, state.words_left_BW
        has_words_BW = words_left_BW > 0
        is_inside_BW = depth_BW > 0
        # An opening needs room for itself, its own closing, and what is still
        # due: a tag for each word, a closing for each open bracket, and EOS.
        needed_BW = 2 + words_left_BW + depth_BW + 1
        may_tag_BW = is_inside_BW & has_words_BW
        may_open_BW = (
            may_tag_BW
            & (needed_BW <= state.tokens_left_BW)
            & (depth_BW < MAX_OPEN)
        )
        is_outermost_BW = ops.equal(depth_BW, 1)
        may_close_BW = (
            is_inside_BW
            & ~state.is_empty_BW
            & ~(is_outermost_BW & has_words_BW)
        )
        innermost_BW1 = ops.maximum(depth_BW - 1, 0)[..., None]
        closing_BW1 = gather(state.closing_BWN, innermost_BW1, batch_dims=2)
        ids_V = ops.arange(self.V, dtype="int32")
        return (
            (may_tag_BW[..., None] & tags_BWV)
            | (may_open_BW[..., None] & self.is_opening_V)
            | (may_close_BW[..., None] & ops.equal(ids_V, closing_BW1))
            | ((~is_inside_BW & has_words_BW)[..., None] & self.is_root_V)
            | ((~is_inside_BW & ~has_words_BW)[..., None] & (ids_V == EOS))
        )


def _count(is_BW):
    return ops.cast(is_BW, "int32")
