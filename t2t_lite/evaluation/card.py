"""The evaluation card: scores with all that they depend on, on one page."""

import dataclasses
import importlib.metadata
import json
import math
from typing import NamedTuple

from t2t_lite import files, paper
from t2t_lite.evaluation import scores as evaluation
from t2t_lite.hparams import HParams
from t2t_lite.storage import model_directory

_PACKAGES = (
    *("t2t_lite", "tensorflow", "keras", "sacrebleu", "sacremoses"),
    "sentencepiece",
)


class Training(NamedTuple):
    """How much training a model has behind it; None for what is not known."""

    updates: int | None
    flops: float | None  # in matrix products
    device_hours: float | None


class Card(NamedTuple):
    """What an evaluation found, and what it depends on."""

    report: evaluation.Report
    model_dir: str
    parameters: int
    settings: model_directory.Settings
    training: Training
    versions: dict[str, str]  # of the packages that decide a figure


def make_card(report, directory, model, checkpoint="last"):
    """Returns the Card of a model.

    Args:
        report: evaluation.Report of the model.
        directory: ModelDirectory that it is in.
        model: Transformer.
        checkpoint: "last" (or an average of the last), "best", "averaged", or
            the path of a checkpoint.
    """
    return Card(
        report,
        str(directory.path),
        sum(math.prod(weight.shape) for weight in model.trainable_variables),
        directory.settings(),
        _training(directory.training_record(checkpoint)),
        {name: _version(name) for name in _PACKAGES},
    )


def _training(record):
    flops, seconds = (
        None if math.isnan(value) else value
        for value in (
            record.get("training_flops", math.nan),
            record.get("device_seconds", math.nan),
        )
    )
    hours = None if seconds is None else seconds / 3600
    return Training(record.get("step"), flops, hours)


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"  # A checkout runs without.


def write(path, card):
    """Writes a Card to PATH.md, for a reader, and to PATH.json.

    Args:
        path: str; a suffix .md or .json of it is left out.
        card: Card.

    Raises:
        InputError: a file cannot be written.
    """
    stem = path.removesuffix(".md").removesuffix(".json")
    for suffix, text in ((".md", as_markdown(card)), (".json", as_json(card))):
        with files.output_file(stem + suffix) as file:
            file.write(text)


def as_json(card):
    """Returns a Card as JSON: the keys of the report's, and more."""
    values = evaluation.as_dict(card.report) | {
        "bootstrap_resamples": evaluation.RESAMPLES,
        "model_dir": card.model_dir,
        "parameters": card.parameters,
        "settings": dataclasses.asdict(card.settings),
        "training": card.training._asdict(),
        "versions": card.versions,
    }
    return json.dumps(values, indent=2) + "\n"


def _margins(report):
    """Returns what ± means, if any score has it."""
    scores = (
        s for split in report.splits.values() for s in split.text.values()
    )
    if all(score.margin is None for score in scores):
        return []
    return [
        "± is half of the 95% interval of sacrebleu's bootstrap "
        f"({evaluation.RESAMPLES:,} resamples).",
        "",
    ]


def as_markdown(card):
    """Returns a Card as a page of Markdown."""
    sections = {
        f"# Evaluation of {card.model_dir}": [
            *_table(["", *card.report.splits], _score_rows(card.report)),
            "",
            *_margins(card.report),
            *_signatures(card.report),
        ],
        "## Model": _table(["", ""], _model_rows(card)),
        "## Data": _table(["", "SHA-256"], _data_rows(card)),
        "## Versions": _table(["", ""], card.versions.items()),
    }
    return (
        "\n\n".join(
            "\n".join([title, "", *lines]) for title, lines in sections.items()
        )
        + "\n"
    )


def _table(head, rows):
    """Returns the lines of a Markdown table."""
    rows = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]


def _cell(value):
    return str(value).replace("|", "\\|")


def _score_rows(report):
    """Yields a row for each score, with a column for each split."""
    splits = report.splits.values()
    yield "sentence pairs", *(f"{split.pairs:,}" for split in splits)
    for key, score in next(iter(splits)).text.items():
        values = (evaluation.value_text(split.text[key]) for split in splits)
        yield score.name, *values
    perplexities = (f"{split.tokens.perplexity:.3f}" for split in splits)
    yield "perplexity per token", *perplexities
    yield "target tokens", *(f"{split.tokens.tokens:,}" for split in splits)
    if any(split.tokens.left_out for split in splits):
        left_out = (split.tokens.left_out for split in splits)
        yield "over-long pairs, not in the perplexity", *left_out


def _signatures(report):
    """Yields a line for each kind of score."""
    for score in next(iter(report.splits.values())).text.values():
        yield f"- {score.name}: `{score.signature}`"


def _model_rows(card):
    training, report = card.training, card.report
    yield "checkpoint", report.model
    yield "search", ", ".join(f"{k} {v}" for k, v in report.search.items())
    yield "parameters", f"{card.parameters:,}"
    yield "settings that are not the paper's base", _unlike_base(card)
    yield "updates", _known(training.updates, "{:,}")
    yield "training, matrix products", _known(training.flops, "{:.2e} FLOPs")
    yield "training, device hours", _known(training.device_hours, "{:.2f}")
    base = paper.TABLE_2["transformer_base"].training_flops
    big = paper.TABLE_2["transformer_big"].training_flops
    yield (
        "training in the paper, by time",
        f"base {base:.1e} FLOPs, big {big:.1e} FLOPs",
    )


def _known(value, pattern):
    return "not known" if value is None else pattern.format(value)


def _unlike_base(card):
    settings = dataclasses.asdict(card.settings.hparams)
    base = dataclasses.asdict(HParams())
    unlike = [f"{k} {v}" for k, v in settings.items() if v != base[k]]
    return ", ".join(unlike) or "none"


def _data_rows(card):
    yield "train", f"`{card.settings.data_sha256}`"
    for name, split in card.report.splits.items():
        yield name, f"`{split.data_sha256}`"
    vocabulary = f"vocabulary, {card.settings.vocabulary_size:,} ids"
    yield vocabulary, f"`{card.settings.vocabulary_sha256}`"
