"""Text files: how lines pair, and which wrong files are refused, and how."""

import contextlib
import gzip
import io
import os
import pathlib
import sys
import threading

import pytest
from written_text import write

from t2t_lite.errors import InputError
from t2t_lite_data import text_files

# Valid text files.


def test_line_n_pairs_with_line_n(folder):
    write(a_en=b"one\ntwo\n", a_de="eins\nzwölf\n".encode())
    assert list(text_files.pairs("a.en", "a.de")) == [
        ("one", "eins"),
        ("two", "zwölf"),
    ]


def test_gzipped_and_plain_files_pair(folder):
    write(a_en_gz=b"one\ntwo\n", a_de=b"eins\nzwei\n")
    assert list(text_files.pairs("a.en.gz", "a.de")) == [
        ("one", "eins"),
        ("two", "zwei"),
    ]


def test_globs_pair_in_sorted_order(folder):
    for part in "cab":
        write(**{f"{part}_en": f"{part}\n".encode()})
        write(**{f"{part}_de": f"{part.upper()}\n".encode()})
    assert list(text_files.pairs("*.en", "*.de")) == [
        ("a", "A"),
        ("b", "B"),
        ("c", "C"),
    ]


def test_comma_separated_patterns_keep_their_order(folder):
    write(b_en=b"b\n", a_en=b"a\n", b_de=b"B\n", a_de=b"A\n")
    assert list(text_files.pairs("b.en,a.e?", "b.de,a.de")) == [
        ("b", "B"),
        ("a", "A"),
    ]


@pytest.mark.parametrize("name", ["a", "a[1]", "a,b", "a*", "[,]"])
def test_absolute_patterns_mean_the_same_from_another_folder(
    tmp_path, monkeypatch, name
):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    write(a_en=b"a\n", b_en=b"b\n", c_en=b"c\n")
    (tmp_path / name / "d[1],d").write_bytes(b"d\n")
    patterns = ["a.en", "b.en,a.en", "[bc].en", "./*.en", "c.*,a.en", "d[1],d"]
    found = [list(map(os.path.abspath, text_files.files(p))) for p in patterns]
    absolute = list(map(text_files.absolute, patterns))
    monkeypatch.chdir("/")
    assert [text_files.files(pattern) for pattern in absolute] == found
    here = str(tmp_path)
    assert name != "a" or absolute[1] == f"{here}/a/b.en,{here}/a/a.en"


@pytest.mark.parametrize("name", ["home", "ho,me", "home[1]"])
def test_home_is_found(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    monkeypatch.setenv("HOME", str(tmp_path / name))
    write(a_en=b"a\n", b_en=b"b\n", c=b"c\n")
    home = tmp_path / name
    for patterns in ("~/a.en,~/b.en", "~/?.en"):
        paths = [str(home / "a.en"), str(home / "b.en")]
        assert text_files.files(text_files.absolute(patterns)) == paths
    assert text_files.files("~/c") == [str(home / "c")]
    lines, count = text_files.input_lines("~/c")
    assert (list(lines), count) == (["c"], 1)


def test_a_name_with_pattern_characters_is_a_name(folder):
    (folder / "a[1],b.en").write_bytes(b"one\n")
    (folder / "a[1],b.de").write_bytes(b"eins\n")
    assert list(text_files.pairs("a[1],b.en", "a[1],b.de")) == [("one", "eins")]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        pytest.param(b"a\r\nb\r\n", ["a", "b"], id="crlf"),
        pytest.param(b"a\rb\n", ["a\rb"], id="lone_cr"),
        pytest.param(b"a\r\r\n", ["a\r"], id="only_one_cr_goes"),
        pytest.param(
            "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\n".encode(),
            ["a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"],
            id="other_separators",
        ),
        pytest.param(b"\xef\xbb\xbfa\nb\n", ["a", "b"], id="bom"),
        pytest.param(
            b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"], id="bom_only_at_start"
        ),
        pytest.param(b"a\nb", ["a", "b"], id="no_final_newline"),
        pytest.param(b"a\r", ["a"], id="no_final_newline_behind_cr"),
        pytest.param(b"a\n\n", ["a", ""], id="blank_last_line"),
        pytest.param(b"\n  a \n", ["", "  a "], id="blanks_are_kept"),
    ],
)
def test_only_newline_ends_a_line(folder, content, lines):
    write(a_en=content, a_en_gz=content)
    plain_and_gzipped = list(text_files.pairs("a.en", "a.en.gz"))
    assert plain_and_gzipped == [(line, line) for line in lines]


def test_files_are_read_as_they_are_asked_for(folder):
    write(a_en=b"one\n\xff\n", a_de=b"eins\nzwei\n")
    stream = text_files.pairs("a.en", "a.de")
    assert next(stream) == ("one", "eins")
    with pytest.raises(InputError, match="line 2"):
        next(stream)


# Invalid text files: when they are refused, and with which message.


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("none.en", "a.de", "no file matches 'none.en'; check the path"),
        ("a.en", "*.none", "no file matches '*.none'; check the path"),
        ("a.en,none.en", "a.de,b.de", "no file matches 'none.en'; check the"),
        ("a.en,", "a.de", "there is a comma with no file beside it: leave"),
        ("dir", "a.de", "dir is a directory; give the files inside it"),
        ("a.en", "d*", "dir is a directory; give the files inside it"),
        (
            "?.en",
            "a.de",
            "the same number of each; received 2 of ?.en and 1 of a.de",
        ),
    ],
)
def test_wrong_paths_are_refused_at_once(folder, source, target, message):
    write(a_en=b"one\n", b_en=b"two\n", a_de=b"eins\n", b_de=b"zwei\n")
    (folder / "dir").mkdir()
    with pytest.raises(InputError) as refusal:
        text_files.pairs(source, target)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            {"a_en": b"one\ntwo\xfc\n"},
            {"a_de": b"eins\nzwei\n"},
            "a.en, line 2: text must be UTF-8; received byte 0xfc at "
            "position 4",
        ),
        (
            {"a_en": b"one\n"},
            {"a_de": "eins\n".encode("utf-16")},
            "a.de, line 1: text must be UTF-8; received byte 0xff",
        ),
        (
            {"a_en": b"\xed\xa0\x80\n"},
            {"a_de": b"eins\n"},
            "a.en, line 1: text must be UTF-8; received byte 0xed",
        ),
        ({"a_en": b""}, {"a_de": b"eins\n"}, "a.en is empty; it must hold"),
        ({"a_en": b"one\n"}, {"a_de_gz": b""}, "a.de.gz is empty; it must"),
        (
            {"a_en": b"one\n"},
            {"a_de": b"eins\nzwei\ndrei\n"},
            "received 3 lines in a.de but 1 in a.en",
        ),
        (
            {"a_en": b"one\ntwo\nthree\nfour"},
            {"a_de": b"eins\nzwei\n"},
            "received 4 lines in a.en but 2 in a.de",
        ),
        (
            {"a_en": b"one\n", "b_en": b"two\n"},
            {"a_de": b"eins\nzwei\n", "b_de": b"\n"},
            "received 2 lines in a.de but 1 in a.en",
        ),
    ],
)
def test_wrong_contents_are_refused_in_reading(folder, source, target, message):
    write(**source, **target)
    stream = text_files.pairs("?.en*", "?.de*")
    with pytest.raises(InputError) as refusal:
        list(stream)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_to_translate_is_checked_to_its_end_before_the_work(folder):
    write(a_en=b"one\n\xff\n")
    with pytest.raises(InputError, match=r"a\.en, line 2: text must be UTF-8"):
        text_files.input_lines("a.en")


def test_pairs_of_files_are_counted(tmp_path):
    source, target = tmp_path / "en", tmp_path / "de"
    source.write_text("a\nb\n")
    target.write_text("A\nB\n")
    pairs, count = text_files.input_pairs(str(source), str(target))
    assert ([*pairs], count) == ([("a", "A"), ("b", "B")], 2)
    target.write_text("A\n")
    with pytest.raises(InputError, match="received 2 lines in"):
        text_files.input_pairs(str(source), str(target))


def test_pairs_of_a_pipe_are_not_counted(tmp_path):
    source, target = tmp_path / "en", tmp_path / "de"
    source.write_text("a\nb\n")
    os.mkfifo(target)
    writing = threading.Thread(
        target=target.write_text,
        args=["A\nB\n"],
        daemon=True,  # In case nobody reads.
    )
    writing.start()
    pairs, count = text_files.input_pairs(str(source), str(target))
    assert ([*pairs], count) == ([("a", "A"), ("b", "B")], None)
    writing.join()


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"", []), (b"one\n\nthree\n", ["one", "", "three"])],
)
def test_a_file_to_translate_is_counted_and_may_be_empty(
    folder, content, expected
):
    write(a_en=content)
    lines, count = text_files.input_lines("a.en")
    assert (list(lines), count) == (expected, len(expected))


def test_a_pipe_to_translate_is_read_once(folder):
    os.mkfifo("pipe")
    writer = threading.Thread(
        target=lambda: pathlib.Path("pipe").write_text("one\ntwo\n"),
        daemon=True,  # In case nobody reads.
    )
    writer.start()
    lines, count = text_files.input_lines("pipe")
    assert (list(lines), count) == (["one", "two"], None)
    writer.join()


@pytest.mark.parametrize("path", [None, "-"])
def test_standard_input_is_a_dash_too(monkeypatch, path):
    stdin = io.TextIOWrapper(io.BytesIO(b"one\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    lines, count = text_files.input_lines(path)
    assert (list(lines), count) == (["one"], None)


def test_standard_input_that_is_closed_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    for path in (None, "-"):
        with pytest.raises(InputError, match="is closed: give --input"):
            text_files.input_lines(path)


def test_standard_input_that_cannot_be_read_is_named(monkeypatch, tmp_path):
    with open(tmp_path / "only_written", "wb") as file:
        stdin = open(file.fileno(), encoding="utf-8", closefd=False)  # noqa: SIM115
        monkeypatch.setattr(sys, "stdin", stdin)
        lines, _ = text_files.input_lines(None)
        with pytest.raises(InputError, match="standard input cannot be read"):
            list(lines)


def broken_byte(content, position):
    return (
        content[:position]
        + bytes([content[position] ^ 0xFF])
        + content[position + 1 :]
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            gzip.compress(b"one\n" * 1000)[:-20],
            "a.en.gz is cut short or damaged after line",
        ),
        (
            broken_byte(gzip.compress(b"one\n" * 1000), 10),
            "a.en.gz is cut short or damaged after line 0",
        ),
        (
            broken_byte(gzip.compress(b"one\n" * 1000), -6),
            "a.en.gz cannot be read: CRC check failed",
        ),
        (b"one\n", "a.en.gz cannot be read: Not a gzipped file"),
    ],
    ids=["truncated", "bad_block", "bad_checksum", "plain_text"],
)
def test_damaged_gzip_files_are_refused(folder, content, message):
    (folder / "a.en.gz").write_bytes(content)
    write(a_de=b"eins\n" * 1000)
    with pytest.raises(InputError) as refusal:
        list(text_files.pairs("a.en.gz", "a.de"))
    assert message in str(refusal.value)


@contextlib.contextmanager
def without_root_rights():
    """Becomes the user nobody if root runs the tests, as root may read all."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_file_without_permission_is_refused(folder):
    write(a_en=b"one\n", a_de=b"eins\n")
    (folder / "a.en").chmod(0)
    # By a relative path: the user nobody may not enter the folders above.
    folder.chmod(0o755)
    stream = text_files.pairs("a.en", "a.de")
    with (
        without_root_rights(),
        pytest.raises(InputError, match=r"^a\.en cannot be read: Permission"),
    ):
        next(stream)
