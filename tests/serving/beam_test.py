"""The documented Apache Beam example translates as the Translator does.

Beam needs an older protobuf than sentencepiece does, so it is installed in an
environment of its own, with tensorflow and tensorflow-text; $BEAM_PYTHON is the
Python of that environment.
"""

import os
import subprocess

import pytest
from readme import example_with
from tiny_translator import (
    LINES,
    MAX_LENGTH,
    TINY,
    learn_vocabulary,
    write_model,
)

from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.serving import export
from t2t_lite.serving.signatures import ServingOptions
from t2t_lite.translation.line_translator import Translator


@pytest.mark.slow
@pytest.mark.skipif(
    "BEAM_PYTHON" not in os.environ,
    reason="$BEAM_PYTHON names no Python with apache-beam",
)
def test_beam_translates_as_the_translator_does(tmp_path):
    directory = write_model(tmp_path / "m", learn_vocabulary())
    options = ServingOptions(SearchOptions.from_hparams(TINY), MAX_LENGTH)
    export.export(directory, tmp_path / "export" / "multi30k", options)
    text = "".join(f"{line}\n" for line in LINES)
    (tmp_path / "some.en").write_text(text, "utf-8")
    python = os.environ["BEAM_PYTHON"]
    example = example_with("apache_beam")
    subprocess.run([python, "-c", example], cwd=tmp_path, check=True)
    written = "".join(
        path.read_text("utf-8") for path in tmp_path.glob("some.de-*")
    )
    rows = [line.split("\t") for line in written.removesuffix("\n").split("\n")]
    found = {int(number): translation for number, translation in rows}
    expected = Translator(directory.path)(LINES)
    assert [found[n] for n in range(len(LINES))] == expected
