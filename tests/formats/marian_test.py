"""Imported Marian models compute what Marian computes."""

import io
import json
import math
import os
import pickle
import tarfile
import tempfile
import zipfile

import numpy as np
import pytest
import sentencepiece
import tiny_marian
import yaml

from t2t_lite.errors import InputError
from t2t_lite.formats import marian, marian_weights
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.storage.model_directory import assign
from t2t_lite.text.vocabulary import SPACE

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


def marian_ids(model, lines):
    """Returns the ids that Marian uses for lines: SentencePiece's and eos."""
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    eos = processor.eos_id()
    return [[*ids, eos] for ids in processor.encode(list(lines))]


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
    assert_equal_to_marian(tmp_path, options, arrays, source, target)


def test_gelu_before_1_12_3_is_a_swish(tmp_path):
    options, arrays, source, target = tiny_marian.make("gelu")
    options["version"] = "v1.9.0 ba94c5b9 2020-05-17 10:42:17 +0100"
    tiny_marian.write(tmp_path, options, arrays, source, target)
    assert marian.read(tmp_path).hparams.activation == "swish"
    assert_equal_to_marian(tmp_path, options, arrays, source, target)


def test_a_pre_softmax_of_old_versions_is_transposed():
    options, arrays, *_ = tiny_marian.make("gelu")
    _, expected = marian_weights.convert(options, arrays)
    matrix = arrays.pop("decoder_ff_logit_out_Wt")
    _, weights = marian_weights.convert(
        options, arrays | {"decoder_ff_logit_out_W": matrix.T}
    )
    name = "transformer/output_embedding/embedding"
    np.testing.assert_array_equal(weights[name], expected[name])


def test_pad_has_no_vector_and_no_part_in_the_softmax():
    _, weights = marian_weights.convert(*tiny_marian.make("tied")[:2])
    assert not weights["transformer/embedding/embedding"][0].any()
    assert weights["transformer/embedding/logit_bias"][0] == -100


# Vocabularies.


def write_with_map(folder, suffix, source=None, target=None, pieces=None):
    """Writes a tied model whose piece ids are in a YAML, JSON or text file."""
    pieces = pieces or tiny_marian.pieces_of(tiny_marian.SMALL)
    options = tiny_marian.options(
        len(pieces), len(pieces), tied_embeddings_all=True
    )
    arrays = tiny_marian.arrays(options)
    source = source or tiny_marian.SMALL
    tiny_marian.write(folder, options, arrays, source, target or source)
    tiny_marian.write_map(folder / f"vocab{suffix}", pieces)
    tiny_marian.write_config(folder, vocabs=[f"vocab{suffix}"] * 2)
    return options, arrays


@pytest.mark.parametrize("suffix", [".yml", ".json", ".txt"])
def test_a_map_gives_pieces_their_ids(tmp_path, suffix):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    shuffled = pieces[::-1]
    write_with_map(tmp_path, suffix, pieces=shuffled)
    vocabulary = marian.read(tmp_path).vocabulary
    assert vocabulary.target is vocabulary
    names = vocabulary.tokens(range(1, vocabulary.size))
    assert names == pieces[:2] + pieces[:1:-1]
    lines = list(tiny_marian.SOURCES)
    ids = marian_ids(tiny_marian.SMALL, lines)
    texts = [[pieces[i] for i in each] for each in ids]
    assert [vocabulary.tokens(each) for each in vocabulary.encode(lines)] == [
        [text if text in pieces else "<unk>" for text in each] for each in texts
    ]


def test_words_that_yaml_takes_for_other_things_are_pieces(tmp_path):
    pieces = ["</s>", "<unk>", "no", "1", "1.5", "null", "~", "<<", "=", "on"]
    path = tmp_path / "vocab.yml"
    path.write_text("".join(f"{p}: {i}\n" for i, p in enumerate(pieces)))
    write_with_map(tmp_path, ".json", pieces=pieces)
    tiny_marian.write_config(tmp_path, vocabs=["vocab.yml", "vocab.yml"])
    vocabulary = marian.read(tmp_path).vocabulary
    assert vocabulary.tokens(range(1, vocabulary.size)) == pieces


def test_pieces_without_an_id_are_unknown(tmp_path):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    pieces.remove(f"{SPACE}haus")
    write_with_map(tmp_path, ".yml", pieces=pieces)
    vocabulary = marian.read(tmp_path).vocabulary
    (ids,) = vocabulary.encode(["das haus"])
    expected = [SPACE, "d", "a", "s", "<unk>", "</s>"]
    assert vocabulary.tokens(ids) == expected
    assert vocabulary.size == len(pieces) + 1


def test_ids_beyond_the_matrix_are_unknown(tmp_path):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    write_with_map(tmp_path, ".yml", pieces=pieces[:30])
    tiny_marian.write_map(tmp_path / "vocab.yml", pieces)
    assert marian.read(tmp_path).vocabulary.size == 31


def test_names_of_nematus_are_those_of_marian(tmp_path):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    write_with_map(tmp_path, ".json", pieces=["eos", "UNK", *pieces[2:]])
    vocabulary = marian.read(tmp_path).vocabulary
    assert vocabulary.tokens([1, 2]) == ["</s>", "<unk>"]
    assert vocabulary.unknown_id == 2


def test_two_segmentations_may_share_one_map(tmp_path):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    others = tiny_marian.pieces_of(tiny_marian.OTHER)
    pieces += [piece for piece in others if piece not in pieces]
    write_with_map(
        tmp_path,
        ".yml",
        tiny_marian.SMALL,
        tiny_marian.OTHER,
        [*pieces, ">>deu<<"],
    )
    (tmp_path / "target.spm").write_bytes(tiny_marian.OTHER)
    imported = marian.read(tmp_path)
    vocabulary, target = imported.vocabulary, imported.vocabulary.target
    assert target is not vocabulary
    assert target.size == vocabulary.size == len(pieces) + 2
    (ids,), (target_ids,) = vocabulary.encode(["das"]), target.encode(["das"])
    assert vocabulary.tokens(ids) == [SPACE, "d", "a", "s", "</s>"]
    assert target.tokens(target_ids) == [f"{SPACE}das", "</s>"]
    (ids,) = vocabulary.encode([">>deu<< das"])
    assert ids[0] == len(pieces) + 1
    assert any(">>deu<<" in line for line in imported.found)


def test_eos_and_unknown_may_have_any_ids(tmp_path):
    model = tiny_marian.spm(unknown=0, eos=2)
    size = len(tiny_marian.pieces_of(model))
    options = tiny_marian.options(size, size, tied_embeddings_all=True)
    arrays = tiny_marian.arrays(options)
    tiny_marian.write(tmp_path, options, arrays, model)
    imported = marian.read(tmp_path)
    embedding = imported.weights["transformer/embedding/logit_bias"]
    bias = arrays["decoder_ff_logit_out_b"][0]
    np.testing.assert_array_equal(embedding[1:4], bias[[2, 0, 1]])
    assert imported.vocabulary.tokens([1, 2]) == ["</s>", "<unk>"]
    vocabulary = imported.vocabulary
    ours = vocabulary.encode(list(tiny_marian.SOURCES))
    theirs = marian_ids(model, tiny_marian.SOURCES)
    names = tiny_marian.pieces_of(model)
    assert [vocabulary.tokens(ids) for ids in ours] == [
        [names[i] for i in ids] for ids in theirs
    ]


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


# Folders, archives and other paths.


def zipped(folder, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for each in sorted(folder.iterdir()):
            file.write(each, f"{folder.name}/{each.name}")


def tarred(folder, path):
    with tarfile.open(path, "w:gz") as file:
        file.add(folder, folder.name)


ARCHIVES = {".zip": zipped, ".tar.gz": tarred}


@pytest.fixture
def tied(tmp_path):
    """The folder of the "tied" model."""
    folder = tmp_path / "model"
    tiny_marian.write(folder, *tiny_marian.make("tied"))
    return folder


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_an_archive_is_its_folder_and_leaves_nothing(
    tmp_path, tied, suffix, monkeypatch
):
    path = tmp_path / f"opus{suffix}"
    ARCHIVES[suffix](tied, path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    expected, received = marian.read(tied), marian.read(path)
    assert received.hparams == expected.hparams
    assert received.vocabulary.model == expected.vocabulary.model
    for name, weight in expected.weights.items():
        np.testing.assert_array_equal(received.weights[name], weight)
    assert not os.listdir(tmp_path / "temporary")


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


def assert_refused(path, *says):
    with pytest.raises(InputError) as error:
        marian.read(path)
    line = str(error.value)
    assert "\n" not in line
    for each in says:
        assert each in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("type", "s2s"),
        ("type", "multi-transformer"),
        ("type", "transformer-new"),
        ("transformer-decoder-autoreg", "rnn"),
        ("transformer-decoder-autoreg", "average-attention"),
        ("transformer-ffn-depth", 3),
        ("transformer-decoder-ffn-depth", 1),
        ("transformer-decoder-dim-ffn", 12),
        ("transformer-ffn-activation", "sigmoid"),
        ("transformer-postprocess-emb", "nd"),
        ("transformer-postprocess", "dhn"),
        ("transformer-postprocess-top", "n"),
        ("transformer-preprocess", "n"),
        ("transformer-attention-mask", "alibi"),
        ("transformer-disable-position-embeddings", True),
        ("transformer-no-bias", True),
        ("transformer-no-affine", True),
        ("transformer-pool", True),
        ("transformer-tied-layers", [1, 1]),
        ("transformer-heads", 3),
        ("dim-emb", "16"),
        ("enc-depth", 0),
        ("lemma-dim-emb", 4),
        ("factors-combine", "concat"),
        ("input-types", ["class", "sequence"]),
        ("dim-vocabs", [42, 42, 42]),
        ("right-left", True),
        ("ulr", True),
    ],
)
def test_what_cannot_be_a_model_here_is_refused(name, value):
    options, arrays, *_ = tiny_marian.make("tied")
    options[name] = value
    with pytest.raises(InputError) as error:
        marian_weights.convert(options, arrays)
    assert f"{name}={value!r}" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "version"),
    [("pre_norm", "v1.10.27"), ("pre_norm", None), ("gelu", "1")],
)
def test_what_a_version_decides_needs_one(name, version):
    options, arrays, *_ = tiny_marian.make(name)
    options["version"] = version
    with pytest.raises(InputError, match=f"version={version!r}"):
        marian_weights.convert(options, arrays)


def test_an_array_that_is_nothing_here_is_refused():
    options, arrays, *_ = tiny_marian.make("tied")
    arrays["decoder_l1_self_Wg"] = np.zeros((2, 2), np.float32)
    message = "1 array of the model, starting with decoder_l1_self_Wg: this"
    with pytest.raises(InputError, match=message):
        marian_weights.convert(options, arrays)


@pytest.mark.parametrize("name", tiny_marian.make("tied")[1])
def test_every_array_must_be_there(name):
    options, arrays, *_ = tiny_marian.make("tied")
    del arrays[name]
    with pytest.raises(InputError, match=f"must have the array {name};"):
        marian_weights.convert(options, arrays)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((1, 17), np.float32),
        np.zeros((16, 1), np.float32),
        np.zeros((), np.float32),
        np.zeros((1, 16), np.int8),
        np.zeros((1, 16), bool),
    ],
)
def test_an_array_of_another_shape_or_type_is_refused(array):
    options, arrays, *_ = tiny_marian.make("tied")
    arrays["encoder_l1_self_bq"] = array
    with pytest.raises(InputError, match=r"encoder_l1_self_bq must be floats"):
        marian_weights.convert(options, arrays)


def test_weights_that_are_not_finite_are_refused():
    options, arrays, *_ = tiny_marian.make("tied")
    arrays["encoder_l2_ffn_W1"][3, 4] = np.nan
    with pytest.raises(InputError, match="encoder_l2_ffn_W1 must be finite"):
        marian_weights.convert(options, arrays)


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


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"</s>": 0, "<unk>": 1, "a": 3}', "from 0 to 2, without gaps"),
        ('{"</s>": 0, "<unk>": 1, "a": 1}', "an id of its own"),
        ('{"</s>": 0, "a": 1}', "must have a piece <unk>"),
        ('{"</s>": "x"}', "this one is damaged"),
        ("[1, 2]", "this one is damaged"),
        ('{"</s>": 0', "this one is damaged"),
        ("[" * 100_000, "this one is damaged"),
    ],
)
@pytest.mark.parametrize("suffix", [".json", ".yml"])
def test_a_map_that_is_none_is_refused(tied, text, says, suffix):
    (tied / f"vocab{suffix}").write_text(text)
    tiny_marian.write_config(tied, vocabs=[f"vocab{suffix}"] * 2)
    assert_refused(tied, f"vocab{suffix}", says)


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


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_an_archive_that_is_cut_short_is_refused(tmp_path, tied, suffix):
    path = tmp_path / f"opus{suffix}"
    ARCHIVES[suffix](tied, path)
    whole = path.read_bytes()
    for length in (0, 100, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:length])
        assert_refused(path, "is damaged or cut short")


def test_an_archive_with_a_wrong_byte_is_refused(tmp_path, tied):
    for suffix, make in ARCHIVES.items():
        path = tmp_path / f"opus{suffix}"
        make(tied, path)
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
        assert_refused(path, "is damaged or cut short")


def write_bomb(path, num_bytes):
    """Writes an archive that unpacks to `num_bytes` zero bytes."""
    if path.suffix in (".zip", ".npz"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("zeros.npy", bytes(num_bytes))
        return
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo("zeros")
        member.size = num_bytes
        file.addfile(member, io.BytesIO(bytes(num_bytes)))


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz"])
def test_an_archive_that_holds_too_much_is_refused(tmp_path, name):
    write_bomb(tmp_path / name, 10_000_000)
    assert_refused(tmp_path / name, "holds more, and was not unpacked")


def test_an_npz_that_holds_too_much_is_refused(tied):
    write_bomb(tied / "model.npz", 10_000_000)
    assert_refused(tied, "model.npz holds more")


def write_member(path, name, link=None):
    """Writes an archive that holds one file or one symbolic link."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as file:
            member = zipfile.ZipInfo(name)
            member.external_attr = (0o120777 if link else 0o100644) << 16
            file.writestr(member, link or "x")
        return
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo(name)
        if link:
            member.type, member.linkname = tarfile.SYMTYPE, link
        file.addfile(member)


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_an_archive_cannot_leave_its_folder(tmp_path, suffix, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    path = tmp_path / f"a{suffix}"
    for name in ("../x", "a/../../x", f"{tmp_path}/x", "..\\x", "C:\\x"):
        write_member(path, name)
        assert_refused(path, "is not a path inside it: nothing was unpacked")
    write_member(path, "decoder.yml", link="/etc/passwd")
    assert_refused(path, "is a link, device or sparse file")
    assert not os.listdir(tmp_path / "temporary")
    assert not (tmp_path / "x").exists()


def test_a_path_that_is_none_is_refused(tmp_path):
    assert_refused(tmp_path / "none", "there is no")
    (tmp_path / "text.yml").write_text(yaml.safe_dump({"beam-size": 6}))
    assert_refused(tmp_path / "text.yml", "models in text.yml must be 1 file")
    (tmp_path / "text.yml").write_text(json.dumps([1]))
    assert_refused(tmp_path / "text.yml", "must be options in YAML")
