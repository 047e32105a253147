"""How much memory training takes, so that micro-batches fit."""

import math
import os
import pathlib
import re

import tensorflow as tf

from t2t_lite.model import loss

_LARGEST = 4096  # More at once is no faster, on any device that was measured.
_SMALLEST = 256
_CONTAINER_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
_SHARE = 0.6  # Of the memory; the rest is for what the estimate leaves out.


def fitting_micro_batch_tokens(hparams, vocabulary_size, precision):
    """Returns how many source tokens, and target tokens, one pass may take.

    A power of two whose estimated peak fits the device.

    Args:
        hparams: HParams.
        vocabulary_size: int, V.
        precision: "float32", "bfloat16" or "float16".
    """
    budget = _SHARE * _device_bytes()
    # A CPU computes the halves of a pass at the same time.
    num_parts = 1 if tf.config.list_physical_devices("GPU") else 2
    tokens = _LARGEST
    while (
        tokens > _SMALLEST
        and peak_bytes(hparams, vocabulary_size, precision, tokens, num_parts)
        > budget
    ):
        tokens //= 2
    return tokens


def peak_bytes(hparams, vocabulary_size, precision, tokens, num_parts=1):
    """Returns the estimated peak of an update by micro-batches of `tokens`.

    Args:
        hparams: HParams.
        vocabulary_size: int, V.
        precision: "float32", "bfloat16" or "float16".
        tokens: int, how many source tokens, and target tokens, one pass takes.
        num_parts: int, in how many parts at the same time.
    """
    of_loss = bytes_of_loss(hparams, vocabulary_size, tokens // num_parts)
    return (
        _bytes_of_state(hparams, vocabulary_size, num_parts)
        + tokens * _bytes_per_token(hparams, precision)
        + num_parts * of_loss
    )


def _bytes_of_state(hparams, vocabulary_size, num_gradients):
    """Weights, two moments of Adam, sums of gradients, and gradients."""
    D, F = hparams.d_model, hparams.d_ff
    heads = hparams.num_heads * (hparams.d_k + hparams.d_v)
    of_layers = hparams.num_layers * (3 * 2 * D * heads + 2 * 2 * D * F)
    matrices = 4 + num_gradients
    return matrices * 4 * (of_layers + vocabulary_size * D)


def _bytes_per_token(hparams, precision):
    """What the backward pass keeps of one source and one target token."""
    width = 4 if precision == "float32" else 2
    D, F = hparams.d_model, hparams.d_ff
    of_layer = 40 * D + 6 * F + 6 * hparams.num_heads * hparams.max_length
    return width * (hparams.num_layers * of_layer + 3 * D)


def bytes_of_loss(hparams, vocabulary_size, tokens):
    """A chunk's logits thrice, and two more matrices like the embedding."""
    logits = min(tokens * vocabulary_size, loss.CHUNK_LOGITS)
    return 4 * (3 * logits + 2 * vocabulary_size * hparams.d_model)


def _device_bytes():
    """Returns the memory of the first GPU, or what the machine has to give."""
    if tf.config.list_physical_devices("GPU"):
        # There is no public way to ask for a GPU's memory before it is used.
        from tensorflow.python.client import device_lib

        return next(
            device.memory_limit
            for device in device_lib.list_local_devices()
            if device.device_type == "GPU"
        )
    return min(_available_bytes(), _container_bytes())


def _available_bytes():
    """Returns what programs can get, with what caches would give up."""
    meminfo = pathlib.Path("/proc/meminfo")  # Linux has it.
    if meminfo.exists():
        found = re.search(r"MemAvailable:\s+(\d+) kB", meminfo.read_text())
        return int(found[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_bytes():
    """Returns the limit of the control group; infinity where there is none."""
    for path in _CONTAINER_LIMITS:
        try:
            return int(pathlib.Path(path).read_text())
        except (OSError, ValueError):  # Not there, or "max".
            continue
    return math.inf
