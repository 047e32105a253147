"""How a run ends, even if something goes wrong, and what it leaves."""

import dataclasses
import json
import logging
import re
import shutil

import in_process
import numpy as np
import pytest
import tensorflow as tf
from bilingual_text import CORPUS
from shared_trainer import shared_trainers
from tiny_models import TINY_MODELS

from t2t_lite.decoding import shapes
from t2t_lite.errors import InputError
from t2t_lite.hardware import Hardware
from t2t_lite.optimization.trainer import Trainer
from t2t_lite.storage import checkpoint_files, checkpoints, origin
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.training import preparation, run, run_inputs
from t2t_lite.training.options import RunOptions
from t2t_lite.training.training_text import TrainingText

PAIRS = [(line, line[::-1]) for line in CORPUS]
HPARAMS = dataclasses.replace(
    TINY_MODELS["sinusoidal"],
    vocabulary_size=400,
    max_length=100,
    tokens_per_batch=400,
    num_layers=1,
    warmup_steps=2,
    steps=2,
    average_last=1,
    beam_width=1,
    max_extra_length=2,
)


class Anything:
    """A sentence to check, for which any output is right."""

    source = PAIRS[0][0]

    def is_right(self, output):
        return isinstance(output, str)


def train(path, hparams=HPARAMS, dev=PAIRS[:2], do=run.train, **options):
    readers = {"train": lambda: iter(PAIRS)}
    if dev:
        readers["dev"] = lambda: iter(dev)
    text = TrainingText(
        {},
        readers,
        read_checks=lambda: {"first_words": [Anything(), Anything()]},
    )
    options = {"micro_batch_tokens": 400, "save_every_steps": 3} | options
    return do(path, hparams, text, options=RunOptions(**options))


def names(folder):
    return [path.name for path in checkpoint_files.paths(folder)]


@pytest.fixture(scope="module", autouse=True)
def _informative():
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.INFO)
    yield
    logger.setLevel(level)


@pytest.fixture(scope="module", autouse=True)
def _one_trainer():
    with in_process.on_one_core(), shared_trainers():
        yield


@pytest.fixture
def directory(tmp_path):
    return ModelDirectory(tmp_path / "model")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The directory and report of a finished run; tests must not change it."""
    directory = ModelDirectory(tmp_path_factory.mktemp("finished") / "model")
    return directory, train(directory.path).report


@pytest.fixture
def trained(finished, directory):
    """A copy of the directory of `finished`, which a test may change."""
    shutil.copytree(finished[0].path, directory.path)
    return directory


@pytest.fixture
def without_report(monkeypatch):
    monkeypatch.setattr(run, "final_report", lambda *_, **__: "")


@pytest.mark.slow
def test_a_run_leaves_its_log_its_scores_and_its_curves(finished):
    directory, report = finished
    log = directory.log.read_text("utf-8")
    assert "Saved" in log
    assert "WARNING" not in log
    assert (
        "An update of 400 tokens takes 400 at once (as --micro_batch_tokens "
        "says), in 1 part; its loss, up to 20,971,520 logits." in log
    )
    scores = json.loads(directory.scores.read_text("utf-8"))
    assert scores["model"].endswith("step-2")
    dev = scores["splits"]["dev"]
    assert f"dev BLEU {dev['bleu']:.2f} ({dev['bleu_signature']})" in report
    assert {"chrf", "perplexity", "data_sha256", "pairs"} <= dev.keys()
    assert directory.training_picture.exists()
    assert scores["checks"] == {"first_words": {"right": 2, "total": 2}}
    assert "\nfirst words: 2 of 2 right\n" in report


@pytest.mark.slow
def test_the_settings_may_say_how_often_to_save(directory):
    often = dataclasses.replace(
        HPARAMS, steps=4, average_last=3, save_every_steps=1
    )
    train(directory.path, often, dev=(), save_every_steps=None)
    saved = names(directory.checkpoints)
    assert sorted(saved) == ["step-2", "step-3", "step-4"]


@pytest.mark.slow
def test_a_run_that_has_done_more_is_told_so(trained, caplog, without_report):
    train(trained.path, dataclasses.replace(HPARAMS, steps=1))
    assert "2 updates are done already, more than steps=1: noth" in caplog.text


@pytest.mark.slow
def test_other_dev_text_begins_the_best_anew(trained, caplog, without_report):
    path, tensors = next(checkpoints.newest(trained.checkpoints))
    checkpoints.write(path, tensors | {"best_score": np.float64(99)})
    train(trained.path, dev=PAIRS[3:5])
    assert "The dev text has changed" in caplog.text
    # Scored at once, so that the next score has something to compare with.
    assert "Step 2: dev perplexity" in caplog.text
    assert names(trained.best) == ["step-2"]


@pytest.mark.slow
def test_a_model_that_is_not_finite_is_never_the_best(directory, monkeypatch):
    update = Trainer.update

    def broken_update(self, *arguments, **options):
        result = update(self, *arguments, **options)
        self.weights[0].assign(np.full(self.weights[0].shape, np.nan))
        return result

    monkeypatch.setattr(Trainer, "update", broken_update)
    with pytest.raises(InputError, match="the weights are not finite at step"):
        train(directory.path, evaluate_every_steps=1)
    assert names(directory.best) == names(directory.checkpoints) == []


@pytest.mark.slow
def test_dev_is_searched_within_the_memory_of_the_run(
    directory, monkeypatch, without_report
):
    capacity, found = shapes.capacity, []

    def note(*arguments, **options):
        found.append(capacity(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(shapes, "capacity", note)
    train(directory.path, evaluate_every_steps=1, memory_limit_gib=0.25)
    assert [each.tokens for each in found] == [256]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (tf.errors.ResourceExhaustedError(None, None, "OOM\nHint"), "OOM"),
        (MemoryError(), "MemoryError()"),
        (InputError("no such file"), "no such file"),
    ],
)
def test_the_error_that_ends_a_run_is_the_last_line_of_its_log(
    directory, monkeypatch, error, line
):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(Trainer, "update", fail)
    with pytest.raises(type(error)):
        train(directory.path)
    assert directory.log.read_text("utf-8").endswith(f"ERROR {line}\n")


def test_a_warm_start_that_does_not_fit_does_not_block_its_correction(
    directory, tmp_path, monkeypatch
):
    other = tmp_path / "step-1"
    checkpoints.write(other, {"transformer/weight": np.ones(3, np.float32)})
    with pytest.raises(InputError, match="does not fit this model"):
        train(directory.path, warm_start_from=str(other))
    monkeypatch.setattr(run._Run, "loop", lambda *_: None)
    monkeypatch.setattr(run, "final_report", lambda *_, **__: "")
    wider = dataclasses.replace(HPARAMS, d_ff=16)
    train(directory.path, wider)
    assert directory.settings().hparams == wider


def test_weights_of_another_vocabulary_are_no_start(directory, tmp_path):
    other = tmp_path / "step-1"
    tensors = {"transformer/weight": np.ones(3, np.float32)}
    checkpoints.write(other, tensors | origin.tensors(HPARAMS, "b" * 64))
    message = "step-1 was trained with another vocabulary, whose SHA-256"
    with pytest.raises(InputError, match=message):
        train(directory.path, warm_start_from=str(other))
    resumed = {**checkpoints.read(other), "step": np.int64(1)}
    checkpoints.write(directory.checkpoints / "step-1", resumed)
    with pytest.raises(InputError, match=message):
        train(directory.path)


@pytest.mark.slow
def test_a_run_with_sampled_subwords_is_resumed_to_the_same_bits(
    directory, caplog
):
    hparams = dataclasses.replace(
        HPARAMS, subword_sampling=0.2, tokens_per_batch=4000, steps=9
    )
    train(directory.path, hparams, dev=(), save_every_steps=5)
    assert "Sampling the subwords of epoch 3." in caplog.text
    caplog.clear()
    whole = checkpoints.read(directory.checkpoints / "step-9")
    checkpoints.remove(directory.checkpoints / "step-9")
    train(directory.path, hparams, dev=(), save_every_steps=5)
    assert "Sampling the subwords of epoch 1." not in caplog.text
    resumed = checkpoints.read(directory.checkpoints / "step-9")
    assert whole.keys() == resumed.keys()
    for name in whole.keys() - {"device_seconds"}:
        np.testing.assert_array_equal(whole[name], resumed[name], name)


@pytest.mark.slow
def test_a_run_that_is_given_no_micro_batch_keeps_what_was_tried(
    directory, monkeypatch
):
    tried = []

    def first_fitting(trainer, shapes, tokens, on):
        tried.append((shapes, tokens, trainer.step))
        return 123

    monkeypatch.setattr(run, "first_fitting", first_fitting)
    for steps in (2, 3):  # The second resumes the first.
        hparams = dataclasses.replace(HPARAMS, steps=steps)
        train(directory.path, hparams, dev=(), micro_batch_tokens=None)
    ((shapes, tokens, step),) = tried
    for source_length, target_length, batch_size in shapes:
        longest = max(source_length, target_length)
        assert batch_size == HPARAMS.tokens_per_batch // longest
    assert (tokens, step) == (HPARAMS.tokens_per_batch, 0)
    assert directory.settings().micro_batch_tokens == 123


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "first"), [("GPU", 400), ("CPU", 256)])
def test_a_gpu_tries_the_whole_update_whatever_the_estimate_says(
    directory, monkeypatch, kind, first
):
    short = Hardware(kind, memory_bytes=1e6, num_cores=2)
    tried = []

    def first_fitting(trainer, shapes, tokens, on):
        tried.append((tokens, on))
        raise InputError("enough")

    monkeypatch.setattr(run, "first_fitting", first_fitting)
    monkeypatch.setattr(run_inputs, "hardware_for", lambda *_: short)
    monkeypatch.setattr(
        preparation, "fitting_micro_batch_tokens", lambda *_, **__: 256
    )
    with pytest.raises(InputError, match="enough"):
        train(directory.path, dev=(), micro_batch_tokens=None)
    assert tried == [(first, short)]


@pytest.mark.slow
def test_a_run_that_goes_on_keeps_the_precision_that_auto_chose(
    directory, monkeypatch, caplog, without_report
):
    tried = []

    def faster_precision(*sizes):
        tried.append(sizes)
        return "bfloat16"

    monkeypatch.setattr(run_inputs, "faster_precision", faster_precision)
    for steps in (2, 3):  # The second resumes the first.
        hparams = dataclasses.replace(HPARAMS, steps=steps)
        train(directory.path, hparams, dev=(), precision="auto")
        assert "Computing in bfloat16." in caplog.text
        caplog.clear()
    assert tried == [(HPARAMS.d_model, HPARAMS.d_ff, False)]
    hparams = dataclasses.replace(HPARAMS, steps=4)
    train(directory.path, hparams, dev=(), precision="float32")
    assert directory.settings().precision == "float32"


@pytest.mark.slow
def test_a_preflight_says_what_a_run_takes_and_trains_nothing(directory):
    report = train(directory.path, do=run.preflight, save_every_steps=1)
    tried = re.findall(r"^ +(\d+) +(\d+) +(\d+) +([\d.]+)% ", report, re.M)
    assert len(tried) > 1
    assert sum(float(share) for *_, share in tried) == pytest.approx(100, 0.01)
    for source_length, target_length, batch_size, _ in tried:
        longest = max(int(source_length), int(target_length))
        assert int(batch_size) * longest <= HPARAMS.tokens_per_batch
    for expected in (
        "On CPU:0 in float32, without XLA",
        "Micro-batches of 400 tokens.",
        "2 updates of ",
        "2 evaluations of ",
        "2 checkpoints of ",
        "5 checkpoints at a time need ",
    ):
        assert expected in report
    left = {path.name for path in directory.path.iterdir()}
    assert left == {"settings.json", "tokens", "vocabulary.model"}


def test_a_preflight_refuses_what_would_fail_hours_later(
    directory, monkeypatch
):
    usage = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(InputError, match=r"0\.00 GiB are free: make"):
        train(directory.path, do=run.preflight)


@pytest.mark.slow
def test_a_preflight_refuses_a_shape_that_takes_more_than_there_is(directory):
    with pytest.raises(InputError, match="memory runs out with a batch of"):
        train(directory.path, do=run.preflight, memory_limit_gib=0.01)


def test_a_preflight_does_not_wait_for_other_workers(directory, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1", "b:1"]}}')
    with pytest.raises(InputError, match="is for one machine"):
        train(directory.path, do=run.preflight, strategy="auto")


@pytest.mark.slow
def test_a_preflight_is_for_a_new_run(finished):
    directory, _ = finished
    with pytest.raises(InputError, match="has a checkpoint already"):
        train(directory.path, do=run.preflight)
