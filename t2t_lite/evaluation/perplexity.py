"""How well a model predicts the target tokens of a corpus: its perplexity."""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.model import loss
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.text import batching
from t2t_lite.text.batching import Bucket, TokenPairs

_LARGEST_EXPONENT = 700.0  # exp of more overflows.


class TokenScores(NamedTuple):
    """The cross-entropy of a corpus, without label smoothing."""

    loss: float  # nats a token
    tokens: int  # target tokens, EOS included
    left_out: int  # pairs too long for the model's learned positions

    @property
    def perplexity(self) -> float:
        """exp(loss), per token of the vocabulary, as in the paper's Table 3."""
        return math.exp(min(self.loss, _LARGEST_EXPONENT))


class TokenScorer:
    """Computes the TokenScores of one corpus, again and again.

    Args:
        model: Transformer.
        pairs: TokenPairs of the corpus.
        max_tokens_per_batch: on the longer side, padding included; a pair that
            has more is a batch by itself.
    """

    def __init__(
        self,
        model: Transformer,
        pairs: TokenPairs,
        max_tokens_per_batch: int = 4096,
    ):
        longest = np.maximum(pairs.source_lengths, pairs.target_lengths)
        fits = np.ones(len(longest), bool)
        if model.hparams.positions == "learned":
            fits = longest <= model.hparams.learned_positions
        self._pairs = pairs
        self._left_out = int(np.sum(~fits))
        self._buckets = _make_buckets(
            pairs,
            np.flatnonzero(fits),
            max_tokens_per_batch=max_tokens_per_batch,
            num_buckets=model.hparams.num_buckets,
        )
        ids = tf.TensorSpec([None, None], tf.int32)
        self._cross_entropy = tf.function(
            lambda source_ids, target_ids: loss.cross_entropy(
                model((source_ids, shift_right(target_ids))), target_ids
            ),
            input_signature=[ids, ids],
            autograph=False,
        )

    def __call__(self) -> TokenScores:
        """Returns the TokenScores of the model as it is now."""
        loss_sum = tokens = 0.0
        for bucket in self._buckets:
            for start in range(0, len(bucket.pairs), bucket.batch_size):
                batch = batching.pad_batch(
                    self._pairs,
                    bucket.pairs[start : start + bucket.batch_size],
                    source_length=bucket.source_length,
                    target_length=bucket.target_length,
                )
                batch_loss, batch_tokens = self._cross_entropy(*batch)
                loss_sum += float(batch_loss)
                tokens += float(batch_tokens)
        mean_loss = loss_sum / max(tokens, 1)
        return TokenScores(mean_loss, int(tokens), self._left_out)


def _make_buckets(
    pairs: TokenPairs,
    indices: np.ndarray,
    max_tokens_per_batch: int,
    num_buckets: int,
) -> list[Bucket]:
    """Returns the Buckets of some of the pairs, by their indices, int [P]."""
    if not len(indices):
        return []
    source_lengths = pairs.source_lengths[indices]
    target_lengths = pairs.target_lengths[indices]
    longest = int(max(source_lengths.max(), target_lengths.max()))
    buckets = batching.make_buckets(
        source_lengths,
        target_lengths,
        tokens_per_batch=max(max_tokens_per_batch, longest),
        num_buckets=num_buckets,
    )
    return [b._replace(pairs=indices[b.pairs]) for b in buckets]
