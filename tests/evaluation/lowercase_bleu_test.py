"""BLEU of lowercased text equals a count of n-grams by hand."""

import os
import pathlib

import ngram_bleu
import pytest
import sacremoses

from t2t_lite.errors import InputError
from t2t_lite.evaluation import lowercase_bleu

MULTI30K = os.environ.get("MULTI30K")
GERMAN = [
    "Zwei Männer – beide „alt“ – sitzen vor Omas Haus.",  # noqa: RUF001
    "Ein Hund rennt über das grüne Gras, und ein Kind lacht.",
    "Die Frau trägt ein T-Shirt der Größe M.",
]


def test_case_and_kinds_of_quotes_and_dashes_do_not_count():
    typed = [
        'ZWEI MÄNNER - beide "alt" - sitzen vor omas Haus.',
        "Ein hund rennt über das grüne Gras, und ein Kind lacht.",
        "die frau trägt ein t-shirt der größe m.",
    ]
    found = lowercase_bleu.corpus_bleu(typed, GERMAN, "de")
    assert found.score == pytest.approx(100)


def test_moses_tokens_are_counted_and_hyphens_not_split():
    """Moses takes the "M." of "Größe M." for an abbreviation and keeps it."""
    found = lowercase_bleu.tokenize(GERMAN[1:], "de")
    assert found == [
        "ein hund rennt über das grüne gras , und ein kind lacht .",
        "die frau trägt ein t-shirt der größe m.",
    ]


def test_the_score_is_a_count_of_ngrams_without_smoothing():
    hypotheses = [line.replace("ein ", "der ") for line in GERMAN]
    hypotheses[0] = hypotheses[0][:30]
    found = lowercase_bleu.corpus_bleu(hypotheses, GERMAN, "de")
    tokens, reference_tokens = (
        [line.split() for line in lowercase_bleu.tokenize(lines, "de")]
        for lines in (hypotheses, GERMAN)
    )
    counts, length, reference_length = ngram_bleu.count_ngrams(
        tokens, reference_tokens
    )
    score, *_ = ngram_bleu.bleu(counts, length, reference_length)
    assert 20 < found.score < 90
    assert found.score == pytest.approx(score, rel=1e-12)
    assert found.ref_len == reference_length


def test_the_signature_says_what_decides_the_score():
    assert lowercase_bleu.signature("de") == (
        "nrefs:1|case:lc|tok:moses-de|punctuation:normalized|smooth:none"
        f"|sacremoses:{sacremoses.__version__}"
    )


def test_there_must_be_as_many_references():
    with pytest.raises(InputError, match="each hypothesis needs one reference"):
        lowercase_bleu.corpus_bleu(["a"], ["a", "b"], "de")


@pytest.mark.skipif(not MULTI30K, reason="MULTI30K names no folder")
def test_multi30ks_test_has_the_tokens_that_papers_report():
    path = pathlib.Path(MULTI30K, "test_2016_flickr.de")
    lines = path.read_text("utf-8").split("\n")[:-1]
    tokens = lowercase_bleu.tokenize(lines, "de")
    assert sum(len(line.split()) for line in tokens) == 12_103
