"""A process finds its device, memory, cores and faster precision."""

import math
import mmap
import os

import pytest
import tensorflow as tf

from t2t_lite import hardware
from t2t_lite.hardware import GIB, Hardware, find_hardware


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(
        hardware, "_CONTAINER_LIMITS", (tmp_path / "none", limit)
    )
    # What is available changes while other programs run.
    monkeypatch.setattr(hardware, "_available_bytes", lambda: 4 * GIB)
    monkeypatch.setattr(hardware, "_resident_bytes", lambda: 1 * GIB)
    limit.write_text("max\n")
    assert hardware.free_bytes() == 5 * GIB
    limit.write_text("1000\n")
    assert hardware.free_bytes() == 1000


@pytest.mark.parametrize(
    ("limit", "expected"), [(None, 5 * GIB), (8, 5 * GIB), (0.5, GIB / 2)]
)
def test_a_limit_takes_memory_away_and_adds_none(monkeypatch, limit, expected):
    monkeypatch.setattr(hardware, "free_bytes", lambda: 5 * GIB)
    assert find_hardware(limit).memory_bytes == expected


def test_cores_that_the_process_may_not_use_do_not_count(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7})
    assert find_hardware().num_cores == 3


def test_a_gpu_counts_by_its_own_memory(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: ["one"])
    monkeypatch.setattr(hardware, "_gpu_bytes", lambda: 80 * GIB)
    found = find_hardware()
    assert (found.kind, found.memory_bytes) == ("GPU", 80 * GIB)


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("model name\t: A\nflags\t\t: sse2 avx2 fma\n", True),
        ("flags\t\t: avx2 avx512_vnni\nbugs\t\t: avx\n", False),
        ("flags\t\t: avx2 avx_vnni fma\n", False),
        ("Features\t: asimd\n", False),  # An ARM CPU.
        (None, False),
    ],
)
def test_what_has_no_instructions_for_int8_is_known(
    monkeypatch, tmp_path, cpuinfo, expected
):
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(hardware, "_CPUINFO", path)
    if cpuinfo is not None:
        path.write_text(cpuinfo)
    assert hardware.lacks_vnni() == expected


def test_one_part_keeps_a_gpu_busy():
    assert Hardware("GPU", math.inf, num_cores=16).num_parts == 1


def use_memory(num_bytes):
    """Uses memory and gives it back, which malloc does not always do."""
    with mmap.mmap(-1, num_bytes) as memory:
        for page in range(0, num_bytes, mmap.PAGESIZE):
            memory[page] = 1


def test_the_peak_is_what_was_used_since_it_was_reset():
    use_memory(200 * 2**20)
    before = hardware.peak_memory_bytes("CPU")
    hardware.reset_peak_memory("CPU")
    after = hardware.peak_memory_bytes("CPU")
    assert after <= before - 100 * 2**20
    use_memory(100 * 2**20)
    assert hardware.peak_memory_bytes("CPU") >= after + 50 * 2**20


@pytest.mark.parametrize("faster", ["float32", "bfloat16"])
def test_the_faster_precision_is_found_by_trial(monkeypatch, faster):
    trials = []

    def seconds(precision, *sizes):
        trials.append(precision)
        assert sizes == (256, 512)
        is_first = len(trials) <= 2  # Warming up is slow in both.
        return 9.0 if is_first else 1.0 + (precision != faster)

    monkeypatch.setattr(hardware, "_product_seconds", seconds)
    assert hardware.faster_precision(256, 512) == faster
    assert trials[:4] == ["float32", "bfloat16"] * 2  # In turn.


def test_what_is_hardly_faster_is_not_taken(monkeypatch):
    seconds = {"float32": 1.0, "bfloat16": 0.95}
    monkeypatch.setattr(
        hardware, "_product_seconds", lambda precision, *_: seconds[precision]
    )
    assert hardware.faster_precision(256, 512) == "float32"


def test_xla_on_a_cpu_takes_float32_without_a_trial(monkeypatch):
    monkeypatch.setattr(hardware, "_product_seconds", pytest.fail)
    monkeypatch.setattr(
        hardware, "find_hardware", lambda: hardware.Hardware("CPU", 1e9, 2)
    )
    assert hardware.faster_precision(256, 512, xla=True) == "float32"


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_product_that_is_tried_is_that_of_the_model(monkeypatch, precision):
    products, matmul = [], tf.matmul

    def record(x_ND, matrix_DF):
        products.append((x_ND.shape[1:], matrix_DF.shape, x_ND.dtype.name))
        return matmul(x_ND, matrix_DF)

    monkeypatch.setattr(tf, "matmul", record)
    assert hardware._product_seconds(precision, 64, 128) > 0
    assert set(products) == {((64,), (64, 128), precision)}
