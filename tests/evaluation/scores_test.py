"""Scores: sacrebleu's for text, and a loss that no batch changes."""

import functools
import json
import math

import keras
import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from t2t_lite.decoding.search import SearchOptions
from t2t_lite.decoding.translation import LineTranslator
from t2t_lite.evaluation import paper_bleu
from t2t_lite.evaluation import scores as evaluation
from t2t_lite.evaluation.scores import Score, SplitScores, TokenScores
from t2t_lite.hparams import HParams
from t2t_lite.model.transformer import Transformer
from t2t_lite.text import batching
from t2t_lite.text import vocabulary as tokenization

V = 311
TINY = HParams(
    num_layers=1,
    d_model=12,
    d_ff=20,
    num_heads=3,
    d_k=4,
    d_v=5,
    tokens_per_batch=100,
    max_length=31,
    num_buckets=5,
    max_extra_length=3,
    label_smoothing=0.3,
    dropout=0.5,
)
LEARNED = HParams(
    **(TINY.__dict__ | {"positions": "learned", "learned_positions": 37})
)
EOS = 1

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


def random_model(hparams):
    keras.utils.set_random_seed(5)
    model = Transformer(hparams, V)
    model.build()
    for variable in model.trainable_variables:
        if len(variable.shape) > 1:
            variable.assign(variable * 2.0)
    return model


@pytest.fixture(scope="module")
def model():
    return random_model(TINY)


@pytest.fixture(scope="module")
def learned():
    return random_model(LEARNED)


def random_pairs(num_pairs, longest=53, seed=4):
    """Returns two lists of lists of ids of many lengths, EOS at each end."""
    generator = np.random.default_rng(seed)
    return tuple(
        [
            [*generator.integers(2, V, length - 1).tolist(), EOS]
            for length in generator.integers(1, longest + 1, num_pairs)
        ]
        for _ in ("source", "target")
    )


@functools.cache
def traced_once(model):
    ids = tf.TensorSpec([1, None], tf.int32)
    return tf.function(
        lambda *inputs: model(inputs),
        input_signature=[ids, ids],
        autograph=False,
    )


def loss_by_hand(model, pairs):
    """Returns (nats, tokens): the loss of one pair after the other."""
    call, nats = traced_once(model), 0.0
    for source, target in pairs:
        inputs = tf.constant([source]), tf.constant([[EOS, *target[:-1]]])
        logits_TV = np.array(call(*inputs)[0], np.float64)
        log_sums_T = np.logaddexp.reduce(logits_TV, axis=1)
        nats += sum(
            log_sums_T[t] - logits_TV[t, i] for t, i in enumerate(target)
        )
    return nats, sum(len(target) for _, target in pairs)


# Text.


def test_text_is_scored_by_sacrebleu():
    scores = evaluation.score_text(TRANSLATIONS, REFERENCES)
    bleu = sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES])
    chrf = sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES])
    assert scores["bleu"].value == bleu.score
    assert scores["chrf"].value == chrf.score
    assert 0 < scores["bleu"].value < scores["chrf"].value < 100
    # References and translations play different parts.
    swapped = evaluation.score_text(REFERENCES, TRANSLATIONS)
    assert swapped["bleu"].value != scores["bleu"].value
    assert scores["bleu"].margin is None


def test_signatures_say_cased_and_tokenized_by_13a():
    scores = evaluation.score_text(TRANSLATIONS, REFERENCES)
    signature = scores["bleu"].signature
    assert "case:mixed" in signature
    assert "tok:13a" in signature
    assert "nrefs:1" in signature
    assert f"version:{sacrebleu.__version__}" in signature
    assert "nc:6" in scores["chrf"].signature


def test_perfect_text_scores_100():
    scores = evaluation.score_text(REFERENCES, REFERENCES)
    assert scores["bleu"].value == pytest.approx(100)
    assert scores["chrf"].value == pytest.approx(100)


def test_a_language_adds_bleu_the_papers_way():
    without = evaluation.score_text(TRANSLATIONS, REFERENCES)
    scores = evaluation.score_text(TRANSLATIONS, REFERENCES, language="fr")
    found = paper_bleu.paper_bleu(TRANSLATIONS, REFERENCES, "fr")
    assert list(without) == ["bleu", "chrf"]
    assert list(scores) == ["bleu", "chrf", "paper_bleu"]
    assert scores["paper_bleu"].value == found.score
    assert scores["paper_bleu"].signature == found.signature


def test_margins_are_sacrebleus_and_change_no_score():
    texts = TRANSLATIONS * 3, REFERENCES * 3
    plain = evaluation.score_text(*texts)
    scores = evaluation.score_text(*texts, with_margins=True)
    theirs = sacrebleu.BLEU().corpus_score(
        texts[0], [texts[1]], n_bootstrap=evaluation.RESAMPLES
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
    scores = evaluation.score_text(translations, references, with_margins=True)
    assert scores["chrf"].margin is None


# Tokens.


@pytest.mark.parametrize("num_pairs", [1, 19])
@pytest.mark.parametrize("tokens_at_once", [59, 4096])
def test_the_loss_is_that_of_one_pair_after_the_other(
    model, monkeypatch, num_pairs, tokens_at_once
):
    monkeypatch.setattr(evaluation, "_TOKENS_AT_ONCE", tokens_at_once)
    sides = random_pairs(num_pairs)
    pairs = batching.pairs_in_memory(*sides)
    scores = evaluation.TokenScorer(model, pairs)()
    nats, tokens = loss_by_hand(model, list(zip(*sides, strict=True)))
    assert scores.tokens == tokens
    assert scores.loss == pytest.approx(nats / tokens, rel=1e-5)
    assert scores.perplexity == pytest.approx(math.exp(scores.loss))
    assert scores.left_out == 0


def test_pairs_longer_than_the_limit_of_a_batch_are_scored(model, monkeypatch):
    monkeypatch.setattr(evaluation, "_TOKENS_AT_ONCE", 13)
    sides = random_pairs(7)
    scores = evaluation.TokenScorer(model, batching.pairs_in_memory(*sides))()
    nats, tokens = loss_by_hand(model, list(zip(*sides, strict=True)))
    assert scores.tokens == tokens
    assert scores.loss == pytest.approx(nats / tokens, rel=1e-5)


def test_a_scorer_sees_what_the_model_has_learned_since():
    model, sides = random_model(TINY), random_pairs(5)
    scorer = evaluation.TokenScorer(model, batching.pairs_in_memory(*sides))
    before = scorer()
    assert scorer() == before  # Nothing is dropped.
    for variable in model.trainable_variables:
        variable.assign(variable * 0.9)
    after = scorer()
    nats, tokens = loss_by_hand(model, list(zip(*sides, strict=True)))
    assert after.loss == pytest.approx(nats / tokens, rel=1e-5)
    assert after.loss != before.loss


def test_pairs_beyond_learned_positions_are_left_out_and_counted(learned):
    sides = random_pairs(23)
    scores = evaluation.TokenScorer(learned, batching.pairs_in_memory(*sides))()
    kept = [
        (source, target)
        for source, target in zip(*sides, strict=True)
        if max(len(source), len(target)) <= 37
    ]
    assert scores.left_out == 23 - len(kept) > 0
    nats, tokens = loss_by_hand(learned, kept)
    assert scores.tokens == tokens
    assert scores.loss == pytest.approx(nats / tokens, rel=1e-5)


def test_pairs_that_just_fit_the_learned_positions_are_scored(learned):
    sides = [[[7] * 36 + [EOS]] * 2, [[8] * 36 + [EOS], [9] * 37 + [EOS]]]
    scores = evaluation.TokenScorer(learned, batching.pairs_in_memory(*sides))()
    assert (scores.tokens, scores.left_out) == (37, 1)


def test_a_corpus_that_is_left_out_whole_has_no_tokens(learned):
    sides = [[[7] * 40 + [EOS]] * 3, [[8, EOS]] * 3]
    scores = evaluation.TokenScorer(learned, batching.pairs_in_memory(*sides))()
    assert scores == TokenScores(0.0, 0, 3)


def test_perplexity_is_e_to_the_loss_and_never_overflows():
    assert TokenScores(math.log(17), 5, 0).perplexity == pytest.approx(17)
    assert TokenScores(0.0, 5, 0).perplexity == 1
    assert math.isfinite(TokenScores(1e6, 5, 0).perplexity)


# Reports.


@pytest.fixture(scope="module")
def report(model):
    vocabulary = tokenization.learn(TRANSLATIONS + REFERENCES, "bpe", V)
    assert vocabulary.size == V
    options = SearchOptions.of(TINY, beam_width=2)
    translator = LineTranslator.from_model(
        model, vocabulary, options, xla=False
    )
    translator.description = "checkpoints/step-12"
    pairs = list(zip(TRANSLATIONS, REFERENCES, strict=True))
    report = evaluation.evaluate(
        translator, {"dev": pairs[:3], "test": pairs[3:]}
    )
    return translator, pairs, report


def test_evaluate_scores_the_translations_and_the_references(report):
    translator, pairs, report = report
    found = report.splits["dev"]
    sources, references = zip(*pairs[:3], strict=True)
    texts = translator(list(sources))
    assert found.pairs == 3
    assert found.data_sha256 == batching.hash_pairs(pairs[:3])
    assert found.data_sha256 != report.splits["test"].data_sha256
    assert found.text == evaluation.score_text(texts, list(references))
    sides = [
        translator.vocabulary.encode(list(side))
        for side in (sources, references)
    ]
    nats, tokens = loss_by_hand(
        translator.model, list(zip(*sides, strict=True))
    )
    assert found.tokens.tokens == tokens
    assert found.tokens.loss == pytest.approx(nats / tokens, rel=1e-5)


def test_json_has_every_figure(report):
    _, _, report = report
    found = json.loads(evaluation.as_json(report))
    assert found["model"] == "checkpoints/step-12"
    assert found["search"]["beam_width"] == 2
    assert list(found["splits"]) == ["dev", "test"]
    for name, scores in report.splits.items():
        split = found["splits"][name]
        assert split["pairs"] == scores.pairs
        assert split["data_sha256"] == scores.data_sha256
        assert split["bleu"] == scores.text["bleu"].value
        assert split["chrf_signature"] == scores.text["chrf"].signature
        assert "bleu_margin" not in split
        assert split["loss"] == scores.tokens.loss
        assert split["perplexity"] == scores.tokens.perplexity


def test_another_task_brings_its_own_scores(report):
    translator, pairs, _ = report

    def exact(translations, references):
        same = sum(map(str.__eq__, translations, references))
        return {"exact": Score("exact", same, "case:mixed", margin=2.0)}

    found = evaluation.evaluate(translator, {"dev": pairs[:2]}, exact)
    assert "  exact 0.00 ± 2.00 (case:mixed)\n" in evaluation.as_text(found)
    split = json.loads(evaluation.as_json(found))["splits"]["dev"]
    assert split["exact"] == 0
    assert split["exact_margin"] == 2
    assert "bleu" not in split


def test_text_has_every_figure_with_its_signature():
    scores = SplitScores(
        1014,
        "of the text",
        {
            "bleu": Score("BLEU", 31.416, "nrefs:1|tok:13a", margin=1.003),
            "chrf": Score("chrF", 55.125, "nrefs:1|nc:6"),
        },
        TokenScores(math.log(4.5), 12_345, 0),
    )
    report = evaluation.Report(
        "step-12",
        {"beam_width": 4, "length_penalty": 0.6},
        {
            "dev": scores,
            "test": scores._replace(tokens=TokenScores(0.0, 5, 7)),
        },
    )
    assert evaluation.as_text(report).split("\n") == [
        "model: step-12",
        "search: beam_width 4, length_penalty 0.6",
        "dev: 1014 pairs",
        "  BLEU 31.42 ± 1.00 (nrefs:1|tok:13a)",
        "  chrF 55.12 (nrefs:1|nc:6)",
        "  perplexity 4.5000 over 12345 tokens",
        "test: 1014 pairs",
        "  BLEU 31.42 ± 1.00 (nrefs:1|tok:13a)",
        "  chrF 55.12 (nrefs:1|nc:6)",
        "  perplexity 1.0000 over 5 tokens, 7 pairs left out as over-long",
    ]
