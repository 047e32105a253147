"""Terms in place of the words that a translation has for them.

    source         The dog is old.       the term is "dog", "Köter"
    translation    Der Hund ist alt.     "Hund" attends to "dog" the most
    with it        Der Köter ist alt.

To a model that knows nothing of a term, no place is likelier than another, and
once it has read the term, it may lose its way. Its attention shows the place,
and the rest is what it wrote around its own word.

Source: Hasler et al. 2018, "Neural Machine Translation Decoding with
Terminology Constraints", for places by attention.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from t2t_lite.alignment.word_alignment import MARKS, WordWeights, has_letter
from t2t_lite.constraints.terms import Term
from t2t_lite.text.vocabulary import Vocabulary

_POSSIBLE = 0.5  # The least weight of a place, relative to that on any word.
_SURE = 0.5  # The least weight of a place, relative to the best, free or not.
_ALIKE = 0.8  # The least weight, relative to the greatest, of what ties.
_APOSTROPHE = "['\N{RIGHT SINGLE QUOTATION MARK}]"
_TIED = re.compile(
    rf"(\w{{1,2}}{_APOSTROPHE}(?!s$))?.+?({_APOSTROPHE}s)?", re.DOTALL
)


class _Lacking(NamedTuple):
    """A term that a translation lacks."""

    text: str
    weight_W: np.ndarray  # float, how much each word attends to its source
    most: int  # how many words it may replace


class _Place(NamedTuple):
    """What a term replaces."""

    first: int  # its words, by their numbers
    end: int
    text: str  # of the term


class TermPlaces:
    """Finds terms in translations, and puts in those that they lack.

    A term is wanted as often as it has spans, not counting where it is part of
    another term.

    Args:
        vocabulary: Vocabulary of targets.
    """

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary
        self._texts: dict[tuple[int, ...], str] = {}  # Of terms, by their ids.

    def has_all(self, text: str, terms: Sequence[Term]) -> bool:
        """Returns whether a text has each term as often as it is wanted."""
        return all(
            len(self._own_spans(term, terms, text)) == len(term.spans)
            for term in terms
        )

    def filled(
        self, weights: WordWeights, terms: Sequence[Term], first: int = 0
    ) -> str | None:
        """Returns a translation with the terms that it lacks.

        Args:
            weights: WordWeights of a source and the translation.
            terms: Terms.
            first: int, how many of its first characters stay as they are.

        Returns:
            str; None if there is no place for one of the terms, or the text has
            one too often.
        """
        text = weights.pair.target
        if not weights.words:
            return None
        is_free_W = np.array([start >= first for start, _ in weights.words])
        for term in terms:
            is_free_W &= ~_is_within(weights.words, self._spans(term, text))
        least_W = _POSSIBLE * weights.greatest()
        places = []
        for lacking in self._lacking(weights, terms):
            place = _place(lacking, is_free_W, least_W=least_W, weights=weights)
            if place is None:
                return None
            is_free_W[place.first : place.end] = False
            places.append(place)
        for place in sorted(places, reverse=True):
            start, _ = weights.words[place.first]
            _, end = weights.words[place.end - 1]
            text = (
                text[:start]
                + _instead(text[start:end], place.text)
                + text[end:]
            )
        return text if self.has_all(text, terms) else None

    def _lacking(
        self, weights: WordWeights, terms: Sequence[Term]
    ) -> list[_Lacking]:
        """Returns what a translation lacks, surest places first."""
        found = []
        for term in terms:
            there = self._own_spans(term, terms, weights.pair.target)
            is_there_W = _is_within(weights.words, there)
            by_span = [self._wanted(term, span, weights) for span in term.spans]
            # The translation may already have the term for that span.
            by_span = [
                each
                for each in by_span
                if not is_there_W[each.weight_W.argmax()]
            ]
            by_span.sort(key=lambda each: -each.weight_W.max())
            found += by_span[: max(0, len(term.spans) - len(there))]
        return sorted(found, key=lambda each: -each.weight_W.max())

    def _wanted(
        self, term: Term, span: tuple[int, int], weights: WordWeights
    ) -> _Lacking:
        """Returns a term as what is lacking for a span of the source."""
        _, source, target = weights.pair
        start, end = span
        source, text = source[start:end], self._text(term)
        weight_W = weights.span_weights(start, end)
        if has_letter(source):  # A sign is not a word's place.
            is_word_W = [has_letter(target[a:b]) for a, b in weights.words]
            weight_W = np.where(is_word_W, weight_W, 0)
        return _Lacking(
            text, weight_W, most=max(len(source.split()), len(text.split()))
        )

    def _own_spans(
        self, term: Term, terms: Sequence[Term], text: str
    ) -> list[tuple[int, int]]:
        """Returns where a term is in a text, except as part of another."""
        others = [
            span
            for other in terms
            if other.ids != term.ids and self._spans(term, self._text(other))
            for span in self._spans(other, text)
        ]
        return [
            (start, end)
            for start, end in self._spans(term, text)
            if not any(a <= start and end <= b for a, b in others)
        ]

    def _spans(self, term: Term, text: str) -> list[tuple[int, int]]:
        """Returns where a term begins and ends in a text, as its own words."""
        pattern = (
            rf"(?<![\w{MARKS}]){re.escape(self._text(term))}(?![\w{MARKS}])"
        )
        return [match.span() for match in re.finditer(pattern, text)]

    def _text(self, term: Term) -> str:
        if term.ids not in self._texts:
            (text,) = self._vocabulary.decode([term.ids])
            self._texts[term.ids] = text
        return self._texts[term.ids]


def _place(
    lacking: _Lacking,
    is_free_W: np.ndarray,
    least_W: np.ndarray,
    weights: WordWeights,
) -> _Place | None:
    """Returns the place of a term among free words; None if there is none.

    It is the word that attends the most to what the term is for, and to no
    other word much more, with adjacent ones that attend to that about as much.
    Of several such words, it is the longest: "gefragt", not "hat", for "asked".
    """
    weight_W = np.where(is_free_W, lacking.weight_W, 0)
    weight_W[weight_W < least_W] = 0
    most = weight_W.max()
    if most <= 0 or most < _SURE * lacking.weight_W.max():
        return None
    is_part_W = weight_W >= _ALIKE * most
    length_W = np.array([end - start for start, end in weights.words])
    first = int(np.where(is_part_W, length_W, 0).argmax())
    end = first + 1
    while end - first < lacking.most:
        if end < len(is_part_W) and is_part_W[end]:
            end += 1
        elif first > 0 and is_part_W[first - 1]:
            first -= 1
        else:
            break
    while _is_hyphen(weights, end) and weight_W[end + 1] > 0:
        end += 2
    while _is_hyphen(weights, first - 1) and weight_W[first - 2] > 0:
        first -= 2
    return _Place(first, end, lacking.text)


def _is_hyphen(weights: WordWeights, number: int) -> bool:
    """Returns whether one of the words is a hyphen within a word."""
    if not 0 < number < len(weights.words) - 1:
        return False
    (_, before), (start, end), (behind, _) = weights.words[
        number - 1 : number + 2
    ]
    is_within = before == start and end == behind
    return is_within and weights.pair.target[start:end] == "-"


def _instead(words: str, term: str) -> str:
    """Returns a term in place of words, with what is tied to those.

    >>> _instead("l'homme", "chat"), _instead("it's", "cat")
    ("l'chat", "cat's")
    """
    begin, end = _TIED.fullmatch(words).groups(default="")
    return begin + term + end


def _is_within(
    words: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Returns bool [W]: which words are part of some spans of a text."""
    return np.array(
        [any(start < b and a < end for a, b in spans) for start, end in words],
        bool,
    )
