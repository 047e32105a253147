"""The formula counts the floating-point operations of the traced graph."""

import dataclasses
import math

import keras
import pytest
import tensorflow as tf
from tiny_models import COMBINED, QUICK, TINY_MODELS

from t2t_lite.hparams import PRESETS, HParams
from t2t_lite.model import loss
from t2t_lite.model.flops import (
    TYPICAL_LENGTH,
    forward_flops,
    num_parameters,
    tokens_flops,
    update_flops,
)
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.optimization.shard_gradients import ShardGradients
from t2t_lite.optimization.sharding import Shard
from t2t_lite.optimization.trainer import Trainer

B, S, T, V = 2, 13, 15, 11


def product_flops(operation):
    """Returns 2 m n k for a product of (batches of) matrices, otherwise 0."""
    # Products of another kind, or inside a called function, would go
    # uncounted.
    assert "Call" not in operation.type
    if not any(word in operation.type for word in ("MatMul", "sum", "Conv")):
        return 0
    assert operation.type in ("MatMul", "BatchMatMulV2")
    left = operation.inputs[0].shape.as_list()
    transposed = "transpose_a" if operation.type == "MatMul" else "adj_x"
    k = left[-2] if operation.get_attr(transposed) else left[-1]
    return 2 * k * math.prod(operation.outputs[0].shape.as_list())


def graph_flops(graph):
    """Returns how many operations all products of a graph take."""
    return sum(map(product_flops, operations(graph)))


def operations(graph):
    """Yields a graph's operations; those of a loop's body only once."""
    for operation in graph.get_operations():
        yield operation
        if "While" in operation.type:
            name = operation.get_attr("body").name
            yield from operations(graph._get_function(name).graph)


def traced_graph(function):
    """Returns the graph of a function of source_ids and target_ids."""
    ids = [tf.TensorSpec([B, length], tf.int32) for length in (S, T)]
    return (
        tf.function(function, autograph=False).get_concrete_function(*ids).graph
    )


def new_model(hparams, **sizes):
    keras.utils.set_random_seed(0)
    model = Transformer(dataclasses.replace(hparams, **sizes), V)
    model.build()
    return model


def forward_graph(model):
    return traced_graph(
        lambda source_ids, target_ids: model(
            (source_ids, shift_right(target_ids))
        )
    )


def update_graph(model):
    """Returns the graph of the loss and its gradients, without chunks."""

    def gradients(source_ids, target_ids):
        with tf.GradientTape() as tape:
            logits = model((source_ids, shift_right(target_ids)), training=True)
            loss_sum, _ = loss.cross_entropy(
                logits, target_ids, model.hparams.label_smoothing
            )
        weights = [w.value for w in model.trainable_variables]
        return tape.gradient(loss_sum, weights)

    return traced_graph(gradients)


@pytest.mark.slow
def test_the_formula_counts_the_products_of_the_traced_graph():
    """Extrapolates from graphs of one and two layers to the preset's depth."""
    hparams = PRESETS["transformer_base"]
    of_one, of_two = (
        graph_flops(forward_graph(new_model(hparams, num_layers=n)))
        for n in (1, 2)
    )
    traced = of_one + (hparams.num_layers - 1) * (of_two - of_one)
    assert (
        forward_flops(hparams, V, B, source_length=S, target_length=T) == traced
    )


@pytest.mark.parametrize(
    "hparams",
    [
        pytest.param(COMBINED, id="a window, learned positions, d_v"),
        *(
            pytest.param(hparams, id=name, marks=pytest.mark.slow)
            for name, hparams in {
                "a layer of transformer_big": dataclasses.replace(
                    PRESETS["transformer_big"], num_layers=1
                ),
                **{
                    name: TINY_MODELS[name]
                    for name in ("shallow_decoder", "marian", "pre_norm")
                },
            }.items()
        ),
    ],
)
def test_the_formula_counts_what_windows_depths_and_positions_cost(hparams):
    graph = update_graph(new_model(hparams))
    assert update_flops(
        hparams, V, B, source_length=S, target_length=T
    ) == graph_flops(graph)


def test_the_formula_counts_the_pass_of_a_trainer():
    """The trainer computes the loss in chunks; here one chunk is enough."""
    hparams = TINY_MODELS["restricted"]
    trainer = Trainer(hparams, V)
    shard_gradients = ShardGradients(
        trainer.state, trainer.graphs.sums, num_parts=1, chunk_logits=None
    )
    graph = traced_graph(
        lambda *ids: shard_gradients.add(
            Shard(*ids, seed=tf.constant([1, 0], tf.int64)), tf.constant(1.0)
        )
    )
    assert update_flops(
        hparams, V, B, source_length=S, target_length=T
    ) == graph_flops(graph)


def test_one_layer_by_hand():
    hparams = HParams(
        num_layers=1, d_model=2, d_ff=3, num_heads=5, d_k=7, d_v=9
    )
    encoder = 2 * (2 * 2 * 35 + 2 * 2 * 45) * S + 2 * (35 + 45) * S * S
    encoder += 2 * 2 * (2 * 3) * S
    decoder = 2 * (2 * 2 * 35 + 2 * 2 * 45) * T + 2 * (35 + 45) * T * T
    # Memory attention: queries and outputs for T, keys and values for S.
    decoder += 2 * (2 * 35 + 45 * 2) * (T + S) + 2 * (35 + 45) * T * S
    decoder += 2 * 2 * (2 * 3) * T
    logits = 2 * 2 * V * T
    assert forward_flops(
        hparams, V, B, source_length=S, target_length=T
    ) == B * (encoder + decoder + logits)


def test_the_cost_of_an_update_depends_little_on_the_typical_length():
    base = PRESETS["transformer_base"]
    costs = [
        tokens_flops(base, mean_length=length)
        for length in (25, TYPICAL_LENGTH, 30)
    ]
    assert costs[0] < costs[1] < costs[2] < 1.002 * costs[0]


def test_tokens_of_one_length_cost_what_their_batch_costs():
    hparams = dataclasses.replace(TINY_MODELS["sinusoidal"], max_length=64)
    assert tokens_flops(
        hparams, V, tokens=5 * S, mean_length=S
    ) == update_flops(hparams, V, 5, source_length=S, target_length=S)


_COUNTED = {
    **PRESETS,
    **TINY_MODELS,
    "base with a shallow decoder": HParams(num_decoder_layers=2),
}
_COUNTED_QUICKLY = {
    *QUICK,
    "base with a shallow decoder",
    "transformer_base",
    "transformer_big",
    "transformer_tiny",
}


@pytest.fixture
def undrawn_weights():
    """A scope in which variables have only shapes: no weight is drawn."""
    yield keras.StatelessScope(initialize_variables=False)
    # Keras keeps a list of these variables; the next scope would draw them.
    keras.utils.clear_session()


def num_weights(hparams, **sizes):
    model = Transformer(hparams, **sizes)
    model.build()
    return model.count_params()


@pytest.mark.parametrize(
    "hparams",
    [
        pytest.param(
            hparams,
            id=name,
            marks=() if name in _COUNTED_QUICKLY else pytest.mark.slow,
        )
        for name, hparams in _COUNTED.items()
    ],
)
def test_the_parameters_are_as_many_as_said(hparams, undrawn_weights):
    sources = hparams.vocabulary_size
    targets = sources - 2
    with undrawn_weights:
        same = num_weights(hparams)
        fewer_targets = num_weights(hparams, num_target_ids=targets)
    assert same == num_parameters(hparams) == num_parameters(hparams, sources)
    assert fewer_targets == num_parameters(hparams, sources, targets)
