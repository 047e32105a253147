"""When a run scores dev, and what it remembers of the scores."""

import types

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.text import token_files
from t2t_lite.training.dev_evaluation import DevEvaluation, DevState
from t2t_lite.training.options import RunOptions
from t2t_lite.training.summaries import Summaries


def evaluation(pairs=(("a", "b"),), steps=100, **options):
    """Returns the DevEvaluation of a run of `steps` updates."""
    return DevEvaluation(
        task=None,
        model=types.SimpleNamespace(hparams=HParams(steps=steps)),
        directory=None,
        pairs=pairs,
        sha256=token_files.hash_pairs(pairs) if pairs else "",
        options=RunOptions(**options),
        summaries=Summaries(None),
    )


def scored_steps(run, end=101, first=0):
    """Returns the steps at which a run that begins at `first` is scored."""
    steps = []
    for step in range(first, end):
        if run.is_due(step):
            steps.append(step)
            run.state = run.state.after(step, 1.0)
    return steps


def test_the_best_score_and_the_evaluations_since_are_remembered():
    state, states = DevState(), []
    for step, score in ((10, 3.0), (20, 5.0), (30, 5.0), (40, 4.0), (50, 6.0)):
        state = state.after(step, score)
        states.append(state)
    assert states == [
        DevState(3.0, 0, 10),
        DevState(5.0, 0, 20),
        DevState(5.0, 1, 30),  # An equal score is no gain.
        DevState(5.0, 2, 40),
        DevState(6.0, 0, 50),
    ]


def test_a_first_score_of_zero_is_a_gain():
    assert DevState().after(10, 0.0) == DevState(0.0, 0, 10)


def test_the_state_survives_a_checkpoint():
    state = DevState(
        best_score=27.25,
        evaluations_without_gain=3,
        evaluated_step=400,
        dev_sha256="0123abcd",
    )
    tensors = {
        name: np.asarray(tf.convert_to_tensor(value))
        for name, value in state.tensors().items()
    }
    assert DevState.restored(tensors) == state
    assert tensors.pop("dev_sha256").item() == b"0123abcd"
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
    assert scored_steps(evaluation()) == [20, 40, 60, 80, 100]
    assert scored_steps(evaluation(evaluate_every_steps=30)) == [30, 60, 90]
    assert scored_steps(evaluation(steps=3), 4) == [1, 2, 3]


def test_what_was_scored_is_not_scored_again_by_a_resumed_run():
    resumed = evaluation()
    resumed.resume(DevState(evaluated_step=40))
    assert scored_steps(resumed, first=40) == [60, 80, 100]


def test_what_a_stop_kept_from_being_scored_is_scored_by_a_resumed_run():
    """The chief gives up scoring at once, but workers stop an update later."""
    resumed = evaluation()
    resumed.resume(DevState(evaluated_step=20))
    assert scored_steps(resumed, first=41) == [41, 60, 80, 100]


def test_scores_on_other_dev_text_are_no_measure(caplog):
    state = evaluation().state._replace(best_score=9.0, evaluated_step=40)
    for pairs in ((("a", "b"),), None):
        same = evaluation(pairs)
        same.resume(state)
        assert same.state == state
    assert "dev text has changed" not in caplog.text
    other = evaluation((("a", "c"),))
    other.resume(state)
    assert other.state == evaluation((("a", "c"),)).state
    assert (
        "The dev text has changed: its scores cannot be compared" in caplog.text
    )


def test_the_score_of_a_best_that_is_lost_is_no_measure(caplog):
    run = evaluation()
    state = run.state._replace(best_score=9.0, evaluated_step=40)
    run.resume(state, has_best=False)
    assert run.state == evaluation().state
    assert "The best checkpoint is no longer in best/" in caplog.text
    never = run.state._replace(evaluated_step=0)
    run.resume(never, has_best=False)
    assert run.state == never


def test_dev_text_that_is_not_known_may_be_the_same(caplog):
    resumed = evaluation()
    resumed.resume(DevState(9.0, 1, 40))
    sha256 = token_files.hash_pairs([("a", "b")])
    assert resumed.state == DevState(
        best_score=9.0,
        evaluations_without_gain=1,
        evaluated_step=40,
        dev_sha256=sha256,
    )
    assert not caplog.text


def test_without_a_dev_set_nothing_is_scored():
    assert not evaluation(pairs=None).is_due(20)


@pytest.mark.parametrize("patience", [None, 2])
def test_patience_is_lost_after_as_many_evaluations(patience):
    run = evaluation(patience=patience)
    run.state = DevState(5.0, 1, 20)
    assert not run.has_lost_patience(20)
    run.state = DevState(5.0, 2, 40)
    assert run.has_lost_patience(40) == (patience is not None)
