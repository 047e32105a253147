"""What a run reports at its end, as text and as scores.json."""

import functools
import shlex
from collections.abc import Mapping, Sequence

from absl import logging

from t2t_lite import files
from t2t_lite.decoding.line_predictor import LinePredictor
from t2t_lite.errors import program
from t2t_lite.evaluation import accuracy
from t2t_lite.evaluation.accuracy import Checks
from t2t_lite.evaluation.report import Report, evaluate
from t2t_lite.hardware import Hardware
from t2t_lite.hparams import HParams
from t2t_lite.storage import checkpoint_files
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.task import Task

_LINES_SHOWN = 3
_WIDTH_SHOWN = 500  # Characters of each; a tree can have thousands.


def final_report(
    directory: ModelDirectory,
    hparams: HParams,
    task: Task,
    held_out: Mapping[str, Sequence[tuple[str, str]]],
    cost_text: str,
    checks: Checks,
    num_devices: int = 1,
    hardware: Hardware | None = None,
) -> str:
    """Returns scores, some outputs, the cost, and how to use the model.

    Also writes the scores to scores.json.

    The model is the average of the last checkpoints: as many as the settings
    ask for, or all that are kept if there are fewer.

    Args:
        directory: ModelDirectory.
        hparams: HParams.
        task: Task.
        held_out: (source, target) pairs of "dev", "test", both or neither.
        cost_text: lines on the cost.
        checks: named lists of sentences, whose right ones are counted.
        num_devices: how many devices of this machine search.
        hardware: Hardware that the batches of a search suit; that of this
            process when not given.

    Source: section 6.1.
    """
    num_kept = len(checkpoint_files.paths(directory.checkpoints))
    average_last = min(num_kept, hparams.average_last)
    lines = []
    if held_out:
        translator = task.open(
            directory.path,
            average_last=average_last,
            xla=False,
            devices=num_devices,
            hardware=hardware,
        )
        lines += _scores(
            directory, task, held_out, translator=translator, checks=checks
        )
        lines.append("")
    flags = f"--model_dir={shlex.quote(str(directory.path))}"
    if average_last > 1:
        flags += f" --average_last={average_last}"
    command = f"{program('translate')} {flags}"
    lines += [cost_text, "", "To use this model:", f"  {command}"]
    return "\n".join(lines)


def _scores(
    directory: ModelDirectory,
    task: Task,
    held_out: Mapping[str, Sequence[tuple[str, str]]],
    translator: LinePredictor,
    checks: Checks,
) -> list[str]:
    """Returns lines with the scores of each split, and outputs of the last."""
    report = evaluate(
        translator,
        held_out,
        score=task.scores,
        encode_targets=functools.partial(
            task.encode_targets, translator.vocabulary
        ),
        checks=checks,
    )
    _keep(directory, report)
    lines = [f"Model: {report.model}"]
    for split, scores in report.splits.items():
        score = scores.text[task.primary_score]
        lines.append(
            f"{split} {score.name} {score.value:.2f} ({score.signature})"
        )
    lines += accuracy.as_lines(report.checks)
    pairs = list(held_out.values())[-1]
    outputs = translator([source for source, _ in pairs[:_LINES_SHOWN]])
    for (source, reference), output in zip(pairs, outputs, strict=False):
        lines += [
            "",
            f"  source     {_clipped(source)}",
            f"  reference  {_clipped(reference)}",
            f"  output     {_clipped(output)}",
        ]
    return lines


def _keep(directory: ModelDirectory, report: Report) -> None:
    """Writes scores.json; a full disk must not cost the report itself."""
    try:
        with files.atomic_file(directory.scores) as file:
            file.write(report.as_json())
    except OSError as error:
        logging.warning("Cannot write %s: %s", directory.scores, error)


def _clipped(text: str) -> str:
    more = len(text) - _WIDTH_SHOWN
    return text if more <= 0 else f"{text[:_WIDTH_SHOWN]} ... ({more} more)"
