"""The model, the loss and the beam search on JAX equal those on TensorFlow."""

import dataclasses
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import jax_backend_check
import numpy as np
import pytest
from tiny_models import TINY_MODELS, tiny_transformer

SOURCE = np.array([[2, 9, 4, 3, 1], [5, 8, 1, 0, 0]])
TARGET = np.array([[6, 2, 7, 7, 3, 10, 1], [5, 9, 4, 1, 0, 0, 0]])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None, reason="jax is not installed"
    ),
]


def on_jax(model, folder):
    """Returns the results of another process, whose backend is JAX."""
    np.savez(
        folder / "input.npz",
        hparams=json.dumps(dataclasses.asdict(model.hparams)),
        source=SOURCE,
        target=TARGET,
        **{weight.path: weight.numpy() for weight in model.weights},
    )
    script = pathlib.Path(jax_backend_check.__file__)
    subprocess.run(
        [sys.executable, script, folder / "input.npz", folder / "output.npz"],
        check=True,
        env=os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        timeout=300,
    )
    return np.load(folder / "output.npz")


@pytest.mark.parametrize("name", ["learned", "d_k_is_not_d_v", "restricted"])
def test_jax_gives_what_tensorflow_does(name, tmp_path):
    model = tiny_transformer(TINY_MODELS[name])
    jax = on_jax(model, tmp_path)
    assert jax["backend"] == "jax"
    assert not jax["imports_tensorflow"]
    expected = jax_backend_check.results(model, SOURCE, TARGET)
    assert jax["tokens"] == expected["tokens"]
    for ids in ("ids", "steered_ids", "drawn_ids"):
        np.testing.assert_array_equal(jax[ids], expected[ids])
    assert expected["steered_ids"][0, 0, :2].tolist() == [2, 3]
    assert expected["steered_ids"][1, 0, 0] == 4
    projected = ("projected_loss", "x_gradient", "embedding_gradient")
    for result in ("logits", "loss", *projected, "scores", "steered_scores"):
        np.testing.assert_allclose(
            jax[result], expected[result], rtol=1e-4, atol=1e-4
        )
