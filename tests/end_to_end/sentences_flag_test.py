"""--sentences says which lines are translated sentence by sentence."""

import in_process
import pytest
from tiny_translator import ONE_LAYER, learn_vocabulary, write_model

_FIRST, _SECOND = "The old dog runs.", "A red ball is on the hill."


@pytest.fixture(scope="module")
def translate(tmp_path_factory):
    """A function that returns bin/translate's output for lines and flags."""
    path = tmp_path_factory.mktemp("model") / "model"
    write_model(path, learn_vocabulary(), ONE_LAYER)

    def translate(lines, *flags):
        text = "".join(f"{line}\n" for line in lines)
        status, output, errors = in_process.run(
            "translate", f"--model_dir={path}", *flags, text=text
        )
        assert status == 0, errors
        return output.splitlines()

    return translate


@pytest.mark.slow
def test_lines_are_split_unless_they_are_to_be_whole(translate):
    line = f"{_FIRST} {_SECOND}"
    # The model was not trained on lines of several sentences.
    first, second, found = translate([_FIRST, _SECOND, line])
    apart = f"{first} {second}"
    assert found == apart
    assert translate([line], "--sentences=split") == [apart]
    assert translate([line], "--sentences=whole") != [apart]
