"""bin/translate on a terminal translates the lines that its user types."""

import os
import pty
import re
import subprocess

import binaries
import pytest
from tiny_translator import LINES, ONE_LAYER, learn_vocabulary, write_model

from t2t_lite.translation.line_translator import Translator

pytestmark = pytest.mark.slow


class _Session:
    """A program whose stdin, stdout and stderr are one terminal."""

    def __init__(self, *command):
        self._terminal, streams = pty.openpty()
        self.process = subprocess.Popen(
            command,
            env=binaries.environment(TERM="dumb"),
            stdin=streams,
            stdout=streams,
            stderr=streams,
        )
        os.close(streams)

    def until(self, end):
        """Returns what is shown up to and including `end`."""
        shown = b""
        while not shown.endswith(end):
            shown += os.read(self._terminal, 1)
        return shown.decode()

    def type(self, typed):
        os.write(self._terminal, typed)

    def enter(self, typed):
        """Types bytes; returns what is shown up to the next prompt."""
        self.type(typed)
        return self.until(b"\n> ")


def test_lines_are_typed_edited_and_translated(tmp_path):
    write_model(tmp_path / "model", learn_vocabulary(), ONE_LAYER)
    expected = Translator(tmp_path / "model", xla=False)(LINES[1])
    session = _Session(
        *binaries.command("translate", f"--model_dir={tmp_path / 'model'}")
    )
    shown = session.until(b"\n> ")
    assert re.search(r"Ready: type a line\. Ctrl-D ends\.\s+> $", shown)
    assert expected in session.enter(LINES[1].encode() + b"\r")
    # The up arrow recalls the line and adds no text.
    assert expected in session.enter(b"\x1b[A\r")
    session.enter(b"f\xfcnf\r")  # Not UTF-8.
    assert expected in session.enter(LINES[1].encode() + b"\r")
    session.type(b"\x04")
    assert session.process.wait(binaries.TIMEOUT_S) == 0
