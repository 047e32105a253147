"""The learning rate is that of Eq. 3, and Adam agrees with NumPy."""

import dataclasses

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf

from t2t_lite.hparams import HParams, preset
from t2t_lite.optimization.optimizer import (
    Cooldown,
    NoamSchedule,
    adam,
    schedule,
)


@pytest.mark.parametrize("warmup_steps", [4000, 17])
@pytest.mark.parametrize("step", [1, 2, 16, 17, 18, 3999, 4000, 4001, 100_000])
def test_rate_is_equation_3(step, warmup_steps):
    schedule = NoamSchedule(512, warmup_steps)
    np.testing.assert_allclose(
        schedule(step - 1),
        reference.learning_rate(step, 512, warmup_steps),
        rtol=1e-5,
    )


def test_rate_is_highest_at_the_end_of_the_warm_up():
    schedule = NoamSchedule(d_model=12, warmup_steps=13)
    rates = [float(schedule(step - 1)) for step in range(1, 60)]
    assert 1 + int(np.argmax(rates)) == 13
    assert (np.diff(rates[:13]) > 0).all()
    assert (np.diff(rates[12:]) < 0).all()


def test_scale_multiplies_the_rate():
    one, three = NoamSchedule(12, 13), NoamSchedule(12, 13, scale=3.0)
    for step in (0, 12, 40):
        np.testing.assert_allclose(three(step), 3 * one(step), rtol=1e-6)


@pytest.mark.parametrize("value", [0, float("nan"), float("inf"), "512"])
@pytest.mark.parametrize("name", ["d_model", "warmup_steps"])
def test_a_schedule_without_a_warm_up_or_a_model_is_refused(name, value):
    sizes = {"d_model": 12, "warmup_steps": 13, name: value}
    rule = (
        f"{name} must be a finite number, at least 1; received {name}={value!r}"
    )
    with pytest.raises(ValueError, match=rule):
        NoamSchedule(**sizes)


@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), "1"])
def test_a_schedule_that_lowers_no_loss_is_refused(scale):
    with pytest.raises(
        ValueError, match="scale must be a finite number above 0"
    ):
        NoamSchedule(12, 13, scale)


def test_there_is_no_rate_before_the_first_update():
    schedule = NoamSchedule(12, 13)
    wrong = (-1, -5.0, float("nan"), True, 3 + 2j, np.array(-1), "3")
    for updates_done in (*wrong, tf.constant(-5)):
        with pytest.raises(ValueError, match="updates_done must be at least 0"):
            schedule(updates_done)
    assert float(schedule(0)) > 0


def test_the_rate_falls_to_nothing_in_the_last_updates():
    noam, cooled = NoamSchedule(12, 13), Cooldown(NoamSchedule(12, 13), 40, 10)
    share = [float(cooled(n)) / float(noam(n)) for n in range(45)]
    falling = [1 - n / 10 for n in range(10)]
    np.testing.assert_allclose(share, [1] * 30 + falling + [0] * 5, atol=1e-6)


def test_the_rate_of_a_run_shorter_than_its_cooldown_falls_from_the_start():
    noam, cooled = NoamSchedule(12, 13), Cooldown(NoamSchedule(12, 13), 4, 10)
    share = [float(cooled(n)) / float(noam(n)) for n in range(5)]
    np.testing.assert_allclose(share, [1, 0.75, 0.5, 0.25, 0], atol=1e-6)


def test_the_settings_say_how_the_rate_goes():
    plain = HParams(steps=40, learning_rate_scale=2.0)
    assert isinstance(schedule(plain), NoamSchedule)
    cooled = schedule(dataclasses.replace(plain, cooldown_steps=10))
    for step, share in ((29, 1), (35, 0.5), (39, 0.1)):
        expected = share * schedule(plain)(step)
        np.testing.assert_allclose(cooled(step), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "made", [NoamSchedule(12, 13, 2.0), Cooldown(NoamSchedule(12, 13), 40, 10)]
)
def test_schedule_is_made_again_from_its_config(made):
    again = keras.optimizers.schedules.deserialize(
        keras.optimizers.schedules.serialize(made)
    )
    assert again.get_config() == made.get_config()
    assert again(5) == made(5)


def test_optimizer_has_the_papers_constants():
    config = adam(preset("transformer_base")).get_config()
    assert (config["beta_1"], config["beta_2"]) == (0.9, 0.98)
    assert config["epsilon"] == 1e-9
    schedule = config["learning_rate"]["config"]
    assert schedule == {"d_model": 512, "warmup_steps": 4000, "scale": 1.0}
    assert not config["amsgrad"]
    for name in ("weight_decay", "clipnorm", "clipvalue", "global_clipnorm"):
        assert config[name] is None


def test_optimizer_takes_its_constants_from_the_hparams():
    optimizer = adam(
        HParams(
            d_model=12,
            warmup_steps=13,
            learning_rate_scale=2.0,
            adam_beta1=0.7,
            adam_beta2=0.8,
            adam_epsilon=1e-3,
        )
    )
    config = optimizer.get_config()
    assert (config["beta_1"], config["beta_2"]) == (0.7, 0.8)
    assert config["epsilon"] == 1e-3
    schedule = config["learning_rate"]["config"]
    assert schedule == {"d_model": 12, "warmup_steps": 13, "scale": 2.0}


@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("updates", [1, 4])
@pytest.mark.parametrize(
    "constants",
    [
        {},
        # Epsilon is so large that it matters where it is added.
        {"adam_beta1": 0.7, "adam_beta2": 0.8, "adam_epsilon": 0.1},
    ],
    ids=["the paper's", "others"],
)
def test_updates_of_adam_equal_numpy(updates, summed, constants):
    random = np.random.default_rng(updates)
    start = random.normal(size=(3, 5)).astype("float32")
    gradients = random.normal(size=(updates, 3, 5)).astype("float32")
    hparams = HParams(d_model=12, warmup_steps=2, **constants)
    variable = keras.Variable(start)
    optimizer = adam(hparams, gradients_are_summed=summed)
    for gradient in gradients:
        gradient = keras.ops.convert_to_tensor(gradient)
        optimizer.apply([gradient], [variable])
    rates = [reference.learning_rate(n + 1, 12, 2) for n in range(updates)]
    np.testing.assert_allclose(
        variable.numpy(),
        reference.adam(
            start.astype("float64"),
            gradients,
            rates,
            hparams.adam_beta1,
            hparams.adam_beta2,
            hparams.adam_epsilon,
        ),
        rtol=1e-4,
        atol=1e-6,
    )


def test_each_weight_has_moments_of_its_own_in_any_order():
    """They are those of Keras' own Adam."""
    random = np.random.default_rng(0)
    starts = [random.normal(size=size).astype("float32") for size in (3, 5)]
    found = []
    for summed in (False, True):
        variables = [keras.Variable(start) for start in starts]
        optimizer = adam(
            HParams(d_model=12, warmup_steps=2), gradients_are_summed=summed
        )
        optimizer.build(variables)
        for factor in (1.0, -3.0):
            gradients = [tf.constant(factor * start) for start in starts]
            optimizer.apply(gradients[::-1], variables[::-1])
        found.append([*variables, *optimizer.variables])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
