"""Presets have the paper's values, and errors say what to do."""

import dataclasses
import json
import re

import pytest

from t2t_lite import hparams as settings
from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams, from_dict, override, preset

SHARED = {
    "num_layers": 6,
    "d_k": 64,
    "d_v": 64,
    "positions": "sinusoidal",
    "attention_dropout": 0.0,
    "label_smoothing": 0.1,
    "tokens_per_batch": 25_000,
    "warmup_steps": 4000,
    "learning_rate_scale": 1.0,
    "adam_beta1": 0.9,
    "adam_beta2": 0.98,
    "adam_epsilon": 1e-9,
    "beam_width": 4,
    "length_penalty": 0.6,
    "max_extra_length": 50,
}
BASE = {
    **SHARED,
    "d_model": 512,
    "d_ff": 2048,
    "num_heads": 8,
    "dropout": 0.1,
    "steps": 100_000,
    "average_last": 5,
}
BIG = {
    **SHARED,
    "d_model": 1024,
    "d_ff": 4096,
    "num_heads": 16,
    "dropout": 0.3,
    "steps": 300_000,
    "average_last": 20,
}
# Section 6.3: all else is as in base. Dropout and learning rates were chosen on
# section 22 of the treebank; the paper does not give their values.
PARSING = {
    "num_layers": 4,
    "d_model": 1024,
    "d_k": 128,
    "d_v": 128,
    "dropout": 0.2,
    "attention_dropout": 0.2,
    "vocabulary_size": 16_000,
    "warmup_steps": 16_000,
    "beam_width": 21,
    "length_penalty": 0.3,
    "max_extra_length": 300,
}
EN_DE = {"vocabulary_type": "bpe", "vocabulary_size": 37_000}
EN_FR = {"vocabulary_type": "unigram", "vocabulary_size": 32_000}


@pytest.mark.parametrize(
    ("name", "paper"),
    [
        ("transformer_base", BASE | EN_DE),
        ("transformer_base_en_fr", BASE | EN_FR),
        ("transformer_big", BIG | EN_DE),
        ("transformer_big_en_fr", BIG | EN_FR | {"dropout": 0.1}),
        ("transformer_parsing", BASE | PARSING),
        (
            "transformer_parsing_semi_supervised",
            BASE | PARSING | {"vocabulary_size": 32_000},
        ),
    ],
)
def test_presets_have_the_papers_values(name, paper):
    values = dataclasses.asdict(preset(name))
    assert {field: values[field] for field in paper} == paper


def test_defaults_are_the_base_model():
    assert HParams() == preset("transformer_base")


# From Table 3 (D) and section 6.3, and of presets that the paper does not have.
EXCEPTIONS = {
    "transformer_tiny": {"label_smoothing": 0.0},
    "transformer_ls0": {"label_smoothing": 0.0},
    "transformer_ls2": {"label_smoothing": 0.2},
    "transformer_parsing": PARSING,
    "transformer_parsing_semi_supervised": PARSING,
    "transformer_multi30k": {"beam_width": 5, "length_penalty": 1.0},
    "transformer_parsing_small": {
        "label_smoothing": 0.0,
        "beam_width": 10,
        "length_penalty": 0.3,
    },
}


@pytest.mark.parametrize("name", settings.PRESETS)
def test_presets_keep_the_papers_optimizer_and_inference(name):
    values = dataclasses.asdict(preset(name))
    expected = SHARED | EXCEPTIONS.get(name, {})
    for field in (
        "adam_beta1",
        "adam_beta2",
        "adam_epsilon",
        "label_smoothing",
        "attention_dropout",
        "beam_width",
        "length_penalty",
    ):
        assert values[field] == expected[field]


def test_an_unknown_preset_names_the_nearest():
    expected = (
        "unknown preset 'transformer_bsae': did you mean 'transformer_base'?"
    )
    with pytest.raises(InputError) as error:
        preset("transformer_bsae")
    assert str(error.value) == expected


def test_an_unknown_preset_like_no_other_is_told_where_their_names_are():
    expected = "unknown preset 'foo'; bin/train --help lists them"
    with pytest.raises(InputError) as error:
        preset("foo")
    assert str(error.value) == expected


def test_an_unknown_field_names_the_nearest():
    with pytest.raises(InputError) as error:
        override(HParams(), ["d_modle=64"])
    assert (
        str(error.value) == "unknown field 'd_modle': did you mean 'd_model'?"
    )


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("num_layers", 0, "must be at least 1"),
        ("num_decoder_layers", -1, "must be at least 0"),
        ("d_v", -3, "must be at least 1"),
        ("steps", 0, "must be at least 1"),
        ("beam_width", 0, "must be at least 1"),
        ("vocabulary_size", 0, "must be at least 1"),
        ("length_penalty", -0.1, "must be at least 0"),
        ("max_extra_length", -1, "must be at least 0"),
        ("seed", -1, "must be at least 0"),
        ("dropout", 1.0, "must be in [0, 1)"),
        ("dropout", float("nan"), "must be in [0, 1)"),
        ("attention_dropout", -0.1, "must be in [0, 1)"),
        ("relu_dropout", 1.0, "must be in [0, 1)"),
        ("label_smoothing", 1.5, "must be in [0, 1)"),
        ("subword_sampling", 1.0, "must be in [0, 1)"),
        *(
            (
                "reserved_symbols",
                symbols,
                "must be different words separated by commas, and none of "
                "SentencePiece's own symbols, such as <unk>",
            )
            for symbols in ("<a>,<a>", "<a>,", "<a> <b>", "<unk>", "<0x41>")
        ),
        ("adam_beta2", 1.0, "must be in [0, 1)"),
        ("positions", "rotary", "must be sinusoidal or learned or marian"),
        ("vocabulary_type", "word", "must be bpe or unigram"),
        ("d_model", 513, "must be even, for its sines and cosines"),
        ("tokens_per_batch", 255, "must be at least max_length=256"),
        ("learning_rate_scale", 0.0, "must be above 0"),
        ("learning_rate_scale", float("inf"), "must be finite"),
        (
            "learning_rate_scale",
            1e99,
            "must be at most 1e+38, which float32 can hold",
        ),
        (
            "max_length",
            1,
            "must be at least 2: a token, and the end of sentence",
        ),
        ("cooldown_steps", -1, "must be at least 0"),
        ("length_penalty", float("inf"), "must be finite"),
        ("length_penalty", float("nan"), "must be finite"),
        ("seed", 2**32, "must be below 2^32"),
        ("steps", 10**9 + 1, "must be at most 1,000,000,000"),
        ("max_extra_length", 2**70, "must be at most 1,000,000,000"),
    ],
)
def test_an_impossible_value_is_named_with_its_rule(field, value, rule):
    with pytest.raises(InputError) as error:
        HParams(**{field: value})
    assert str(error.value) == f"{field} {rule}; received {field}={value!r}"


def test_a_learned_table_must_hold_the_longest_sentence():
    message = "learned_positions must be at least max_length=256; received"
    with pytest.raises(InputError, match=message):
        HParams(positions="learned", learned_positions=255)
    # Without such a table, its size does not matter.
    HParams(positions="sinusoidal", learned_positions=255)


@pytest.mark.parametrize(
    ("field", "value", "type_name"),
    [
        ("num_layers", 2.0, "int"),
        ("num_layers", "2", "int"),
        ("num_layers", True, "int"),
        ("dropout", "0.1", "float"),
        ("dropout", None, "float"),
        ("positions", 3, "str"),
    ],
)
def test_a_value_of_another_type_is_an_error(field, value, type_name):
    with pytest.raises(InputError) as error:
        HParams(**{field: value})
    expected = f"{field} must be of type {type_name}; received {value!r}"
    assert str(error.value) == expected


def test_the_decoder_is_as_deep_as_the_encoder_unless_told_otherwise():
    assert HParams(num_layers=5).decoder_layers == 5
    assert HParams(num_layers=5, num_decoder_layers=2).decoder_layers == 2


def test_an_int_will_do_for_a_float():
    dropout = HParams(dropout=0).dropout
    assert (dropout, type(dropout)) == (0.0, float)


def test_an_override_is_read_as_its_fields_type():
    changed = override(
        HParams(), ["d_ff=1024", "dropout=0", "positions=learned"]
    )
    expected = dataclasses.replace(
        HParams(), d_ff=1024, dropout=0.0, positions="learned"
    )
    assert changed == expected
    assert type(changed.d_ff) is int
    assert type(changed.dropout) is float


def test_the_later_of_two_overrides_wins():
    assert override(HParams(), ["d_ff=7", "d_ff=9"]).d_ff == 9


@pytest.mark.parametrize("text", ["true", "False", "TRUE"])
def test_a_bool_is_written_as_true_or_false(text):
    parser = preset("transformer_parsing_small")
    changed = override(parser, [f"tag_dictionary={text}"])
    assert changed.tag_dictionary is (text.lower() == "true")


@pytest.mark.parametrize("text", ["", "0", "no"])
def test_what_is_neither_true_nor_false_is_refused(text):
    parser = preset("transformer_parsing_small")
    with pytest.raises(InputError, match="tag_dictionary must be of type bool"):
        override(parser, [f"tag_dictionary={text}"])


def test_no_override_changes_nothing():
    assert override(preset("transformer_big"), []) == preset("transformer_big")


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("d_ff", "an override must look like field=value; received 'd_ff'"),
        ("d_ff=", "d_ff must be of type int; received ''"),
        ("d_ff=2.5", "d_ff must be of type int; received '2.5'"),
        ("dropout=high", "dropout must be of type float; received 'high'"),
        (
            "d_model=32,num_heads=2",
            "d_model must be of type int; received '32,num_heads=2': give one "
            "field at a time",
        ),
        ("d_ff=0", "d_ff must be at least 1; received d_ff=0"),
    ],
)
def test_a_wrong_override_says_what_is_wrong(assignment, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        override(HParams(), [assignment])


@pytest.mark.parametrize("name", settings.PRESETS)
def test_settings_come_back_from_json(name):
    text = json.dumps(dataclasses.asdict(preset(name)))
    assert from_dict(json.loads(text)) == preset(name)


def test_an_unknown_field_like_no_other():
    with pytest.raises(InputError) as error:
        override(HParams(), ["x=64"])
    assert str(error.value).startswith(
        "unknown field 'x'; the fields are num_layers,"
    )
    assert all(f.name in str(error.value) for f in dataclasses.fields(HParams))


def test_saved_settings_with_an_unknown_field_name_the_nearest():
    message = (
        "unknown field 'd_kk': did you mean 'd_k'?: were these settings saved "
        "by another version?"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        from_dict({**dataclasses.asdict(HParams()), "d_kk": 64})


def test_what_may_change_are_fields():
    assert set(dataclasses.asdict(HParams())) >= settings.MAY_CHANGE


def test_presets_cannot_be_changed():
    with pytest.raises(TypeError, match="does not support item assignment"):
        settings.PRESETS["transformer_base"] = None
