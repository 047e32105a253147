"""Scores that stand for nothing are told from others, as are odd tensors."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import tensor
from t2t_lite.errors import InputError


def test_minus_infinity_over_any_length_penalty_is_impossible():
    penalties = ((5 + np.array([1, 50, 400])) / 6) ** 1.0
    assert not tensor.is_possible(tensor.NEG_INF / penalties).any()
    assert tensor.is_possible(np.array([0.0, -1e5])).all()


def test_only_dense_tensors_are_dense():
    tensor.require_dense(ids=np.zeros(3), mask=None, targets=tf.zeros([2]))
    for odd in (tf.ragged.constant([[1], []]), tf.sparse.eye(2)):
        with pytest.raises(InputError, match="ids must be a dense tensor"):
            tensor.require_dense(ids=odd)


def test_a_tensor_of_a_graph_has_no_known_values():
    assert tensor.known_values(tf.constant([3, 4])).tolist() == [3, 4]

    @tf.function
    def is_unchanged(x):
        return tf.constant(tensor.known_values(x) is x)

    assert is_unchanged(tf.constant(1))
