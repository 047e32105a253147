"""The loss of a shard, and its gradient, on the replica that is given it."""

from contextlib import nullcontext

import tensorflow as tf

from t2t_lite.model import loss
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import shift_right
from t2t_lite.optimization.dropout_seeds import seeded_dropout
from t2t_lite.optimization.guided_alignment import guided_loss
from t2t_lite.optimization.sharding import Shard
from t2t_lite.optimization.sums import Sums
from t2t_lite.optimization.training_state import TrainingState


class ShardGradients:
    """Adds the loss and the gradient of shards to the sums of a replica.

    Args:
        state: TrainingState.
        sums: Sums.
        num_parts: int, how many parts of a shard are computed side by side.
        chunk_logits: int, that of `projected_cross_entropy`.
    """

    def __init__(
        self,
        state: TrainingState,
        sums: Sums,
        num_parts: int,
        chunk_logits: int | None,
    ):
        self._model, self._weights = state.model, state.weights
        self._is_scaled, self._sums = state.is_scaled, sums
        self._num_parts, self._chunk_logits = num_parts, chunk_logits
        self._is_guided = state.model.hparams.is_guided

    def add(self, shard: Shard, scale: tf.Tensor) -> None:
        """Adds a shard's loss and gradient to the sums of this replica.

        Args:
            shard: Shard, whose number of rows is a multiple of `num_parts`.
            scale: float32 [], of the loss.
        """
        parts = [
            self._loss_and_gradients(self._part(shard, n), scale)
            for n in range(self._num_parts)
        ]
        for total, *values in zip(self._sums.variables, *parts, strict=True):
            total.assign_add(tf.add_n(values))

    def _part(self, shard: Shard, n: int) -> Shard:
        """Returns the n-th part of a shard, with a dropout seed of its own."""
        P = self._num_parts
        # Rows in turn, so that none of the parts waits for another.
        return Shard(
            source_ids=shard.source_ids[n::P],
            target_ids=shard.target_ids[n::P],
            seed=tf.stack([shard.seed[0], shard.seed[1] * P + n]),
            is_linked=shard.is_linked[n::P] if self._is_guided else (),
        )

    def _loss_and_gradients(
        self, part: Shard, scale: tf.Tensor
    ) -> list[tf.Tensor]:
        """Returns the sum of the loss, the number of tokens, the gradients."""
        with (
            seeded_dropout(self._model, part.seed),
            tf.GradientTape() as tape,
            record_weights() if self._is_guided else nullcontext() as recorded,
        ):
            x_BTD = self._model.decode(
                (part.source_ids, shift_right(part.target_ids)), training=True
            )
            x_BTD, embedding_VD = self._model.output_embedding.factors(
                x_BTD, self._model.num_target_ids
            )
            loss_sum, tokens = loss.projected_cross_entropy(
                x_BTD,
                embedding_VD,
                part.target_ids,
                label_smoothing=self._model.hparams.label_smoothing,
                loss_scale=scale if self._is_scaled else None,
                chunk_logits=self._chunk_logits,
            )
            if self._is_guided:
                loss_sum += guided_loss(
                    self._model,
                    recorded,
                    target_ids_BT=part.target_ids,
                    is_linked_BTS=part.is_linked,
                )
            scaled_loss = loss_sum * scale
        gradients = tape.gradient(scaled_loss, [w.value for w in self._weights])
        return [loss_sum, tokens, *map(tf.convert_to_tensor, gradients)]
