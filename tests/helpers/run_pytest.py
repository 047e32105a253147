"""Runs pytest on the files it is given, slow tests too: Bazel's way in.

Bazel runs files side by side itself.
"""

import sys

import pytest

if __name__ == "__main__":
    options = ["-n0", "-m", "", "-p", "no:cacheprovider"]
    sys.exit(pytest.main([*options, *sys.argv[1:]]))
