"""Other ways to continue a prefix: the likeliest next words.

One search finds the words. After the prefix, it ends wherever something new
begins, so that a word has one probability, whatever follows it. A second search
finds the best translation that begins with each of them:

    prefix "auf einer "    words     "Leiter"   0.6    "Treppe"   0.2
                           then      " steht."         ", im Freien."
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
from keras import ops

from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.beam_widths import SearchesByWidth
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.decoding.steering import Steering
from t2t_lite.model.rows import gather
from t2t_lite.tensor import Tensor, is_possible
from t2t_lite.token_ids import EOS, PAD


class _Paths(NamedTuple):
    """What translations begin with: prefixes, each with a word after it."""

    ids_BCK: Tensor  # int32, EOS where the translation ends
    is_valid_BC: Tensor  # bool; the others are filler


class AlternativesSearch:
    """Finds the likeliest next words after prefixes, and their best endings.

    Args:
        make_translator: `ids_translator` with its model; called with
            SearchOptions and keyword arguments.
        options: SearchOptions of a search, not of sampling.
        steering: Steering by these options.
    """

    def __init__(
        self,
        make_translator: Callable,
        options: SearchOptions,
        steering: Steering,
    ):
        self._prefix_tokens = steering.prefix_tokens
        begins_with_word = steering.after_prefixes(
            steering.words.stop_before_next_word
        )

        def make_finder(width: int) -> Callable:
            return make_translator(
                options._replace(
                    beam_width=width, nbest=width, length_penalty=0.0
                ),
                constraint=begins_with_word,
                given=("prefixes_BK3",),
            )

        self._word_finders = SearchesByWidth(make_finder, options.beam_width)
        self._find_ends = make_translator(
            options._replace(nbest=1),
            constraint=steering.after_prefixes(steering.words.new_word_or_end),
            given=("prefixes_BK3",),
        )

    def __call__(
        self, ids: tf.RaggedTensor, prefix_ids_BK: tf.Tensor, count: int
    ) -> Hypotheses:
        """Returns the best translation with each of C words after a prefix.

        Args:
            ids: int32 RaggedTensor [B, (length)], each row ending in EOS.
            prefix_ids_BK: int32, padded with 0, without EOS.
            count: C, how many words, at least 1.

        Returns:
            Hypotheses ids_BCT and scores_BC, those of the likeliest words
            first. If there are fewer than C, as when the search finds no ending
            for a word, the last ids are 0 and their scores -inf. Where the
            translation may end with the prefix, its end is an alternative too.
            An empty sequence has one alternative, with no ids and a score of 0.
        """
        # Some of the words differ only in their tokens.
        width = self._word_finders.width(2 * count)
        find_words = self._word_finders[width]
        found = find_words(ids, self._prefix_tokens.places(prefix_ids_BK))
        is_empty_B = ops.equal(ops.cast(ids.row_lengths(), "int32"), 0)
        paths = self._paths(
            found, prefix_ids_BK, is_empty_B=is_empty_B, count=count
        )
        B, C, K = ops.shape(paths.ids_BCK)
        places = self._prefix_tokens.forced(
            ops.reshape(paths.ids_BCK, (B * C, K))
        )
        row_N = ops.repeat(ops.arange(B, dtype="int32"), C)
        is_valid_N = ops.reshape(paths.is_valid_BC, (-1,))
        # A row without ids takes no part in the search.
        rows = tf.ragged.boolean_mask(
            tf.gather(ids, row_N),
            tf.gather(tf.ones_like(ids, tf.bool), row_N)
            & tf.cast(is_valid_N, tf.bool)[:, None],
        )
        ends = self._find_ends(rows, places)
        ids_NT, scores_N = ends.ids_BWT[:, 0], ends.scores_BW[:, 0]
        ids_NT = ops.where(is_valid_N[:, None], ids_NT, PAD)
        scores_N = ops.where(is_valid_N, scores_N, -float("inf"))
        ids_BCT = ops.reshape(ids_NT, (B, C, ops.shape(ids_NT)[1]))
        scores_BC = ops.reshape(scores_N, (B, C))
        order_BC = _first(is_possible(scores_BC))
        return Hypotheses(
            gather(ids_BCT, order_BC), gather(scores_BC, order_BC)
        )

    def _paths(
        self,
        found: Hypotheses,
        prefix_ids_BK: Tensor,
        is_empty_B: Tensor,
        count: int,
    ) -> _Paths:
        """Returns the C best of W hypotheses that differ in their text.

        Args:
            found: Hypotheses, ids_BWT.
            prefix_ids_BK: int32.
            is_empty_B: bool, whether there is nothing to translate.
            count: C.
        """
        is_token_BWT = ops.not_equal(found.ids_BWT, PAD)
        lengths_BW = ops.sum(ops.cast(is_token_BWT, "int32"), axis=2)
        K = ops.max(lengths_BW, initial=0)
        with_end_BWK = found.ids_BWT[:, :, :K]
        is_end_BWK = ops.equal(with_end_BWK, EOS)
        ids_BWK = ops.where(is_end_BWK, PAD, with_end_BWK)
        B, W, _ = ops.shape(ids_BWK)
        codes_NQ = self._prefix_tokens.codes(ops.reshape(ids_BWK, (B * W, K)))
        codes_BWQ = ops.reshape(codes_NQ, (B, W, ops.shape(codes_NQ)[1]))
        is_same_BWW = ops.all(
            ops.equal(codes_BWQ[:, :, None], codes_BWQ[:, None]), axis=-1
        )
        place_W = ops.arange(W, dtype="int32")
        is_before_WW = place_W < place_W[:, None]
        is_again_BW = ops.any(is_same_BWW & is_before_WW, axis=-1)
        is_valid_BW = ops.any(is_end_BWK, axis=-1) & ~is_again_BW
        is_valid_BW = is_valid_BW | (is_empty_B[:, None] & (place_W == 0))
        # Right after the prefix, an end is that of the translation.
        prefix_codes_BQ = self._prefix_tokens.codes(prefix_ids_BK)
        is_over_BW = _count(codes_BWQ) <= _count(prefix_codes_BQ)[:, None]
        ids_BWK = ops.where(is_over_BW[..., None], with_end_BWK, ids_BWK)
        kept_BC = _first(is_valid_BW)[:, :count]
        return _Paths(gather(ids_BWK, kept_BC), gather(is_valid_BW, kept_BC))


def _first(is_valid_BN: Tensor) -> Tensor:
    """Returns int32 [B, N]: the places of those that are there, then others."""
    N = ops.shape(is_valid_BN)[1]
    place_N = ops.arange(N, dtype="int32")
    order_BN = ops.argsort(ops.where(is_valid_BN, place_N, N + place_N), axis=1)
    return ops.cast(order_BN, "int32")


def _count(codes: Tensor) -> Tensor:
    """Returns int32: how many codes there are in the last axis."""
    return ops.sum(ops.cast(ops.not_equal(codes, 0), "int32"), axis=-1)
