"""When checkpoints are saved, which are kept, and where a run starts."""

import types

import numpy as np
import pytest

from t2t_lite.errors import InputError
from t2t_lite.storage import checkpoint_files, checkpoints
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.training import checkpointing
from t2t_lite.training.checkpointing import Checkpointer, read_warm_start
from t2t_lite.training.options import RunOptions


@pytest.fixture
def directory(tmp_path):
    return ModelDirectory(tmp_path / "model")


def make(directory, average_last=2, **options):
    return Checkpointer(directory, RunOptions(**options), average_last)


def save(checkpointer, *steps, is_stop=False):
    for step in steps:
        tensors = {"step": np.int64(step), "weight": np.float32(step)}
        checkpointer.save(step, tensors, is_stop)
        checkpointer.note_saved(step)


def kept(directory):
    return [path.name for path in checkpoint_files.paths(directory.checkpoints)]


def test_a_number_of_steps_takes_the_place_of_minutes(directory):
    by_steps = make(directory, save_every_steps=3, save_every_minutes=0)
    assert [n for n in range(1, 8) if by_steps.is_due(n)] == [3, 6]


@pytest.mark.parametrize(("minutes", "expected"), [(2, 2), (None, 10)])
def test_minutes_count_from_the_last_checkpoint(
    directory, monkeypatch, minutes, expected
):
    now = 1000.0
    clock = types.SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(checkpointing, "time", clock)
    by_minutes = make(directory, save_every_minutes=minutes)
    now += 60 * expected - 1
    assert not by_minutes.is_due(7)
    now += 1
    assert by_minutes.is_due(7)
    by_minutes.note_saved(7)
    assert not by_minutes.is_due(8)


@pytest.mark.parametrize(
    ("average_last", "keep_last", "expected"),
    [
        (3, None, ["step-2", "step-3", "step-4"]),
        (1, None, ["step-3", "step-4"]),
        (3, 1, ["step-4"]),
    ],
)
def test_as_many_are_kept_as_are_averaged_and_at_least_two(
    directory, average_last, keep_last, expected
):
    save(make(directory, average_last, keep_last=keep_last), 1, 2, 3, 4)
    assert kept(directory) == expected


def test_a_run_goes_back_to_one_that_no_signal_made(directory):
    checkpointer = make(directory)
    save(checkpointer, 3)
    save(checkpointer, 5, is_stop=True)
    path, _ = make(directory).restore(goes_back=True)
    assert path.name == "step-3"
    assert kept(directory) == ["step-3"]


def test_a_run_goes_back_to_the_best_before_one_that_a_signal_made(directory):
    checkpointer = make(directory)
    checkpointer.save_best(2, {"step": np.int64(2)})
    save(checkpointer, 5, is_stop=True)
    path, _ = make(directory).restore(goes_back=True)
    assert path.parent == directory.best
    assert kept(directory) == []


def test_a_run_goes_back_to_the_one_that_a_signal_made_if_it_is_alone(
    directory,
):
    checkpointer = make(directory)
    save(checkpointer, 5, is_stop=True)
    goes_back = make(directory)
    path, _ = goes_back.restore(goes_back=True)
    assert path.name == "step-5"
    save(goes_back, 6)
    assert kept(directory) == ["step-6"]


def test_what_a_signal_made_before_a_run_went_back_is_forgotten(directory):
    """Otherwise the new checkpoint of the same step would be removed."""
    checkpointer = make(directory)
    save(checkpointer, 3)
    save(checkpointer, 5, is_stop=True)
    resumed = make(directory)
    resumed.restore()
    resumed.restore(goes_back=True)
    save(resumed, 5)
    assert kept(directory) == ["step-3", "step-5"]


def test_one_that_a_signal_made_goes_once_there_is_another(directory):
    first = make(directory)
    save(first, 3)
    save(first, 5, is_stop=True)
    resumed = make(directory)
    path, tensors = resumed.restore()
    assert (path.name, tensors["weight"]) == ("step-5", 5.0)
    assert resumed.saved_step == 5
    assert kept(directory) == ["step-3", "step-5"]
    save(resumed, 6)
    assert kept(directory) == ["step-3", "step-6"]
    assert make(directory).restore()[0].name == "step-6"


def test_without_a_checkpoint_there_is_nothing_to_restore(directory):
    assert make(directory).restore() is None


@pytest.mark.parametrize("step", [None, -1, np.arange(3), np.nan])
def test_a_checkpoint_without_its_step_is_not_resumed(directory, step):
    tensors = {"weight": 1.0} if step is None else {"step": step}
    checkpoints.write(directory.checkpoints / "step-1", tensors)
    with pytest.raises(InputError, match="does not record its step"):
        make(directory).restore()


def test_the_best_takes_the_place_of_the_best_before(directory):
    checkpointer = make(directory)
    for step in (2, 7):
        checkpointer.save_best(step, {"step": np.int64(step)})
    (path,) = checkpoint_files.paths(directory.best)
    assert path.name == "step-7"


@pytest.mark.parametrize("how", ["save", "save_best"])
def test_a_directory_that_was_moved_gets_no_checkpoint(
    directory, tmp_path, how
):
    with directory.locked():
        directory.checkpoints.mkdir()
        directory.path.rename(tmp_path / "moved")
        arguments = (3, {"step": np.int64(3)}, *[False] * (how == "save"))
        with pytest.raises(InputError, match="was moved or removed during the"):
            getattr(make(directory), how)(*arguments)
    assert not directory.path.exists()


def test_a_warm_start_finds_home(directory, monkeypatch):
    monkeypatch.setenv("HOME", str(directory.path))
    path = directory.checkpoints / "step-3"
    checkpoints.write(path, {"transformer/a": np.ones(2, np.float32)})
    for start in ("~", "~/checkpoints/step-3.index"):
        assert read_warm_start(start)[1].keys() == {"transformer/a"}


def test_a_warm_start_takes_the_weights_alone(directory):
    path = directory.checkpoints / "step-3"
    weights = {"transformer/a": np.ones(2, np.float32)}
    checkpoints.write(path, weights | {"step": np.int64(3)})
    for start in (directory.path, path, f"{path}.index"):
        _, found = read_warm_start(str(start))
        assert found.keys() == weights.keys()
    assert read_warm_start(None) is None


def test_a_warm_start_from_another_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="--warm_start_from must be a model"):
        read_warm_start(str(tmp_path))


def test_a_warm_start_from_weights_that_are_not_finite_is_refused(directory):
    path = directory.checkpoints / "step-3"
    checkpoints.write(path, {"transformer/a": np.array([1.0, np.nan])})
    for start in (directory.path, path, f"{path}.index"):
        with pytest.raises(InputError, match="step-3 are not finite, such as"):
            read_warm_start(str(start))


@pytest.mark.parametrize("name", ["step", "best_score", "training_flops"])
def test_a_checkpoint_with_a_matrix_for_a_number_is_not_resumed(
    directory, name
):
    tensors = {"step": np.int64(3), name: np.ones((2, 2))}
    checkpoints.write(directory.checkpoints / "step-3", tensors)
    with pytest.raises(InputError, match=r"step-3(, which does| is damaged)"):
        make(directory).restore()


def test_a_run_goes_on_from_a_first_checkpoint_that_a_kill_left_in_two_places(
    directory,
):
    save(make(directory), 3)
    index = directory.checkpoints / "step-3.index"
    aside = directory.checkpoints / "writing-step-3-1-2"
    aside.mkdir()
    index.rename(aside / index.name)
    path, tensors = make(directory).restore()
    assert (path.name, tensors["weight"]) == ("step-3", 3.0)


def test_a_run_without_a_checkpoint_goes_on_from_its_best(directory):
    first = make(directory)
    assert first.restore() is None
    first.save_best(3, {"step": np.int64(3)})
    path, _ = make(directory).restore()
    assert path == directory.best / "step-3"
    save(first, 4)
    path, _ = make(directory).restore()
    assert path == directory.checkpoints / "step-4"
