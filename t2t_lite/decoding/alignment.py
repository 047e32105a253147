"""Which part of a source each word of its translation stands for.

It is what the decoder attends to most while it predicts the word's pieces, in
the mean over the heads of one layer.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.tags import UNSPACED, Word
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.text.vocabulary import Vocabulary

_MARKS = "".join(
    chr(n) for n in range(0x10000) if unicodedata.category(chr(n))[0] == "M"
)
# Accents, and an apostrophe between letters, are parts of a word; without
# spaces between words, a character is one.
_WORD = re.compile(
    rf"[{UNSPACED}][{_MARKS}]*"
    rf"|\w(?:(?![{UNSPACED}])[\w{_MARKS}]|['’](?=\w))*"  # noqa: RUF001
    r"|[^\w\s]"
)
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
        self._vocabulary = vocabulary
        hparams = model.hparams
        # A translation may be longer in the vocabulary's own pieces.
        is_learned = hparams.positions == "learned"
        self._longest = hparams.learned_positions if is_learned else None
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
        encoded = [ids[: self._longest] for ids in encoded]
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
        if not len(starts_S):  # Of what the vocabulary leaves out.
            return []
        ends_T = np.append(starts_T[1:], len(pair.target))[: len(starts_T)]
        words = []
        for match in _WORD.finditer(pair.target):
            is_part_T = (starts_T < match.end()) & (ends_T > match.start())
            weights_S = weights_TS[: len(starts_T)][is_part_T].sum(axis=0)
            best = int(weights_S[: len(starts_S)].argmax())
            words.append(Word(*match.span(), int(starts_S[best])))
        return words


def _starts(vocabulary: Vocabulary, ids: list[int], text: str) -> np.ndarray:
    """Returns where each piece of a text begins in it, but for EOS.

    Where the vocabulary writes a text otherwise, as by NFKC, or does not know a
    character of it, it is about there.
    """
    names = [vocabulary.token_bytes[i] for i in ids[:-1]]
    lengths = np.array([len(name) for name in names], int)
    # A piece's space is no part of its word.
    spaces = np.array([len(n) > 1 and n[:1] == b" " for n in names], int)
    starts = np.cumsum(lengths) - lengths + spaces
    # The text has a space in front, which is its place -1.
    sizes = [1, *(len(character.encode()) for character in text)]
    characters = np.repeat(np.arange(len(sizes)) - 1, sizes)
    if lengths.sum() != len(characters):
        starts = starts * len(characters) // max(1, lengths.sum())
    return characters[starts.clip(0, len(characters) - 1)].clip(0)


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
