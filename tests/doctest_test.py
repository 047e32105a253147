"""Examples in docstrings give the results that they show."""

import doctest
import importlib

import pytest
from imports import MODULES

WITH_EXAMPLES = [
    name for name, path in MODULES.items() if ">>> " in path.read_text("utf-8")
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_run(name, capsys):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted
    assert not results.failed, capsys.readouterr().out
