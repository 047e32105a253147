"""The figures of the paper's tables follow, and each preset trains."""

import collections
import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from eagerly import eagerly
from paths import ROOT

from t2t_lite import hparams as settings
from t2t_lite import paper
from t2t_lite.model import flops
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.trainer import Trainer

PRINTED = {
    name: row for name, row in paper.TABLE_3.items() if row.million_parameters
}


def test_all_20_rows_of_the_paper_are_printed():
    command = [sys.executable, str(ROOT / "bin" / "table_3")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    table, _, explanation = run.stdout.partition("\n\n")
    rows = table.split("\n")[1:]
    assert [row.split()[1] for row in rows] == list(paper.TABLE_3)
    assert len(rows) == 20
    row = "(B) transformer_k32 d_k=32 58.3 60* 8.80e+12 5.01 25.4"
    assert " ".join(rows[6].split()) == row
    assert "vocabulary of 41,100" in explanation


def test_a_vocabulary_of_41100_gives_every_printed_count_but_bigs():
    differ = [
        name
        for name, row in PRINTED.items()
        if abs(
            paper.num_parameters(settings.preset(name), 41_100) / 1e6
            - row.million_parameters
        )
        > 0.5
    ]
    assert differ == ["transformer_big"]


def test_base_and_big_have_63_and_214_million_parameters():
    """The paper prints 65 and 213, and does not say how it counts."""
    base, big = (
        paper.num_parameters(settings.preset(f"transformer_{size}"))
        for size in ("base", "big")
    )
    assert base == pytest.approx(63.1e6, abs=0.1e6)
    assert big == pytest.approx(214.2e6, abs=0.3e6)


def sustained_flops(row):
    tflops = paper.SUSTAINED_TFLOPS[row.device]
    return paper.sustained_flops(row.hours, row.devices, tflops)


@pytest.mark.parametrize("row", paper.TABLE_2.values(), ids=paper.TABLE_2)
def test_hours_devices_and_speed_give_the_figures_of_table_2(row):
    assert f"{sustained_flops(row):.1e}" == f"{row.training_flops:.1e}"


@pytest.mark.parametrize(
    ("name", "share"), [("transformer_base", 0.290), ("transformer_big", 0.421)]
)
def test_the_models_products_are_a_part_of_the_papers_figures(name, share):
    hparams = settings.preset(name)
    products = hparams.steps * flops.tokens_flops(hparams)
    found = products / sustained_flops(paper.TABLE_2[name])
    assert found == pytest.approx(share, abs=5e-4)


def small(hparams, **changes):
    """Returns settings with an eighth of the width and a tiny vocabulary."""
    sizes = ("d_model", "d_ff", "d_k", "d_v")
    return dataclasses.replace(
        hparams,
        **{size: getattr(hparams, size) // 8 for size in sizes},
        vocabulary_size=11,
        steps=1,
        cooldown_steps=0,
        **changes,
    )


def assert_trains(hparams):
    trainer = Trainer(hparams, 11)
    before = [weight.numpy() for weight in trainer.weights]
    source = np.array([[2, 9, 4, 3, 1], [5, 8, 1, 0, 0]], np.int32)
    with eagerly():
        update = trainer.update(Batch(source, source[:, ::-1].copy()))
    assert np.isfinite(update.loss)
    assert trainer.step == 1
    for weight, was in zip(trainer.weights, before, strict=True):
        assert np.all(np.isfinite(weight.numpy())), weight.path
        assert np.any(weight.numpy() != was), weight.path


def names_by_model():
    """Returns lists of preset names, by the small settings that they share."""
    names = collections.defaultdict(list)
    for name, hparams in settings.PRESETS.items():
        # An update on given ids does not depend on these.
        of_runs = {"vocabulary_type": "bpe", "average_last": 1}
        names[small(hparams, num_layers=1, **of_runs)].append(name)
    return names


@pytest.mark.slow
@pytest.mark.parametrize(
    "hparams",
    [
        pytest.param(hparams, id=", ".join(names))
        for hparams, names in names_by_model().items()
    ],
)
def test_each_preset_trains(hparams):
    """With one layer, since layers are alike; the deepest is trained below."""
    assert_trains(hparams)


@pytest.mark.slow
def test_the_deepest_preset_trains():
    assert_trains(
        small(max(settings.PRESETS.values(), key=lambda each: each.num_layers))
    )
