"""Scores of text are sacrebleu's, with their signatures and margins."""

import pytest
import sacrebleu

from t2t_lite.evaluation import lowercase_bleu, paper_bleu
from t2t_lite.evaluation.scores import BOOTSTRAP_RESAMPLES, score_text

TRANSLATIONS = [
    "A dog runs over the grass.",
    "Two men, and a boat",
    "",
    "the girl SITS near the old house .",
]
REFERENCES = [
    "A dog is running over the grass.",
    "Two men and a boat.",
    "Nobody.",
    "The girl sits near the old house.",
]


def test_text_is_scored_by_sacrebleu():
    scores = score_text(TRANSLATIONS, REFERENCES)
    bleu = sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES])
    chrf = sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES])
    assert scores["bleu"].value == bleu.score
    assert scores["chrf"].value == chrf.score
    assert 0 < scores["bleu"].value < scores["chrf"].value < 100
    # Translations and references are not interchangeable.
    swapped = score_text(REFERENCES, TRANSLATIONS)
    assert swapped["bleu"].value != scores["bleu"].value
    assert scores["bleu"].margin is None


def test_signatures_say_cased_and_tokenized_by_13a():
    scores = score_text(TRANSLATIONS, REFERENCES)
    signature = scores["bleu"].signature
    assert "case:mixed" in signature
    assert "tok:13a" in signature
    assert "nrefs:1" in signature
    assert f"version:{sacrebleu.__version__}" in signature
    assert "nc:6" in scores["chrf"].signature


def test_perfect_text_scores_100():
    scores = score_text(REFERENCES, REFERENCES)
    assert scores["bleu"].value == pytest.approx(100)
    assert scores["chrf"].value == pytest.approx(100)


def test_a_language_adds_bleu_as_papers_count_it():
    without = score_text(TRANSLATIONS, REFERENCES)
    scores = score_text(TRANSLATIONS, REFERENCES, language="fr")
    found = paper_bleu.corpus_bleu(TRANSLATIONS, REFERENCES, "fr")
    assert list(without) == ["bleu", "chrf"]
    assert list(scores) == [*without, "paper_bleu", "lowercase_bleu"]
    assert scores["paper_bleu"].value == found.score
    assert scores["paper_bleu"].signature == paper_bleu.signature("fr")
    found = lowercase_bleu.corpus_bleu(TRANSLATIONS, REFERENCES, "fr")
    assert scores["lowercase_bleu"].value == found.score
    assert scores["lowercase_bleu"].reference_tokens == found.ref_len
    assert "case:lc" in scores["lowercase_bleu"].signature


def test_margins_are_sacrebleus_and_change_no_score():
    texts = TRANSLATIONS * 3, REFERENCES * 3
    plain = score_text(*texts)
    scores = score_text(*texts, with_margins=True)
    theirs = sacrebleu.BLEU().corpus_score(
        texts[0], [texts[1]], n_bootstrap=BOOTSTRAP_RESAMPLES
    )
    printed = f"± {scores['bleu'].margin:.3f})"
    assert printed in theirs.format(width=3)
    for name, score in plain.items():
        assert scores[name]._replace(margin=None) == score
        assert scores[name].margin > 0


@pytest.mark.parametrize(
    ("translations", "references"),
    [(["x"], ["a b c d"]), (["x", "a b c d"], ["e f g h", "a b c d"])],
    ids=["all samples score 0", "some do"],
)
def test_too_few_sentences_have_no_margin(translations, references):
    scores = score_text(translations, references, with_margins=True)
    assert scores["chrf"].margin is None
