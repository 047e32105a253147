"""The README's Python runs as it stands there."""

import pathlib
import re

import pytest
from readme import README, example_with
from tiny_translator import LINES, TINY, learn_vocabulary, write_model

from t2t_lite.decoding.translation import Translator


@pytest.fixture
def model_dir(tmp_path, monkeypatch):
    """Makes runs/multi30k, five checkpoints in it, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("runs").mkdir()
    path = pathlib.Path("runs/multi30k")
    write_model(path, learn_vocabulary(), TINY, range(5))
    return path


def test_the_pipeline_translates_a_file(model_dir, capsys):
    pathlib.Path("some.en").write_text("".join(f"{n}\n" for n in LINES))
    exec(example_with("TextLineDataset"), {})
    translator = Translator(model_dir, average_last=5, xla=False)
    expected = translator(["A dog runs.", *LINES])
    assert capsys.readouterr().out == "".join(f"{n}\n" for n in expected)


def test_the_steps_of_a_pipeline_train_a_model(model_dir):
    names = {}
    exec(example_with("teacher_forced"), names)
    first, last = names["history"].history["loss"]
    assert last < first


def test_the_classifier_beats_chance(capsys):
    names = {}
    exec(example_with("keras.layers.Dense"), names)
    answers = names["is_more"][-400:]
    chance = max(answers.mean(), 1 - answers.mean())
    assert names["history"].history["val_accuracy"][-1] > chance + 0.1


def test_every_file_that_the_readme_shows_or_links_to_is_there():
    text = README.read_text("utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    paths = re.findall(r"\]\((?!https?:|#)([^)#]+)", prose)
    paths += re.findall(r'src="([^"]+)"', text)
    assert len(paths) > 3
    assert [p for p in paths if not (README.parent / p).exists()] == []
    assert re.findall(r"@[A-Z_]+@", text) == []
