"""What an evaluation finds: the scores of each split, as text and as JSON."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from t2t_lite.decoding.ensemble import only_model
from t2t_lite.decoding.line_predictor import LinePredictor
from t2t_lite.english import counted
from t2t_lite.evaluation import accuracy
from t2t_lite.evaluation.accuracy import Accuracy, Checks
from t2t_lite.evaluation.perplexity import (
    TokenScorer,
    TokenScores,
    scoring_functions,
)
from t2t_lite.evaluation.scores import Score
from t2t_lite.text import token_files
from t2t_lite.text.vocabulary import FlatIds

_LINES_AT_ONCE = 4096  # Sorted by length, so that they need little padding.


class SplitScores(NamedTuple):
    """All scores of one split."""

    pairs: int
    data_sha256: str  # of the pairs' text
    text: dict[str, Score]  # by their names in JSON
    tokens: TokenScores

    def as_lines(self) -> list[str]:
        """Returns a line for each score, for a reader."""
        tokens = self.tokens
        lines = [
            f"{score.name} {score.as_text()} ({score.signature})"
            for score in self.text.values()
        ]
        perplexity = (
            f"perplexity {tokens.perplexity:.4f} over "
            f"{counted(tokens.tokens, 'token')}"
        )
        if tokens.left_out:
            left_out = counted(tokens.left_out, "pair")
            perplexity += f", {left_out} left out as over-long"
        return [*lines, perplexity]

    def as_dict(self) -> dict[str, Any]:
        """Returns what JSON can hold: "bleu", "bleu_signature" and so on."""
        values = {"pairs": self.pairs, "data_sha256": self.data_sha256}
        for key, score in self.text.items():
            values[key] = score.value
            values[f"{key}_signature"] = score.signature
            if score.margin is not None:
                values[f"{key}_margin"] = score.margin
            if score.reference_tokens is not None:
                values[f"{key}_reference_tokens"] = score.reference_tokens
        values |= self.tokens._asdict()
        return values | {"perplexity": self.tokens.perplexity}


class Report(NamedTuple):
    """What an evaluation of a model finds."""

    model: str  # which checkpoint
    search: dict[str, Any]  # its SearchOptions
    splits: dict[str, SplitScores]
    checks: dict[str, Accuracy] = {}  # noqa: RUF012, never changed

    def as_text(self) -> str:
        """Returns the report as lines for a reader."""
        lines = [f"model: {self.model}", f"search: {self.search_text()}"]
        for name, scores in self.splits.items():
            lines.append(f"{name}: {counted(scores.pairs, 'pair')}")
            lines += [f"  {line}" for line in scores.as_lines()]
        lines += accuracy.as_lines(self.checks)
        return "\n".join(lines)

    def search_text(self) -> str:
        """Returns the options of the search for a reader, on one line."""
        return ", ".join(f"{k} {v}" for k, v in self.search.items())

    def as_dict(self) -> dict[str, Any]:
        """Returns what JSON can hold, with "checks" if there are any."""
        values = {
            "model": self.model,
            "search": self.search,
            "splits": {
                name: scores.as_dict() for name, scores in self.splits.items()
            },
        }
        checks = {name: a._asdict() for name, a in self.checks.items()}
        return values | ({"checks": checks} if checks else {})

    def as_json(self) -> str:
        """Returns the report as JSON."""
        return to_json(self.as_dict())


def to_json(values: dict[str, Any]) -> str:
    """Returns the text of a JSON file."""
    return json.dumps(values, indent=2) + "\n"


def evaluate(
    predictor: LinePredictor,
    splits: dict[str, Sequence[tuple[str, str]]],
    score: Callable[[list[str], list[str]], dict[str, Score]],
    encode_targets: Callable[[list[str]], FlatIds],
    watch: Callable[[Iterator, int], Iterator] = lambda results, _: results,
    checks: Checks | None = None,
) -> Report:
    """Returns the Report of a model.

    Args:
        predictor: LinePredictor that has its model in memory.
        splits: (source, target) pairs of text by the name of the split.
        score: from outputs and references to their Scores by the names that
            they have in JSON.
        encode_targets: from lines of the target to their ids, the task's.
        watch: from an iterator of results, and how many there will be, to the
            same results: to show progress, for example.
        checks: lists of sentences, by name, whose right outputs are counted.

    Raises:
        InputError: a split is empty, or the model is an ensemble.
    """
    model = only_model(predictor.model)
    vocabulary, scores = predictor.vocabulary, {}
    functions = scoring_functions(model)
    for name, pairs in splits.items():
        token_files.require_pairs(name, pairs)
        sources, references = (list(side) for side in zip(*pairs, strict=True))
        results = watch(predictor.stream(sources, _LINES_AT_ONCE), len(sources))
        outputs = [nbest[0].text for nbest in results]
        token_pairs = token_files.encode_pairs(
            pairs, vocabulary, encode_targets
        )
        scores[name] = SplitScores(
            pairs=len(pairs),
            data_sha256=token_files.hash_pairs(pairs),
            text=score(outputs, references),
            tokens=TokenScorer(model, token_pairs, functions=functions)(),
        )
    accuracies = {
        name: accuracy.measure(predictor, sentences)
        for name, sentences in (checks or {}).items()
    }
    search = predictor.options.chosen
    return Report(
        model=predictor.description,
        search=search,
        splits=scores,
        checks=accuracies,
    )
