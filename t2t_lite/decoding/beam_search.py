"""Beam search over any step function: it knows tokens and scores, no model."""

import dataclasses
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_lite.constraints import constrained_step, goals
from t2t_lite.constraints.constrained_step import (
    Cache,
    Constraint,
    LogitsStep,
    Reorder,
    Step,
    with_constraint,
)
from t2t_lite.constraints.goals import Goal
from t2t_lite.constraints.log_probs import LogProbs, log_softmax
from t2t_lite.constraints.top_k import top_k
from t2t_lite.model.rows import gather, take
from t2t_lite.tensor import NEG_INF, Tensor, is_possible


class Hypotheses(NamedTuple):
    """W hypotheses of each sentence, best first."""

    ids_BWT: Tensor  # int32, 0 after the end
    scores_BW: Tensor  # float32, log probability / length penalty


class _State(NamedTuple):
    """What one step of the search hands to the next.

    Alive hypotheses have not ended yet and are kept apart from finished ones,
    so that no long hypothesis is pushed out by a short one before its time.
    """

    length: Tensor  # int32 [], tokens that each alive hypothesis has
    max_lengths_B: Tensor  # int32
    alive_ids_BWT: Tensor  # int32
    alive_log_probs_BW: Tensor  # float32, best first
    finished: Hypotheses  # scores of empty places are NEG_INF
    cache: Cache


class _Candidates(NamedTuple):
    """The K = 2W best continuations of each sentence, best first.

    With a Goal there are more, in any order.
    """

    ids_BKT: Tensor  # int32
    tokens_BK: Tensor  # int32, the newest one of each
    log_probs_BK: Tensor  # float32
    parents_BK: Tensor  # int32, which hypothesis each one continues
    is_end_BK: Tensor  # bool, whether the newest token is EOS


def length_penalty(length: int | Tensor, alpha: float) -> Tensor:
    """Returns ((5 + length) / 6)^alpha, what log probabilities are divided by.

    >>> [float(length_penalty(n, alpha=1.0)) for n in (1, 7, 25)]
    [1.0, 2.0, 5.0]

    Args:
        length: number of tokens, the end of sentence included.
        alpha: 0 for no penalty.

    Source: section 6.1; Wu et al. 2016, Eq. 14.
    """
    return ops.power((5.0 + ops.cast(length, "float32")) / 6.0, alpha)


def beam_search(
    step: Step,
    cache: Cache,
    reorder: Reorder,
    max_lengths_B: Tensor,
    *,
    max_length: int | Tensor,
    beam_width: int,
    alpha: float,
    eos: int,
    num_best: int = 1,
    min_finished: int = 1,
    constraint: Constraint | None = None,
    drop_finished: bool = False,
) -> Hypotheses:
    """Returns the finished hypotheses with the best scores.

    A sentence's search ends when `min_finished` hypotheses have finished and
    the `num_best` best of them beat whatever its alive ones could still become,
    or at its largest length; hypotheses that are alive then fill the remaining
    places. With a Goal, it ends when each of the best is likelier than all that
    are alive. Other sentences have no effect on its finished hypotheses.

    Args:
        step: a function (int32 ids_BW, cache) to (LogProbs, cache): from the
            newest token of each hypothesis to the log probabilities of the next
            one, -inf or `NEG_INF` for tokens that must not follow.
            `with_log_probs` makes one from a step that gives logits.
        cache: a nested structure of tensors [B, ...], or of scalars, whose
            shapes `step` keeps; in a graph without XLA, an axis of unknown size
            may change.
        reorder: a function (cache, int32 parent_BW) to the cache in which
            hypothesis w continues hypothesis parent_BW[:, w].
        max_lengths_B: int32 [B], the most tokens of each sentence, with EOS.
        max_length: T, at least the largest of them.
        beam_width: W.
        alpha: at least 0, exponent of the length penalty.
        eos: the id that ends a hypothesis; also the first token given to
            `step`.
        num_best: from 1 to W, how many hypotheses must be the best possible
            ones; the others are whatever else was found.
        min_finished: up to W, how many hypotheses must have finished.
        constraint: Constraint, or None. Its `advance` is first given `eos`, as
            `step` is. What it forbids is left out of the search, and the
            probabilities of the rest stay as they are: a hypothesis that may
            only continue with unlikely tokens falls behind.
        drop_finished: whether to leave sentences whose search has ended out of
            the steps of the others. Shapes then change, which XLA does not
            allow; a graph must not know B.

    Returns:
        Hypotheses: the ids without the first token, EOS included.

    Source: section 6.1; Wu et al. 2016, section 7.
    """
    if constraint is not None:
        step, reorder, cache = with_constraint(
            step, reorder=reorder, cache=cache, constraint=constraint, eos=eos
        )
    search = _Search(
        step=step,
        constraint=constraint,
        reorder=reorder,
        beam_width=beam_width,
        alpha=alpha,
        eos=eos,
        num_best=num_best,
        min_finished=min_finished,
    )
    state = search.start(cache, max_lengths_B, max_length)
    if drop_finished:
        return search.run_dropping_finished(state)
    return search.results(search.run(state))


def with_log_probs(step: LogitsStep) -> Step:
    """Returns a step of logits as one of LogProbs."""

    def normalized_step(ids_BW, cache):
        logits_BWV, cache = step(ids_BW, cache)
        return log_softmax(logits_BWV), cache

    return normalized_step


@dataclasses.dataclass(frozen=True)
class _Search:
    """The parts of the loop, and what stays the same in all its steps."""

    step: Step  # to log probabilities
    constraint: Constraint | None  # that of the cache, if there is one
    reorder: Reorder
    beam_width: int  # W
    alpha: float
    eos: int
    num_best: int
    min_finished: int

    def start(
        self, cache: Cache, max_lengths_B: Tensor, T: int | Tensor
    ) -> _State:
        """Returns the state in which one empty hypothesis is alive."""
        B, W = ops.shape(max_lengths_B)[0], self.beam_width
        empty_BW = ops.full((B, W), NEG_INF, "float32")
        only_first_W = ops.where(
            ops.arange(W, dtype="int32") == 0, 0.0, NEG_INF
        )
        no_ids_BWT = ops.zeros((B, W, T), "int32")
        return _State(
            length=ops.convert_to_tensor(0, "int32"),
            max_lengths_B=ops.minimum(max_lengths_B, T),
            alive_ids_BWT=no_ids_BWT,
            alive_log_probs_BW=ops.broadcast_to(
                ops.cast(only_first_W, "float32"), (B, W)
            ),
            finished=Hypotheses(no_ids_BWT, empty_BW),
            cache=cache,
        )

    def run(self, state: _State, min_active: int | Tensor = 1) -> _State:
        """Returns the state in which fewer than `min_active` can improve."""
        (state,) = ops.while_loop(
            lambda state: _count(self.may_improve(state)) >= min_active,
            lambda state: (self.advance(state),),
            (state,),
        )
        return state

    def run_dropping_finished(self, state: _State) -> Hypotheses:
        """Returns the results; drops ended sentences once they are a quarter.

        Each drop costs a copy of what stays.
        """
        results = state.finished  # Of the right shape; filled in later.
        place_B = ops.arange(ops.shape(state.max_lengths_B)[0], dtype="int32")

        def run_until_some_leave(results, place_R, state):
            R = ops.shape(place_R)[0]
            state = self.run(state, min_active=3 * R // 4 + 1)
            results = _put(results, place_R, self.results(state))
            (stays_R,) = ops.nonzero(self.may_improve(state))
            place_R, state = _take_sentences((place_R, state), stays_R)
            return results, place_R, state

        results, _, _ = ops.while_loop(
            lambda results, place_R, state: ops.shape(place_R)[0] > 0,
            run_until_some_leave,
            (results, place_B, state),
        )
        return results

    def may_improve(self, state: _State) -> Tensor:
        """Returns bool [B]: whether a sentence's results can still change.

        But for rounding, a log probability only falls, and the penalty only
        grows with length, so an alive hypothesis can at best keep its log
        probability until its largest length. With a Goal, a hypothesis less
        likely than each result cannot change them by getting longer: lacking
        what it still needs, it would continue until there is no room.
        """
        best_alive_B = state.alive_log_probs_BW[:, 0]
        best_BN = state.finished.scores_BW[:, : self.num_best]
        if self._goal is None:
            longest_B = state.max_lengths_B
            bound_B = best_alive_B / length_penalty(longest_B, self.alpha)
            worst_B = best_BN[:, -1]
        else:
            ids_BNT = state.finished.ids_BWT[:, : self.num_best]
            lengths_BN = ops.sum(ops.cast(ids_BNT != 0, "int32"), axis=-1)
            log_probs_BN = best_BN * length_penalty(lengths_BN, self.alpha)
            bound_B, worst_B = best_alive_B, ops.min(log_probs_BN, axis=-1)
        last_B = state.finished.scores_BW[:, self.min_finished - 1]
        is_found_B = is_possible(last_B)
        has_room_B = state.length < state.max_lengths_B
        is_alive_B = is_possible(best_alive_B)
        return has_room_B & is_alive_B & ((bound_B > worst_B) | ~is_found_B)

    def advance(self, state: _State) -> _State:
        """Returns the state with one more token in each alive hypothesis."""
        log_probs, cache = self.step(self._newest_ids(state), state.cache)
        candidates = self._candidates(state, log_probs, cache)
        finished = self._finished(state, candidates)
        alive_BK = ops.where(
            candidates.is_end_BK, NEG_INF, candidates.log_probs_BK
        )
        log_probs_BW, kept_BW = self._alive(alive_BK, candidates, cache)
        # A sentence out of room keeps the alive hypotheses it has.
        has_room_B1 = (state.length < state.max_lengths_B)[:, None]
        return state._replace(
            length=state.length + 1,
            alive_ids_BWT=ops.where(
                has_room_B1[..., None],
                gather(candidates.ids_BKT, kept_BW),
                state.alive_ids_BWT,
            ),
            alive_log_probs_BW=ops.where(
                has_room_B1, log_probs_BW, state.alive_log_probs_BW
            ),
            finished=finished,
            cache=self.reorder(cache, gather(candidates.parents_BK, kept_BW)),
        )

    def _newest_ids(self, state: _State) -> Tensor:
        """Returns int32 [B, W]: the newest token of each alive hypothesis."""
        B, W, _ = ops.shape(state.alive_ids_BWT)
        last = ops.maximum(state.length - 1, 0)
        ids_BW1 = ops.slice(state.alive_ids_BWT, (0, 0, last), (B, W, 1))
        return ops.where(state.length == 0, self.eos, ids_BW1[..., 0])

    def _candidates(
        self, state: _State, log_probs: LogProbs, cache: Cache
    ) -> _Candidates:
        """Returns the best continuations of the alive hypotheses.

        At most W of them end, one for each parent, so W others are left.
        """
        logits_BWV = log_probs.logits_BWV
        added_BW = state.alive_log_probs_BW - log_probs.log_total_BW
        V = logits_BWV.shape[-1]
        K = self.beam_width * min(2, V)
        if self._goal is None:
            log_probs_BK, flat_BK = top_k(logits_BWV, added_BW, K)
        else:
            log_probs_BK, flat_BK = goals.best_and_nearer(
                logits_BWV,
                added_BW,
                nearer_BWP=self._goal.next_ids(cache.state, cache.constants),
                wants_end_BW=cache.wants_end_BW,
                K=K,
                eos=self.eos,
            )
        parents_BK, tokens_BK = flat_BK // V, flat_BK % V
        ids_BKT = gather(state.alive_ids_BWT, parents_BK)
        is_next_T = (
            ops.arange(ops.shape(ids_BKT)[2], dtype="int32") == state.length
        )
        return _Candidates(
            ids_BKT=ops.where(is_next_T, tokens_BK[..., None], ids_BKT),
            tokens_BK=tokens_BK,
            log_probs_BK=log_probs_BK,
            parents_BK=parents_BK,
            is_end_BK=ops.equal(tokens_BK, self.eos),
        )

    @property
    def _goal(self) -> Goal | None:
        return None if self.constraint is None else self.constraint.goal

    def _alive(
        self, alive_BK: Tensor, candidates: _Candidates, cache: Cache
    ) -> tuple[Tensor, Tensor]:
        """Returns the log probabilities and places of W candidates to keep.

        Args:
            alive_BK: float32, log probabilities of those that have not ended.
            candidates: _Candidates.
            cache: of their parents.
        """
        if self._goal is None:
            log_probs_BW, kept_BW = ops.top_k(alive_BK, self.beam_width)
            return log_probs_BW, ops.cast(kept_BW, "int32")
        progress_BK = constrained_step.progress(
            self.constraint,
            cache,
            parents_BK=candidates.parents_BK,
            tokens_BK=candidates.tokens_BK,
        )
        return goals.best_in_turns(alive_BK, progress_BK, self.beam_width)

    def _finished(self, state: _State, candidates: _Candidates) -> Hypotheses:
        """Returns the best finished hypotheses, those of this step included."""
        scores_BK = candidates.log_probs_BK / length_penalty(
            state.length + 1, self.alpha
        )
        ends_now_BK = (
            candidates.is_end_BK
            & is_possible(candidates.log_probs_BK)
            & self.may_improve(state)[:, None]
        )
        scores_BK = ops.where(ends_now_BK, scores_BK, NEG_INF)
        ids, scores = _concatenate(
            state.finished, Hypotheses(candidates.ids_BKT, scores_BK)
        )
        scores_BW, chosen_BW = ops.top_k(scores, self.beam_width)
        return Hypotheses(gather(ids, ops.cast(chosen_BW, "int32")), scores_BW)

    def results(self, state: _State) -> Hypotheses:
        """Returns W hypotheses: the finished ones, then alive ones."""
        lengths_B = ops.minimum(state.length, state.max_lengths_B)
        penalty_B1 = length_penalty(lengths_B, self.alpha)[:, None]
        alive = Hypotheses(
            state.alive_ids_BWT, state.alive_log_probs_BW / penalty_B1
        )
        W = self.beam_width
        place_W = ops.arange(W, dtype="int32")
        is_finished_BW = is_possible(state.finished.scores_BW)
        count_B1 = ops.sum(ops.cast(is_finished_BW, "int32"), 1, keepdims=True)
        # Both groups are in order already: take `count` of one, then the other.
        order_BW = ops.where(
            place_W < count_B1, place_W, W + place_W - count_B1
        )
        ids, scores = _concatenate(state.finished, alive)
        is_valid = is_possible(scores)
        # The rest only fill the beam: they have no text.
        ids = ops.where(is_valid[..., None], ids, 0)
        scores = ops.where(is_valid, scores, -float("inf"))
        return Hypotheses(gather(ids, order_BW), gather(scores, order_BW))


def _concatenate(some: Hypotheses, others: Hypotheses) -> Hypotheses:
    """Returns the hypotheses of both, side by side."""
    return Hypotheses(
        ops.concatenate([some.ids_BWT, others.ids_BWT], 1),
        ops.concatenate([some.scores_BW, others.scores_BW], 1),
    )


def _put(all_B: Hypotheses, place_R: Tensor, some_R: Hypotheses) -> Hypotheses:
    """Returns hypotheses of B sentences, with those of R of them replaced."""
    index_R1 = place_R[:, None]
    return Hypotheses(
        ops.scatter_update(all_B.ids_BWT, index_R1, some_R.ids_BWT),
        ops.scatter_update(all_B.scores_BW, index_R1, some_R.scores_BW),
    )


def _take_sentences(tensors: Any, index_R: Tensor) -> Any:
    """Returns nested tensors [B, ...] at index_R, and scalars as they are."""
    return keras.tree.map_structure(
        lambda x: take(x, index_R) if len(x.shape) else x, tensors
    )


def _count(is_true_B: Tensor) -> Tensor:
    return ops.sum(ops.cast(is_true_B, "int32"))
