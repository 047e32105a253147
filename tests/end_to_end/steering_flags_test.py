"""Flags of bin/translate steer a translation, or are refused."""

import in_process
import pytest
from refusal import assert_refused
from tiny_translator import ONE_LAYER, learn_vocabulary, write_model

LINES = ["a dog runs", "", "the old cat. A bird."]
PREFIXES = ["the wat", "", "two men. a r"]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    return write_model(path, learn_vocabulary(), ONE_LAYER).path


@pytest.fixture
def files(tmp_path):
    for name, lines in (("input", LINES), ("prefixes", PREFIXES)):
        text = "".join(f"{line}\n" for line in lines)
        (tmp_path / name).write_text(text)
    return tmp_path


def translate(model_dir, files, *flags):
    return in_process.run(
        "translate",
        f"--model_dir={model_dir}",
        f"--input={files / 'input'}",
        f"--prefix_file={files / 'prefixes'}",
        *flags,
    )


@pytest.mark.slow
def test_translations_begin_with_the_lines_of_a_file(model_dir, files):
    status, output, errors = translate(
        model_dir, files, "--batch_lines=1", "--nbest=2"
    )
    assert status == 0, errors
    texts = [line.split(" ||| ")[1] for line in output.splitlines()]
    for n, prefix in enumerate(PREFIXES):
        assert all(t.startswith(prefix) for t in texts[2 * n : 2 * n + 2])
    assert texts[0] != texts[1]


@pytest.mark.parametrize("prefixes", ["one\n", "1\n\n3\n4\n"])
def test_there_is_one_prefix_for_each_line(model_dir, files, prefixes):
    (files / "prefixes").write_text(prefixes)
    count = prefixes.count("\n")
    found = translate(model_dir, files)
    assert_refused(found, f"it has {count} lines, and the input has 3")


def test_a_prefix_of_a_blank_line_is_refused(model_dir, files):
    (files / "prefixes").write_text("\nthe\n\n")
    found = translate(model_dir, files)
    assert_refused(found, "line 2 is blank but has the prefix 'the'")


@pytest.mark.slow
def test_alternatives_are_printed_by_line(model_dir, files):
    status, output, errors = translate(
        model_dir, files, "--alternatives=3", f"--output={files / 'output'}"
    )
    assert status == 0, errors
    assert not output
    rows = [
        line.split(" ||| ")
        for line in (files / "output").read_text().splitlines()
    ]
    assert [row[0] for row in rows] == [n for n in "123" for _ in range(3)]
    assert [text for _, text, _ in rows[3:6]] == [""] * 3
    assert [row[2] for row in rows[3:6]] == ["0.0000", "-inf", "-inf"]
    for row, prefix in zip(rows[::3], PREFIXES, strict=True):
        assert row[1].startswith(prefix)
    assert len({text for _, text, _ in rows[:3]}) == 3


def test_alternatives_print_their_scores_anyway(model_dir, files):
    found = translate(model_dir, files, "--alternatives=3", "--scores")
    message = "--scores has no effect with --alternatives, which prints the"
    assert_refused(found, message)


@pytest.mark.slow
def test_a_glossary_is_a_file_of_terms(model_dir, files):
    terms = files / "terms"
    terms.write_text("old cat\tred boat\n\nbird\t two men \n")
    status, output, errors = translate(
        model_dir, files, f"--glossary={terms}", "--sentences=split"
    )
    assert status == 0, errors
    first, _, last = output.splitlines()
    assert "red boat" not in first
    # "bird" is in the last sentence; the first "two men" is the prefix's.
    assert "two men" in last.removeprefix("two men. ")


@pytest.mark.slow
def test_what_is_kept_comes_out_as_it_went_in(model_dir):
    found = in_process.run(
        "translate",
        f"--model_dir={model_dir}",
        "--keep=tags,urls",
        text="a <b>dog</b> at www.a.org\n{x}\n",
    )
    status, output, errors = found
    assert status == 0, errors
    first, second = output.splitlines()
    for item in ("<b>", "</b>", "www.a.org"):
        assert first.count(item) == 1
    assert "{x}" not in second  # --keep does not name placeholders.


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--keep="], "--keep is empty"),
        (["--keep=tags,html"], "keep may hold only tags, urls, placehold"),
        (
            ["--keep=tags", "--sample_top_k=2"],
            "keep cannot be combined with samp",
        ),
        (
            ["--keep=tags", "--engine=ctranslate2"],
            "keep is not available with the CTranslate2",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused(model_dir, flags, message):
    flags = f"--model_dir={model_dir}", *flags
    assert_refused(in_process.run("translate", *flags, text="a"), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc d\n", "line 2: a line must be a term, a tab and its"),
        ("a\tb\tc\n", "line 1: a line must be a term, a tab and its"),
        ("a\t\n", "line 1: a line must be a term, a tab and its"),
        ("\n", "has no terms"),
        ("", "has no terms"),
        ("a\tb\n\na\tc\n", "line 3: 'a' must have one translation; received"),
        ("a b\tb\na  b\tc\n", "'a b' must have one translation in a gloss"),
    ],
)
def test_a_file_of_no_terms_is_refused(model_dir, files, text, message):
    (files / "terms").write_text(text)
    found = translate(model_dir, files, f"--glossary={files / 'terms'}")
    assert_refused(found, message)


def test_prefixes_need_an_input(model_dir, files):
    found = in_process.run(
        "translate",
        f"--model_dir={model_dir}",
        f"--prefix_file={files / 'prefixes'}",
    )
    assert_refused(found, "--prefix_file has no effect alone: give --input too")


@pytest.mark.slow
def test_words_do_not_appear_that_must_not(model_dir, files):
    flags = f"--model_dir={model_dir}", f"--input={files / 'input'}"
    _, plain, _ = in_process.run("translate", *flags)
    words = sorted({*plain.split()})[:3]
    status, output, errors = in_process.run(
        "translate", *flags, f"--suppress={','.join(words)}"
    )
    assert status == 0, errors
    assert not {*words} & {*output.split()}


def test_words_that_the_vocabulary_cannot_spell_are_refused(model_dir, files):
    found = translate(model_dir, files, "--suppress=\u732b")
    assert_refused(found, "the vocabulary has no piece for '\u732b'")
