"""Runs pytest on the files it is given, slow tests too: Bazel's way in."""

import sys

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main(["-m", "", "-p", "no:cacheprovider", *sys.argv[1:]]))
