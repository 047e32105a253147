"""Which part of a source each word of its translation stands for.

It is what the decoder attends to most while it predicts the word's pieces, or
while it reads them: with one of its heads, or on average over a layer's heads.

Source: Chen et al. 2020, "Accurate Word Alignment Induction from Neural Machine
Translation", for reading.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.alignment.tags import UNSPACED, Word
from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.text.pharaoh import Link
from t2t_lite.text.vocabulary import Vocabulary

MARKS = "".join(
    chr(n) for n in range(0x10000) if unicodedata.category(chr(n))[0] == "M"
)
# Accents, and an apostrophe between letters, are part of a word. In scripts
# without spaces between words, each character is a word.
_WORD = re.compile(
    rf"[{UNSPACED}][{MARKS}]*"
    rf"|\w(?:(?![{UNSPACED}])[\w{MARKS}]|['’](?=\w))*"  # noqa: RUF001
    r"|[^\w\s]"
)
SPACED = re.compile(r"\S+")  # What str.split gives.
_TOKENS_AT_ONCE = 4096
_LINKED = 0.5  # A linked word's least weight, relative to the greatest.


class Pair(NamedTuple):
    """A source, as it is translated, and a translation of it."""

    source_ids: list[int]  # EOS at the end
    source: str
    target: str


class WordWeights(NamedTuple):
    """How much the words of a target attend to the pieces of its source."""

    pair: Pair
    words: list[tuple[int, int]]  # where they begin and end in the target
    weights_WS: np.ndarray  # float, the mean over a word's pieces
    starts_S: np.ndarray  # int, where the pieces begin in the source
    ends_S: np.ndarray

    def span_weights(self, start: int, end: int) -> np.ndarray:
        """Returns float [W]: each word's weight on a span of the source."""
        is_part_S = (self.starts_S < end) & (self.ends_S > start)
        return self.weights_WS @ is_part_S

    def greatest(self) -> np.ndarray:
        """Returns float [W]: each word's greatest weight on a source word."""
        found = [
            self.span_weights(match.start(), match.end())
            for match in _WORD.finditer(self.pair.source)
            if has_letter(match[0])  # Not a sign.
        ]
        none_W = np.zeros(len(self.words))
        return np.max([none_W, *found], axis=0)


def has_letter(text: str) -> bool:
    """Returns whether a text has a letter or a digit, not only signs."""
    return re.search(r"\w", text) is not None


class Aligner:
    """Finds what the words of translations stand for.

    Args:
        model: Transformer.
        vocabulary: Vocabulary.
        heads: which heads to use; the mean over those of the last layer when
            not given.
    """

    def __init__(
        self,
        model: Transformer,
        vocabulary: Vocabulary,
        heads: Sequence[AlignmentHead] | None = None,
    ):
        self._vocabulary = vocabulary
        hparams = model.hparams
        # Encoded again, a translation may have more pieces than positions.
        is_learned = hparams.positions == "learned"
        self._longest = hparams.learned_positions if is_learned else None
        self.heads = heads or [AlignmentHead(hparams.decoder_layers - 1)]

        def attention(source_ids_BS, target_ids_BT):
            with record_weights() as recorded:
                model((source_ids_BS, shift_right(target_ids_BT)))
            return tf.stack(
                [
                    head.token_weights(model, recorded, target_ids_BT)
                    for head in self.heads
                ]
            )

        ids = tf.TensorSpec([None, None], tf.int32)
        self._attention = tf.function(attention, [ids, ids], autograph=False)

    def __call__(self, pairs: Sequence[Pair]) -> list[list[Word]]:
        """Returns the Words of each pair's target, by the first head.

        Args:
            pairs: Pairs.
        """
        return list(map(_stand_for, self.weights(pairs)))

    def weights(self, pairs: Sequence[Pair]) -> list[WordWeights]:
        """Returns the WordWeights of each pair, by the first head.

        Args:
            pairs: Pairs.
        """
        found = [None] * len(pairs)
        for n, target_ids, (weights_TS, *_) in self._attended(pairs):
            found[n] = self._word_weights(pairs[n], target_ids, weights_TS)
        return found

    def links(self, pairs: Sequence[Pair]) -> list[list[list[Link]]]:
        """Returns, for each head, the Links between each pair's words.

        A target word is linked to the source words that its pieces attend to
        most: all those with at least half of the greatest weight.

        Args:
            pairs: Pairs.
        """
        found = [[[] for _ in pairs] for _ in self.heads]
        for n, target_ids, weights_HTS in self._attended(pairs):
            pair, vocabulary = pairs[n], self._vocabulary
            is_part_WS, is_part_WT = (
                _parts(side, ids, text=text, words=_spaced(text))
                for side, ids, text in (
                    (vocabulary, pair.source_ids, pair.source),
                    (vocabulary.target, target_ids, pair.target),
                )
            )
            for links, weights_TS in zip(found, weights_HTS, strict=True):
                links[n] = _links(is_part_WS, is_part_WT, weights_TS)
        return found

    def _attended(
        self, pairs: Sequence[Pair]
    ) -> Iterator[tuple[int, list[int], np.ndarray]]:
        """Yields the index of each pair, its target's ids and weights_HTS.

        T counts the pieces except EOS, as far as the model takes them.
        """
        target = self._vocabulary.target
        encoded = target.encode([p.target for p in pairs], num_threads=1)
        cut = [ids[: self._longest] for ids in encoded]
        tokens_at_once = _TOKENS_AT_ONCE // len(self.heads)
        for rows in _batches(pairs, cut, tokens_at_once):
            sources, targets = (
                tf.ragged.constant([ids[n] for n in rows], tf.int32).to_tensor()
                for ids in ([p.source_ids for p in pairs], cut)
            )
            weights_HBTS = self._attention(sources, targets).numpy()
            for place, n in enumerate(rows):
                ids = encoded[n]
                yield n, ids, weights_HBTS[:, place, : len(ids) - 1]

    def _word_weights(
        self, pair: Pair, target_ids: list[int], weights_TS: np.ndarray
    ) -> WordWeights:
        starts_S, ends_S = _spans(
            self._vocabulary, pair.source_ids, pair.source
        )
        words = [match.span() for match in _WORD.finditer(pair.target)]
        is_part_WT = _parts(
            self._vocabulary.target, target_ids, text=pair.target, words=words
        )
        # The model may not take all pieces; the source is padded.
        is_part_WT = is_part_WT[:, : len(weights_TS)]
        sums_WS = is_part_WT @ weights_TS[:, : len(starts_S)]
        counts_W1 = is_part_WT.sum(axis=1, keepdims=True)
        mean_WS = sums_WS / np.maximum(counts_W1, 1)
        return WordWeights(
            pair, words, weights_WS=mean_WS, starts_S=starts_S, ends_S=ends_S
        )


def _stand_for(weights: WordWeights) -> list[Word]:
    """Returns the Words of a target."""
    if not len(weights.starts_S):  # The vocabulary leaves out all of it.
        return []
    words, best = [], 0
    for (start, end), weight_S in zip(
        weights.words, weights.weights_WS, strict=True
    ):
        if weight_S.any():  # Else the model takes no piece of the word.
            best = int(weight_S.argmax())
        words.append(Word(start, end, int(weights.starts_S[best])))
    return words


def _links(
    is_part_WS: np.ndarray, is_part_WT: np.ndarray, weights_TS: np.ndarray
) -> list[Link]:
    """Returns the links between words, by the attention of target pieces.

    Args:
        is_part_WS: bool, which pieces make up each word of the source.
        is_part_WT: bool, likewise for the target.
        weights_TS: float, of the target's first pieces, including those on
            source padding.
    """
    T, S = len(weights_TS), is_part_WS.shape[1]
    shares = is_part_WT[:, :T] @ weights_TS[:, :S] @ is_part_WS.T
    if not shares.size:
        return []
    best = shares.max(axis=1, keepdims=True)
    targets, sources = np.nonzero((shares >= _LINKED * best) & (best > 0))
    return sorted(zip(sources.tolist(), targets.tolist(), strict=True))


def _spaced(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in SPACED.finditer(text)]


def _parts(
    vocabulary: Vocabulary,
    ids: list[int],
    text: str,
    words: Sequence[tuple[int, int]],
) -> np.ndarray:
    """Returns bool [words, pieces]: which pieces each word of a text has."""
    starts, ends = _spans(vocabulary, ids, text)
    begin, end = np.array(words, int).reshape(-1, 2, 1).swapaxes(0, 1)
    return (starts < end) & (ends > begin)


def _spans(
    vocabulary: Vocabulary, ids: list[int], text: str
) -> tuple[np.ndarray, np.ndarray]:
    """Returns where in a text each of its pieces begins and ends."""
    starts = _starts(vocabulary, ids, text)
    return starts, np.append(starts[1:], len(text))[: len(starts)]


def _starts(vocabulary: Vocabulary, ids: list[int], text: str) -> np.ndarray:
    """Returns where in a text each of its pieces except EOS begins.

    The places are approximate if the vocabulary writes the text differently,
    such as in NFKC, or does not know one of its characters.
    """
    names = [vocabulary.token_bytes[i] for i in ids[:-1]]
    lengths = np.array([len(name) for name in names], int)
    # A piece's space is not part of its word.
    spaces = np.array([len(n) > 1 and n[:1] == b" " for n in names], int)
    starts = np.cumsum(lengths) - lengths + spaces
    # The text gets a space in front, at place -1.
    sizes = [1, *(len(character.encode()) for character in text)]
    characters = np.repeat(np.arange(len(sizes)) - 1, sizes)
    is_begun = f" {text}".encode().startswith(b"".join(names))
    if lengths.sum() != len(characters) and not is_begun:
        starts = starts * len(characters) // max(1, lengths.sum())
    return characters[starts.clip(0, len(characters) - 1)].clip(0)


def _batches(
    pairs: Sequence[Pair], encoded: Sequence[list[int]], tokens_at_once: int
) -> Iterator[list[int]]:
    """Yields the indices of pairs of similar length, as many as fit at once."""
    lengths = [
        max(len(pair.source_ids), len(ids))
        for pair, ids in zip(pairs, encoded, strict=True)
    ]
    order = sorted(range(len(pairs)), key=lambda n: lengths[n])
    while order:
        size = max(1, tokens_at_once // lengths[order[-1]])
        yield order[-size:]
        del order[-size:]
