"""Model directories admit one run at a time and refuse what they cannot use."""

import dataclasses
import fcntl
import itertools
import json
import os

import pytest
from tiny_translator import LINES, learn_vocabulary, write_model

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.storage.model_directory import ModelDirectory, Settings
from t2t_lite.text import learning


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


@pytest.fixture
def directory(tmp_path, vocabulary):
    """A model directory without checkpoints."""
    directory = ModelDirectory(tmp_path)
    vocabulary.save(directory.path / "vocabulary.model")
    directory.save_settings(
        Settings(
            hparams=HParams(),
            corpus={"a": "b"},
            data_sha256="",
            vocabulary_sha256=vocabulary.sha256,
            vocabulary_size=9,
            micro_batch_tokens=9,
        )
    )
    return directory


def test_an_unknown_precision_is_refused(directory):
    message = "must be float32, bfloat16, float16 or int8; received .*'int4'"
    with pytest.raises(InputError, match=message):
        directory.load_model(precision="int4")


def test_only_one_run_is_at_work_in_a_directory(tmp_path):
    path = tmp_path / "model"
    with ModelDirectory(path).locked():
        other = ModelDirectory(path).locked()
        with pytest.raises(InputError, match="another run is using"):
            other.__enter__()
    assert not path.exists()  # Removed, because it was empty.
    with ModelDirectory(path).locked():
        pass


def test_only_one_run_is_at_work_where_folders_cannot_be_locked(
    tmp_path, monkeypatch
):
    flock = fcntl.flock

    def flock_files(descriptor, how):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError("as on NFS")
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock_files)
    with ModelDirectory(tmp_path).locked():
        other = ModelDirectory(tmp_path).locked()
        with pytest.raises(InputError, match="another run is using"):
            other.__enter__()
        assert (tmp_path / "lock").exists()
    assert list(tmp_path.parent.glob(f"{tmp_path.name}/*")) == []


def test_a_folder_in_the_place_of_the_lock_is_refused(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(InputError, match="lock must be a file: remove that"):
        ModelDirectory(tmp_path).locked().__enter__()


def test_version_0_1_0_is_kept_out(tmp_path):
    with (
        ModelDirectory(tmp_path).locked(),
        pytest.raises(InputError, match="taken"),
    ):
        files.locked(tmp_path, "taken").__enter__()


def test_a_directory_that_was_moved_gets_no_second_one(tmp_path):
    directory = ModelDirectory(tmp_path / "model")
    directory.require_in_place()  # No error, because it is not locked.
    with directory.locked():
        directory.require_in_place()
        (directory.path / "file").write_text("")
        os.rename(directory.path, tmp_path / "moved")
        with pytest.raises(InputError, match="was moved or removed during the"):
            directory.require_in_place()
        (tmp_path / "model").mkdir()
        with pytest.raises(InputError, match="new path as --model_dir"):
            directory.require_in_place()
    assert (tmp_path / "model").exists()  # Not the run's own, so it stays.


def test_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ModelDirectory("~/model").path == tmp_path / "model"


def test_the_vocabulary_is_that_of_the_settings(directory, vocabulary):
    assert directory.vocabulary().sha256 == vocabulary.sha256
    learning.learn(LINES, "bpe", 290).save(directory.path / "vocabulary.model")
    with pytest.raises(InputError, match="is not the vocabulary of this model"):
        directory.vocabulary()
    directory.settings_path.unlink()
    assert directory.vocabulary().size == 290


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": ["a"]}, "corpus must be a dict of str to str; received"),
        ({"corpus": {"a": ["b"]}}, "corpus must be a dict of str to str"),
        ({"vocabulary_sha256": ["a"]}, "vocabulary_sha256 must be of type str"),
        ({"vocabulary_size": "9"}, "vocabulary_size must be of type int"),
        ({"hparams": [["task"]]}, "hparams must hold fields"),
    ],
)
def test_settings_of_another_kind_are_refused(directory, changes, message):
    values = json.loads(directory.settings_path.read_text())
    del values["sha256"]
    directory.settings_path.write_text(json.dumps(values | changes))
    with pytest.raises(InputError, match=f"settings.json cannot be.*{message}"):
        directory.settings()


def test_a_flipped_bit_changes_no_setting(directory):
    written = directory.settings_path.read_bytes()
    expected = directory.settings()
    num_refused = 0
    with open(directory.settings_path, "r+b", buffering=0) as file:
        for place, bit in itertools.product(range(len(written)), (0, 2)):
            os.pwrite(file.fileno(), bytes([written[place] ^ 1 << bit]), place)
            try:
                assert directory.settings() == expected, (place, bit)
            except InputError:
                num_refused += 1
            os.pwrite(file.fileno(), written[place : place + 1], place)
    assert num_refused > len(written)
    assert directory.settings() == expected


def test_settings_that_are_too_deep_are_refused(directory):
    directory.settings_path.write_text("[" * 100_000)
    with pytest.raises(InputError, match="its brackets are too deep"):
        directory.settings()


def test_a_run_removes_its_own_leftovers_alone(tmp_path):
    killed = [
        tmp_path / name
        for name in (
            "writing-settings.json-1-0",
            "settings.tmp",
            "tags.npz.tmp",
        )
    ]
    for path in killed:
        path.write_text("half")
    # Another program, such as bin/translate, writes here without the lock.
    with files.atomic_file(tmp_path / "output") as output:
        output.write("all")
        with ModelDirectory(tmp_path).locked():
            assert not any(path.exists() for path in killed)
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
    assert settings.splitting(sentences) == ("en", whole_up_to, False)


def test_an_unknown_way_to_split_lines_is_refused(tmp_path):
    directory = write_model(tmp_path / "m", learn_vocabulary())
    rule = "sentences must be auto, split or whole; received sentences='some'"
    with pytest.raises(InputError, match=rule):
        directory.settings().splitting("some")
