"""What the binaries share and no run of one shows."""

import os

import pytest
import tensorflow as tf

from t2t_lite import cli


@pytest.mark.parametrize(
    ("in_halves", "cores", "gpus", "told", "expected"),
    [
        (True, 2, [], None, [1]),
        (False, 2, [], None, []),
        (True, 8, [], None, []),
        (True, 2, ["a GPU"], None, []),
        (True, 2, [], "2", []),  # What the user has set stays.
    ],
)
def test_of_two_cores_each_half_of_a_batch_has_one(
    monkeypatch, in_halves, cores, gpus, told, expected
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
    if told:
        monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", told)
    cli.load_tensorflow(in_halves)
    assert threads == expected
