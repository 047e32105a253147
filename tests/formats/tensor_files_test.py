"""Tensors are read from each kind of file, and nothing else is."""

import importlib.util
import sys
import types

import numpy as np
import pytest
import safetensors.numpy
from tiny_hugging_face import (
    CONFIG,
    GOLDEN,
    QUERY,
    TENSORS,
    assert_same,
    write_json,
)

from t2t_lite.errors import InputError
from t2t_lite.formats import hugging_face_import


def test_shards_are_read_as_one_file(folder):
    expected = hugging_face_import.read(folder)
    (folder / "model.safetensors").unlink()
    names = sorted(TENSORS)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in halves.items():
        tensors = {name: TENSORS[name] for name in some}
        safetensors.numpy.save_file(tensors, folder / file)
    places = {name: file for file, some in halves.items() for name in some}
    index = folder / "model.safetensors.index.json"
    write_json(index, {"weight_map": places})
    assert_same(hugging_face_import.read(folder), expected)
    write_json(index, {"weight_map": places | {QUERY: "../a.safetensors"}})
    with pytest.raises(InputError, match="files of its folder"):
        hugging_face_import.read(folder)
    write_json(index, {"weight_map": places | {"none": "a.safetensors"}})
    with pytest.raises(
        InputError, match=r"a\.safetensors must hold none, as model"
    ):
        hugging_face_import.read(folder)


def test_half_precision_is_read(folder):
    tensors = {name: t.astype(np.float16) for name, t in TENSORS.items()}
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    _, expected = hugging_face_import.hparams_and_weights(CONFIG, tensors)
    name = "transformer/encoder/layer_0/feed_forward/hidden/kernel"
    found = hugging_face_import.read(folder).weights[name]
    np.testing.assert_array_equal(found, expected[name])
    assert found.dtype == np.float32


def test_without_torch_a_pickle_is_refused_with_what_to_do(folder, monkeypatch):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"\.save_pretrained") as error:
        hugging_face_import.read(folder)
    assert "\n" not in str(error.value)


class FakeTensor:
    def __init__(self, array):
        self.array = array

    def float(self):
        return self

    def numpy(self):
        return self.array


@pytest.fixture
def fake_torch(folder, monkeypatch):
    """A stand-in for torch whose `load` returns or raises `loaded`."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    torch = types.SimpleNamespace(
        asked={}, loaded={}, __version__="2.6.1+cpu", __spec__="found"
    )

    def load(path, **options):
        torch.asked |= options
        if isinstance(torch.loaded, Exception):
            raise torch.loaded
        return torch.loaded

    torch.load = load
    torch.is_tensor = lambda value: isinstance(value, FakeTensor)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def test_torch_reads_tensors_and_nothing_else(folder, fake_torch):
    fake_torch.loaded = {n: FakeTensor(t) for n, t in TENSORS.items()}
    expected = hugging_face_import.read(GOLDEN / "opus")
    assert_same(hugging_face_import.read(folder), expected)
    assert fake_torch.asked == {"map_location": "cpu", "weights_only": True}


@pytest.mark.parametrize("loaded", [ValueError("a\nb"), {"x": 1}, [1]])
def test_a_pickle_of_other_things_is_refused(folder, fake_torch, loaded):
    fake_torch.loaded = loaded
    with pytest.raises(InputError, match=r"pytorch_model\.bin must") as error:
        hugging_face_import.read(folder)
    assert "\n" not in str(error.value)
