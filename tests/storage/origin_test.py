"""A model refuses the weights of another one, even of the same shapes."""

import dataclasses

import numpy as np
import pytest

from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.storage import checkpoints, origin
from t2t_lite.storage.model_directory import ModelDirectory, Settings

HPARAMS = HParams()
OWN, OTHER = "a" * 64, "b" * 64


def require(tensors, hparams=HPARAMS, vocabulary_sha256=OWN):
    origin.require(tensors, hparams, vocabulary_sha256, description="step-1")


def test_all_that_makes_a_model_is_compared():
    """Fails if HParams gets a field of the model that is not compared."""
    names = [field.name for field in dataclasses.fields(HParams)]
    of_the_model = {*names[: names.index("dropout")], "task"}
    shown_by_shapes = {"learned_positions"}
    assert {*origin._HPARAMS} == of_the_model - shown_by_shapes


def test_its_own_weights_pass():
    require(origin.tensors(HPARAMS, OWN))


def test_weights_that_say_nothing_pass():
    require({})


def test_training_may_be_changed():
    changed = HParams(dropout=0.3, learning_rate_scale=2.0, beam_width=5)
    require(origin.tensors(HPARAMS, OWN), changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"positions": "marian"},
            "step-1 was trained with positions=sinusoidal; the",
        ),
        (
            {"attention_window": 3},
            "attention_window=0; the settings .* say .*=3",
        ),
        ({"embedding_scale": 1.0}, "embedding_scale=0.0; .* say .*=1.0"),
        ({"norm_epsilon": 1e-3}, "norm_epsilon=1e-06; .* say .*=0.001"),
        (
            {"activation": "swish"},
            "activation=relu; .* activation=swish: restore",
        ),
        (
            {"num_heads": 4, "d_k": 128},
            "num_heads=8; the settings .* say .*=4",
        ),
    ],
)
def test_another_model_is_named(change, message):
    other = dataclasses.replace(HPARAMS, **change)
    with pytest.raises(InputError, match=message):
        require(origin.tensors(HPARAMS, OWN), other)


def test_another_vocabulary_is_named():
    tensors = origin.tensors(HPARAMS, OTHER)
    message = "another vocabulary, whose SHA-256 begins with bbb.* received aaa"
    with pytest.raises(InputError, match=message):
        require(tensors)
    with pytest.raises(InputError, match=message):
        origin.require_vocabulary(tensors, OWN, "step-1", remedy="mend it")


def test_a_setting_of_a_later_version_passes():
    require({origin.NAME: b'{"sixth_sense": true}'})


@pytest.mark.parametrize(
    "value", [b"{", b"[]", np.float32(1), b"\xff", b"[" * 100_000]
)
def test_what_cannot_be_read_is_damaged(value):
    with pytest.raises(InputError, match="step-1 is damaged: origin must be"):
        require({origin.NAME: value})


@pytest.fixture
def directory(tmp_path):
    """A model directory whose second checkpoint has another vocabulary."""
    directory = ModelDirectory(tmp_path)
    directory.save_settings(
        Settings(
            hparams=HPARAMS,
            corpus={},
            data_sha256="",
            vocabulary_sha256=OWN,
            vocabulary_size=9,
            micro_batch_tokens=9,
        )
    )
    for step, vocabulary in enumerate((OWN, OTHER), start=1):
        checkpoints.write(
            directory.checkpoints / f"step-{step}",
            {"transformer/a": np.float32([step]), "step": np.int64(step)}
            | origin.tensors(HPARAMS, vocabulary),
        )
    return directory


@pytest.mark.parametrize("how", [{}, {"average_last": 2}])
def test_a_model_directory_refuses_weights_of_another(directory, how):
    with pytest.raises(InputError, match="step-2 was trained with another voc"):
        directory.weights(**how)
    first = str(directory.checkpoints / "step-1")
    assert directory.weights(first)[1].keys() == {"transformer/a"}


def test_an_average_says_it_too(directory):
    checkpoints.remove(directory.checkpoints / "step-2")
    path, _ = directory.write_average(1)
    tensors = checkpoints.read(path)
    require(tensors)
    with pytest.raises(InputError, match="another vocabulary"):
        require(tensors, vocabulary_sha256=OTHER)
