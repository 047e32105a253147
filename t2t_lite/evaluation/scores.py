"""Scores of text: sacrebleu's BLEU and chrF, and BLEU as papers count it."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF

from t2t_lite.evaluation import lowercase_bleu, paper_bleu

BOOTSTRAP_RESAMPLES = 1000


class Score(NamedTuple):
    """One figure that says how good the outputs of a model are."""

    name: str
    value: float
    signature: str  # all that decides the value, except the text
    margin: float | None = None  # half of the 95% interval, if known
    reference_tokens: int | None = None  # where papers report it

    def as_text(self) -> str:
        """Returns the value for a reader, with what else is known about it.

        >>> Score("BLEU", 27.31, "case:mixed", margin=1.2).as_text()
        '27.31 ± 1.20'
        >>> Score("BLEU", 41.0, "case:lc", reference_tokens=12_103).as_text()
        '41.00 (12,103 reference tokens)'
        """
        text = f"{self.value:.2f}"
        if self.margin is not None:
            text += f" ± {self.margin:.2f}"
        if self.reference_tokens is not None:
            text += f" ({self.reference_tokens:,} reference tokens)"
        return text


def score_text(
    translations: Sequence[str],
    references: Sequence[str],
    language: str | None = None,
    with_margins: bool = False,
) -> dict[str, Score]:
    """Returns the Scores of translations, by their names in JSON.

    "bleu" and "chrf" are sacrebleu's: cased, and of text that is not tokenized
    (sacrebleu does that by its own rule, 13a). "paper_bleu" is BLEU the paper's
    own way, "lowercase_bleu" that of papers on Multi30k.

    Args:
        translations: detokenized.
        references: one for each translation, detokenized.
        language: of both, as `paper_bleu.corpus_bleu` takes it; None to leave
            these two out.
        with_margins: whether sacrebleu estimates the margins of its scores, by
            resampling the sentences BOOTSTRAP_RESAMPLES times.
    """
    metrics = {"bleu": ("BLEU", BLEU()), "chrf": ("chrF", CHRF())}
    scores = {}
    for key, (name, metric) in metrics.items():
        value = metric.corpus_score(translations, [references]).score
        signature = str(metric.get_signature())
        margin = None
        if with_margins:
            margin = _bootstrap_margin(metric, translations, references)
        scores[key] = Score(name, value, signature, margin=margin)
    if language is not None:
        texts = translations, references, language
        scores["paper_bleu"] = Score(
            "BLEU as in the paper",
            paper_bleu.corpus_bleu(*texts).score,
            paper_bleu.signature(language),
        )
        lowercase = lowercase_bleu.corpus_bleu(*texts)
        scores["lowercase_bleu"] = Score(
            "BLEU, lowercase",
            lowercase.score,
            lowercase_bleu.signature(language),
            reference_tokens=lowercase.ref_len,
        )
    return scores


def _bootstrap_margin(
    metric: BLEU | CHRF, translations: Sequence[str], references: Sequence[str]
) -> float | None:
    """Returns half of the 95% interval, by sacrebleu's bootstrap.

    None if sentences are so few, or so bad, that there is no interval.
    """
    try:
        score = metric.corpus_score(
            translations, [references], n_bootstrap=BOOTSTRAP_RESAMPLES
        )
    except TypeError:  # sacrebleu's, where a sample has a chrF of 0.
        return None
    signature = str(metric.get_signature())
    values = json.loads(score.format(9, signature=signature, is_json=True))
    # Missing if every sample scores 0.
    margin = values.get("confidence_var")
    return None if margin is None else float(margin)
