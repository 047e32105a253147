"""bin/visualize_attention as a user runs it."""

import binaries
import pytest
from tiny_translator import LINES, learn_vocabulary, write_model

from t2t_lite.decoding.translation import Translator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    return write_model(path, learn_vocabulary()).path


def run(model_dir, *flags, sentence=LINES[1], **changes):
    return binaries.run(
        "visualize_attention",
        f"--model_dir={model_dir}",
        f"--sentence={sentence}",
        *flags,
        **changes,
    )


def test_a_page_and_pictures_of_a_sentence(model_dir, tmp_path):
    page, prefix = tmp_path / "page.html", tmp_path / "figure"
    status, out, errors = run(
        *(model_dir, f"--output={page}", f"--png_prefix={prefix}", "--words"),
        *("--kind=encoder_decoder", "--layer=0", "--head=2", "--head=0"),
    )
    assert (status, out) == (0, ""), errors
    names = ["figure-lines.png", "figure-matrix.png", "page.html"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names[:2]:
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    text = page.read_text("utf-8")
    assert '"kind":2,"layer":0,"heads":[2,0]' in text
    assert Translator(model_dir, xla=False)(LINES[1]) in text


def test_a_page_of_a_translation_that_is_given(model_dir, tmp_path):
    page = tmp_path / "page.html"
    given = "the house runs by the red hill"
    status, _, errors = run(
        model_dir, f"--output={page}", f"--translation={given}"
    )
    assert status == 0, errors
    assert given in page.read_text("utf-8")
    assert list(tmp_path.iterdir()) == [page]


# (flags, what the one line says)
_FLAGS = [
    ([], "give --output, --png_prefix, or both"),
    (["--sentence= "], "the sentence must have words"),
    (["--layer=2"], "layer must be from 0 to 1"),
    (["--png_token=zebra"], "no token 'zebra' attends in encoder_self"),
    (["--output=/nowhere/at/all"], "cannot write /nowhere/at/all"),
]


@pytest.mark.parametrize(("flags", "message"), _FLAGS)
def test_wrong_flags_get_one_line_and_leave_nothing(
    model_dir, tmp_path, flags, message
):
    outputs = [f"--output={tmp_path}/page.html", f"--png_prefix={tmp_path}/p"]
    refused(message, run(model_dir, *(outputs if flags else []), *flags))
    assert not list(tmp_path.iterdir())


def test_pictures_without_matplotlib_say_what_to_install(model_dir, tmp_path):
    hidden = "import sys; sys.modules['matplotlib'] = None"
    (tmp_path / "sitecustomize.py").write_text(hidden)
    flags = [model_dir, f"--output={tmp_path}/page.html"]
    environment = {"PYTHONPATH": str(tmp_path)}
    found = run(*flags, f"--png_prefix={tmp_path}/p", **environment)
    refused("pip install -e '.[figures]'", found)
    assert not (tmp_path / "page.html").exists()
    status, _, errors = run(*flags, **environment)
    assert status == 0, errors


def refused(message, found):
    status, _, errors = found
    assert status == 1, errors
    said = [line for line in errors.split("\n") if line.startswith("error: ")]
    assert len(said) == 1, errors
    assert message in said[0]
    assert "Traceback" not in errors
