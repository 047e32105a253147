"""Reordering channels between alternating and sines-first changes no result."""

import numpy as np
import pytest
from tiny_models import TINY_MODELS, tiny_transformer

from t2t_lite.formats import channels
from t2t_lite.model.embedding import sinusoids

D = TINY_MODELS["marian"].d_model


def weights_of(model):
    return {w.path: w.numpy() for w in model.trainable_variables}


def test_sines_and_cosines_alternate():
    sines_first = np.array([[0, 1, 2, 100, 101, 102]])
    found = channels.interleave({"embedding/embedding": sines_first}, 6)
    expected = [[0, 100, 1, 101, 2, 102]]
    assert found["embedding/embedding"].tolist() == expected


def test_separated_weights_come_back_interleaved():
    weights = weights_of(tiny_transformer(TINY_MODELS["marian"]))
    back = channels.interleave(channels.separate(weights, D), D)
    assert back.keys() == weights.keys()
    for name, weight in weights.items():
        np.testing.assert_array_equal(back[name], weight)


def test_every_axis_of_channels_is_reordered(monkeypatch):
    """A model without positions computes the same in any order of channels."""
    from keras import ops

    from t2t_lite.model import embedding

    def no_positions(position_L, d_model, marian=False):
        return ops.zeros((ops.shape(position_L)[0], d_model))

    monkeypatch.setattr(embedding, "sinusoids", no_positions)
    for kind in ("marian", "pre_norm"):
        hparams = TINY_MODELS[kind]
        model = tiny_transformer(hparams)
        ids = np.array([[5, 7, 3, 1]]), np.array([[1, 4, 9]])
        before = model(ids).numpy()
        reordered = channels.separate(weights_of(model), hparams.d_model)
        for weight in model.trainable_variables:
            weight.assign(reordered[weight.path])
        np.testing.assert_allclose(model(ids), before, atol=1e-5)


@pytest.mark.parametrize("marian", [False, True])
def test_encodings_are_those_of_the_model(marian):
    expected = sinusoids(np.arange(50), 16, marian)
    np.testing.assert_allclose(
        channels.encodings(50, 16, marian), expected, atol=1e-6
    )
