"""Constraints on a translation's next token, whatever its text."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from keras import ops

from t2t_lite.constraints.constrained_step import Constraint
from t2t_lite.constraints.goals import Goal
from t2t_lite.errors import require
from t2t_lite.model.rows import gather
from t2t_lite.tensor import Tensor
from t2t_lite.token_ids import EOS


class SearchBatch(NamedTuple):
    """What is searched at once, as far as constraints need to know it."""

    source_ids_BS: Tensor  # int32
    max_lengths_B: Tensor  # int32, the most tokens of each target, with EOS
    max_length: int | Tensor  # T, at least the largest of them
    beam_width: int  # W
    num_target_ids: int  # V
    prefixes_BK3: Tensor | None = None  # that of `PrefixTokens.places`
    terms_BCL: Tensor | None = None  # that of `terms.pack_terms`


MakeConstraint = Callable[[SearchBatch], Constraint]


def all_of(constraints: Sequence[Constraint]) -> Constraint:
    """Returns the Constraint to what all of some constraints allow.

    Args:
        constraints: Constraints of one batch; at most one of them has `ends`,
            and at most one a `goal`.
    """
    if len(constraints) == 1:
        return constraints[0]

    def advance(states, ids_BW):
        return tuple(
            each.advance(state, ids_BW)
            for each, state in zip(constraints, states, strict=True)
        )

    def allowed(states, constants):
        allowed_BWV = None
        for each, *given in zip(constraints, states, constants, strict=True):
            also_BWV = each.allowed(*given)
            is_first = allowed_BWV is None
            allowed_BWV = also_BWV if is_first else allowed_BWV & also_BWV
        return allowed_BWV

    ending, aiming = (
        [n for n, each in enumerate(constraints) if getattr(each, name)]
        for name in ("ends", "goal")
    )
    rule = "at most one constraint may have ends, and one a goal"
    holds = max(len(ending), len(aiming)) <= 1
    require(rule, holds, ends=len(ending), goals=len(aiming))

    def ends(states, constants):
        (n,) = ending
        return constraints[n].ends(states[n], constants[n])

    def progress(states, constants):
        (n,) = aiming
        return constraints[n].goal.progress(states[n], constants[n])

    def next_ids(states, constants):
        (n,) = aiming
        return constraints[n].goal.next_ids(states[n], constants[n])

    return Constraint(
        state=tuple(each.state for each in constraints),
        advance=advance,
        allowed=allowed,
        constants=tuple(each.constants for each in constraints),
        ends=ends if ending else None,
        goal=Goal(progress, next_ids) if aiming else None,
    )


def min_length(batch: SearchBatch, least: int) -> Constraint:
    """Returns the Constraint to at least `least` tokens before the end.

    A sentence with less room than that needs no more than it has room for.

    Args:
        batch: SearchBatch.
        least: how many tokens, without EOS.
    """
    least_B = ops.minimum(batch.max_lengths_B - 1, least)

    def allowed(length_BW, least_B):
        may_end_BW = length_BW >= least_B[:, None]
        ids_V = ops.arange(batch.num_target_ids, dtype="int32")
        return may_end_BW[..., None] | (ids_V != EOS)

    return Constraint(
        state=_no_tokens(batch),
        advance=lambda length_BW, _: length_BW + 1,
        allowed=allowed,
        constants=least_B,
    )


class _History(NamedTuple):
    """The tokens of hypotheses."""

    length_BW: Tensor  # int32
    ids_BWT: Tensor  # int32, 0 where there is none yet


def no_repeated_ngrams(batch: SearchBatch, n: int) -> Constraint:
    """Returns the Constraint to hypotheses with no run of n tokens twice.

    Args:
        batch: SearchBatch.
        n: how many tokens in a row, at least 1.
    """
    B, W = ops.shape(batch.source_ids_BS)[0], batch.beam_width
    place_T = ops.arange(batch.max_length, dtype="int32")

    def advance(history, ids_BW):
        is_here_BWT = ops.equal(place_T, history.length_BW[..., None])
        ids_BWT = ops.where(is_here_BWT, ids_BW[..., None], history.ids_BWT)
        return _History(history.length_BW + 1, ids_BWT)

    def allowed(history, _):
        length_BW1, ids_BWT = history.length_BW[..., None], history.ids_BWT
        # Whether the n - 1 tokens before a place are the newest ones:
        #   ids       a b c a b      n = 3, the newest are a b,
        #   follows   0 0 1 0 0      so c must not come next
        follows_BWT = (place_T >= n - 1) & (place_T < length_BW1)
        for back in range(1, n):
            newest_BW1 = gather(
                ids_BWT, ops.maximum(length_BW1 - back, 0), batch_dims=2
            )
            before_BWT = ops.pad(ids_BWT, ((0, 0), (0, 0), (back, 0)))
            before_BWT = before_BWT[..., : ops.shape(ids_BWT)[2]]
            follows_BWT = follows_BWT & ops.equal(before_BWT, newest_BW1)
        return ~mark_tokens(ids_BWT, follows_BWT, batch.num_target_ids)

    return Constraint(
        state=_History(
            _no_tokens(batch), ops.zeros((B, W, batch.max_length), "int32")
        ),
        advance=advance,
        allowed=allowed,
    )


def mark_tokens(ids_BWN: Tensor, counts_BWN: Tensor, V: int) -> Tensor:
    """Returns bool [B, W, V]: which ids are among those that count.

    Args:
        ids_BWN: int32.
        counts_BWN: bool, which of these count.
        V: how many ids there are.
    """
    B, W, N = ops.shape(ids_BWN)
    row_BW1 = ops.reshape(ops.arange(B * W, dtype="int32"), (B, W, 1))
    row_BWN = ops.broadcast_to(row_BW1, (B, W, N))
    # Each row has one more place, for no id, which is cut off.
    index = ops.stack([row_BWN, ops.where(counts_BWN, ids_BWN, V)], axis=-1)
    index_M2 = ops.reshape(index, (-1, 2))
    ones_M = ops.ones_like(index_M2[:, 0])
    count = ops.scatter(index_M2, ones_M, (B * W, V + 1))
    return ops.reshape(count, (B, W, V + 1))[..., :V] > 0


def _no_tokens(batch: SearchBatch) -> Tensor:
    """Returns int32 [B, W]: -1, because the first id given is not a token."""
    B = ops.shape(batch.source_ids_BS)[0]
    return ops.full((B, batch.beam_width), -1, "int32")
