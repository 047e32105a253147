"""A run's curves as one picture, training.png, where matplotlib is installed.

They are read from what `Summaries` wrote for TensorBoard, which covers all of a
resumed run.
"""

import importlib.util
import os

import tensorflow as tf
from absl import logging
from tensorboard.backend.event_processing import event_file_loader

from t2t_lite import files
from t2t_lite.storage.model_directory import ModelDirectory

_LABELS = {
    "train/loss": "training loss (nats per token)",
    "train/learning_rate": "learning rate",
    "dev/perplexity": "dev perplexity per token",
    "dev/bleu": "dev BLEU",
    "dev/f1": "dev F1",
}
_PANEL = 4.5, 2.8  # Inches.

Curve = list[tuple[int, float]]  # (updates done, value), in order of updates


def draw_curves(directory: ModelDirectory) -> None:
    """Writes training.png; a failure to write it does not end the run.

    Does nothing without matplotlib, or if no curve has two points.
    """
    if importlib.util.find_spec("matplotlib") is None:
        return
    path = directory.training_picture
    try:
        found = read_curves(directory.summaries)
        curves = {
            tag: found[tag] for tag in _LABELS if len(found.get(tag, [])) > 1
        }
        if curves:
            with files.atomic_file(path, "wb") as file:
                _figure(curves).savefig(file, format="png", dpi=150)
    except (OSError, ImportError, tf.errors.OpError) as error:
        logging.warning("Cannot write %s: %s", path, error)


def read_curves(folder: str | os.PathLike) -> dict[str, Curve]:
    """Returns the Curves that `Summaries` wrote and that are drawn, by name.

    A resumed run repeats some updates; their later points count.
    """
    curves: dict[str, Curve] = {}
    # Sorted by name, they are in the order in which they were created.
    for path in sorted(files.to_path(folder).glob("events.out.tfevents.*")):
        for event in event_file_loader.EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if value.tag not in _LABELS:
                    continue
                curve = curves.setdefault(value.tag, [])
                while curve and curve[-1][0] >= event.step:
                    curve.pop()
                number = float(tf.make_ndarray(value.tensor))
                curve.append((event.step, number))
    return curves


def _figure(curves: dict[str, Curve]):
    """Returns a matplotlib Figure: a panel for each curve, two in a row."""
    # Not pyplot: it looks for a screen.
    from matplotlib.figure import Figure

    num_columns = min(2, len(curves))
    num_rows = -(-len(curves) // num_columns)
    width, height = _PANEL
    figure = Figure((width * num_columns, height * num_rows), layout="tight")
    for n, (tag, curve) in enumerate(curves.items(), start=1):
        axes = figure.add_subplot(num_rows, num_columns, n)
        steps, values = zip(*curve, strict=True)
        axes.plot(steps, values, linewidth=1.2)
        axes.set_title(_LABELS[tag], fontsize="medium")
        axes.set_xlabel("updates")
        axes.grid(alpha=0.3)
    return figure
