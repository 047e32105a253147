"""An export goes beside the versions of a model, never into one."""

import pytest

from t2t_lite.errors import InputError
from t2t_lite.serving import checks


@pytest.mark.parametrize("path", ["m/1", "m/1/assets", "m/2", "named"])
def test_a_version_is_no_folder_of_versions(tmp_path, path):
    for version in ("m/1", "named"):
        (tmp_path / version).mkdir(parents=True)
        (tmp_path / version / "saved_model.pb").touch()
    with pytest.raises(InputError, match="give the folder of all versions, "):
        checks.require_folder_of_versions(tmp_path / path)


def test_the_next_version_is_one_that_tf_serving_can_load(tmp_path):
    assert checks.next_version(tmp_path / "none") == 1
    for name in ("9", "10", "x11"):
        (tmp_path / name).mkdir()
    assert checks.next_version(tmp_path) == 11
    (tmp_path / str(2**63 - 1)).mkdir()
    with pytest.raises(InputError, match=r"none above 2\^63 - 1: give an"):
        checks.require_folder_of_versions(tmp_path)


def test_versions_lie_in_any_other_folder(tmp_path):
    checks.require_folder_of_versions(tmp_path / "new")
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "saved_model.pb").touch()
    checks.require_folder_of_versions(tmp_path / "m")
    (tmp_path / "2024").mkdir()
    checks.require_folder_of_versions(tmp_path / "2024")
