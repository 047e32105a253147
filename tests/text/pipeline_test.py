"""Dataset steps batch pairs of similar length for `fit`, and lose none."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_translator import LINES, TINY, learn_vocabulary

import t2t_lite
from t2t_lite.optimization import optimizer
from t2t_lite.text.batching import length_ladder


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


def id_pairs(num_pairs, max_length, seed=0):
    """Returns random pairs of ids, as a list and as a Dataset."""
    generator = np.random.default_rng(seed)
    pairs = [
        tuple(
            generator.integers(2, 30, generator.integers(1, max_length + 1))
            for _ in range(2)
        )
        for _ in range(num_pairs)
    ]
    spec = tf.TensorSpec([None], tf.int32)
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(pairs), output_signature=(spec, spec)
    )
    return pairs, dataset


def without_padding(row):
    return tuple(row[row != 0].tolist())


def test_encoded_text_is_that_of_the_vocabulary(vocabulary):
    targets = LINES[::-1]
    dataset = tf.data.Dataset.from_tensor_slices((LINES, targets))
    found = list(dataset.apply(t2t_lite.encoded(vocabulary)))
    expected = zip(
        vocabulary.encode(LINES), vocabulary.encode(targets), strict=True
    )
    for pair, ids in zip(found, expected, strict=True):
        assert [side.numpy().tolist() for side in pair] == list(ids)
        assert [side.dtype for side in pair] == [tf.int32] * 2


@pytest.mark.parametrize(
    ("tokens_per_batch", "max_length"), [(40, 40), (257, 40), (64, 8), (99, 9)]
)
def test_batches_hold_every_pair_once_within_their_limit(
    tokens_per_batch, max_length
):
    pairs, dataset = id_pairs(300, max_length)
    step = t2t_lite.batched_by_tokens(tokens_per_batch, max_length)
    found = []
    for source, target in dataset.apply(step).as_numpy_iterator():
        assert source.shape == target.shape
        assert source.size <= tokens_per_batch
        assert source.shape[1] in length_ladder(max_length)
        for row in zip(source, target, strict=True):
            found.append(tuple(without_padding(side) for side in row))
    assert sorted(found) == sorted(
        tuple(tuple(side.tolist()) for side in pair) for pair in pairs
    )


def test_all_batches_but_the_last_of_a_length_are_full():
    _, dataset = id_pairs(500, 40)
    sizes = {}
    for source, _ in dataset.apply(t2t_lite.batched_by_tokens(160, 40)):
        rows, length = source.shape
        sizes.setdefault(length, []).append(rows)
    for length, rows in sizes.items():
        assert sum(n < 160 // length for n in rows) <= 1


def test_a_pair_that_is_too_long_is_not_dropped_in_silence():
    _, dataset = id_pairs(50, 12)
    batches = dataset.apply(t2t_lite.batched_by_tokens(64, 8))
    with pytest.raises(tf.errors.InvalidArgumentError, match="filter such"):
        list(batches)


def test_a_batch_must_have_room_for_the_longest_pair():
    with pytest.raises(ValueError, match="tokens_per_batch must be at least"):
        t2t_lite.batched_by_tokens(7, 8)


def test_teacher_forcing_shifts_the_target():
    dataset = tf.data.Dataset.from_tensors(([[5, 1]], [[7, 8, 1]]))
    ((inputs, target),) = dataset.apply(t2t_lite.teacher_forced)
    assert [x.numpy().tolist() for x in inputs] == [[[5, 1]], [[1, 7, 8]]]
    assert target.numpy().tolist() == [[7, 8, 1]]


@pytest.mark.slow
def test_a_model_fits_text_by_these_steps(vocabulary):
    keras.utils.set_random_seed(0)
    lines = [line for line in LINES if line] * 40
    batches = (
        tf.data.Dataset.from_tensor_slices((lines, lines))
        .apply(t2t_lite.encoded(vocabulary))
        .cache()
        .repeat()
        .apply(t2t_lite.batched_by_tokens(128, 23))
        .apply(t2t_lite.teacher_forced)
    )
    hparams = dataclasses.replace(TINY, num_layers=1, warmup_steps=20)
    model = t2t_lite.Transformer(hparams, vocabulary.size)
    model.compile(
        optimizer.adam(hparams),
        t2t_lite.LabelSmoothedCrossEntropy(),
        jit_compile=False,  # XLA would compile for each length.
    )
    model.build()
    # Otherwise Keras traces the first step separately, because that step
    # creates the moments.
    model.optimizer.build(model.trainable_variables)
    history = model.fit(
        batches, steps_per_epoch=20, epochs=4, shuffle=False, verbose=0
    )
    first, *_, last = history.history["loss"]
    assert last < 0.7 * first


def test_arguments_that_make_no_step_are_refused():
    with pytest.raises(ValueError, match="max_length must be at least 1"):
        t2t_lite.batched_by_tokens(tokens_per_batch=8, max_length=0)
    with pytest.raises(TypeError, match=r"Vocabulary\.load reads a file"):
        t2t_lite.encoded("vocabulary.model")


def test_a_dataset_of_no_pairs_is_refused():
    vocabulary = learn_vocabulary()
    for text in (["a"], (["a"],), (["a"],) * 3, {"s": ["a"], "t": ["b"]}):
        dataset = tf.data.Dataset.from_tensor_slices(text)
        message = r"dataset must hold \(source, target\) pairs of"
        for step in (t2t_lite.encoded(vocabulary), t2t_lite.teacher_forced):
            with pytest.raises(TypeError, match=message):
                dataset.apply(step)


def test_steps_in_another_order_are_refused(vocabulary):
    text = tf.data.Dataset.from_tensors((tf.constant("a"), tf.constant("b")))
    encode = t2t_lite.encoded(vocabulary)
    batch = t2t_lite.batched_by_tokens(64, 16)
    forced = t2t_lite.teacher_forced
    ids = text.apply(encode)
    batches = ids.apply(batch)
    batches.apply(forced)
    for dataset, step, kind in (
        (text.batch(2), encode, "strings, not batched yet"),
        (ids, encode, "strings, not batched yet"),
        (text, batch, "vectors of ids"),
        (batches, batch, "vectors of ids"),
        (text, forced, "batches of ids"),
        (ids, forced, "batches of ids"),
        (batches.apply(forced), forced, "batches of ids"),
    ):
        message = rf"\(source, target\) pairs of {kind}"
        with pytest.raises(TypeError, match=message):
            dataset.apply(step)


def test_what_is_no_dataset_is_refused():
    for step in (
        t2t_lite.encoded(learn_vocabulary()),
        t2t_lite.batched_by_tokens(100, 10),
        t2t_lite.teacher_forced,
    ):
        with pytest.raises(TypeError, match=r"must be a tf\.data\.Dataset"):
            step([("a", "b")])
