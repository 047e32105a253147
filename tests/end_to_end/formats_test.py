"""Commands import other programs' models, use and train them, and export."""

import json

import in_process
import pytest
import tiny_run
from paths import ROOT
from refusal import assert_refused
from tiny_translator import LINES, ONE_LAYER, learn_vocabulary, write_model

from t2t_lite.storage.model_directory import ModelDirectory

OPUS = ROOT / "tests" / "golden" / "hugging_face" / "opus"
TEXT = "".join(f"{line}\n" for line in LINES)


def run(name, *flags, text=""):
    status, output, errors = in_process.run(name, *flags, text=text)
    assert status == 0, errors
    return output


def refused(message, name, *flags):
    assert_refused(in_process.run(name, *flags), message)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model directory whose translations are words."""
    path = tmp_path_factory.mktemp("model") / "model"
    return write_model(path, learn_vocabulary(), ONE_LAYER, seeds=(3, 4)).path


@pytest.fixture(scope="module")
def nbest(model):
    """The flags of a search, and what TensorFlow finds with them."""
    flags = "--length_penalty=0", "--nbest=2"
    return flags, run("translate", f"--model_dir={model}", *flags, text=TEXT)


@pytest.fixture(scope="module")
def opus(tmp_path_factory):
    """The model directory of an imported model."""
    path = tmp_path_factory.mktemp("opus") / "opus"
    said = run("import_model", f"--from={OPUS}", f"--model_dir={path}")
    assert "Hugging Face marian" in said
    assert said.endswith(f"Written to {path}.\n")
    return path


@pytest.mark.slow
def test_an_imported_model_translates_and_leaves_as_it_came(opus, tmp_path):
    lines = json.loads((OPUS / "lines.json").read_text("utf-8"))[:5]
    text = "".join(f"{line}\n" for line in lines)
    output = run("translate", f"--model_dir={opus}", text=text)
    assert output.count("\n") == len(lines)
    target = tmp_path / "again"
    flags = ("--format=hugging_face", f"--export_dir={target}")
    run("export", f"--model_dir={opus}", *flags)
    back = tmp_path / "back"
    run("import_model", f"--from={target}", f"--model_dir={back}")
    first, second = ModelDirectory(opus), ModelDirectory(back)
    assert first.settings() == second.settings()
    _, weights = first.weights()
    _, again = second.weights()
    assert weights.keys() == again.keys()
    assert all((weights[name] == again[name]).all() for name in weights)


@pytest.mark.slow
def test_an_imported_model_is_fine_tuned_with_its_settings(opus, tmp_path):
    corpus = tiny_run.write_corpus(tmp_path)
    new = tmp_path / "new"
    with in_process.on_one_core():
        run(
            "train",
            *(flag for flag in corpus if flag.startswith("--train")),
            f"--warm_start_from={opus}",
            f"--model_dir={new}",
            "--steps=2",
            "--override=tokens_per_batch=512",
        )
    before, after = ModelDirectory(opus), ModelDirectory(new)
    assert after.vocabulary().sha256 == before.vocabulary().sha256
    assert after.settings().hparams.norm_epsilon == 1e-5
    assert after.settings().hparams.decoder_start == "zeros"
    _, old = before.weights()
    _, weights = after.weights()
    assert weights.keys() == old.keys()
    assert any((weights[name] != old[name]).any() for name in old)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["model directory", "exported folder"])
def test_ctranslate2_translates_as_tensorflow_does(model, nbest, tmp_path, way):
    (flags, expected), path = nbest, model
    if way == "exported folder":
        path = tmp_path / "ct2"
        target = ("--format=ctranslate2", f"--export_dir={path}")
        assert run("export", f"--model_dir={model}", *target) == f"{path}\n"
    engine = ("--engine=ctranslate2", f"--model_dir={path}")
    found = run("translate", *engine, *flags, text=TEXT)
    texts = [
        [line.split(" ||| ")[:2] for line in output.splitlines()]
        for output in (found, expected)
    ]
    assert len(texts[0]) == 2 * len(LINES)
    assert texts[0][::2] == texts[1][::2]


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        ("has no effect with --engine", ["--engine=ctranslate2", "--xla"]),
        *(
            (
                "--precision has no effect with --engine, which has --quant",
                ["--engine=ctranslate2", f"--precision={precision}"],
            )
            for precision in ("bfloat16", "int8")
        ),
        ("has no effect alone: give --engine=", ["--quantization=int8"]),
    ],
)
def test_flags_of_the_other_engine_are_refused(model, message, flags):
    refused(message, "translate", f"--model_dir={model}", *flags)


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        ("--quantization has no effect on a saved", ["--quantization=int8"]),
        (
            "--max_length has no effect with --format",
            ["--format=ctranslate2", "--max_length=9"],
        ),
        (
            "quantization of a Hugging Face model must be None or float16",
            ["--format=hugging_face", "--quantization=int8"],
        ),
        ("d_v must be d_model / num_heads", ["--format=hugging_face"]),
    ],
)
def test_an_impossible_export_is_refused(model, tmp_path, message, flags):
    target = tmp_path / "out"
    refused(
        message,
        "export",
        f"--model_dir={model}",
        f"--export_dir={target}",
        *flags,
    )
    assert not target.exists()


def test_what_is_no_model_is_refused(tmp_path):
    target = f"--model_dir={tmp_path / 'new'}"
    refused("does not exist", "import_model", "--from=nowhere", target)
    refused("received neither", "import_model", f"--from={tmp_path}", target)
    assert list(tmp_path.iterdir()) == []
