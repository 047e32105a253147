"""What a training run cost in operations, next to the paper's runs."""

import dataclasses
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from t2t_lite import paper


@dataclasses.dataclass
class Cost:
    """What a run has cost up to now, including its earlier processes.

    The field `flops` is the tensor "training_flops" of a checkpoint.
    """

    num_devices: int
    flops: float = 0.0  # of all updates' matrix products; NaN if not known
    earlier_device_seconds: float = 0.0  # of earlier processes; NaN: not known
    started_at: float = dataclasses.field(default_factory=time.monotonic)

    @classmethod
    def restored(cls, tensors: Mapping[str, Any], num_devices: int) -> "Cost":
        """Returns the cost that `tensors` gave, for a process to add to.

        Args:
            tensors: those of a checkpoint; those of version 0.1.0 may lack it.
            num_devices: of this process' run.
        """
        return cls(
            num_devices,
            float(tensors.get("training_flops", math.nan)),
            float(tensors.get("device_seconds", math.nan)),
        )

    @property
    def device_seconds(self) -> float:
        """Wall time of training, summed over devices.

        It includes evaluation on dev and saving, but not preparation.
        """
        seconds = time.monotonic() - self.started_at
        return self.earlier_device_seconds + self.num_devices * seconds

    def tensors(self) -> dict[str, np.float64]:
        """Returns what a checkpoint keeps."""
        return {
            # A big model's operations are more than an int64 holds.
            "training_flops": np.float64(self.flops),
            "device_seconds": np.float64(self.device_seconds),
        }


def describe_cost(
    flops: float, device_hours: float, sustained_tflops: float | None = None
) -> str:
    """Returns the cost of a run and of the paper's, as lines for a reader.

    >>> print(describe_cost(5.2e16, device_hours=2.0, sustained_tflops=9.5))
    Training cost, matrix products: 5.20e+16 FLOPs
    Training cost, 2.00 device hours at 9.5 TFLOPS: 6.84e+16 FLOPs
    Training cost in the paper, by time: base 3.3e+18, big 2.3e+19 FLOPs

    Args:
        flops: the operations of all updates; NaN if not known.
        device_hours: the sum over devices; NaN if not known.
        sustained_tflops: what one device sustains, in 10^12 operations a
            second; None to omit the estimate by time.
    """
    lines = [f"Training cost, matrix products: {_flops_text(flops)}"]
    if sustained_tflops is not None:
        by_time = paper.sustained_flops(
            device_hours, devices=1, tflops=sustained_tflops
        )
        lines.append(
            f"Training cost, {device_hours:.2f} device hours at "
            f"{sustained_tflops:g} TFLOPS: {_flops_text(by_time)}"
        )
    lines.append(
        f"Training cost in the paper, by time: {paper.training_flops_text()}"
    )
    return "\n".join(lines)


def _flops_text(flops: float) -> str:
    if math.isnan(flops):
        return (
            "not known (the run was started by a version that did not count "
            "operations)"
        )
    return f"{flops:.2e} FLOPs"
