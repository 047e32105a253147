"""Golden models in Hugging Face's format, which transformers wrote."""

import json

import numpy as np
import safetensors.numpy
from paths import ROOT

GOLDEN = ROOT / "tests" / "golden" / "hugging_face"
NAMES = ("opus", "separate")
CONFIG = json.loads((GOLDEN / "opus" / "config.json").read_text("utf-8"))
TENSORS = safetensors.numpy.load_file(GOLDEN / "opus" / "model.safetensors")
QUERY = "model.encoder.layers.0.self_attn.q_proj.weight"


def read_json(name, file):
    return json.loads((GOLDEN / name / file).read_text("utf-8"))


def write_json(path, values):
    path.write_text(json.dumps(values), "utf-8")


def edit_json(path, **changes):
    write_json(path, json.loads(path.read_text("utf-8")) | changes)


def assert_same(found, expected):
    assert found.hparams == expected.hparams
    assert found.weights.keys() == expected.weights.keys()
    for name, weight in expected.weights.items():
        np.testing.assert_array_equal(found.weights[name], weight, name)
    for each in (found, expected):
        assert each.vocabulary.size
    ours, theirs = expected.vocabulary, found.vocabulary
    assert theirs.tokens(range(theirs.size)) == ours.tokens(range(ours.size))
