"""Translations that contain given terms, each as often as it is asked for.

A term is a sequence of tokens that forms one or more whole words. How much of
it the newest tokens make up is kept as one bool for each beginning of it:

    term        " a"  " b"  " a"  " c"
    tokens ... " a" " b" " a"     reach   1 of them, 3 of them

The search keeps hypotheses with more of the terms apart from those with fewer,
so that none has to compete with one that left a term out.

Source: Post and Vilar 2018, "Fast lexically constrained decoding with dynamic
beam allocation".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from keras import ops

from t2t_lite.constraints.constrained_step import Constraint
from t2t_lite.constraints.goals import Goal
from t2t_lite.constraints.token_constraints import SearchBatch, mark_tokens
from t2t_lite.constraints.words import Words
from t2t_lite.model.rows import gather
from t2t_lite.tensor import Tensor
from t2t_lite.token_ids import EOS, PAD


class Term(NamedTuple):
    """What a translation must contain."""

    ids: tuple[int, ...]  # tokens of the target
    count: int  # how often
    # Where the source has what it is for: (start, end) in characters.
    spans: tuple[tuple[int, int], ...] = ()


class _TermState(NamedTuple):
    """Where hypotheses are, and terms: `advance` is given no constants."""

    terms_BWCL: Tensor  # int32, padded with 0
    needed_BWC: Tensor  # int32
    room_BW: Tensor  # int32, tokens that fit in before the end
    num_tokens_BW: Tensor  # int32, -1 before the first
    kind_BW: Tensor  # int32, that of `Words.kind_after`
    # bool, whether the newest l + 1 tokens are the first ones of a term.
    reach_BWCL: Tensor
    count_BWC: Tensor  # int32, how often a term is there and has ended


def merge_terms(terms: Sequence[Term]) -> list[Term]:
    """Returns Terms that are all different.

    >>> terms = [Term((5,), 1), Term((6,), 2), Term((5,), 1)]
    >>> [*map(tuple, merge_terms(terms))]
    [((5,), 2, ()), ((6,), 2, ())]
    """
    by_ids: dict[tuple[int, ...], Term] = {}
    for term in terms:
        other = by_ids.get(term.ids, Term(term.ids, 0))
        by_ids[term.ids] = Term(
            term.ids, other.count + term.count, other.spans + term.spans
        )
    return [*by_ids.values()]


def pack_terms(terms: Sequence[Sequence[Term]]) -> np.ndarray:
    """Returns the Terms of N sentences as one array.

    Args:
        terms: those of each sentence, all different.

    Returns:
        int32 [N, C, 1 + L]: the count of each term, then its ids, with 0 as
        padding. C and L are multiples of 4, so that XLA compiles few shapes.
    """
    most = max((len(each) for each in terms), default=0)
    longest = max((len(t.ids) for each in terms for t in each), default=0)
    C, L = (max(4, -(-size // 4) * 4) for size in (most, longest))
    terms_NCL = np.zeros((len(terms), C, 1 + L), np.int32)
    for n, each in enumerate(terms):
        for c, term in enumerate(each):
            terms_NCL[n, c, : 1 + len(term.ids)] = [term.count, *term.ids]
    return terms_NCL


def constraint(words: Words, batch: SearchBatch) -> Constraint:
    """Returns the Constraint to translations with all their terms.

    No term is there more often than asked for, except within a longer one. The
    terms must fit into the room for the translation.

    Args:
        words: Words.
        batch: SearchBatch with terms_BCL.
    """
    W = batch.beam_width
    ids_BCL, needed_BC = batch.terms_BCL[..., 1:], batch.terms_BCL[..., 0]
    B, C, L = ops.shape(ids_BCL)
    none_BW = ops.zeros((B, W), "int32")
    state = _TermState(
        terms_BWCL=ops.repeat(ids_BCL[:, None], W, axis=1),
        needed_BWC=ops.repeat(needed_BC[:, None], W, axis=1),
        room_BW=none_BW + batch.max_lengths_B[:, None] - 1,
        num_tokens_BW=none_BW - 1,
        kind_BW=words.kind_after(none_BW, is_first_BW=none_BW == 0),
        reach_BWCL=ops.zeros((B, W, C, L), "bool"),
        count_BWC=ops.zeros((B, W, C), "int32"),
    )

    def advance(place, ids_BW):
        # What is given first is not a token of the translation.
        is_first_BW = place.num_tokens_BW < 0
        may_begin_BW = words.may_begin(place.kind_BW, ids_BW) & ~is_first_BW
        reach_BWCL = _advanced(place, ids_BW, may_begin_BW)
        is_over_BWC = (
            _is_whole(place)
            & (may_begin_BW | ops.equal(ids_BW, EOS))[..., None]
        )
        return place._replace(
            num_tokens_BW=place.num_tokens_BW + 1,
            kind_BW=words.kind_after(ids_BW, is_first_BW),
            reach_BWCL=reach_BWCL,
            count_BWC=place.count_BWC + ops.cast(is_over_BWC, "int32"),
        )

    return Constraint(
        state=state,
        advance=advance,
        allowed=lambda place, _: _allowed(place, words, V=batch.num_target_ids),
        goal=Goal(
            progress=lambda place, _: _progress(place),
            next_ids=lambda place, _: _nearer(place),
        ),
    )


def _allowed(place: _TermState, words: Words, V: int) -> Tensor:
    """Returns bool [B, W, V]: whether a token may come next."""
    missing_BWC = _missing(place)
    is_open_BWC = missing_BWC > 0
    next_BWC, done_BWC = _next_ids(place)
    first_BWC = place.terms_BWCL[..., 0]
    # What would be there once too often, and is not part of another term.
    last_BWC, is_last_BWC = _last_ids(place, words)
    repeats_BWV = mark_tokens(last_BWC, is_last_BWC & ~is_open_BWC, V)
    part_BWN = ops.concatenate([next_BWC, first_BWC], axis=-1)
    is_open_BWN = ops.concatenate([is_open_BWC, is_open_BWC], axis=-1)
    is_part_BWV = mark_tokens(part_BWN, is_open_BWN, V)
    is_end_V = ops.equal(ops.arange(V, dtype="int32"), EOS)
    may_end_BW1 = ~ops.any(is_open_BWC, axis=-1, keepdims=True)
    may_follow_BWV = (is_part_BWV | ~repeats_BWV) & (may_end_BW1 | ~is_end_V)
    # What is missing must fit in after the next token, and then the end.
    missing_BW1 = ops.sum(missing_BWC * _lengths(place), axis=-1, keepdims=True)
    left_BW = place.room_BW - ops.maximum(place.num_tokens_BW, 0)
    left_BW1 = left_BW[..., None]
    fits_BWN = ops.concatenate(
        [
            is_open_BWC & (missing_BW1 - done_BWC <= left_BW1),
            is_open_BWC & (missing_BW1 <= left_BW1),
        ],
        axis=-1,
    )
    fits_BWV = mark_tokens(part_BWN, fits_BWN, V) | is_end_V
    return may_follow_BWV & ((missing_BW1 < left_BW1) | fits_BWV)


def _lengths(place: _TermState) -> Tensor:
    """Returns int32 [B, W, C]: how many tokens each term has."""
    is_token_BWCL = ops.not_equal(place.terms_BWCL, PAD)
    return ops.sum(ops.cast(is_token_BWCL, "int32"), axis=-1)


def _advanced(
    place: _TermState, ids_BW: Tensor, may_begin_BW: Tensor
) -> Tensor:
    """Returns bool [B, W, C, L]: the reach of terms with one more token."""
    begins_BWC1 = (
        ops.zeros_like(place.reach_BWCL[..., :1])
        | (may_begin_BW[..., None, None])
    )
    before_BWCL = ops.concatenate(
        [begins_BWC1, place.reach_BWCL[..., :-1]], axis=-1
    )
    is_same_BWCL = ops.equal(place.terms_BWCL, ids_BW[..., None, None])
    return before_BWCL & is_same_BWCL & (place.terms_BWCL != PAD)


def _at_length(reach_BWCL: Tensor, length_BWC: Tensor) -> Tensor:
    """Returns bool [B, W, C]: whether this many tokens of a term are there."""
    place_L = ops.arange(ops.shape(reach_BWCL)[3], dtype="int32")
    is_here_BWCL = ops.equal(place_L, length_BWC[..., None] - 1)
    return ops.any(reach_BWCL & is_here_BWCL, axis=-1)


def _is_whole(place: _TermState) -> Tensor:
    """Returns bool [B, W, C]: whether the newest tokens are all of a term.

    What follows may make it another word.
    """
    return _at_length(place.reach_BWCL, _lengths(place))


def _missing(place: _TermState) -> Tensor:
    """Returns int32 [B, W, C]: how often a term must still come."""
    found_BWC = place.count_BWC + ops.cast(_is_whole(place), "int32")
    return ops.maximum(place.needed_BWC - found_BWC, 0)


def _next_ids(place: _TermState) -> tuple[Tensor, Tensor]:
    """Returns int32 [B, W, C]: the token that continues each term.

    Returns:
        those, -1 for a term that need not come; and how many of its tokens are
        already there.
    """
    length_BWC = _lengths(place)
    place_L = ops.arange(ops.shape(place.terms_BWCL)[3], dtype="int32")
    is_part_BWCL = place.reach_BWCL & (place_L < length_BWC[..., None] - 1)
    done_BWC = ops.max(ops.where(is_part_BWCL, place_L + 1, 0), axis=-1)
    next_BWC = gather(place.terms_BWCL, done_BWC, batch_dims=3)
    is_open_BWC = _missing(place) > 0
    return (
        ops.where(is_open_BWC, next_BWC, -1),
        ops.where(is_open_BWC, done_BWC, 0),
    )


def _nearer(place: _TermState) -> Tensor:
    """Returns int32 [B, W, C]: tokens that continue terms, or begin some.

    None begins while another is unfinished; -1 stands for none.
    """
    next_BWC, done_BWC = _next_ids(place)
    is_begun_BWC = done_BWC > 0
    is_any_begun_BW1 = ops.any(is_begun_BWC, axis=-1, keepdims=True)
    return ops.where(is_begun_BWC | ~is_any_begun_BW1, next_BWC, -1)


def _last_ids(place: _TermState, words: Words) -> tuple[Tensor, Tensor]:
    """Returns int32 [B, W, C], the last token of each term; bool, if it is due.

    A term of one token is due wherever a word may begin with it.
    """
    length_BWC = _lengths(place)
    last_BWC = gather(
        place.terms_BWCL, ops.maximum(length_BWC - 1, 0), batch_dims=3
    )
    is_due_BWC = _at_length(place.reach_BWCL, length_BWC - 1)
    may_begin_BWC = words.may_begin(place.kind_BW[..., None], last_BWC)
    is_single_BWC = ops.equal(length_BWC, 1) & may_begin_BWC
    return last_BWC, is_due_BWC | is_single_BWC


def _progress(place: _TermState) -> Tensor:
    """Returns int32 [B, W]: how many tokens of terms are there."""
    found_BWC = place.needed_BWC - _missing(place)
    _, done_BWC = _next_ids(place)
    tokens_BW = ops.sum(found_BWC * _lengths(place), axis=-1)
    return tokens_BW + ops.max(done_BWC, axis=-1)
