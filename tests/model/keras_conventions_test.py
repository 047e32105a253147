"""Keras can save, trace and compile every layer, also in mixed precision."""

import dataclasses
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_models import COMBINED, QUICK, TINY_MODELS

import t2t_lite

B, S, T, D = 2, 5, 7, 12
_BLOCK = {"d_ff": 20, "num_heads": 3, "d_k": 4, "d_v": 5, "dropout": 0.3}
_STACK = {"num_layers": 1, "d_model": D, **_BLOCK}


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer and the inputs that it is called with."""

    layer_class: type
    config: dict
    input_specs: tuple  # (shape without the batch, dtype) of each
    together: bool = False  # whether the inputs are one argument

    def new(self, **kwargs):
        return self.layer_class(**self.config, **kwargs)

    def call(self, layer, inputs, **kwargs):
        if self.together:
            return layer(tuple(inputs), **kwargs)
        return layer(*inputs, **kwargs)

    @functools.cached_property
    def inputs(self):
        generator = np.random.default_rng(0)
        return [
            generator.integers(1, 11, (B, *shape)).astype(dtype)
            if dtype == "int32"
            else generator.normal(size=(B, *shape)).astype(dtype)
            for shape, dtype in self.input_specs
        ]

    @functools.cached_property
    def layer(self):
        """The layer that tests share and must not change."""
        return self.new(name="the_name")

    @functools.cached_property
    def result(self):
        return self.call(self.layer, self.inputs)

    def symbols(self):
        return [
            keras.Input(shape, dtype=dtype) for shape, dtype in self.input_specs
        ]


_X, _MEMORY = ((T, D), "float32"), ((S, D), "float32")
_WINDOW = "self-attention in a window"
_IDS = (((S,), "int32"), ((T,), "int32"))
CASES = {
    "MultiHeadAttention": Case(
        t2t_lite.MultiHeadAttention,
        {"num_heads": 3, "d_k": 4, "d_v": 5, "dropout": 0.3},
        (_X, _MEMORY),
    ),
    "self-attention": Case(
        t2t_lite.MultiHeadAttention, {"num_heads": 3, "d_k": 4}, (_X,)
    ),
    _WINDOW: Case(
        t2t_lite.MultiHeadAttention,
        {"num_heads": 3, "d_k": 4, "window": (2, 1)},
        (_X,),
    ),
    "FeedForward": Case(
        t2t_lite.FeedForward, {"d_ff": 20, "dropout": 0.3}, (_X,)
    ),
    "EncoderLayer": Case(t2t_lite.EncoderLayer, _BLOCK, (_X,)),
    "DecoderLayer": Case(t2t_lite.DecoderLayer, _BLOCK, (_X, _MEMORY)),
    "Encoder": Case(t2t_lite.Encoder, _STACK, (_X,)),
    "Encoder, learned": Case(
        t2t_lite.Encoder,
        _STACK | {"num_layers": 2, "learned_positions": 9},
        (_X,),
    ),
    "Decoder": Case(t2t_lite.Decoder, _STACK, (_X, _MEMORY)),
    "Decoder, restricted": Case(
        t2t_lite.Decoder, _STACK | {"attention_window": 3}, (_X, _MEMORY)
    ),
    "PositionEmbedding": Case(
        t2t_lite.PositionEmbedding, {"d_model": D}, (_X,)
    ),
    "PositionEmbedding, learned": Case(
        t2t_lite.PositionEmbedding, {"d_model": D, "learned": 9}, (_X,)
    ),
    "TiedEmbedding": Case(
        t2t_lite.TiedEmbedding, {"vocabulary_size": 11, "d_model": D}, _IDS[:1]
    ),
}


def _transformer(hparams):
    return Case(t2t_lite.Transformer, {"hparams": hparams}, _IDS, together=True)


TRANSFORMERS = {
    f"Transformer, {name}": _transformer(hparams)
    for name, hparams in TINY_MODELS.items()
}
_SLOW = {f"Transformer, {name}" for name in TINY_MODELS if name not in QUICK}


def for_each(cases):
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(
                case, id=name, marks=pytest.mark.slow if name in _SLOW else ()
            )
            for name, case in cases.items()
        ],
    )


@for_each(CASES | TRANSFORMERS)
def test_a_config_makes_the_same_layer_again(case):
    config = case.layer.get_config()
    given = {k: v for k, v in case.config.items() if k != "hparams"}
    assert config.items() >= given.items()
    again = case.layer_class.from_config(config)
    assert again.get_config() == config
    assert again.name == "the_name"
    assert case.call(again, case.inputs).shape == case.result.shape
    shapes = [[w.shape for w in each.weights] for each in (case.layer, again)]
    assert shapes[0] == shapes[1]


# Here only the first Transformer: transformer_test saves each by itself.
@for_each(CASES | dict([*TRANSFORMERS.items()][:1]))
@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # By Keras.
def test_a_layer_goes_through_a_keras_file(case, tmp_path):
    symbols = case.symbols()
    model = keras.Model(symbols, case.call(case.new(), symbols))
    expected = model(case.inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(case.inputs), expected)


@for_each(CASES | TRANSFORMERS)
def test_symbols_have_the_shape_and_dtype_of_results(case):
    layer, result = case.layer, case.result
    symbol = case.call(layer, case.symbols())
    assert symbol.shape[1:] == result.shape[1:]
    assert keras.backend.standardize_dtype(result.dtype) == symbol.dtype
    shapes = [x.shape for x in case.inputs]
    computed = (
        layer.compute_output_shape(shapes)
        if case.together
        else layer.compute_output_shape(*shapes)
    )
    assert tuple(computed) == tuple(result.shape)


# A Transformer's precision is tested in transformer_test.
@for_each(CASES)
@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_results_follow_the_policy_and_weights_stay_float32(case, precision):
    expected = np.array(case.result)  # Also builds case.layer.
    mixed = case.new(dtype=f"mixed_{precision}")
    case.call(mixed, case.inputs)
    for source, target in zip(
        case.layer.trainable_weights, mixed.trainable_weights, strict=True
    ):
        target.assign(source)
        assert target.dtype == "float32"
    result = case.call(mixed, case.inputs)
    assert keras.backend.standardize_dtype(result.dtype) == precision
    difference = np.array(keras.ops.cast(result, "float32")) - expected
    assert np.abs(difference).mean() < 0.02 * np.abs(expected).mean()
    assert np.abs(difference).max() > 0  # It was computed in that precision.


@pytest.mark.slow
# The other layers are parts of a Transformer.
@for_each(
    {
        name: case
        for name, case in (CASES | TRANSFORMERS).items()
        if name in (_WINDOW, "Transformer, marian", "Transformer, pre_norm")
    }
    | {"Transformer, combined": _transformer(COMBINED)}
)
def test_xla_gives_the_same(case):
    expected = case.result
    compiled = tf.function(
        lambda *inputs: case.call(case.layer, inputs),
        jit_compile=True,
        autograph=False,
    )
    np.testing.assert_allclose(compiled(*case.inputs), expected, atol=1e-5)


# Masks that Keras passes on.


def test_layers_attend_to_no_position_that_keras_masks():
    """Such as those of an Embedding with mask_zero=True."""
    ids = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(11, D, mask_zero=True)(ids)
    model = keras.Model(ids, t2t_lite.Encoder(**_STACK)(embedded))
    padded = model(np.array([[3, 4, 5, 0, 0]]))
    short = model(np.array([[3, 4, 5]]))
    np.testing.assert_allclose(padded[:, :3], short, atol=1e-5)


@pytest.mark.parametrize(
    "layer",
    [
        t2t_lite.MultiHeadAttention(3, 4),
        t2t_lite.EncoderLayer(**_BLOCK),
        t2t_lite.Encoder(**_STACK),
        t2t_lite.Decoder(**_STACK),
    ],
)
def test_a_limit_of_the_caller_adds_to_the_mask(layer):
    embedding = t2t_lite.TiedEmbedding(11, D)
    ids = np.array([[3, 4, 5, 0, 0]])
    everywhere = np.ones((1, 1, 1, 1), bool)
    inputs = [embedding(ids), embedding(ids[:, :3])]
    if isinstance(layer, t2t_lite.Decoder):
        target = embedding(np.array([[1, 7, 8]]))
        padded, short = (
            layer(target, memory, may_attend_memory=everywhere)
            for memory in inputs
        )
    else:
        padded, short = (layer(x, may_attend=everywhere) for x in inputs)
    np.testing.assert_allclose(padded[:, :3], short, atol=1e-5)


def test_a_tied_embedding_masks_padding():
    layer = t2t_lite.TiedEmbedding(11, D)
    ids = np.array([[3, 4, 5, 0, 0]])
    assert layer.compute_mask(ids).numpy().tolist() == [
        [True] * 3 + [False] * 2
    ]
    encoder = t2t_lite.Encoder(**_STACK)
    padded, short = encoder(layer(ids)), encoder(layer(ids[:, :3]))
    np.testing.assert_allclose(padded[:, :3], short, atol=1e-5)


def test_a_decoder_attends_to_no_memory_that_keras_masks():
    embedding = t2t_lite.TiedEmbedding(11, D)
    encoder, decoder = t2t_lite.Encoder(**_STACK), t2t_lite.Decoder(**_STACK)
    target = embedding(np.array([[1, 7, 8]]))

    def decoded(ids):
        return decoder(target, encoder(embedding(ids)))

    padded = decoded(np.array([[3, 4, 5, 0, 0]]))
    short = decoded(np.array([[3, 4, 5]]))
    np.testing.assert_allclose(padded, short, atol=1e-5)


def test_a_mask_goes_on_to_the_layer_behind():
    embedding, encoder = (
        t2t_lite.TiedEmbedding(11, D),
        t2t_lite.Encoder(**_STACK),
    )
    x = encoder(embedding(np.array([[3, 4, 5, 0, 0]])))
    pooled = keras.layers.GlobalAveragePooling1D()(x)
    np.testing.assert_allclose(pooled, np.array(x)[:, :3].mean(1), atol=1e-5)
