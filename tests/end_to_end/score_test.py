"""bin/score gives each pair of lines its log probability."""

import json

import in_process
import pytest
from paths import ROOT
from refusal import assert_refused

GOLDEN = ROOT / "tests" / "golden" / "0.1.0"


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text, "utf-8")
        return path

    return write


def score(*flags, model="translation"):
    return in_process.run("score", f"--model_dir={GOLDEN / model}", *flags)


def test_a_line_for_each_pair_and_json_for_its_tokens(write, tmp_path):
    source, target = write("en", "two cats\n\na dog\n"), write("de", "a\nb\n\n")
    flags = [f"--source={source}", f"--target={target}"]
    status, out, errors = score(*flags)
    assert status == 0, errors
    numbers = [*map(float, out.splitlines())]
    assert len(numbers) == 3
    assert max(numbers) < 0
    output = tmp_path / "scores"
    status, out, errors = score(*flags, "--tokens", f"--output={output}")
    assert (status, out) == (0, ""), errors
    objects = [*map(json.loads, output.read_text("utf-8").splitlines())]
    for number, found in zip(numbers, objects, strict=True):
        assert found["log_probability"] == pytest.approx(number, abs=1e-5)
        tokens, each = zip(*found["tokens"], strict=True)
        assert tokens[-1] == "</s>"
        assert sum(each) == pytest.approx(number, abs=1e-5)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("one\n", "received 2 lines in"),
        ("", "is empty; it must hold a sentence per line"),
        (None, "cannot be read: No such file"),
    ],
)
def test_what_does_not_pair_is_refused(write, tmp_path, target, message):
    source, path = write("en", "one\ntwo\n"), tmp_path / "de"
    if target is not None:
        write("de", target)
    output = tmp_path / "out"
    flags = f"--source={source}", f"--target={path}", f"--output={output}"
    assert_refused(score(*flags), message)
    assert not output.exists()


def test_trees_are_scored_and_other_text_refused(write):
    source = write("words", "It runs .\n")
    tree = write("trees", "(S (NP (PRP It)) (VP (VBZ runs)) (. .))\n")
    flags = [f"--source={source}", f"--target={tree}"]
    status, out, errors = score(*flags, model="parsing")
    assert status == 0, errors
    assert float(out) < 0
    other = [f"--source={source}", f"--target={source}"]
    message = "the word 'It' stands outside of any tree"
    assert_refused(score(*other, model="parsing"), message)
