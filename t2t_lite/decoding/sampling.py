"""Translations drawn at random from a model's probabilities.

What is drawn for a sentence depends only on the seed and its own ids: the noise
of a token is a hash of these, the sample, the step and the token. So it is the
same in every batch, on every device and with every backend.

Source: Gumbel 1954; Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p).
"""

from typing import NamedTuple

from keras import ops

from t2t_lite.constraints.constrained_step import (
    Cache,
    Constraint,
    Step,
    with_constraint,
)
from t2t_lite.decoding.beam_search import Hypotheses, length_penalty
from t2t_lite.model.rows import gather
from t2t_lite.tensor import NEG_INF, Tensor, is_possible
from t2t_lite.token_ids import PAD

_LOWEST_TEMPERATURE = 1e-30  # Float32 may round lower ones to 0.
_ODD = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)  # Multipliers of the hash.


class Sampling(NamedTuple):
    """From which tokens to draw, and how."""

    top_k: int = 0  # the likeliest; 0: all
    top_p: float = 1.0  # the likeliest that together have this share
    temperature: float = 1.0  # what logits are divided by


class _State(NamedTuple):
    """What one step hands to the next."""

    length: Tensor  # int32 [], tokens of hypotheses that are not over
    ids_BWT: Tensor  # int32
    log_probs_BW: Tensor  # float32, of the model
    is_over_BW: Tensor  # bool, whether EOS was drawn, or nothing could be
    cache: Cache


def sample(
    step: Step,
    cache: Cache,
    max_lengths_B: Tensor,
    *,
    max_length: int | Tensor,
    num_samples: int,
    alpha: float,
    eos: int,
    sampling: Sampling,
    keys_B: Tensor,
    constraint: Constraint | None = None,
) -> Hypotheses:
    """Returns samples, those with the best scores first.

    Args:
        step: that of `beam_search`.
        cache: that of `beam_search`.
        max_lengths_B: that of `beam_search`.
        max_length: that of `beam_search`.
        num_samples: W, drawn independently of each other.
        alpha: exponent of the length penalty, only for the scores.
        eos: that of `beam_search`.
        sampling: Sampling.
        keys_B: uint32, that of `row_keys`.
        constraint: Constraint, or None. What it forbids is never drawn.

    Returns:
        Hypotheses. A score is that of the model, whatever was drawn from; it is
        -inf for a sample that the constraint left no token for.
    """
    W = num_samples
    B = ops.shape(max_lengths_B)[0]
    if constraint is not None:
        step, _, cache = with_constraint(
            step, reorder=None, cache=cache, constraint=constraint, eos=eos
        )

    def goes_on(state: _State) -> Tensor:
        has_room_B1 = (state.length < max_lengths_B)[:, None]
        return has_room_B1 & ~state.is_over_BW

    def advance(state: _State) -> tuple[_State]:
        last = ops.maximum(state.length - 1, 0)
        newest_BW1 = ops.slice(state.ids_BWT, (0, 0, last), (B, W, 1))
        newest_BW = ops.where(state.length == 0, eos, newest_BW1[..., 0])
        log_probs, cache = step(newest_BW, state.cache)
        drawn_BW = _draw(
            log_probs.logits_BWV, sampling, keys_B=keys_B, step=state.length
        )
        gained_BW = log_probs.at(drawn_BW)
        goes_on_BW = goes_on(state)
        is_here_BWT = goes_on_BW[..., None] & (place_T == state.length)
        is_last_BW = ops.equal(drawn_BW, eos) | ~is_possible(gained_BW)
        return (
            _State(
                length=state.length + 1,
                ids_BWT=ops.where(
                    is_here_BWT, drawn_BW[..., None], state.ids_BWT
                ),
                log_probs_BW=state.log_probs_BW
                + ops.where(goes_on_BW, gained_BW, 0.0),
                is_over_BW=state.is_over_BW | (goes_on_BW & is_last_BW),
                cache=cache,
            ),
        )

    place_T = ops.arange(max_length, dtype="int32")
    (state,) = ops.while_loop(
        lambda state: ops.any(goes_on(state)),
        advance,
        (
            _State(
                length=ops.convert_to_tensor(0, "int32"),
                ids_BWT=ops.zeros((B, W, max_length), "int32"),
                log_probs_BW=ops.zeros((B, W), "float32"),
                is_over_BW=ops.zeros((B, W), "bool"),
                cache=cache,
            ),
        ),
    )
    return _best_first(state, alpha)


def row_keys(source_ids_BS: Tensor, seed: int) -> Tensor:
    """Returns uint32 [B]: a hash of each row's ids, except padding.

    Args:
        source_ids_BS: int32.
        seed: int.
    """
    S = ops.shape(source_ids_BS)[1]
    ids_BS = ops.cast(source_ids_BS, "uint32")
    place_S = ops.cast(ops.arange(S, dtype="int32"), "uint32")
    mixed_BS = _hash(_hash(ids_BS) + place_S)
    is_token_BS = ops.not_equal(source_ids_BS, PAD)
    none = ops.cast(0, "uint32")
    total_B = ops.sum(ops.where(is_token_BS, mixed_BS, none), axis=1)
    return _hash(ops.cast(total_B, "uint32") + _constant(seed))


def _draw(
    logits_BWV: Tensor, sampling: Sampling, keys_B: Tensor, step: Tensor
) -> Tensor:
    """Returns int32 [B, W]: a token of each hypothesis, drawn at random."""
    logits_BWV = _limited(logits_BWV, sampling)
    _, W, V = ops.shape(logits_BWV)
    step = ops.cast(step, "uint32")
    sample_W = ops.cast(ops.arange(W, dtype="int32"), "uint32")
    token_V = ops.cast(ops.arange(V, dtype="int32"), "uint32")
    key_B1 = _hash(keys_B + step)[:, None]
    key_BW = _hash(key_B1 + sample_W)
    bits_BWV = _hash(key_BW[..., None] + _hash(token_V))
    # 24 bits, which float32 holds: from 0 to 1, without the ends.
    high_BWV = ops.cast(_shifted(bits_BWV, 8), "float32")
    uniform_BWV = (high_BWV + 0.5) / 2**24
    noise_BWV = -ops.log(-ops.log(uniform_BWV))
    return ops.cast(ops.argmax(logits_BWV + noise_BWV, axis=-1), "int32")


def _limited(logits_BWV: Tensor, sampling: Sampling) -> Tensor:
    """Returns logits of the tokens to draw from; those of others are NEG_INF.

    At any temperature, what is impossible stays so, and the rest possible.
    """
    temperature = max(sampling.temperature, _LOWEST_TEMPERATURE)
    falling_BWV = logits_BWV - ops.max(logits_BWV, axis=-1, keepdims=True)
    logits_BWV = ops.where(
        is_possible(logits_BWV),
        ops.maximum(falling_BWV / temperature, NEG_INF / 2),
        NEG_INF,
    )
    V = logits_BWV.shape[-1]
    if 0 < sampling.top_k < V:
        best_BWK, _ = ops.top_k(logits_BWV, sampling.top_k)
        is_best_BWV = logits_BWV >= best_BWK[..., -1:]
        logits_BWV = ops.where(is_best_BWV, logits_BWV, NEG_INF)
    if sampling.top_p < 1:
        p_BWV = ops.softmax(logits_BWV)
        falling_BWV = -ops.sort(-p_BWV, axis=-1)
        before_BWV = ops.cumsum(falling_BWV, axis=-1) - falling_BWV
        is_kept_BWV = before_BWV < sampling.top_p
        least_BW1 = ops.min(
            ops.where(is_kept_BWV, falling_BWV, 2.0), axis=-1, keepdims=True
        )
        logits_BWV = ops.where(p_BWV >= least_BW1, logits_BWV, NEG_INF)
    return logits_BWV


def _best_first(state: _State, alpha: float) -> Hypotheses:
    """Returns the hypotheses of the last state."""
    is_token_BWT = ops.not_equal(state.ids_BWT, PAD)
    lengths_BW = ops.sum(ops.cast(is_token_BWT, "int32"), axis=2)
    scores_BW = state.log_probs_BW / length_penalty(lengths_BW, alpha)
    is_valid_BW = is_possible(state.log_probs_BW)
    scores_BW = ops.where(is_valid_BW, scores_BW, -float("inf"))
    ids_BWT = ops.where(is_valid_BW[..., None], state.ids_BWT, PAD)
    W = ops.shape(scores_BW)[1]
    scores_BW, order_BW = ops.top_k(scores_BW, W)
    return Hypotheses(gather(ids_BWT, ops.cast(order_BW, "int32")), scores_BW)


def _hash(x: Tensor) -> Tensor:
    """Returns uint32 numbers mixed, one to one.

    Source: the finalizer of MurmurHash3, after a multiplication.
    """
    first, second, third = map(_constant, _ODD)
    x = (x + first) * first
    x = ops.bitwise_xor(x, _shifted(x, 16)) * second
    x = ops.bitwise_xor(x, _shifted(x, 13)) * third
    return ops.bitwise_xor(x, _shifted(x, 16))


def _shifted(x: Tensor, bits: int) -> Tensor:
    return ops.bitwise_right_shift(x, _constant(bits))


def _constant(value: int) -> Tensor:
    return ops.convert_to_tensor(value % 2**32, dtype="uint32")
