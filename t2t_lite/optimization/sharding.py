"""How the batch of an update is divided among micro-batches and replicas."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.optimization.dropout_seeds import update_seed


class Batch(NamedTuple):
    """The batch of an update, for all replicas and micro-batches."""

    source_ids: np.ndarray  # int32 [B, S]
    target_ids: np.ndarray  # int32 [B, T]
    is_linked: np.ndarray | None = None  # uint8 [B, T, S], None: no links

    def without_links(self) -> "Batch":
        """Returns the ids alone."""
        return self._replace(is_linked=None)


class Shard(NamedTuple):
    """One replica's share of a micro-batch: R of its rows."""

    source_ids: tf.Tensor  # int32 [R, S]
    target_ids: tf.Tensor  # int32 [R, T]
    seed: tf.Tensor  # int64 [2], the dropout seed and the index of the shard
    # uint8 [R, T, S], which tokens are linked; () if alignment is not guided.
    is_linked: tf.Tensor | tuple[()] = ()


class Sharding:
    """Divides batches into shards of the same size.

    Args:
        hparams: HParams.
        strategy: tf.distribute.Strategy.
        num_parts: int, which divides the number of rows of a shard.
    """

    def __init__(
        self,
        hparams: HParams,
        strategy: tf.distribute.Strategy,
        num_parts: int,
    ):
        self._seed = hparams.seed
        self._is_guided = hparams.is_guided
        self._strategy, self.num_parts = strategy, num_parts

    def shards(
        self, batch: Batch, n: int, num_micro_batches: int, step: int
    ) -> Any:
        """Returns the Shard of each replica, as values of the strategy.

        Args:
            batch: Batch.
            n: int, which micro-batch, from 0.
            num_micro_batches: int, how many there are.
            step: int, updates done.
        """
        num_replicas = self._strategy.num_replicas_in_sync
        num_shards = num_replicas * num_micro_batches
        seed = update_seed(self._seed, step)

        def shard(context: tf.distribute.experimental.ValueContext) -> Shard:
            index = n * num_replicas + context.replica_id_in_sync_group

            def rows(array: np.ndarray) -> tf.Tensor:
                return _rows(array, index, num_shards, num_parts=self.num_parts)

            return Shard(
                source_ids=rows(batch.source_ids),
                target_ids=rows(batch.target_ids),
                seed=tf.constant([seed, index], tf.int64),
                is_linked=rows(_links(batch)) if self._is_guided else (),
            )

        return self._strategy.experimental_distribute_values_from_function(
            shard
        )

    def padding(self, length: int) -> Batch:
        """Returns padding: for each part, `length` rows of `length` ids."""
        num_parts = self._strategy.num_replicas_in_sync * self.num_parts
        ids = np.zeros((length * num_parts, length), np.int32)
        return Batch(ids, ids)

    def spec(self) -> Any:
        """Returns the type of `shards` that covers all shapes."""
        first, second = (
            tf.nest.map_structure(
                tf.type_spec_from_value,
                self.shards(
                    self.padding(length), n=0, num_micro_batches=1, step=0
                ),
            )
            for length in (1, 2)
        )
        return tf.nest.map_structure(
            lambda one, other: one.most_specific_common_supertype([other]),
            first,
            second,
        )

    def shard_spec(self) -> Shard:
        """Returns the type of a Shard on its replica, for all shapes."""
        ids = tf.TensorSpec([None, None], tf.int32)
        links = tf.TensorSpec([None, None, None], tf.uint8)
        return Shard(
            source_ids=ids,
            target_ids=ids,
            seed=tf.TensorSpec([2], tf.int64),
            is_linked=links if self._is_guided else (),
        )


def _links(batch: Batch) -> np.ndarray:
    """Returns which tokens of a batch are linked; none if it does not say."""
    if batch.is_linked is not None:
        return batch.is_linked
    shape = *batch.target_ids.shape, batch.source_ids.shape[1]
    return np.zeros(shape, np.uint8)


def _rows(
    array: np.ndarray, index: int, num_shards: int, num_parts: int
) -> tf.Tensor:
    """Returns every num_shards-th row from row `index` on, [R, ...].

    All shards have the same size, which `num_parts` divides.
    """
    rows = -(-len(array) // (num_shards * num_parts)) * num_parts
    part = array[index::num_shards]
    whole = [(0, 0)] * (part.ndim - 1)
    return tf.constant(np.pad(part, [(0, rows - len(part)), *whole]))
