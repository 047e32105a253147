"""Benchmarks print the processor, and its instructions for matrix products."""

import importlib.util
import platform
import re

import pytest
from benchmarks.machine import describe_processor, print_machine


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            "fpu avx512f avx512_bf16 amx_tile",
            "AVX-512: yes, AVX-512 for bfloat16: yes, AMX: yes",
        ),
        (
            "fpu avx2 avx512_bf16_of_another_name",
            "AVX-512: no, AVX-512 for bfloat16: no, AMX: no",
        ),
    ],
)
def test_the_processor_is_described_by_what_multiplies(flags, expected):
    cpuinfo = f"""\
processor\t: 0
model name\t: Some Processor @ 2.00GHz
flags\t\t: {flags}

processor\t: 1
model name\t: Some Processor @ 2.00GHz
flags\t\t: {flags}
"""
    described = describe_processor(cpuinfo)
    assert described == f"Some Processor @ 2.00GHz ({expected})"


def test_without_cpuinfo_it_is_what_python_says():
    assert describe_processor("") == platform.machine()


def test_the_machine_is_one_line_with_what_else_matters(capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    print_machine("TensorFlow 2.21")
    (line,) = capsys.readouterr().out.splitlines()
    assert " cores, " in line
    assert line.endswith("; TensorFlow 2.21")


@pytest.mark.slow  # In a process of its own.
def test_its_peaks_stand_below(capfd):
    print_machine()
    _, line = capfd.readouterr().out.splitlines()
    found = re.fullmatch(
        r"peaks of its CPU: float32 (\d+) GFLOP/s, bfloat16 (\d+) GFLOP/s", line
    )
    assert min(map(int, found.groups())) > 0
