"""Curves are written for TensorBoard; a failure does not end the run."""

import logging
import pathlib

import pytest
import tensorflow as tf

from t2t_lite.training.summaries import Summaries


def points(folder):
    """Returns the (curve, step, value) of each point that was written."""
    (path,) = map(str, pathlib.Path(folder).iterdir())
    events = map(
        tf.compat.v1.Event.FromString,
        (r.numpy() for r in tf.data.TFRecordDataset(path)),
    )
    return [
        (value.tag, event.step, tf.make_ndarray(value.tensor).item())
        for event in events
        for value in event.summary.value
    ]


def test_values_become_points_of_their_curves(tmp_path):
    summaries = Summaries(tmp_path / "summaries")
    assert not (tmp_path / "summaries").exists()
    summaries.write(3, {"train/loss": 2.5, "dev/bleu": 20.0})
    summaries.write(4, {"train/loss": 2.0})
    assert points(tmp_path / "summaries") == [
        ("train/loss", 3, 2.5),
        ("dev/bleu", 3, 20.0),
        ("train/loss", 4, 2.0),
    ]


def test_a_perplexity_that_no_float32_holds_is_a_point_at_infinity(tmp_path):
    Summaries(tmp_path).write(1, {"dev/perplexity": 1e300})
    assert points(tmp_path) == [("dev/perplexity", 1, float("inf"))]


def test_a_disk_that_takes_no_curves_ends_no_run(tmp_path, caplog):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    summaries = Summaries(in_the_way / "summaries")
    with caplog.at_level(logging.WARNING, "absl"):
        summaries.write(1, {"train/loss": 2.5})
        summaries.write(2, {"train/loss": 2.5})
    assert caplog.text.count("Cannot write summaries") == 1


def test_without_a_folder_nothing_is_written(monkeypatch):
    monkeypatch.setattr(tf.summary, "create_file_writer", pytest.fail)
    Summaries(None).write(1, {"train/loss": 2.5})
