"""The evaluation card: scores and all that they depend on, on one page."""

import dataclasses
import importlib.metadata
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from t2t_lite import __version__, files, paper
from t2t_lite.decoding.line_predictor import LinePredictor
from t2t_lite.evaluation.report import Report, to_json
from t2t_lite.evaluation.scores import BOOTSTRAP_RESAMPLES, Score
from t2t_lite.hparams import HParams
from t2t_lite.storage.model_directory import ModelDirectory, Settings

_PACKAGES = (
    "tensorflow",
    "keras",
    "sacrebleu",
    "sacremoses",
    "sentencepiece",
)


class Training(NamedTuple):
    """How much training a model has behind it; None for what is not known."""

    updates: int | None
    flops: float | None  # in matrix products
    device_hours: float | None


class Card(NamedTuple):
    """What an evaluation found, and what it depends on."""

    report: Report
    model_dir: str
    parameters: int
    precision: str  # of the search's products with weights
    settings: Settings
    training: Training
    versions: dict[str, str]  # of the packages that decide a figure

    def as_markdown(self) -> str:
        """Returns the card as a page of Markdown."""
        report = self.report
        sections = {
            f"# Evaluation of {_text(self.model_dir)}": [
                *_table(["", *map(_text, report.splits)], _score_rows(report)),
                "",
                *_margin_lines(report),
                *_signature_lines(report),
            ],
            "## Model": _table(["", ""], _model_rows(self)),
            "## Data": _table(["", "SHA-256"], _data_rows(self)),
            "## Versions": _table(["", ""], self.versions.items()),
        }
        texts = (
            "\n".join([title, "", *lines]) for title, lines in sections.items()
        )
        return "\n\n".join(texts) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Returns what JSON can hold: the report's keys, and more."""
        return self.report.as_dict() | {
            "bootstrap_resamples": BOOTSTRAP_RESAMPLES,
            "model_dir": self.model_dir,
            "parameters": self.parameters,
            "precision": self.precision,
            "settings": dataclasses.asdict(self.settings),
            "training": self.training._asdict(),
            "versions": self.versions,
        }

    def as_json(self) -> str:
        """Returns the card as JSON."""
        return to_json(self.as_dict())

    def write(self, path: str) -> None:
        """Writes the card to PATH.md, for a reader, and to PATH.json.

        Args:
            path: where; without its suffix, if it ends in .md or .json.

        Raises:
            InputError: a file cannot be written.
        """
        stem = path.removesuffix(".md").removesuffix(".json")
        with files.output_file(f"{stem}.md") as file:
            file.write(self.as_markdown())
        with files.output_file(f"{stem}.json") as file:
            file.write(self.as_json())


def make_card(
    report: Report, directory: ModelDirectory, predictor: LinePredictor
) -> Card:
    """Returns the Card of a model.

    Args:
        report: Report of the model.
        directory: ModelDirectory that it is in.
        predictor: LinePredictor of it.
    """
    weights = predictor.model.trainable_variables
    return Card(
        report=report,
        model_dir=str(directory.path),
        parameters=sum(math.prod(weight.shape) for weight in weights),
        precision=predictor.model.search_precision,
        settings=directory.settings(),
        training=_training(predictor.training_record),
        versions=_versions(),
    )


def _training(record: dict[str, float]) -> Training:
    known = {k: v for k, v in record.items() if not math.isnan(v)}
    seconds = known.get("device_seconds")
    return Training(
        updates=known.get("step"),
        flops=known.get("training_flops"),
        device_hours=None if seconds is None else seconds / 3600,
    )


def _versions() -> dict[str, str]:
    """Returns the versions of the packages that decide a figure, by name."""
    # The code that runs, which need not be what is installed.
    found = {"t2t_lite": __version__}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"  # Under this name.
    return found


def _table(head: list[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Returns the lines of a Markdown table."""
    rows = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]


def _text(value: Any) -> str:
    r"""Returns the Markdown that shows a name as it is, on one line.

    >>> _text("a*b*\n<br>")
    'a\\*b\\* \\<br\\>'
    """
    one_line = " ".join(str(value).splitlines())
    # An underscore within a word is not markup.
    return re.sub(r"[\\`*\[\]<>&~#]|(?<!\w)_|_(?!\w)", r"\\\g<0>", one_line)


def _code(text: str) -> str:
    """Returns the Markdown that shows a text as code, on one line.

    >>> _code("nrefs:1|tok:`13a`")
    "`nrefs:1|tok:'13a'`"
    """
    one_line = " ".join(text.splitlines()).replace("`", "'")
    return f"`{one_line}`"


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|")


def _scores_by_split(report: Report) -> dict[str, list[Score]]:
    """Returns, for each kind of score, by its key, the one of each split."""
    by_key = {}
    for split in report.splits.values():
        for key, score in split.text.items():
            by_key.setdefault(key, []).append(score)
    return by_key


def _score_rows(report: Report) -> Iterator[list[Any]]:
    """Yields a row for each score, with a column for each split."""
    splits = report.splits.values()
    tokens = [split.tokens for split in splits]
    yield ["sentence pairs", *(f"{split.pairs:,}" for split in splits)]
    for scores in _scores_by_split(report).values():
        yield [scores[0].name, *(score.as_text() for score in scores)]
    yield ["perplexity per token", *(f"{t.perplexity:.3f}" for t in tokens)]
    yield ["target tokens", *(f"{t.tokens:,}" for t in tokens)]
    if any(t.left_out for t in tokens):
        left_out = (t.left_out for t in tokens)
        yield ["over-long pairs, not in the perplexity", *left_out]


def _margin_lines(report: Report) -> list[str]:
    """Returns what ± means, if any score has it."""
    scores = [
        score
        for split in report.splits.values()
        for score in split.text.values()
    ]
    if all(score.margin is None for score in scores):
        return []
    return [
        "± is half of the 95% interval of sacrebleu's bootstrap "
        f"({BOOTSTRAP_RESAMPLES:,} resamples).",
        "",
    ]


def _signature_lines(report: Report) -> Iterator[str]:
    """Yields a line for each kind of score: what decides its value."""
    for scores in _scores_by_split(report).values():
        yield f"- {scores[0].name}: {_code(scores[0].signature)}"


def _model_rows(card: Card) -> Iterator[tuple[str, str]]:
    training, report = card.training, card.report
    yield "checkpoint", _text(report.model)
    yield "search", _text(report.search_text())
    yield "precision of the search", card.precision
    yield "parameters", f"{card.parameters:,}"
    yield "settings that are not the paper's base", _changed_settings(card)
    yield "updates", _known(training.updates, "{:,}")
    yield "training, matrix products", _known(training.flops, "{:.2e} FLOPs")
    yield "training, device hours", _known(training.device_hours, "{:.2f}")
    yield "training in the paper, by time", paper.training_flops_text()


def _known(value: float | None, pattern: str) -> str:
    return "not known" if value is None else pattern.format(value)


def _changed_settings(card: Card) -> str:
    settings = dataclasses.asdict(card.settings.hparams)
    base = dataclasses.asdict(HParams())
    changed = [f"{k} {_text(v)}" for k, v in settings.items() if v != base[k]]
    return ", ".join(changed) or "none"


def _data_rows(card: Card) -> Iterator[tuple[str, str]]:
    yield "train", f"`{card.settings.data_sha256}`"
    for name, split in card.report.splits.items():
        yield _text(name), f"`{split.data_sha256}`"
    settings = card.settings
    ids = f"vocabulary, {settings.vocabulary_size:,} ids"
    if settings.target_vocabulary_size is not None:
        ids += f" of sources, {settings.target_vocabulary_size:,} of targets"
    yield ids, f"`{settings.vocabulary_sha256}`"
