"""Files of version 0.1.0 still give the same translations, trees and scores.

golden/0.1.0/make.py made these files.
"""

import dataclasses
import functools
import json
import shutil

import archives
import numpy as np
import pytest
from paths import ROOT

from t2t_lite import Parser, Translator, hardware, tasks
from t2t_lite.errors import InputError
from t2t_lite.evaluation.report import evaluate
from t2t_lite.storage import checkpoints, model_directory
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.training import run
from t2t_lite.training.options import RunOptions
from t2t_lite.training.training_text import TrainingText

GOLDEN = ROOT / "tests" / "golden" / "0.1.0"
REPORT = json.loads((GOLDEN / "expected.json").read_text("utf-8"))
LINES, EXPECTED = REPORT["lines"], REPORT["expected"]


def read_lines(name):
    text = (GOLDEN / "corpus" / name).read_text("utf-8")
    return text.removesuffix("\n").split("\n")


def read_pairs(split, target):
    sides = read_lines(f"{split}.source"), read_lines(f"{split}.{target}")
    return list(zip(*sides, strict=True))


def assert_translations(found, expected):
    for nbest, expected_nbest in zip(found, expected, strict=True):
        assert [t.text for t in nbest] == [text for text, _ in expected_nbest]
        np.testing.assert_allclose(
            [t.score for t in nbest],
            [score for _, score in expected_nbest],
            rtol=0,
            atol=1e-4,
        )


@pytest.fixture(scope="module")
def translator():
    return Translator(GOLDEN / "translation", xla=False, nbest=3)


@pytest.fixture(scope="module")
def parser():
    return Parser(GOLDEN / "parsing")


def test_a_model_directory_translates_as_ever(translator):
    found = translator.translate(LINES)
    assert_translations(found, EXPECTED["nbest"])
    assert_translations([nbest[:1] for nbest in found], EXPECTED["last"])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("best", {"which": "best"}),
        ("averaged", {"which": "averaged"}),
        ("average_last", {"average_last": 2}),
    ],
)
def test_other_checkpoints_translate_as_ever(translator, name, arguments):
    variables = translator.model.trainable_variables
    directory = ModelDirectory(GOLDEN / "translation")
    description, tensors = directory.weights(**arguments)
    model_directory.assign(variables, tensors, description)
    found = translator.translate(LINES)
    model_directory.assign(variables, directory.weights()[1], "last")
    assert_translations([nbest[:1] for nbest in found], EXPECTED[name])


def test_an_average_is_written_as_ever(tmp_path):
    shutil.copytree(GOLDEN / "translation", tmp_path / "model")
    shutil.rmtree(tmp_path / "model" / "averaged")
    path, _ = ModelDirectory(tmp_path / "model").write_average()
    found = checkpoints.read(path)
    expected = checkpoints.read(GOLDEN / "translation" / "averaged" / path.name)
    assert found.keys() >= expected.keys()  # Newer versions may add values.
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, name)


def test_an_export_translates_as_ever(tmp_path):
    archives.unpack(GOLDEN / "export.tar.gz", tmp_path)
    translator = Translator.from_saved_model(tmp_path / "export" / "1")
    assert_translations(translator.translate(LINES), EXPECTED["export"])


@pytest.mark.slow
def test_a_model_directory_parses_as_ever(parser):
    assert_translations(parser.translate(LINES), EXPECTED["parsing"])


@pytest.mark.parametrize(
    ("name", "folder", "target"),
    [
        ("translator", "translation", "target"),
        ("parser", "parsing", "trees"),
    ],
)
def test_a_model_scores_as_ever(request, name, folder, target):
    model = request.getfixturevalue(name)
    task = tasks.task_of(model.model.hparams)
    report = evaluate(
        model,
        {"dev": [task.check_pair(*p) for p in read_pairs("dev", target)]},
        score=functools.partial(
            task.scores, language=target, with_margins=True
        ),
        encode_targets=functools.partial(task.encode_targets, model.vocabulary),
    )
    found = report.as_dict()
    expected = EXPECTED[f"evaluate {folder}"]
    assert found["search"] | {"nbest": 1} == expected["search"]
    found, expected = (of["splits"]["dev"] for of in (found, expected))
    assert found.keys() >= expected.keys()  # Newer versions add scores.
    assert found["data_sha256"] == expected["data_sha256"]
    for key, value in expected.items():
        if not isinstance(value, str):
            assert found[key] == pytest.approx(value, rel=1e-5), key


@pytest.fixture
def begun(tmp_path):
    """A copy of the model directory, in which its run can be resumed."""
    shutil.copytree(GOLDEN / "translation", tmp_path / "model")
    return ModelDirectory(tmp_path / "model")


def resume(directory, **overrides):
    """Resumes the run with the flags of `resumed` in make.py, and overrides."""
    settings = directory.settings()
    text = TrainingText(
        settings.corpus,
        {
            split: functools.partial(read_pairs, split, "target")
            for split in ("train", "dev")
        },
    )
    options = RunOptions(
        save_every_steps=200, evaluate_every_steps=604, micro_batch_tokens=256
    )
    hparams = dataclasses.replace(settings.hparams, **overrides)
    run.train(directory.path, hparams, text, options=options)


def translate_with(translator, tensors):
    """Returns what a translator gives with the weights of a checkpoint."""
    variables = translator.model.trainable_variables
    weights = {n: tensors[n] for n in tensors if model_directory.is_weight(n)}
    before = [variable.numpy() for variable in variables]
    model_directory.assign(variables, weights, "resumed.npz")
    found = translator.translate(LINES)
    for variable, value in zip(variables, before, strict=True):
        variable.assign(value)
    return found


@pytest.mark.slow
def test_a_run_is_resumed_to_the_same_weights(begun, translator, monkeypatch):
    # It would translate.
    monkeypatch.setattr(run, "final_report", lambda *_, **__: "")
    # Each part of a batch has its own dropout masks, and each core computes a
    # part: the expected weights are those of two.
    monkeypatch.setattr(hardware, "num_cores", lambda *_: 2)
    resume(begun, steps=604)
    found = checkpoints.read(begun.checkpoints / "step-604")
    del found["device_seconds"]
    del found["dev_sha256"]  # Version 0.1.0 did not keep it.
    expected = dict(np.load(GOLDEN / "resumed.npz"))
    assert found.keys() >= expected.keys()  # Newer versions add values.
    for name, value in expected.items():
        np.testing.assert_allclose(
            found[name], value, rtol=1e-5, atol=1e-7, err_msg=name
        )
    # Whose translations are those of the weights that version 0.1.0 got.
    resumed = Translator(begun.path, xla=False, nbest=3)
    assert resumed.description.endswith("step-604")
    expected = translate_with(translator, expected)
    assert_translations(
        resumed.translate(LINES),
        [[[t.text, t.score] for t in nbest] for nbest in expected],
    )


@pytest.mark.parametrize(
    ("name", "value"), [("d_ff", 41), ("dropout", 0.1), ("seed", 2)]
)
def test_a_run_is_not_resumed_with_other_settings(begun, name, value):
    before = getattr(begun.settings().hparams, name)
    rule = f"was trained with {name}={before}; received {name}={value}"
    with pytest.raises(InputError, match=rule):
        resume(begun, **{name: value})
