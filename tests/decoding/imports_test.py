"""Translating a line loads nothing of the other wings."""

import subprocess
import sys

import pytest
from paths import ROOT
from tiny_translator import ONE_LAYER, learn_vocabulary, write_model

pytestmark = pytest.mark.slow

# Without matplotlib, which Keras itself imports if it is installed.
UNUSED = {
    "sacrebleu",
    "sacremoses",
    "selenium",
    "t2t_lite.evaluation",
    "t2t_lite.parsing",
    "t2t_lite.serving",
    "t2t_lite.training",
    "t2t_lite.visualization",
    "tensorflow_datasets",
    "tensorflow_serving",
}
_TRANSLATE = """
import sys

sys.path.insert(0, sys.argv[1])
import checkout
import t2t_lite_commands

del sys.argv[1]
try:
    t2t_lite_commands.run("translate")
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""


def test_translating_a_line_loads_nothing_of_the_other_wings(tmp_path):
    write_model(tmp_path / "model", learn_vocabulary(), ONE_LAYER)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            _TRANSLATE,
            str(ROOT / "bin"),
            f"--model_dir={tmp_path / 'model'}",
            "--noxla",
            "--beam_width=1",
        ],
        input="the dog\n",
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.count("\n") == 1
    loaded = set(done.stderr.split("\n"))
    assert "t2t_lite.translation.line_translator" in loaded
    assert loaded & UNUSED == set()
