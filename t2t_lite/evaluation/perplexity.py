"""How well a model predicts the target tokens of a corpus: its perplexity."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.model import loss, rows
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.tensor import NEG_INF
from t2t_lite.text import batching
from t2t_lite.text.batching import Bucket, TokenPairs
from t2t_lite.token_ids import PAD

_LARGEST_EXPONENT = 700.0  # exp of a little more overflows.


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
    """Computes the TokenScores of one corpus, as often as it is called.

    Args:
        model: Transformer.
        pairs: TokenPairs of the corpus.
        max_tokens_per_batch: on the longer side, padding included; a pair that
            has more is a batch by itself.
        functions: what `scoring_functions` returned for the model, for several
            scorers to share.
    """

    def __init__(
        self,
        model: Transformer,
        pairs: TokenPairs,
        max_tokens_per_batch: int = 4096,
        functions: "ScoringFunctions | None" = None,
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
        self._decode, self._score = functions or scoring_functions(model)
        self._chunk_size = loss.largest_chunk(model.num_target_ids)

    def __call__(self) -> TokenScores:
        """Returns the TokenScores of the model as it is now."""
        loss_sum, tokens = 0.0, 0
        for pairs_R, losses_RT in self.token_losses():
            loss_sum += losses_RT.sum(dtype=np.float64)
            tokens += int(self._pairs.target_lengths[pairs_R].sum())
        mean_loss = float(loss_sum) / max(tokens, 1)
        return TokenScores(mean_loss, tokens, self._left_out)

    def token_losses(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields (int32 [R], float32 [R, T]): pairs, and their tokens' nats.

        Pairs are indices into those of the corpus, in no particular order;
        those that are left out are missing. The losses of padding are 0.
        """
        for bucket in self._buckets:
            for start in range(0, len(bucket.pairs), bucket.batch_size):
                pairs_R = bucket.pairs[start : start + bucket.batch_size]
                batch = batching.pad_batch(
                    self._pairs,
                    pairs_R,
                    source_length=bucket.source_length,
                    target_length=bucket.target_length,
                )
                losses_N = np.concatenate([*self._losses(*batch)])
                yield pairs_R, losses_N.reshape(len(pairs_R), -1)

    def _losses(self, source_ids, target_ids):
        """Yields the losses of one chunk of tokens after another.

        The logits of only one chunk exist at a time.
        """
        x_ND, target_ids_N = self._decode(source_ids, target_ids)
        for start in range(0, len(target_ids_N), self._chunk_size):
            end = start + self._chunk_size
            losses_C, _ = self._score(x_ND[start:end], target_ids_N[start:end])
            yield losses_C.numpy()


class ScoringFunctions(NamedTuple):
    """tf.functions, which are traced once for a model."""

    decode: Callable  # ids to the vectors of target tokens
    score: Callable  # these, and target ids, to losses


def scoring_functions(
    model: Transformer, as_searched: bool = False
) -> ScoringFunctions:
    """Returns the functions that score with a model as it is when called.

    Args:
        model: Transformer.
        as_searched: whether no probability is left for padding, as in a
            search. In training and in a perplexity it is an id like any other.
    """
    ids_BL = tf.TensorSpec([None, None], tf.int32)
    x_ND = tf.TensorSpec([None, model.hparams.d_model], model.compute_dtype)
    ids_N = tf.TensorSpec([None], tf.int32)

    def decode(source_ids, target_ids):
        x_BTD = model.decode((source_ids, shift_right(target_ids)))
        return rows.flatten(x_BTD), tf.reshape(target_ids, [-1])

    def score(x_ND, target_ids_N):
        logits_NV = model.output_embedding.logits(x_ND, model.num_target_ids)
        if as_searched:
            is_padding_V = tf.range(model.num_target_ids) == PAD
            logits_NV = tf.cast(logits_NV, tf.float32)
            logits_NV = tf.where(is_padding_V, NEG_INF, logits_NV)
        return loss.token_losses(logits_NV, target_ids_N)

    return ScoringFunctions(
        tf.function(decode, input_signature=[ids_BL] * 2, autograph=False),
        tf.function(score, input_signature=[x_ND, ids_N], autograph=False),
    )


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
