"""Finds translations that contain given terms."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from t2t_lite.constraints import terms
from t2t_lite.constraints.terms import Term
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.beam_widths import SearchesByWidth
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.decoding.steering import Steering

_WIDEST = 32  # The comparisons at each step grow with its square.


class TermSearch:
    """Finds translations that contain given terms.

    Args:
        make_translator: that of AlternativesSearch.
        options: SearchOptions.
        steering: Steering by these options.
    """

    def __init__(
        self,
        make_translator: Callable,
        options: SearchOptions,
        steering: Steering,
    ):
        self._options, self._prefix_tokens = options, steering.prefix_tokens
        words = steering.words
        has_terms = steering.after_prefixes(
            lambda batch: terms.constraint(words, batch)
        )

        def make(width: int) -> Callable:
            return make_translator(
                options._replace(beam_width=width),
                constraint=has_terms,
                given=("prefixes_BK3", "terms_BCL"),
            )

        self._searches = SearchesByWidth(make, options.beam_width, _WIDEST)

    def __call__(
        self,
        ids: tf.RaggedTensor,
        prefix_ids_NK: tf.Tensor,
        asked: Sequence[Sequence[Term]],
    ) -> Hypotheses:
        """Returns the `nbest` best translations that have their Terms.

        Args:
            ids: int32 RaggedTensor [N, (length)], each row ending in EOS.
            prefix_ids_NK: int32, what they begin with, padded with 0.
            asked: the Terms of each sequence.

        Returns:
            Hypotheses, NumPy arrays.
        """
        places_NK3 = self._prefix_tokens.places(prefix_ids_NK)
        widths_N = np.array([self._width(each) for each in asked])
        parts = []
        for width in sorted({*widths_N.tolist()}):
            (rows_R,) = np.nonzero(widths_N == width)
            search = self._searches[width]
            found = search(
                tf.gather(ids, rows_R),
                tf.gather(places_NK3, rows_R),
                tf.constant(terms.pack_terms([asked[n] for n in rows_R])),
            )
            parts.append((rows_R, found))
        return self._joined(parts, len(asked))

    def _width(self, asked: Sequence[Term]) -> int:
        """Returns the beam's width; if widened, a power of 2, for few graphs.

        There is a place for hypotheses with each number of term tokens, and one
        more for those with none.
        """
        num_tokens = sum(term.count * len(term.ids) for term in asked)
        return self._searches.width(2 ** math.ceil(math.log2(num_tokens + 2)))

    def _joined(
        self, parts: Sequence[tuple[np.ndarray, Hypotheses]], N: int
    ) -> Hypotheses:
        """Returns the Hypotheses of N sequences, from those of some rows."""
        W = self._options.nbest
        T = max(found.ids_BWT.shape[2] for _, found in parts)
        ids_NWT = np.zeros((N, W, T), np.int32)
        scores_NW = np.zeros((N, W), np.float32)
        for rows_R, found in parts:
            ids_RWT = np.asarray(found.ids_BWT)[:, :W]
            ids_NWT[rows_R, :, : ids_RWT.shape[2]] = ids_RWT
            scores_NW[rows_R] = np.asarray(found.scores_BW)[:, :W]
        return Hypotheses(ids_NWT, scores_NW)
