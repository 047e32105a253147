"""Runs of one process that share a trainer, so that it is traced once."""

import contextlib

import pytest

from t2t_lite.training import run

# Settings that neither a weight nor the graph of an update depends on.
_OF_RUNS = {
    "steps",
    "average_last",
    "save_every_steps",
    "tokens_per_batch",
    "subword_sampling",
}


@contextlib.contextmanager
def shared_trainers():
    """Has runs of one model share its trainer, each as if it were new.

    They are to differ in no option that a trainer takes.
    """
    make, trainers = run._make_trainer, {}

    def give(beginning):
        settings = vars(beginning.hparams).items()
        model = tuple(item for item in settings if item[0] not in _OF_RUNS)
        if model not in trainers:
            trainers[model] = make(beginning)
        trainer = trainers[model]
        trainer.hparams = trainer.model.hparams = beginning.hparams
        trainer.reset()
        trainer.clear()
        return trainer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_make_trainer", give)
        yield
