"""A run's curves are drawn from what it wrote for TensorBoard."""

import logging
import sys

import pytest

from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.training import curves
from t2t_lite.training.curves import draw_curves, read_curves
from t2t_lite.training.summaries import Summaries

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def directory(tmp_path):
    return ModelDirectory(tmp_path)


def write(directory, losses):
    """Writes the losses of one process, given by updates done."""
    summaries = Summaries(directory.summaries)
    for step, loss in losses.items():
        summaries.write(step, {"train/loss": loss})


def test_a_curve_is_what_summaries_wrote(directory):
    summaries = Summaries(directory.summaries)
    summaries.write(10, {"train/loss": 3.0, "train/learning_rate": 0.5})
    summaries.write(20, {"train/loss": 2.5, "dev/bleu": 12.5})
    assert read_curves(directory.summaries) == {
        "train/loss": [(10, 3.0), (20, 2.5)],
        "train/learning_rate": [(10, 0.5)],
        "dev/bleu": [(20, 12.5)],
    }


def test_what_a_resumed_run_did_once_more_counts_once(directory):
    write(directory, {10: 3.0, 20: 2.5, 30: 2.25})
    (first,) = directory.summaries.iterdir()
    # Event files sort by the seconds in their names, so make this one older.
    first.rename(first.with_name("events.out.tfevents.1"))
    write(directory, {20: 2.0, 25: 1.5})
    found = read_curves(directory.summaries)
    assert found == {"train/loss": [(10, 3.0), (20, 2.0), (25, 1.5)]}


def test_the_picture_is_a_png_with_a_panel_for_each_curve(
    directory, monkeypatch
):
    figures, figure_of = [], curves._figure

    def keep(found):
        figures.append(figure_of(found))
        return figures[0]

    monkeypatch.setattr(curves, "_figure", keep)
    summaries = Summaries(directory.summaries)
    for step in (10, 20):
        values = {"train/loss": 3.0, "dev/perplexity": 9.0, "dev/bleu": 20.0}
        speed = {"train/target_tokens_per_second": 100.0}
        summaries.write(step, values | speed)
    draw_curves(directory)
    assert directory.training_picture.read_bytes().startswith(PNG)
    assert [axes.get_title() for axes in figures[0].axes] == [
        "training loss (nats per token)",
        "dev perplexity per token",
        "dev BLEU",
    ]


def test_a_run_of_a_moment_has_no_picture(directory):
    write(directory, {10: 3.0})
    draw_curves(directory)
    assert not directory.training_picture.exists()


def test_without_matplotlib_there_is_no_picture(directory, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(curves.importlib.util, "find_spec", lambda _: None)
    write(directory, {10: 3.0, 20: 2.5})
    draw_curves(directory)
    assert not directory.training_picture.exists()


def test_a_disk_that_takes_no_picture_ends_no_run(directory, caplog):
    write(directory, {10: 3.0, 20: 2.5})
    directory.training_picture.mkdir()
    with caplog.at_level(logging.WARNING, "absl"):
        draw_curves(directory)
    assert f"Cannot write {directory.training_picture}: " in caplog.text


def test_a_matplotlib_that_is_broken_ends_no_run(
    directory, monkeypatch, caplog
):
    write(directory, {10: 3.0, 20: 2.5})
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with caplog.at_level(logging.WARNING, "absl"):
        draw_curves(directory)
    assert f"Cannot write {directory.training_picture}: " in caplog.text
    assert not directory.training_picture.exists()
