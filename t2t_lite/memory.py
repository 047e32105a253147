"""How much memory training takes, so that micro-batches fit."""

import os

import tensorflow as tf

_LARGEST = 4096  # More at once is no faster, on any device that was measured.
_SMALLEST = 256
_SHARE = 0.6  # Of the memory; the rest is for what the estimate leaves out.


def fitting_micro_batch_tokens(hparams, vocabulary_size, precision):
    """Returns how many source tokens, and target tokens, one pass may take.

    A power of two whose estimated peak fits the device.

    Args:
        hparams: HParams.
        vocabulary_size: int, V.
        precision: "float32", "bfloat16" or "float16".
    """
    budget = _SHARE * _device_bytes() - _bytes_of_state(
        hparams, vocabulary_size
    )
    tokens = _LARGEST
    per_token = _bytes_per_token(hparams, vocabulary_size, precision)
    while tokens > _SMALLEST and tokens * per_token > budget:
        tokens //= 2
    return tokens


def _bytes_of_state(hparams, vocabulary_size):
    """Weights, two moments of Adam, sums of gradients, and one gradient."""
    D, F = hparams.d_model, hparams.d_ff
    heads = hparams.num_heads * (hparams.d_k + hparams.d_v)
    of_layers = hparams.num_layers * (3 * 2 * D * heads + 2 * 2 * D * F)
    return 5 * 4 * (of_layers + vocabulary_size * D)


def _bytes_per_token(hparams, vocabulary_size, precision):
    """What the backward pass keeps of one source and one target token."""
    width = 4 if precision == "float32" else 2
    D, F = hparams.d_model, hparams.d_ff
    of_layer = 40 * D + 6 * F + 6 * hparams.num_heads * hparams.max_length
    logits = 5 * 4 * vocabulary_size  # Float32 whatever the precision.
    return width * hparams.num_layers * of_layer + logits


def _device_bytes():
    """Returns the memory of the first GPU, or of the machine without one."""
    if tf.config.list_physical_devices("GPU"):
        from tensorflow.python.client import device_lib

        return next(
            device.memory_limit
            for device in device_lib.list_local_devices()
            if device.device_type == "GPU"
        )
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
