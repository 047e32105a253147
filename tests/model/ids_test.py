"""Invalid ids are refused wherever their values or types are known."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import LabelSmoothedCrossEntropy, TiedEmbedding
from t2t_lite.errors import InputError
from t2t_lite.model.ids import require_ids_below
from t2t_lite.model.loss import projected_cross_entropy

V = 11


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[3, -2]], "target_ids must be from 0 to 10; received target_ids=-2"),
        ([[V, 3]], "target_ids must be from 0 to 10; received target_ids=11"),
        ([[2.5, 1.0]], "target_ids must be integers; received dtype='float32'"),
    ],
)
def test_the_loss_of_ids_that_are_none_is_refused(ids, message, smoothing):
    loss = LabelSmoothedCrossEntropy(smoothing)
    with pytest.raises(InputError, match=message):
        loss(tf.constant(ids), tf.zeros([1, 2, V]))
    with pytest.raises(InputError, match=message):
        projected_cross_entropy(
            tf.zeros([1, 2, 4]),
            tf.zeros([V, 4]),
            tf.constant(ids),
            label_smoothing=smoothing,
        )


@pytest.mark.parametrize("ids", [[[-1]], [[V]], [[0.5]]])
def test_the_embedding_of_ids_that_are_none_is_refused(ids):
    with pytest.raises(InputError, match="ids must be"):
        TiedEmbedding(V, 4)(tf.constant(ids))


def test_ragged_ids_are_refused_by_name():
    ids = tf.ragged.constant([[1, 2], [3]])
    message = r"ids must be a dense tensor, padded where"
    with pytest.raises(InputError, match=message):
        TiedEmbedding(V, 4)(ids)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_in_a_graph_the_loss_of_ids_that_are_none_is_not_finite(smoothing):
    loss = tf.function(LabelSmoothedCrossEntropy(smoothing))
    for ids in ([[3, V]], [[-2, 3]]):
        assert np.isnan(loss(tf.constant(ids), tf.zeros([1, 2, V])))
    assert np.isfinite(loss(tf.constant([[3, 0]]), tf.zeros([1, 2, V])))


@pytest.mark.parametrize("ids", [[1, 2], [[1, 2, 3]], [[[1], [2]]]])
def test_logits_that_are_not_those_of_the_targets_are_refused(ids):
    message = r"logits must be \[B, T, V\] for target_ids \[B, T\]; received"
    with pytest.raises(InputError, match=message):
        LabelSmoothedCrossEntropy()(ids, np.zeros([1, 2, V], np.float32))


def test_ids_of_all_kinds_are_taken():
    for ids in ([[0, V - 1]], np.array([3], np.int64), tf.constant([0, 10])):
        require_ids_below(V, ids=ids)
    require_ids_below(V, ids=np.zeros([0, 4], np.int32))
    require_ids_below(V, ids=keras.Input([None], dtype="int32"))


def test_in_a_graph_the_type_of_ids_is_checked():
    def ids_below(ids):
        require_ids_below(V, ids=ids)

    check = tf.function(ids_below, autograph=False)
    check(tf.constant([V]))  # The graph does not know its value.
    with pytest.raises(InputError, match="must be integers"):
        check(tf.constant([0.5]))
