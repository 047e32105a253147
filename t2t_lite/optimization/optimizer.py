"""Adam and the learning rate of the paper, which may cool down."""

import math
import numbers
from typing import Any

import keras
import numpy as np
from keras import ops

from t2t_lite.errors import require, require_int, require_positive
from t2t_lite.hparams import HParams
from t2t_lite.tensor import Tensor, known_values


@keras.saving.register_keras_serializable("t2t_lite")
class NoamSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """A rate that grows linearly through the warm-up, then falls as step^-0.5.

    rate = scale * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5); the
    first update is step 1.

    Args:
        d_model: D.
        warmup_steps: updates until the rate is highest.
        scale: a factor of the rate, 1 in the paper.

    Source: section 5.3, Eq. 3.
    """

    def __init__(
        self, d_model: int, warmup_steps: int = 4000, scale: float = 1.0
    ):
        super().__init__()
        sizes = {"d_model": d_model, "warmup_steps": warmup_steps}
        for name, size in sizes.items():
            # NaN is refused too.
            is_number = isinstance(size, numbers.Real)
            holds = is_number and size is not True and 1 <= size < math.inf
            rule = f"{name} must be a finite number, at least 1"
            require(rule, holds, **{name: size})
        require_positive(scale=scale)
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.scale = scale

    def __call__(self, updates_done: int | Tensor) -> Tensor:
        """Returns the rate of update `updates_done` + 1, float32 []."""
        known = known_values(updates_done)
        if isinstance(known, np.ndarray):
            is_number = known.dtype.kind in "iuf"
            holds = is_number and bool((known >= 0).all())
            rule = "updates_done must be at least 0"
            require(rule, holds, updates_done=updates_done)
        step = ops.cast(updates_done, "float32") + 1
        rising = step * self.warmup_steps**-1.5
        return (
            self.scale
            * self.d_model**-0.5
            * ops.minimum(ops.rsqrt(step), rising)
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, as Keras saves them."""
        return {
            "d_model": self.d_model,
            "warmup_steps": self.warmup_steps,
            "scale": self.scale,
        }


@keras.saving.register_keras_serializable("t2t_lite")
class Cooldown(keras.optimizers.schedules.LearningRateSchedule):
    """Another schedule's rate, scaled down linearly in the last updates.

    The last update has 1 / cooldown_steps of it, and later ones have 0.

    Args:
        schedule: the other LearningRateSchedule.
        steps: int, how many updates there are.
        cooldown_steps: int, how many of these count as the last, at least 1;
            all of them if there are fewer.

    Deviation: the paper's rate does not fall to 0. That it does improves the
    last weights (Hägele et al. 2024, "Scaling Laws and Compute-Optimal Training
    Beyond Fixed Training Durations").
    """

    def __init__(
        self,
        schedule: keras.optimizers.schedules.LearningRateSchedule,
        steps: int,
        cooldown_steps: int,
    ):
        super().__init__()
        require_int(1, steps=steps, cooldown_steps=cooldown_steps)
        self.schedule = schedule
        self.steps, self.cooldown_steps = int(steps), int(cooldown_steps)

    def __call__(self, updates_done: int | Tensor) -> Tensor:
        """Returns the rate of update `updates_done` + 1, float32 []."""
        left = self.steps - ops.cast(updates_done, "float32")
        cooling = min(self.cooldown_steps, self.steps)
        share = ops.clip(left / cooling, 0.0, 1.0)
        return share * self.schedule(updates_done)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, as Keras saves them."""
        serialize = keras.optimizers.schedules.serialize
        return {
            "schedule": serialize(self.schedule),
            "steps": self.steps,
            "cooldown_steps": self.cooldown_steps,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> "Cooldown":
        """Returns the schedule of `get_config`."""
        deserialize = keras.optimizers.schedules.deserialize
        schedule = deserialize(config["schedule"], custom_objects)
        return cls(**config | {"schedule": schedule})


def schedule(
    hparams: HParams,
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Returns the learning rate of these settings."""
    noam = NoamSchedule(
        d_model=hparams.d_model,
        warmup_steps=hparams.warmup_steps,
        scale=hparams.learning_rate_scale,
    )
    if hparams.cooldown_steps == 0:
        return noam
    return Cooldown(noam, hparams.steps, hparams.cooldown_steps)


class _FusedAdam(keras.optimizers.Adam):
    """Adam that updates a weight by one TensorFlow operation.

    Keras takes a dozen: on a CPU each is a pass over memory, on a GPU a launch.
    This one is given the sums of all replicas' gradients, and updates float32
    keras.Variables by dense gradients, in a replica's context.
    """

    def _backend_update_step(
        self, grads: Any, trainable_variables: Any, learning_rate: Any
    ) -> None:
        """Updates the weights; Keras would add up the gradients first."""
        import tensorflow as tf  # Schedules and Keras' Adam need no backend.

        step = ops.cast(self.iterations, "float32") + 1
        scalars = {
            "lr": learning_rate,
            "beta1": self.beta_1,
            "beta2": self.beta_2,
            "beta1_power": ops.power(self.beta_1, step),
            "beta2_power": ops.power(self.beta_2, step),
            "epsilon": self.epsilon,
        }

        def update(
            weight: Any, m: Any, v: Any, grad: Any, scalars: Any
        ) -> None:
            tf.raw_ops.ResourceApplyAdam(
                var=weight.handle, m=m.handle, v=v.handle, grad=grad, **scalars
            )

        def update_all(strategy: Any, grads: Any, scalars: Any) -> None:
            for weight, grad in zip(trainable_variables, grads, strict=True):
                index = self._get_variable_index(weight)
                m, v = self._momentums[index], self._velocities[index]
                strategy.extended.update(
                    weight.value,
                    update,
                    args=(m.value, v.value, grad, scalars),
                    group=False,
                )

        replica = tf.distribute.get_replica_context()
        replica.merge_call(update_all, args=(grads, scalars))


def adam(
    hparams: HParams, gradients_are_summed: bool = False
) -> keras.optimizers.Adam:
    """Returns the paper's Adam, with its learning rate, of these settings.

    Args:
        hparams: HParams.
        gradients_are_summed: whether each replica gives it the sums of all
            replicas' gradients, instead of its own. Each weight, float32, is
            then updated by one TensorFlow operation.

    Source: section 5.3.
    """
    kind = _FusedAdam if gradients_are_summed else keras.optimizers.Adam
    return kind(
        schedule(hparams),
        beta_1=hparams.adam_beta1,
        beta_2=hparams.adam_beta2,
        epsilon=hparams.adam_epsilon,
        name="adam",
    )
