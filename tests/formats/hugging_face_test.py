"""Hugging Face's Marian models that go out come in the same."""

import json

import pytest
import safetensors.numpy
from tiny_hugging_face import (
    GOLDEN,
    NAMES,
    TENSORS,
    assert_same,
    edit_json,
    read_json,
)

from t2t_lite.formats import hugging_face_export, hugging_face_import


@pytest.mark.parametrize("name", NAMES)
def test_what_went_out_comes_in_the_same(name, tmp_path):
    model = hugging_face_import.read(GOLDEN / name)
    hugging_face_export.write(model, tmp_path / "out")
    again = hugging_face_import.read(tmp_path / "out")
    assert_same(again, model)
    lines = read_json(name, "lines.json")
    assert again.vocabulary.encode(lines) == model.vocabulary.encode(lines)
    again, model = again.vocabulary.target, model.vocabulary.target
    assert again.encode(lines) == model.encode(lines)


SOURCE, TARGET = (
    f"model.{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")
)
SHARED, OUTPUT = "model.shared.weight", "lm_head.weight"


@pytest.mark.parametrize("scales", [False, True])
@pytest.mark.parametrize(
    ("tied", "shared", "is_output_tied", "names"),
    [
        ("all", True, True, {SHARED}),
        ("input", True, False, {SHARED, SOURCE, TARGET, OUTPUT}),
        ("target", False, True, {SOURCE, TARGET}),
        ("none", False, False, {SOURCE, TARGET, OUTPUT}),
    ],
)
def test_each_way_to_share_embeddings_goes_in_and_out(
    folder, tmp_path, tied, shared, is_output_tied, names, scales
):
    flags = {
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": is_output_tied,
        "scale_embedding": scales,
    }
    edit_json(folder / "config.json", **flags)
    tensors = dict(TENSORS)
    matrix_VD = tensors.pop(SHARED)
    tensors |= {name: matrix_VD.copy() for name in names}
    if OUTPUT in names:
        tensors[OUTPUT] += 1
    if not shared:
        tensors[SOURCE] += 2
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    model = hugging_face_import.read(folder)
    assert model.hparams.tied_embeddings == tied
    assert model.hparams.embedding_scale == (0 if scales else 1)
    hugging_face_export.write(model, tmp_path / "out")
    assert_same(hugging_face_import.read(tmp_path / "out"), model)
    config = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
    assert config.items() >= flags.items()
    path = tmp_path / "out" / "model.safetensors"
    assert safetensors.numpy.load_file(path).keys() == tensors.keys()
