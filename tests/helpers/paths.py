"""Where the parts of this checkout are."""

import pathlib

ROOT = pathlib.Path(__file__).absolute().parents[2]
HELPERS = ROOT / "tests" / "helpers"
BENCHMARKS = ROOT / "tests" / "benchmarks"
