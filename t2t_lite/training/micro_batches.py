"""How large a micro-batch may be, so that an update fits the memory."""

import math
import os
import pathlib
import re

import tensorflow as tf

from t2t_lite.hparams import HParams
from t2t_lite.model import flops, loss

_MOST_TOKENS = 4096  # More is no faster, on any device that was measured.
_FEWEST_TOKENS = 256
_CONTAINER_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
_SHARE = 0.6  # Of the memory; the rest is for what the estimate does not count.


def num_micro_batches(
    batch_size: int, length: int, micro_batch_tokens: int, num_replicas: int
) -> int:
    """Returns how many micro-batches each replica takes in turn.

    >>> num_micro_batches(
    ...     batch_size=100, length=20, micro_batch_tokens=512, num_replicas=2
    ... )
    2

    Args:
        batch_size: B, of all replicas.
        length: S or T, the larger one.
        micro_batch_tokens: that one replica takes at once of either side; a
            longer row is taken alone.
        num_replicas: among which the batch is divided.
    """
    rows = max(1, micro_batch_tokens // length)
    return math.ceil(batch_size / (rows * num_replicas))


def fitting_micro_batch_tokens(
    hparams: HParams, vocabulary_size: int, precision: str
) -> int:
    """Returns how many source tokens, and target tokens, one pass may take.

    A power of two whose estimated peak fits the device.

    Args:
        hparams: HParams.
        vocabulary_size: V.
        precision: "float32", "bfloat16" or "float16".
    """
    budget = _SHARE * _device_bytes()
    # A CPU computes two parts of a micro-batch at the same time.
    num_parts = 1 if tf.config.list_physical_devices("GPU") else 2
    tokens = _MOST_TOKENS
    while (
        tokens > _FEWEST_TOKENS
        and peak_bytes(hparams, vocabulary_size, precision, tokens, num_parts)
        > budget
    ):
        tokens //= 2
    return tokens


def peak_bytes(
    hparams: HParams,
    vocabulary_size: int,
    precision: str,
    tokens: int,
    num_parts: int = 1,
) -> int:
    """Returns the estimated peak of an update by micro-batches of `tokens`.

    Args:
        hparams: HParams.
        vocabulary_size: V.
        precision: "float32", "bfloat16" or "float16".
        tokens: how many source tokens, and target tokens, one pass takes.
        num_parts: how many parts of them are computed at the same time.
    """
    return (
        _state_bytes(hparams, vocabulary_size, num_parts)
        + tokens * _bytes_per_token(hparams, precision)
        + num_parts * loss_bytes(hparams, vocabulary_size, tokens // num_parts)
    )


def _state_bytes(
    hparams: HParams, vocabulary_size: int, num_gradients: int
) -> int:
    """Returns the bytes of weights, Adam's moments, sums and gradients."""
    weights = flops.num_parameters(hparams, vocabulary_size)
    return (4 + num_gradients) * 4 * weights


def _bytes_per_token(hparams: HParams, precision: str) -> int:
    """Returns the bytes kept per source and target token to go backward."""
    width = 4 if precision == "float32" else 2
    D, F = hparams.d_model, hparams.d_ff
    attention = 8 * D + 2 * hparams.num_heads * hparams.max_length
    feed_forward = 8 * D + 3 * F
    encoder = hparams.num_layers * (attention + feed_forward)
    decoder = hparams.decoder_layers * (2 * attention + feed_forward)
    return width * (encoder + decoder + 3 * D)


def loss_bytes(hparams: HParams, vocabulary_size: int, tokens: int) -> int:
    """Returns the bytes of a chunk's logits, three times, and two embeddings.

    Args:
        hparams: HParams.
        vocabulary_size: V.
        tokens: of the target.
    """
    logits = min(tokens * vocabulary_size, loss.CHUNK_LOGITS)
    return 4 * (3 * logits + 2 * vocabulary_size * hparams.d_model)


def _device_bytes() -> float:
    """Returns the memory of the first GPU, or what the machine has free."""
    if tf.config.list_physical_devices("GPU"):
        # There is no public way to ask for a GPU's memory before it is used.
        from tensorflow.python.client import device_lib

        return next(
            device.memory_limit
            for device in device_lib.list_local_devices()
            if device.device_type == "GPU"
        )
    return min(_available_bytes(), _container_bytes())


def _available_bytes() -> int:
    """Returns what programs can get, with what caches would give up."""
    meminfo = pathlib.Path("/proc/meminfo")  # Linux has it.
    if meminfo.exists():
        found = re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())
        return int(found[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_bytes() -> float:
    """Returns the limit of the control group; infinity where there is none."""
    for path in _CONTAINER_LIMITS:
        try:
            return int(pathlib.Path(path).read_text())
        except (OSError, ValueError):  # Not there, or "max".
            continue
    return math.inf
