"""One update: divided, stopped, scaled, compiled, saved and restored."""

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf
from tiny_models import TINY_MODELS

from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.model import flops as training_cost
from t2t_lite.model import loss
from t2t_lite.training import micro_batches as memory
from t2t_lite.training.trainer import Trainer, best_num_parts

V = 11
_PLAIN = dataclasses.replace(TINY_MODELS["sinusoidal"], num_layers=1)
_WITHOUT_DROPOUT = dataclasses.replace(_PLAIN, dropout=0.0)


def _batch(seed=0):
    generator = np.random.default_rng(seed)
    source_ids = generator.integers(2, V, (4, 5)).astype(np.int32)
    target_ids = generator.integers(2, V, (4, 7)).astype(np.int32)
    target_ids[1, 3:], target_ids[3, 1:] = 0, 0
    return source_ids, target_ids


def _weights(trainer):
    return [weight.numpy() for weight in trainer.weights]


def _assert_same(ours, theirs):
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(our, their)


def test_an_update_counts_the_tokens_that_are_not_padding():
    update = Trainer(_PLAIN, V).update(*_batch())
    assert float(update.tokens) == 7 + 3 + 7 + 1


def test_an_update_counts_the_operations_of_the_shapes_it_was_given():
    trainer = Trainer(_PLAIN, V)
    trainer.update(*_batch())
    trainer.update(*(ids[:3, :-1] for ids in _batch()))
    assert trainer.flops == training_cost.update_flops(
        _PLAIN, V, 4, 5, 7
    ) + training_cost.update_flops(_PLAIN, V, 3, 4, 6)


def test_micro_batches_change_no_count_of_operations():
    trainer, counts = Trainer(_PLAIN, V), []
    for num_micro_batches in (1, 2, 3, 9):
        trainer.flops = 0.0
        trainer.update(*_batch(), num_micro_batches)
        counts.append(trainer.flops)
    assert counts == [training_cost.update_flops(_PLAIN, V, 4, 5, 7)] * 4


def test_a_checkpoint_of_before_operations_were_counted_is_read():
    trainer = Trainer(_PLAIN, V)
    saved = trainer.tensors() | {"step": 7}
    del saved["training_flops"]
    trainer.restore(saved, "saved")
    assert trainer.step == 7
    assert math.isnan(trainer.flops)  # Nor do later updates make it a number.


def test_loss_falls_over_updates_of_one_batch():
    trainer = Trainer(_WITHOUT_DROPOUT, V)
    losses = [float(trainer.update(*_batch()).loss) for _ in range(30)]
    assert losses[-1] < losses[0] - 0.3


def test_micro_batches_draw_masks_of_their_own():
    twins = [np.repeat(ids, 2, axis=0) for ids in _batch()]

    def loss_of(n, trainer):
        trainer.loss_sum.assign(0.0)
        trainer.add(*twins, n, num_micro_batches=2)
        return float(trainer.loss_sum.numpy())

    with_dropout = Trainer(dataclasses.replace(_PLAIN, dropout=0.5), V)
    without = Trainer(_WITHOUT_DROPOUT, V)
    assert loss_of(0, with_dropout) == loss_of(0, with_dropout)
    assert loss_of(0, with_dropout) != loss_of(1, with_dropout)
    assert loss_of(0, without) == loss_of(1, without)


def test_masks_differ_from_step_to_step():
    trainer = Trainer(dataclasses.replace(_PLAIN, dropout=0.5), V)
    trainer.add(*_batch())
    first = float(trainer.loss_sum.numpy())
    trainer.step += 1
    trainer.add(*_batch())
    assert float(trainer.loss_sum.numpy()) - first != first


def test_more_micro_batches_than_rows_change_nothing():
    whole, divided = Trainer(_WITHOUT_DROPOUT, V), Trainer(_WITHOUT_DROPOUT, V)
    loss = float(whole.update(*_batch()).loss)
    assert math.isclose(
        float(divided.update(*_batch(), num_micro_batches=9).loss),
        loss,
        rel_tol=1e-5,
    )


@pytest.mark.parametrize("num_rows", [1, 3])
def test_parts_at_the_same_time_add_up_to_the_whole(num_rows):
    source_ids, target_ids = (ids[:num_rows] for ids in _batch())
    whole = Trainer(_WITHOUT_DROPOUT, V)
    in_two_parts = Trainer(_WITHOUT_DROPOUT, V, num_parts=2)
    for trainer in (whole, in_two_parts):
        trainer.add(source_ids, target_ids)
    assert float(in_two_parts.token_count) == float(whole.token_count) > 0
    for one, other in zip(
        whole.gradients(), in_two_parts.gradients(), strict=True
    ):
        np.testing.assert_allclose(other, one, atol=1e-6)


def test_parts_have_masks_of_their_own():
    hparams = dataclasses.replace(_PLAIN, dropout=0.5)
    trainer = Trainer(hparams, V, num_parts=2)
    row, nothing = [5, 6, 7, 8, 1], [0] * 5

    def loss_of(*rows):
        before = float(trainer.loss_sum)
        trainer.add(*[np.array(rows, np.int32)] * 2)
        return float(trainer.loss_sum) - before

    first, second = loss_of(row, nothing), loss_of(nothing, row)
    assert first != pytest.approx(second, rel=1e-3)
    assert loss_of(row, row) == pytest.approx(first + second, rel=1e-3)


@pytest.mark.parametrize(
    ("strategy", "xla", "gpus", "expected"),
    [
        (tf.distribute.OneDeviceStrategy("/cpu:0"), False, [], 2),
        (tf.distribute.OneDeviceStrategy("/cpu:0"), True, [], 1),
        (tf.distribute.OneDeviceStrategy("/cpu:0"), False, ["a GPU"], 1),
        (tf.distribute.MirroredStrategy(["/cpu:0"]), False, [], 1),
    ],
)
def test_only_one_cpu_computes_two_parts_at_the_same_time(
    monkeypatch, strategy, xla, gpus, expected
):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: gpus)
    assert best_num_parts(strategy, xla) == expected


def test_an_update_that_is_given_up_leaves_no_trace():
    trainer, plain = Trainer(_PLAIN, V), Trainer(_PLAIN, V)
    answers = iter([False, True])
    stopped = trainer.update(*_batch(1), 2, stop=lambda: next(answers))
    assert stopped is None
    assert trainer.step == trainer.flops == 0
    trainer.update(*_batch())
    plain.update(*_batch())
    _assert_same(_weights(trainer), _weights(plain))


def test_a_restored_trainer_goes_on_to_the_same_bits():
    whole = Trainer(_PLAIN, V)
    for step in range(2):
        whole.update(*_batch(step))
    saved = {name: np.asarray(value) for name, value in whole.tensors().items()}
    whole.update(*_batch(2))
    resumed = Trainer(dataclasses.replace(_PLAIN, seed=1), V)
    resumed.restore(saved, "saved")
    assert resumed.step == 2
    resumed.update(*_batch(2))
    assert resumed.flops == whole.flops
    _assert_same(_weights(resumed), _weights(whole))


def test_a_checkpoint_of_another_model_is_refused_by_the_variable():
    saved = Trainer(_PLAIN, V).tensors()
    other = Trainer(_PLAIN, V + 1)
    before = _weights(other)
    with pytest.raises(InputError, match="transformer/embedding/embedding is"):
        other.restore(saved, "step-3")
    _assert_same(_weights(other), before)


def test_xla_gives_the_same_gradients(monkeypatch):
    monkeypatch.setattr(loss, "CHUNK_LOGITS", 2 * V)
    plain = Trainer(_WITHOUT_DROPOUT, V)
    compiled = Trainer(_WITHOUT_DROPOUT, V, xla=True)
    plain.add(*_batch())
    compiled.add(*_batch())
    for ours, theirs in zip(
        compiled.gradients(), plain.gradients(), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


# The loss in chunks of two positions, and its plain twin.


def _projected_at_once(x_BTD, embedding, target_ids, smoothing, loss_scale):
    del loss_scale
    matrix_DV = tf.transpose(tf.cast(embedding, x_BTD.dtype))
    return loss.cross_entropy(x_BTD @ matrix_DV, target_ids, smoothing)


def _in_chunks_and_at_once(monkeypatch, *args, **kwargs):
    """Returns two trainers, the second of which computes all logits at once."""
    monkeypatch.setattr(loss, "CHUNK_LOGITS", 2 * V)
    in_chunks = Trainer(*args, **kwargs)
    in_chunks.add(*(np.zeros_like(ids) for ids in _batch()))  # It is traced.
    with monkeypatch.context() as plain:
        plain.setattr(loss, "projected_cross_entropy", _projected_at_once)
        at_once = Trainer(*args, **kwargs)
        at_once.add(*(np.zeros_like(ids) for ids in _batch()))
    return in_chunks, at_once


@pytest.mark.parametrize(
    ("precision", "tolerance", "num_target_ids"),
    [
        ("float32", 1e-5, V),
        ("float32", 1e-5, 7),
        ("bfloat16", 2**-5, 7),
        ("float16", 2**-8, V),
    ],
)
def test_chunks_of_the_loss_give_the_gradient_of_every_weight(
    precision, tolerance, num_target_ids, monkeypatch
):
    trainers = _in_chunks_and_at_once(
        monkeypatch,
        _WITHOUT_DROPOUT,
        V,
        precision=precision,
        num_target_ids=num_target_ids,
    )
    source_ids, target_ids = _batch()
    target_ids = np.minimum(target_ids, num_target_ids - 1)
    for trainer in trainers:
        trainer.loss_scale = min(trainer.loss_scale, 2.0**8)
        trainer.add(source_ids, target_ids)
    in_chunks, at_once = trainers
    for ours, theirs, weight in zip(
        in_chunks.gradients(),
        at_once.gradients(),
        in_chunks.weights,
        strict=True,
    ):
        difference = np.linalg.norm(ours - theirs)
        assert difference < tolerance * np.linalg.norm(theirs), weight.path


def test_chunks_of_the_loss_train_the_same_weights(monkeypatch):
    trainers = _in_chunks_and_at_once(monkeypatch, _PLAIN, V)
    for step in range(4):
        losses = [
            float(trainer.update(*_batch(step), 2).loss) for trainer in trainers
        ]
        assert math.isclose(*losses, rel_tol=1e-5)
    ours, theirs = (
        np.concatenate([weight.ravel() for weight in _weights(trainer)])
        for trainer in trainers
    )
    # Adam makes steps of the rounding in a gradient that is nothing else.
    assert np.linalg.norm(ours - theirs) < 1e-4 * np.linalg.norm(theirs)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_keeps_float32_weights_and_nearly_the_loss(precision):
    mixed = Trainer(_WITHOUT_DROPOUT, V, precision=precision)
    plain = Trainer(_WITHOUT_DROPOUT, V)
    assert {weight.dtype for weight in mixed.weights} == {"float32"}
    expected = float(plain.update(*_batch()).loss)
    loss = float(mixed.update(*_batch()).loss)
    assert math.isclose(loss, expected, rel_tol=0.02)


def test_float16_halves_its_scale_and_repeats_the_batch():
    trainer = Trainer(_WITHOUT_DROPOUT, V, precision="float16")
    trainer.loss_scale = 2.0**40
    update = trainer.update(*_batch())
    assert trainer.step == 1
    assert trainer.loss_scale < 2.0**30
    assert math.isfinite(float(update.loss))
    assert trainer.weights_are_finite()


def test_float16_gives_up_when_no_scale_fits():
    trainer = Trainer(_WITHOUT_DROPOUT, V, precision="float16")
    trainer.weights[0].assign(np.full(trainer.weights[0].shape, np.inf))
    with pytest.raises(InputError, match="step 1 are not finite at any"):
        trainer.update(*_batch())


def test_weights_that_are_not_finite_are_noticed():
    trainer = Trainer(_PLAIN, V)
    assert trainer.weights_are_finite()
    weights = trainer.weights[3].numpy()
    weights.flat[0] = np.nan
    trainer.weights[3].assign(weights)
    assert not trainer.weights_are_finite()


def test_micro_batches_shrink_with_memory(monkeypatch):
    base = HParams()
    sizes = []
    for gigabytes in (64, 16, 8, 4):
        monkeypatch.setattr(
            memory, "_device_bytes", lambda n=gigabytes: n * 2**30
        )
        sizes.append(memory.fitting_micro_batch_tokens(base, 37_000, "float32"))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] > 0


def test_halves_at_the_same_time_need_a_gradient_more():
    whole, halves = (
        memory.peak_bytes(HParams(), 37_000, "float32", 4096, num_parts)
        for num_parts in (1, 2)
    )
    assert halves - whole > 37_000 * 512 * 4


def test_a_large_vocabulary_takes_no_more_memory_for_each_token():
    def of_a_token(vocabulary_size):
        first, second = (
            memory.peak_bytes(HParams(), vocabulary_size, "float32", tokens)
            for tokens in (2048, 4096)
        )
        return (second - first) / 2048

    assert of_a_token(37_000) == of_a_token(370_000) > 0
