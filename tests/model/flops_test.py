"""Operations by formula are those of the traced graph, and of the paper."""

import dataclasses
import doctest
import math

import pytest
import tensorflow as tf
from tiny_models import TINY_MODELS

from t2t_lite.hparams import PRESETS, HParams
from t2t_lite.model import flops as training_cost
from t2t_lite.model import loss
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.training.trainer import Trainer

B, S, T, V = 2, 13, 15, 11


def product_flops(operation):
    """Returns 2 m n k of a product of (batches of) matrices, else 0."""
    # A product of another kind, or one inside a function that is called, would
    # go uncounted.
    assert "Call" not in operation.type
    if not any(word in operation.type for word in ("MatMul", "sum", "Conv")):
        return 0
    assert operation.type in ("MatMul", "BatchMatMulV2")
    left = operation.inputs[0].shape.as_list()
    transposed = "transpose_a" if operation.type == "MatMul" else "adj_x"
    k = left[-2] if operation.get_attr(transposed) else left[-1]
    return 2 * k * math.prod(operation.outputs[0].shape.as_list())


def graph_flops(function):
    """Returns the operations of all products that a function traces to."""
    ids = [tf.TensorSpec([B, length], tf.int32) for length in (S, T)]
    traced = tf.function(function, autograph=False).get_concrete_function(*ids)
    return sum(map(product_flops, operations(traced.graph)))


def operations(graph):
    """Yields what a graph computes: of the loss in chunks, one chunk."""
    for operation in graph.get_operations():
        yield operation
        if "While" in operation.type:
            name = operation.get_attr("body").name
            yield from operations(graph._get_function(name).graph)


def loss_and_gradient(model):
    """Returns the pass of a Trainer, without its sums and its optimizer."""

    def compute(source_ids, target_ids):
        with tf.GradientTape() as tape:
            logits = model((source_ids, shift_right(target_ids)), training=True)
            loss_sum, _ = loss.cross_entropy(
                logits, target_ids, model.hparams.label_smoothing
            )
        weights = [w.value for w in model.trainable_variables]
        return tape.gradient(loss_sum, weights)

    return compute


@pytest.mark.parametrize("name", ["transformer_base", "transformer_big"])
def test_the_formula_counts_the_products_of_the_traced_graph(name):
    hparams = PRESETS[name]
    model = Transformer(hparams)
    model.build()
    sizes = (hparams, hparams.vocabulary_size, B, S, T)
    traced = graph_flops(lambda *ids: model((ids[0], shift_right(ids[1]))))
    assert training_cost.forward_flops(*sizes) == traced
    traced = graph_flops(loss_and_gradient(model))
    assert training_cost.update_flops(*sizes) == traced


def test_the_formula_counts_the_pass_of_a_trainer(tiny_hparams):
    trainer = Trainer(tiny_hparams, V)
    traced = graph_flops(
        lambda *ids: trainer._add_shard(
            *ids, tf.constant([1, 0], tf.int64), tf.constant(1.0)
        )
    )
    assert training_cost.update_flops(tiny_hparams, V, B, S, T) == traced


def test_one_layer_by_hand():
    hparams = HParams(
        num_layers=1, d_model=2, d_ff=3, num_heads=5, d_k=7, d_v=9
    )
    encoder = 2 * (2 * 2 * 35 + 2 * 2 * 45) * S + 2 * (35 + 45) * S * S
    encoder += 2 * 2 * (2 * 3) * S
    decoder = 2 * (2 * 2 * 35 + 2 * 2 * 45) * T + 2 * (35 + 45) * T * T
    # To the memory: queries and output of T, keys and values of S positions.
    decoder += 2 * (2 * 35 + 45 * 2) * (T + S) + 2 * (35 + 45) * T * S
    decoder += 2 * 2 * (2 * 3) * T
    logits = 2 * 2 * V * T
    assert training_cost.forward_flops(hparams, V, B, S, T) == B * (
        encoder + decoder + logits
    )


def test_examples_hold():
    results = doctest.testmod(training_cost)
    assert results.attempted >= 7
    assert results.failed == 0


@pytest.mark.parametrize("name", training_cost.TABLE_2)
def test_hours_devices_and_speed_give_the_figures_of_table_2(name):
    paper = training_cost.TABLE_2[name]
    found = training_cost.compare_with_paper(name)
    assert f"{found.paper_flops:.1e}" == f"{paper.training_flops:.1e}"


def test_the_models_products_are_a_part_of_the_papers_figures():
    base, big = map(training_cost.compare_with_paper, training_cost.TABLE_2)
    assert base.ratio == pytest.approx(0.290, abs=5e-4)
    assert big.ratio == pytest.approx(0.421, abs=5e-4)


def test_the_cost_of_an_update_depends_little_on_the_typical_length():
    base = PRESETS["transformer_base"]
    costs = [
        training_cost.tokens_flops(base, mean_length=length)
        for length in (25, training_cost.TYPICAL_LENGTH, 30)
    ]
    assert costs[0] < costs[1] < costs[2] < 1.002 * costs[0]


def test_what_nobody_counted_is_not_known():
    assert "not known" in training_cost.describe(math.nan, 1.0)
    lines = training_cost.describe(1e15, math.nan, 9.5).split("\n")
    assert "1.00e+15" in lines[0]
    assert "not known" in lines[1]


def test_tokens_of_one_length_cost_what_their_batch_costs():
    hparams = dataclasses.replace(TINY_MODELS["sinusoidal"], max_length=64)
    assert training_cost.tokens_flops(
        hparams, V, tokens=5 * S, mean_length=S
    ) == training_cost.update_flops(hparams, V, 5, S, S)
