"""Which options of a run are refused, and what they imply."""

import math

import pytest

from t2t_lite.errors import InputError
from t2t_lite.training.options import RunOptions


@pytest.mark.parametrize(
    "name",
    [
        "micro_batch_tokens",
        "save_every_steps",
        "keep_last",
        "evaluate_every_steps",
        "patience",
        "max_skips",
    ],
)
def test_a_number_below_one_is_refused(name):
    expected = f"^{name} must be at least 1; received {name}=0$"
    with pytest.raises(InputError, match=expected):
        RunOptions(**{name: 0})
    assert getattr(RunOptions(**{name: 1}), name) == 1
    assert getattr(RunOptions(**{name: None}), name) is None


@pytest.mark.parametrize("minutes", [-1.0, math.nan])
def test_minutes_that_are_no_time_are_refused(minutes):
    with pytest.raises(InputError, match="save_every_minutes must be at least"):
        RunOptions(save_every_minutes=minutes)
    assert RunOptions(save_every_minutes=0.0).save_every_minutes == 0


@pytest.mark.parametrize("tflops", [0.0, -1.0, math.inf, math.nan])
def test_a_speed_that_no_device_has_is_refused(tflops):
    with pytest.raises(InputError, match="sustained_tflops must be above 0"):
        RunOptions(sustained_tflops=tflops)
    assert RunOptions(sustained_tflops=9.5).sustained_tflops == 9.5


@pytest.mark.parametrize("minutes", [0.0, -1.0, math.inf, math.nan])
def test_a_hang_takes_some_time(minutes):
    with pytest.raises(InputError, match=r"^hang_minutes must be above 0 and"):
        RunOptions(hang_minutes=minutes)
    assert RunOptions(hang_minutes=0.5).hang_minutes == 0.5


@pytest.mark.parametrize("factor", [1.0, 0.0, -2.0, math.inf, math.nan])
def test_a_loss_at_its_mean_is_no_divergence(factor):
    expected = f"^divergence_factor must be above 1 and finite; .*={factor}$"
    with pytest.raises(InputError, match=expected):
        RunOptions(divergence_factor=factor)
    assert RunOptions(divergence_factor=1.5).divergence_factor == 1.5


def test_a_divergence_is_skipped_or_stops_the_run():
    with pytest.raises(
        InputError, match=r"^on_divergence must be stop or skip"
    ):
        RunOptions(on_divergence="wait")
    assert RunOptions(on_divergence="skip").on_divergence == "skip"


@pytest.mark.parametrize("name", ["patience", "evaluate_every_steps"])
def test_an_option_for_dev_text_is_refused_without(name):
    with pytest.raises(InputError, match=f"^{name} needs dev text: give"):
        RunOptions(**{name: 3}).require_no_dev_text()
    RunOptions().require_no_dev_text()


def test_options_are_made_of_the_flags_of_their_names():
    flags = vars(RunOptions(patience=3, cache_dir="cache"))
    options = RunOptions.from_flags(flags | {"hparams": "transformer_big"})
    assert options == RunOptions(patience=3, cache_dir="cache")


@pytest.mark.parametrize(
    ("options", "tf_config", "expected"),
    [
        ({}, "", True),
        ({}, "{}", False),
        ({"strategy": "one_device"}, "{}", True),
        ({"strategy": "mirrored"}, "", False),
        ({"xla": True}, "", False),
    ],
)
def test_one_device_without_xla_computes_in_parts(
    monkeypatch, options, tf_config, expected
):
    monkeypatch.setenv("TF_CONFIG", tf_config)
    assert RunOptions(**options).in_parts == expected
