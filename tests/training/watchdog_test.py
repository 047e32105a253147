"""A run that diverges stops, or goes back and skips batches."""

import contextlib
import json
import logging
import os
import signal
import threading
import types

import in_process
import numpy as np
import pytest
import tensorflow as tf
from bilingual_text import CORPUS
from diverging_run import HPARAMS, PAIRS, Updates, train
from shared_trainer import shared_trainers

from t2t_lite import tasks
from t2t_lite.errors import InputError
from t2t_lite.optimization.divergence import DivergenceError
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.trainer import Trainer
from t2t_lite.optimization.update import Update
from t2t_lite.storage import checkpoint_files, checkpoints
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text import learning
from t2t_lite.training import run
from t2t_lite.training.hang_watch import HangWatch
from t2t_lite.training.options import RunOptions
from t2t_lite.training.watchdog import Watchdog


@pytest.fixture(autouse=True)
def _informative(caplog, monkeypatch):
    caplog.set_level(logging.INFO, "absl")
    monkeypatch.setattr(run, "final_report", lambda *_, **__: "")
    monkeypatch.setattr(run, "draw_curves", lambda *_: None)


@pytest.fixture(scope="module", autouse=True)
def _one_trainer():
    with in_process.on_one_core(), shared_trainers():
        yield


@pytest.fixture
def updates(monkeypatch):
    updates = Updates()
    monkeypatch.setattr(
        Trainer,
        "update",
        lambda *args, **options: updates.do(*args, **options),
    )
    return updates


@pytest.fixture
def directory(tmp_path):
    return ModelDirectory(tmp_path / "model")


def last(directory):
    path, tensors = next(checkpoints.newest(directory.checkpoints))
    return path.name, tensors


def names(directory):
    return [path.name for path in checkpoint_files.paths(directory.checkpoints)]


def weights_are_finite(tensors):
    weights = [tensors[n] for n in tensors if n.startswith("transformer/")]
    return all(np.isfinite(weight).all() for weight in weights)


def records(directory):
    return {
        path.name: json.loads(path.read_text("utf-8"))
        for path in directory.path.glob("divergence-*")
    }


@pytest.mark.slow
def test_a_run_that_skips_goes_back_and_on_past_the_window(
    directory, updates, caplog
):
    updates.break_batches(50)
    train(directory.path, steps=52, save_every_steps=16)
    name, tensors = last(directory)
    assert name == "step-52"
    assert weights_are_finite(tensors)
    assert "Diverged: the loss is not finite at step 50, lear" in caplog.text
    assert "step 48, without batches 49 to 50 (skip 1 of 3)." in caplog.text
    assert (tensors["skipped_batches"], tensors["num_skips"]) == (2, 1)
    # Batches fed before the divergence was noticed are fed again.
    second = updates.steps.index(49, 49)
    assert updates.steps[second:] == [*range(49, 53)]
    fed_in_vain = updates.batches[50:second]
    assert fed_in_vain == updates.batches[second:][: len(fed_in_vain)]
    assert len(fed_in_vain) > 0
    ((name, record),) = records(directory).items()
    assert name == "divergence-step-50-batch-50.json"
    assert record["reason"] == "the loss is not finite"
    assert (record["step"], record["batch"]) == (50, 50)
    assert record["learning_rate"] == pytest.approx(12**-0.5 * 50**-0.5)
    assert record["loss"] == record["gradient_norms"]["embedding"] == "nan"
    assert 1 < record["loss_mean"] < 7
    assert "decoder/layer_0/feed_forward" in record["gradient_norms"]
    assert len(record["pairs"]) == record["batch_size"] > 1
    assert all(tuple(pair) in PAIRS for pair in record["pairs"])
    longest = max(record[f"{side}_length"] for side in ("source", "target"))
    assert record["batch_size"] == HPARAMS.tokens_per_batch // longest
    assert 1 < record["target_tokens"] <= HPARAMS.tokens_per_batch


@pytest.mark.slow
def test_a_run_that_stops_keeps_the_last_good_checkpoint(directory, updates):
    updates.break_batches(50)
    with pytest.raises(InputError) as error:
        train(
            directory.path, steps=51, save_every_steps=24, on_divergence="stop"
        )
    (name,) = records(directory)
    assert str(error.value) == (
        "the loss is not finite at step 50, learning rate 4.08e-02: the last "
        "checkpoint is unharmed; lower --override=learning_rate_scale=..., or "
        "use --precision=float32, or give --on_divergence=skip; "
        f"{directory.path / name} has the batch and the gradient norms"
    )
    assert names(directory) == ["step-24", "step-48"]
    assert weights_are_finite(last(directory)[1])


def stop():
    os.kill(os.getpid(), signal.SIGTERM)


def die():
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("interrupt", "weights"), [(stop, (2.0, 1.0)), (die, ())]
)
def test_an_interrupted_run_skips_to_the_same_bits(
    directory, updates, tmp_path, interrupt, weights
):
    options = {"steps": 9, "save_every_steps": 3, "weights": weights}
    updates.break_batches(5)
    train(directory.path, **options)
    expected = last(directory)[1]
    assert expected["skipped_batches"] == 2
    interrupted = ModelDirectory(tmp_path / "interrupted")
    # Before it diverges, and after it has gone back.
    for step in (4, 8):
        updates.after[step] = interrupt
        with contextlib.suppress(KeyboardInterrupt):
            train(interrupted.path, **options)
        saved = f"step-{step}" if interrupt is stop else f"step-{step // 3 * 3}"
        assert last(interrupted)[0] == saved
    train(interrupted.path, **options)
    found = last(interrupted)[1]
    assert found.keys() == expected.keys()
    for name in expected.keys() - {"device_seconds"}:
        np.testing.assert_array_equal(found[name], expected[name], name)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [(), (2.0, 1.0)])
def test_without_a_checkpoint_it_begins_anew_past_the_window(
    directory, updates, weights
):
    updates.break_batches(3)
    train(directory.path, steps=4, save_every_steps=100, weights=weights)
    second = updates.steps.index(1, 1)
    assert updates.steps[second:] == [*range(1, 5)]
    assert updates.batches[second] == updates.batches[3]
    tensors = last(directory)[1]
    assert weights_are_finite(tensors)
    assert tensors["skipped_batches"] == 3


@pytest.mark.slow
def test_a_run_that_keeps_diverging_stops_after_some_skips(
    directory, updates, caplog
):
    updates.break_batches(*range(7, 30))
    with pytest.raises(InputError, match=r"at step 6, .* after 2 skips: the"):
        train(directory.path, save_every_steps=5, max_skips=2)
    assert "step 5, without batches 6 to 7 (skip 1 of 2)." in caplog.text
    assert "step 5, without batches 8 to 8 (skip 2 of 2)." in caplog.text
    assert sorted(records(directory)) == [
        "divergence-step-6-batch-8.json",
        "divergence-step-6-batch-9.json",
        "divergence-step-7-batch-7.json",
    ]
    assert names(directory) == ["step-5"]


@pytest.mark.slow
def test_a_run_that_hangs_is_ended(directory, updates, monkeypatch):
    ended, found = threading.Event(), []
    monkeypatch.setattr(HangWatch, "_end", lambda _: ended.set())
    monkeypatch.setattr(HangWatch, "_end_later", lambda *_: None)

    def hang():
        ended.clear()  # The first update may also have taken too long.
        found.append(ended.wait(60))

    updates.after[2] = hang
    train(directory.path, steps=3, hang_minutes=0.2 / 60)
    assert found == [True]


# The watchdog without a run.


@pytest.fixture(scope="module")
def vocabulary():
    return learning.learn(CORPUS, "bpe", 420)


def make_watchdog(directory, vocabulary, task="translation", **options):
    norms = types.SimpleNamespace(layers=["embedding", "decoder"])
    trainer = types.SimpleNamespace(
        step=0,
        learning_rate=lambda step: step / 1000,
        graphs=types.SimpleNamespace(gradient_norms=norms),
    )
    return Watchdog(
        trainer,
        directory,
        RunOptions(**options),
        task=tasks.named(task),
        vocabulary=vocabulary,
    )


def make_update(vocabulary, step=3, norms=(0.5, np.inf), targets=None):
    ids = [
        np.array([[*each, 0] for each in rows], np.int32)
        for rows in (vocabulary.encode(CORPUS[:1]), targets or [[5, 6, 1]])
    ]
    numbers = map(tf.constant, (4.0, 3.0, norms))
    return Update(*numbers, step, Batch(*ids))


def diverged(watchdog, update):
    with pytest.raises(DivergenceError) as error:
        watchdog.check(update, float(update.loss))
    return error.value


def test_a_loss_far_above_its_mean_diverges(directory, vocabulary):
    watchdog = make_watchdog(directory, vocabulary, divergence_factor=2.0)
    for loss in [1.5] * 70:
        watchdog.check(make_update(vocabulary, norms=(1.0, 1.0)), loss)
    mean = watchdog.loss_mean
    error = diverged(watchdog, make_update(vocabulary, norms=(1.0, 1.0)))
    assert error.reason.startswith("the loss of 4 is above 2 times its")
    assert watchdog.loss_mean == mean


def test_a_norm_that_is_not_finite_is_recorded_as_text(directory, vocabulary):
    watchdog = make_watchdog(directory, vocabulary)
    directory.path.mkdir()
    with pytest.raises(InputError, match=r"^the gradient norm is not finite"):
        watchdog.require_skip(
            diverged(watchdog, make_update(vocabulary, targets=[[5, 1]]))
        )
    (record,) = records(directory).values()
    assert record["gradient_norms"] == {"embedding": 0.5, "decoder": "inf"}
    assert record["loss"] == 4.0


def test_targets_that_are_no_text_are_recorded_token_by_token(
    directory, vocabulary
):
    watchdog = make_watchdog(directory, vocabulary, "parsing")
    directory.path.mkdir()
    with pytest.raises(InputError):
        watchdog.require_skip(diverged(watchdog, make_update(vocabulary)))
    (record,) = records(directory).values()
    expected = [CORPUS[0], " ".join(vocabulary.tokens([5, 6]))]
    assert record["pairs"] == [expected]


def test_a_disk_that_takes_no_record_does_not_hide_the_divergence(
    directory, vocabulary, caplog
):
    watchdog = make_watchdog(directory, vocabulary)
    with pytest.raises(InputError, match=r"--on_divergence=skip$"):
        watchdog.require_skip(diverged(watchdog, make_update(vocabulary)))
    assert "Cannot write" in caplog.text


def test_workers_that_are_not_the_chief_write_no_record(directory, vocabulary):
    watchdog = make_watchdog(None, vocabulary, on_divergence="skip")
    watchdog.require_skip(diverged(watchdog, make_update(vocabulary)))
    assert not directory.path.exists()


def test_what_is_restored_decides_as_what_was_saved(directory, vocabulary):
    first, second = (make_watchdog(directory, vocabulary) for _ in range(2))
    for loss in (5.0, 4.0, 4.5):
        first.check(make_update(vocabulary, norms=(1.0, 1.0)), loss)
    first.skip_until(7, first.skipped)
    second.restore(first.tensors())
    assert second.loss_mean == first.loss_mean
    assert second.skipped == first.skipped == (7, 1)
    second.restore({})  # As from a checkpoint of version 0.1.0.
    assert (second.loss_mean, second.skipped) == ((0, 0), (0, 0))
