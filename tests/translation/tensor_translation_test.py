"""String tensors are translated as lists of lines are."""

import math

import numpy as np
import pytest
import tensorflow as tf
from tiny_searches import GLOSSARY
from tiny_translator import LINES, sentence

from t2t_lite.errors import InputError


def long_line():
    return " ".join(sentence(18, n) for n in range(3))


def test_a_string_tensor_gives_what_a_list_gives(translator):
    lines = [*LINES, long_line(), "\u00a0", "שלום 🙂"]
    texts, scores = translator(lines, with_scores=True)
    found, found_scores = translator(tf.constant(lines), with_scores=True)
    assert [text.decode() for text in found.numpy()] == texts
    np.testing.assert_allclose(found_scores, scores, atol=1e-4)


@pytest.mark.parametrize("shape", [(), (7,), (7, 1), (1, 7), (0,), (2, 0)])
def test_translations_have_the_shape_of_their_tensor(translator, shape):
    lines = tf.constant(LINES[: math.prod(shape)], tf.string, shape)
    found, scores = translator(lines, with_scores=True)
    assert found.shape == scores.shape == shape
    expected = translator(LINES[: math.prod(shape)])
    texts = found.numpy().ravel().tolist() if shape else [found.numpy()]
    assert [text.decode() for text in texts] == expected


def test_a_translator_works_within_a_function(translator):
    @tf.function
    def shouted(text):
        return tf.strings.upper(translator(text), encoding="utf-8")

    found = shouted(tf.constant(LINES)).numpy()
    expected = [text.upper() for text in translator(LINES)]
    assert [text.decode() for text in found] == expected


def test_a_translator_works_within_a_pipeline(translator):
    lines = LINES * 3
    dataset = tf.data.Dataset.from_tensor_slices(lines).batch(4)
    dataset = dataset.map(translator, num_parallel_calls=4).unbatch()
    found = [text.decode() for text in dataset.as_numpy_iterator()]
    assert found == translator(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tf.constant([1, 2]), "string tensor; received a EagerTensor of int32"),
        (tf.ragged.constant([["a"], []]), "received a RaggedTensor of string"),
    ],
)
def test_tensors_that_are_no_text_are_refused(translator, text, message):
    with pytest.raises(TypeError, match=message):
        translator(text)


@pytest.mark.parametrize("text", ["a red boat", ["a red boat", "two men"]])
def test_text_that_is_no_tensor_is_refused_inside_a_graph(translator, text):
    with pytest.raises(TypeError, match="text must be a string tensor that a"):
        tf.function(lambda: translator(text))()


@pytest.mark.parametrize(
    "options", [{"glossary": GLOSSARY}, {"alternatives": 2}]
)
def test_a_tensor_is_refused_where_only_lines_do(steered, options):
    translator = steered(**options)
    with pytest.raises(InputError, match="text must be a str or a list of str"):
        translator(tf.constant(["a dog"]))


def test_tensors_have_no_alignments(steered):
    with pytest.raises(InputError, match="text must be a str or a list of str"):
        steered(alignments=True)(tf.constant(["a dog"]))


def test_tensors_keep_nothing(steered):
    keeping = steered(keep=["tags"])
    with pytest.raises(InputError, match="text must be a str or a list of str"):
        keeping(tf.constant(["a <b>dog</b>"]))
