"""How good a model is: BLEU and chrF of its translations, and perplexity."""

import json
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


class SplitScores(NamedTuple):
    """All scores of one split."""

    pairs: int
    text: TextScores
    tokens: TokenScores


class Report(NamedTuple):
    """What there is to say of a model."""

    model: str  # which checkpoint
    search: dict  # its SearchOptions
    splits: dict[str, SplitScores]


def evaluate(translator, splits):
    """Returns the Report of a model.

    Args:
        translator: Translator.
        splits: dict of name to list of (source, target) str.
    """
    scores = {}
    for name, pairs in splits.items():
        sources, references = (list(side) for side in zip(*pairs, strict=True))
        token_pairs = batching.pairs_in_memory(
            *(translator.vocabulary.encode(s) for s in (sources, references))
        )
        scores[name] = SplitScores(
            len(pairs),
            score_text(translator(sources), references),
            TokenScorer(translator.model, token_pairs)(),
        )
    return Report(translator.description, translator.options._asdict(), scores)


def as_text(report):
    """Returns a Report as lines for a reader."""
    search = ", ".join(f"{k} {v}" for k, v in report.search.items())
    lines = [f"model: {report.model}", f"search: {search}"]
    for name, (pairs, text, tokens) in report.splits.items():
        left_out = f", {tokens.left_out} pairs left out as over-long"
        lines += [
            f"{name}: {pairs} pairs",
            f"  BLEU {text.bleu:.2f} ({text.bleu_signature})",
            f"  chrF {text.chrf:.2f} ({text.chrf_signature})",
            f"  perplexity {tokens.perplexity:.4f} over {tokens.tokens} tokens"
            + (left_out if tokens.left_out else ""),
        ]
    return "\n".join(lines)


def as_json(report):
    """Returns a Report as JSON."""
    splits = {
        name: {
            "pairs": scores.pairs,
            **scores.text._asdict(),
            **scores.tokens._asdict(),
            "perplexity": scores.tokens.perplexity,
        }
        for name, scores in report.splits.items()
    }
    return json.dumps(report._replace(splits=splits)._asdict(), indent=2) + "\n"


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
            autograph=False,
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
