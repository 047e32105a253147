"""What a run reports of its cost."""

import math

from t2t_lite.training.cost import describe_cost


def test_what_was_not_counted_is_not_known():
    assert "not known" in describe_cost(math.nan, 1.0)
    products, by_time, _ = describe_cost(1e15, math.nan, 9.5).split("\n")
    assert "1.00e+15" in products
    assert "not known" in by_time


def test_without_a_sustained_speed_there_is_no_estimate_by_time():
    products, paper = describe_cost(1e15, 2.0).split("\n")
    assert products == "Training cost, matrix products: 1.00e+15 FLOPs"
    assert paper.endswith("base 3.3e+18, big 2.3e+19 FLOPs")
