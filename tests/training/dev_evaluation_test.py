"""What a run remembers of its scores on dev, and when it scores."""

import types

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.training.dev_evaluation import DevEvaluation, DevState
from t2t_lite.training.options import RunOptions


def evaluation(pairs=(("a", "b"),), steps=100, **options):
    """Returns the DevEvaluation of a run of 100 updates."""
    return DevEvaluation(
        task=None,
        model=types.SimpleNamespace(hparams=HParams(steps=steps)),
        directory=None,
        pairs=pairs,
        options=RunOptions(**options),
        summaries=tf.summary.create_noop_writer(),
    )


def test_the_best_score_and_the_evaluations_since_are_remembered():
    state, states = DevState(), []
    for step, score in ((10, 3.0), (20, 5.0), (30, 5.0), (40, 4.0), (50, 6.0)):
        state = state.after(step, score)
        states.append(state)
    assert states == [
        DevState(3.0, 0, 10),
        DevState(5.0, 0, 20),
        DevState(5.0, 1, 30),  # As good is no gain.
        DevState(5.0, 2, 40),
        DevState(6.0, 0, 50),
    ]


def test_a_first_score_of_zero_is_a_gain():
    assert DevState().after(10, 0.0) == DevState(0.0, 0, 10)


def test_the_state_survives_a_checkpoint():
    state = DevState(27.25, 3, 400)
    tensors = {
        name: np.asarray(tf.convert_to_tensor(value))
        for name, value in state.tensors().items()
    }
    assert DevState.restored(tensors) == state
    assert {name: value.dtype for name, value in tensors.items()} == {
        "best_score": np.float64,
        "evaluations_without_gain": np.int64,
        "evaluated_step": np.int64,
    }


def test_the_best_bleu_of_an_old_checkpoint_is_the_best_score():
    tensors = {
        "best_bleu": 27.25,
        "evaluations_without_gain": 3,
        "evaluated_step": 400,
    }
    assert DevState.restored(tensors) == DevState(27.25, 3, 400)


def test_dev_is_scored_five_times_in_a_run_or_as_often_as_told():
    steps = range(101)
    default = [step for step in steps if evaluation().is_due(step)]
    assert default == [20, 40, 60, 80, 100]
    often = evaluation(evaluate_every_steps=30)
    assert [step for step in steps if often.is_due(step)] == [30, 60, 90]
    short = evaluation(steps=3)
    assert [step for step in range(4) if short.is_due(step)] == [1, 2, 3]


def test_what_was_scored_is_not_scored_again_by_a_resumed_run():
    resumed = evaluation()
    resumed.state = DevState(evaluated_step=40)
    assert not resumed.is_due(40)
    assert resumed.is_due(60)


def test_without_a_dev_set_nothing_is_scored():
    assert not evaluation(pairs=None).is_due(20)


@pytest.mark.parametrize("patience", [None, 2])
def test_patience_is_lost_after_as_many_evaluations(patience):
    run = evaluation(patience=patience)
    run.state = DevState(5.0, 1, 20)
    assert not run.has_lost_patience(20)
    run.state = DevState(5.0, 2, 40)
    assert run.has_lost_patience(40) == (patience is not None)
