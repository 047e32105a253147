"""Dropout masks that depend only on the seed, the update and the part.

By default, Keras draws the same masks on every replica, and a resumed run would
have to restore the position in each layer's sequence of masks.
"""

import keras
import tensorflow as tf

_SEEDS_PER_LAYER = 8  # Room for a layer that drops more than once a pass.


def update_seed(seed: int, step: int) -> int:
    """Returns the dropout seed of the update after `step` updates of a run."""
    return (seed * 1_000_003 + step) % 2**31


def seeded_dropout(model: keras.Model, seed: tf.Tensor) -> keras.StatelessScope:
    """Returns the scope in which a model's dropout masks follow from `seed`.

    Args:
        model: its non-trainable variables must all belong to dropout.
        seed: int64 [2], the `update_seed`, and the index of the part among all
            parts of the update: shard * num_parts + part, where
            shard = micro_batch * num_replicas + replica.
    """
    # Each layer with dropout begins its own sequence of masks in each part. For
    # a model with three such layers (s is the update's seed):
    #
    #   part      0                        1
    #   layer     0       1       2        0        1        2
    #   begins at [s, 0]  [s, 8]  [s, 16]  [s, 24]  [s, 32]  [s, 40]
    sequences = model.non_trainable_variables
    seeds_per_part = len(sequences) * _SEEDS_PER_LAYER
    states = []
    for n, sequence in enumerate(sequences):
        begin = seed[1] * seeds_per_part + n * _SEEDS_PER_LAYER
        state = tf.cast(tf.stack([seed[0], begin]), sequence.dtype)
        states.append((sequence, state))
    return keras.StatelessScope(state_mapping=states)
