"""The graphs that every replica runs for an update."""

from typing import NamedTuple

import tensorflow as tf

from t2t_lite.optimization.gradient_norms import GradientNorms
from t2t_lite.optimization.shard_gradients import ShardGradients
from t2t_lite.optimization.sharding import Batch, Sharding
from t2t_lite.optimization.strategies import (
    first_local,
    on_replicas,
    sum_over_replicas,
)
from t2t_lite.optimization.sums import Sums
from t2t_lite.optimization.training_state import TrainingState


class Applied(NamedTuple):
    """What the end of an update reports; it may still be computed."""

    loss: tf.Tensor  # float32 [], nats a token
    tokens: tf.Tensor  # float32 [], target tokens
    gradient_norms: tf.Tensor  # float32 [G], those of GradientNorms
    stop_requests: tf.Tensor  # float32 [], replicas whose process wants to stop


class Totals(NamedTuple):
    """The Sums of all replicas."""

    loss: tf.Tensor  # float32 [], nats
    tokens: tf.Tensor  # float32 [], target tokens
    gradients: list[tf.Tensor]  # float32, in the shapes of the weights


class UpdateGraphs:
    """Adds up the gradients of micro-batches, and applies them to the weights.

    Args:
        state: TrainingState.
        sharding: Sharding.
        chunk_logits: int, that of `projected_cross_entropy`.
        xla: bool, whether XLA compiles the forward and backward pass.
    """

    def __init__(
        self,
        state: TrainingState,
        sharding: Sharding,
        *,
        chunk_logits: int | None = None,
        xla: bool = False,
    ):
        self._state, self._sharding = state, sharding
        self._is_traced = False
        self.gradient_norms = GradientNorms([w.path for w in state.weights])
        with state.strategy.scope():
            self.sums = Sums.zeros(weight.shape for weight in state.weights)
        shard_gradients = ShardGradients(
            state,
            self.sums,
            num_parts=sharding.num_parts,
            chunk_logits=chunk_logits,
        )
        add_shard = tf.function(
            shard_gradients.add,
            input_signature=[sharding.shard_spec(), tf.TensorSpec([])],
            jit_compile=xla or None,
            autograph=False,
        )
        self._run_add = on_replicas(
            state.strategy,
            # Given a tf.function itself, it would be traced once more, with the
            # arguments of all replicas.
            lambda shard, scale: add_shard(shard, scale),
            # Otherwise the first shape would get its own graph, optimized in
            # ways that round differently: a resumed run, which sees another
            # shape first, would drift from the one that it resumes.
            [sharding.spec(), tf.TensorSpec([])],
        )
        self._run_apply = on_replicas(state.strategy, self._apply)
        self._run_is_finite = on_replicas(
            state.strategy, self.sums.gradients_are_finite
        )
        self._run_clear = on_replicas(state.strategy, self.sums.clear)

    def add(self, batch: Batch, n: int, num_micro_batches: int) -> None:
        """Adds the n-th micro-batch of a batch to the sums.

        Args:
            batch: Batch.
            n: int, from 0.
            num_micro_batches: int, how many there are.
        """
        shards = self._sharding.shards(
            batch, n, num_micro_batches, step=self._state.step
        )
        self._run_add(shards, tf.constant(self._state.loss_scale.scale))

    def apply(self, scale: float, stop_request: float) -> Applied:
        """Updates the weights by the sums of all replicas, and clears the sums.

        Args:
            scale: of the loss, when the gradients were added.
            stop_request: 1 if this process wants to stop, else 0.
        """
        totals = self._run_apply(tf.constant(scale), tf.constant(stop_request))
        return Applied(
            *(first_local(self._state.strategy, total) for total in totals)
        )

    def _apply(self, scale: tf.Tensor, stop_request: tf.Tensor) -> Applied:
        """Does on a replica what `apply` does; scalars are float32 []."""
        loss_sum, tokens, stop_requests = sum_over_replicas(
            [self.sums.loss, self.sums.tokens, stop_request]
        )
        divisor = tf.maximum(tokens, 1.0) * scale
        gradients = sum_over_replicas(
            [total / divisor for total in self.sums.gradients]
        )
        self._state.optimizer.apply(gradients, self._state.weights)
        self.sums.clear()
        return Applied(
            loss=loss_sum / tf.maximum(tokens, 1.0),
            tokens=tokens,
            gradient_norms=self.gradient_norms(gradients),
            stop_requests=stop_requests,
        )

    def gradients_are_finite(self) -> bool:
        """Returns whether the gradients that were added are finite."""
        return bool(first_local(self._state.strategy, self._run_is_finite()))

    def clear(self) -> None:
        """Forgets what was added since the last update."""
        self._run_clear()

    def gradients(self) -> list[tf.Tensor]:
        """Returns the gradients of the loss over all that was added.

        Returns:
            list of float32 tensors, one for each weight, in nats a token.
        """
        totals = self.totals()
        divisor = totals.tokens * self._state.loss_scale.scale
        return [total / divisor for total in totals.gradients]

    def totals(self) -> Totals:
        """Returns the sums over all replicas."""
        strategy = self._state.strategy
        parts = strategy.run(
            lambda: [tf.identity(total) for total in self.sums.variables]
        )
        loss_sum, tokens, *gradients = (
            strategy.reduce(tf.distribute.ReduceOp.SUM, part, axis=None)
            for part in parts
        )
        return Totals(loss_sum, tokens, gradients)

    def wait(self) -> None:
        """Waits until all that was added has been computed."""
        strategy = self._state.strategy
        first_local(strategy, strategy.run(self.sums.loss.read_value)).numpy()

    def trace(self) -> None:
        """Traces all graphs of an update once, before the first update.

        What was added is forgotten. XLA compiles the graphs later, for each
        shape that it meets.

        Raises:
            ValueError: there was an update.
        """
        if not self._is_traced:
            self.rehearse_apply()
            self.add(self._sharding.padding(1), n=0, num_micro_batches=1)
            self.clear()
            self._is_traced = True

    def rehearse_apply(self) -> None:
        """Does what ends an update, without gradients, and waits for it.

        Before the first update this leaves no trace: sums and Adam's moments
        are zero, so the weights stay the same.

        Raises:
            ValueError: there was an update.
        """
        if self._state.step:
            raise ValueError(f"there were {self._state.step} updates")
        self.clear()
        self.apply(scale=1.0, stop_request=0.0).loss.numpy()
        self._state.optimizer.iterations.assign(0)
