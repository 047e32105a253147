"""Python examples in README.md and docs/ run as written; links have targets."""

import pathlib
import re

import pytest
from readme import PAGES, ROOT, example_with
from tiny_translator import LINES, ONE_LAYER, learn_vocabulary, write_model

import t2t_lite


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with runs/multi30k, a model with random weights."""
    path = tmp_path_factory.mktemp("user")
    (path / "runs").mkdir()
    write_model(
        path / "runs/multi30k", learn_vocabulary(), ONE_LAYER, seeds=range(10)
    )
    return path


@pytest.fixture(autouse=True)
def _in_the_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.mark.slow
def test_the_pipeline_translates_a_file(capsys):
    pathlib.Path("some.en").write_text("".join(f"{n}\n" for n in LINES))
    names = {}
    exec(example_with("TextLineDataset"), names)
    printed = capsys.readouterr().out
    expected = names["translator"](["A dog runs.", *LINES])
    assert printed == "".join(f"{line}\n" for line in expected)


@pytest.mark.slow
def test_the_steps_of_a_pipeline_train_a_model():
    names = {}
    exec(example_with("teacher_forced"), names)
    first, last = names["history"].history["loss"]
    assert last < first
    assert isinstance(names["translator"]("A dog runs."), str)


@pytest.mark.slow
def test_the_classifier_beats_chance():
    names = {}
    exec(example_with("keras.layers.Dense"), names)
    answers = names["is_more"][-400:]
    chance = max(answers.mean(), 1 - answers.mean())
    assert names["history"].history["val_accuracy"][-1] > chance + 0.1


def prose(page):
    """Returns the text of a page without its code blocks."""
    return re.sub(
        r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S
    )


def links(page):
    """Yields (path, anchor) for each link to a file or within the page."""
    text = prose(page)
    found = re.findall(r"\]\((?!https?:)([^)\s]+)\)", text)
    found += re.findall(r'(?:src|href)="(?!https?:)([^"]+)"', text)
    for link in found:
        path, _, anchor = link.partition("#")
        yield (page.parent / path if path else page), anchor


def anchors(page):
    """Returns the anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_picture_of_a_page_is_there(page):
    for path, anchor in links(page):
        assert path.exists(), path
        if anchor:
            assert anchor in anchors(path)
    assert re.findall(r"@[A-Z_]+@", page.read_text("utf-8")) == []


_MODULE = re.compile(r"\w[\w/]*\.py\b")
_HOMES = [ROOT, ROOT / "t2t_lite", ROOT / "tests/benchmarks"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_that_a_page_names_is_there(page):
    paths = _MODULE.findall(page.read_text("utf-8"))
    missing = [p for p in paths if not any((h / p).exists() for h in _HOMES)]
    assert missing == []


def test_the_library_page_has_every_public_name():
    text = (ROOT / "docs/library.md").read_text("utf-8")
    missing = [n for n in t2t_lite.__all__ if f"`{n}`" not in text]
    assert missing == []


def test_the_readme_leads_to_every_page():
    linked = {path.resolve() for path, _ in links(PAGES[0])}
    assert [p.name for p in PAGES[1:] if p.resolve() not in linked] == []
