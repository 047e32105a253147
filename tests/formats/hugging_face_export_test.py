"""What is exported for Hugging Face is what transformers expects."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
import safetensors.numpy
from tiny_hugging_face import GOLDEN

from t2t_lite.errors import InputError
from t2t_lite.formats import hugging_face_export, hugging_face_import
from t2t_lite.formats.portable import PortableModel
from t2t_lite.formats.sentence_pieces import parse
from t2t_lite.hparams import HParams
from t2t_lite.text.vocabulary import SPACE, Vocabulary
from t2t_lite.token_ids import EOS, PAD


def test_transformers_is_told_whose_tensors_they_are(tmp_path):
    hugging_face_export.write(tiny_model(), tmp_path / "out")
    path = tmp_path / "out" / "model.safetensors"
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"format": "pt"}


def test_there_are_positions_for_the_longest_output(tmp_path):
    hugging_face_export.write(tiny_model(max_length=600), tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
    assert config["max_position_embeddings"] == 650
    assert hugging_face_import.read(tmp_path / "out").hparams.max_length == 600


def test_an_unknown_quantization_is_refused(tmp_path):
    with pytest.raises(InputError, match="must be None or float16 or bfloat16"):
        hugging_face_export.write(
            tiny_model(), tmp_path / "out", quantization="int8"
        )
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("quantization", "error"), [("float16", 2**-10), ("bfloat16", 2**-7)]
)
def test_lower_precision_rounds_the_weights(quantization, error, tmp_path):
    model = hugging_face_import.read(GOLDEN / "opus")
    hugging_face_export.write(
        model, tmp_path / "out", quantization=quantization
    )
    found = hugging_face_import.read(tmp_path / "out")
    name = "transformer/decoder/layer_0/memory_attention/query"
    weight, rounded = model.weights[name], found.weights[name]
    assert (weight != rounded).any()
    np.testing.assert_allclose(rounded, weight, rtol=error, atol=1e-7)


def tiny_model(**changes):
    """Returns a PortableModel without attention or logit biases."""
    source = hugging_face_import.read(GOLDEN / "opus")
    hparams = dataclasses.replace(
        HParams(),
        num_layers=2,
        d_model=16,
        d_ff=24,
        num_heads=4,
        d_k=4,
        d_v=4,
        **changes,
    )
    weights = {
        name: weight
        for name, weight in source.weights.items()
        if not name.endswith(("_bias",))
    }
    vocabulary = Vocabulary(source.vocabulary.model)
    return PortableModel(hparams, weights, vocabulary)


def test_ids_are_the_same_there(tmp_path):
    model = tiny_model()
    hugging_face_export.write(model, tmp_path / "out")
    ids = json.loads((tmp_path / "out" / "vocab.json").read_text("utf-8"))
    tokens = model.vocabulary.tokens(range(model.vocabulary.size))
    expected = {
        piece.removeprefix(SPACE) if ">>" in piece else piece: i
        for i, piece in enumerate(tokens)
    }
    assert ids == expected
    assert ids["<pad>"] == PAD
    assert ids["</s>"] == EOS


def test_the_decoder_starts_and_ends_as_here(tmp_path):
    hugging_face_export.write(tiny_model(length_penalty=0.6), tmp_path / "out")
    for file in ("config.json", "generation_config.json"):
        found = json.loads((tmp_path / "out" / file).read_text("utf-8"))
        assert found["decoder_start_token_id"] == EOS
        assert found["eos_token_id"] == EOS
        assert found["pad_token_id"] == PAD
        assert found["forced_eos_token_id"] is None
    assert found["bad_words_ids"] == [[PAD]]
    assert found["num_beams"] == 4
    assert found["length_penalty"] == 0.5


def test_the_readme_says_what_differs(tmp_path):
    hugging_face_export.write(tiny_model(length_penalty=0.6), tmp_path / "out")
    readme = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "trained with 1e-06" in readme
    assert "alpha = 0.6, `generation_config.json` has 0.5" in readme


def test_a_vector_of_pad_that_was_trained_is_no_start(tmp_path):
    model = tiny_model(decoder_start="zeros", logit_bias=True)
    name = "transformer/embedding/embedding"
    weights = dict(model.weights)
    weights[name] = weights[name].copy()
    weights[name][PAD] = 1
    bias_V = np.zeros(len(weights[name]), np.float32)
    weights["transformer/embedding/logit_bias"] = bias_V
    model = model._replace(weights=weights)
    hugging_face_export.write(model, tmp_path / "out")
    assert weights[name][PAD].all()
    assert not bias_V.any()
    again = hugging_face_import.read(tmp_path / "out")
    assert again.hparams.decoder_start == "zeros"
    assert not again.weights[name][PAD].any()
    bias_V = again.weights["transformer/embedding/logit_bias"]
    assert bias_V[PAD] == -100
    assert not bias_V[PAD + 1 :].any()


@pytest.mark.parametrize(
    "changes",
    [
        {"attention_window": 3},
        {"positions": "learned"},
        {"positions": "marian"},
        {"norm": "pre"},
        {"d_k": 5},
        {"d_v": 3},
        {"embedding_scale": 2.0},
        {"norm_epsilon": 1e-3},
    ],
)
def test_what_it_cannot_carry_is_refused_by_name(changes, tmp_path):
    model = tiny_model()
    hparams = dataclasses.replace(model.hparams, **changes)
    rule = f"{next(iter(changes))} must be .* for a Hugging Face Marian model"
    with pytest.raises(InputError, match=rule):
        hugging_face_export.write(
            model._replace(hparams=hparams), tmp_path / "out"
        )
    assert not any(tmp_path.iterdir())


def test_a_language_token_with_a_space_behind_it_is_refused(tmp_path):
    model = tiny_model()
    proto = parse(model.vocabulary.model)
    proto.normalizer_spec.remove_extra_whitespaces = False
    vocabulary = Vocabulary(proto.SerializeToString())
    with pytest.raises(InputError, match=r"with >>.*<< must drop repeated"):
        hugging_face_export.write(
            model._replace(vocabulary=vocabulary), tmp_path / "out"
        )
    assert not any(tmp_path.iterdir())


def test_a_control_piece_named_like_the_end_has_another_name(tmp_path):
    model = tiny_model()
    proto = parse(model.vocabulary.model)
    proto.pieces[3].piece, proto.pieces[3].type = "</s>", 3
    vocabulary = Vocabulary(proto.SerializeToString())
    hugging_face_export.write(
        model._replace(vocabulary=vocabulary), tmp_path / "out"
    )
    ids = json.loads((tmp_path / "out" / "vocab.json").read_text("utf-8"))
    assert ids["</s>"] == EOS
    assert ids["<unused 5>"] == 5


def test_two_vocabularies_need_two_embeddings(tmp_path):
    model = tiny_model()
    other = hugging_face_import.read(GOLDEN / "separate").vocabulary.target
    vocabulary = Vocabulary(model.vocabulary.model, target=other)
    with pytest.raises(InputError, match="must have the same pieces"):
        hugging_face_export.write(
            model._replace(vocabulary=vocabulary), tmp_path / "out"
        )
    assert not any(tmp_path.iterdir())


def test_a_folder_that_exists_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine", "utf-8")
    with pytest.raises(InputError, match="must not exist yet"):
        hugging_face_export.write(tiny_model(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_another_machine_is_refused():
    with pytest.raises(InputError, match="must be a local folder: give one"):
        hugging_face_export.write(tiny_model(), "gs://bucket/model")


def test_weights_too_large_for_half_precision_are_refused(tmp_path):
    model = tiny_model()
    name = "transformer/embedding/embedding"
    weights = dict(model.weights) | {name: model.weights[name] * 1e6}
    model = model._replace(weights=weights)
    with pytest.raises(InputError, match="must be finite in float16"):
        hugging_face_export.write(
            model, tmp_path / "out", quantization="float16"
        )
    assert not any(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_bytes", fail)
    with pytest.raises(InputError, match="No space left on device"):
        hugging_face_export.write(tiny_model(), tmp_path / "out")
    assert not any(tmp_path.iterdir())
