"""The checkpoints that a command asks for are found by their files' names."""

import pytest

from t2t_lite.errors import InputError
from t2t_lite.storage import checkpoint_files
from t2t_lite.storage.checkpoint_files import DATA, INDEX


@pytest.fixture
def model_dir(tmp_path):
    """A folder with checkpoints 2, 9 and 10, and 11 without its index."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    for name in ("step-9", "step-10", "step-2"):
        for suffix in (DATA, INDEX):
            (folder / f"{name}{suffix}").touch()
    (folder / f"step-11{DATA}").touch()
    for name in ("step-x.index", "step-12-old.index", "writing-step-13.index"):
        (folder / name).touch()
    return tmp_path


def names(paths):
    return [path.name for path in paths]


def test_checkpoints_are_in_the_order_of_their_steps(model_dir):
    folder = model_dir / "checkpoints"
    whole = ["step-2", "step-9", "step-10"]
    assert names(checkpoint_files.paths(folder)) == whole
    candidates = checkpoint_files.candidate_paths(folder)
    assert names(candidates) == [*whole, "step-11"]


def test_the_newest_are_asked_for_first(model_dir):
    def found(*arguments):
        paths = checkpoint_files.requested_paths(model_dir, *arguments)
        return names(paths)

    assert found() == ["step-10"]
    assert found("last", 2) == ["step-10", "step-9"]
    assert found("last", 9) == ["step-10", "step-9", "step-2"]
    assert found("best") == []
    path = model_dir / "checkpoints" / "step-2"
    assert found(path) == found(f"{path}.index") == ["step-2"]
    assert found(path.with_name("step-3")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("best",), "no checkpoint in best/: train first, or choose another"),
        (("averaged",), "no checkpoint in averaged/: run .*average_checkpoin"),
        (("last", 5), "keeps 4 checkpoints, too few to average the last 5"),
        (("best", 2), "give --average_last or --checkpoint=best, not both"),
        (("last", 0), "average_last must be at least 1"),
        (("nowhere/step-1",), "the checkpoint nowhere/step-1 is missing"),
    ],
)
def test_checkpoints_that_are_not_there_are_refused(
    model_dir, arguments, message
):
    checkpoint_files.require(model_dir, "last", 4)
    with pytest.raises(InputError, match=message):
        checkpoint_files.require(model_dir, *arguments)


def test_a_damaged_checkpoint_says_what_it_lacks(model_dir):
    path = model_dir / "checkpoints" / "step-11"
    assert checkpoint_files.damage(path) == (
        f"the checkpoint {path} is damaged: {path}.index is missing"
    )
