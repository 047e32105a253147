"""--sentences says which lines are translated sentence by sentence."""

import in_process
import pytest
from tiny_translator import learn_vocabulary, write_model

_FIRST, _SECOND = "The old dog runs.", "A red ball is on the hill."


@pytest.fixture(scope="module")
def translate(tmp_path_factory):
    """A function of a line and flags that returns what bin/translate does."""
    path = tmp_path_factory.mktemp("model") / "model"
    write_model(path, learn_vocabulary())

    def translate(line, *flags):
        found = in_process.run(
            "translate", f"--model_dir={path}", *flags, text=f"{line}\n"
        )
        assert found[0] == 0, found[2]
        return found[1].removesuffix("\n")

    return translate


@pytest.mark.slow
def test_lines_are_split_unless_they_are_to_be_whole(translate):
    line = f"{_FIRST} {_SECOND}"
    apart = f"{translate(_FIRST)} {translate(_SECOND)}"
    # The model was not trained on lines of several sentences.
    assert translate(line) == apart
    assert translate(line, "--sentences=split") == apart
    assert translate(line, "--sentences=whole") != apart
