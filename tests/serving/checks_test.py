"""Paths, names and ports of exports and servers are checked."""

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


def test_a_model_directory_takes_no_versions(tmp_path):
    (tmp_path / "settings.json").touch()
    with pytest.raises(InputError, match="is a model directory: give another"):
        checks.require_folder_of_versions(tmp_path)


def test_versions_lie_in_any_other_folder(tmp_path):
    checks.require_folder_of_versions(tmp_path / "new")
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "saved_model.pb").touch()
    checks.require_folder_of_versions(tmp_path / "m")
    (tmp_path / "2024").mkdir()
    checks.require_folder_of_versions(tmp_path / "2024")


def test_the_newest_version_is_the_one_of_the_largest_number(tmp_path):
    for version in ("9", "10"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "saved_model.pb").touch()
    assert checks.newest_version(tmp_path) == tmp_path / "10"
    assert checks.newest_version(tmp_path / "9") == tmp_path / "9"
    (tmp_path / "11").mkdir()
    with pytest.raises(InputError, match="/11 has no complete version of an"):
        checks.newest_version(tmp_path)


@pytest.mark.parametrize("content", ["none", "empty", "empty/3", "file"])
def test_where_there_is_no_version_none_is_served(tmp_path, content):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "3").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="has no complete version of an exp"):
        checks.newest_version(tmp_path / content)


def test_a_model_is_called_by_its_folder_or_as_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert checks.model_name(None, "runs/multi30k/") == "multi30k"
    assert checks.model_name(None, ".") == tmp_path.name
    assert checks.model_name("a.b_c-1", "runs/x") == "a.b_c-1"
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "saved_model.pb").touch()
    assert checks.model_name(None, "m/1") == checks.model_name(None, "m") == "m"


@pytest.mark.parametrize("name", ["a b", "ä", "a/b", "a:predict", "{a}", ".."])
def test_a_name_that_no_address_can_have_is_refused(name):
    with pytest.raises(InputError, match="give a --name of letters, digi"):
        checks.model_name(name, "runs/x")


@pytest.mark.parametrize("path", ["/", "runs/a folder"])
def test_a_folder_that_gives_no_such_name_asks_for_one(path):
    with pytest.raises(InputError, match="give a --name of letters, digi"):
        checks.model_name(None, path)


def test_a_port_that_is_taken_is_refused():
    with checks.bound_socket(0) as bound:
        port = bound.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on port {port} "):
            checks.bound_socket(port)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_number_that_is_no_port_is_refused(port):
    with pytest.raises(InputError, match="port must be from 0 to 65535"):
        checks.bound_socket(port)
