"""Each program, run as a user runs it: what only a process of its own shows."""

import os
import subprocess

import binaries
import in_process
import pytest
from refusal import assert_refused
from tiny_translator import ONE_LAYER, learn_vocabulary, write_model

import t2t_lite_commands

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    return write_model(path, learn_vocabulary(), ONE_LAYER).path


@pytest.mark.parametrize(
    "name",
    [name for name in t2t_lite_commands.NAMES if name != "table_3"],
)
def test_help_needs_no_tensorflow(name, tmp_path):
    for package in ("tensorflow", "keras", "tensorflow_text"):
        path = tmp_path / f"{package}.py"
        path.write_text("raise RuntimeError('was imported')")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    status, out, errors = binaries.run(
        name, "--help", PYTHONPATH=os.pathsep.join(paths)
    )
    assert f"bin/{name}" in out  # Above its flags; table_3 has no flags.
    assert status == 0
    assert errors == ""


# (program, wrong flags, part of the message)
_WRONG_FLAGS = [
    ("train", ["--override=dropout=1.5"], "dropout must be in [0, 1)"),
    ("translate", ["--nbest=9"], "nbest must be at most beam_width=4"),
    ("evaluate", [], "the model records no corpus: give text to score with"),
    ("score", ["--source=no", "--target=no"], "no cannot be read: No such"),
    ("export", ["--export_dir=x", "--max_length=24"], "must be from 2 to 23"),
    ("serve", ["--port=70000"], "port must be from 0 to 65535"),
    ("average_checkpoints", ["--average_last=7"], "too few to average"),
    ("learn_vocabulary", ["--output=/nowhere/at/all"], "there is no folder"),
    ("visualize_attention", ["--sentence=x"], "give --output, --png_prefix"),
    ("table_3", ["surplus"], "this program takes flags only"),
]


@pytest.mark.parametrize(("name", "flags", "message"), _WRONG_FLAGS)
def test_wrong_flags_get_one_line(name, flags, message, model_dir, tmp_path):
    needs_model = name not in ("learn_vocabulary", "table_3")
    model = [f"--model_dir={model_dir}"] if needs_model else []
    assert_refused(binaries.run(name, *model, *flags), message)


def test_the_users_settings_of_keras_change_nothing(model_dir, tmp_path):
    (tmp_path / "keras.json").write_text('{"floatx": "float64"}')
    flags = [f"--model_dir={model_dir}", "--xla=false", "--scores"]
    found = binaries.run(
        "translate",
        *flags,
        text="the dog\n",
        KERAS_BACKEND="jax",
        KERAS_HOME=str(tmp_path),
        PYTHONPATH=os.environ.get("PYTHONPATH", ""),  # So JAX is not hidden.
        TF_USE_LEGACY_KERAS="1",
    )
    assert found == in_process.run("translate", *flags, text="the dog\n")
    assert found[0] == 0


def test_a_corpus_that_cannot_be_downloaded(tmp_path):
    found = binaries.run(
        "train",
        "--corpus=wmt14_en_de",
        f"--model_dir={tmp_path / 'model'}",
        TFDS_DATA_DIR=str(tmp_path / "tfds"),
        HTTPS_PROXY="http://127.0.0.1:9",
        HTTP_PROXY="http://127.0.0.1:9",
    )
    assert_refused(found, "cannot be downloaded")


def test_a_closed_pipe_ends_a_program_quietly(model_dir):
    """As in `bin/translate ... | head -1`."""
    process = subprocess.Popen(
        binaries.command(
            "translate", f"--model_dir={model_dir}", "--batch_lines=1"
        ),
        env=binaries.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    # Empty lines, each of which is written as soon as it is read.
    process.stdin.write("\n" * 100)
    process.stdin.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(binaries.TIMEOUT_S) == 1
    assert errors == ""
