"""What a run takes from an earlier one if flags do not say."""

import dataclasses
import json
import os
import pathlib

import pytest

from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.storage import settings_file
from t2t_lite.training.resuming import PreviousRun, read_previous_run

HPARAMS = HParams(d_ff=24)
CORPUS = {"train_source": "/a.en", "train_target": "/a.de"}


def test_a_run_goes_on_with_the_settings_and_the_text_of_its_directory(
    tmp_path,
):
    values = {"hparams": dataclasses.asdict(HPARAMS), "corpus": CORPUS}
    (tmp_path / "settings.json").write_text(json.dumps(values))
    assert read_previous_run(str(tmp_path)) == PreviousRun(HPARAMS, CORPUS)


@pytest.mark.parametrize("text", [None, "{", "[]", "{}"])
def test_without_settings_nothing_was_begun(tmp_path, text):
    if text is not None:
        pathlib.Path(tmp_path, "settings.json").write_text(text)
    assert (
        read_previous_run(str(tmp_path))
        == read_previous_run(None)
        == PreviousRun()
    )


@pytest.mark.parametrize("corpus", [["a"], {"corpus": ["a"]}])
def test_a_corpus_of_another_type_counts_as_none(tmp_path, corpus):
    values = {"hparams": dataclasses.asdict(HPARAMS), "corpus": corpus}
    (tmp_path / "settings.json").write_text(json.dumps(values))
    assert read_previous_run(str(tmp_path)) == PreviousRun()


def test_edited_settings_do_not_count_as_none(tmp_path):
    settings_file.write(tmp_path, {"hparams": {}, "corpus": CORPUS})
    path = tmp_path / "settings.json"
    path.write_text(path.read_text().replace("/a.en", "/b.en"))
    for previous in ((str(tmp_path),), (None, str(tmp_path))):
        with pytest.raises(InputError, match=r'remove its "sha256" to use it'):
            read_previous_run(*previous)


def test_what_is_no_folder_is_refused(tmp_path):
    paths = [tmp_path / name for name in ("file", "pipe", "link")]
    paths[0].touch()
    os.mkfifo(paths[1])
    paths[2].symlink_to("nowhere")
    for path in paths:
        with pytest.raises(InputError, match=f"a folder; {path} is not one"):
            read_previous_run(str(path))
        with pytest.raises(InputError, match=f"{path} in its path is not one"):
            read_previous_run(str(path / "run"))


def test_a_new_run_does_not_cool_down_as_the_one_that_it_starts_from(tmp_path):
    cooled = dataclasses.replace(HPARAMS, cooldown_steps=20)
    values = {"hparams": dataclasses.asdict(cooled), "corpus": CORPUS}
    (tmp_path / "settings.json").write_text(json.dumps(values))
    assert read_previous_run(str(tmp_path)).hparams == cooled
    assert read_previous_run(None, str(tmp_path)) == PreviousRun(HPARAMS)
