"""How much of a batch is computed at once."""

import math

import pytest

from t2t_lite.hparams import HParams
from t2t_lite.training import micro_batches
from t2t_lite.training.micro_batches import (
    fitting_micro_batch_tokens,
    num_micro_batches,
    peak_bytes,
)


@pytest.mark.parametrize("num_replicas", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 24, 25])
@pytest.mark.parametrize("length", [5, 64, 100])
def test_there_are_as_few_micro_batches_as_hold_the_batch(
    batch_size, length, num_replicas
):
    count = num_micro_batches(batch_size, length, 64, num_replicas)

    def holds_batch(count):
        rows = math.ceil(batch_size / (count * num_replicas))
        return rows == 1 or rows * length <= 64

    assert holds_batch(count)
    assert count == 1 or not holds_batch(count - 1)


def test_micro_batches_shrink_with_memory(monkeypatch):
    sizes = []
    for gigabytes in (64, 16, 8, 4):
        monkeypatch.setattr(
            micro_batches, "_device_bytes", lambda n=gigabytes: n * 2**30
        )
        sizes.append(fitting_micro_batch_tokens(HParams(), 37_000, "float32"))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] > 0


def test_the_smallest_micro_batch_is_taken_where_none_fits(monkeypatch):
    monkeypatch.setattr(micro_batches, "_device_bytes", lambda: 0)
    assert fitting_micro_batch_tokens(HParams(), 37_000, "float32") == 256


def test_parts_at_the_same_time_need_a_gradient_each(monkeypatch):
    monkeypatch.setattr(micro_batches, "loss_bytes", lambda *_: 0)
    whole, in_parts = (
        peak_bytes(HParams(), 37_000, "float32", 4096, num_parts)
        for num_parts in (1, 2)
    )
    assert in_parts - whole > 37_000 * 512 * 4


def test_a_large_vocabulary_takes_no_more_memory_for_each_token():
    def bytes_per_token(vocabulary_size):
        first, second = (
            peak_bytes(HParams(), vocabulary_size, "float32", tokens)
            for tokens in (2048, 4096)
        )
        return (second - first) / 2048

    assert bytes_per_token(37_000) == bytes_per_token(370_000) > 0


def test_half_precision_takes_less_memory():
    float32, bfloat16 = (
        peak_bytes(HParams(), 37_000, precision, 4096)
        for precision in ("float32", "bfloat16")
    )
    assert bfloat16 < float32


def test_the_limit_of_a_container_counts(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(
        micro_batches, "_CONTAINER_LIMITS", (tmp_path / "none", limit)
    )
    limit.write_text("max\n")
    assert micro_batches._container_bytes() == math.inf
    limit.write_text("1000\n")
    assert micro_batches._device_bytes() == 1000
