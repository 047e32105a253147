"""bin/visualize_attention: what it writes, and what it refuses."""

import sys

import in_process
import pytest
from refusal import assert_refused
from tiny_translator import LINES, learn_vocabulary, write_model

from t2t_lite.translation.line_translator import Translator


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    return write_model(path, learn_vocabulary()).path


def run(model_dir, *flags, sentence=LINES[1]):
    return in_process.run(
        "visualize_attention",
        f"--model_dir={model_dir}",
        f"--sentence={sentence}",
        *flags,
    )


@pytest.mark.slow
def test_a_page_and_pictures_of_a_sentence(model_dir, tmp_path):
    page, prefix = tmp_path / "page.html", tmp_path / "figure"
    status, out, errors = run(
        model_dir,
        f"--output={page}",
        f"--png_prefix={prefix}",
        "--words",
        "--kind=encoder_decoder",
        "--layer=0",
        "--head=2",
        "--head=0",
    )
    assert (status, out) == (0, ""), errors
    names = ["figure-lines.png", "figure-matrix.png", "page.html"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names[:2]:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    text = page.read_text("utf-8")
    assert '"kind":2,"layer":0,"heads":[2,0]' in text
    assert Translator(model_dir, xla=False)(LINES[1]) in text


GIVEN = "--translation=hill://house runs by the red hill"  # Text, not a URL.


def test_a_page_of_a_translation_that_is_given(model_dir, tmp_path):
    page = tmp_path / "page.html"
    status, _, errors = run(model_dir, f"--output={page}", GIVEN)
    assert status == 0, errors
    assert GIVEN.partition("=")[2] in page.read_text("utf-8")
    assert list(tmp_path.iterdir()) == [page]


# (flags, part of the message)
_FLAGS = [
    ([], "give --output, --png_prefix, or both"),
    (["--sentence= "], "the sentence must have words"),
    (["--layer=2"], "layer must be from 0 to 1"),
    (
        ["--png_token=zebra"],
        "'zebra' is not an attending token in encoder_self",
    ),
    (["--output=/nowhere/at/all"], "cannot write /nowhere/at/all"),
]


@pytest.mark.parametrize(("flags", "message"), _FLAGS)
def test_wrong_flags_get_one_line_and_leave_nothing(
    model_dir, tmp_path, flags, message
):
    outputs = [f"--output={tmp_path}/page.html", f"--png_prefix={tmp_path}/p"]
    found = run(model_dir, GIVEN, *(outputs if flags else []), *flags)
    assert_refused(found, message)
    assert not list(tmp_path.iterdir())


def test_a_token_for_pictures_that_are_not_drawn_is_refused(
    model_dir, tmp_path
):
    found = run(
        model_dir, GIVEN, f"--output={tmp_path}/page.html", "--png_token=dog"
    )
    assert_refused(
        found, "--png_token has no effect alone: give --png_prefix too"
    )


def test_pictures_without_matplotlib_say_what_to_install(
    model_dir, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    flags = [model_dir, GIVEN, f"--output={tmp_path}/page.html"]
    found = run(*flags, f"--png_prefix={tmp_path}/p")
    assert_refused(found, "pip install -e '.[figures]'")
    assert not (tmp_path / "page.html").exists()
    status, _, errors = run(*flags)
    assert status == 0, errors
