"""Checkpoints are complete or absent, and damage costs only one of them."""

import contextlib
import os
import pathlib
import resource

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import InputError
from t2t_lite.storage import checkpoint_files, checkpoints

_DATA = ".data-00000-of-00001"


def tensors_of(step):
    generator = np.random.default_rng(step)
    return {
        "transformer/kernel": generator.normal(size=(3, 5)).astype(np.float32),
        "transformer/bias": generator.normal(size=7).astype(np.float32),
        "adam/momentum": generator.normal(size=(3, 5)).astype(np.float32),
        "step": np.int64(step),
    }


def assert_same(found, expected):
    assert sorted(found) == sorted(expected)
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor)
        assert found[name].dtype == np.asarray(tensor).dtype


def newest(folder):
    """Returns (path, tensors) of the newest readable checkpoint, or None."""
    return next(checkpoints.newest(folder), None)


def names(folder):
    return sorted(path.name for path in pathlib.Path(folder).iterdir())


@pytest.fixture
def folder(tmp_path):
    """A folder with checkpoints of steps 2, 9 and 10."""
    for step in (9, 10, 2):
        checkpoints.write(tmp_path / f"step-{step}", tensors_of(step))
    return tmp_path


# Writing and reading.


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "new" / "folder" / "step-3"
    assert not checkpoint_files.exists(path)
    checkpoints.write(path, tensors_of(3))
    assert checkpoint_files.exists(path)
    assert_same(checkpoints.read(path), tensors_of(3))
    assert names(path.parent) == [f"step-3{_DATA}", "step-3.index"]


def test_variables_tensors_and_numbers_are_written(tmp_path):
    values = {"v": tf.Variable([1.5, 2.5]), "t": tf.constant([[3]]), "n": 4}
    checkpoints.write(tmp_path / "step-1", values | {"v": values["v"].value()})
    found = checkpoints.read(tmp_path / "step-1")
    assert found["v"].tolist() == [1.5, 2.5]
    assert found["t"].tolist() == [[3]]
    assert found["n"] == 4


@pytest.mark.parametrize(
    "name",
    ["a[1]", "a\\b", "a*b", "a?b", "a,b", "a b", "ü→", "a{b}", "step-[1]"],
)
def test_no_path_is_taken_for_a_pattern(tmp_path, monkeypatch, name):
    checkpoints.write(tmp_path / name / name, tensors_of(3))
    assert_same(checkpoints.read(tmp_path / name / name), tensors_of(3))
    monkeypatch.chdir(tmp_path)
    assert_same(checkpoints.read(f"{name}/{name}"), tensors_of(3))


def test_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    checkpoints.write(tmp_path / "step-3", tensors_of(3))
    assert_same(checkpoints.read("~/step-3"), tensors_of(3))


def test_a_checkpoint_is_on_the_disk_before_its_name(tmp_path, monkeypatch):
    events = []

    def fsync(descriptor):
        events.append(os.fstat(descriptor).st_ino)

    def replace(source, target, replace=os.replace):
        events.append("moved")
        replace(source, target)

    monkeypatch.setattr(checkpoints.os, "fsync", fsync)
    monkeypatch.setattr(checkpoints.os, "replace", replace)
    checkpoints.write(tmp_path / "step-1", tensors_of(1))
    inodes = [
        (tmp_path / f"step-1{suffix}").stat().st_ino
        for suffix in (_DATA, ".index")
    ]
    assert events == [*inodes, "moved", "moved", tmp_path.stat().st_ino]


def test_tensorflow_reads_a_checkpoint(tmp_path):
    checkpoints.write(tmp_path / "step-3", tensors_of(3))
    shapes = dict(tf.train.list_variables(str(tmp_path / "step-3")))
    assert shapes["transformer/kernel"] == [3, 5]
    assert set(shapes) == set(tensors_of(3))


def test_writing_again_replaces_a_checkpoint(tmp_path):
    path = tmp_path / "step-3"
    checkpoints.write(path, tensors_of(3))
    checkpoints.write(path, tensors_of(4))
    assert_same(checkpoints.read(path), tensors_of(4))
    assert len(names(tmp_path)) == 2


def test_a_missing_checkpoint_is_called_missing(tmp_path):
    with pytest.raises(InputError, match=r"step-5 is missing"):
        checkpoints.read(tmp_path / "step-5")
    with pytest.raises(InputError, match=r"is missing"):
        checkpoints.read(tmp_path)


# Damage.


def truncate(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


def empty(path):
    path.write_bytes(b"")


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


DAMAGES = [
    (truncate, _DATA),
    (truncate, ".index"),
    (empty, _DATA),
    (empty, ".index"),
    (flip, _DATA),
    (flip, ".index"),
    (pathlib.Path.unlink, _DATA),
]


@pytest.mark.parametrize(("damage", "suffix"), DAMAGES)
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(
    folder, caplog, damage, suffix
):
    damage(folder / f"step-10{suffix}")
    with pytest.raises(InputError, match=r"step-10 is damaged"):
        checkpoints.read(folder / "step-10")
    path, tensors = newest(folder)
    assert path == folder / "step-9"
    assert_same(tensors, tensors_of(9))
    (warning,) = caplog.messages
    assert f"the checkpoint {folder / 'step-10'} is damaged" in warning
    assert warning.endswith("; falling back to the previous checkpoint.")


def test_a_checkpoint_without_its_index_is_passed_over_with_a_warning(
    folder, caplog
):
    (folder / "step-10.index").unlink()
    assert newest(folder)[0] == folder / "step-9"
    (warning,) = caplog.messages
    path = folder / "step-10"
    message = f"the checkpoint {path} is damaged: {path}.index is missing; fall"
    assert warning.startswith(message)


def test_the_only_checkpoint_is_not_forgotten_with_its_index(tmp_path, caplog):
    checkpoints.write(tmp_path / "step-3", tensors_of(3))
    (tmp_path / "step-3.index").unlink()
    with pytest.raises(InputError, match=r"every checkpoint in .* restore its"):
        newest(tmp_path)
    assert f"{tmp_path / 'step-3.index'} is missing" in caplog.text


def test_a_folder_with_damaged_checkpoints_only_is_refused(folder):
    for path in folder.glob(f"*{_DATA}"):
        truncate(path)
    with pytest.raises(InputError, match=r"every checkpoint in .* is damaged"):
        newest(folder)


def test_a_folder_without_checkpoints_has_no_last_one(tmp_path):
    assert newest(tmp_path) is None
    assert newest(tmp_path / "none") is None


def test_the_last_checkpoint_has_the_largest_number(folder):
    path, tensors = newest(folder)
    assert path == folder / "step-10"
    assert_same(tensors, tensors_of(10))


# Failed writes.


@contextlib.contextmanager
def small_files():
    """Keeps files from growing beyond 1000 bytes, as a full disk would.

    This is no fixture, because a fixture would still be active while pytest
    reports the test, and that report may go to a file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_checkpoints_before_and_no_rest(folder):
    before = names(folder)
    large = {"weights": np.ones((401, 7), np.float32)}
    for path in (folder / "step-11", folder / "step-10", folder / "a" / "b"):
        with (
            pytest.raises(InputError, match=f"cannot write .*{path.name}:"),
            small_files(),
        ):
            checkpoints.write(path, large)
    (folder / "a").rmdir()  # Fails unless it is empty.
    assert names(folder) == before
    path, tensors = newest(folder)
    assert path == folder / "step-10"
    assert_same(tensors, tensors_of(10))


@pytest.mark.parametrize("last", [_DATA, ".index"])
def test_a_write_that_stops_between_its_files_leaves_no_checkpoint(
    folder, monkeypatch, last
):
    replace = checkpoints.os.replace

    def replace_but_the_last(source, target):
        if str(target).endswith(last):
            raise OSError("no space left")
        replace(source, target)

    monkeypatch.setattr(checkpoints.os, "replace", replace_but_the_last)
    with pytest.raises(InputError, match="no space left"):
        checkpoints.write(folder / "step-11", tensors_of(11))
    assert not list(folder.glob("step-11*"))
    assert newest(folder)[0] == folder / "step-10"
    assert not list(folder.glob("writing-*"))


@pytest.mark.parametrize("old", [[], [10]])
def test_a_checkpoint_whose_writer_was_killed_between_its_files_is_finished(
    tmp_path, monkeypatch, old
):
    for step in old:
        checkpoints.write(tmp_path / f"step-{step}", tensors_of(9))
    replace = checkpoints.os.replace

    def die_at_the_index(source, target):
        if str(target).endswith(".index"):
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.os, "replace", die_at_the_index)
        patch.setattr(checkpoints.files.shutil, "rmtree", lambda *_, **__: 0)
        with pytest.raises(KeyboardInterrupt):
            checkpoints.write(tmp_path / "step-10", tensors_of(10))
    with pytest.raises(InputError, match="is damaged"):
        newest(tmp_path)
    checkpoints.finish_writing(tmp_path)
    path, tensors = newest(tmp_path)
    assert path == tmp_path / "step-10"
    assert_same(tensors, tensors_of(10))
    checkpoints.prune(tmp_path, 1, path)
    assert names(tmp_path) == [f"step-10{_DATA}", "step-10.index"]


def test_a_checkpoint_that_was_not_begun_to_be_moved_is_not_finished(
    folder,
):
    aside = folder / "writing-step-10-1-2" / "step-10"
    checkpoints.write(aside, tensors_of(3))
    checkpoints.finish_writing(folder)
    checkpoints.finish_writing(folder / "none")
    assert_same(newest(folder)[1], tensors_of(10))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot write the checkpoint"):
        checkpoints.write(tmp_path / "file" / "step-1", tensors_of(1))


# A folder of checkpoints.


def test_paths_are_in_the_order_of_steps(folder):
    expected = [folder / f"step-{step}" for step in (2, 9, 10)]
    assert checkpoint_files.paths(folder) == expected
    assert checkpoint_files.paths(folder / "none") == []


def test_other_files_are_no_checkpoints(folder):
    for name in ("writing-step-11", "step-x", "step-12-old", "last"):
        checkpoints.write(folder / name, tensors_of(1))
    found = [path.name for path in checkpoint_files.paths(folder)]
    assert found == ["step-2", "step-9", "step-10"]


@pytest.mark.parametrize("keep", [1, 2, 3, 4])
def test_prune_keeps_those_with_the_largest_numbers(folder, keep):
    checkpoints.prune(folder, keep, folder / "step-10")
    kept = ["step-2", "step-9", "step-10"][-keep:]
    assert names(folder) == sorted(
        f"{name}{suffix}" for name in kept for suffix in (_DATA, ".index")
    )


def test_prune_removes_those_that_the_run_did_not_go_on_from(folder):
    """After falling back from 10 to 2, the run wrote 9 anew: 10 is stale."""
    checkpoints.prune(folder, 5, folder / "step-9")
    assert [p.name for p in checkpoint_files.paths(folder)] == [
        "step-2",
        "step-9",
    ]


def test_prune_removes_what_was_not_written_to_its_end(folder):
    (folder / "writing-step-11.index").write_bytes(b"half")
    (folder / f"writing-step-11{_DATA}.tempstate123").write_bytes(b"half")
    (folder / f"step-1{_DATA}").write_bytes(b"left behind by its index")
    (folder / "notes.txt").write_text("not ours")
    checkpoints.prune(folder, 1, folder / "step-10")
    assert names(folder) == ["notes.txt", f"step-10{_DATA}", "step-10.index"]


def test_remove_takes_away_both_files(folder):
    checkpoints.remove(folder / "step-9")
    checkpoints.remove(folder / "step-9")
    assert not [name for name in names(folder) if "step-9" in name]
    assert len(names(folder)) == 4


def test_only_the_tensors_that_are_wanted_are_read(folder):
    found = checkpoints.read(folder / "step-9", lambda name: name != "step")
    assert sorted(found) == sorted(tensors_of(9).keys() - {"step"})


# Averages.


def test_an_average_is_the_mean_of_the_newest(folder):
    paths, found = checkpoints.average(checkpoints.newest(folder), 2)
    assert paths == [folder / "step-10", folder / "step-9"]
    for name in ("transformer/kernel", "transformer/bias"):
        parts = [tensors_of(step)[name] for step in (9, 10)]
        mean = np.mean(parts, 0, dtype=np.float64)
        np.testing.assert_array_equal(found[name], mean.astype(np.float32))
        assert found[name].dtype == np.float32


def test_the_average_of_one_checkpoint_is_itself(folder):
    paths, found = checkpoints.average(checkpoints.newest(folder), 1)
    assert paths == [folder / "step-10"]
    assert_same(found, tensors_of(10))


def test_averaging_says_when_there_are_fewer(folder):
    paths, _ = checkpoints.average(checkpoints.newest(folder), 9)
    assert len(paths) == 3


@pytest.mark.parametrize(
    "other",
    [
        {"transformer/kernel": np.ones((5, 3), np.float32)},
        {"transformer/other": np.ones((3, 5), np.float32)},
    ],
)
def test_checkpoints_of_other_models_are_not_averaged(folder, other):
    checkpoints.write(folder / "step-11", other)
    with pytest.raises(
        InputError, match=r"same tensors; .*step-10 and .*step-11"
    ):
        checkpoints.average(checkpoints.newest(folder), 2)


def test_an_average_passes_over_damaged_checkpoints(folder, caplog):
    truncate(folder / f"step-9{_DATA}")
    paths, _ = checkpoints.average(checkpoints.newest(folder), 2)
    assert paths == [folder / "step-10", folder / "step-2"]
    assert "step-9 is damaged" in caplog.text
