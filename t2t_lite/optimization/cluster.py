"""Which processes train one model, and which of them this one is."""

import json
import os
import re
import subprocess
from collections.abc import Callable
from typing import Any, NamedTuple

from t2t_lite import files
from t2t_lite.errors import InputError

_TASK_TYPES = ("chief", "worker")
_CLUSTER_STRATEGIES = (
    "auto",
    "multi_worker",
)  # Strategies that may take a cluster.
_NVIDIA_SMI_SECONDS = 60
_GPU_NAME = re.compile(r"\d|GPU-|MIG-")  # Of CUDA_VISIBLE_DEVICES.


class Cluster(NamedTuple):
    """The workers of a run; the first is the chief, which writes its files."""

    addresses: tuple[str, ...]  # of each, "host:port"
    index: int  # of this process

    @classmethod
    def from_tf_config(cls, text: str) -> "Cluster":
        """Returns the Cluster that TF_CONFIG describes.

        >>> Cluster.from_tf_config(
        ...     '{"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]},'
        ...     ' "task": {"type": "worker", "index": 1}}'
        ... )
        Cluster(addresses=('a:1', 'b:1', 'c:1'), index=2)

        Args:
            text: JSON.

        Raises:
            InputError: it does not name the workers, or say which one this is.
        """
        try:
            return cls(*_parsed(files.parse_json(text)))
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(
                'TF_CONFIG must look like {"cluster": {"worker": ["host:port", '
                '...]}, "task": {"type": "worker", "index": 0}}; received '
                f"{text!r} ({error})"
            ) from None

    @property
    def is_chief(self) -> bool:
        """Whether this process is the chief."""
        return self.index == 0

    def name(self, index: int) -> str:
        """Returns what messages call a worker.

        >>> Cluster(("a:1", "b:1"), index=0).name(1)
        'worker 1 (b:1)'
        """
        role = f"worker {index}" if index else "the chief"
        return f"{role} ({self.addresses[index]})"


def _parsed(config: Any) -> tuple[tuple[str, ...], int]:
    """Returns the fields of a Cluster."""
    jobs, task = config["cluster"], config["task"]
    kind, index = task["type"], int(task["index"])
    if kind not in _TASK_TYPES:  # Others need not be in the cluster.
        raise ValueError("the task type must be worker or chief")
    if index not in range(len(jobs[kind])):
        raise IndexError("the task is not in the cluster")
    chiefs, workers = (
        [str(address) for address in jobs.get(each, ())] for each in _TASK_TYPES
    )
    for address in chiefs + workers:
        host, _, port = address.rpartition(":")
        is_port = port.isdecimal() and int(port) in range(1, 2**16)
        if not host or not is_port:
            raise ValueError(f"{address!r} is not host:port")
        if (chiefs + workers).count(address) > 1:
            raise ValueError(f"two workers have the address {address!r}")
    first = len(chiefs) if kind == "worker" else 0
    return tuple(chiefs + workers), first + index


def find_cluster(strategy: str) -> Cluster | None:
    """Returns the Cluster of this process, None if it trains alone.

    On SLURM this sets TF_CONFIG, unless it is set, for all that follows.

    Args:
        strategy: a name that `make_strategy` takes.

    Raises:
        InputError: TF_CONFIG or SLURM's variables are wrong.
    """
    if strategy not in _CLUSTER_STRATEGIES:
        return None
    if not os.environ.get("TF_CONFIG") and _is_slurm_step():
        os.environ |= _slurm_environment()
    config = os.environ.get("TF_CONFIG", "")
    if not config and strategy == "auto":
        return None
    return Cluster.from_tf_config(config)


def _is_slurm_step() -> bool:
    """Returns whether SLURM started this process along with others."""
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
    return "SLURM_JOB_ID" in os.environ and tasks != "1"


def _slurm_environment() -> dict[str, str]:
    """Returns TF_CONFIG, and the GPUs of this process, from SLURM's task."""
    # A process that has loaded TensorFlow must not fork, and this one will.
    found = _in_a_child(_resolved)
    if "error" in found:
        raise InputError(
            "SLURM's variables do not say which machines train "
            f"({found['error']}): set TF_CONFIG, or give --strategy=one_device "
            "or mirrored"
        )
    return found


def _in_a_child(function: Callable[[], Any]) -> Any:
    """Returns what a function returns in a child process, sent as JSON."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Drops what C++ logs.
        with os.fdopen(write, "w") as pipe:
            json.dump(function(), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return json.loads(found or '{"error": "TensorFlow cannot be loaded"}')


def _resolved() -> dict[str, str]:
    """Returns what `_slurm_environment` does, or an "error"."""
    try:
        return _resolved_by_tensorflow()
    except Exception as error:  # Whatever strange variables cause.
        return {"error": str(error) or repr(error)}


def _resolved_by_tensorflow() -> dict[str, str]:
    import tensorflow as tf

    # The resolver knows how many GPUs there are, but not which ones a process
    # may use. So it is told that each task has one; nothing else learns of it.
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        gpus_per_node=int(os.environ["SLURM_STEP_NUM_TASKS"]),
        gpus_per_task=1,
        auto_set_gpu=False,
    )
    jobs = resolver.cluster_spec().as_dict()
    kind, index = resolver.get_task_info()
    hosts = [address.rpartition(":")[0] for address in jobs[kind]]
    # The resolver sorts nodes by name, but SLURM puts n10 after n9.
    node = os.environ.get("SLURMD_NODENAME", hosts[index])
    if node != hosts[index]:
        raise ValueError(f"task {index} runs on {node}, not on {hosts[index]}")
    task = {"type": kind, "index": index}
    found = {"TF_CONFIG": json.dumps({"cluster": jobs, "task": task})}
    before, after = hosts[:index].count(node), hosts[index + 1 :].count(node)
    if gpus := _own_gpus(place=before, num_tasks=before + 1 + after):
        found["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return found


def _own_gpus(place: int, num_tasks: int) -> list[str]:
    """Returns the names of a task's GPUs, none to leave the choice as it is.

    Args:
        place: of the task among those of its node, from 0.
        num_tasks: of its node.
    """
    # SLURM has done it, or there is nothing to share.
    if "SLURM_GPUS_PER_TASK" in os.environ or num_tasks == 1:
        return []
    names = _visible_gpus()
    share = len(names) // num_tasks
    return names[place * share : (place + 1) * share]


def _visible_gpus() -> list[str]:
    """Returns the names of the GPUs that this process may use, if known.

    CUDA_VISIBLE_DEVICES may name none, as "", "-1" or SLURM's "NoDevFiles".
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = map(str.strip, visible.split(","))
        return [name for name in names if _GPU_NAME.match(name)]
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--list-gpus"],
            capture_output=True,
            check=True,
            timeout=_NVIDIA_SMI_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    lines = listed.stdout.splitlines()
    return [str(n) for n in range(sum(x.startswith(b"GPU ") for x in lines))]
