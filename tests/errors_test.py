"""A missing package is named, with the command that installs it."""

import sys
import tomllib

import pytest
from paths import ROOT

from t2t_lite import errors

EXTRAS = [
    "corpora",
    "ctranslate2",
    "figures",
    "formats",
    "serve",
    "serving",
    "torch",
]


def test_a_module_that_is_installed_is_enough_and_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    errors.require_extra("wave", "figures")
    assert "wave" not in sys.modules


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_module_is_named_with_the_command_for_a_checkout(extra):
    with pytest.raises(errors.InputError) as raised:
        errors.require_extra("no_such_package.part", extra)
    line = str(raised.value)
    assert "needs no_such_package.part, which is not installed" in line
    assert line.endswith(f": pip install -e '.[{extra}]'")
    assert "\n" not in line


def test_an_installed_package_names_itself(monkeypatch, tmp_path):
    installed = tmp_path / "site-packages" / "t2t_lite" / "errors.py"
    monkeypatch.setattr(errors, "__file__", str(installed))
    with pytest.raises(
        errors.InputError, match=r"install 't2t_lite\[serving]'"
    ):
        errors.require_extra("no_such_package", "serving")


def test_what_else_can_be_done_is_said():
    otherwise = "leave out --png_prefix"
    with pytest.raises(errors.InputError, match=rf"]', or {otherwise}$"):
        errors.require_extra("no_such_package", "figures", otherwise)


def test_programs_are_called_as_the_user_calls_them(monkeypatch, tmp_path):
    assert errors.program("train") == "bin/train"
    installed = tmp_path / "site-packages" / "t2t_lite" / "errors.py"
    monkeypatch.setattr(errors, "__file__", str(installed))
    assert errors.program("train") == "t2t-lite train"


def test_the_extras_are_those_of_pyproject():
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = metadata["project"]["optional-dependencies"]
    assert set(errors._EXTRAS) == set(EXTRAS) <= set(extras)
