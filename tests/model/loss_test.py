"""The loss and its gradients equal the equation in NumPy, also in chunks."""

import functools
import weakref

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf

from t2t_lite.model import loss as loss_module
from t2t_lite.model.loss import (
    LabelSmoothedCrossEntropy,
    cross_entropy,
    projected_cross_entropy,
)
from t2t_lite.token_ids import PAD

B, T, D, V = 2, 7, 6, 11
TARGET = np.array([[5, 2, 10, 3, 3, 8, 1], [4, 9, 1, 0, 0, 0, 0]])
LOGITS = np.random.default_rng(0).normal(0, 2, (B, T, V)).astype("float32")
SMOOTHINGS = [0.0, 0.1, 0.4]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_loss_is_the_equation_summed_over_tokens(smoothing):
    loss, tokens = cross_entropy(LOGITS, TARGET, smoothing)
    expected, count = reference.cross_entropy(LOGITS, TARGET, smoothing)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert tokens == count == 10


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_padding_counts_nothing(smoothing):
    changed = np.where(TARGET[..., None] == 0, 1000.0, LOGITS)
    longer = np.pad(changed, ((0, 1), (0, 2), (0, 0)))
    padded_target = np.pad(TARGET, ((0, 1), (0, 2)))
    np.testing.assert_allclose(
        cross_entropy(longer, padded_target, smoothing),
        cross_entropy(LOGITS, TARGET, smoothing),
        rtol=1e-5,
    )


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_gradient_is_softmax_minus_target(smoothing):
    logits = tf.constant(LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss, _ = cross_entropy(logits, TARGET, smoothing)
    q = reference.smoothed_targets(TARGET, V, smoothing)
    is_token_BT1 = (TARGET != 0)[..., None]
    expected = (reference.softmax(LOGITS) - q) * is_token_BT1
    np.testing.assert_allclose(tape.gradient(loss, logits), expected, atol=1e-5)


def test_sums_of_parts_add_up_to_the_whole():
    whole = cross_entropy(LOGITS, TARGET, 0.1)
    parts = [
        cross_entropy(LOGITS[b : b + 1], TARGET[b : b + 1], 0.1)
        for b in range(B)
    ]
    np.testing.assert_allclose(whole, np.sum(parts, axis=0), rtol=1e-5)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_loss_is_computed_in_float32(smoothing):
    half = LOGITS.astype("float16")
    loss, tokens = cross_entropy(half, TARGET, smoothing)
    assert loss.dtype == tokens.dtype == tf.float32
    expected, _ = reference.cross_entropy(
        half.astype("float64"), TARGET, smoothing
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_logits_far_apart_give_a_finite_loss(smoothing):
    loss, _ = cross_entropy(LOGITS * 1000, TARGET, smoothing)
    expected, _ = reference.cross_entropy(
        LOGITS.astype("float64") * 1000, TARGET, smoothing
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-4)


def test_keras_loss_is_the_mean_over_tokens():
    loss = LabelSmoothedCrossEntropy(0.1)(TARGET, LOGITS)
    expected, count = reference.cross_entropy(LOGITS, TARGET, 0.1)
    np.testing.assert_allclose(loss, expected / count, rtol=1e-5)


def test_keras_loss_of_padding_alone_is_zero():
    assert LabelSmoothedCrossEntropy()(np.zeros_like(TARGET), LOGITS) == 0


def test_keras_loss_takes_no_sample_weight():
    with pytest.raises(ValueError, match="sample_weight is not supported"):
        LabelSmoothedCrossEntropy()(TARGET, LOGITS, np.ones((B, T)))


def test_keras_loss_is_made_again_from_its_config():
    loss = LabelSmoothedCrossEntropy(0.3)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert again.label_smoothing == 0.3
    assert LabelSmoothedCrossEntropy().label_smoothing == 0.1


# The loss from vectors and the embedding, chunk by chunk and all at once.

X = np.random.default_rng(1).normal(0, 1, (B, T, D)).astype("float32")
EMBEDDING = np.random.default_rng(2).normal(0, 1, (V, D)).astype("float32")


def plainly_projected(x, embedding, target_ids, smoothing=0.0, loss_scale=None):
    """Returns what projected_cross_entropy must, from all logits at once."""
    del loss_scale
    matrix = tf.cast(embedding, x.dtype)
    logits = tf.matmul(x, tf.transpose(matrix))
    return cross_entropy(logits, target_ids, smoothing)


def with_gradients(
    function, dtype="float32", target=TARGET, factor=1.0, **more
):
    """Returns (loss, tokens, gradient by x, gradient by E)."""
    x, embedding = tf.cast(X, dtype), tf.constant(EMBEDDING)
    with tf.GradientTape() as tape:
        tape.watch((x, embedding))
        loss, tokens = function(x, embedding, target, **more)
        scaled = loss * factor
    return loss, tokens, *tape.gradient(scaled, (x, embedding))


def assert_close(ours, theirs, **tolerances):
    for our, their in zip(ours, theirs, strict=True):
        assert our.dtype == their.dtype
        our, their = np.float32(our), np.float32(their)
        np.testing.assert_allclose(our, their, **tolerances)


@pytest.fixture(params=[1, 3, 4, 100], ids=lambda size: f"chunks_of_{size}")
def chunks(request, monkeypatch):
    """Chunks of one, of several, and of more positions than there are."""
    monkeypatch.setattr(loss_module, "CHUNK_LOGITS", request.param * V)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_chunks_give_the_loss_and_the_gradients_of_the_whole(chunks, smoothing):
    assert_close(
        with_gradients(projected_cross_entropy, label_smoothing=smoothing),
        with_gradients(plainly_projected, smoothing=smoothing),
        rtol=1e-5,
        atol=1e-5,
    )


def assert_one_graph_takes_any_batch(sizes, xla=False):
    def all_results(function, x, embedding, ids):
        with tf.GradientTape() as tape:
            tape.watch([x, embedding])
            loss, tokens = function(x, embedding, ids, 0.1)
        return loss, tokens, *tape.gradient(loss, [x, embedding])

    graph = tf.function(
        functools.partial(all_results, projected_cross_entropy),
        input_signature=[
            tf.TensorSpec([None, None, D]),
            tf.TensorSpec([V, D]),
            tf.TensorSpec([None, None], tf.int32),
        ],
        jit_compile=xla,
        autograph=False,
    )
    embedding = tf.constant(EMBEDDING)
    for rows, length in sizes:
        x = tf.constant(X[:rows, :length])
        ids = tf.constant(TARGET[:rows, :length], tf.int32)
        expected = all_results(plainly_projected, x, embedding, ids=ids)
        found = graph(x, embedding, ids)
        assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_one_graph_takes_any_batch_in_chunks(chunks):
    assert_one_graph_takes_any_batch([(2, 7), (1, 5), (2, 1)])


@pytest.mark.slow
@pytest.mark.parametrize("chunks", [3], indirect=True)
def test_one_program_of_xla_takes_any_batch_in_chunks(chunks):
    """A batch of several chunks, and one that is smaller than a chunk."""
    assert_one_graph_takes_any_batch([(2, 7), (2, 1)], xla=True)


@pytest.mark.parametrize(
    ("dtype", "rounding"), [("bfloat16", 2**-8), ("float16", 2**-10)]
)
def test_chunks_round_like_the_whole_in_mixed_precision(
    chunks, dtype, rounding
):
    assert_close(
        with_gradients(projected_cross_entropy, dtype, label_smoothing=0.1),
        with_gradients(plainly_projected, dtype, smoothing=0.1),
        rtol=2 * rounding,
        atol=4 * rounding,
    )


def test_the_embedding_may_be_a_variable(chunks):
    variable = keras.Variable(EMBEDDING)
    with tf.GradientTape() as tape:
        loss, _ = projected_cross_entropy(tf.constant(X), variable, TARGET)
    expected = with_gradients(plainly_projected)[3]
    np.testing.assert_allclose(
        tape.gradient(loss, variable.value), expected, atol=1e-5
    )


def test_padding_has_no_gradient(chunks):
    x_gradient = with_gradients(projected_cross_entropy)[2].numpy()
    assert not x_gradient[TARGET == 0].any()
    assert x_gradient[TARGET != 0].all()


def test_a_batch_of_padding_has_no_loss_and_no_gradients(chunks):
    padding = np.zeros_like(TARGET)
    for result in with_gradients(projected_cross_entropy, target=padding):
        assert not result.numpy().any()


def test_chunks_of_padding_alone_are_not_computed(monkeypatch):
    monkeypatch.setattr(loss_module, "CHUNK_LOGITS", 2 * V)
    of_chunk, computed = loss_module._losses_and_gradient, []

    def counted(logits_NV, *args):
        computed.append(len(logits_NV))
        return of_chunk(logits_NV, *args)

    monkeypatch.setattr(loss_module, "_losses_and_gradient", counted)
    projected_cross_entropy(tf.constant(X), tf.constant(EMBEDDING), TARGET)
    assert computed == [2] * 5  # Ten of the 14 positions are tokens.


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_the_loss_of_tokens_whose_softmax_is_zero(smoothing):
    logits = LOGITS + 1000.0
    logits[..., 0] += 300.0  # The others have e^-300, which float32 has not.
    loss, _ = projected_cross_entropy(
        tf.constant(logits), tf.eye(V), TARGET, label_smoothing=smoothing
    )
    expected, _ = reference.cross_entropy(logits, TARGET, smoothing)
    assert expected > 1000
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize("loss_scale", [None, 1, 4.0])
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_gradients_are_those_of_what_becomes_of_the_loss(factor, loss_scale):
    assert_close(
        with_gradients(
            projected_cross_entropy, factor=factor, loss_scale=loss_scale
        ),
        with_gradients(plainly_projected, factor=factor),
        rtol=1e-5,
        atol=1e-5,
    )


def test_a_loss_scale_saves_small_gradients_from_float16():
    """An id other than the target has a probability of e^-20."""
    x = tf.constant([[[20.0, 0.0]]], "float16")
    embedding = tf.constant([[-9.0, 0.0], [0.0, 3.0], [1.0, 0.0]])

    def x_gradient(function, **scale):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss, _ = function(x, embedding, [[2]], **scale)
            scaled = loss * 2.0**15
        return float(tape.gradient(scaled, x)[0, 0, 1])

    expected = x_gradient(plainly_projected)
    assert expected == pytest.approx(3 * 2**15 * np.exp(-20), rel=0.01)
    ours = x_gradient(projected_cross_entropy, loss_scale=2.0**15)
    assert ours == pytest.approx(expected, rel=0.01)
    assert x_gradient(projected_cross_entropy) == 0


def test_gradients_that_overflow_float16_are_not_finite(chunks):
    """This tells the trainer that the loss scale is too large."""
    gradient = with_gradients(
        projected_cross_entropy, "float16", loss_scale=2.0**40
    )[3]
    assert not np.isfinite(gradient).all()


def test_padding_does_not_overflow_float16_where_no_token_does():
    """The token's gradient is tiny, but that of padding would overflow."""
    x = tf.constant([[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]], "float16")
    embedding = tf.eye(3) * 12.0
    with tf.GradientTape() as tape:
        tape.watch((x, embedding))
        loss, _ = projected_cross_entropy(
            x, embedding, [[PAD, 1]], loss_scale=2.0**18
        )
        scaled = loss * 2.0**18
    for gradient in tape.gradient(scaled, (x, embedding)):
        assert np.isfinite(gradient).all()
        assert np.any(gradient)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int64"])
def test_target_ids_are_integers_of_any_kind(dtype):
    """This is on a CPU: a GPU supports only some of them."""
    assert_close(
        with_gradients(projected_cross_entropy, target=TARGET.astype(dtype)),
        with_gradients(projected_cross_entropy),
    )


def test_an_eager_tape_keeps_no_chunk(monkeypatch):
    """The logits and gradients of two chunks are never all alive at once."""
    monkeypatch.setattr(loss_module, "CHUNK_LOGITS", 2 * V)
    of_chunk, chunks, most_alive = loss_module._losses_and_gradient, [], 0

    def tracked(logits_NV, *args):
        nonlocal most_alive
        loss_N, gradient_NV = of_chunk(logits_NV, *args)
        chunks.extend(weakref.ref(x) for x in (logits_NV, gradient_NV))
        most_alive = max(most_alive, sum(ref() is not None for ref in chunks))
        return loss_N, gradient_NV

    monkeypatch.setattr(loss_module, "_losses_and_gradient", tracked)
    with_gradients(projected_cross_entropy)
    assert len(chunks) == 2 * 5
    assert most_alive <= 3


def test_a_graph_has_no_array_of_all_logits(monkeypatch):
    num_tokens, size_of_vocabulary = 512, 1000
    monkeypatch.setattr(loss_module, "CHUNK_LOGITS", 64_000)

    @tf.function(autograph=False)
    def gradients(x, embedding):
        ids = tf.ones([1, num_tokens], tf.int32)
        with tf.GradientTape() as tape:
            tape.watch((x, embedding))
            loss, _ = projected_cross_entropy(
                x, embedding, ids, label_smoothing=0.1
            )
        return tape.gradient(loss, (x, embedding))

    traced = gradients.get_concrete_function(
        tf.TensorSpec([1, num_tokens, D]),
        tf.TensorSpec([size_of_vocabulary, D]),
    )
    definition = traced.graph.as_graph_def(add_shapes=True)
    nodes = [
        *definition.node,
        *(n for f in definition.library.function for n in f.node_def),
    ]
    sizes = [
        np.prod([dim.size for dim in shape.dim])
        for node in nodes
        for shape in node.attr["_output_shapes"].list.shape
        if not shape.unknown_rank and all(dim.size >= 0 for dim in shape.dim)
    ]
    assert 64_000 * 0.9 < max(sizes) < num_tokens * size_of_vocabulary / 4


@pytest.mark.slow
def test_the_alignment_loss_is_the_cross_entropy_with_equal_shares():
    generator = np.random.default_rng(1)
    weights = generator.dirichlet(np.ones(4), (2, 3)).astype(np.float32)
    is_linked = np.zeros((2, 3, 4), np.uint8)
    is_linked[0, 0, 1] = is_linked[0, 2, 0] = is_linked[0, 2, 3] = 1
    is_linked[1, 1, :3] = 1
    expected = -(
        np.log(weights[0, 0, 1])
        + (np.log(weights[0, 2, 0]) + np.log(weights[0, 2, 3])) / 2
        + np.log(weights[1, 1, :3]).sum() / 3
    )
    found = loss_module.alignment_loss(weights, is_linked)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert loss_module.alignment_loss(weights, np.zeros_like(is_linked)) == 0
    assert np.isfinite(
        loss_module.alignment_loss(np.zeros_like(weights), is_linked)
    )
