"""Hugging Face's Marian models are imported and exported with equal logits.

The files in golden/hugging_face were written by transformers itself:

    python tests/benchmarks/hugging_face_peer.py --peer_python=PYTHON \
        --golden=tests/golden/hugging_face
"""

import dataclasses
import importlib.util
import json
import math
import pathlib
import re
import shutil
import sys
import types

import numpy as np
import pytest
import safetensors.numpy
from paths import ROOT

from t2t_lite.errors import InputError
from t2t_lite.formats import hugging_face_export, hugging_face_import
from t2t_lite.formats.portable import PortableModel
from t2t_lite.formats.sentence_pieces import parse
from t2t_lite.hparams import HParams
from t2t_lite.text.vocabulary import SPACE, Vocabulary
from t2t_lite.token_ids import EOS, PAD

GOLDEN = ROOT / "tests" / "golden" / "hugging_face"
NAMES = ("opus", "separate")
CONFIG = json.loads((GOLDEN / "opus" / "config.json").read_text("utf-8"))
TENSORS = safetensors.numpy.load_file(GOLDEN / "opus" / "model.safetensors")
QUERY = "model.encoder.layers.0.self_attn.q_proj.weight"


def read_json(name, file):
    return json.loads((GOLDEN / name / file).read_text("utf-8"))


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


@pytest.fixture
def folder(tmp_path):
    """A copy of the golden model in OPUS-MT's format."""
    return shutil.copytree(GOLDEN / "opus", tmp_path / "model")


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


# Import.


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


# Export.


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
