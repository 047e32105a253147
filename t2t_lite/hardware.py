"""What a process computes on: kind of device, memory, cores.

The rules that derive sizes and parts from it take a `Hardware`, so they can be
tested with a made-up one.
"""

import dataclasses
import math
import os
import pathlib
import re
import time

GIB = 2**30
KINDS = ("CPU", "GPU")
PRECISIONS = ("float32", "bfloat16", "float16")
SEARCH_PRECISIONS = (*PRECISIONS, "int8")
_MOST_PARTS = 16
# For `faster_precision`. The first trial warms up.
_TRIALS, _TRIAL_PRODUCTS, _TRIAL_ROWS = 6, 4, 1024
_CLEARLY = 0.9
_STATUS = pathlib.Path("/proc/self/status")  # Linux has these.
_CPUINFO = pathlib.Path("/proc/cpuinfo")
_CLEAR_REFS = pathlib.Path("/proc/self/clear_refs")
_CONTAINER_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


@dataclasses.dataclass(frozen=True)
class Hardware:
    """What one replica computes on."""

    kind: str  # one of KINDS
    memory_bytes: float  # of the GPU, or what programs can get
    num_cores: int  # of the CPU
    most_parts: int = _MOST_PARTS  # fewer where memory is short for so many

    @property
    def num_parts(self) -> int:
        """How many parts of a batch are computed side by side.

        One part keeps a GPU busy.
        """
        if self.kind == "GPU":
            return 1
        return min(cpu_parts(self.num_cores), self.most_parts)


def find_hardware(memory_limit_gib: float | None = None) -> Hardware:
    """Returns the Hardware of this process, which imports TensorFlow.

    Args:
        memory_limit_gib: GiB to use at most; None: all that is free.
    """
    import tensorflow as tf

    is_gpu = bool(tf.config.list_physical_devices("GPU"))
    memory = _gpu_bytes() if is_gpu else free_bytes()
    if memory_limit_gib is not None:
        memory = min(memory, memory_limit_gib * GIB)
    return Hardware("GPU" if is_gpu else "CPU", memory, num_cores())


def installed_bytes(memory_limit_gib: float | None = None) -> float:
    """Returns the memory that there would be without any other program.

    Unlike what is free, it is the same whenever a run is resumed.

    Args:
        memory_limit_gib: GiB to use at most; None: no limit.
    """
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = math.inf if memory_limit_gib is None else memory_limit_gib * GIB
    return min(installed, _container_bytes(), limit)


def num_cores() -> int:
    """Returns how many cores of the CPU this process may use."""
    if hasattr(os, "sched_getaffinity"):  # On Linux; TensorFlow does the same.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def lacks_vnni() -> bool:
    """Returns whether this is an x86 CPU without instructions for int8.

    On such a CPU, products of int8 may be added up in 16 bits, which are too
    few. Outside Linux, where this is unknown, a CPU is taken to have them.
    """
    if not _CPUINFO.exists():
        return False
    flags = re.search(r"^flags\s*:(.*)$", _CPUINFO.read_text("utf-8"), re.M)
    return flags is not None and not re.search(r"\bavx(512)?_vnni\b", flags[1])


def cpu_parts(num_cores: int) -> int:
    """Returns how many parts of a batch a CPU computes side by side.

    Each core takes one, which is faster than parts that share all cores; but
    each part has its own gradients.

    >>> [cpu_parts(n) for n in (1, 2, 3, 64)]
    [1, 2, 3, 16]
    """
    return min(num_cores, _MOST_PARTS)


def faster_precision(d_model: int, d_ff: int, xla: bool = False) -> str:
    """Returns "bfloat16" if a model's products are clearly faster in it.

    Otherwise "float32". Both are timed, in turn.

    Args:
        d_model: D.
        d_ff: F, of the feed-forward layers, whose product is timed.
        xla: whether XLA compiles the model. On a CPU, it then gains nothing
            from bfloat16, whatever the products do.
    """
    if xla and find_hardware().kind == "CPU":
        return "float32"
    seconds = {"float32": math.inf, "bfloat16": math.inf}
    for _ in range(_TRIALS):
        for precision, best in seconds.items():
            found = _product_seconds(precision, d_model, d_ff)
            seconds[precision] = min(best, found)
    is_clear = seconds["bfloat16"] < _CLEARLY * seconds["float32"]
    return "bfloat16" if is_clear else "float32"


def _product_seconds(precision: str, d_model: int, d_ff: int) -> float:
    import tensorflow as tf

    x_ND = tf.ones([_TRIAL_ROWS, d_model], precision)
    matrix_DF = tf.ones([d_model, d_ff], precision)
    start = time.perf_counter()
    for _ in range(_TRIAL_PRODUCTS):
        product_NF = tf.matmul(x_ND, matrix_DF)
    product_NF[0, 0].numpy()  # Waits for it.
    return time.perf_counter() - start


def free_bytes() -> float:
    """Returns the memory that this process may have.

    It is what the machine has left, and what the process has already; at most
    what its container may have.
    """
    return min(_available_bytes() + _resident_bytes(), _container_bytes())


def _gpu_bytes() -> int:
    """Returns the memory of the first GPU that TensorFlow may use."""
    import tensorflow as tf

    tf.config.list_logical_devices("GPU")  # Sets it up as TensorFlow will.
    # There is no public way to ask for it before the GPU is used.
    from tensorflow.python.client import device_lib

    return next(
        device.memory_limit
        for device in device_lib.list_local_devices()
        if device.device_type == "GPU"
    )


def _available_bytes() -> int:
    """Returns what programs can get, including what caches would give up."""
    meminfo = pathlib.Path("/proc/meminfo")  # Linux has it.
    if meminfo.exists():
        found = re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())
        return int(found[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_bytes() -> float:
    """Returns the limit of the control group; infinity if there is none."""
    for path in _CONTAINER_LIMITS:
        try:
            return int(pathlib.Path(path).read_text())
        except (OSError, ValueError):  # Not there, or "max".
            continue
    return math.inf


def reset_peak_memory(kind: str) -> None:
    """Resets the peak of `peak_memory_bytes` to what is used now.

    Args:
        kind: that of the Hardware.
    """
    if kind == "GPU":
        import tensorflow as tf

        tf.config.experimental.reset_memory_stats("GPU:0")
    elif _CLEAR_REFS.exists():
        _CLEAR_REFS.write_text("5")


def _resident_bytes() -> int:
    """Returns the memory of this process; 0 if not known."""
    return _status_bytes("VmRSS") or 0


def _status_bytes(field: str) -> int | None:
    """Returns a figure of this process' memory; None if not known."""
    if not _STATUS.exists():
        return None
    found = re.search(rf"^{field}:\s+(\d+) kB", _STATUS.read_text(), re.M)
    return 1024 * int(found[1])


def peak_memory_bytes(kind: str) -> int | None:
    """Returns the most memory used since it was reset; None if not known.

    Args:
        kind: "GPU" for memory of the first GPU, "CPU" for that of this process.
    """
    if kind == "GPU":
        import tensorflow as tf

        return tf.config.experimental.get_memory_info("GPU:0")["peak"]
    return _status_bytes("VmHWM")
