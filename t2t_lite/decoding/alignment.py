"""Which part of a source each word of its translation stands for.

It is what the decoder attends to most while it predicts the word's pieces, in
the mean over the heads of one layer.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.tags import Word
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.text.vocabulary import Vocabulary

_WORD = re.compile(r"\w+|[^\w\s]")
_TOKENS_AT_ONCE = 4096


class Pair(NamedTuple):
    """A source, as it is translated, and a translation of it."""

    source_ids: list[int]  # EOS at the end
    source: str
    target: str


class Aligner:
    """Finds what the words of translations stand for.

    Args:
        model: Transformer.
        vocabulary: Vocabulary.
    """

    def __init__(self, model: Transformer, vocabulary: Vocabulary):
        self._model, self._vocabulary = model, vocabulary
        layer = model.decoder.layers[-1].memory_attention

        def attention(source_ids_BS, target_ids_BT):
            with record_weights() as weights:
                model((source_ids_BS, shift_right(target_ids_BT)))
            return tf.reduce_mean(weights[layer.path], axis=1)

        ids = tf.TensorSpec([None, None], tf.int32)
        self._attention = tf.function(attention, [ids, ids], autograph=False)

    def __call__(self, pairs: Sequence[Pair]) -> list[list[Word]]:
        """Returns the Words of each pair's target.

        Args:
            pairs: Pairs.
        """
        target = self._vocabulary.target
        encoded = target.encode([p.target for p in pairs], num_threads=1)
        found: list[list[Word]] = [[] for _ in pairs]
        for rows in _batches(pairs, encoded):
            sources, targets = (
                tf.ragged.constant([ids[n] for n in rows], tf.int32).to_tensor()
                for ids in ([p.source_ids for p in pairs], encoded)
            )
            weights_BTS = self._attention(sources, targets).numpy()
            for n, weights_TS in zip(rows, weights_BTS, strict=True):
                found[n] = self._words(pairs[n], encoded[n], weights_TS)
        return found

    def _words(
        self, pair: Pair, target_ids: list[int], weights_TS: np.ndarray
    ) -> list[Word]:
        starts_S = _starts(self._vocabulary, pair.source_ids, pair.source)
        starts_T = _starts(self._vocabulary.target, target_ids, pair.target)
        ends_T = np.append(starts_T[1:], len(pair.target))
        words = []
        for match in _WORD.finditer(pair.target):
            is_part_T = (starts_T < match.end()) & (ends_T > match.start())
            weights_S = weights_TS[: len(starts_T)][is_part_T].sum(axis=0)
            best = int(weights_S[: len(starts_S)].argmax())
            words.append(Word(*match.span(), int(starts_S[best])))
        return words


def _starts(vocabulary: Vocabulary, ids: list[int], text: str) -> np.ndarray:
    """Returns where each piece of a text begins in it, but for EOS.

    Where the vocabulary writes a text otherwise, as by NFKC, it is about there.
    """
    if len(ids) < 2:
        return np.zeros(len(ids), int)
    names = [vocabulary.token_bytes[i].decode("utf-8", "ignore") for i in ids]
    # Of what has no text of its own, such as a byte, a character is the best
    # guess.
    lengths = np.array([max(1, len(name)) for name in names[:-1]])
    ends = np.cumsum(lengths) - 1  # The text has a space in front.
    # A piece's space is no part of its word.
    spaces = np.array([len(n) > 1 and n[0] == " " for n in names[:-1]], int)
    ratio = len(text) / max(1, ends[-1])
    return ((ends - lengths + spaces).clip(0) * ratio).round().astype(int)


def _batches(
    pairs: Sequence[Pair], encoded: Sequence[list[int]]
) -> Iterator[list[int]]:
    """Yields the indices of pairs of similar length, as many as fit at once."""
    lengths = [
        max(len(pair.source_ids), len(ids))
        for pair, ids in zip(pairs, encoded, strict=True)
    ]
    order = sorted(range(len(pairs)), key=lambda n: lengths[n])
    while order:
        size = max(1, _TOKENS_AT_ONCE // lengths[order[-1]])
        yield order[-size:]
        del order[-size:]
