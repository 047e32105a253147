"""Prints the machine of a benchmark: without it, figures mean nothing."""

import os
import pathlib
import platform
import re

_CPUINFO = pathlib.Path("/proc/cpuinfo")  # On Linux.
# What decides how fast matrices are multiplied, and its flag on Linux.
_INSTRUCTIONS = {
    "AVX-512": "avx512f",
    "AVX-512 for bfloat16": "avx512_bf16",
    "AMX": "amx_tile",
}


def print_machine(details: str = "") -> None:
    """Prints which machine this is; call it once, before any figure.

    Args:
        details: what else the figures depend on.
    """
    cpuinfo = _CPUINFO.read_text("utf-8") if _CPUINFO.exists() else ""
    description = f"{os.cpu_count()} cores, {describe_processor(cpuinfo)}"
    print(f"{description}; {details}" if details else description, flush=True)


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
