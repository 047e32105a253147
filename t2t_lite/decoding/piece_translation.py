"""Pieces of lines to their translations: plain, with terms, alternatives."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.beginnings import ANYTHING, Beginning
from t2t_lite.decoding.engine import Engine
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.terms import Term
from t2t_lite.text.vocabulary import Vocabulary


class Request(NamedTuple):
    """A piece, and what is asked of its translation."""

    ids: list[int]  # EOS at the end
    beginning: Beginning
    terms: Sequence[Term]


class PieceTranslator:
    """Translates pieces of lines.

    Args:
        engine: Engine.
        vocabulary: Vocabulary of targets.
        nbest: int, how many translations each piece has.
    """

    def __init__(self, engine: Engine, vocabulary: Vocabulary, nbest: int):
        self._engine, self._vocabulary = engine, vocabulary
        self._nbest = nbest

    def best(self, requests: Sequence[Request]) -> list[list[Translation]]:
        """Returns the `nbest` best Translations of each piece.

        One that ends with its beginning is that, whatever its terms are.
        """
        has_terms = [
            bool(each.terms) and not each.beginning.ends_there
            for each in requests
        ]
        return _divided(requests, has_terms, self._with_terms, self._plain)

    def alternatives(
        self, requests: Sequence[Request], is_open: Sequence[bool], count: int
    ) -> list[list[Translation]]:
        """Returns the best Translations with each word that may come next.

        Args:
            requests: Requests without terms.
            is_open: bool, which of them have alternatives; the others have
                their best Translation, again and again.
            count: int, how many each of them has.
        """

        def with_next_words(requests):
            ids, texts, _ = _as_arguments(requests)
            found = self._engine.find_alternatives(ids, texts, count)
            return self._as_translations(found, count)

        def repeated(requests):
            return [best[:1] * count for best in self._plain(requests)]

        return _divided(requests, is_open, with_next_words, repeated)

    def _plain(self, requests: Sequence[Request]) -> list[list[Translation]]:
        arguments = ids, _, ends_there = _as_arguments(requests)
        if all(each.beginning == ANYTHING for each in requests):
            found = self._engine.translate_ids(ids)
        else:
            found = self._engine.translate_prefixed(*arguments)
        by_piece = self._as_translations(found, self._nbest)
        for n, ends in enumerate(ends_there):
            if ends:  # There is no other.
                by_piece[n] = by_piece[n][:1] * self._nbest
        return by_piece

    def _with_terms(
        self, requests: Sequence[Request]
    ) -> list[list[Translation]]:
        terms = [each.terms for each in requests]
        found = self._engine.translate_with_terms(
            *_as_arguments(requests), terms
        )
        return self._as_translations(found, self._nbest)

    def _as_translations(
        self, found: Hypotheses, count: int
    ) -> list[list[Translation]]:
        """Returns the first Translations of each row of Hypotheses."""
        ids_NWT = np.asarray(found.ids_BWT)[:, :count]
        scores_NW = np.asarray(found.scores_BW)[:, :count]
        N, W, T = ids_NWT.shape
        texts = self._vocabulary.decode(ids_NWT.reshape(N * W, T))
        translations = list(map(Translation, texts, scores_NW.ravel().tolist()))
        return [translations[n * W : (n + 1) * W] for n in range(N)]


def _as_arguments(
    requests: Sequence[Request],
) -> tuple[tf.RaggedTensor, list[str], list[bool]]:
    """Returns what engines take: ids, beginnings, whether they end there."""
    return (
        tf.ragged.constant([each.ids for each in requests], tf.int32),
        [each.beginning.text for each in requests],
        [each.beginning.ends_there for each in requests],
    )


def _divided(
    items: Sequence[Any],
    is_chosen: Sequence[bool],
    function: Callable[[Sequence[Any]], Sequence[Any]],
    otherwise: Callable[[Sequence[Any]], Sequence[Any]],
) -> list[Any]:
    """Returns what one function gives for some items and another for the rest.

    >>> _divided(["a", "b", "c"], [False, True, False], lambda _: ["B"], list)
    ['a', 'B', 'c']
    """
    parts = {True: [], False: []}
    for place, (item, chosen) in enumerate(zip(items, is_chosen, strict=True)):
        parts[chosen].append((place, item))
    found = {}
    for chosen, call in ((True, function), (False, otherwise)):
        if parts[chosen]:
            places, part = zip(*parts[chosen], strict=True)
            found.update(zip(places, call(part), strict=True))
    return [found[place] for place in range(len(items))]
