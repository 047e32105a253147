"""Examples in docstrings give the results that they show."""

import doctest
import importlib
import sys

import pytest
from imports import MODULES
from paths import ROOT

# Of modules that are in no package.
FOLDERS = [ROOT / "docs", ROOT / "tests" / "helpers", ROOT / "tests/benchmarks"]
PATHS = MODULES | {
    path.stem: path for folder in FOLDERS for path in folder.glob("*.py")
}
WITH_EXAMPLES = [
    name for name, path in PATHS.items() if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_run(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*map(str, FOLDERS), *sys.path])
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted
    assert not results.failed, capsys.readouterr().out
