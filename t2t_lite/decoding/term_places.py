"""Terms in the places of words that a translation has for them.

    source         The dog is old.       the term is "dog", "Köter"
    translation    Der Hund ist alt.     "Hund" attends to "dog" the most
    with it        Der Köter ist alt.

To a model that knows nothing of a term no place is likelier than another, and
once it has read the term it may lose its way. What it attends to tells the
place, and the rest is what it has written beside its own word.

Source: Hasler et al. 2018, "Neural Machine Translation Decoding with
Terminology Constraints", for places by attention.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from t2t_lite.decoding.alignment import WordWeights
from t2t_lite.decoding.terms import Term
from t2t_lite.text.vocabulary import Vocabulary

_POSSIBLE = 0.5  # The least weight of a place, in that of the best one.
_BESIDE = 0.8  # The least weight of a word that is replaced with its neighbor.


class _Lacking(NamedTuple):
    """A term that a translation lacks."""

    text: str
    weight_W: np.ndarray  # float, how much each word attends to its source


class _Place(NamedTuple):
    """What a term is put in the place of."""

    first: int  # its words, by their numbers
    end: int
    text: str  # of the term


class TermPlaces:
    """Finds terms in translations, and puts in those that they lack.

    Args:
        vocabulary: Vocabulary of targets.
    """

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary

    def has_all(self, text: str, terms: Sequence[Term]) -> bool:
        """Returns whether a text has each term as often as it is asked for."""
        return all(
            len(_spans(self._text(term), text)) == term.count for term in terms
        )

    def filled(
        self,
        text: str,
        terms: Sequence[Term],
        weights: WordWeights,
        first: int = 0,
    ) -> str | None:
        """Returns a translation with the terms that it lacks.

        Args:
            text: str.
            terms: Terms.
            weights: WordWeights of the text.
            first: int, how many characters of it stay as they are.

        Returns:
            str; None if there is no place for a term.
        """
        if not weights.words:
            return None
        is_free_W = np.array([start >= first for start, _ in weights.words])
        places = []
        for lacking in self._lacking(text, terms, weights):
            place = _place(lacking, is_free_W)
            if place is None:
                return None
            is_free_W[place.first : place.end] = False
            places.append(place)
        for place in sorted(places, reverse=True):
            start, _ = weights.words[place.first]
            _, end = weights.words[place.end - 1]
            text = text[:start] + place.text + text[end:]
        return text if self.has_all(text, terms) else None

    def _lacking(
        self, text: str, terms: Sequence[Term], weights: WordWeights
    ) -> list[_Lacking]:
        """Returns what a translation lacks, surest places first."""
        found = []
        for term in terms:
            term_text = self._text(term)
            there = _spans(term_text, text)
            is_there_W = np.array(
                [
                    any(start < b and a < end for a, b in there)
                    for start, end in weights.words
                ]
            )
            by_span = [weights.of_source(*span) for span in term.spans]
            # Where the source has it, the translation may have it already.
            by_span = [w for w in by_span if not is_there_W[w.argmax()]]
            by_span.sort(key=np.max, reverse=True)
            count = max(0, term.count - len(there))
            found += [_Lacking(term_text, w) for w in by_span[:count]]
        return sorted(found, key=lambda each: -each.weight_W.max())

    def _text(self, term: Term) -> str:
        (text,) = self._vocabulary.decode([list(term.ids)])
        return text


def _place(lacking: _Lacking, is_free_W: np.ndarray) -> _Place | None:
    """Returns the place of a term among free words; None if there is none.

    It is the word that attends the most to what the term is for, with those
    beside it that attend to that about as much.
    """
    weight_W = np.where(is_free_W, lacking.weight_W, 0)
    best = int(weight_W.argmax())
    least = _POSSIBLE * lacking.weight_W.max()
    if weight_W[best] < least or not weight_W[best]:
        return None
    is_part_W = weight_W >= _BESIDE * weight_W[best]
    first, end = best, best + 1
    while first > 0 and is_part_W[first - 1]:
        first -= 1
    while end < len(is_part_W) and is_part_W[end]:
        end += 1
    return _Place(first, end, lacking.text)


def _spans(term: str, text: str) -> list[tuple[int, int]]:
    """Returns where a term begins and ends in a text, as words of its own.

    >>> _spans("Hund", "Hunde, Hund")
    [(7, 11)]
    """
    pattern = rf"(?<!\w){re.escape(term)}(?!\w)"
    return [match.span() for match in re.finditer(pattern, text)]
