"""What replicas add up over the micro-batches of an update."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import tensorflow as tf

from t2t_lite.optimization.strategies import sum_over_replicas


class Sums(NamedTuple):
    """Sums over micro-batches, which each replica keeps for itself."""

    loss: tf.Variable  # float32 [], nats
    tokens: tf.Variable  # float32 [], target tokens
    gradients: list[tf.Variable]  # float32, in the shapes of the weights

    @classmethod
    def zeros(cls, shapes: Iterable[Sequence[int]]) -> "Sums":
        """Returns sums that are 0; call this in the scope of a strategy.

        Args:
            shapes: of the weights.
        """
        return cls(_zeros(()), _zeros(()), [_zeros(shape) for shape in shapes])

    @property
    def variables(self) -> list[tf.Variable]:
        """The loss, the tokens and the gradients."""
        return [self.loss, self.tokens, *self.gradients]

    def clear(self) -> None:
        """Sets all sums of this replica to 0."""
        for total in self.variables:
            total.assign(tf.zeros_like(total))

    def gradients_are_finite(self) -> tf.Tensor:
        """Returns whether the gradients of all replicas are finite, bool []."""
        is_finite = tf.reduce_all(
            [
                tf.reduce_all(tf.math.is_finite(total))
                for total in self.gradients
            ]
        )
        (failures,) = sum_over_replicas([tf.cast(~is_finite, tf.float32)])
        return tf.equal(failures, 0.0)


def _zeros(shape: Sequence[int]) -> tf.Variable:
    """Returns a variable of zeros that each replica adds to for itself."""
    return tf.Variable(
        tf.zeros(shape),
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.SUM,
    )
