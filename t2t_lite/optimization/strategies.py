"""Which devices and machines train, and what their processes share."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_lite.errors import InputError
from t2t_lite.hardware import Hardware
from t2t_lite.optimization.cluster import Cluster

SECONDS_FOR_NEWS = 30.0  # Of another worker's death.


def make_strategy(name: str) -> tf.distribute.Strategy:
    """Returns the tf.distribute.Strategy called `name`.

    Args:
        name: "one_device", "mirrored" (all devices of this machine),
            "multi_worker" (the machines that TF_CONFIG names), or "auto": the
            last if TF_CONFIG is set, else "mirrored" if there are several GPUs.

    Raises:
        InputError: TF_CONFIG does not name the machines and which of them this
            one is, or the others cannot be reached.
    """
    # TensorFlow would log each sum over devices, and each graph built.
    tf.get_logger().setLevel("ERROR")
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if wants_workers(name):
        return _multi_worker_strategy(os.environ.get("TF_CONFIG", ""))
    if name == "auto":
        name = "mirrored" if len(gpus) > 1 else "one_device"
    kind = "GPU" if gpus else "CPU"
    if name == "mirrored":
        devices = [d.name for d in tf.config.list_logical_devices(kind)]
        return tf.distribute.MirroredStrategy(devices)
    return tf.distribute.OneDeviceStrategy(f"/device:{kind}:0")


def wants_workers(name: str) -> bool:
    """Returns whether the strategy called `name` has other processes.

    Args:
        name: as for `make_strategy`.
    """
    is_named = bool(os.environ.get("TF_CONFIG"))
    return name == "multi_worker" or (name == "auto" and is_named)


def _multi_worker_strategy(tf_config: str) -> tf.distribute.Strategy:
    Cluster.from_tf_config(tf_config)  # Else TensorFlow would wait, or crash.
    try:
        with _kept_handler(signal.SIGTERM):
            return tf.distribute.MultiWorkerMirroredStrategy()
    except (
        RuntimeError,
        TypeError,  # An address is not a string.
        ValueError,
        tf.errors.OpError,
    ) as error:
        reason = str(getattr(error, "message", error)).splitlines()[0]
        raise InputError(
            f"cannot join the cluster of TF_CONFIG: received {tf_config!r} "
            f"({reason})"
        ) from None


@contextlib.contextmanager
def _kept_handler(number: int) -> Iterator[None]:
    """Gives a signal back to Python's handler, if TensorFlow takes it."""
    handler = signal.getsignal(number)
    try:
        yield
    finally:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and handler is not None:
            signal.signal(number, handler)


def has_other_workers(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether other processes train the same model."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether this process is the one that writes the run's files."""
    if not has_other_workers(strategy):
        return True
    resolver = strategy.cluster_resolver
    if resolver.task_type is None:
        return True
    has_chief = "chief" in resolver.cluster_spec().jobs
    chief = ("chief" if has_chief else "worker", 0)
    return (resolver.task_type, resolver.task_id) == chief


@contextlib.contextmanager
def hold_back_errors(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Holds back TensorFlow errors that another worker may have caused.

    If one has died, the parent of this process says so and ends this process
    (`workers.join_cluster`); there is no more to say.
    """
    try:
        yield
    except tf.errors.OpError:
        if has_other_workers(strategy):
            time.sleep(SECONDS_FOR_NEWS)
        raise


def device_names(strategy: tf.distribute.Strategy) -> str:
    """Returns the names of this process' devices, with commas between."""
    return ", ".join(map(_short_name, strategy.extended.worker_devices))


def _short_name(device: str) -> str:
    """Returns the name of a device without that of its machine.

    >>> _short_name("/job:localhost/replica:0/task:0/device:CPU:0")
    'CPU:0'
    """
    return device.rpartition("device:")[2]


def best_num_parts(
    strategy: tf.distribute.Strategy, hardware: Hardware, xla: bool
) -> int:
    """Returns how many parts of a micro-batch to compute side by side.

    It is 1 with XLA, which runs one operation after another, and if several
    replicas or workers already run side by side.
    """
    is_one_device = isinstance(strategy, tf.distribute.OneDeviceStrategy)
    return hardware.num_parts if is_one_device and not xla else 1


def on_replicas(
    strategy: tf.distribute.Strategy,
    function: Callable[..., Any],
    signature: Sequence[Any] | None = None,
) -> Callable[..., Any]:
    """Returns the graph that runs `function` on every replica.

    Args:
        strategy: tf.distribute.Strategy.
        function: takes and returns tensors of one replica.
        signature: the types of its arguments, over all replicas, if their
            shapes vary.
    """
    return tf.function(
        lambda *args: strategy.run(function, args=args),
        input_signature=signature,
        autograph=False,
    )


def first_local(strategy: tf.distribute.Strategy, value: Any) -> tf.Tensor:
    """Returns the value of this process' first replica."""
    return strategy.experimental_local_results(value)[0]


def sum_over_replicas(values: list[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the sums over all replicas; each of them must call this."""
    context = tf.distribute.get_replica_context()
    # As tensors of this replica: with other workers, neither a variable nor an
    # argument is on the device that the reduction needs.
    return context.all_reduce(
        tf.distribute.ReduceOp.SUM, [tf.identity(value) for value in values]
    )


def value_from_chief(
    strategy: tf.distribute.Strategy, value: Any
) -> np.ndarray | np.generic:
    """Returns the chief's value on every worker; each of them must call this.

    Args:
        strategy: tf.distribute.Strategy.
        value: a number, array or tensor, with the same shape and dtype on all.
    """

    def chief_value(value: tf.Tensor) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        is_chief = tf.equal(context.replica_id_in_sync_group, 0)
        return tf.where(is_chief, value, tf.zeros_like(value))

    return total_over_replicas(strategy, value, chief_value)


def total_over_replicas(
    strategy: tf.distribute.Strategy,
    value: Any,
    contribution: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> np.ndarray | np.generic:
    """Returns the sum over the replicas of all workers, on each of them.

    Each worker must call this.

    Args:
        strategy: tf.distribute.Strategy.
        value: a number, array or tensor, with the same shape and dtype on all.
        contribution: function from its worker's value to what a replica adds.
    """
    if not has_other_workers(strategy):
        return np.asarray(value)[()]
    value = tf.convert_to_tensor(value)
    total = on_replicas(
        strategy, lambda: sum_over_replicas([contribution(value)])[0]
    )
    return first_local(strategy, total()).numpy()
