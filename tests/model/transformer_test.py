"""The model equals the paper in NumPy, and agrees with itself."""

import dataclasses

import keras
import numpy as np
import pytest
import reference
import tensorflow as tf
from tiny_models import (
    QUICK,
    TINY_MODELS,
    parameters,
    tiny_transformer,
)

from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.model import cache as decoder_cache
from t2t_lite.model import loss
from t2t_lite.model.loss import LabelSmoothedCrossEntropy
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.optimization.optimizer import adam
from t2t_lite.token_ids import EOS, PAD

B, S, T, W, V = 2, 5, 7, 3, 11
SOURCE = np.array([[2, 9, 4, 3, 1], [5, 8, 1, 0, 0]], "int32")
TARGET = np.array([[EOS, 6, 2, 7, 7, 3, 10], [EOS, 5, 9, 4, 2, 6, 8]], "int32")


@pytest.fixture(scope="module", params=parameters())
def model(request):
    """Each of TINY_MODELS with random weights, which no test may change."""
    return tiny_transformer(request.param)


@pytest.fixture(scope="module")
def graph(model):
    """The model's call as a graph of unknown lengths."""
    ids = tf.TensorSpec([None, None], tf.int32)
    return tf.function(
        lambda source, target: model((source, target)),
        input_signature=[ids, ids],
        autograph=False,
    )


@pytest.fixture(scope="module")
def logits(graph):
    """A function from (source, target) to logits_BTV, all NumPy arrays."""
    return lambda source=SOURCE, target=TARGET: graph(source, target).numpy()


def eager_logits(model, source=SOURCE, target=TARGET, **kwargs):
    return keras.ops.convert_to_numpy(model((source, target), **kwargs))


def without_dropout(hparams):
    return dataclasses.replace(
        hparams, dropout=0.0, attention_dropout=0.0, relu_dropout=0.0
    )


# What is refused.


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (SOURCE + 0.5, TARGET, "source_ids must be integers"),
        (SOURCE > 3, TARGET, "source_ids must be integers"),
        (SOURCE[0], TARGET, "source_ids must be integers"),
        (SOURCE, TARGET[None], "target_ids must be integers"),
        (SOURCE[:1], TARGET, "source_ids and target_ids must have the same"),
    ],
)
def test_what_cannot_be_the_ids_of_pairs_is_refused(source, target, message):
    model = tiny_transformer(TINY_MODELS["sinusoidal"])
    with pytest.raises(InputError, match=message):
        model((source, target))


def test_in_a_graph_one_row_is_not_taken_for_all(graph):
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        graph(SOURCE, TARGET[:1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        graph(SOURCE[:1], TARGET)


@pytest.mark.parametrize(
    "inputs",
    [SOURCE, (SOURCE,), (SOURCE, TARGET, TARGET), {"a": SOURCE, "b": TARGET}],
)
def test_what_is_no_pair_is_refused(inputs):
    message = r"inputs must be a pair \(source_ids, target_ids\)"
    for model in (tiny_transformer(TINY_MODELS["sinusoidal"]), fresh()):
        with pytest.raises(InputError, match=message):
            model(inputs)


def test_a_fit_that_is_refused_spoils_no_weights():
    model = fresh()
    model.compile("adam", LabelSmoothedCrossEntropy())
    with pytest.raises(InputError, match="inputs must be a pair"):
        model.fit({"a": SOURCE, "b": SOURCE}, SOURCE, verbose=0)
    assert np.isfinite(eager_logits(model)).all()


def fresh():
    """Returns a model that has no weights yet."""
    return Transformer(TINY_MODELS["sinusoidal"], V)


def test_ragged_ids_are_refused():
    ids = tf.ragged.constant([[3, 1], [1]])
    with pytest.raises(InputError, match="source_ids must be a dense tensor"):
        fresh()((ids, ids))


# The forward pass.


def test_logits_equal_the_paper_in_numpy(model):
    expected = reference.transformer(
        reference.weights_of(model), model.hparams, SOURCE, TARGET
    )
    logits = eager_logits(model)
    assert logits.dtype == np.float32
    assert logits.shape == (B, T, V)
    np.testing.assert_allclose(logits, expected, atol=1e-4, rtol=1e-4)


def test_a_graph_of_unknown_lengths_gives_the_same(model, graph):
    np.testing.assert_allclose(
        graph(SOURCE, TARGET), eager_logits(model), atol=1e-5
    )


def test_output_at_t_ignores_targets_after_t(logits):
    before = logits()
    for t in range(T - 1):
        changed = TARGET.copy()
        changed[:, t + 1 :] = (changed[:, t + 1 :] + 3) % V
        after = logits(target=changed)
        np.testing.assert_allclose(
            after[:, : t + 1], before[:, : t + 1], atol=1e-5
        )
        assert np.abs(after[:, t + 1] - before[:, t + 1]).min() > 1e-5


def test_output_at_t_has_gradient_from_targets_up_to_t_only(model):
    memory = model.encode(SOURCE)
    x = tf.convert_to_tensor(model.embedding(TARGET))
    for t in (0, 3, T - 1):
        with tf.GradientTape() as tape:
            tape.watch(x)
            # One feature: a norm without scale and bias fixes the sum of all.
            output = model.decoder(x, memory)[:, t, 2]
        reach_BT = np.abs(tape.gradient(output, x)).sum(axis=-1)
        hparams = model.hparams
        is_near = reference.nearby(T, hparams.attention_window)
        is_reached = np.linalg.matrix_power(is_near, hparams.num_layers)[t]
        is_reached[t + 1 :] = False
        assert (reach_BT[:, is_reached] > 0).all()
        assert (reach_BT[:, ~is_reached] == 0).all()


def test_every_source_token_reaches_every_output(logits):
    before = logits()[0]
    for s in range(S):
        changed = SOURCE.copy()
        changed[0, s] = 10
        after = logits(source=changed)[0]
        assert np.abs(after - before).max(axis=-1).min() > 1e-5


def test_padding_of_the_source_changes_no_logits(logits):
    expected = logits()
    longer = np.pad(SOURCE, ((0, 0), (0, 4)))
    np.testing.assert_allclose(logits(source=longer), expected, atol=1e-5)
    alone = logits(SOURCE[1:, :3], TARGET[1:])
    np.testing.assert_allclose(alone, expected[1:], atol=1e-5)


def test_batch_mates_change_no_logits(logits):
    both = logits()
    for b in range(B):
        alone = logits(SOURCE[b : b + 1], TARGET[b : b + 1])
        np.testing.assert_allclose(alone[0], both[b], atol=1e-5)


def test_targets_are_shifted_right_behind_eos():
    target = np.array([[7, 8, 9, EOS], [5, EOS, 0, 0]])
    expected = [[EOS, 7, 8, 9], [EOS, 5, EOS, 0]]
    np.testing.assert_array_equal(shift_right(target), expected)


def test_positions_beyond_the_learned_table_are_an_error():
    model = tiny_transformer(TINY_MODELS["learned"])
    longest = np.full((B, model.hparams.learned_positions), 3)
    eager_logits(model, target=longest)
    too_long = np.pad(longest, ((0, 0), (0, 1)), constant_values=3)
    message = "learned positions end at 16; received a sequence of length 17"
    with pytest.raises(ValueError, match=message):
        eager_logits(model, target=too_long)
    with pytest.raises(ValueError, match=message):
        eager_logits(model, source=too_long)


def test_sequences_of_one_token_warn_of_nothing():
    model = tiny_transformer(TINY_MODELS["sinusoidal"])
    assert eager_logits(model, SOURCE[:, :1], TARGET[:, :1]).shape == (B, 1, V)


def test_logits_of_a_few_ids_are_the_first_of_all():
    hparams = TINY_MODELS["sinusoidal"]
    model = tiny_transformer(hparams)
    few = Transformer.from_config(
        Transformer(hparams, num_target_ids=5).get_config()
    )
    few.build()
    few.set_weights(model.get_weights())
    assert few.compute_output_shape((SOURCE.shape, TARGET.shape)) == (B, T, 5)
    np.testing.assert_allclose(
        eager_logits(few), eager_logits(model)[..., :5], atol=1e-5
    )


# Decoding step by step.


def test_cached_steps_equal_one_teacher_forced_pass(model, logits):
    """Hypotheses change places after each step, as in a beam search."""
    random = np.random.default_rng(0)
    ids_TBW = random.integers(2, V, (T, B, W), "int32")
    ids_TBW[0] = EOS
    parent_TBW = random.integers(0, W, (T, B, W), "int32")
    expected_TBWV = logits_of_histories(logits, ids_TBW, parent_TBW)
    for room in (T + 2, None):  # More than needed, or growing.
        step, cache = model.start_decoding(SOURCE, W, room)
        for t in range(T):
            found_BWV, cache = step(tf.constant(ids_TBW[t]), cache)
            np.testing.assert_allclose(found_BWV, expected_TBWV[t], atol=1e-4)
            cache = decoder_cache.reorder(cache, tf.constant(parent_TBW[t]))


def logits_of_histories(logits, ids_TBW, parent_TBW):
    """Returns [T, B, W, V]: each hypothesis's last logits at each step."""
    history_BWT, histories = np.full((B, W, T), EOS, "int32"), []
    for t in range(T):
        history_BWT[..., t] = ids_TBW[t]
        histories.append(history_BWT.copy())
        history_BWT = np.take_along_axis(
            history_BWT, parent_TBW[t][..., None], axis=1
        )
    source_of_each = np.tile(np.repeat(SOURCE, W, axis=0), (T, 1))
    target_of_each = np.reshape(histories, (T * B * W, T))
    all_TBWTV = logits(source_of_each, target_of_each).reshape(T, B, W, T, V)
    return np.stack([all_TBWTV[t, :, :, t] for t in range(T)])


@pytest.mark.parametrize("name", ["sinusoidal", "marian", "pre_norm"])
def test_steps_in_int8_are_near_and_nothing_else_changes(name):
    model = tiny_transformer(TINY_MODELS[name])
    before, expected = eager_logits(model), logits_of_a_step(model)
    assert model.search_precision == "float32"
    model.search_in_int8()
    assert model.search_precision == "int8"
    found = logits_of_a_step(model)
    difference = np.abs(found - expected).max() / np.abs(expected).max()
    assert 0 < difference < 0.05
    np.testing.assert_array_equal(eager_logits(model), before)


def test_steps_in_int8_keep_the_weights_of_their_time():
    model = tiny_transformer(TINY_MODELS["sinusoidal"])
    model.search_in_int8()
    rounded = logits_of_a_step(model)
    output = model.decoder.layers[-1].feed_forward.output_layer
    output.kernel.assign(2 * output.kernel)
    np.testing.assert_array_equal(logits_of_a_step(model), rounded)
    model.search_in_int8()
    assert not np.allclose(logits_of_a_step(model), rounded)


def test_every_product_with_weights_in_a_step_is_in_int8():
    """Only operations show it: float32 would compute nearly the same."""
    model = tiny_transformer(TINY_MODELS["sinusoidal"])
    model.search_in_int8()
    step, cache = model.start_decoding(SOURCE, W, 1)
    graph = tf.function(step, autograph=False).get_concrete_function(
        tf.fill([B, W], EOS), cache
    )
    types = [op.type for op in graph.graph.get_operations()]
    num_matrices = 6 * model.hparams.num_layers + 1
    assert types.count("BatchMatMulV3") == num_matrices  # of int8
    assert "MatMul" not in types


@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16"])
def test_only_float32_is_rounded_to_int8(dtype):
    model = Transformer(TINY_MODELS["sinusoidal"], dtype=dtype)
    message = f"needs a model of dtype float32; received dtype='{dtype}'"
    with pytest.raises(InputError, match=message):
        model.search_in_int8()


def test_a_model_without_weights_is_not_rounded():
    with pytest.raises(InputError, match="needs weights: build the model"):
        fresh().search_in_int8()


def logits_of_a_step(model):
    step, cache = model.start_decoding(SOURCE, W, 1)
    return step(tf.fill([B, W], EOS), cache)[0].numpy()


# The shared embedding.


def test_source_target_and_logits_share_one_matrix():
    model = tiny_transformer(TINY_MODELS["sinusoidal"])
    of_vocabulary_size = [w.path for w in model.weights if V in w.shape]
    assert of_vocabulary_size == ["transformer/embedding/embedding"]


def test_gradient_reaches_the_embedding_from_source_target_and_logits():
    model = tiny_transformer(TINY_MODELS["sinusoidal"])
    source, target, output = np.array([[2, 3]]), np.array([[4, 5, 6]]), 7
    with tf.GradientTape() as tape:
        logits = model((source, target))[0, -1, output]
    gradient_VD = tape.gradient(logits, model.embedding.embedding.value)
    gradient_VD = tf.convert_to_tensor(gradient_VD).numpy()
    is_reached = np.abs(gradient_VD).max(axis=-1) > 1e-6
    assert np.flatnonzero(is_reached).tolist() == [2, 3, 4, 5, 6, 7]


# Precision and dropout.


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_logits_are_float32_and_near(model, logits, precision):
    mixed = Transformer(model.hparams, dtype=f"mixed_{precision}")
    mixed.build()
    mixed.set_weights(model.get_weights())
    assert {w.dtype for w in mixed.weights} == {"float32"}
    assert mixed.encode(SOURCE).dtype.name == precision
    found, expected = eager_logits(mixed), logits()
    assert found.dtype == np.float32
    difference = np.abs(found - expected).max() / np.abs(expected).max()
    assert 0 < difference < {"bfloat16": 0.1, "float16": 0.01}[precision]


# The paper's model, and one each with learned positions, biases and pre-norm.
@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("sinusoidal", "float16"),
        pytest.param("learned", "bfloat16", marks=pytest.mark.slow),
        pytest.param("marian", "float16", marks=pytest.mark.slow),
        pytest.param("pre_norm", "bfloat16", marks=pytest.mark.slow),
    ],
)
def test_weights_rounded_once_give_the_same_logits(name, precision):
    hparams = dataclasses.replace(TINY_MODELS[name], num_layers=1)
    mixed, rounded = (
        Transformer(hparams, dtype=policy)
        for policy in (f"mixed_{precision}", precision)
    )
    for each in (mixed, rounded):
        each.build()
    weights = tiny_transformer(hparams).get_weights()
    mixed.set_weights(weights)
    rounded.set_weights(weights)
    for weight in rounded.weights:
        is_norm = "_norm/" in weight.path
        assert weight.dtype == ("float32" if is_norm else precision)
    found, expected = eager_logits(rounded), eager_logits(mixed)
    np.testing.assert_array_equal(found, expected)


def test_dropout_acts_in_training_only(model):
    once, twice = eager_logits(model), eager_logits(model)
    np.testing.assert_array_equal(once, twice)
    dropped = [eager_logits(model, training=True) for _ in range(2)]
    assert np.abs(dropped[0] - dropped[1]).max() > 0.01
    assert np.abs(dropped[0] - once).max() > 0.01


@pytest.mark.parametrize("name", QUICK)
def test_training_without_dropout_equals_inference(name):
    model = tiny_transformer(without_dropout(TINY_MODELS[name]))
    np.testing.assert_array_equal(
        eager_logits(model, training=True), eager_logits(model)
    )


@pytest.mark.parametrize(
    "kind", ["dropout", "attention_dropout", "relu_dropout"]
)
def test_each_kind_of_dropout_acts_alone(kind):
    hparams = without_dropout(TINY_MODELS["sinusoidal"])
    model = tiny_transformer(dataclasses.replace(hparams, **{kind: 0.3}))
    dropped = eager_logits(model, training=True)
    assert np.abs(dropped - eager_logits(model)).max() > 0.01


def test_sums_of_embeddings_and_positions_are_dropped():
    """With all of them dropped, the tokens of either side do not matter."""
    model = tiny_transformer(TINY_MODELS["sinusoidal"])
    for stack in (model.encoder, model.decoder):
        stack.input_dropout.rate = 1 - 1e-7
        for layer in stack.layers:
            for dropout in layer.dropouts.values():
                dropout.rate = 0
    memories = [
        model.encoder(model.embedding(ids), training=True)
        for ids in (SOURCE[:1], SOURCE[:1, ::-1])  # No padding.
    ]
    np.testing.assert_array_equal(*memories)
    outputs = [
        model.decoder(model.embedding(ids), memories[0], training=True)
        for ids in (TARGET[:1], TARGET[:1, ::-1])
    ]
    np.testing.assert_array_equal(*outputs)


# As a Keras model.


@pytest.mark.slow
def test_compile_and_fit_learn_to_copy():
    hparams = without_dropout(TINY_MODELS["sinusoidal"])
    model = tiny_transformer(dataclasses.replace(hparams, num_layers=1))
    random = np.random.default_rng(0)
    source = random.integers(2, V, (32, S))
    target = np.concatenate([source, np.full((32, 1), EOS)], axis=1)
    inputs = (source, keras.ops.convert_to_numpy(shift_right(target)))
    loss = LabelSmoothedCrossEntropy(0.1)
    model.compile(adam(model.hparams), loss, jit_compile=False)
    # Otherwise, Keras traces the first step separately, to make the moments.
    model.optimizer.build(model.trainable_variables)
    history = model.fit(inputs, target, batch_size=8, epochs=10, verbose=0)
    losses = history.history["loss"]
    assert 0 < losses[-1] < 0.8 * losses[0]


# From Keras 3.15 itself with NumPy 2.
@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_a_saved_keras_model_gives_the_same_logits(model, tmp_path):
    expected = eager_logits(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.hparams == model.hparams
    np.testing.assert_array_equal(eager_logits(loaded), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("transformer_base", 9),
            r'give t2t_lite.PRESETS\["transformer_base"]',
        ),
        (("transformer_bas", 9), "did you mean 'transformer_base'"),
        ((None, 9), "hparams must be HParams .*; received None"),
        ((HParams(), 0), "vocabulary_size must be at least 1"),
        ((HParams(), 9, 10), "num_target_ids must be at most vocab.*=9"),
    ],
)
def test_what_makes_no_transformer_is_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Transformer(*arguments)


def test_a_config_is_a_copy():
    model = fresh()
    model.get_config()["hparams"]["d_model"] = 99
    assert model.get_config()["hparams"]["d_model"] < 99


# Options for the models of other programs.


@pytest.mark.parametrize(
    ("tied", "names"),
    [
        ("all", {"embedding"}),
        ("target", {"embedding", "source_embedding"}),
        ("input", {"embedding", "output_embedding"}),
        ("none", {"embedding", "source_embedding", "output_embedding"}),
    ],
)
def test_embeddings_are_tied_as_said(tied, names):
    hparams = dataclasses.replace(
        TINY_MODELS["sinusoidal"], tied_embeddings=tied, logit_bias=True
    )
    model = tiny_transformer(hparams)
    layers = [w.path.split("/")[1] for w in model.weights]
    assert {name for name in layers if name.endswith("embedding")} == names
    biases = [w.path for w in model.weights if w.path.endswith("logit_bias")]
    assert biases == [
        "transformer/output_embedding/logit_bias"
        if "output_embedding" in names
        else "transformer/embedding/logit_bias"
    ]
    expected = reference.transformer(
        reference.weights_of(model), hparams, SOURCE, TARGET
    )
    np.testing.assert_allclose(eager_logits(model), expected, atol=1e-4)


def test_sides_may_have_different_numbers_of_ids():
    hparams = dataclasses.replace(
        TINY_MODELS["sinusoidal"], tied_embeddings="none"
    )
    model = tiny_transformer(hparams, vocabulary_size=V, num_target_ids=V + 6)
    target = np.where(TARGET == 9, V + 5, TARGET)
    logits = eager_logits(model, SOURCE, target)
    assert logits.shape == (B, T, V + 6)
    expected = reference.transformer(
        reference.weights_of(model), hparams, SOURCE, target
    )
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_a_first_input_of_zeros_is_no_token():
    model = tiny_transformer(TINY_MODELS["marian"])
    other_start = np.where(np.arange(T) == 0, 5, TARGET)
    np.testing.assert_array_equal(
        eager_logits(model, SOURCE, other_start), eager_logits(model)
    )


def test_the_factors_of_logits_are_the_loss_of_logits(model):
    target = np.where(np.arange(T) == T - 1, PAD, TARGET)
    x_BTD = model.decode((SOURCE, target))
    found, _ = loss.projected_cross_entropy(
        *model.output_embedding.factors(x_BTD, V), target, 0.1
    )
    expected, _ = loss.cross_entropy(model((SOURCE, target)), target, 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
