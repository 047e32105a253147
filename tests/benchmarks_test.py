"""Wrong arguments of a benchmark are refused, before anything is measured."""

import pathlib
import subprocess
import sys

import pytest

_BENCHMARKS = pathlib.Path(__file__).absolute().parent / "benchmarks"


def refusal(program, *arguments):
    """Returns the last line that a program says, which must refuse them."""
    process = subprocess.run(
        [sys.executable, _BENCHMARKS / f"{program}.py", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode
    assert not process.stdout
    assert "Traceback" not in process.stderr
    return process.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("program", "arguments", "says"),
    [
        ("training_step", ["--rounds=0"], "must be at least 1, not 0"),
        ("training_step", ["--peer_python=none"], "none does not exist"),
        ("loss_benchmark", ["0"], "must be at least 1, not 0"),
        ("loss_benchmark", ["--update", "512"], "--update is of 1024 tokens"),
        ("real_text", ["--source=none"], "none does not exist"),
        ("translating", ["--sentences=0"], "must be at least 1, not 0"),
        ("translating", ["--model_dir=none"], "none does not exist"),
        ("translating", ["--model_dir=."], "--model_dir and --input together"),
        ("starting", ["--rounds=one"], "invalid at_least_1 value: 'one'"),
        ("scaling", ["sorting"], "invalid choice: 'sorting'"),
    ],
)
def test_wrong_arguments_are_refused(program, arguments, says):
    assert says in refusal(program, *arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "arguments", "says"),
    [
        ("feeding_benchmark", [], "give --source and --target, or"),
        (
            "feeding_benchmark",
            ["--source=none.en", "--target=none.de"],
            "no file matches 'none.en'; check the path",
        ),
        (
            "real_text",
            [f"--source={__file__}", "--target=/dev/null"],
            "/dev/null is empty",
        ),
        (
            "translating",
            ["--model_dir=.", f"--input={__file__}"],
            "is not a model directory",
        ),
    ],
)
def test_wrong_files_are_refused(program, arguments, says):
    assert says in refusal(program, *arguments)
