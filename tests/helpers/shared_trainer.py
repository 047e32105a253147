"""Makes runs in one process share a trainer, so that it is traced once."""

import contextlib

import pytest
import tensorflow as tf

from t2t_lite.training import run

# Settings that affect neither the initial weights nor the graph of an update.
_OF_RUNS = {
    "steps",
    "average_last",
    "save_every_steps",
    "tokens_per_batch",
    "subword_sampling",
}


@contextlib.contextmanager
def shared_trainers():
    """Makes runs of the same model share its trainer, reset before each run.

    Runs share one if they give it the same options, unless graphs are
    optimized for only one of them.
    """
    make, trainers = run.Trainer, {}

    def give(hparams, vocabulary_size, strategy, **options):
        settings = vars(hparams).items()
        key = (
            tuple(item for item in settings if item[0] not in _OF_RUNS),
            vocabulary_size,
            type(strategy),
            *options.items(),
            str(tf.config.optimizer.get_experimental_options()),
        )
        if key not in trainers:
            trainers[key] = make(hparams, vocabulary_size, strategy, **options)
        trainer = trainers[key]
        trainer.model.hparams = hparams
        trainer.state.reset()
        trainer.clear()
        return trainer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "Trainer", give)
        yield
