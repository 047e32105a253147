"""Model directories: one run at a time, and no choice that is ignored."""

import pytest

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
