"""Wrong input gets one clear line, a failing status, and leaves nothing."""

import json
import os
import shutil

import binaries
import pytest

pytestmark = pytest.mark.slow


def _write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A trained model directory and the flags of its corpus."""
    folder = tmp_path_factory.mktemp("model")
    corpus = binaries.write_corpus(folder)
    model_dir = folder / "model"
    status, _, errors = binaries.run(
        "train",
        *corpus,
        *binaries.TINY,
        f"--model_dir={model_dir}",
        "--steps=4",
        "--save_every_steps=2",
        "--evaluate_every_steps=100",
    )
    assert status == 0, errors
    return model_dir, corpus


@pytest.fixture
def files(tmp_path):
    """Text files with something wrong with each, by name."""
    return {
        "good": _write(tmp_path / "good", "eins\nzwei\n"),
        "longer": _write(tmp_path / "longer", "eins\nzwei\ndrei\n"),
        "empty": _write(tmp_path / "empty", ""),
        "blank": _write(tmp_path / "blank", "\n \n"),
        "latin1": _write(tmp_path / "latin1", b"eins\nf\xfcnf\n"),
        "cut": _write(tmp_path / "cut.gz", b"\x1f\x8b\x08\x00"),
        "folder": tmp_path,
        "missing": tmp_path / "missing",
    }


# (flags of bin/train, what the one line says)
_TRAIN_FLAGS = [
    (["--hparams=transformer_bigg"], "did you mean 'transformer_big'?"),
    (["--override=drop_out=0.1"], "did you mean 'dropout'?"),
    (["--override=dropout"], "must look like field=value"),
    (["--override=dropout=much"], "dropout must be of type float"),
    (["--override=dropout=1.5"], "dropout must be in [0, 1); received"),
    (["--override=d_model=63"], "d_model must be even"),
    (["--override=num_heads=0"], "num_heads must be at least 1"),
    (["--override=positions=none"], "must be sinusoidal or learned"),
    (["--override=tokens_per_batch=10"], "must be at least max_length=128"),
    (["--corpus=wmt14_en_dee"], "did you mean 'wmt14_en_de'?"),
    (["--corpus=embedded", "--train_source=x"], "not both"),
    (["--train_source=x"], "--train_source needs --train_target"),
    (["--steps=0"], "steps must be at least 1; received steps=0"),
    (["--save_every_steps=0"], "save_every_steps must be at least 1"),
    (["--micro_batch_tokens=-1"], "micro_batch_tokens must be at least 1"),
    (["--keep_last=0"], "keep_last must be at least 1; received keep_last=0"),
    (["--evaluate_every_steps=0"], "evaluate_every_steps must be at least 1"),
    (["--patience=0"], "patience must be at least 1"),
    (["--save_every_minutes=-1"], "save_every_minutes must be at least 0"),
    (["--save_every_minutes=nan"], "save_every_minutes must be at least 0"),
    (["--sustained_tflops=0"], "sustained_tflops must be above 0"),
    (["--strategy=multi_worker"], "TF_CONFIG must look like"),
    (["--vocabulary=missing.model"], "cannot read the vocabulary"),
    (
        [f"--dev_source={__file__}", f"--dev_target={__file__}"],
        "no train files",
    ),
    (["--warm_start_from=missing"], "the checkpoint missing is missing"),
    (
        [f"--train_trees={__file__}"],
        "a parser is trained by one of the transformer_parsing presets",
    ),
    (
        ["--hparams=transformer_parsing_small"],
        "embedded is a corpus of translations, and the task is parsing",
    ),
    (["--train_trees="], "--train_trees is empty"),
    ([f"--cache_dir={__file__}"], "--cache_dir must be a folder"),
    (["surplus"], "takes flags only; received 'surplus'"),
]


@pytest.mark.parametrize(("flags", "message"), _TRAIN_FLAGS)
def test_wrong_flags_of_train(flags, message, tmp_path):
    model_dir = tmp_path / "model"
    _refused(message, "train", *flags, f"--model_dir={model_dir}")
    assert not (model_dir / "settings.json").exists()


_TWO_WORKERS = '"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}'


@pytest.mark.parametrize(
    ("tf_config", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "list indices must be"),
        ('{"cluster": {}}', "'task'"),
        (
            f'{{{_TWO_WORKERS}, "task": {{"type": "worker", "index": 7}}}}',
            "the task is not one of the cluster",
        ),
        (
            '{"cluster": {"worker": ["127.0.0.1:x"]}, '
            '"task": {"type": "worker", "index": 0}}',
            "Could not parse port",
        ),
    ],
)
def test_a_cluster_that_cannot_be_used(tf_config, reason, tmp_path):
    model_dir = tmp_path / "model"
    message = f"received {tf_config!r} ({reason}"
    _refused(message, "train", f"--model_dir={model_dir}", TF_CONFIG=tf_config)
    assert not (model_dir / "settings.json").exists()


def _refused(message, name, *flags, **options):
    """Checks that a binary ends in one line on stderr that says `message`."""
    status, out, errors = binaries.run(name, *flags, **options)
    assert status == 1, errors
    said = [line for line in errors.split("\n") if line.startswith("error: ")]
    assert len(said) == 1, errors
    assert message in said[0]
    assert "Traceback" not in errors
    return out


# (source, target, what the one line says)
_TRAIN_FILES = [
    ("good", "longer", "received 3 lines in"),
    ("missing", "good", "no file matches"),
    ("empty", "empty", "is empty"),
    ("blank", "blank", "there is no text to learn a vocabulary from"),
    (
        "good",
        "latin1",
        "latin1, line 2: text must be UTF-8; received byte 0xfc",
    ),
    ("good", "folder", "is a directory"),
    ("cut", "good", "is cut short or damaged"),
]


@pytest.mark.parametrize(("source", "target", "message"), _TRAIN_FILES)
def test_wrong_files_of_train(source, target, message, files, tmp_path):
    model_dir = tmp_path / "model"
    _refused(
        message,
        "train",
        f"--train_source={files[source]}",
        f"--train_target={files[target]}",
        f"--model_dir={model_dir}",
    )
    assert not (model_dir / "settings.json").exists()
    assert not list(model_dir.glob("tokens*"))


# (flags, what the one line says)
_MODEL_FLAGS = [
    (
        ["--average_last=9"],
        "keeps 2 checkpoints, too few to average the last 9",
    ),
    (["--checkpoint=averaged"], "has no checkpoint in averaged/"),
    (["--checkpoint=nowhere"], "the checkpoint nowhere is missing"),
    (["--beam_width=0"], "beam_width must be at least 1"),
    (["--length_penalty=-1"], "length_penalty must be at least 0"),
    (["--nbest=9"], "nbest must be at most beam_width=4"),
    (["--input=missing"], "missing does not exist"),
    (["--output=/nowhere/at/all"], "cannot write /nowhere/at/all"),
]


@pytest.mark.parametrize(("flags", "message"), _MODEL_FLAGS)
def test_wrong_flags_of_translate(flags, message, model):
    model_dir, _ = model
    _refused(message, "translate", f"--model_dir={model_dir}", *flags)


# (flags, what the one line says)
_EXPORT_FLAGS = [
    (["--max_length=65"], "max_length must be from 2 to 64 for this model"),
    (["--max_length=0"], "max_length must be from 2 to 64"),
    (["--attention_layer=1"], "attention_layer must be from 0 to 0"),
    (["--attention_head=2"], "attention_head must be from 0 to 1"),
    (["--checkpoint=best"], "has no checkpoint in best/"),
    (["--beam_width=0"], "beam_width must be at least 1"),
]


@pytest.mark.parametrize(("flags", "message"), _EXPORT_FLAGS)
def test_wrong_flags_of_export(flags, message, model, tmp_path):
    export_dir = tmp_path / "export"
    _refused(
        message,
        "export",
        f"--model_dir={model[0]}",
        f"--export_dir={export_dir}",
        *flags,
    )
    assert not export_dir.exists()


def test_a_folder_that_is_no_model_directory(tmp_path):
    _refused("has no settings.json", "translate", f"--model_dir={tmp_path}")


def test_a_model_directory_without_a_checkpoint(model, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(model[0], copy)
    shutil.rmtree(copy / "checkpoints")
    _refused(
        "has no checkpoint in checkpoints/", "translate", f"--model_dir={copy}"
    )


def test_settings_that_are_no_json(model, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(model[0], copy)
    (copy / "settings.json").write_text("{")
    _refused("settings.json cannot be used", "translate", f"--model_dir={copy}")


def test_settings_of_another_version(model, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(model[0], copy)
    settings = json.loads((copy / "settings.json").read_text())
    settings["hparams"]["dropuot"] = 0.1
    (copy / "settings.json").write_text(json.dumps(settings))
    _refused("did you mean 'dropout'?", "translate", f"--model_dir={copy}")


def test_a_truncated_checkpoint_falls_back_to_the_one_before(model, tmp_path):
    copy = tmp_path / "model"
    shutil.copytree(model[0], copy)
    data = copy / "checkpoints" / "step-4.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    status, out, errors = binaries.run(
        "translate", f"--model_dir={copy}", "--xla=false", text="eins\n"
    )
    assert status == 0, errors
    assert out.count("\n") == 1
    assert "step-4 is damaged: falling back to the one before" in errors


def test_bytes_that_are_not_utf8_on_standard_input(model):
    _refused(
        "standard input, line 2: text must be UTF-8",
        "translate",
        f"--model_dir={model[0]}",
        "--xla=false",
        text="eins\n\udcff\n",
    )


def test_an_output_file_is_whole_or_not_there(model, files, tmp_path):
    output = tmp_path / "output"
    _refused(
        "line 2: text must be UTF-8",
        "translate",
        f"--model_dir={model[0]}",
        f"--input={files['latin1']}",
        f"--output={output}",
        "--xla=false",
        "--batch_lines=1",
    )
    assert not list(tmp_path.glob("*output*"))


def test_a_split_that_there_is_not(model):
    _refused(
        "split must be one of train, dev, test",
        "evaluate",
        f"--model_dir={model[0]}",
        "--splits=valid",
    )


def test_trees_are_no_text_to_score_a_translation_model_on(model, tmp_path):
    path = tmp_path / "some.trees"
    path.write_text("(TOP (UH oh))\n")
    _refused(
        "is a corpus of trees, and the task is translation",
        "evaluate",
        f"--model_dir={model[0]}",
        f"--test_trees={path}",
    )


def test_a_model_without_text_to_be_scored_on(model, tmp_path):
    flags = [f for f in model[1] if f.startswith("--train")]
    copy = tmp_path / "model"
    shutil.copytree(model[0], copy)
    settings = json.loads((copy / "settings.json").read_text())
    settings["corpus"] = dict(f.removeprefix("--").split("=") for f in flags)
    (copy / "settings.json").write_text(json.dumps(settings))
    _refused("without dev or test text", "evaluate", f"--model_dir={copy}")


def test_too_few_checkpoints_to_average(model):
    _refused(
        "too few to average the last 7",
        "average_checkpoints",
        f"--model_dir={model[0]}",
        "--average_last=7",
    )


@pytest.mark.parametrize("flag", ["json", "report"])
def test_scores_that_cannot_be_written(model, flag):
    _refused(
        "cannot write /nowhere/at/all: there is no folder /nowhere/at",
        "evaluate",
        f"--model_dir={model[0]}",
        f"--{flag}=/nowhere/at/all",
    )


def test_a_vocabulary_that_cannot_be_written(model):
    _refused(
        "cannot write /nowhere/at/all: there is no folder /nowhere/at",
        "learn_vocabulary",
        *model[1],
        "--size=400",
        "--output=/nowhere/at/all",
    )


def test_a_model_directory_that_is_a_file(tmp_path):
    _refused(
        "File exists",
        "train",
        f"--model_dir={_write(tmp_path / 'file', 'in the way')}",
    )


def test_a_dev_file_that_is_too_short_leaves_no_run_behind(model, tmp_path):
    longer = _write(tmp_path / "longer", "eins\n" * 61)
    flags = [f for f in model[1] if not f.startswith("--dev_target")]
    _refused(
        "received 61 lines in",
        "train",
        *flags,
        f"--dev_target={longer}",
        f"--model_dir={tmp_path / 'model'}",
    )
    assert not (tmp_path / "model").exists()


def test_output_to_a_device_leaves_the_device(model):
    status, _, errors = binaries.run(
        "translate",
        f"--model_dir={model[0]}",
        "--xla=false",
        "--output=/dev/null",
        text="eins\n",
    )
    assert status == 0, errors
    assert not os.path.isfile("/dev/null")


def test_a_vocabulary_too_small_for_its_characters(model, tmp_path):
    output = tmp_path / "vocabulary.model"
    _refused(
        "vocabulary_size must be at least",
        "learn_vocabulary",
        *model[1],
        "--size=20",
        f"--output={output}",
    )
    assert not output.exists()


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_checkpoint(
    model, tmp_path
):
    copy = tmp_path / "model"
    shutil.copytree(model[0], copy)
    _refused(
        "not finite at step",
        "train",
        *model[1],
        *binaries.TINY,
        f"--model_dir={copy}",
        "--override=learning_rate_scale=1e38",
        "--steps=30",
    )
    kept = sorted(p.name for p in (copy / "checkpoints").glob("*.index"))
    assert kept == ["step-2.index", "step-4.index"]


def test_a_full_disk_while_saving_keeps_the_checkpoints_that_were_good(
    model, tmp_path
):
    import resource

    model_dir, corpus = model
    copy = tmp_path / "model"
    shutil.copytree(model_dir, copy)
    before = {p: p.read_bytes() for p in (copy / "checkpoints").iterdir()}
    # No file of this process may grow beyond what a checkpoint needs.
    limit = min(len(v) for k, v in before.items() if ".data" in k.name) // 2
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        status, _, errors = binaries.run(
            "train",
            *corpus,
            *binaries.TINY,
            f"--model_dir={copy}",
            "--steps=5",
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert status == 1, errors
    assert "error: cannot write the checkpoint" in errors
    after = {p: p.read_bytes() for p in (copy / "checkpoints").iterdir()}
    assert after == before


def test_a_corpus_that_cannot_be_downloaded(tmp_path):
    _refused(
        "cannot be downloaded",
        "train",
        "--corpus=wmt14_en_de",
        f"--model_dir={tmp_path / 'model'}",
        TFDS_DATA_DIR=str(tmp_path / "tfds"),
        HTTPS_PROXY="http://127.0.0.1:9",
        HTTP_PROXY="http://127.0.0.1:9",
    )


@pytest.mark.parametrize(
    "name",
    [
        "train",
        "translate",
        "evaluate",
        "export",
        "average_checkpoints",
        "learn_vocabulary",
        "visualize_attention",
    ],
)
def test_help_needs_no_tensorflow(name, tmp_path):
    for package in ("tensorflow", "keras", "tensorflow_text"):
        _write(tmp_path / f"{package}.py", "raise RuntimeError('was imported')")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    status, out, errors = binaries.run(
        name, "--help", PYTHONPATH=os.pathsep.join(paths)
    )
    assert f"bin/{name}" in out
    assert status in (0, 1)  # absl's --help exits with 1.
    assert errors == ""
