"""What a training run cost in operations, beside the paper's runs."""

import math

from t2t_lite import paper


def describe_cost(
    flops: float, device_hours: float, sustained_tflops: float | None = None
) -> str:
    """Returns the cost of a run as lines for a reader, the paper's beside it.

    >>> print(describe_cost(5.2e16, device_hours=2.0, sustained_tflops=9.5))
    Training cost, matrix products: 5.20e+16 FLOPs
    Training cost, 2.00 device hours at 9.5 TFLOPS: 6.84e+16 FLOPs
    Training cost in the paper, by time: base 3.3e+18, big 2.3e+19 FLOPs

    Args:
        flops: the operations of all updates; NaN if not known.
        device_hours: the sum over devices; NaN if not known.
        sustained_tflops: what one device sustains, in 10^12 operations a
            second; None to leave the estimate by time out.
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
    base = paper.TABLE_2["transformer_base"].training_flops
    big = paper.TABLE_2["transformer_big"].training_flops
    lines.append(
        f"Training cost in the paper, by time: base {base:.1e}, big {big:.1e} "
        "FLOPs"
    )
    return "\n".join(lines)


def _flops_text(flops: float) -> str:
    if math.isnan(flops):
        return "not known (begun by a version that did not count)"
    return f"{flops:.2e} FLOPs"
