"""The settings of a run are read, and no output overwrites what is beside."""

import json

import pytest

from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.storage import settings_file

HPARAMS = {"d_model": 16, "task": "parsing"}


def write(folder, **values):
    (folder / "settings.json").write_text(json.dumps(values))


def test_settings_are_read_with_their_hparams(tmp_path):
    write(tmp_path, hparams=HPARAMS, corpus={"data": "wmt14"})
    found = settings_file.read(tmp_path)
    assert found["hparams"] == HParams(**HPARAMS)
    assert settings_file.corpus_of(str(tmp_path)) == {"data": "wmt14"}
    write(tmp_path, hparams={})
    assert settings_file.corpus_of(tmp_path) == {}


def test_what_is_written_is_read(tmp_path):
    values = {"hparams": HPARAMS, "corpus": {"data": "für"}, "share": 1e-9}
    settings_file.write(tmp_path, values)
    found = settings_file.read(tmp_path)
    assert found == values | {"hparams": HParams(**HPARAMS)}


def test_an_edited_value_is_refused_until_the_checksum_is_removed(tmp_path):
    path = tmp_path / "settings.json"
    settings_file.write(tmp_path, {"hparams": {"length_penalty": 0.6}})
    values = json.loads(path.read_text())
    values["hparams"]["length_penalty"] = 0.7
    path.write_text(json.dumps(values))
    with pytest.raises(InputError) as error:
        settings_file.read(tmp_path)
    assert str(error.value) == (
        f"{path} was edited or is damaged: restore it from a backup, or remove "
        'its "sha256" to use it as it is'
    )
    del values["sha256"]
    path.write_text(json.dumps(values))
    assert settings_file.read(tmp_path)["hparams"].length_penalty == 0.7


def test_neither_order_nor_layout_is_part_of_the_settings(tmp_path):
    path = tmp_path / "settings.json"
    settings_file.write(tmp_path, {"hparams": HPARAMS, "corpus": {"a": "b"}})
    expected = settings_file.read(tmp_path)
    reversed_values = dict(reversed(json.loads(path.read_text()).items()))
    path.write_text(json.dumps(reversed_values))
    assert settings_file.read(tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be used"),
        ("[1]", "it has no hparams"),
        ("{}", "it has no hparams"),
        ('{"hparams": {}, "corpus": ["a"]}', "corpus must be a dict of str"),
        ('{"hparams": {}, "corpus": {"a": 1}}', "corpus must be a dict of str"),
    ],
)
def test_settings_that_are_none_are_refused(tmp_path, text, message):
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(InputError, match=message):
        settings_file.read(tmp_path)


def test_a_model_is_for_its_task_alone(tmp_path):
    write(tmp_path, hparams=HPARAMS)
    settings_file.require_task(tmp_path, "parsing")
    with pytest.raises(InputError, match=r"trained for parsing; .*translation"):
        settings_file.require_task(tmp_path, "translation")


def test_a_run_starts_in_no_folder_of_another_program(tmp_path):
    settings_file.require_own(tmp_path)
    write(tmp_path, hparams={})
    settings_file.require_own(tmp_path)
    write(tmp_path, editor="dark")
    with pytest.raises(InputError, match="was not written by a training run"):
        settings_file.require_own(tmp_path)
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "saved_model.pb").touch()
    with pytest.raises(
        InputError, match=r"is an export, with .*/3/saved_model"
    ):
        settings_file.require_own(tmp_path)


def test_no_output_overwrites_a_part_of_a_model(tmp_path, monkeypatch):
    model_dir, other = tmp_path / "run", tmp_path / "other"
    (model_dir / "best").mkdir(parents=True)
    other.mkdir()
    (tmp_path / "link").symlink_to(model_dir)
    monkeypatch.chdir(model_dir)
    for output in (
        model_dir / "settings.json",
        "vocabulary.model",
        tmp_path / "link" / "best" / "out",
        other / ".." / "run" / "tags.npz",
    ):
        for folders in (model_dir, [str(other), str(model_dir)]):
            with pytest.raises(
                InputError, match="part of the model being read"
            ):
                settings_file.require_no_output_in(folders, None, str(output))
    settings_file.require_no_output_in(
        model_dir, "out.txt", str(other / "settings.json"), None
    )
