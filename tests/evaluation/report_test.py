"""Reports show what `evaluate` finds for each split, as text and JSON."""

import dataclasses
import json
import math
import re

import pytest
import tiny_translator
from reversing import Reversing
from token_pairs import pairs_in_memory

from t2t_lite.decoding.search import SearchOptions
from t2t_lite.errors import InputError
from t2t_lite.evaluation.perplexity import TokenScorer, TokenScores
from t2t_lite.evaluation.report import Report, SplitScores, evaluate
from t2t_lite.evaluation.scores import Score, score_text
from t2t_lite.text import token_files

PAIRS = [(line, f"{line} .") for line in tiny_translator.LINES if line]


@pytest.fixture(scope="module")
def predictor():
    vocabulary = tiny_translator.learn_vocabulary()
    hparams = dataclasses.replace(tiny_translator.TINY, num_layers=1)
    return Reversing(
        vocabulary,
        SearchOptions.from_hparams(hparams, beam_width=2),
        model=tiny_translator.random_model(hparams, vocabulary),
        description="checkpoints/step-12",
    )


def evaluated(predictor, splits, score=score_text, **options):
    """Returns the Report of a predictor, as of a translator by default."""
    encode = predictor.vocabulary.target.encode_flat
    return evaluate(predictor, splits, score, encode_targets=encode, **options)


@pytest.fixture(scope="module")
def report(predictor):
    return evaluated(predictor, {"dev": PAIRS[:3], "test": PAIRS[3:]})


def test_evaluate_scores_the_outputs_against_the_references(predictor, report):
    found = report.splits["dev"]
    sources, references = (list(side) for side in zip(*PAIRS[:3], strict=True))
    assert found.pairs == 3
    assert found.data_sha256 == token_files.hash_pairs(PAIRS[:3])
    assert found.data_sha256 != report.splits["test"].data_sha256
    assert found.text == score_text(predictor(sources), references)
    token_pairs = pairs_in_memory(
        *map(predictor.vocabulary.encode, (sources, references))
    )
    assert found.tokens == TokenScorer(predictor.model, token_pairs)()
    assert found.tokens.tokens == len(token_pairs.target_ids)


def test_an_empty_split_is_refused_by_name(predictor):
    with pytest.raises(InputError, match="the test text has no pairs to score"):
        evaluated(predictor, {"dev": PAIRS[:3], "test": []})


def test_one_pair_is_no_plural(predictor):
    (line,) = re.findall(
        "^test: .*$", evaluated(predictor, {"test": PAIRS[:1]}).as_text(), re.M
    )
    assert line == "test: 1 pair"


def test_every_line_of_a_split_can_be_watched(predictor, report):
    watched = []

    def watch(results, total):
        for n, result in enumerate(results, start=1):
            watched.append(f"{n} of {total}")
            yield result

    splits = {"dev": PAIRS[:3], "test": PAIRS[3:5]}
    found = evaluated(predictor, splits, watch=watch)
    assert found.splits["dev"] == report.splits["dev"]
    assert watched == ["1 of 3", "2 of 3", "3 of 3", "1 of 2", "2 of 2"]


def test_json_has_every_figure(report):
    found = json.loads(report.as_json())
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


class OneWord:
    """A check that accepts a single output for its source."""

    def __init__(self, source, answer):
        self.source, self.answer = source, answer

    def is_right(self, output):
        return output == self.answer


def test_checks_count_the_right_outputs(predictor, report):
    sources = [source for source, _ in PAIRS[:3]]
    right = [
        OneWord(s, o) for s, o in zip(sources, predictor(sources), strict=True)
    ]
    wrong = OneWord(sources[0], "nothing of the kind")
    checks = {"first_words": [*right, wrong], "no_words": [wrong]}
    found = evaluated(predictor, {"dev": PAIRS[:3]}, checks=checks)
    assert found.splits["dev"] == report.splits["dev"]
    assert found.as_text().split("\n")[-2:] == [
        "first words: 3 of 4 right",
        "no words: 0 of 1 right",
    ]
    assert json.loads(found.as_json())["checks"] == {
        "first_words": {"right": 3, "total": 4},
        "no_words": {"right": 0, "total": 1},
    }


def test_json_has_no_checks_where_a_corpus_brings_none(report):
    assert "checks" not in json.loads(report.as_json())


def test_another_task_brings_its_own_scores(predictor):
    def exact(outputs, references):
        matches = sum(map(str.__eq__, outputs, references))
        score = Score(
            "exact", matches, "case:mixed", margin=2.0, reference_tokens=7
        )
        return {"exact": score}

    pairs = [("men", "men"), *PAIRS[:1]]
    found = evaluated(predictor, {"dev": pairs}, score=exact)
    assert (
        "  exact 1.00 ± 2.00 (7 reference tokens) (case:mixed)\n"
        in found.as_text()
    )
    split = json.loads(found.as_json())["splits"]["dev"]
    assert split["exact"] == 1
    assert split["exact_margin"] == 2
    assert split["exact_reference_tokens"] == 7
    assert "bleu" not in split


def test_text_has_every_figure_with_its_signature():
    scores = SplitScores(
        pairs=1014,
        data_sha256="of the text",
        text={
            "bleu": Score("BLEU", 31.416, "nrefs:1|tok:13a", margin=1.003),
            "chrf": Score("chrF", 55.125, "nrefs:1|nc:6"),
        },
        tokens=TokenScores(math.log(4.5), 12_345, 0),
    )
    report = Report(
        "step-12",
        {"beam_width": 4, "length_penalty": 0.6},
        {
            "dev": scores,
            "test": scores._replace(tokens=TokenScores(0.0, 5, 7)),
        },
    )
    assert report.as_text().split("\n") == [
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
