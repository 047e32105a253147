"""Which devices train, and which process is the chief."""

import ctypes
import json
import os
import signal
import types

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import InputError
from t2t_lite.hardware import GIB, Hardware
from t2t_lite.optimization.strategies import (
    best_num_parts,
    is_chief,
    make_strategy,
    value_from_chief,
)

_CLUSTER = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}


def test_joining_a_cluster_leaves_sigterm_to_its_handler(monkeypatch):
    noted = []

    def join():  # As TensorFlow does, behind Python's back.
        libc = ctypes.CDLL(None)
        libc.signal(signal.SIGTERM, ctypes.c_void_p(1))  # SIG_IGN
        return "a strategy"

    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", join)
    config = {"cluster": _CLUSTER, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    before = signal.signal(signal.SIGTERM, lambda *_: noted.append("SIGTERM"))
    try:
        assert make_strategy("multi_worker") == "a strategy"
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert noted == ["SIGTERM"]


def test_a_tf_config_makes_this_one_of_several_workers(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{}")
    with pytest.raises(InputError, match="TF_CONFIG must look like"):
        make_strategy("auto")


def test_a_cluster_that_cannot_be_joined_is_refused(monkeypatch):
    def fail():
        raise RuntimeError("no such host\nand more")

    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", fail)
    config = {"cluster": _CLUSTER, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with pytest.raises(InputError, match=r"cannot join .* \(no such host\)"):
        make_strategy("multi_worker")


def test_one_device_is_taken_where_there_is_one(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy = make_strategy("auto")
    assert isinstance(strategy, tf.distribute.OneDeviceStrategy)
    assert strategy.num_replicas_in_sync == 1
    assert is_chief(strategy)


@pytest.mark.parametrize(
    ("jobs", "task_type", "task_id", "expected"),
    [
        ({"worker": 2}, "worker", 0, True),
        ({"worker": 2}, "worker", 1, False),
        ({"chief": 1, "worker": 2}, "worker", 0, False),
        ({"chief": 1, "worker": 2}, "chief", 0, True),
        ({}, None, None, True),
    ],
)
def test_the_chief_is_the_first_worker_unless_one_has_the_title(
    monkeypatch, jobs, task_type, task_id, expected
):
    class Strategy:
        cluster_resolver = types.SimpleNamespace(
            task_type=task_type,
            task_id=task_id,
            cluster_spec=lambda: types.SimpleNamespace(jobs=list(jobs)),
        )

    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", Strategy)
    assert is_chief(Strategy()) == expected


@pytest.mark.parametrize(
    ("strategy", "kind", "xla", "expected"),
    [
        (tf.distribute.OneDeviceStrategy("/cpu:0"), "CPU", False, 4),
        (tf.distribute.OneDeviceStrategy("/cpu:0"), "CPU", True, 1),
        (tf.distribute.OneDeviceStrategy("/cpu:0"), "GPU", False, 1),
        (tf.distribute.MirroredStrategy(["/cpu:0"]), "CPU", False, 1),
    ],
)
def test_only_one_cpu_computes_parts_side_by_side(
    strategy, kind, xla, expected
):
    hardware = Hardware(kind, GIB, num_cores=4)
    assert best_num_parts(strategy, hardware, xla) == expected


def test_without_other_workers_a_value_is_the_chiefs():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    assert value_from_chief(strategy, 5) == 5
    np.testing.assert_array_equal(
        value_from_chief(strategy, tf.constant([1, 2])), [1, 2]
    )
