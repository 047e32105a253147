"""Trial updates find the micro-batch that fits, and leave no trace."""

import dataclasses
import logging
import types

import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY_MODELS

from t2t_lite import hardware
from t2t_lite.errors import InputError
from t2t_lite.hardware import GIB, Hardware
from t2t_lite.optimization.trainer import Trainer
from t2t_lite.training import trial
from t2t_lite.training.trial import (
    Trial,
    first_fitting,
    largest_shapes,
    try_update,
)

V = 12
CPU = Hardware("CPU", 1000 * GIB, num_cores=2)
SHAPE = (5, 8, 128)  # 1,024 target tokens
LONG = (32, 32, 8)


@pytest.fixture(scope="module")
def trainer():
    hparams = dataclasses.replace(TINY_MODELS["sinusoidal"], num_layers=1)
    return Trainer(hparams, V)


@pytest.fixture
def memory_for(trainer, monkeypatch):
    """A function that makes memory run out above a number of tokens."""
    add = trainer.add

    def limit(most_tokens):
        def limited(batch, n, num_micro_batches):
            if batch.target_ids.size / num_micro_batches > most_tokens:
                raise tf.errors.ResourceExhaustedError(None, None, "no memory")
            add(batch, n, num_micro_batches)

        monkeypatch.setattr(trainer, "add", limited)

    return limit


@pytest.mark.slow
def test_what_fits_at_once_is_taken_whole(trainer):
    assert first_fitting(trainer, [SHAPE], 2048, on=CPU) == 2048


@pytest.mark.slow
def test_what_does_not_fit_is_halved_until_it_does(trainer, memory_for, caplog):
    memory_for(600)
    caplog.set_level(logging.INFO, "absl")
    assert first_fitting(trainer, [SHAPE], 2048, on=CPU) == 512
    failed = [m for m in caplog.messages if "do not fit" in m]
    assert failed == [
        f"Micro-batches of {size} tokens do not fit." for size in (2048, 1024)
    ]


@pytest.mark.slow
def test_a_model_that_fits_in_no_way_is_refused(trainer, memory_for):
    memory_for(10)
    with pytest.raises(InputError, match="out even with micro-batches of 256"):
        first_fitting(trainer, [SHAPE], 2048, on=CPU)


@pytest.fixture
def tried(monkeypatch):
    """What was tried, and the peak that a trial of (tokens, length) reports."""
    found = []

    def try_update(trainer, shape, micro_batch_tokens, on):
        found.append((micro_batch_tokens, shape))
        return Trial(1, 1.0, micro_batch_tokens * max(shape[:2]))

    monkeypatch.setattr(trial, "try_update", try_update)
    return found


def test_each_of_the_largest_shapes_must_fit(trainer, tried):
    on = Hardware("CPU", 512 * 32, num_cores=2)
    assert first_fitting(trainer, [SHAPE, LONG], 2048, on=on) == 512
    assert tried == [
        (tokens, shape)
        for tokens in (2048, 1024, 512)
        for shape in (SHAPE, LONG)
    ]


def test_a_peak_above_the_memory_does_not_fit(trainer, tried, caplog):
    caplog.set_level(logging.INFO, "absl")
    on = Hardware("CPU", 8 * 256 - 1, num_cores=2)
    with pytest.raises(InputError, match="256 tokens: choose a smaller model"):
        first_fitting(trainer, [SHAPE], 1024, on=on)
    assert "Micro-batches of 512 tokens do not fit." in caplog.messages


def test_a_peak_that_is_not_known_fits(trainer, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "absl")
    monkeypatch.setattr(
        trial, "try_update", lambda *_, **__: Trial(1, 1.0, peak_bytes=None)
    )
    assert first_fitting(trainer, [SHAPE], 512, on=CPU) == 512
    said = "Micro-batches of 512 tokens: the largest updates fit."
    assert said in caplog.messages


@pytest.mark.slow
def test_what_is_not_there_is_not_used(trainer):
    tiny = Hardware("CPU", GIB // 100, num_cores=2)
    with pytest.raises(InputError, match="memory runs out"):
        first_fitting(trainer, [SHAPE], 512, on=tiny)


@pytest.mark.parametrize(
    ("shapes", "largest"),
    [
        ([(4, 4, 9), (8, 8, 4)], [(4, 4, 9), (8, 8, 4)]),  # 72, 64 positions
        ([(4, 4, 8), (8, 8, 4)], [(4, 4, 8), (8, 8, 4)]),
        ([(4, 4, 7), (8, 8, 4)], [(8, 8, 4)]),
    ],
)
def test_the_largest_shapes_have_most_positions_or_longest_rows(
    shapes, largest
):
    assert largest_shapes(shapes) == largest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tokens", "expected"), [(2048, 1), (512, 2), (256, 4)]
)
def test_a_trial_takes_the_micro_batches_of_an_update(
    trainer, tokens, expected
):
    trial = try_update(trainer, SHAPE, tokens, on=CPU)
    assert trial.num_micro_batches == expected
    assert trial.seconds > 0
    assert trial.peak_bytes == hardware.peak_memory_bytes("CPU")


def test_the_time_of_many_micro_batches_is_taken_from_a_few(
    trainer, monkeypatch
):
    trainer.graphs.trace()  # Now, because tracing adds a batch, too.
    seconds, run = iter((10.0, 13.0, 14.0)), []
    add = trainer.add

    def count(batch, n, num_micro_batches):
        run.append((n, num_micro_batches))
        add(batch, n, num_micro_batches)

    monkeypatch.setattr(trainer, "add", count)
    clock = types.SimpleNamespace(perf_counter=lambda: next(seconds))
    monkeypatch.setattr(trial, "time", clock)
    found = try_update(trainer, SHAPE, 256, on=CPU)
    assert run == [(0, 4), (1, 4), (2, 4)]
    assert found.seconds == 4 * 1.0 + 1.0  # Four times a third of 3 s, and 1 s.


def test_a_trial_leaves_no_trace(trainer, memory_for):
    def state():
        tensors = trainer.state.tensors()
        sums = dict(enumerate(trainer.graphs.sums.variables))
        return {k: np.asarray(v).copy() for k, v in (tensors | sums).items()}

    before = state()
    try_update(trainer, SHAPE, 256, on=CPU)
    memory_for(10)
    assert try_update(trainer, SHAPE, 256, on=CPU) is None
    after = state()
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, str(name))


def test_nothing_is_tried_after_an_update(trainer, monkeypatch):
    monkeypatch.setattr(trainer.state, "step", 3)
    with pytest.raises(ValueError, match="there were 3 updates"):
        try_update(trainer, SHAPE, 256, on=CPU)
