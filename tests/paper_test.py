"""Table 3: its rows, what they count, and that each of them trains."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from binaries import ROOT

from t2t_lite import hparams as settings
from t2t_lite import paper as table_3
from t2t_lite.model.transformer import Transformer
from t2t_lite.training.trainer import Trainer

PRINTED = {name: row for name, row in table_3.TABLE_3.items() if row.parameters}


@pytest.mark.parametrize(
    "name", [*table_3.TABLE_3, "transformer_parsing", "transformer_tiny"]
)
def test_number_of_parameters_is_that_of_the_model(name):
    """With a tiny vocabulary and two layers, for speed."""
    hparams = dataclasses.replace(
        settings.preset(name), num_layers=2, vocabulary_size=11
    )
    model = Transformer(hparams)
    model.build()
    assert table_3.num_parameters(hparams) == model.count_params()


def test_all_20_rows_of_the_paper_are_printed():
    command = [sys.executable, str(ROOT / "bin" / "table_3")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    table, _, explanation = run.stdout.partition("\n\n")
    rows = table.split("\n")[1:]
    assert [row.split()[1] for row in rows] == list(table_3.TABLE_3)
    assert len(rows) == 20
    row = "(B) transformer_k32 d_k=32 58.3 60* 8.80e+12 5.01 25.4"
    assert " ".join(rows[6].split()) == row
    assert "vocabulary of 41,100" in explanation


def test_a_vocabulary_of_41100_gives_every_printed_count_but_bigs():
    differ = [
        name
        for name, row in PRINTED.items()
        if abs(
            table_3.num_parameters(settings.preset(name), 41_100) / 1e6
            - row.parameters
        )
        > 0.5
    ]
    assert differ == ["transformer_big"]


@pytest.fixture
def _eagerly():
    """Without the graphs, each of which would take longer than it is used."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.slow
@pytest.mark.usefixtures("_eagerly")
@pytest.mark.parametrize("name", settings.PRESETS)
def test_each_preset_trains_two_updates(name):
    """At a tiny vocabulary, and as deep and wide as it is."""
    hparams = dataclasses.replace(
        settings.preset(name), vocabulary_size=11, steps=2
    )
    trainer = Trainer(hparams, 11)
    before = [weight.numpy() for weight in trainer.weights]
    source = np.array([[2, 9, 4, 3, 1], [5, 8, 1, 0, 0]], np.int32)
    for _ in range(2):
        update = trainer.update(source, source[:, ::-1].copy(), 1)
        assert np.isfinite(update.loss)
    assert trainer.step == 2
    for weight, was in zip(trainer.weights, before, strict=True):
        assert np.all(np.isfinite(weight.numpy())), weight.path
        assert np.any(weight.numpy() != was), weight.path
