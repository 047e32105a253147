"""Benchmarks refuse wrong arguments before they measure anything."""

import inspect
import runpy
import subprocess
import sys

import pytest
from paths import BENCHMARKS

# All files that the benchmark on a small corpus needs.
_SMALL = [
    "m",
    *(
        f"--{split}_{side}={__file__}"
        for split in ("train", "dev")
        for side in ("source", "target")
    ),
]


def refusal(folder, program, arguments):
    """Returns the stderr of a benchmark that must refuse its arguments."""
    process = subprocess.run(
        [sys.executable, BENCHMARKS / f"{program}.py", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
    )
    assert process.returncode
    assert not process.stdout
    assert "Traceback" not in process.stderr
    return process.stderr


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
        (
            "real_text",
            [f"--source={__file__}", f"--target={__file__}", "--tokens=20"],
            "--tokens must be at least 128",
        ),
        (
            "real_text",
            [f"--source={__file__}", "--target=/dev/null"],
            "/dev/null is empty",
        ),
        (
            "sentences_per_line",
            ["m", "none.en", "x"],
            "no file matches 'none.en'",
        ),
        ("alignments", ["none"], "none is not a model directory"),
        ("small_corpus", ["m", "--train_source=x"], "x does not exist"),
        ("small_corpus", [*_SMALL, "--updates=19"], "must be at least 20"),
        ("small_corpus", [*_SMALL, "--precision=auto"], "invalid choice"),
        (
            "small_corpus",
            [*_SMALL, "--dev_target=/dev/null"],
            "/dev/null is empty",
        ),
        ("clients", ["m", "none"], "none does not exist"),
        ("gpu", ["sorting"], "invalid choice: 'sorting'"),
        ("steering", ["m", "none.en", "x"], "no file matches 'none.en'"),
        ("feeding_benchmark", [], "give --source and --target, or"),
        ("feeding_benchmark", ["--source=a.en"], "give --source and"),
        (
            "feeding_benchmark",
            ["--source=a", "--target=b", "--synthetic_pairs=9"],
            "give --source and --target, or",
        ),
        (
            "feeding_benchmark",
            ["--source=none.en", "--target=none.de"],
            "no file matches 'none.en'; check the path",
        ),
        (
            "feeding_benchmark",
            ["--synthetic_pairs=9", "--tokens_per_batch=20"],
            "tokens_per_batch must be at least max_length=256",
        ),
        ("feeding_benchmark", ["--synthetic_pairs=0"], "0 is not a positive"),
        ("feeding_benchmark", ["--epochs=0"], "0 is not a positive"),
        ("starting", ["--rounds=one"], "invalid positive_int value: 'one'"),
        ("scaling", ["sorting"], "invalid choice: 'sorting'"),
        ("supar_peer", ["--minutes=0"], "must be at least 1, not 0"),
        (
            "supar_peer",
            [
                "--minutes=1",
                "--model=m",
                f"--train_trees={__file__}",
                "--dev_trees=none",
                "--test_trees=none",
            ],
            "benchmarks_test.py",
        ),
    ],
)
def test_wrong_arguments_are_refused(program, arguments, says, tmp_path):
    assert says in refusal(tmp_path, program, arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("alignments", ["{model}"]),
        ("glossary", ["{model}", __file__, __file__]),
        ("sentences_per_line", ["{model}", __file__, __file__]),
        ("steering", ["{model}", __file__, __file__]),
        ("translating", ["--model_dir={model}", f"--input={__file__}"]),
    ],
)
def test_a_wrong_model_is_refused(
    name, arguments, tmp_path, monkeypatch, capsys
):
    """Runs in this process, to import TensorFlow once for all programs."""
    program = BENCHMARKS / f"{name}.py"
    arguments = [each.format(model=tmp_path) for each in arguments]
    monkeypatch.setattr(sys, "argv", [str(program), *arguments])
    monkeypatch.syspath_prepend(BENCHMARKS)
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(program), run_name="__main__")
    assert end.value.code
    printed = capsys.readouterr()
    assert not printed.out
    assert "is not a model directory" in printed.err


def test_both_losses_of_the_benchmark_take_the_same_arguments(monkeypatch):
    """The trainer calls the plain one, too, for `--update`."""
    from t2t_lite.model import loss

    monkeypatch.syspath_prepend(BENCHMARKS)
    plain = runpy.run_path(str(BENCHMARKS / "loss_benchmark.py"))[
        "plain_cross_entropy"
    ]
    counts = [
        len(inspect.signature(function).parameters)
        for function in (plain, loss.projected_cross_entropy)
    ]
    assert counts[0] == counts[1]
