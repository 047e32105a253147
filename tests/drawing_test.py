"""docs/architecture.md explains every wing and draws the actual imports."""

import runpy

import pytest
from paths import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SCRIPT = runpy.run_path(str(ROOT / "docs" / "draw_architecture.py"))


def test_the_drawing_is_of_the_imports():
    renew = "the drawing is stale: run `python docs/draw_architecture.py`"
    assert SCRIPT["drawing"]() in PAGE, renew


@pytest.mark.parametrize("wing", SCRIPT["modules_of_wings"]())
def test_every_wing_is_explained(wing):
    name = SCRIPT["TITLES"].get(wing, wing)
    assert f"`{name}`" in PAGE
