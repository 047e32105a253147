"""Wrong input gets one clear line and a failing status, and leaves no files."""

import dataclasses
import json
import os
import shutil
from concurrent import futures

import edited_settings
import in_process
import numpy as np
import pytest
import tiny_run
from absl import logging
from refusal import assert_refused
from tiny_translator import LINES, ONE_LAYER, learn_vocabulary, write_model

from t2t_lite import cli
from t2t_lite.storage import checkpoints
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text import learning
from t2t_lite.text.vocabulary import Vocabulary


def _write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _refused(message, name, *flags, **options):
    assert_refused(in_process.run(name, *flags, **options), message)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The flags of a small corpus."""
    return tiny_run.write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def model(corpus, tmp_path_factory):
    """A model directory that records that corpus, with two checkpoints."""
    path = tmp_path_factory.mktemp("model") / "model"
    directory = write_model(path, learn_vocabulary(), seeds=(3, 4))
    _set_corpus(directory, corpus)
    return path


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """A one-layer model's directory, and its translations of two lines."""
    path = tmp_path_factory.mktemp("translated") / "model"
    write_model(path, learn_vocabulary(), ONE_LAYER)
    return path, _translate_the_dog(path)


def _translate_the_dog(path):
    """Translates a line with a line feed, and one with a carriage return."""
    status, output, errors = in_process.run(
        "translate", f"--model_dir={path}", text="the dog\nthe dog\r"
    )
    assert status == 0, errors
    return output


def _set_corpus(directory, flags):
    names = dict(flag.removeprefix("--").split("=") for flag in flags)
    directory.save_settings(
        dataclasses.replace(directory.settings(), corpus=names)
    )


@pytest.fixture
def copy(model, tmp_path):
    """A copy of the model directory, for a test to damage."""
    return shutil.copytree(model, tmp_path / "copy")


@pytest.fixture
def files(tmp_path):
    """Paths by name: good text files, and some with something wrong."""
    return {
        "good": _write(tmp_path / "good", "eins\nzwei\n"),
        "longer": _write(tmp_path / "longer", "eins\nzwei\ndrei\n"),
        "empty": _write(tmp_path / "empty", ""),
        "blank": _write(tmp_path / "blank", "\n \n"),
        "latin1": _write(tmp_path / "latin1", b"eins\nf\xfcnf\n"),
        "utf16": _write(tmp_path / "utf16", "a\nb\n".encode("utf-16-le")),
        "old_mac": _write(tmp_path / "old_mac", "eins\rzwei\r"),
        "cut": _write(tmp_path / "cut.gz", b"\x1f\x8b\x08\x00"),
        "folder": tmp_path,
        "missing": tmp_path / "missing",
    }


# (flags of bin/train, part of the message)
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
    (["--corpus=embedded", "--train_source=x"], "give only one of"),
    (["--train_source=x"], "--train_source needs --train_target"),
    (["--override=length_penalty=1e308"], "length_penalty must be at most 10"),
    (["--steps=0"], "steps must be at least 1; received steps=0"),
    (["--save_every_steps=0"], "save_every_steps must be at least 1"),
    (["--micro_batch_tokens=-1"], "micro_batch_tokens must be at least 1"),
    (["--keep_last=0"], "keep_last must be at least 1; received keep_last=0"),
    (["--evaluate_every_steps=0"], "evaluate_every_steps must be at least 1"),
    (["--patience=0"], "patience must be at least 1"),
    (["--save_every_minutes=-1"], "save_every_minutes must be at least 0"),
    (["--save_every_minutes=nan"], "save_every_minutes must be at least 0"),
    (["--override=seed=4294967296"], "seed must be below 2^32"),
    (["--sustained_tflops=0"], "sustained_tflops must be above 0"),
    (["--strategy=multi_worker"], "TF_CONFIG must look like"),
    (
        [f"--dev_source={__file__}", f"--dev_target={__file__}"],
        "no train files",
    ),
    (
        [f"--train_trees={__file__}"],
        "or train a model for parsing (--hparams)",
    ),
    (
        ["--hparams=transformer_parsing_small"],
        "embedded is a corpus for translation, and the model is for parsing",
    ),
    (["--train_trees="], "--train_trees is empty"),
    (
        [f"--train_source={__file__},", f"--train_target={__file__},"],
        "there is a comma with no file beside it: leave the comma out",
    ),
    (["--steps=1000000001"], "--steps must be at most 1,000,000,000"),
    (
        ["--override=max_length=1000000001"],
        "max_length must be at most 1,000,000,000",
    ),
    (["surplus"], "received 'surplus': --help lists the flags"),
]


@pytest.mark.parametrize(("flags", "message"), _TRAIN_FLAGS)
def test_wrong_flags_of_train_are_refused(flags, message, tmp_path):
    model_dir = tmp_path / "model"
    _refused(message, "train", *flags, f"--model_dir={model_dir}")
    assert not (model_dir / "settings.json").exists()


def test_a_cache_that_is_a_file_is_refused(corpus, tmp_path):
    model_dir = tmp_path / "model"
    _refused(
        "--cache_dir must be a folder",
        "train",
        *corpus,
        f"--cache_dir={__file__}",
        f"--model_dir={model_dir}",
    )
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
            "the task is not in the cluster",
        ),
        (
            '{"cluster": {"worker": ["127.0.0.1:x"]}, '
            '"task": {"type": "worker", "index": 0}}',
            "'127.0.0.1:x' is not host:port",
        ),
        (
            '{"cluster": {"worker": [1, 2]}, '
            '"task": {"type": "worker", "index": 0}}',
            "'1' is not host:port",
        ),
        (
            '{"cluster": {"evaluator": ["127.0.0.1:1"]}, '
            '"task": {"type": "evaluator", "index": 0}}',
            "the task type must be worker or chief",
        ),
    ],
)
def test_a_wrong_tf_config_is_refused(tf_config, reason, tmp_path):
    model_dir = tmp_path / "model"
    message = f"received {tf_config!r} ({reason}"
    _refused(message, "train", f"--model_dir={model_dir}", TF_CONFIG=tf_config)
    assert not (model_dir / "settings.json").exists()


# (source, target, part of the message)
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
    ("utf16", "utf16", "text must be UTF-8; one of its first two bytes is NUL"),
    ("good", "folder", "is a directory"),
    ("cut", "good", "is cut short or damaged"),
    ("old_mac", "old_mac", 'these end in "\\r" alone: convert them with tr'),
]


@pytest.mark.parametrize(("source", "target", "message"), _TRAIN_FILES)
def test_wrong_files_of_train_are_refused(
    source, target, message, files, tmp_path
):
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


# (flags, part of the message)
_MODEL_FLAGS = [
    (
        ["--average_last=9"],
        "keeps 2 checkpoints, too few to average the last 9",
    ),
    (["--checkpoint=averaged"], "has no checkpoint in averaged/"),
    (
        ["--checkpoint=nowhere"],
        "DIR/checkpoints/step-100; or give last, best, averaged",
    ),
    (["--beam_width=0"], "beam_width must be at least 1"),
    (["--length_penalty=-1"], "length_penalty must be at least 0"),
    (["--length_penalty=nan"], "length_penalty must be finite"),
    (["--length_penalty=inf"], "length_penalty must be finite"),
    (["--length_penalty=1e308"], "length_penalty must be at most 10, or float"),
    (["--nbest=9"], "nbest must be at most beam_width=4"),
    (["--max_extra_length=1000000001"], "must be at most 1,000,000,000"),
    (["--batch_lines=1000000001"], "must be at most 1,000,000,000"),
    (["--checkpoint=step-2"], "such as DIR/checkpoints/step-100"),
    (["--checkpoint="], "--checkpoint is empty"),
    (["--output="], "--output is empty"),
    (["--input=missing"], "missing does not exist"),
    (["--input=line\nbreak"], "line\\nbreak does not exist"),
    (["--output=/nowhere/at/all"], "cannot write /nowhere/at/all"),
]


@pytest.mark.parametrize(("flags", "message"), _MODEL_FLAGS)
def test_wrong_flags_of_translate_are_refused(flags, message, model):
    _refused(message, "translate", f"--model_dir={model}", *flags)


# (program, flags, the whole line of the error)
_UNPARSED_FLAGS = [
    ("translate", [], "--model_dir is required"),
    ("serve", [], "give either --model_dir or --export_dir"),
    (
        "serve",
        ["--model_dir=a", "--export_dir=b"],
        "give either --model_dir or --export_dir",
    ),
    (
        "visualize_attention",
        [],
        "--model_dir is required; --sentence is required",
    ),
    (
        "train",
        ["--model_dri=x"],
        "Unknown command line flag 'model_dri'. Did you mean: model_dir ?",
    ),
    (
        "translate",
        ["--model_dir=x", "--nbest=much"],
        "--nbest=much: invalid literal for int() with base 10: 'much'",
    ),
    (
        "train",
        ["--model_dir=x", "--average_last=2"],
        "average_last is a setting: give --override=average_last=VALUE",
    ),
    ("translate", ["--input"], "Missing value for flag --input"),
    (
        "translate",
        ["--model_dir=x", "--noxla=1"],
        "--noxla=1 does not take an argument",
    ),
]


@pytest.mark.parametrize(("name", "flags", "line"), _UNPARSED_FLAGS)
def test_flags_that_cannot_be_read_are_one_line(name, flags, line):
    found = in_process.run(name, *flags)
    assert_refused(found, line)
    assert found[2].startswith(f"error: {line}\n")


# (program, flags besides --model_dir, part of the message)
_EARLY = [
    *(
        (name, ["--model_dir=missing"], "missing is not a model directory")
        for name in ("translate", "evaluate", "export", "average_checkpoints")
    ),
    ("translate", ["--nbest=9"], "nbest must be at most beam_width=4"),
    ("translate", ["--input=missing"], "missing does not exist"),
    ("translate", ["--output=missing/x"], "there is no folder missing"),
    ("train", [f"--model_dir={__file__}"], "--model_dir must be a folder"),
    ("train", ["--vocabulary=missing"], "--vocabulary: missing does not exist"),
    ("train", ["--warm_start_from=no"], "--warm_start_from: no does not exist"),
    ("train", ["--patience=0"], "patience must be at least 1"),
    ("train", ["--hang_minutes=0"], "hang_minutes must be above 0"),
    ("train", ["--max_skips=5"], "give --on_divergence=skip too"),
    *(
        (
            "train",
            [
                f"--{option}=3",
                f"--train_source={__file__}",
                f"--train_target={__file__}",
            ],
            f"{option} needs dev text: give --dev_source",
        )
        for option in ("patience", "evaluate_every_steps")
    ),
    ("evaluate", ["--beam_width=0"], "beam_width must be at least 1"),
    ("export", ["--attention_head=3"], "attention_head must be from 0 to 2"),
    ("export", ["--attention_layer=2"], "attention_layer must be from 0 to 1"),
    ("export", ["--max_length=24"], "max_length must be from 2 to 23"),
    ("export", ["--export_dir=out/7"], "give the folder of all versions"),
    ("visualize_attention", ["--head=3"], "head must be from 0 to 2"),
    ("visualize_attention", ["--layer=2"], "layer must be from 0 to 1"),
    ("evaluate", ["--splits=x"], "split must be one of train, dev, test"),
    ("evaluate", ["--test_source=/no", "--test_target=/no"], "no file matches"),
    (
        "evaluate",
        ["--corpus=embedded", "--splits=x"],
        "split must be one of train, dev, test",
    ),
    ("evaluate", ["--test_trees=/no"], "no file matches '/no'"),
    *(
        (name, [f"--checkpoint={which}"], message)
        for name in ("translate", "evaluate", "export", "visualize_attention")
        for which, message in [
            ("best", "has no checkpoint in best/: train first"),
            ("averaged", "has no checkpoint in averaged/: run"),
            ("/no/step-1", "the checkpoint /no/step-1 is missing"),
        ]
    ),
    ("translate", ["--average_last=3"], "keeps 2 checkpoints, too few to"),
    (
        "translate",
        ["--average_last=2", "--checkpoint=best"],
        "give --average_last or --checkpoint=best, not both",
    ),
    (
        "translate",
        ["--engine=ctranslate2", "--checkpoint=best"],
        "has no checkpoint in best/",
    ),
    (
        "translate",
        ["--checkpoint=last", "--checkpoint=best"],
        "has no checkpoint in best/",
    ),
    ("average_checkpoints", ["--average_last=3"], "keeps 2 checkpoints, too"),
    ("average_checkpoints", [], "average the last 5"),
    ("import_model", ["--from=/no"], "/no does not exist: give a folder or an"),
    (
        "train",
        ["--worker_timeout_minutes=5"],
        "--worker_timeout_minutes has no effect where one process trains",
    ),
]


@pytest.mark.parametrize(("name", "flags", "message"), _EARLY)
def test_what_needs_no_tensorflow_is_refused_before_it_is_loaded(
    name, flags, message, model, tmp_path, monkeypatch
):
    monkeypatch.setattr(cli, "load_tensorflow", pytest.fail)
    required = {
        "export": [f"--export_dir={tmp_path / 'export'}"],
        "import_model": [f"--model_dir={tmp_path / 'imported'}"],
        "visualize_attention": ["--sentence=x", f"--output={tmp_path / 'x'}"],
    }
    given = [*required.get(name, []), *flags]
    if not any(flag.startswith("--model_dir=") for flag in given):
        given.append(f"--model_dir={model}")
    _refused(message, name, *given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("export", ["--export_dir=out"]),
        ("serve", []),
        ("translate", ["--engine=ctranslate2"]),
        ("translate", ["--checkpoint=last", "--checkpoint=best"]),
        ("visualize_attention", ["--sentence=x", "--output=x.html"]),
    ],
)
def test_a_parser_is_refused_at_once_where_models_translate(
    name, flags, copy, monkeypatch
):
    monkeypatch.setattr(cli, "load_tensorflow", pytest.fail)
    directory = ModelDirectory(copy)
    settings = directory.settings()
    hparams = dataclasses.replace(settings.hparams, task="parsing")
    directory.save_settings(dataclasses.replace(settings, hparams=hparams))
    message = "was trained for parsing; this takes a model for translation"
    _refused(message, name, f"--model_dir={copy}", *flags)


# (flags, part of the message)
_EXPORT_FLAGS = [
    (["--max_length=24"], "max_length must be from 2 to 23 for this model"),
    (["--max_length=0"], "max_length must be from 2 to 23"),
    (["--attention_layer=2"], "attention_layer must be from 0 to 1"),
    (["--attention_head=3"], "attention_head must be from 0 to 2"),
    (["--checkpoint=best"], "has no checkpoint in best/"),
    (["--beam_width=0"], "beam_width must be at least 1"),
    (["--length_penalty=1e308"], "length_penalty must be at most 10"),
]


@pytest.mark.parametrize(("flags", "message"), _EXPORT_FLAGS)
def test_wrong_flags_of_export_are_refused(flags, message, model, tmp_path):
    export_dir = tmp_path / "export"
    _refused(
        message,
        "export",
        f"--model_dir={model}",
        f"--export_dir={export_dir}",
        *flags,
    )
    assert not export_dir.exists()


def test_a_folder_without_settings_is_refused(tmp_path):
    _refused("has no settings.json", "translate", f"--model_dir={tmp_path}")


def test_a_model_directory_without_a_checkpoint_is_refused(copy):
    shutil.rmtree(copy / "checkpoints")
    _refused(
        "has no checkpoint in checkpoints/", "translate", f"--model_dir={copy}"
    )


# (content, part of the message)
_SETTINGS = [
    ("{", "Expecting property name"),
    ("null", "it has no hparams"),
    ("[]", "it has no hparams"),
    ("7", "it has no hparams"),
    ("{}", "it has no hparams"),
    ('{"hparams": null}', "hparams must hold fields; received None"),
    ('{"hparams": []}', "hparams must hold fields; received []"),
    ('{"hparams": {}, "corpus": {}}', "the field 'data_sha256' is missing"),
    (
        '{"hparams": {}, "vocabluary_size": 5}',
        "did you mean 'vocabulary_size'?",
    ),
]


@pytest.mark.parametrize(("content", "message"), _SETTINGS)
def test_damaged_settings_are_refused(content, message, copy):
    (copy / "settings.json").write_text(content)
    _refused(
        f"settings.json cannot be used: {message}"
        if message.endswith(("hparams", "missing"))
        else message,
        "translate",
        f"--model_dir={copy}",
    )


def _change_settings(directory, **fields):
    # With a byte order mark, as some Windows programs write it.
    edited_settings.edit(directory, "utf-8-sig", **fields)


def test_edited_settings_are_refused_until_their_checksum_is_removed(copy):
    path = copy / "settings.json"
    text = path.read_text()
    path.write_text(text.replace('"beam_width": 4', '"beam_width": 5'))
    assert path.read_text() != text
    message = f"{path} was edited or is damaged: restore it from a backup, or"
    for program in ("translate", "train"):
        _refused(message, program, f"--model_dir={copy}")
    _change_settings(copy)
    found = in_process.run("translate", f"--model_dir={copy}", text="\n")
    assert found[:2] == (0, "\n"), found[2]


def test_a_checkpoint_with_more_layers_than_the_settings_is_refused(copy):
    _change_settings(copy, hparams={"num_layers": 1})
    _refused(
        "layer_1/feed_forward/hidden/bias; received [20]",
        "translate",
        f"--model_dir={copy}",
    )


@pytest.mark.parametrize("field", ["num_layers", "d_ff", "d_k"])
def test_settings_of_a_giant_are_refused_before_memory_runs_out(copy, field):
    _change_settings(copy, hparams={field: 10**9})
    _refused("the settings call for", "translate", f"--model_dir={copy}")


@pytest.mark.slow
def test_a_model_takes_no_memory_by_the_longest_line_it_takes(
    translated, tmp_path
):
    path, expected = translated
    copy = shutil.copytree(path, tmp_path / "copy")
    limits = {"max_length": 10**9, "tokens_per_batch": 10**9}
    _change_settings(copy, hparams=limits)
    assert _translate_the_dog(copy) == expected


@pytest.mark.parametrize(
    "record",
    [
        {"step": np.ones((2, 2))},
        {"training_flops": np.bytes_("many")},
        {"device_seconds": np.ones(0)},
    ],
)
def test_a_checkpoint_whose_record_is_no_number_is_refused(copy, record):
    path = copy / "checkpoints" / "step-2"
    checkpoints.write(path, checkpoints.read(path) | record)
    (name,) = record
    message = f"step-2 is damaged: {name} must be a single number"
    _refused(message, "translate", f"--model_dir={copy}")


@pytest.mark.parametrize("flags", [[], ["--average_last=2"]])
@pytest.mark.parametrize("number", [b"x", 1j])
def test_weights_that_are_no_real_numbers_are_refused(copy, number, flags):
    path = copy / "checkpoints" / "step-2"
    tensors = checkpoints.read(path)
    name = next(name for name in tensors if name.startswith("transformer/"))
    tensors[name] = np.full(tensors[name].shape, number)
    checkpoints.write(path, tensors)
    message = f"step-2 must be real numbers; {name} is "
    _refused(message, "translate", f"--model_dir={copy}", *flags)


def test_a_share_above_1_is_refused(copy):
    _change_settings(copy, multi_sentence_share=7.5)
    message = "multi_sentence_share must be from 0 to 1; received"
    _refused(message, "translate", f"--model_dir={copy}")


def test_settings_with_a_share_and_no_length_split_all_lines(copy):
    _change_settings(copy, multi_sentence_share=0.5)
    found = in_process.run("translate", f"--model_dir={copy}", text="\n")
    assert found[:2] == (0, "\n"), found[2]


def test_an_unknown_setting_is_refused_with_the_nearest(copy):
    _change_settings(copy, hparams={"dropuot": 0.1})
    _refused("did you mean 'dropout'?", "translate", f"--model_dir={copy}")


def test_a_truncated_checkpoint_falls_back_to_the_one_before(copy):
    data = copy / "checkpoints" / "step-2.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    status, out, errors = in_process.run(
        "translate", f"--model_dir={copy}", text="\n"
    )
    assert (status, out) == (0, "\n"), errors
    assert "step-2 is damaged; falling back to the previous" in errors


def test_standard_input_must_be_utf8(model):
    _refused(
        "standard input, line 2: text must be UTF-8",
        "translate",
        f"--model_dir={model}",
        text="eins\n\udcff\n",
    )


@pytest.mark.parametrize("is_file", [True, False])
def test_lines_that_end_in_carriage_returns_are_not_taken_for_one(
    model, files, is_file
):
    flags = [f"--input={files['old_mac']}"] if is_file else []
    message = 'these end in "\\r" alone: convert them with tr'
    flags = [f"--model_dir={model}", *flags]
    _refused(message, "translate", *flags, text="the\rdog")


@pytest.mark.slow
def test_a_line_may_end_in_a_carriage_return(translated):
    first, second = translated[1].splitlines()
    assert first
    assert second == first


# (program, flags besides --model_dir, part of the message)
_IGNORED = [
    (
        "translate",
        ["--scores", "--nbest=2"],
        "--scores has no effect with --nbest, which prints the score of each",
    ),
    (
        "visualize_attention",
        ["--translation=x", "--beam_width=2"],
        "--beam_width has no effect with --translation, which needs no search",
    ),
    (
        "visualize_attention",
        ["--translation=x", "--length_penalty=0"],
        "--length_penalty has no effect with --translation",
    ),
    (
        "visualize_attention",
        ["--translation=x", "--xla"],
        "--xla has no effect with --translation",
    ),
    *(
        (
            name,
            ["--precision=int8"],
            "--precision=int8 is for searches that XLA compiles: give --xla",
        )
        for name in ("translate", "evaluate", "serve", "visualize_attention")
    ),
    (
        "export",
        ["--precision=int8", "--format=ctranslate2"],
        "--precision has no effect with --format, which has --quantization: ",
    ),
    (
        "train",
        ["--save_every_steps=3", "--save_every_minutes=10"],
        "--save_every_minutes has no effect with --save_every_steps: leave it",
    ),
    (
        "train",
        ["--steps=3", "--override=steps=4"],
        "--override=steps has no effect with --steps",
    ),
    (
        "train",
        ["--save_every_steps=9", "--override=save_every_steps=8"],
        "--override=save_every_steps has no effect with --save_every_steps",
    ),
    (
        "train",
        ["--save_every_minutes=9", "--override=save_every_steps=8"],
        "--override=save_every_steps has no effect with --save_every_minutes",
    ),
    (
        "train",
        ["--vocabulary=x", "--override=vocabulary_size=400"],
        "--override=vocabulary_size has no effect with --vocabulary",
    ),
]


@pytest.mark.parametrize(("name", "flags", "message"), _IGNORED)
def test_flags_without_effect_are_refused(
    name, flags, message, model, tmp_path, monkeypatch
):
    monkeypatch.setattr(cli, "load_tensorflow", pytest.fail)
    page = [f"--output={tmp_path / 'page'}", "--sentence=x"]
    given = page if name == "visualize_attention" else []
    _refused(message, name, f"--model_dir={model}", *given, *flags)


# (program, flags besides --model_dir, part of the message)
_TWICE = [
    ("evaluate", ["--model_dir=other"], "--model_dir=other: already defined"),
    ("score", ["--checkpoint=a", "--checkpoint=b"], "--checkpoint=b: already"),
    ("train", ["--model_dir=other"], "--model_dir=other: already defined"),
    (
        "translate",
        ["--engine=ctranslate2", "--checkpoint=last", "--checkpoint=best"],
        "CTranslate2 translates with one model: give one --model_dir and one",
    ),
    ("translate", ["--model_dir="], "--model_dir is empty"),
    ("translate", ["--model_dir=nowhere"], "nowhere is not a model directory"),
]


@pytest.mark.parametrize(("name", "flags", "message"), _TWICE)
def test_a_model_is_given_once_where_one_is_taken(
    name, flags, message, model, monkeypatch
):
    monkeypatch.setattr(cli, "load_tensorflow", pytest.fail)
    _refused(message, name, f"--model_dir={model}", *flags)


def test_an_output_takes_the_place_of_no_part_of_any_model(model, tmp_path):
    output = tmp_path / "settings.json"
    flags = [f"--model_dir={model}", f"--model_dir={tmp_path}"]
    _refused("it is part of the", "translate", *flags, f"--output={output}")


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ("0", "--devices=0: must be all, or a number above 0"),
        ("some", "--devices=some: must be all, or a number above 0"),
        ("99", "devices must be all, or from 1 to 1 on this machine"),
    ],
)
def test_devices_that_there_are_not_are_refused(model, devices, message):
    for name in ("translate", "evaluate"):
        flags = [f"--model_dir={model}", f"--devices={devices}"]
        _refused(message, name, *flags)


def test_flags_that_are_given_as_they_are_anyway_are_taken(model):
    flags = [f"--model_dir={model}", "--noscores", "--nbest=2"]
    found = in_process.run("translate", *flags, text="\n")
    assert found[0] == 0, found[2]


# (program, flags besides --model_dir, part of the message)
_NO_FILES = [
    ("evaluate", ["--report=-"], "cannot write to standard output (-): give a"),
    ("learn_vocabulary", ["--output=-"], "cannot write to standard output (-)"),
    (
        "visualize_attention",
        ["--png_prefix=-"],
        "cannot write to standard output (-)",
    ),
    ("visualize_attention", ["--png_prefix=./"], "such as ./NAME"),
    ("evaluate", ["--report=./"], "cannot write ./.md: give a name too"),
    ("evaluate", ["--report=/dev/null"], "cannot write /dev/null.md: give a"),
]


@pytest.mark.parametrize(("name", "flags", "message"), _NO_FILES)
def test_outputs_without_a_name_are_refused(
    name, flags, message, model, tmp_path, monkeypatch
):
    monkeypatch.setattr(cli, "load_tensorflow", pytest.fail)
    monkeypatch.chdir(tmp_path)
    given = [f"--model_dir={model}"] if name != "learn_vocabulary" else []
    if name == "visualize_attention":
        given.append("--sentence=x")
    _refused(message, name, *given, *flags)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["matrix", "lines"])
def test_a_picture_does_not_take_the_place_of_the_page(
    model, tmp_path, monkeypatch, name
):
    monkeypatch.setattr(cli, "load_tensorflow", pytest.fail)
    _refused(
        "or writes another output there",
        "visualize_attention",
        f"--model_dir={model}",
        "--sentence=x",
        f"--png_prefix={tmp_path / 'p'}",
        f"--output={tmp_path / f'p-{name}.png'}",
    )


def test_an_output_file_is_whole_or_not_there(model, tmp_path):
    # The first line, an empty one, is written before the second is read.
    output = tmp_path / "output"
    _refused(
        "line 2: text must be UTF-8",
        "translate",
        f"--model_dir={model}",
        f"--output={output}",
        "--batch_lines=1",
        text="\nf\udcfcnf\n",
    )
    assert not list(tmp_path.glob("*output*"))


@pytest.mark.parametrize("command", ["translate", "evaluate", "export"])
def test_weights_that_are_not_finite_are_refused(command, copy, tmp_path):
    path = copy / "checkpoints" / "step-2"
    tensors = checkpoints.read(path)
    broken = next(name for name in tensors if name.startswith("transformer/"))
    tensors[broken] = np.full_like(tensors[broken], np.nan)
    checkpoints.write(path, tensors)
    output = [f"--export_dir={tmp_path / 'e'}"] if command == "export" else []
    message = f"step-2 are not finite, such as {broken}: choose another"
    _refused(message, command, f"--model_dir={copy}", *output)


def test_options_for_dev_are_refused_without_dev_text(corpus, tmp_path):
    training_text = [flag for flag in corpus if flag.startswith("--train")]
    for name in ("patience", "evaluate_every_steps"):
        _refused(
            f"{name} needs dev text: give --dev_source",
            "train",
            *training_text,
            f"--{name}=3",
            f"--model_dir={tmp_path / 'model'}",
        )
    assert not (tmp_path / "model").exists()


def test_an_unknown_split_is_refused(model):
    _refused(
        "split must be one of train, dev, test",
        "evaluate",
        f"--model_dir={model}",
        "--splits=valid",
    )


def test_a_translation_model_is_not_scored_on_trees(model, tmp_path):
    path = tmp_path / "some.trees"
    path.write_text("(TOP (UH oh))\n")
    _refused(
        "is a corpus for parsing, and the model is for translation",
        "evaluate",
        f"--model_dir={model}",
        f"--test_trees={path}",
    )


def test_a_model_without_dev_or_test_text_is_not_scored(copy, corpus):
    training_text = [flag for flag in corpus if flag.startswith("--train")]
    _set_corpus(ModelDirectory(copy), training_text)
    _refused("without dev or test text", "evaluate", f"--model_dir={copy}")


def test_too_few_checkpoints_are_not_averaged(model):
    _refused(
        "too few to average the last 7",
        "average_checkpoints",
        f"--model_dir={model}",
        "--average_last=7",
    )


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        (
            "--json=/nowhere/at/all",
            "cannot write /nowhere/at/all: there is no folder /nowhere/at",
        ),
        (
            "--report=/nowhere/at/all",
            "cannot write /nowhere/at/all.md: there is no folder /nowhere/at",
        ),
        ("--report=new/", "cannot write new/.md: there is no folder new"),
        ("--json=/tmp", "cannot write /tmp: it is a folder"),
    ],
)
def test_scores_are_not_written_where_there_is_no_folder(model, flag, message):
    _refused(message, "evaluate", f"--model_dir={model}", flag)


def test_what_is_read_is_not_written_over(model, tmp_path):
    text = _write(tmp_path / "text", "the dog\n")
    message = f"cannot write {text}: this command also reads it"
    for name, split, *flags in (
        ("evaluate", "test", f"--model_dir={model}", f"--json={text}"),
        ("learn_vocabulary", "train", f"--output={text}"),
    ):
        flags += [f"--{split}_source={text}", f"--{split}_target={text}"]
        _refused(message, name, *flags)
    link = tmp_path / "link"
    link.symlink_to(text)
    flags = (f"--model_dir={model}", f"--input={link}", f"--output={text}")
    _refused(message, "translate", *flags)
    assert text.read_text() == "the dog\n"


def test_text_that_can_be_read_only_once_is_not_trained_on(tmp_path):
    pipe, model_dir = tmp_path / "pipe", tmp_path / "model"
    os.mkfifo(pipe)
    flags = [f"--train_{side}={pipe}" for side in ("source", "target")]
    _refused(
        f"{pipe} is a pipe, which can be read only once, and training",
        "train",
        f"--model_dir={model_dir}",
        *flags,
    )
    assert not model_dir.exists()


def test_two_outputs_do_not_share_a_file(model, tmp_path):
    output = tmp_path / "scores"
    _refused(
        f"cannot write {output}.json: this command",
        "evaluate",
        f"--model_dir={model}",
        f"--json={output}.json",
        f"--report={output}",
    )


def test_an_average_that_is_not_finite_is_not_written(copy):
    path = copy / "checkpoints" / "step-2"
    tensors = checkpoints.read(path)
    broken = next(name for name in tensors if name.startswith("transformer/"))
    tensors[broken] = np.full_like(tensors[broken], np.nan)
    checkpoints.write(path, tensors)
    _refused(
        f"are not finite, such as {broken}",
        "average_checkpoints",
        f"--model_dir={copy}",
        "--average_last=2",
    )
    assert not (copy / "averaged").exists()


def test_a_model_with_the_vocabulary_of_another_is_refused(copy):
    learning.learn(LINES, "bpe", 290).save(copy / "vocabulary.model")
    flag = f"--model_dir={copy}"
    for name, *more in (
        ("translate",),
        ("evaluate",),
        ("export", f"--export_dir={copy / 'export'}"),
    ):
        _refused("is not the vocabulary of this model", name, flag, *more)
    assert not (copy / "export").exists()


@pytest.mark.slow
def test_a_model_is_read_where_a_path_looks_like_a_pattern(
    translated, tmp_path
):
    path, expected = translated
    copy = shutil.copytree(path, tmp_path / "a[1]\\b")
    assert _translate_the_dog(copy) == expected


def test_a_vocabulary_is_not_written_where_there_is_no_folder(corpus):
    _refused(
        "cannot write /nowhere/at/all: there is no folder /nowhere/at",
        "learn_vocabulary",
        *corpus,
        "--size=400",
        "--output=/nowhere/at/all",
    )


def test_dev_files_of_unequal_length_leave_no_run_behind(corpus, tmp_path):
    longer = _write(tmp_path / "longer", "eins\n" * 61)
    flags = [f for f in corpus if not f.startswith("--dev_target")]
    _refused(
        "received 61 lines in",
        "train",
        *flags,
        f"--dev_target={longer}",
        f"--model_dir={tmp_path / 'model'}",
    )
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_json_on_stdout_is_not_mixed_with_text(model):
    status, out, errors = in_process.run(
        "evaluate", f"--model_dir={model}", "--splits=test", "--json=-"
    )
    assert status == 0, errors
    assert list(json.loads(out)["splits"]) == ["test"]
    assert "test: 60 pairs" in errors


def test_help_is_shown_on_the_narrowest_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "1")
    status, out, _ = in_process.run("evaluate", "--help")
    assert status == 0
    assert "--model_dir" in out


def test_help_ends_well_and_says_what_a_flag_does_here():
    status, out, _ = in_process.run("evaluate", "--help")
    assert status == 0
    assert "to score the first that has dev" in out
    assert "to train on all" not in out


def test_output_to_a_device_leaves_the_device(model):
    status, _, errors = in_process.run(
        "translate",
        f"--model_dir={model}",
        "--output=/dev/null",
        text="\n",
    )
    assert status == 0, errors
    assert not os.path.isfile("/dev/null")


def test_nothing_to_translate_gives_nothing(model, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("")
    for flags in ([], [f"--input={empty}"]):
        found = in_process.run("translate", f"--model_dir={model}", *flags)
        assert found[:2] == (0, ""), found[2]


def test_a_vocabulary_is_written_to_a_pipe(corpus, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with futures.ThreadPoolExecutor(1) as pool:
        reading = pool.submit(pipe.read_bytes)
        status, _, errors = in_process.run(
            "learn_vocabulary", *corpus, "--size=330", f"--output={pipe}"
        )
        assert status == 0, errors
        assert Vocabulary(reading.result(60)).size == 330
    assert pipe.is_fifo()  # Not replaced by a file, just as /dev/null is not.


def test_a_vocabulary_too_small_for_its_characters_is_refused(corpus, tmp_path):
    output = tmp_path / "vocabulary.model"
    _refused(
        "vocabulary_size must be at least",
        "learn_vocabulary",
        *corpus,
        "--size=20",
        f"--output={output}",
    )
    assert not output.exists()


def test_a_program_within_this_process_leaves_its_log_as_it_was():
    before = logging.get_verbosity()
    in_process.run("evaluate", "--help")
    assert logging.get_verbosity() == before


@pytest.mark.parametrize(
    "name", ["settings.json", "vocabulary.model", "checkpoints/step-1.index"]
)
def test_no_output_takes_the_place_of_the_model(copy, tmp_path, name):
    target = copy / name
    before = target.read_bytes()
    source = _write(tmp_path / "some.en", "the dog\n")
    flags = [f"--model_dir={copy}", f"--input={source}", f"--output={target}"]
    _refused("it is part of the model", "translate", *flags)
    assert target.read_bytes() == before


def test_an_output_beside_the_model_is_written(copy, tmp_path):
    source = _write(tmp_path / "some.en", "the dog\n")
    flags = [f"--model_dir={copy}", f"--input={source}"]
    output = copy / "some.de"
    status, _, errors = in_process.run(
        "translate", *flags, f"--output={output}"
    )
    assert status == 0, errors
    assert output.read_text("utf-8").count("\n") == 1


def test_a_scores_file_in_the_place_of_the_settings_is_refused(copy):
    target = copy / "settings.json"
    flags = [f"--model_dir={copy}", f"--json={target}"]
    _refused("it is part of the model", "evaluate", *flags)


def test_a_loop_of_links_is_refused_as_a_place_of_exports(copy, tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    flags = [f"--model_dir={copy}", f"--export_dir={loop / 'a'}"]
    _refused("symbolic links", "export", *flags)


def test_an_average_of_nothing_says_so(copy):
    shutil.rmtree(copy / "checkpoints")
    found = in_process.run("average_checkpoints", f"--model_dir={copy}")
    assert_refused(found, "has no checkpoint in checkpoints/: train first")
    assert "train first\n" in found[2]  # No flag is suggested: none would help.


def test_a_negative_length_of_lines_is_refused(copy):
    _change_settings(copy, long_line_tokens=-4)
    _refused(
        "long_line_tokens must be at least 1",
        "translate",
        f"--model_dir={copy}",
    )


def test_a_page_in_the_place_of_the_vocabulary_is_refused(copy):
    target = copy / "vocabulary.model"
    flags = [f"--model_dir={copy}", "--sentence=the dog", f"--output={target}"]
    _refused("it is part of the model", "visualize_attention", *flags)
