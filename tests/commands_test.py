"""`t2t-lite NAME` and bin/NAME run the same program, and load no other."""

import subprocess
import sys

import pytest
from paths import ROOT

import t2t_lite_commands

COMMANDS = ROOT / "bin" / "commands"


def t2t_lite(monkeypatch, *arguments):
    """Returns the exit status or message of the script that pip installs."""
    monkeypatch.setattr(sys, "argv", ["t2t-lite", *arguments])
    try:
        return t2t_lite_commands.main()
    except SystemExit as exit_:
        return exit_.code


def test_every_module_is_a_command_with_a_launcher():
    modules = {path.stem for path in COMMANDS.glob("[!_]*.py")}
    beside = {"checkout.py", "commands"}
    launchers = {path.name for path in (ROOT / "bin").glob("[!_.]*")} - beside
    assert sorted(t2t_lite_commands.NAMES) == sorted(modules)
    assert launchers == modules


@pytest.mark.parametrize("name", t2t_lite_commands.NAMES)
def test_launchers_differ_in_the_name_alone(name):
    launcher, train = (
        (ROOT / "bin" / each).read_text("utf-8") for each in (name, "train")
    )
    assert launcher == train.replace("train", name)


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"]])
def test_it_lists_the_commands(monkeypatch, capsys, arguments):
    assert not t2t_lite(monkeypatch, *arguments)
    usage, _, *lines = capsys.readouterr().out.splitlines()
    assert usage == "usage: t2t-lite COMMAND [--help]"
    assert [line.split()[0] for line in lines] == [*t2t_lite_commands.NAMES]
    assert all(line.endswith(".") for line in lines)


def test_an_unknown_command_is_answered_with_the_nearest(monkeypatch):
    line = t2t_lite(monkeypatch, "trian", "--steps=3")
    assert line == "error: no command is called 'trian': did you mean 'train'?"


def test_a_command_like_no_other_is_answered_with_all_names(monkeypatch):
    line = t2t_lite(monkeypatch, "xyzzy")
    assert line == "error: no command is called 'xyzzy': " + ", ".join(
        t2t_lite_commands.NAMES
    )


def test_a_command_is_given_the_flags_after_its_name(monkeypatch):
    commands = []
    monkeypatch.setattr(t2t_lite_commands, "run", commands.append)
    t2t_lite(monkeypatch, "table_3", "--format=csv")
    assert commands == ["table_3"]
    assert sys.argv == ["t2t-lite table_3", "--format=csv"]


PROGRAM = """
import sys
import checkout
import t2t_lite_commands
import t2t_lite.cli
t2t_lite.cli.run = lambda command: print(command.__name__)
t2t_lite_commands.run("train")
print(*(n for n in sys.modules if n.startswith("t2t_lite_commands.")))
"""


def test_only_the_command_that_runs_is_loaded():
    """Commands define flags of the same names, which absl would refuse."""
    loaded = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(ROOT / "bin")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert loaded == ["t2t_lite_commands.train"] * 2
