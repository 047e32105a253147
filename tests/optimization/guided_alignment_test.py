"""A head learns the links between words, however a batch is divided."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from eagerly import eagerly
from tiny_models import TINY_MODELS

from t2t_lite.model import loss
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import shift_right
from t2t_lite.optimization.guided_alignment import guided_head
from t2t_lite.optimization.loss_scale import LossScale
from t2t_lite.optimization.sharding import Batch
from t2t_lite.optimization.trainer import Trainer
from t2t_lite.token_ids import EOS, PAD

V = 11
PLAIN = dataclasses.replace(
    TINY_MODELS["sinusoidal"],
    num_layers=1,
    dropout=0.0,
    label_smoothing=0.0,
    learning_rate_scale=0.5,
    warmup_steps=30,
)
GUIDED = dataclasses.replace(PLAIN, guided_alignment=0.5)
# The guided head is not in the last layer here.
DEEP = dataclasses.replace(GUIDED, num_decoder_layers=2)


def make_batch(seed=0):
    """Returns sources, their reversals as targets, and the links."""
    generator = np.random.default_rng(seed)
    source_ids = generator.integers(2, V, (6, 5)).astype(np.int32)
    ends = (0, 0), (0, 1)
    target_ids = np.pad(source_ids[:, ::-1], ends, constant_values=EOS)
    is_linked = np.zeros((6, 6, 5), np.uint8)
    is_linked[:, range(5), range(4, -1, -1)] = 1
    is_linked[1, 0, :2] = 1  # A target token with three source tokens.
    target_ids[2, 3:] = EOS, PAD, PAD  # A shorter target.
    is_linked[2, 3:] = 0
    return Batch(source_ids, target_ids, is_linked)


@pytest.fixture(scope="module")
def trainers():
    return {
        "whole": Trainer(GUIDED, V),
        "parts": Trainer(GUIDED, V, num_parts=2),
        "plain": Trainer(PLAIN, V),
    }


def expected_loss(model, batch):
    """Returns the summed loss of a batch, computed by the formula."""
    source_ids, target_ids, is_linked = batch
    with record_weights() as attention:
        logits = model((source_ids, shift_right(target_ids)))
    total, _ = loss.cross_entropy(logits, target_ids)
    layer = model.decoder.layers[0].memory_attention
    weights_BTS = attention[layer.path][:, 0]
    for row, t, s in np.argwhere(is_linked):
        count = is_linked[row, t].sum()
        # The decoder reads the token at the next position.
        weight = weights_BTS[row, t + 1, s]
        total -= 0.5 / count * tf.math.log(weight + 1e-9)
    return total


def test_the_gradient_is_that_of_both_losses():
    trainer, batch = Trainer(DEEP, V), make_batch()
    trainer.add(batch)
    found = trainer.gradients()
    with tf.GradientTape() as tape:
        total = expected_loss(trainer.model, batch)
    expected = tape.gradient(total, [w.value for w in trainer.weights])
    for our, their in zip(found, expected, strict=True):
        their = tf.convert_to_tensor(their) / 34  # Target tokens.
        np.testing.assert_allclose(our, their, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_xla_gives_the_same_gradients(trainers, monkeypatch):
    """Even if the loss is computed in chunks."""
    links = True, False
    whole = [gradients(trainers["whole"], each) for each in links]
    monkeypatch.setattr(loss, "CHUNK_LOGITS", 2 * V)
    compiled = Trainer(GUIDED, V, xla=True)
    for has_links, expected in zip(links, whole, strict=True):
        found = gradients(compiled, has_links)
        assert_near(found, expected, 1e-5)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "rounding"), [("bfloat16", 2**-8), ("float16", 2**-11)]
)
def test_half_precision_gives_about_the_same(trainers, precision, rounding):
    halves = Trainer(GUIDED, V, precision=precision)
    if halves.state.is_scaled:
        halves.state.loss_scale = LossScale(2.0**8)
    with eagerly():
        found = gradients_of_links(halves)
    assert_near(found, gradients_of_links(trainers["whole"]), 32 * rounding)


def gradients_of_links(trainer):
    """Returns what the links add to the gradients.

    The rounding errors of the other loss are far larger.
    """
    return gradients(trainer) - gradients(trainer, has_links=False)


def gradients(trainer, has_links=True):
    """Returns the gradients of a batch, concatenated."""
    batch = make_batch()
    trainer.add(batch if has_links else batch._replace(is_linked=None))
    found = [np.ravel(gradient) for gradient in trainer.gradients()]
    trainer.clear()
    return np.concatenate(found)


def assert_near(found, expected, tolerance):
    difference = np.linalg.norm(found - expected)
    assert difference < tolerance * np.linalg.norm(expected)


@pytest.mark.slow
def test_how_a_batch_is_divided_changes_nothing(trainers):
    batch, found = make_batch(), []
    for name, count in (("whole", 1), ("whole", 3), ("parts", 1), ("parts", 2)):
        trainer = trainers[name]
        for n in range(count):
            trainer.add(batch, n, count)
        found.append(trainer.gradients())
        trainer.clear()
    for others in found[1:]:
        for our, their in zip(others, found[0], strict=True):
            np.testing.assert_allclose(our, their, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_without_links_there_is_one_loss(trainers):
    batch, found = make_batch(), []
    for name, links in (
        ("plain", None),
        ("whole", None),
        ("whole", np.zeros_like(batch.is_linked)),
        ("whole", batch.is_linked),
    ):
        trainers[name].add(batch._replace(is_linked=links))
        found.append(trainers[name].gradients())
        trainers[name].clear()
    for others in found[1:3]:
        for our, their in zip(others, found[0], strict=True):
            np.testing.assert_allclose(our, their, rtol=1e-4, atol=1e-7)
    assert any(
        not np.allclose(our, their, rtol=0.1)
        for our, their in zip(found[3], found[0], strict=True)
    )


@pytest.mark.slow
def test_the_head_learns_what_is_linked(trainers):
    trainer = trainers["parts"]
    assert guided_head(GUIDED) == (0, 0, True)
    assert share_of_right_links(trainer) < 0.4
    for step in range(150):
        batch = make_batch(step + 1)
        batch.is_linked[1, 0, :2] = 0  # One link for each token.
        trainer.update(batch)
    # Not 1: only its position tells a repeated token from its other copy.
    assert share_of_right_links(trainer) > 0.7


def share_of_right_links(trainer):
    """Returns the share of target tokens whose source the head attends to."""
    source_ids, target_ids, _ = make_batch(0)
    with record_weights() as attention:
        trainer.model((source_ids, shift_right(target_ids)))
    layer = trainer.model.decoder.layers[0].memory_attention
    found = attention[layer.path].numpy()[:, 0, 1:].argmax(axis=-1)
    is_linked = target_ids[:, :-1] > EOS
    return (found == [4, 3, 2, 1, 0])[is_linked].mean()


def test_it_is_the_last_layer_but_one_that_learns():
    for layers, decoder_layers, expected in ((6, 0, 4), (6, 2, 0), (1, 0, 0)):
        hparams = dataclasses.replace(
            GUIDED, num_layers=layers, num_decoder_layers=decoder_layers
        )
        assert guided_head(hparams) == (expected, 0, True)
