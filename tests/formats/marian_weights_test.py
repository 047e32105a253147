"""Marian's arrays become weights, or are refused by name."""

import numpy as np
import pytest
import tiny_marian

from t2t_lite.errors import InputError
from t2t_lite.formats import marian_weights


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
