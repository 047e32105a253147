"""Updates: divided, stopped, scaled, and continued to the same bits."""

import collections
import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf
from eagerly import eagerly
from tiny_models import TINY_MODELS

from t2t_lite.model import loss
from t2t_lite.optimization.divergence import DivergenceError
from t2t_lite.optimization.loss_scale import LossScale
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.trainer import Trainer

V, NUM_TARGET_IDS = 11, 7
_WITH_DROPOUT = dataclasses.replace(
    TINY_MODELS["sinusoidal"], num_layers=1, dropout=0.5
)
_WITHOUT_DROPOUT = dataclasses.replace(_WITH_DROPOUT, dropout=0.0)


def _batch(seed=0):
    generator = np.random.default_rng(seed)
    source_ids = generator.integers(2, V, (4, 5)).astype(np.int32)
    target_ids = generator.integers(2, NUM_TARGET_IDS, (4, 7)).astype(np.int32)
    target_ids[1, 3:], target_ids[3, 1:] = 0, 0
    return Batch(source_ids, target_ids)


def _nothing():
    ids, target_ids, _ = _batch()
    return Batch(np.zeros_like(ids), np.zeros_like(target_ids))


def _weights(trainer):
    return [weight.numpy() for weight in trainer.weights]


def _saved(trainer):
    """Returns a copy of all that a checkpoint of the trainer would hold."""
    tensors = trainer.state.tensors().items()
    return {name: np.asarray(tensor).copy() for name, tensor in tensors}


def _assert_same(ours, theirs):
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(our, their)


def _projected_at_once(x_BTD, embedding, target_ids, label_smoothing, **_):
    matrix_DV = tf.transpose(tf.cast(embedding, x_BTD.dtype))
    return loss.cross_entropy(x_BTD @ matrix_DV, target_ids, label_smoothing)


_KINDS = {
    "dropout": (_WITH_DROPOUT, {"num_target_ids": NUM_TARGET_IDS}),
    "no dropout": (_WITHOUT_DROPOUT, {}),
    "no dropout, 2 parts": (_WITHOUT_DROPOUT, {"num_parts": 2}),
    "bfloat16": (_WITHOUT_DROPOUT, {"precision": "bfloat16"}),
    "float16": (_WITHOUT_DROPOUT, {"precision": "float16"}),
}


@pytest.fixture(scope="module")
def trainer_of():
    """A function that returns a trainer of a kind, as if it were new.

    Each is created and traced once, and gets its initial weights back whenever
    it is returned. Its loss is computed in chunks of two or three positions, or
    all at once.
    """
    trainers = {}

    def give(kind, at_once=False):
        key = kind, at_once
        if key not in trainers:
            hparams, options = _KINDS[kind]
            trainer = Trainer(hparams, V, **options)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(loss, "CHUNK_LOGITS", 2 * V)
                if at_once:
                    patch.setattr(
                        loss, "projected_cross_entropy", _projected_at_once
                    )
                trainer.add(_nothing())  # Traces it.
            trainers[key] = trainer, _saved(trainer)
        trainer, first = trainers[key]
        trainer.state.restore(first, kind)
        trainer.clear()
        return trainer

    return give


@pytest.fixture
def with_dropout(trainer_of):
    return trainer_of("dropout")


@pytest.fixture
def without_dropout(trainer_of):
    return trainer_of("no dropout")


def test_an_update_counts_the_tokens_that_are_not_padding(with_dropout):
    assert float(with_dropout.update(_batch()).tokens) == 7 + 3 + 7 + 1


def test_loss_falls_over_updates_of_one_batch(without_dropout):
    losses = [float(without_dropout.update(_batch()).loss) for _ in range(30)]
    assert losses[-1] < losses[0] - 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "tolerance"), [("no dropout", 1e-6), ("float16", 2**-8)]
)
def test_an_update_reports_the_gradient_norm_of_each_layer(
    kind, tolerance, trainer_of, without_dropout
):
    without_dropout.add(_batch())
    squares = collections.Counter()
    for weight, gradient in zip(
        without_dropout.weights, without_dropout.gradients(), strict=True
    ):
        _, *layer, _ = weight.path.split("/")
        squares["/".join(layer[:3])] += np.sum(np.square(gradient))
    without_dropout.clear()
    trainer = trainer_of(kind)
    found = trainer.update(_batch(), num_micro_batches=2)
    assert trainer.graphs.gradient_norms.layers == list(squares)
    assert {"embedding", "decoder/layer_0/feed_forward"} <= squares.keys()
    np.testing.assert_allclose(
        found.gradient_norms, np.sqrt([*squares.values()]), rtol=tolerance
    )


def test_an_update_knows_its_step_and_its_batch(with_dropout):
    batch = _batch()
    with_dropout.update(_batch(1))
    update = with_dropout.update(batch)
    assert update.step == 2
    assert update.batch.source_ids is batch.source_ids
    assert update.batch.target_ids is batch.target_ids


def test_micro_batches_draw_masks_of_their_own(with_dropout, without_dropout):
    source_ids, target_ids, _ = _batch()
    twins = Batch(source_ids.repeat(2, axis=0), target_ids.repeat(2, axis=0))

    def loss_sum(n, trainer):
        trainer.clear()
        trainer.add(twins, n, num_micro_batches=2)
        return float(trainer.graphs.sums.loss)

    assert loss_sum(0, with_dropout) == loss_sum(0, with_dropout)
    assert loss_sum(0, with_dropout) != loss_sum(1, with_dropout)
    assert loss_sum(0, without_dropout) == loss_sum(1, without_dropout)


def test_masks_differ_from_step_to_step(with_dropout):
    with_dropout.add(_batch())
    first = float(with_dropout.graphs.sums.loss)
    with_dropout.state.step += 1
    with_dropout.add(_batch())
    assert float(with_dropout.graphs.sums.loss) - first != first


def test_more_micro_batches_than_rows_change_nothing(without_dropout):
    first = _saved(without_dropout)
    whole = float(without_dropout.update(_batch()).loss)
    without_dropout.state.restore(first, "first")
    divided = without_dropout.update(_batch(), num_micro_batches=9)
    assert math.isclose(float(divided.loss), whole, rel_tol=1e-5)


@pytest.mark.parametrize("num_rows", [1, 3])
def test_parts_side_by_side_add_up_to_the_whole(
    num_rows, trainer_of, without_dropout
):
    in_parts = trainer_of("no dropout, 2 parts")
    assert_parts_add_up(in_parts, without_dropout, num_rows)


@pytest.mark.slow
@pytest.mark.parametrize("num_parts", [3, 4])
def test_parts_of_any_number_of_rows_add_up(num_parts, without_dropout):
    """Some or all of the parts have one row, or one of them has two."""
    with eagerly():
        in_parts = Trainer(_WITHOUT_DROPOUT, V, num_parts=num_parts)
        for num_rows in (1, 2, 3, 4):
            assert_parts_add_up(in_parts, without_dropout, num_rows)


def assert_parts_add_up(in_parts, whole, num_rows):
    source_ids, target_ids, _ = _batch()
    for trainer in (whole, in_parts):
        trainer.clear()
        trainer.add(Batch(source_ids[:num_rows], target_ids[:num_rows]))
    tokens = float(whole.graphs.sums.tokens)
    assert float(in_parts.graphs.sums.tokens) == tokens > 0
    for one, other in zip(whole.gradients(), in_parts.gradients(), strict=True):
        np.testing.assert_allclose(other, one, atol=1e-6)


@pytest.mark.slow
def test_parts_have_masks_of_their_own():
    trainer = Trainer(_WITH_DROPOUT, V, num_parts=2)
    row, nothing = [5, 6, 7, 8, 1], [0] * 5

    def loss_sum(*rows):
        ids = np.array(rows, np.int32)
        trainer.clear()
        with eagerly():
            trainer.add(Batch(ids, ids))
        return float(trainer.graphs.sums.loss)

    first, second = loss_sum(row, nothing), loss_sum(nothing, row)
    assert first != pytest.approx(second, rel=1e-3)
    assert loss_sum(row, row) == pytest.approx(first + second, rel=1e-3)


def test_an_update_that_is_given_up_leaves_no_trace(trainer_of):
    trainer = trainer_of("dropout")
    trainer.update(_batch())
    expected = _weights(trainer)
    trainer = trainer_of("dropout")
    answers = iter([False, True])
    stopped = trainer.update(_batch(1), 2, should_stop=lambda: next(answers))
    assert stopped is None
    assert trainer.step == 0
    trainer.update(_batch())
    _assert_same(_weights(trainer), expected)


def test_a_worker_that_is_alone_has_nobody_to_agree_with_on_a_stop(
    with_dropout, monkeypatch
):
    answers = iter([False, True])
    assert with_dropout.update(_batch(), should_stop=lambda: next(answers))
    assert not with_dropout.agree_to_stop()
    monkeypatch.setattr(with_dropout, "has_other_workers", True)
    assert with_dropout.agree_to_stop()


@pytest.mark.slow
def test_a_restored_trainer_goes_on_to_the_same_bits(trainer_of):
    trainer = trainer_of("dropout")
    for step in range(2):
        trainer.update(_batch(step))
    saved = _saved(trainer)
    trainer.update(_batch(2))
    expected = _weights(trainer)
    trainer.weights[0].assign(np.ones(trainer.weights[0].shape))
    trainer.state.restore(saved, "saved")
    assert trainer.step == 2
    trainer.update(_batch(2))
    _assert_same(_weights(trainer), expected)


@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [
        ("dropout", 1e-5),
        pytest.param("no dropout", 1e-5, marks=pytest.mark.slow),
        pytest.param("bfloat16", 2**-5, marks=pytest.mark.slow),
        pytest.param("float16", 2**-8, marks=pytest.mark.slow),
    ],
)
def test_chunks_of_the_loss_give_the_gradient_of_every_weight(
    kind, tolerance, trainer_of, monkeypatch
):
    trainer = trainer_of(kind)
    if trainer.state.is_scaled:
        trainer.state.loss_scale = LossScale(2.0**8)
    trainer.add(_batch())
    in_chunks = trainer.gradients()
    trainer.clear()
    monkeypatch.setattr(loss, "projected_cross_entropy", _projected_at_once)
    with eagerly():
        trainer.add(_batch())
    for ours, theirs, weight in zip(
        in_chunks, trainer.gradients(), trainer.weights, strict=True
    ):
        difference = np.linalg.norm(ours - theirs)
        assert difference < tolerance * np.linalg.norm(theirs), weight.path


def test_chunks_of_the_loss_train_the_same_weights(trainer_of):
    trainers = trainer_of("dropout"), trainer_of("dropout", at_once=True)
    for step in range(4):
        losses = [
            float(trainer.update(_batch(step), 2).loss) for trainer in trainers
        ]
        assert math.isclose(*losses, rel_tol=1e-5)
    ours, theirs = (
        np.concatenate([weight.ravel() for weight in _weights(trainer)])
        for trainer in trainers
    )
    # Where a gradient is only rounding, so is Adam's step: compare the whole.
    assert np.linalg.norm(ours - theirs) < 1e-4 * np.linalg.norm(theirs)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_keeps_float32_weights_and_nearly_the_loss(
    precision, trainer_of, without_dropout
):
    mixed = trainer_of(precision)
    assert {weight.dtype for weight in mixed.weights} == {"float32"}
    expected = float(without_dropout.update(_batch()).loss)
    found = float(mixed.update(_batch()).loss)
    assert math.isclose(found, expected, rel_tol=0.02)


@pytest.mark.slow
def test_float16_halves_its_scale_and_repeats_the_batch(trainer_of):
    trainer = trainer_of("float16")
    trainer.state.loss_scale = LossScale(2.0**40)
    update = trainer.update(_batch())
    assert trainer.step == 1
    assert trainer.state.loss_scale.scale < 2.0**30
    assert math.isfinite(float(update.loss))
    assert trainer.state.weights_are_finite()


def test_float16_gives_up_when_no_scale_fits(trainer_of):
    trainer = trainer_of("float16")
    trainer.weights[0].assign(np.full(trainer.weights[0].shape, np.inf))
    with pytest.raises(
        DivergenceError, match=r"finite at any loss .* step 1$"
    ) as error:
        trainer.update(_batch())
    failed = error.value.update
    assert (failed.step, trainer.step) == (1, 0)
    assert not np.isfinite(failed.gradient_norms).any()
    assert float(failed.tokens) == 7 + 3 + 7 + 1
    assert float(trainer.graphs.sums.tokens) == 0
