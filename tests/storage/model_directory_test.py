"""Model directories: one run at a time, and no choice that is ignored."""

import dataclasses

import pytest
from tiny_translator import learn_vocabulary, write_model

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.storage.model_directory import ModelDirectory


def test_only_one_run_is_at_work_in_a_directory(tmp_path):
    path = tmp_path / "model"
    with ModelDirectory(path).locked():
        other = ModelDirectory(path).locked()
        with pytest.raises(InputError, match="another run is at work in"):
            other.__enter__()
    assert not path.exists()  # For nothing was written there.
    with ModelDirectory(path).locked():
        pass


def test_a_run_removes_its_own_leftovers_alone(tmp_path):
    killed = tmp_path / "writing-settings.json-1-0"
    killed.write_text("half")
    # Another program, such as bin/translate, needs no lock for its output.
    with files.atomic_file(tmp_path / "output") as output:
        output.write("all")
        with ModelDirectory(tmp_path).locked():
            assert not killed.exists()
    assert (tmp_path / "output").read_text() == "all"


@pytest.mark.parametrize("which", ["best", "averaged", "step-3"])
def test_an_average_is_of_the_last_ones_only(tmp_path, which):
    with pytest.raises(InputError, match=f"--checkpoint={which}, not both"):
        ModelDirectory(tmp_path).weights(which, average_last=3)


@pytest.mark.parametrize(
    ("which", "remedy"),
    [
        ("last", "train first"),
        ("best", "train first"),
        ("averaged", "run bin/average_checkpoints"),
    ],
)
def test_a_missing_checkpoint_is_named_with_its_remedy(tmp_path, which, remedy):
    with pytest.raises(InputError, match=remedy):
        ModelDirectory(tmp_path).weights(which)


@pytest.mark.parametrize(
    ("sentences", "figures", "whole_up_to"),
    [
        ("auto", {}, 0),
        ("auto", {"multi_sentence_share": 0.009, "long_line_tokens": 17}, 0),
        ("auto", {"multi_sentence_share": 0.01, "long_line_tokens": 17}, 17),
        ("split", {"multi_sentence_share": 0.5, "long_line_tokens": 17}, 0),
        ("whole", {"multi_sentence_share": 0.0, "long_line_tokens": 17}, 23),
    ],
)
def test_lines_are_split_by_what_the_model_was_trained_on(
    tmp_path, sentences, figures, whole_up_to
):
    directory = write_model(tmp_path / "m", learn_vocabulary())
    figures["source_language"] = "en"
    settings = dataclasses.replace(directory.settings(), **figures)
    assert settings.splitting(sentences) == ("en", whole_up_to)


def test_an_unknown_way_to_split_lines_is_refused(tmp_path):
    directory = write_model(tmp_path / "m", learn_vocabulary())
    rule = "sentences must be auto, split or whole; received sentences='some'"
    with pytest.raises(InputError, match=rule):
        directory.settings().splitting("some")
