"""TF_CONFIG or SLURM's variables say which processes train together."""

import json
import os

import pytest

from t2t_lite.errors import InputError
from t2t_lite.optimization import cluster
from t2t_lite.optimization.cluster import Cluster, find_cluster

_CLUSTER = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
_CONFIG = {"cluster": _CLUSTER, "task": {"type": "worker", "index": 1}}
_SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_NUM_TASKS": "3",
    "SLURM_PROCID": "2",
    "SLURM_STEP_NODELIST": "node[1-2]",
    "SLURM_STEP_TASKS_PER_NODE": "2,1",
    "SLURMD_NODENAME": "node2",
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """An environment without TF_CONFIG and without SLURM's variables."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    for name in ("TF_CONFIG", "CUDA_VISIBLE_DEVICES", *_SLURM):
        os.environ.pop(name, None)


@pytest.mark.parametrize(
    "tf_config",
    [
        "",
        "not JSON",
        pytest.param("[" * 5000, id="deep"),
        "[]",
        json.dumps({"cluster": _CLUSTER}),
        json.dumps({"task": {"type": "worker", "index": 0}}),
        json.dumps({"cluster": _CLUSTER, "task": {"type": "worker"}}),
        json.dumps(
            {"cluster": _CLUSTER, "task": {"type": "worker", "index": 2}}
        ),
        json.dumps(
            {"cluster": _CLUSTER, "task": {"type": "chief", "index": 0}}
        ),
        json.dumps(
            {"cluster": _CLUSTER, "task": {"type": "worker", "index": "one"}}
        ),
        *(
            json.dumps(
                {
                    "cluster": {"worker": [address]},
                    "task": {"type": "worker", "index": 0},
                }
            )
            for address in ("a", ":1", "a:b", "a:0", "a:65536", 7)
        ),
        json.dumps(
            {
                "cluster": {"worker": ["a:1", "a:1"]},
                "task": {"type": "worker", "index": 0},
            }
        ),
    ],
)
def test_a_wrong_tf_config_is_refused(tf_config):
    with pytest.raises(InputError, match="TF_CONFIG must look like") as error:
        Cluster.from_tf_config(tf_config)
    assert f"received {tf_config!r}" in str(error.value)


@pytest.mark.parametrize("others", [{}, {"evaluator": ["a:3"], "ps": ["b:3"]}])
@pytest.mark.parametrize("kind", ["evaluator", "ps"])
def test_a_task_that_does_not_train_is_refused(kind, others):
    cluster = _CLUSTER | others
    config = {"cluster": cluster, "task": {"type": kind, "index": 0}}
    with pytest.raises(InputError, match=r"\(the task type must be worker or"):
        Cluster.from_tf_config(json.dumps(config))


def test_the_chief_comes_first():
    jobs = {"worker": ["w:1", "w:2"], "chief": ["c:1"]}
    addresses = ("c:1", "w:1", "w:2")
    for index, (kind, task_index) in enumerate(
        [("chief", 0), ("worker", 0), ("worker", 1)]
    ):
        task = {"type": kind, "index": task_index}
        text = json.dumps({"cluster": jobs, "task": task})
        assert Cluster.from_tf_config(text) == Cluster(addresses, index)


@pytest.mark.parametrize("strategy", ["one_device", "mirrored"])
def test_a_strategy_of_one_machine_has_no_cluster(strategy):
    os.environ |= {"TF_CONFIG": json.dumps(_CONFIG), **_SLURM}
    assert find_cluster(strategy) is None


def test_a_process_that_nobody_knows_trains_alone():
    assert find_cluster("auto") is None
    with pytest.raises(InputError, match="TF_CONFIG must look like"):
        find_cluster("multi_worker")


@pytest.mark.parametrize("changes", [{}, _SLURM])
def test_tf_config_comes_before_slurm(changes):
    os.environ |= {"TF_CONFIG": json.dumps(_CONFIG), **changes}
    found = find_cluster("auto")
    assert found == Cluster(("127.0.0.1:1", "127.0.0.1:2"), 1)


def test_a_step_of_one_task_trains_alone():
    os.environ |= _SLURM | {"SLURM_STEP_NUM_TASKS": "1"}
    assert find_cluster("auto") is None


@pytest.fixture
def _in_this_process(monkeypatch):
    """Resolves SLURM's variables here, where TensorFlow is loaded already."""
    monkeypatch.setattr(cluster, "_in_a_child", lambda function: function())


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize(
    ("changes", "addresses", "index"),
    [
        ({}, ("node1:8888", "node1:8889", "node2:8888"), 2),
        (
            {
                "SLURM_PROCID": "0",
                "SLURM_STEP_NODELIST": "a,b,c",
                "SLURM_STEP_TASKS_PER_NODE": "1(x3)",
                "SLURMD_NODENAME": "a",
            },
            ("a:8888", "b:8888", "c:8888"),
            0,
        ),
    ],
)
def test_slurm_names_the_workers(changes, addresses, index):
    os.environ |= _SLURM | changes
    os.environ["PATH"] = ""  # No nvidia-smi.
    assert find_cluster("auto") == Cluster(addresses, index)
    config = os.environ["TF_CONFIG"]
    assert Cluster.from_tf_config(config) == Cluster(addresses, index)
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


_SECOND_OF_TWO = {"SLURM_PROCID": "1", "SLURMD_NODENAME": "node1"}


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize(
    ("visible", "own"),
    [
        ("0,1,2,3", "2,3"),
        ("4, 5, 6", "5"),
        ("GPU-0a,GPU-0b", "GPU-0b"),
        ("MIG-0a,MIG-0b,-1", "MIG-0b"),
    ],
)
def test_each_task_of_slurm_gets_its_gpus(visible, own):
    os.environ |= _SLURM | _SECOND_OF_TWO | {"CUDA_VISIBLE_DEVICES": visible}
    assert find_cluster("auto").index == 1
    assert os.environ["CUDA_VISIBLE_DEVICES"] == own


@pytest.mark.usefixtures("_in_this_process")
def test_gpus_that_slurm_gave_a_task_are_its_own():
    os.environ |= _SLURM | _SECOND_OF_TWO
    os.environ |= {"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_GPUS_PER_TASK": "2"}
    assert find_cluster("auto").index == 1
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.usefixtures("_in_this_process")
def test_a_task_alone_on_its_node_has_all_gpus():
    os.environ |= _SLURM | {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    assert find_cluster("auto").index == 2
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"


@pytest.fixture
def nvidia_smi(tmp_path):
    """Returns a function that puts a script called nvidia-smi on PATH."""

    def write(script):
        path = tmp_path / "nvidia-smi"
        path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        path.chmod(0o755)
        os.environ["PATH"] = str(tmp_path)

    return write


@pytest.mark.usefixtures("_in_this_process")
def test_each_task_of_slurm_gets_gpus_that_nvidia_smi_lists(nvidia_smi):
    nvidia_smi("echo 'GPU 0: A'; echo '  MIG 1g'; echo 'GPU 1: A'")
    os.environ |= _SLURM | _SECOND_OF_TWO
    assert find_cluster("auto").index == 1
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize(
    "script", ["echo no driver; exit 9", "", "echo 'GPU 0: A'"]
)
def test_a_node_with_fewer_gpus_than_tasks_is_one_without(nvidia_smi, script):
    nvidia_smi(script)
    os.environ |= _SLURM | _SECOND_OF_TWO
    assert find_cluster("auto").index == 1
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.mark.usefixtures("_in_this_process")
def test_a_driver_that_does_not_answer_is_not_waited_for(
    nvidia_smi, monkeypatch
):
    monkeypatch.setattr(cluster, "_NVIDIA_SMI_SECONDS", 0.1)
    nvidia_smi("while :; do :; done")
    os.environ |= _SLURM | _SECOND_OF_TWO
    assert find_cluster("auto").index == 1
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize("gpus", ["0", "", "-1", "NoDevFiles"])
def test_too_few_visible_gpus_stay_as_they_are(nvidia_smi, gpus):
    nvidia_smi("echo 'GPU 0: A'; echo 'GPU 1: A'")
    os.environ |= _SLURM | _SECOND_OF_TWO | {"CUDA_VISIBLE_DEVICES": gpus}
    assert find_cluster("auto").index == 1
    assert os.environ["CUDA_VISIBLE_DEVICES"] == gpus


@pytest.mark.usefixtures("_in_this_process")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            # TensorFlow sorts them: n10, n9.
            {"SLURM_STEP_NODELIST": "n9,n10", "SLURMD_NODENAME": "n10"},
            r"task 2 runs on n10, not on n9",
        ),
        ({"SLURM_STEP_NODELIST": "n[1"}, "Invalid hostlist format"),
        ({"SLURM_STEP_TASKS_PER_NODE": "1,1"}, "3 tasks but only 2"),
        ({"SLURM_PROCID": "x"}, "invalid literal"),
    ],
)
def test_wrong_variables_of_slurm_are_refused(changes, reason):
    os.environ |= _SLURM | changes
    with pytest.raises(InputError, match=reason) as error:
        find_cluster("auto")
    assert "SLURM's variables do not say which machines" in str(error.value)
    assert "set TF_CONFIG" in str(error.value)


def test_what_a_child_finds_comes_back():
    assert cluster._in_a_child(lambda: {"pid": os.getppid()}) == {
        "pid": os.getpid()
    }
