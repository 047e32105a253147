"""Runs in which some batches make the loss NaN."""

import dataclasses

import numpy as np
from bilingual_text import CORPUS
from tiny_models import TINY_MODELS

from t2t_lite.optimization.trainer import Trainer
from t2t_lite.training import run
from t2t_lite.training.options import RunOptions
from t2t_lite.training.training_text import TrainingText

PAIRS = [(line, line[::-1]) for line in CORPUS[:200]]
HPARAMS = dataclasses.replace(
    TINY_MODELS["sinusoidal"],
    vocabulary_size=400,
    max_length=100,
    tokens_per_batch=400,
    num_layers=1,
    warmup_steps=2,
    steps=60,
    average_last=1,
)


class Updates:
    """Records the updates of runs, and breaks some batches.

    A broken batch makes the loss NaN each time it is used, as bad data would.
    It is chosen by the first update that uses it, which is also its number if
    no earlier batch was skipped.
    """

    def __init__(self):
        self.steps, self.batches = [], []  # Of each update so far.
        self.broken, self.after = {}, {}
        self._update = Trainer.update

    def do(self, trainer, batch, *, should_stop, **options):
        if should_stop():
            return None
        step, source = trainer.step + 1, batch.source_ids.tobytes()
        if self.broken.get(step, 0) is None:
            self.broken[step] = source
        self.steps.append(step)
        self.batches.append(source)
        if source in self.broken.values():
            weight = trainer.weights[0]
            weight.assign(np.full(weight.shape, np.nan))
        update = self._update(
            trainer, batch, should_stop=should_stop, **options
        )
        self.after.pop(step, lambda: None)()
        return update

    def break_batches(self, *steps):
        self.broken |= dict.fromkeys(steps)


def train(path, steps=60, weights=(), **options):
    def read(*_):
        return iter(PAIRS)

    text = TrainingText(
        {},
        {"train": read},
        corpora=(read, read)[: len(weights)],
        weights=weights,
    )
    hparams = dataclasses.replace(HPARAMS, steps=steps)
    options = {
        "micro_batch_tokens": 400,
        "save_every_steps": 20,
        "on_divergence": "skip",
    } | options
    return run.train(path, hparams, text, options=RunOptions(**options))
