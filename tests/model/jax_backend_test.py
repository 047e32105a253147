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
# JAX compiles a program for each search, so only one model gets all of them.
HPARAMS = {
    "learned": dataclasses.replace(
        TINY_MODELS["d_k_is_not_d_v"], positions="learned", num_layers=1
    ),
    "restricted": TINY_MODELS["restricted"],
}
SEARCHES = {
    "learned": ["plain", "steered", "next_words", "with_terms", "drawn"],
    "restricted": ["plain"],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None, reason="jax is not installed"
    ),
]


@pytest.fixture(scope="module")
def models():
    return {name: tiny_transformer(each) for name, each in HPARAMS.items()}


@pytest.fixture(scope="module")
def on_jax(models, tmp_path_factory):
    """The results of each model, from another process with the JAX backend."""
    folder = tmp_path_factory.mktemp("jax")
    for name, model in models.items():
        np.savez(
            folder / f"{name}.input.npz",
            hparams=json.dumps(dataclasses.asdict(model.hparams)),
            source=SOURCE,
            target=TARGET,
            every_search=len(SEARCHES[name]) > 1,
            **{weight.path: weight.numpy() for weight in model.weights},
        )
    script = pathlib.Path(jax_backend_check.__file__)
    # Optimizing a program takes longer than running it once.
    environment = {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    }
    subprocess.run(
        [sys.executable, script, folder],
        check=True,
        env=os.environ | environment,
        timeout=300,
    )
    return {name: np.load(folder / f"{name}.output.npz") for name in models}


@pytest.mark.parametrize("name", HPARAMS)
def test_jax_gives_what_tensorflow_does(name, models, on_jax):
    jax = on_jax[name]
    assert jax["backend"] == "jax"
    assert not jax["imports_tensorflow"]
    expected = jax_backend_check.results(
        models[name], SOURCE, TARGET, len(SEARCHES[name]) > 1
    )
    assert jax["tokens"] == expected["tokens"]
    results = ["int8_product", "logits", "loss"]
    results += ["projected_loss", "x_gradient", "embedding_gradient"]
    for search in SEARCHES[name]:
        ids = f"{search}_ids"
        np.testing.assert_array_equal(jax[ids], expected[ids])
        results.append(f"{search}_scores")
    for result in results:
        np.testing.assert_allclose(
            jax[result], expected[result], rtol=1e-4, atol=1e-4
        )


def test_what_is_compared_is_steered(on_jax):
    ids = on_jax["learned"]["steered_ids"]
    assert ids[0, 0, :2].tolist() == [2, 3]
    assert ids[1, 0, 0] == 4
