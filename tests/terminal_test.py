"""Progress bars never mix with output, and typing mistakes end nothing."""

import io
import os
import sys

import pytest
from absl import logging as absl_logging
from screen import Terminal, stderr

from t2t_lite import terminal


@pytest.mark.parametrize(
    ("errors", "output", "has_bar"),
    [
        (Terminal, None, True),
        (Terminal, io.StringIO, True),  # Results go to a file.
        (Terminal, Terminal, False),
        (io.StringIO, io.StringIO, False),
        (io.StringIO, Terminal, False),
    ],
)
def test_a_bar_never_mixes_with_text(errors, output, has_bar):
    with stderr(errors()) as screen:
        file = None if output is None else output()
        results = terminal.with_bar("abc", 3, file)
        assert list(results) == ["a", "b", "c"]
    assert ("0/3" in screen.getvalue()) == has_bar


def test_log_lines_appear_above_the_bar_which_leaves_nothing():
    with stderr(Terminal()) as screen:
        for result in terminal.with_bar("abc", 3):
            absl_logging.info("Seen %s.", result)
        absl_logging.info("The end.")
    *lines, rest = screen.lines()
    said = ["Seen a.", "Seen b.", "Seen c.", "The end."]
    # Each line begins with absl's prefix.
    assert [
        line[-len(end) :] for line, end in zip(lines, said, strict=True)
    ] == said
    assert rest == ""


@pytest.mark.parametrize(
    ("stdin", "path", "expected"),
    [
        (Terminal(), None, True),
        (Terminal(), "-", True),
        (Terminal(), "file", False),
        (io.StringIO(), None, False),
        (None, None, False),
    ],
)
def test_input_is_typed_where_stdin_is_a_terminal(
    monkeypatch, stdin, path, expected
):
    monkeypatch.setattr(sys, "stdin", stdin)
    assert terminal.is_typed(path) == expected


class _Keyboard(io.RawIOBase):
    """A raw stream that gives typed lines one by one."""

    def __init__(self, lines):
        self._lines = iter(lines)

    def readable(self):
        return True

    def readinto(self, buffer):
        line = next(self._lines, b"")
        buffer[: len(line)] = line
        return len(line)


def test_a_mistyped_line_ends_nothing_and_results_have_no_prompts(
    monkeypatch, capsys
):
    keyboard = _Keyboard([b"ein Hund\n", b"f\xfcnf\n", b"zwei \xc3\xa4\n"])
    stdin = io.TextIOWrapper(io.BufferedReader(keyboard))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(terminal.typed_lines()) == ["ein Hund", "zwei ä"]
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors == (
        "Ready: type a line. Ctrl-D ends.\n> > error: text must be UTF-8: type "
        "it again\n> > \n"
    )


def test_only_cpp_code_is_silent(capfd):
    handler = absl_logging.get_absl_handler().python_handler
    before = sys.stderr, handler.stream
    with terminal.silent_cpp():
        os.write(2, b"from C++\n")
        print("from Python", file=sys.stderr)
        handler.stream.write("logged\n")
        assert handler.stream is sys.stderr
    assert (sys.stderr, handler.stream) == before
    os.write(2, b"from C++ again\n")
    said = capfd.readouterr().err
    assert said == "from Python\nlogged\nfrom C++ again\n"


def test_stderr_can_be_discarded_for_good(capfd):
    before = os.dup(2)
    try:
        terminal.discard_stderr()
        os.write(2, b"from C++\n")
    finally:
        os.dup2(before, 2)
        os.close(before)
    assert capfd.readouterr().err == ""
