"""Hugging Face's Marian models are imported with equal logits.

The files in golden/hugging_face were written by transformers itself:

    python tests/benchmarks/hugging_face_peer.py --peer_python=PYTHON \
        --golden=tests/golden/hugging_face
"""

import json
import math
import re

import numpy as np
import pytest
import safetensors.numpy
from tiny_hugging_face import (
    CONFIG,
    GOLDEN,
    NAMES,
    QUERY,
    TENSORS,
    edit_json,
    read_json,
    write_json,
)

from t2t_lite.errors import InputError
from t2t_lite.formats import hugging_face_import
from t2t_lite.hparams import HParams
from t2t_lite.text.vocabulary import SPACE


def order_of(ids, vocabulary):
    """Returns an array: this package's id of each of the tokenizer's ids."""
    tokens = vocabulary.tokens(range(vocabulary.size))
    ours = {token: i for i, token in enumerate(tokens)}
    return np.array(
        [
            ours[SPACE + piece if piece.startswith(">>") else piece]
            for piece in sorted(ids, key=ids.get)
        ]
    )


def orders(name, vocabulary):
    """Returns `order_of` for both sides of a golden model: (source, target)."""
    source = read_json(name, "vocab.json")
    is_separate = (GOLDEN / name / "target_vocab.json").exists()
    target = read_json(name, "target_vocab.json") if is_separate else source
    return order_of(source, vocabulary), order_of(target, vocabulary.target)


def transformer(model):
    # Imported here so that the other tests do not load TensorFlow.
    from t2t_lite.model.transformer import Transformer
    from t2t_lite.storage.model_directory import assign

    built = Transformer(
        model.hparams,
        model.vocabulary.size,
        num_target_ids=model.vocabulary.target.size,
    )
    built.build()
    assign(built.trainable_variables, model.weights, "the model")
    return built


@pytest.mark.parametrize("name", NAMES)
def test_logits_equal_those_of_transformers(name):
    model = hugging_face_import.read(GOLDEN / name)
    source, target = orders(name, model.vocabulary)
    pairs = read_json(name, "pairs.json")
    inputs = source[pairs["source"]], target[pairs["target"]]
    logits_BTV = np.asarray(transformer(model)(inputs))
    expected_BTV = np.load(GOLDEN / name / "logits.npy", allow_pickle=False)
    found_BTV = logits_BTV[..., target]
    np.testing.assert_allclose(found_BTV, expected_BTV, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_ids_equal_those_of_the_tokenizer(name):
    vocabulary = hugging_face_import.read(GOLDEN / name).vocabulary
    lines, text = (read_json(name, f"{n}.json") for n in ("lines", "text"))
    source, target = orders(name, vocabulary)
    for ids, line in zip(text["source"], lines, strict=True):
        assert vocabulary.encode([line]) == [source[ids].tolist()], line
    for ids, line in zip(text["target"], lines, strict=True):
        assert vocabulary.target.encode([line]) == [target[ids].tolist()], line


def test_settings_are_those_of_the_config():
    changes = {
        "dropout": 0.2,
        "attention_dropout": 0.3,
        "activation_dropout": 0.4,
        "num_beams": 6,
        "length_penalty": 0.5,
    }
    hparams, _ = hugging_face_import.hparams_and_weights(
        CONFIG | changes, TENSORS
    )
    assert hparams == HParams(
        num_layers=2,
        d_model=16,
        d_ff=24,
        num_heads=4,
        d_k=4,
        d_v=4,
        norm_epsilon=1e-5,
        activation="swish",
        attention_bias=True,
        logit_bias=True,
        decoder_start="zeros",
        dropout=0.2,
        attention_dropout=0.3,
        relu_dropout=0.4,
        vocabulary_size=CONFIG["vocab_size"],
        max_length=64,
        beam_width=6,
        length_penalty=0.6,
    )


def test_no_length_penalty_is_none_here(folder):
    edit_json(folder / "generation_config.json", length_penalty=0)
    model = hugging_face_import.read(folder)
    assert model.hparams.length_penalty == 0
    assert model.found[-1] == "search: beam 1, no length penalty"


def test_found_names_what_the_files_were():
    found = "\n".join(hugging_face_import.read(GOLDEN / "opus").found)
    for part in (
        "2 + 2 layers, d_model 16, d_ff 24, 4 heads, swish",
        "model.safetensors",
        "SentencePiece normalizes it (identity)",
        ">>deu<< >>nld<<",
        "((5 + length) / 6)^1.2",
    ):
        assert part in found


def test_a_bias_on_keys_changes_nothing():
    name = "model.decoder.layers.1.encoder_attn.k_proj.bias"
    changed = TENSORS | {name: TENSORS[name] + 1}
    _, expected = hugging_face_import.hparams_and_weights(CONFIG, TENSORS)
    _, found = hugging_face_import.hparams_and_weights(CONFIG, changed)
    for name, weight in expected.items():
        np.testing.assert_array_equal(found[name], weight, name)


def test_a_bias_of_zeros_is_none():
    tensors = {
        name: np.zeros_like(t) if name.endswith("_proj.bias") else t
        for name, t in TENSORS.items()
    }
    tensors["final_logits_bias"] = np.zeros_like(tensors["final_logits_bias"])
    hparams, weights = hugging_face_import.hparams_and_weights(CONFIG, tensors)
    assert not hparams.attention_bias
    assert not hparams.logit_bias
    assert not any(name.endswith("_bias") for name in weights)


def test_tables_of_positions_are_the_sines_of_the_paper():
    angle = np.arange(64)[:, None] / 10_000 ** (np.arange(0, 16, 2) / 16)
    table = np.concatenate([np.sin(angle), np.cos(angle)], 1)
    table = table.astype(np.float16)
    names = [
        f"model.{s}.embed_positions.weight" for s in ("encoder", "decoder")
    ]
    tensors = TENSORS | dict.fromkeys(names, table)
    hugging_face_import.hparams_and_weights(CONFIG, tensors)
    tensors[names[1]] = table + np.float16(0.01)
    with pytest.raises(InputError, match="sines and cosines"):
        hugging_face_import.hparams_and_weights(CONFIG, tensors)


def test_a_file_may_have_a_shared_matrix_under_all_its_names():
    shared = TENSORS["model.shared.weight"]
    tensors = TENSORS | {"lm_head.weight": shared.copy()}
    hugging_face_import.hparams_and_weights(CONFIG, tensors)
    tensors["lm_head.weight"] = shared + 1
    with pytest.raises(InputError, match=r"and lm_head\.weight must be the"):
        hugging_face_import.hparams_and_weights(CONFIG, tensors)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"activation_function": "gelu_new"}, "'gelu_new'"),
        ({"activation_function": ["relu"]}, "activation_function"),
        ({"decoder_ffn_dim": 25}, "decoder_ffn_dim must be 24; received"),
        ({"decoder_attention_heads": 2}, "decoder_attention_heads must be 4"),
        ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "multi"),
        ({"decoder_vocab_size": 70}, "decoder_vocab_size must be"),
        ({"normalize_before": True}, "normalize_before must be false"),
        ({"add_final_layer_norm": True}, "add_final_layer_norm must be"),
        ({"static_position_embeddings": False}, "static_position_embeddings"),
        ({"decoder_start_token_id": 7}, "decoder_start_token_id must be"),
        ({"pad_token_id": 700}, "pad_token_id must be below"),
        ({"eos_token_id": [0]}, "eos_token_id must be an integer"),
        ({"d_model": "16"}, "d_model must be an integer"),
        ({"encoder_layers": 0}, "encoder_layers must be at least 1"),
        ({"scale_embedding": 1}, "scale_embedding must be true or false"),
        ({"dropout": 2.0}, "dropout must be in"),
        ({"length_penalty": "1"}, "length_penalty must be"),
        ({"length_penalty": math.nan}, "length_penalty must be"),
        ({"encoder_layers": 3}, "encoder.layers.2.self_attn.q_proj.weight of"),
        ({"encoder_layers": 1}, "which it does not have"),
    ],
)
def test_a_config_that_cannot_be_computed_is_refused(changes, says):
    with pytest.raises(InputError, match=re.escape(says)) as error:
        hugging_face_import.hparams_and_weights(CONFIG | changes, TENSORS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (QUERY, None, "received nothing"),
        (QUERY, np.zeros((16, 15), np.float32), r"received \[16, 15\]"),
        (QUERY, np.full((16, 16), np.nan, np.float32), "must be finite"),
        ("model.adapter.weight", np.zeros(3, np.float32), "which it does not"),
        ("model.shared.weight", "row", "embedding of <pad> must be zero"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(name, value, says):
    tensors = dict(TENSORS)
    if value is None:
        del tensors[name]
    else:
        is_row = isinstance(value, str)
        tensors[name] = tensors[name] + 1 if is_row else value
    with pytest.raises(InputError, match=says):
        hugging_face_import.hparams_and_weights(CONFIG, tensors)


def test_the_pad_token_may_have_a_vector_where_eos_starts():
    tensors = TENSORS | {
        "model.shared.weight": TENSORS["model.shared.weight"] + 1
    }
    config = CONFIG | {"decoder_start_token_id": CONFIG["eos_token_id"]}
    hparams, _ = hugging_face_import.hparams_and_weights(config, tensors)
    assert hparams.decoder_start == "eos"


# Files.


def test_only_a_folder_with_a_model_type_is_hugging_faces(tmp_path, folder):
    assert hugging_face_import.is_hugging_face(folder)
    assert not hugging_face_import.is_hugging_face(tmp_path)
    assert not hugging_face_import.is_hugging_face(folder / "config.json")
    # As CTranslate2 writes it.
    write_json(tmp_path / "config.json", {"bos_token": "</s>"})
    assert not hugging_face_import.is_hugging_face(tmp_path)


def break_json(folder):
    (folder / "config.json").write_text("{", "utf-8")


def cut(file):
    def cut_file(folder):
        data = (folder / file).read_bytes()
        (folder / file).write_bytes(data[: len(data) // 2])

    return cut_file


def quantize(folder):
    tensors = TENSORS | {QUERY: np.zeros((16, 16), np.int8)}
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")


def make_a_list(folder):
    write_json(folder / "vocab.json", ["</s>"])


def rename_pieces(folder):
    """Renames pieces in vocab.json, so that the .spm files do not match it."""
    ids = json.loads((folder / "vocab.json").read_text("utf-8"))
    kept = ("</s>", "<pad>", "<unk>")
    write_json(
        folder / "vocab.json",
        {name if name in kept else f"{name}?": i for name, i in ids.items()},
    )


def rename_unknown(folder):
    ids = json.loads((folder / "vocab.json").read_text("utf-8"))
    ids["unknown"] = ids.pop("<unk>")
    write_json(folder / "vocab.json", ids)


def edit(file, **changes):
    return lambda folder: edit_json(folder / file, **changes)


def remove(*names):
    def remove_files(folder):
        for name in names:
            (folder / name).unlink()

    return remove_files


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (break_json, "config.json cannot be used"),
        (edit("config.json", model_type="t5"), "model_type must be marian"),
        (remove("vocab.json"), "cannot read .*vocab.json: No such file"),
        (remove("source.spm"), "cannot read .*source.spm"),
        (remove("model.safetensors"), "must have model.safetensors or"),
        (cut("model.safetensors"), "is not a complete safetensors file"),
        (cut("target.spm"), "target.spm cannot be used"),
        (quantize, "must be floats, not quantized; received .* type I8"),
        (make_a_list, "vocab.json cannot be used"),
        (rename_unknown, "must have a piece <unk>"),
        (
            rename_pieces,
            "source.spm cannot be used: it has only .* so it belongs to",
        ),
        (edit("vocab.json", more=3), "pieces, as many as the model has"),
        (edit("vocab.json", more=300), "pieces, as many as the model has"),
        (edit("vocab.json", more="3"), "pieces, as many as the model has"),
        (edit("config.json", eos_token_id=5), "the eos_token_id of config"),
        (edit("vocab.json", **{"</s>": 1, "<unk>": 0}), "must give </s> the"),
        (
            edit("vocab.json", **{"<unk>": 1, "<pad>": 0, "</s>": 2}),
            "as many as the model has",
        ),
        (edit("generation_config.json", num_beams=0), "num_beams must be at"),
        (edit("tokenizer_config.json", separate_vocabs=True), "must be false"),
    ],
)
def test_a_damaged_folder_is_refused_in_one_line(folder, change, says):
    change(folder)
    with pytest.raises(InputError, match=says) as error:
        hugging_face_import.read(folder)
    assert "\n" not in str(error.value)
