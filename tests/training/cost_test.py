"""What a run reports about its cost."""

import math
import types

from t2t_lite.training import cost
from t2t_lite.training.cost import Cost, describe_cost


def test_what_was_not_counted_is_not_known():
    assert "not known" in describe_cost(math.nan, 1.0)
    products, by_time, _ = describe_cost(1e15, math.nan, 9.5).split("\n")
    assert "1.00e+15" in products
    assert "not known" in by_time


def test_without_a_sustained_speed_there_is_no_estimate_by_time():
    products, paper = describe_cost(1e15, 2.0).split("\n")
    assert products == "Training cost, matrix products: 1.00e+15 FLOPs"
    assert paper.endswith("base 3.3e+18, big 2.3e+19 FLOPs")


def test_device_seconds_add_up_over_devices_and_processes(monkeypatch):
    now = 1000.0
    clock = types.SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr(cost, "time", clock)
    first = Cost(num_devices=2, started_at=now)
    first.flops += 3e15
    now += 10
    saved = first.tensors()
    assert saved == {"training_flops": 3e15, "device_seconds": 20.0}
    now += 50  # No process trains.
    resumed = Cost.restored(saved, num_devices=3)
    resumed.started_at = now
    now += 10
    assert resumed.tensors() == saved | {"device_seconds": 50.0}


def test_what_an_old_checkpoint_did_not_count_stays_unknown():
    resumed = Cost.restored({"step": 7}, num_devices=1)
    resumed.flops += 1e15
    assert math.isnan(resumed.flops)
    assert math.isnan(resumed.device_seconds)
