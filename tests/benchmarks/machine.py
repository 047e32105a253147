"""Prints the machine of a benchmark: without it, figures mean nothing.

    python tests/benchmarks/machine.py

prints how fast its CPU multiplies matrices.
"""

import importlib.util
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

_CPUINFO = pathlib.Path("/proc/cpuinfo")  # On Linux.
# What decides how fast matrices are multiplied, and its flag on Linux.
_INSTRUCTIONS = {
    "AVX-512": "avx512f",
    "AVX-512 for bfloat16": "avx512_bf16",
    "AMX": "amx_tile",
}


_PRECISIONS = ("float32", "bfloat16")
_SIZE, _PRODUCTS = 2048, 20


def print_machine(details: str = "") -> None:
    """Prints which machine this is; call it once, before any figure.

    Where there is TensorFlow, a process of its own measures the peaks, so that
    the benchmark's own is left as it was.

    Args:
        details: what else the figures depend on.
    """
    cpuinfo = _CPUINFO.read_text("utf-8") if _CPUINFO.exists() else ""
    description = f"{os.cpu_count()} cores, {describe_processor(cpuinfo)}"
    print(f"{description}; {details}" if details else description, flush=True)
    if importlib.util.find_spec("tensorflow") is not None:
        quiet = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run(
            [sys.executable, __file__], check=True, env=os.environ | quiet
        )


def peak_flops(precision: str) -> float:
    """Returns the operations per second of the fastest of 20 products.

    Args:
        precision: "float32" or "bfloat16".
    """
    import tensorflow as tf

    x = tf.cast(tf.random.normal((_SIZE, _SIZE)), precision)
    product = tf.function(
        lambda: tf.reduce_sum(tf.matmul(x, x)), autograph=False
    )

    def seconds() -> float:
        start = time.perf_counter()
        product().numpy()
        return time.perf_counter() - start

    return 2 * _SIZE**3 / min(seconds() for _ in range(_PRODUCTS))


def describe_processor(cpuinfo: str) -> str:
    """Returns which processor it is, and which instructions it has.

    >>> describe_processor("model name: Xeon\\nflags: avx512f amx_tile")
    'Xeon (AVX-512: yes, AVX-512 for bfloat16: no, AMX: yes)'

    Args:
        cpuinfo: what /proc/cpuinfo says; "" where there is none.
    """
    model = re.search(r"^model name\s*: *(.*)$", cpuinfo, re.M)
    name = model[1] if model else platform.machine()
    flags = re.search(r"^flags\s*: *(.*)$", cpuinfo, re.M)
    if flags is None:
        return name
    present = flags[1].split()
    instructions = ", ".join(
        f"{name}: {'yes' if flag in present else 'no'}"
        for name, flag in _INSTRUCTIONS.items()
    )
    return f"{name} ({instructions})"


def main():
    """Prints one line with the peak of each precision."""
    peaks = (f"{p} {peak_flops(p) / 1e9:.0f} GFLOP/s" for p in _PRECISIONS)
    print(f"peaks of its CPU: {', '.join(peaks)}")


if __name__ == "__main__":
    main()
