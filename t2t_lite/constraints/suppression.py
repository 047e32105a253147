r"""Translations without some words, however these are segmented.

An automaton finds the words, reading one character after the other. A word
counts where no letter, digit or underscore is next to it, as between two \b of
a regular expression:

    word "cat"   " a cat"     might end here, and then be the word
                 " a cats"    is another word
                 " a cat."    is the word: a token that brings this is left out
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from keras import ops

from t2t_lite.constraints.constrained_step import Constraint
from t2t_lite.constraints.token_constraints import SearchBatch
from t2t_lite.errors import InputError, require
from t2t_lite.model.rows import take
from t2t_lite.tensor import Tensor
from t2t_lite.token_ids import EOS

_IN_WORD, _BETWEEN = 0, 1  # Classes of characters that are in no word.
_FIRST_CLASS = 2
_MOST_PLACES = 20_000_000  # Of the table: states times ids.

# What has been read of words, and whether one may begin.
_State = tuple[frozenset[str], bool]


class _SuppressionState(NamedTuple):
    """Where hypotheses are."""

    state_BW: Tensor  # int32, of the automaton
    num_tokens_BW: Tensor  # int32, -1 before the first


class WordAutomaton:
    """Tells which tokens would complete one of some words.

    Args:
        words: str, each without space at its ends.
        token_bytes: those of the Vocabulary of targets.

    Raises:
        InputError: a word is blank, or has a character that the vocabulary has
            no piece for; or there are too many.
    """

    def __init__(self, words: Sequence[str], token_bytes: Sequence[bytes]):
        self._words = frozenset(words)
        texts = [_decoded(each) for each in token_bytes]
        known = set("".join(texts))
        for word in words:
            rule = (
                "a word to suppress must not be empty, or begin or end with a "
                "space"
            )
            require(rule, word and word == word.strip(), word=word)
            if missing := sorted(set(word) - known):
                raise InputError(
                    f"the vocabulary has no piece for {missing[0]!r}: "
                    f"{word!r} cannot be suppressed"
                )
        # What may have been read of a word, up to all of it.
        self._begun = {
            word[:n] for word in words for n in range(1, len(word) + 1)
        }
        self._characters = sorted(set("".join(words)))
        self._classes = {
            character: n
            for n, character in enumerate(self._characters, _FIRST_CLASS)
        }
        self._is_word = [True, False, *map(_is_word, self._characters)]
        most_states = min(_MOST_PLACES // len(texts), 2**15 - 1)
        steps_SC, completes_SC = self._character_tables(most_states)
        classes = [[*map(self._class_of, text)] for text in texts]
        classes[EOS] = [_BETWEEN]  # A word ends there, too.
        # The state after each token, from each state: int16 [S, V].
        self._after_SV = np.empty((len(steps_SC), len(texts)), np.int16)
        # Whether a token completes a word.
        self._completes_SV = np.zeros(self._after_SV.shape, bool)
        for i, token_classes in enumerate(classes):
            state_S = np.arange(len(steps_SC), dtype=np.int16)
            for each in token_classes:
                self._completes_SV[:, i] |= completes_SC[state_S, each]
                state_S = steps_SC[state_S, each]
            self._after_SV[:, i] = state_S

    def constraint(self, batch: SearchBatch) -> Constraint:
        """Returns the Constraint to translations without the words.

        Args:
            batch: SearchBatch.
        """
        B, W = ops.shape(batch.source_ids_BS)[0], batch.beam_width
        after_SV = ops.convert_to_tensor(self._after_SV)
        completes_SV = ops.convert_to_tensor(self._completes_SV)
        # What would be a word if the text stopped there may not be last.
        is_end_S = ops.convert_to_tensor(self._completes_SV[:, EOS])
        V = self._after_SV.shape[1]

        def advance(place, ids_BW):
            # What is given first is not a token of the translation.
            is_first_BW = place.num_tokens_BW < 0
            after_BW = take(
                ops.reshape(after_SV, (-1,)), place.state_BW * V + ids_BW
            )
            return _SuppressionState(
                ops.where(is_first_BW, 0, ops.cast(after_BW, "int32")),
                place.num_tokens_BW + 1,
            )

        def allowed(place, max_lengths_B):
            state_BW, num_tokens_BW = place
            after_BWV = take(after_SV, state_BW)
            completes_BWV = take(completes_SV, state_BW)
            is_last_BW = num_tokens_BW >= max_lengths_B[:, None] - 1
            ends_BWV = take(is_end_S, ops.cast(after_BWV, "int32"))
            return ~(completes_BWV | (is_last_BW[..., None] & ends_BWV))

        state_BW = ops.zeros((B, W), "int32")
        return Constraint(
            state=_SuppressionState(state_BW, state_BW - 1),
            advance=advance,
            allowed=allowed,
            constants=batch.max_lengths_B,
        )

    def _character_tables(
        self, most_states: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns int16 [S, C] and bool [S, C].

        They are the state after a character of each class, and whether it
        completes a word.
        """
        first: _State = (frozenset(), True)
        numbers, waiting = {first: 0}, [first]
        steps, completes = [], []
        for state in waiting:  # It grows meanwhile.
            found = [self._after(state, c) for c in range(len(self._is_word))]
            for after, _ in found:
                if after not in numbers:
                    numbers[after] = len(numbers)
                    waiting.append(after)
            if len(numbers) > most_states:
                raise InputError(
                    f"cannot suppress {len(self._words)} words with a "
                    "vocabulary of this size: give fewer"
                )
            steps.append([numbers[after] for after, _ in found])
            completes.append([is_complete for _, is_complete in found])
        return np.array(steps, np.int16), np.array(completes)

    def _after(self, state: _State, class_: int) -> tuple[_State, bool]:
        """Returns the state after a character, and whether it completes a word.

        Args:
            state: _State.
            class_: that of the character.
        """
        begun, may_begin = state
        is_word = self._is_word[class_]
        after = set()
        if class_ >= _FIRST_CLASS:
            character = self._characters[class_ - _FIRST_CLASS]
            after.update(text + character for text in begun)
            if may_begin or not is_word:
                after.add(character)
            after &= self._begun
        is_complete = not is_word and not self._words.isdisjoint(begun | after)
        return (frozenset(after), not is_word), is_complete

    def _class_of(self, character: str) -> int:
        other = _IN_WORD if _is_word(character) else _BETWEEN
        return self._classes.get(character, other)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _decoded(text: bytes) -> str:
    """Returns a token's text; an underscore for part of a character."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return "_"


def without_pieces(ids: Iterable[int], batch: SearchBatch) -> Constraint:
    """Returns the Constraint to translations without some ids.

    Args:
        ids: int.
        batch: SearchBatch.
    """
    is_allowed_V = np.ones(batch.num_target_ids, bool)
    is_allowed_V[[*ids]] = False
    B, W = ops.shape(batch.source_ids_BS)[0], batch.beam_width

    def allowed(state_BW, _):
        is_any_BW1 = ops.ones_like(state_BW, "bool")[..., None]
        return is_any_BW1 & ops.convert_to_tensor(is_allowed_V)

    return Constraint(
        state=ops.zeros((B, W), "int32"),
        advance=lambda state_BW, _: state_BW,
        allowed=allowed,
    )
