"""What the binaries share and no run of one shows."""

import os

import pytest
import tensorflow as tf

from t2t_lite import cli


@pytest.mark.parametrize(
    ("num_parts", "cores", "gpus", "set_by_user", "expected"),
    [
        (2, 2, [], None, [1]),
        (1, 2, [], None, []),
        (2, 8, [], None, []),
        (2, 2, ["a GPU"], None, []),
        (2, 2, [], "2", []),  # What the user has set stays.
    ],
)
def test_each_of_two_parts_runs_on_one_of_two_cores(
    monkeypatch, num_parts, cores, gpus, set_by_user, expected
):
    threads = []
    monkeypatch.setattr(
        tf.config.threading,
        "set_intra_op_parallelism_threads",
        threads.append,
    )
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: gpus)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores))
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    if set_by_user:
        monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", set_by_user)
    cli.load_tensorflow(num_parts)
    assert threads == expected
