r"""Where words begin and end, whatever tokens they are made of.

A token has the kind of its first character, and that of its last:

    token       " Hund"   "e"    "."     ") "     " "
    first       space     word   other   other    space
    last        word      word   other   space    space

It begins something new if its first kind differs from the last kind of the
token before it, unless that is a space: what follows a space belongs to it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from keras import ops

from t2t_lite.constraints.constrained_step import Constraint
from t2t_lite.constraints.token_constraints import SearchBatch
from t2t_lite.model.rows import take
from t2t_lite.tensor import Tensor
from t2t_lite.token_ids import EOS

_SPACE, _WORD, _OTHER = range(3)


class _WordState(NamedTuple):
    """Where hypotheses are."""

    num_tokens_BW: Tensor  # int32, -1 before the first
    kind_BW: Tensor  # int32, the last kind of the newest token


class Words:
    """Tells the tokens of a vocabulary that continue a word from others.

    Args:
        token_bytes: those of the Vocabulary of targets.
    """

    def __init__(self, token_bytes: Sequence[bytes]):
        texts = [text.decode("utf-8", "replace") for text in token_bytes]
        self._first_V, self._last_V = (
            np.array([_kind(text[which]) for text in texts], np.int32)
            for which in (slice(0, 1), slice(-1, None))
        )

    def stop_before_next_word(self, batch: SearchBatch) -> Constraint:
        """Returns the Constraint that ends before what begins a new word.

        Args:
            batch: SearchBatch.
        """
        return Constraint(
            state=_no_tokens(batch),
            advance=self._advance,
            allowed=lambda *_: True,
            ends=lambda place, _: self.begins_new(place.kind_BW),
        )

    def new_word_or_end(self, batch: SearchBatch) -> Constraint:
        """Returns the Constraint to a new word, or the end, after a prefix.

        Args:
            batch: SearchBatch with prefixes_BK3, which must be those of
                `PrefixTokens.forced`.
        """
        ids_BK = batch.prefixes_BK3[..., 0]
        is_token_BK = ops.cast(ops.not_equal(ids_BK, 0), "int32")

        def allowed(place, num_tokens_B):
            is_later_BW = place.num_tokens_BW > num_tokens_B[:, None]
            ids_V = ops.arange(batch.num_target_ids, dtype="int32")
            begins_new_BWV = self.begins_new(place.kind_BW)
            may_follow_BWV = begins_new_BWV | ops.equal(ids_V, EOS)
            return is_later_BW[..., None] | may_follow_BWV

        return Constraint(
            state=_no_tokens(batch),
            advance=self._advance,
            allowed=allowed,
            constants=ops.sum(is_token_BK, axis=1),
        )

    def _advance(self, place: _WordState, ids_BW: Tensor) -> _WordState:
        return _WordState(
            place.num_tokens_BW + 1,
            self.kind_after(ids_BW, is_first_BW=place.num_tokens_BW < 0),
        )

    def kind_after(self, ids_BW: Tensor, is_first_BW: Tensor) -> Tensor:
        """Returns int32 [B, W]: the kind of character that a text ends with.

        Args:
            ids_BW: int32, the newest token of each text.
            is_first_BW: bool, whether that is not a token of the text, but what
                a search is given first.
        """
        kind_BW = take(self._last_V, ids_BW)
        return ops.where(is_first_BW, _SPACE, kind_BW)

    def begins_new(self, kind_BW: Tensor) -> Tensor:
        """Returns bool [B, W, V]: which tokens begin something new.

        Args:
            kind_BW: int32, that of `kind_after`.
        """
        kind_BW1 = kind_BW[..., None]
        first_V = ops.convert_to_tensor(self._first_V)
        return ops.not_equal(first_V, kind_BW1) & (kind_BW1 != _SPACE)

    def may_begin(self, kind_BW: Tensor, ids_BW: Tensor) -> Tensor:
        """Returns bool [B, W]: whether a word may begin with a token.

        Args:
            kind_BW: int32, that of `kind_after` before the token.
            ids_BW: int32.
        """
        first_BW = take(self._first_V, ids_BW)
        return ops.not_equal(first_BW, kind_BW) | ops.equal(kind_BW, _SPACE)


def _kind(character: str) -> int:
    """Returns the kind of a character; _WORD for none, or part of one."""
    if character.isspace():
        return _SPACE
    is_word = character in ("", "_", "\N{REPLACEMENT CHARACTER}")
    return _WORD if is_word or character.isalnum() else _OTHER


def _no_tokens(batch: SearchBatch) -> _WordState:
    B = ops.shape(batch.source_ids_BS)[0]
    none_BW = ops.zeros((B, batch.beam_width), "int32")
    return _WordState(none_BW - 1, none_BW)
