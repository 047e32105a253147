"""How much of a batch is computed at once."""

import dataclasses
import math

import pytest

from t2t_lite.errors import InputError
from t2t_lite.hardware import GIB, Hardware
from t2t_lite.hparams import PRESETS, HParams
from t2t_lite.model import loss
from t2t_lite.optimization.micro_batches import (
    chunk_logits,
    fitting_micro_batch_tokens,
    num_micro_batches,
    peak_bytes,
    why_so_many,
    with_fitting_parts,
)

_CPU = Hardware("CPU", 16 * GIB, num_cores=2)
_V = 37_000


def _gpu(gigabytes):
    return Hardware("GPU", gigabytes * 1e9, num_cores=16)


@pytest.mark.parametrize("num_replicas", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 24, 25])
@pytest.mark.parametrize("length", [5, 64, 100])
def test_there_are_as_few_micro_batches_as_hold_the_batch(
    batch_size, length, num_replicas
):
    count = num_micro_batches(batch_size, length, 64, num_replicas=num_replicas)

    def holds_batch(count):
        rows = math.ceil(batch_size / (count * num_replicas))
        return rows == 1 or rows * length <= 64

    assert holds_batch(count)
    assert count == 1 or not holds_batch(count - 1)


@pytest.mark.parametrize(
    ("preset", "precision", "by_gigabytes"),
    [
        ("base", "float32", {8: 3125, 16: 6250, 80: 25_000, 139: 25_000}),
        ("base", "bfloat16", {8: 6250, 16: 12_500, 80: 25_000, 139: 25_000}),
        ("big", "float32", {8: 781, 16: 3125, 80: 25_000, 139: 25_000}),
        ("big", "bfloat16", {8: 1562, 16: 6250, 80: 25_000, 139: 25_000}),
    ],
)
def test_a_gpu_takes_the_whole_update_where_it_fits(
    preset, precision, by_gigabytes
):
    hparams = PRESETS[f"transformer_{preset}"]
    chosen = {
        n: fitting_micro_batch_tokens(hparams, _V, precision, hardware=_gpu(n))
        for n in by_gigabytes
    }
    assert chosen == by_gigabytes


@pytest.mark.parametrize(
    ("num_cores", "largest"), [(1, 2048), (2, 4096), (8, 16_384), (64, 25_000)]
)
def test_each_part_of_a_cpu_takes_2048_tokens_at_most(num_cores, largest):
    hardware = Hardware("CPU", 1000 * GIB, num_cores)
    tokens = fitting_micro_batch_tokens(
        HParams(), _V, "float32", hardware=hardware
    )
    assert tokens == largest


def test_micro_batches_shrink_with_memory():
    sizes = [
        fitting_micro_batch_tokens(
            HParams(),
            _V,
            "float32",
            hardware=Hardware("CPU", n * GIB, num_cores=2),
        )
        for n in (64, 16, 8, 4)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] > 0


def _smallest(kind, share):
    """Returns the micro-batch where memory is a share of what 256 take."""
    on = Hardware(kind, 1e12, num_cores=2)
    peak = peak_bytes(HParams(), _V, "float32", hardware=on, tokens=256)
    short = dataclasses.replace(on, memory_bytes=share * peak)
    return fitting_micro_batch_tokens(HParams(), _V, "float32", hardware=short)


def test_the_smallest_micro_batch_is_taken_if_the_memory_may_do():
    assert _smallest("CPU", share=1.01) == 256
    assert _smallest("GPU", share=0.1) < 256 * 2


def test_a_cpu_is_not_given_what_its_memory_cannot_hold():
    with pytest.raises(InputError, match=r"about .* GiB, but only .* GiB are"):
        _smallest("CPU", share=0.99)


def test_parts_leave_memory_for_activations():
    many = Hardware("CPU", 1e12, num_cores=16)

    def parts(memory_bytes):
        found = with_fitting_parts(
            many, HParams(), _V, memory_bytes=memory_bytes
        )
        return found.num_parts

    sizes = [parts(n * GIB) for n in (64, 16, 8, 4, 1)]
    assert sizes[0] == 16
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert set(sizes) - {1, 16}


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        (25_000, "all of it"),
        (4096, "as many as suit its cores"),
        (2048, "as many as memory holds"),
    ],
)
def test_the_reason_for_a_size_is_told(tokens, why):
    assert why_so_many(tokens, HParams(), _CPU) == why


def test_a_text_of_small_batches_is_taken_whole():
    hparams = HParams(tokens_per_batch=300)
    assert (
        fitting_micro_batch_tokens(hparams, _V, "float32", hardware=_CPU) == 300
    )


def test_the_chunk_of_the_loss_follows_the_memory_of_a_gpu():
    chunks = [chunk_logits(_gpu(n)) / 2**20 for n in (8, 16, 80, 139)]
    assert chunks == pytest.approx([19.9, 39.7, 198.7, 345.2], abs=0.1)
    assert chunk_logits(_CPU) == loss.CHUNK_LOGITS


def test_parts_side_by_side_need_gradients_each():
    one, four = (
        peak_bytes(
            HParams(),
            _V,
            "float32",
            hardware=Hardware("CPU", 16 * GIB, cores),
            tokens=4096,
        )
        for cores in (1, 4)
    )
    assert four - one > 3 * _V * 512 * 4


def test_a_large_vocabulary_takes_no_more_memory_for_each_token():
    def bytes_per_token(vocabulary_size):
        first, second = (
            peak_bytes(
                HParams(),
                vocabulary_size,
                "float32",
                hardware=_CPU,
                tokens=tokens,
            )
            for tokens in (2048, 4096)
        )
        return (second - first) / 2048

    assert bytes_per_token(37_000) == bytes_per_token(370_000) > 0


def test_half_precision_takes_less_memory():
    float32, bfloat16 = (
        peak_bytes(HParams(), _V, precision, hardware=_CPU, tokens=4096)
        for precision in ("float32", "bfloat16")
    )
    assert bfloat16 < float32
