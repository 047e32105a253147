"""Runs pytest on the given files, slow tests included, for Bazel.

Bazel itself runs files in parallel, so pytest does not.
"""

import sys

import pytest

if __name__ == "__main__":
    options = ["-n0", "-m", "", "-p", "no:cacheprovider"]
    sys.exit(pytest.main([*options, *sys.argv[1:]]))
