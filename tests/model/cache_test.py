"""Hypotheses read from the decoder's cache what their ancestors wrote."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from t2t_lite.model import cache as decoder_cache
from t2t_lite.model.cache import DecoderCache
from t2t_lite.model.multi_head_attention import KeysValues

B, H, W, T, K, K_V = 2, 4, 3, 7, 5, 6


def empty_cache(room):
    past = decoder_cache.empty_past((B, H, room * W), (K, K_V), "float32")
    return DecoderCache(
        position=ops.convert_to_tensor(0, "int32"),
        ancestor_BWM=ops.zeros((B, W, room), "int32"),
        past=(past,),
        memory=(),
        may_attend_B11S=ops.ones((B, 1, 1, 1), "bool"),
    )


def written(cache, keys_BW, window, grows):
    """Returns the cache with one more key per hypothesis, and its view."""
    cache, view = decoder_cache.start_position(cache, window, grows)
    k_BHWK, v_BHWK = (
        np.broadcast_to(keys_BW[:, None, :, None], (B, H, W, depth))
        for depth in (K, K_V)
    )
    new = KeysValues(k_BHWK.astype("float32"), -v_BHWK.astype("float32"))
    past = view.write(cache.past[0], new)
    cache = cache._replace(position=cache.position + 1, past=(past,))
    return cache, view


def seen(cache, view):
    """Returns, for each hypothesis, the keys that it attends to, in order."""
    past = view.read(cache.past[0])
    k_BHPK, v_BHPK = (np.asarray(x) for x in past)
    assert (k_BHPK == k_BHPK[:, :1, :, :1]).all()
    np.testing.assert_array_equal(k_BHPK[..., 0], -v_BHPK[..., 0])
    is_ancestor_B1WP = np.asarray(view.is_ancestor_B1WP)
    return [
        [k_BHPK[b, 0, is_ancestor_B1WP[b, 0, w], 0].tolist() for w in range(W)]
        for b in range(B)
    ]


@pytest.mark.parametrize("window", [0, 1, 5])
@pytest.mark.parametrize("grows", [False, True])
def test_hypotheses_see_what_their_ancestors_wrote(window, grows):
    random = np.random.default_rng(0)
    cache = empty_cache(room=0 if grows else T + 2)
    history = [[[] for _ in range(W)] for _ in range(B)]
    reach = window // 2 + 1 if window else T
    for t in range(T):
        keys_BW = 1 + np.arange(B * W).reshape(B, W) + B * W * t
        cache, view = written(cache, keys_BW, window, grows=grows)
        for b in range(B):
            for w in range(W):
                history[b][w] = [*history[b][w], keys_BW[b, w]]
        expected = [[keys[-reach:] for keys in of_b] for of_b in history]
        assert seen(cache, view) == expected
        parent_BW = random.integers(0, W, (B, W), "int32")
        cache = decoder_cache.reorder(cache, tf.constant(parent_BW))
        history = [
            [history[b][parent] for parent in parent_BW[b]] for b in range(B)
        ]


def test_a_reorder_moves_no_keys_or_values():
    cache, _ = written(
        empty_cache(room=T), np.ones((B, W)), window=0, grows=False
    )
    moved = decoder_cache.reorder(cache, tf.constant([[2, 0, 1], [1, 1, 0]]))
    assert moved.past[0].k_BHMK is cache.past[0].k_BHMK
    assert moved.past[0].v_BHMK is cache.past[0].v_BHMK
    np.testing.assert_array_equal(
        moved.ancestor_BWM[..., 0], [[2, 0, 1], [1, 1, 0]]
    )


def test_a_loop_in_a_graph_takes_a_cache_that_gets_longer():
    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )
    def length_after_four_steps(source_ids):
        room = decoder_cache.unknown_zero(source_ids)
        (slots_BWM,) = ops.while_loop(
            lambda slots_BWM: ops.shape(slots_BWM)[2] < 4,
            lambda slots_BWM: (
                ops.concatenate([slots_BWM, ops.ones((B, W, 1), "int32")], 2),
            ),
            (ops.zeros((B, W, room), "int32"),),
        )
        return ops.sum(slots_BWM)

    assert length_after_four_steps(np.zeros((B, 5), "int32")) == B * W * 4
