"""Pieces of lines to their translations: plain, with terms, alternatives."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.alignment.term_places import TermPlaces
from t2t_lite.alignment.word_alignment import Pair, WordWeights
from t2t_lite.constraints.terms import Term
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.engine import Engine
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.piece_prefix import NO_PREFIX, PiecePrefix
from t2t_lite.text.vocabulary import Vocabulary


class Request(NamedTuple):
    """A piece, and what is asked of its translation."""

    ids: list[int]  # EOS at the end
    text: str
    beginning: PiecePrefix
    terms: Sequence[Term]


class _Drafted(NamedTuple):
    """A Request, and its best Translations as if it had no terms."""

    request: Request
    drafts: list[Translation]


class PieceTranslator:
    """Translates pieces of lines.

    Args:
        engine: Engine.
        vocabulary: Vocabulary of targets.
        nbest: int, how many translations each piece has.
        weigh: a function from Pairs to the WordWeights of each, called for
            terms.
    """

    def __init__(
        self,
        engine: Engine,
        vocabulary: Vocabulary,
        nbest: int,
        weigh: Callable[[Sequence[Pair]], list[WordWeights]],
    ):
        self._engine, self._vocabulary = engine, vocabulary
        self._nbest = nbest
        self._weigh = weigh
        self._term_places = TermPlaces(vocabulary)

    def best(self, requests: Sequence[Request]) -> list[list[Translation]]:
        """Returns the `nbest` best Translations of each piece.

        One that ends with its beginning is just that, whatever its terms are.
        Those that lack some get them in place of words, if the best one can,
        and keep their order; what a search finds comes after them.
        """
        if not requests:
            return []
        found = self._plain(requests)
        drafted = list(map(_Drafted, requests, found))
        return _divided(
            drafted,
            [self._is_done(each) for each in drafted],
            function=lambda some: [each.drafts for each in some],
            otherwise=self._with_terms,
        )

    def _is_done(self, drafted: _Drafted) -> bool:
        request, (best, *others) = drafted
        return request.beginning.is_complete or all(
            self._term_places.has_all(each.text, request.terms)
            for each in (best, *filter(_is_there, others))
        )

    def _with_terms(
        self, drafted: Sequence[_Drafted]
    ) -> list[list[Translation]]:
        found = self._filled(drafted)
        missing = [n for n, each in enumerate(found) if len(each) < self._nbest]
        if missing:
            rest = [drafted[n].request for n in missing]
            ids, beginnings, is_complete = _as_arguments(rest)
            searched = self._engine.translate_with_terms(
                ids,
                beginnings,
                is_complete,
                terms=[each.terms for each in rest],
            )
            translations = self._as_translations(searched, self._nbest)
            for n, others in zip(missing, translations, strict=True):
                found[n] = _different([*found[n], *others])
        return [_padded(each, self._nbest) for each in found]

    def _filled(self, drafted: Sequence[_Drafted]) -> list[list[Translation]]:
        """Returns drafts with their terms in place of words.

        Returns:
            for each of the pieces, the Translations that differ, in the order
            of the drafts; none if the best draft cannot have its terms.
        """
        drafts = [
            (each.request, draft) for each in drafted for draft in each.drafts
        ]
        found = [
            draft if self._term_places.has_all(draft.text, each.terms) else None
            for each, draft in drafts
        ]
        lacking = [
            n
            for n, (_, draft) in enumerate(drafts)
            if found[n] is None and _is_there(draft)
        ]
        texts = self._texts_with_terms([drafts[n] for n in lacking])
        possible = [
            (n, text)
            for n, text in zip(lacking, texts, strict=True)
            if text is not None
        ]
        if possible:
            ids = _ragged([drafts[n][0].ids for n, _ in possible])
            scores = self._engine.score_texts(
                ids, [text for _, text in possible]
            )
            for (n, text), score in zip(possible, scores, strict=True):
                found[n] = Translation(text, float(score))
        W = self._nbest
        by_piece = [found[n : n + W] for n in range(0, len(found), W)]
        return [
            _different(each) if _is_there(each[0]) else [] for each in by_piece
        ]

    def _texts_with_terms(
        self, drafts: Sequence[tuple[Request, Translation]]
    ) -> list[str | None]:
        """Returns the texts of translations with the terms that they lack."""
        weights = self._weigh(
            [Pair(each.ids, each.text, draft.text) for each, draft in drafts]
        )
        return [
            self._term_places.filled(
                draft_weights, each.terms, self._length(each.beginning.text)
            )
            for (each, _), draft_weights in zip(drafts, weights, strict=True)
        ]

    def _length(self, beginning: str) -> int:
        """Returns how long a beginning is in translations.

        The vocabulary may write it differently, such as in NFKC.
        """
        if not beginning:
            return 0
        encoded = self._vocabulary.encode([beginning], num_threads=1)
        (text,) = self._vocabulary.decode(encoded)
        return len(text)

    def alternatives(
        self, requests: Sequence[Request], is_open: Sequence[bool], count: int
    ) -> list[list[Translation]]:
        """Returns the best Translations with each word that may come next.

        Args:
            requests: Requests without terms.
            is_open: bool, which of them have alternatives; the others repeat
                their best Translation.
            count: int, how many each of them has.
        """

        def with_next_words(requests):
            ids, texts, _ = _as_arguments(requests)
            found = self._engine.find_alternatives(ids, texts, count)
            return self._as_translations(found, count)

        def repeated(requests):
            return [best[:1] * count for best in self._plain(requests)]

        return _divided(
            requests, is_open, function=with_next_words, otherwise=repeated
        )

    def _plain(self, requests: Sequence[Request]) -> list[list[Translation]]:
        """Returns the `nbest` best Translations, whatever their terms are."""
        ids, beginnings, is_complete = _as_arguments(requests)
        if all(each.beginning == NO_PREFIX for each in requests):
            found = self._engine.translate_ids(ids)
        else:
            found = self._engine.translate_prefixed(
                ids, beginnings, is_complete
            )
        by_piece = self._as_translations(found, self._nbest)
        for n, ends in enumerate(is_complete):
            if ends:  # There is no other.
                by_piece[n] = by_piece[n][:1] * self._nbest
        return by_piece

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
        _ragged([each.ids for each in requests]),
        [each.beginning.text for each in requests],
        [each.beginning.is_complete for each in requests],
    )


def _ragged(ids: Sequence[Sequence[int]]) -> tf.RaggedTensor:
    return tf.ragged.constant(ids, tf.int32)


def _is_there(translation: Translation | None) -> bool:
    return translation is not None and translation.score > -math.inf


def _different(
    translations: Sequence[Translation | None],
) -> list[Translation]:
    """Returns those that are there, the first of each text.

    >>> found = [Translation("a", -0.5), None, Translation("a", -1.0)]
    >>> _different(found)
    [Translation(text='a', score=-0.5)]
    """
    found = {}
    for each in filter(_is_there, translations):
        found.setdefault(each.text, each)
    return [*found.values()]


def _padded(
    translations: Sequence[Translation], count: int
) -> list[Translation]:
    """Returns `count` Translations, the last ones blank if there are fewer."""
    blank = [Translation("", -math.inf)] * count
    return [*translations, *blank][:count]


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
