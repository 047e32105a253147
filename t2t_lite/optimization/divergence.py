"""When a run has become useless, judging by the numbers of its updates."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from t2t_lite.errors import InputError
from t2t_lite.optimization.update import Update

_DECAY = 0.99  # The mean is over about the last 100 updates.
_SETTLED = 50.0  # Weight that the mean needs before it judges any update.


class DivergenceError(InputError):
    """An update shows that the model is no longer of any use.

    Args:
        reason: what shows it, such as "the loss is not finite".
        step: number of the update.
        update: Update, if it is known.
    """

    def __init__(self, reason: str, step: int, update: Update | None = None):
        super().__init__(f"{reason} at step {step}")
        self.reason, self.step, self.update = reason, step, update


class LossMean(NamedTuple):
    """The running mean of the loss, in which recent updates count most.

    >>> LossMean().after(8.0).after(4.0)
    LossMean(mean=5.989949748743719, weight=1.99)
    """

    mean: float = 0.0  # nats a token
    weight: float = 0.0  # updates that it stands for; 100 in the long run

    def after(self, loss: float) -> "LossMean":
        """Returns the mean after one more loss.

        It is over all losses so far, each weighing 0.99 times as much as the
        next.
        """
        weight = _DECAY * self.weight + 1
        return LossMean(self.mean + (loss - self.mean) / weight, weight)

    @property
    def is_settled(self) -> bool:
        """Whether it stands for enough updates, as it does after 69."""
        return self.weight >= _SETTLED

    @classmethod
    def restored(cls, tensors: Mapping[str, Any]) -> "LossMean":
        """Returns the mean that `tensors` gave; a new one if they have none.

        Args:
            tensors: those of a checkpoint.
        """
        return cls(
            float(tensors.get("loss_mean", 0.0)),
            float(tensors.get("loss_mean_weight", 0.0)),
        )

    def tensors(self) -> dict[str, np.generic]:
        """Returns what a checkpoint keeps."""
        return {
            "loss_mean": np.float64(self.mean),
            "loss_mean_weight": np.float64(self.weight),
        }


def divergence_reason(
    loss: float, norms: Sequence[float], mean: LossMean, factor: float | None
) -> str | None:
    """Returns why an update shows that the run diverged; None if it does not.

    Args:
        loss: nats a token.
        norms: of the gradients of all layers.
        mean: LossMean of the updates before.
        factor: how many times the mean a loss may be; None for no limit.

    >>> divergence_reason(23.1, [0.5], LossMean(5.2, weight=90.0), factor=4.0)
    'the loss of 23.1 is above 4 times its running mean of 5.2'
    >>> divergence_reason(5.3, [0.5, math.inf], LossMean(), factor=None)
    'the gradient norm is not finite'
    """
    if not math.isfinite(loss):
        return "the loss is not finite"
    if not np.isfinite(norms).all():
        return "the gradient norm is not finite"
    if factor is None or not mean.is_settled or loss <= factor * mean.mean:
        return None
    return (
        f"the loss of {loss:.4g} is above {factor:g} times its running mean of "
        f"{mean.mean:.4g}"
    )
