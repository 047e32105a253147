"""Runs bin/train as if it were of another version of this package."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages

import t2t_lite
import t2t_lite_commands

if __name__ == "__main__":
    t2t_lite.__version__ = "9.9"  # Before another module takes it over.
    t2t_lite_commands.run("train")
