"""Beam search toward a goal: what is unlikely but must get done."""

from collections.abc import Callable
from typing import NamedTuple

from keras import ops

from t2t_lite.constraints.top_k import top_k
from t2t_lite.model.rows import gather
from t2t_lite.tensor import NEG_INF, Tensor, is_possible


class Goal(NamedTuple):
    """What hypotheses must get done before they end.

    Those that are equally far compete only with each other, because what is
    unlikely would otherwise fall behind before it is done.
    """

    # (state, constants) to int32 [B, W]: how far hypotheses, or candidates,
    # are.
    progress: Callable
    # (state, constants) to int32 [B, W, P]: tokens that take them further, -1
    # for none.
    next_ids: Callable


def best_and_nearer(
    logits_BWV: Tensor,
    added_BW: Tensor,
    *,
    nearer_BWP: Tensor,
    wants_end_BW: Tensor,
    K: int,
    eos: int,
) -> tuple[Tensor, Tensor]:
    """Returns the K best continuations, and others that a goal needs.

    The others are each hypothesis's best one, its end, and those that bring it
    nearer to the goal. Where the model would have ended before the goal was
    reached, only the ones nearer to the goal are left: whatever else it
    continued with is not text.

    Args:
        logits_BWV: float32, of the next tokens.
        added_BW: float32, what makes these log probabilities of hypotheses.
        nearer_BWP: int32, tokens that bring each nearer, -1 for none.
        wants_end_BW: bool, which ones the model would have ended.
        K: how many best ones.
        eos: the id that ends a hypothesis.

    Returns:
        float32 log probabilities and int32 places among all W * V, both [B, N],
        N = K + W * (2 + P). A place that is repeated has NEG_INF there.
    """
    B, W, V = ops.shape(logits_BWV)
    going_on_BW = ops.where(wants_end_BW, NEG_INF, added_BW)
    log_probs_BK, best_BK = top_k(logits_BWV, going_on_BW, K)
    best_BW = ops.cast(ops.argmax(logits_BWV, axis=-1), "int32")
    best_BW1 = ops.where(wants_end_BW, -1, best_BW)[..., None]
    ids_BWN = ops.concatenate(
        [best_BW1, ops.full_like(best_BW1, eos), nearer_BWP], axis=-1
    )
    log_probs_BWN = ops.where(
        ids_BWN < 0,
        NEG_INF,
        gather(logits_BWV, ops.maximum(ids_BWN, 0), batch_dims=2)
        + added_BW[..., None],
    )
    first_W1 = V * ops.arange(W, dtype="int32")[:, None]
    size = W * ops.shape(ids_BWN)[2]
    places_BN = ops.concatenate(
        [best_BK, ops.reshape(first_W1 + ids_BWN, (B, size))], axis=1
    )
    log_probs_BN = ops.concatenate(
        [log_probs_BK, ops.reshape(log_probs_BWN, (B, size))], axis=1
    )
    is_again_BN = _is_repeated(places_BN, is_possible(log_probs_BN))
    places_BN = ops.where(is_possible(log_probs_BN), places_BN, 0)
    return ops.where(is_again_BN, NEG_INF, log_probs_BN), places_BN


def best_in_turns(
    alive_BK: Tensor, progress_BK: Tensor, beam_width: int
) -> tuple[Tensor, Tensor]:
    """Returns the W to continue, taking turns among those equally far.

    First comes the best of each group, the furthest group first; then the
    second best of each, and so on. What is impossible comes last.

    Args:
        alive_BK: float32, log probabilities; NEG_INF for what has ended.
        progress_BK: int32, how far each is.
        beam_width: W, at most K.

    Returns:
        float32 log probabilities, best first, and int32 places among the K,
        both [B, W].
    """
    place_K = ops.arange(ops.shape(alive_BK)[1], dtype="int32")
    here_BK1, other_B1K = alive_BK[:, :, None], alive_BK[:, None]
    is_before_BKK = (other_B1K > here_BK1) | (
        ops.equal(other_B1K, here_BK1) & (place_K < place_K[:, None])
    )
    is_beside_BKK = ops.equal(progress_BK[:, None], progress_BK[..., None])
    turn_BK = ops.sum(ops.cast(is_before_BKK & is_beside_BKK, "int32"), axis=-1)
    turn_BK = turn_BK + ops.where(
        is_possible(alive_BK), 0, ops.shape(alive_BK)[1]
    )
    furthest = ops.max(progress_BK) + 1
    order_BK = ops.argsort(turn_BK * furthest - progress_BK, axis=1)
    kept_BW = ops.cast(order_BK[:, :beam_width], "int32")
    log_probs_BW, best_first_BW = ops.top_k(
        gather(alive_BK, kept_BW), beam_width
    )
    return log_probs_BW, gather(kept_BW, ops.cast(best_first_BW, "int32"))


def _is_repeated(x_BN: Tensor, counts_BN: Tensor) -> Tensor:
    """Returns bool [B, N]: what equals something before it that counts."""
    place_N = ops.arange(ops.shape(x_BN)[1], dtype="int32")
    is_before_NN = place_N < place_N[:, None]
    is_same_BNN = ops.equal(x_BN[:, :, None], x_BN[:, None])
    return ops.any(is_same_BNN & counts_BN[:, None] & is_before_NN, axis=-1)
