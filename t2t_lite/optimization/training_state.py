"""What updates change: weights, moments of Adam, the step, the loss scale."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.model.transformer import Transformer
from t2t_lite.optimization import optimizer
from t2t_lite.optimization.loss_scale import LossScale
from t2t_lite.optimization.strategies import has_other_workers, value_from_chief
from t2t_lite.storage import model_directory


class TrainingState:
    """A model and its optimizer, as they are after some updates.

    Args:
        hparams: HParams.
        vocabulary_size: int.
        strategy: tf.distribute.Strategy.
        precision: "float32", "bfloat16" or "float16", of the computation.
        num_target_ids: int, that of Transformer.
    """

    def __init__(
        self,
        hparams: HParams,
        vocabulary_size: int,
        strategy: tf.distribute.Strategy,
        *,
        precision: str = "float32",
        num_target_ids: int | None = None,
    ):
        self.strategy = strategy
        self.step = 0  # Updates done.
        self.is_scaled = precision == "float16"
        self.loss_scale = self._first_loss_scale
        keras.utils.set_random_seed(hparams.seed)
        with strategy.scope():
            self.model = Transformer(
                hparams,
                vocabulary_size,
                num_target_ids,
                dtype=model_directory.training_policy(precision),
            )
            self.model.build()
            self.weights = self.model.trainable_variables
            self.optimizer = optimizer.adam(hparams, gradients_are_summed=True)
            self.optimizer.build(self.weights)

    @property
    def _first_loss_scale(self) -> LossScale:
        return LossScale() if self.is_scaled else LossScale(1.0)

    @property
    def _variables(self) -> Sequence[keras.Variable]:
        return [*self.weights, *self.optimizer.variables]

    def weights_are_finite(self) -> bool:
        """Returns whether no weight is NaN or infinite."""
        totals = [tf.reduce_sum(tf.abs(w.value)) for w in self.weights]
        return bool(tf.reduce_all(tf.math.is_finite(tf.stack(totals))))

    def tensors(self) -> dict[str, Any]:
        """Returns all that a later process needs to `restore` this state."""
        scale = self.loss_scale.scale if self.is_scaled else 0.0
        return model_directory.named_tensors(self._variables) | {
            "step": np.int64(self.step),
            "loss_scale": np.float32(scale),
            "updates_since_scaled": np.int64(
                self.loss_scale.updates_since_scaled
            ),
        }

    def restore(self, tensors: dict[str, Any], description: str) -> None:
        """Restores the state that `tensors` returned.

        Args:
            tensors: dict of str to tensor or array.
            description: of where they come from.

        Raises:
            InputError: they are not those of this model.
        """
        model_directory.assign(self._variables, tensors, description)
        self.step = int(tensors["step"])
        scale = float(tensors.get("loss_scale", 0))
        if self.is_scaled and scale > 0:
            updates = int(tensors.get("updates_since_scaled", 0))
            self.loss_scale = LossScale(scale, updates)

    def reset(self) -> None:
        """Restores the state before the first update."""
        keras.utils.set_random_seed(self.model.hparams.seed)
        first = Transformer.from_config(self.model.get_config())
        first.build()
        for weight, before in zip(
            self.weights, first.trainable_variables, strict=True
        ):
            weight.assign(before.value)
        for variable in self.optimizer.variables:
            variable.assign(tf.zeros_like(variable.value))
        self.step, self.loss_scale = 0, self._first_loss_scale

    def copy_from_chief(self) -> None:
        """Gives every worker the chief's weights, optimizer and step."""
        if not has_other_workers(self.strategy):
            return
        for variable in self._variables:
            variable.assign(value_from_chief(self.strategy, variable.value))
        step, scale, updates = (
            value_from_chief(self.strategy, value)
            for value in (self.step, *self.loss_scale)
        )
        self.step = int(step)
        self.loss_scale = LossScale(float(scale), int(updates))
