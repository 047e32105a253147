"""Imported Marian models compute what Marian computes."""

import json
import math
import os
import pickle

import numpy as np
import pytest
import tiny_marian
import yaml
from marian_imports import assert_refused, marian_ids

from t2t_lite.errors import InputError
from t2t_lite.formats import marian
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.storage.model_directory import assign

# Marian's own scores of tiny_marian's pairs, in nats, from pymarian 1.12.42:
#     python tests/benchmarks/marian_peer.py --peer_python=PYTHON --golden
GOLDEN = {
    "tied": [-14.269447, -14.378126, -31.844473, -26.282864],
    "relu": [-20.489843, -15.769923, -33.858616, -31.96096],
    "gelu": [-42.617798, -15.993412, -27.325439, -84.879013],
    "tied_output": [-47.486084, -15.559237, -38.648533, -116.620956],
    "tied_input": [-10.292982, -10.566845, -29.923676, -23.680984],
    "pre_norm": [-12.988887, -13.199242, -32.516571, -26.382053],
    "pre_norm_relu": [-41.872128, -18.958479, -27.388704, -103.695221],
    "no_projection": [-35.538635, -20.324169, -22.231152, -88.738808],
    "tied_layers": [-43.67215, -16.905802, -28.03797, -88.325935],
}


class Reference:
    """Marian's transformer in NumPy, in float64, one sentence at a time.

    The order of channels, the names and the biases are Marian's.

    Args:
        options: those of special:model.yml, a dict.
        arrays: dict of the weights by name.

    Source: github.com/marian-nmt/marian-dev, src/models/transformer.h.
    """

    def __init__(self, options, arrays):
        self.options = options
        self.arrays = {name: np.float64(a) for name, a in arrays.items()}

    def log_probabilities(self, source, target):
        """Returns [T, V], of each next id, for lists of ids that end in eos."""
        memory_SD = self._encode(source)
        x_TD = self._embed("decoder", target, delayed=True)
        numbers = self.options["transformer-tied-layers"]
        for n in numbers or range(1, self.options["dec-depth"] + 1):
            layer = f"decoder_l{n}"
            x_TD = self._attend(x_TD, None, f"{layer}_self", is_causal=True)
            x_TD = self._attend(x_TD, memory_SD, f"{layer}_context")
            x_TD = self._feed_forward(x_TD, f"{layer}_ffn")
        x_TD = self._top(x_TD, "decoder")
        own = "decoder_ff_logit_out_Wt"
        matrix_VD = self.arrays.get(own, self._matrix("decoder"))
        bias_V = self.arrays.get("decoder_ff_logit_out_b", 0.0)
        return _log_softmax(x_TD @ matrix_VD.T + bias_V)

    def score(self, source, target):
        """Returns the logarithm of the target's probability."""
        each = self.log_probabilities(source, target)
        return each[np.arange(len(target)), target].sum()

    def _encode(self, source):
        x_SD = self._embed("encoder", source)
        for n in range(1, self.options["enc-depth"] + 1):
            x_SD = self._attend(x_SD, None, f"encoder_l{n}_self")
            x_SD = self._feed_forward(x_SD, f"encoder_l{n}_ffn")
        return self._top(x_SD, "encoder")

    def _matrix(self, stack):
        return self.arrays.get("Wemb", self.arrays.get(f"{stack}_Wemb"))

    def _embed(self, stack, ids, *, delayed=False):
        x_LD = self._matrix(stack)[ids]
        if delayed:
            x_LD = np.concatenate([np.zeros_like(x_LD[:1]), x_LD[:-1]])
        L, D = x_LD.shape
        exponent = np.arange(D // 2) / (D / 2 - 1)
        angle = np.arange(L)[:, None] / 10000.0**exponent
        encodings_LD = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        return np.sqrt(D) * x_LD + encodings_LD

    def _norm(self, x, name, suffix=""):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
        scale = self.arrays[f"{name}_ln_scale{suffix}"]
        return x * scale + self.arrays[f"{name}_ln_bias{suffix}"]

    def _before(self, x, name):
        is_normalized = "n" in self.options["transformer-preprocess"]
        return self._norm(x, name, "_pre") if is_normalized else x

    def _after(self, output, x, name):
        is_normalized = "n" in self.options["transformer-postprocess"]
        return self._norm(x + output, name) if is_normalized else x + output

    def _top(self, x, stack):
        is_normalized = self.options["transformer-postprocess-top"]
        return self._norm(x, f"{stack}_top") if is_normalized else x

    def _affine(self, x, name, letter):
        product = x @ self.arrays[f"{name}_W{letter}"]
        return product + self.arrays[f"{name}_b{letter}"]

    def _attend(self, x, memory, name, *, is_causal=False):
        queries = self._before(x, f"{name}_Wo")
        memory = queries if memory is None else memory
        inputs = {"q": queries, "k": memory, "v": memory}
        heads = [
            np.split(
                self._affine(each, name, letter),
                self.options["transformer-heads"],
                axis=-1,
            )
            for letter, each in inputs.items()
        ]
        outputs = []
        for q_LK, k_MK, v_MK in zip(*heads, strict=True):
            logits_LM = q_LK @ k_MK.T / np.sqrt(k_MK.shape[-1])
            if is_causal:
                is_past = np.tri(len(logits_LM), dtype=bool)
                logits_LM = np.where(is_past, logits_LM, -np.inf)
            outputs.append(np.exp(_log_softmax(logits_LM)) @ v_MK)
        output = np.concatenate(outputs, axis=-1)
        if not self.options["transformer-no-projection"]:
            output = self._affine(output, name, "o")
        return self._after(output, x, f"{name}_Wo")

    def _feed_forward(self, x, name):
        hidden = self._affine(self._before(x, f"{name}_ffn"), name, "1")
        output = self._affine(self._activated(hidden), name, "2")
        return self._after(output, x, f"{name}_ffn")

    def _activated(self, x):
        activation = self.options["transformer-ffn-activation"]
        if activation == "relu":
            return np.maximum(x, 0.0)
        if activation == "swish":
            return x / (1 + np.exp(-x))
        if self.options["version"].startswith("v1.9.0"):
            return x / (1 + np.exp(-1.702 * x))
        erf = np.vectorize(math.erf)
        return x * (1 + erf(x / np.sqrt(2))) / 2


def _log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def imported_logits(imported, source_ids, target_ids):
    """Returns the float32 logits_BTV of a PortableModel for a padded batch."""
    model = Transformer(
        imported.hparams,
        vocabulary_size=imported.vocabulary.size,
        num_target_ids=imported.vocabulary.target.size,
    )
    model.build()
    assign(model.trainable_variables, imported.weights, "it")
    return np.array(model((source_ids, shift_right(target_ids))))


def padded(sequences):
    """Returns int32 [B, L]: sequences padded with zeros at the end."""
    table = np.zeros((len(sequences), max(map(len, sequences))), np.int32)
    for row, ids in zip(table, sequences, strict=True):
        row[: len(ids)] = ids
    return table


def assert_equal_to_marian(folder, options, arrays, source, target):
    """Asserts that all next-id log probabilities equal the Reference's."""
    imported = marian.read(folder)
    vocabulary = imported.vocabulary
    source_ids = vocabulary.encode(tiny_marian.SOURCES)
    target_ids = vocabulary.target.encode(tiny_marian.TARGETS)
    logits_BTV = imported_logits(
        imported, padded(source_ids), padded(target_ids)
    )
    reference = Reference(options, arrays)
    pairs = zip(
        logits_BTV,
        marian_ids(source, tiny_marian.SOURCES),
        marian_ids(target, tiny_marian.TARGETS),
        strict=True,
    )
    for logits_TV, their_source, their_target in pairs:
        expected_TV = reference.log_probabilities(their_source, their_target)
        logits_TV = logits_TV[: len(their_target)]
        # Marian has no PAD, so its ids are lower by one.
        received_TV = _log_softmax(np.float64(logits_TV))[:, 1:]
        np.testing.assert_allclose(received_TV, expected_TV, atol=2e-5)


@pytest.mark.parametrize("name", tiny_marian.MODELS)
def test_scores_are_those_of_marian_itself(name):
    options, arrays, source, target = tiny_marian.make(name)
    reference = Reference(options, arrays)
    pairs = zip(
        marian_ids(source, tiny_marian.SOURCES),
        marian_ids(target or source, tiny_marian.TARGETS),
        strict=True,
    )
    scores = [reference.score(*pair) for pair in pairs]
    np.testing.assert_allclose(scores, GOLDEN[name], atol=2e-5)


@pytest.mark.parametrize("name", tiny_marian.MODELS)
def test_an_imported_model_has_the_probabilities_of_marian(tmp_path, name):
    options, arrays, source, target = tiny_marian.make(name)
    tiny_marian.write(tmp_path, options, arrays, source, target)
    target = target or source
    assert_equal_to_marian(
        tmp_path, options, arrays, source=source, target=target
    )


def test_gelu_before_1_12_3_is_a_swish(tmp_path):
    options, arrays, source, target = tiny_marian.make("gelu")
    options["version"] = "v1.9.0 ba94c5b9 2020-05-17 10:42:17 +0100"
    tiny_marian.write(tmp_path, options, arrays, source, target)
    assert marian.read(tmp_path).hparams.activation == "swish"
    assert_equal_to_marian(
        tmp_path, options, arrays, source=source, target=target
    )


# Search settings and reported findings.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"beam_size": "abc"},
            "beam-size in decoder.yml must be an integer from 1 to",
        ),
        (
            {"beam_size": 0},
            "beam-size in decoder.yml must be an integer from 1 to",
        ),
        (
            {"normalize": "1e400"},
            "normalize in decoder.yml must be from 0 to 8; received",
        ),
        (
            {"normalize": -1},
            "normalize in decoder.yml must be from 0 to 8; received",
        ),
    ],
)
def test_a_search_that_there_cannot_be_is_refused(tmp_path, settings, message):
    tiny_marian.write(tmp_path, *tiny_marian.make("tied_layers"), **settings)
    with pytest.raises(InputError, match=message):
        marian.read(tmp_path)


def test_it_says_what_the_model_is_and_expects(tmp_path):
    tiny_marian.write(
        tmp_path,
        *tiny_marian.make("tied_layers"),
        beam_size=6,
        normalize=0.5,
        word_penalty=0.2,
    )
    (tmp_path / "preprocess.sh").write_text(
        "cat - | ${MOSES}/normalize-punctuation.perl -l $1 | spm_encode\n"
    )
    imported = marian.read(tmp_path)
    said = "\n".join(imported.found)
    assert "model.npz, written by Marian v1.12.42" in said
    assert "2 + 3 layers, d_model 16, d_ff 24, 2 heads, post-norm" in said
    assert "shared weights ([1, 2, 1]) are now separate copies" in said
    assert "42 source and 38 target pieces" in said
    assert "normalize-punctuation.perl; this toolkit does not run that" in said
    assert "word-penalty" in said
    assert imported.hparams.beam_width == 6
    assert imported.hparams.length_penalty == 0.6


def test_it_says_that_marian_searches_otherwise_before_norms(tmp_path):
    tiny_marian.write(tmp_path, *tiny_marian.make("pre_norm"))
    assert any("marian-decoder" in f for f in marian.read(tmp_path).found)


# Folders and other paths.


def test_a_path_may_be_of_a_file_in_the_folder(tied):
    config = (tied / "decoder.yml").rename(tied / "model.npz.decoder.yml")
    expected = marian.read(tied).weights
    for path in (config, tied / "model.npz"):
        assert marian.is_marian(path)
        assert marian.read(path).weights.keys() == expected.keys()


def test_paths_of_another_machine_stand_for_files_of_the_folder(tied):
    (tied.parent / "source.spm").write_text("another one")
    tiny_marian.write_config(
        tied, models=["/data/model.npz"], vocabs=["../source.spm"] * 2
    )
    assert marian.read(str(tied)).hparams.d_model == 16


def test_only_a_model_of_marian_is_taken_for_one(tmp_path, tied):
    assert marian.is_marian(tied)
    (tied / "decoder.yml").unlink()
    assert not marian.is_marian(tied)
    assert not marian.is_marian(tmp_path / "none")


# Refusals, each in one line that names the cause.


def test_a_matrix_needs_a_row_for_each_piece(tied):
    (tied / "source.spm").write_bytes(tiny_marian.OTHER)
    assert_refused(tied, "42 rows and 38 pieces")


def test_a_shared_matrix_needs_the_same_special_ids(tied):
    other = tiny_marian.spm(unknown=0, eos=1)
    (tied / "target.spm").write_bytes(other)
    tiny_marian.write_config(tied, vocabs=["source.spm", "target.spm"])
    assert_refused(tied, "must have the same size and the same ids")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"models": ["a.npz", "b.npz"]}, "an ensemble cannot be imported"),
        ({"models": None}, "must be 1 file; received None"),
        ({"models": ["none.npz"]}, "names none.npz"),
        ({"models": ["model.bin"]}, ".bin models cannot be imported"),
        ({"vocabs": ["source.spm"] * 3}, "more than one source"),
        ({"vocabs": ["source.spm", "v.fsv"]}, "factored vocabularies"),
        ({"vocabs": ["vocab.yml"] * 2}, "received source.bpe, of subword-nmt"),
        ({"vocabs": ["junk.spm"] * 2}, "is not a SentencePiece model"),
        ({"vocabs": ["no_eos.spm"] * 2}, "must have a piece </s>"),
    ],
)
def test_files_that_do_not_fit_are_refused(tied, config, says):
    for name in ("model.bin", "v.fsv", "source.bpe", "junk.spm"):
        (tied / name).write_text("x")
    (tied / "no_eos.spm").write_bytes(tiny_marian.spm(unknown=0, eos=None))
    vocabs = ["source.spm"] * 2
    tiny_marian.write_config(tied, **{"vocabs": vocabs} | config)
    if config.get("vocabs") == ["vocab.yml"] * 2:
        (tied / "source.spm").unlink()
        (tied / "vocab.yml").write_text("</s>: 0\n")
    assert_refused(tied, says)


@pytest.mark.parametrize("text", ["", "x", "a: [", "!!python/name:os.system x"])
def test_options_that_are_none_are_refused(tied, text):
    (tied / "decoder.yml").write_text(text)
    assert_refused(tied, "decoder.yml must be options in YAML")
    tiny_marian.write_config(tied, vocabs=["source.spm"] * 2)
    special = np.frombuffer(text.encode() + b"\0", np.int8)
    np.savez(tied / "model.npz", **{marian.OPTIONS: special})
    assert_refused(tied, "special:model.yml in model.npz must be options")


def test_a_folder_without_a_decoder_yml_is_refused(tied):
    (tied / "decoder.yml").unlink()
    assert_refused(tied, "has no decoder.yml")
    for name in ("a.decoder.yml", "b.decoder.yml"):
        (tied / name).write_text("x: 1")
    assert_refused(tied, "received a.decoder.yml, b.decoder.yml")


class Harm:
    """An object whose pickle aborts the process that loads it."""

    def __reduce__(self):
        return os.abort, ()


def test_pickles_are_refused_and_not_run(tied):
    harm = np.array([Harm()], dtype=object)
    np.savez(tied / "model.npz", harm=harm)
    assert_refused(tied, "pickled objects")
    (tied / "model.npz").write_bytes(pickle.dumps(Harm()))
    assert_refused(tied, "this one is damaged or in another format")


def test_an_npz_without_options_or_cut_short_is_refused(tied):
    path = tied / "model.npz"
    whole = path.read_bytes()
    for length in (len(whole) // 2, len(whole) - 9, 0):
        path.write_bytes(whole[:length])
        assert_refused(tied, "this one is damaged or in another format")
    np.savez(path, x=np.zeros(3))
    assert_refused(tied, "must hold special:model.yml")


def test_a_path_that_is_none_is_refused(tmp_path):
    assert_refused(tmp_path / "none", "does not exist: check the path")
    (tmp_path / "text.yml").write_text(yaml.safe_dump({"beam-size": 6}))
    assert_refused(tmp_path / "text.yml", "models in text.yml must be 1 file")
    (tmp_path / "text.yml").write_text(json.dumps([1]))
    assert_refused(tmp_path / "text.yml", "must be options in YAML")
