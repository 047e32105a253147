"""What SearchOptions and prefixes ask of a translation, as one constraint."""

import functools
from collections.abc import Sequence

from t2t_lite.constraints import suppression, token_constraints
from t2t_lite.constraints.constrained_step import Constraint
from t2t_lite.constraints.prefix import PrefixTokens
from t2t_lite.constraints.token_constraints import MakeConstraint, SearchBatch
from t2t_lite.constraints.words import Words
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.errors import InputError
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS


class Steering:
    """What steers all searches with some options.

    Args:
        options: SearchOptions.
        vocabulary: Vocabulary of targets.

    Raises:
        InputError: the vocabulary cannot do what an option says.
    """

    def __init__(self, options: SearchOptions, vocabulary: Vocabulary):
        self._vocabulary = vocabulary
        self._makers: list[MakeConstraint] = []
        if least := options.min_length:
            self._makers.append(
                lambda b: token_constraints.min_length(b, least)
            )
        if n := options.no_repeat_ngram_size:
            self._makers.append(
                lambda b: token_constraints.no_repeated_ngrams(b, n)
            )
        if words := options.suppress:
            automaton = suppression.WordAutomaton(words, vocabulary.token_bytes)
            self._makers.append(automaton.constraint)
        if options.suppress_pieces:
            ids = piece_ids(options.suppress_pieces, vocabulary)
            self._makers.append(lambda b: suppression.without_pieces(ids, b))

    @property
    def constraint(self) -> MakeConstraint | None:
        """The function from a batch to its Constraint; None for none."""
        return self._all if self._makers else None

    @functools.cached_property
    def prefix_tokens(self) -> PrefixTokens:
        """The PrefixTokens of the vocabulary."""
        return PrefixTokens(self._vocabulary.token_bytes)

    @functools.cached_property
    def words(self) -> Words:
        """The Words of the vocabulary."""
        return Words(self._vocabulary.token_bytes)

    def after_prefixes(self, *others: MakeConstraint) -> MakeConstraint:
        """Returns the function for batches that have prefixes.

        Neither the options nor `others` restrict the text of the prefixes.

        Args:
            *others: what else is asked of the rest.
        """
        makers = [*self._makers, *others]
        return lambda batch: self.prefix_tokens.constraint(
            batch,
            then=token_constraints.all_of([make(batch) for make in makers])
            if makers
            else None,
        )

    def through_prefixes(self) -> MakeConstraint:
        """Returns the function for batches that have prefixes.

        The options restrict the text of the prefixes, too.
        """
        makers = [self.prefix_tokens.constraint, *self._makers]
        return lambda batch: token_constraints.all_of(
            [make(batch) for make in makers]
        )

    def _all(self, batch: SearchBatch) -> Constraint:
        return token_constraints.all_of([make(batch) for make in self._makers])


def piece_ids(pieces: Sequence[str], vocabulary: Vocabulary) -> list[int]:
    """Returns the ids of pieces.

    Raises:
        InputError: the vocabulary has no such piece.
    """
    names = vocabulary.tokens(range(vocabulary.size))
    ids = {name: i for i, name in enumerate(names) if i > EOS}
    for piece in pieces:
        if piece not in ids:
            raise InputError(
                f"the vocabulary has no piece {piece!r} to suppress (one that "
                "begins a word begins with U+2581)"
            )
    return [ids[piece] for piece in pieces]
