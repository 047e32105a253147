"""How good a model is: scores of its translations, and perplexity.

`evaluate` takes any function that scores text, so that other tasks bring their
own scores; those of translations are `score_text`.
"""

import json
import math
from typing import NamedTuple

import numpy as np
import sacrebleu
import tensorflow as tf

from t2t_lite.evaluation.paper_bleu import paper_bleu
from t2t_lite.model import loss
from t2t_lite.model.transformer import shift_right
from t2t_lite.text import batching

RESAMPLES = 1000  # Of the bootstrap that gives margins.
_TOKENS_AT_ONCE = 4096


class Score(NamedTuple):
    """One figure that says how good translations are."""

    name: str
    value: float
    signature: str  # all that decides the value, but the text
    margin: float | None = None  # half of the 95% interval, if known


def score_text(translations, references, language=None, with_margins=False):
    """Returns the Scores of a list of translations, by their names in JSON.

    "bleu" and "chrf" are sacrebleu's: cased, and of text that is not tokenized
    (sacrebleu does that by its own rule, 13a). "paper_bleu" is BLEU the paper's
    own way.

    Args:
        translations: list of str.
        references: list of str, as long.
        language: of both, as `paper_bleu` takes it; None to leave that out.
        with_margins: bool, whether sacrebleu estimates the margins of its
            scores, by drawing the sentences anew RESAMPLES times.
    """
    metrics = {
        "bleu": ("BLEU", sacrebleu.metrics.BLEU()),
        "chrf": ("chrF", sacrebleu.metrics.CHRF()),
    }
    scores = {}
    for key, (name, metric) in metrics.items():
        value = metric.corpus_score(translations, [references]).score
        scores[key] = Score(name, value, str(metric.get_signature()))
        if with_margins:
            margin = _margin(metric, translations, references)
            scores[key] = scores[key]._replace(margin=margin)
    if language is not None:
        found = paper_bleu(translations, references, language)
        scores["paper_bleu"] = Score(
            "BLEU as in the paper", found.score, found.signature
        )
    return scores


def _margin(metric, translations, references):
    """Returns half of the 95% interval, by sacrebleu's bootstrap.

    None where sentences are so few, or so bad, that there is no interval.
    """
    try:
        score = metric.corpus_score(
            translations, [references], n_bootstrap=RESAMPLES
        )
    except TypeError:  # sacrebleu's, where a sample has a chrF of 0.
        return None
    signature = str(metric.get_signature())
    found = json.loads(score.format(9, signature=signature, is_json=True))
    # Not there where each sample scores 0.
    return float(found["confidence_var"]) if "confidence_var" in found else None


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
    data_sha256: str  # of the pairs' text
    text: dict[str, Score]  # by their names in JSON
    tokens: TokenScores


class Report(NamedTuple):
    """What there is to say of a model."""

    model: str  # which checkpoint
    search: dict  # its SearchOptions
    splits: dict[str, SplitScores]


def evaluate(translator, splits, score=score_text):
    """Returns the Report of a model.

    Args:
        translator: Translator.
        splits: dict of name to list of (source, target) str.
        score: a function of translations and references, two lists of str, to
            a dict of Scores by their names in JSON.
    """
    scores = {}
    for name, pairs in splits.items():
        sources, references = (list(side) for side in zip(*pairs, strict=True))
        token_pairs = batching.pairs_in_memory(
            translator.vocabulary.encode(sources),
            translator.vocabulary.encode_target(references),
        )
        scores[name] = SplitScores(
            len(pairs),
            batching.hash_pairs(pairs),
            score(translator(sources), references),
            TokenScorer(translator.model, token_pairs)(),
        )
    return Report(translator.description, translator.options._asdict(), scores)


def as_text(report):
    """Returns a Report as lines for a reader."""
    search = ", ".join(f"{k} {v}" for k, v in report.search.items())
    lines = [f"model: {report.model}", f"search: {search}"]
    for name, (pairs, _, text, tokens) in report.splits.items():
        lines.append(f"{name}: {pairs} pairs")
        lines += [
            f"  {score.name} {value_text(score)} ({score.signature})"
            for score in text.values()
        ]
        left_out = f", {tokens.left_out} pairs left out as over-long"
        lines.append(
            f"  perplexity {tokens.perplexity:.4f} over {tokens.tokens} tokens"
            + (left_out if tokens.left_out else "")
        )
    return "\n".join(lines)


def value_text(score):
    """Returns a Score's value for a reader, with its margin if it has one."""
    margin = "" if score.margin is None else f" ± {score.margin:.2f}"
    return f"{score.value:.2f}{margin}"


def as_dict(report):
    """Returns a Report as what JSON can hold."""
    splits = {
        name: {
            "pairs": scores.pairs,
            "data_sha256": scores.data_sha256,
            **_text_as_dict(scores.text),
            **scores.tokens._asdict(),
            "perplexity": scores.tokens.perplexity,
        }
        for name, scores in report.splits.items()
    }
    return report._replace(splits=splits)._asdict()


def _text_as_dict(scores):
    """Returns {"bleu": ..., "bleu_signature": ..., "bleu_margin": ...}."""
    values = {}
    for key, score in scores.items():
        values[key] = score.value
        values[f"{key}_signature"] = score.signature
        if score.margin is not None:
            values[f"{key}_margin"] = score.margin
    return values


def as_json(report):
    """Returns a Report as JSON."""
    return json.dumps(as_dict(report), indent=2) + "\n"


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
