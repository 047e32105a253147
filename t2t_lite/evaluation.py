"""How good a model is: BLEU and chrF of its translations, and perplexity."""

import math
from typing import NamedTuple

import numpy as np
import sacrebleu
import tensorflow as tf

from t2t_lite import batching, loss
from t2t_lite.transformer import shift_right

_TOKENS_AT_ONCE = 4096


class TextScores(NamedTuple):
    """Scores of translations against their references, by sacrebleu."""

    bleu: float  # 0 to 100
    bleu_signature: str
    chrf: float  # 0 to 100
    chrf_signature: str


def score_text(translations, references):
    """Returns the TextScores of a list of translations.

    Text is scored as it is: cased and not tokenized (sacrebleu tokenizes by its
    own rule, 13a).

    Args:
        translations: list of str.
        references: list of str, as long.
    """
    bleu, chrf = sacrebleu.metrics.BLEU(), sacrebleu.metrics.CHRF()
    bleu_score = bleu.corpus_score(translations, [references]).score
    chrf_score = chrf.corpus_score(translations, [references]).score
    return TextScores(
        bleu_score,
        str(bleu.get_signature()),
        chrf_score,
        str(chrf.get_signature()),
    )


class TokenScores(NamedTuple):
    """How well a model foretells the target tokens of a corpus."""

    loss: float  # nats a token, without label smoothing
    tokens: int  # target tokens, EOS included
    left_out: int  # pairs too long for the model's learned positions

    @property
    def perplexity(self):
        """exp(loss), per token of the vocabulary, as in the paper's Table 3."""
        return math.exp(min(self.loss, 700.0))


class TokenScorer:
    """Computes the TokenScores of one corpus, again and again.

    Args:
        model: Transformer.
        pairs: TokenPairs.
    """

    def __init__(self, model, pairs):
        hparams, self.pairs = model.hparams, pairs
        self.buckets, self.left_out = [], 0
        longest = np.maximum(pairs.source_lengths, pairs.target_lengths)
        if hparams.positions == "learned":
            fits = longest <= hparams.learned_positions
            self.left_out = int(np.sum(~fits))
        else:
            fits = np.ones(len(longest), bool)
        kept = np.flatnonzero(fits)
        if len(kept):
            self.buckets = batching.make_buckets(
                pairs.source_lengths[kept],
                pairs.target_lengths[kept],
                max(_TOKENS_AT_ONCE, int(longest[kept].max())),
                hparams.num_buckets,
            )
            self.buckets = [
                b._replace(pairs=kept[b.pairs]) for b in self.buckets
            ]
        ids = tf.TensorSpec([None, None], tf.int32)
        self._score = tf.function(
            lambda source_ids, target_ids: loss.cross_entropy(
                model((source_ids, shift_right(target_ids))), target_ids
            ),
            input_signature=[ids, ids],
        )

    def __call__(self):
        """Returns the TokenScores of the model as it is now."""
        loss_sum = tokens = 0.0
        for bucket in self.buckets:
            for start in range(0, len(bucket.pairs), bucket.batch_size):
                indices = bucket.pairs[start : start + bucket.batch_size]
                batch = batching.pad_batch(
                    self.pairs,
                    indices,
                    bucket.source_length,
                    bucket.target_length,
                )
                batch_loss, batch_tokens = self._score(*batch)
                loss_sum += float(batch_loss)
                tokens += float(batch_tokens)
        return TokenScores(
            loss_sum / max(tokens, 1), int(tokens), self.left_out
        )
