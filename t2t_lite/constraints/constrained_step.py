"""What may continue a hypothesis, and steps of a search that respect it."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_lite.constraints.goals import Goal
from t2t_lite.constraints.log_probs import LogProbs
from t2t_lite.model.rows import gather
from t2t_lite.tensor import NEG_INF, Tensor

Cache = Any  # a nested structure of tensors
Step = Callable[[Tensor, Cache], tuple[LogProbs, Cache]]
LogitsStep = Callable[[Tensor, Cache], tuple[Tensor, Cache]]
Reorder = Callable[[Cache, Tensor], Cache]


class Constraint(NamedTuple):
    """Which tokens may continue a hypothesis, by a state that it carries."""

    state: Any  # of empty hypotheses: a nested structure of tensors [B, W, ...]
    # (state, int32 ids_BW) to the state after these tokens. With a goal, W may
    # also be the number of candidates, which are asked about before they are
    # chosen.
    advance: Callable
    # (state, constants) to bool [B, W, V]. A hypothesis that no token may
    # continue ends, and is not a result.
    allowed: Callable
    constants: Any = ()  # of sentences: nested tensors [B, ...]
    # (state, constants) to bool [B, W, V]: the tokens before which a hypothesis
    # ends. EOS gets the sum of their probabilities. None: only EOS.
    ends: Callable | None = None
    goal: Goal | None = None


class ConstrainedCache(NamedTuple):
    """What a constrained step keeps."""

    inner: Cache  # of the step without the constraint
    state: Any  # that of Constraint, nested tensors [B, W, ...]
    constants: Any  # those of Constraint, nested tensors [B, ...]
    # With a Goal: bool, whether the model would have ended a hypothesis that
    # may not end yet.
    wants_end_BW: Any = ()


def with_constraint(
    step: Step,
    reorder: Reorder | None,
    cache: Cache,
    constraint: Constraint,
    eos: int,
) -> tuple[Step, Reorder, Cache]:
    """Returns (step, reorder, cache) that keep to the constraint.

    Args:
        step: a function to log probabilities.
        reorder: that of `beam_search`; None if hypotheses stay in place, and
            the returned one is not called.
        cache: that of `beam_search`.
        constraint: what rules tokens out.
        eos: that of `beam_search`.
    """

    def constrained_step(ids_BW, cache):
        state = constraint.advance(cache.state, ids_BW)
        log_probs, inner = step(ids_BW, cache.inner)
        logits_BWV = log_probs.logits_BWV
        allowed_BWV = constraint.allowed(state, cache.constants)
        if constraint.goal is not None:
            next_BWP = constraint.goal.next_ids(state, cache.constants)
            is_next_BWP = (next_BWP >= 0) & gather(
                allowed_BWV, ops.maximum(next_BWP, 0), batch_dims=2
            )
            # The end is likelier than all else together.
            eos_BW = ops.full_like(ids_BW, eos)
            would_end_BW = log_probs.at(eos_BW) > math.log(0.5)
            wants_end_BW = (
                (cache.wants_end_BW | would_end_BW)
                & ~allowed_BWV[..., eos]
                & ops.any(is_next_BWP, axis=-1)
            )
            cache = cache._replace(wants_end_BW=wants_end_BW)
        logits_BWV = ops.where(allowed_BWV, logits_BWV, NEG_INF)
        if constraint.ends is not None:
            is_end_BWV = constraint.ends(state, cache.constants)
            logits_BWV = _with_ends(logits_BWV, is_end_BWV, eos)
        log_probs = log_probs._replace(logits_BWV=logits_BWV)
        return log_probs, cache._replace(inner=inner, state=state)

    def reorder_all(cache, parent_BW):
        state = keras.tree.map_structure(
            lambda x: gather(x, parent_BW), cache.state
        )
        inner = reorder(cache.inner, parent_BW)
        if constraint.goal is not None:
            wants_end_BW = gather(cache.wants_end_BW, parent_BW)
            cache = cache._replace(wants_end_BW=wants_end_BW)
        return cache._replace(inner=inner, state=state)

    whole = ConstrainedCache(cache, constraint.state, constraint.constants)
    if constraint.goal is not None:
        progress_BW = constraint.goal.progress(
            constraint.state, constraint.constants
        )
        wants_end_BW = ops.zeros_like(progress_BW, "bool")
        whole = whole._replace(wants_end_BW=wants_end_BW)
    return constrained_step, reorder_all, whole


def progress(
    constraint: Constraint,
    cache: ConstrainedCache,
    parents_BK: Tensor,
    tokens_BK: Tensor,
) -> Tensor:
    """Returns int32 [B, K]: how far continuations are toward the goal.

    Args:
        constraint: Constraint, with a Goal.
        cache: of the hypotheses that are continued.
        parents_BK: int32, which of them each one continues.
        tokens_BK: int32, with which token.
    """
    state = keras.tree.map_structure(
        lambda x: gather(x, parents_BK), cache.state
    )
    state = constraint.advance(state, tokens_BK)
    return constraint.goal.progress(state, cache.constants)


def _with_ends(logits_BWV: Tensor, is_end_BWV: Tensor, eos: int) -> Tensor:
    """Returns logits in which EOS also stands for some tokens."""
    end_logits_BWV = ops.where(is_end_BWV, logits_BWV, NEG_INF)
    total_BW1 = ops.logsumexp(end_logits_BWV, axis=-1, keepdims=True)
    ids_V = ops.arange(logits_BWV.shape[-1], dtype="int32")
    return ops.where(
        ops.equal(ids_V, eos),
        total_BW1,
        ops.where(is_end_BWV, NEG_INF, logits_BWV),
    )
