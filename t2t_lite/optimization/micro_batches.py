"""How large a micro-batch may be for an update to fit in memory."""

import math

from t2t_lite.hardware import Hardware
from t2t_lite.hparams import HParams
from t2t_lite.model import flops, loss

_FEWEST_TOKENS = 256
# More at a time was no faster on the CPU that was measured. A GPU is given as
# many as fit.
_MOST_CPU_TOKENS = 2048
# Of the memory; the rest is for what the estimate leaves out. A CPU shares its
# memory with the rest of the process, and with other programs.
_SHARES = {"CPU": 0.6, "GPU": 0.85}
_BYTES_PER_LOGIT = 12  # Of a chunk of the loss: three copies in float32.
_CHUNK_SHARE = 1 / 32  # Of a GPU's memory.


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
        micro_batch_tokens: how many of either side one replica takes at once; a
            longer row is taken by itself.
        num_replicas: how many share the batch.
    """
    rows = max(1, micro_batch_tokens // length)
    return math.ceil(batch_size / (rows * num_replicas))


def fitting_micro_batch_tokens(
    hparams: HParams, vocabulary_size: int, precision: str, hardware: Hardware
) -> int:
    """Returns how many source tokens, and target tokens, one pass may take.

    The whole update of `tokens_per_batch`, or the first of its `halves` whose
    estimated peak fits the hardware.

    Args:
        hparams: HParams.
        vocabulary_size: V.
        precision: "float32", "bfloat16" or "float16".
        hardware: Hardware.
    """
    tokens = hparams.tokens_per_batch
    if hardware.kind == "CPU":
        tokens = min(tokens, _MOST_CPU_TOKENS * hardware.num_parts)
    budget = _SHARES[hardware.kind] * hardware.memory_bytes

    def fits(size: int) -> bool:
        return budget >= peak_bytes(
            hparams,
            vocabulary_size,
            precision,
            hardware=hardware,
            tokens=size,
        )

    sizes = halves(tokens)
    return next(filter(fits, sizes), sizes[-1])


def halves(tokens: int) -> list[int]:
    """Returns a number of tokens, its half, and so on.

    >>> halves(2500)
    [2500, 1250, 625, 312]
    """
    sizes = [tokens]
    while sizes[-1] // 2 >= _FEWEST_TOKENS:
        sizes.append(sizes[-1] // 2)
    return sizes


def chunk_logits(hardware: Hardware) -> int:
    """Returns how many logits the loss computes at a time.

    The more there are, the fewer iterations its loop takes. On a GPU their
    number depends on its memory; a CPU has nothing to gain.

    >>> chunk_logits(Hardware("GPU", 96e9, num_cores=16))
    250000000
    """
    if hardware.kind == "CPU":
        return loss.CHUNK_LOGITS
    return int(_CHUNK_SHARE * hardware.memory_bytes / _BYTES_PER_LOGIT)


def peak_bytes(
    hparams: HParams,
    vocabulary_size: int,
    precision: str,
    hardware: Hardware,
    tokens: int,
) -> int:
    """Returns the estimated peak of an update in micro-batches of `tokens`.

    Args:
        hparams: HParams.
        vocabulary_size: V.
        precision: "float32", "bfloat16" or "float16".
        hardware: Hardware, whose parts are computed side by side.
        tokens: how many source tokens, and target tokens, one pass takes.
    """
    parts = hardware.num_parts
    logits = min(tokens // parts * vocabulary_size, chunk_logits(hardware))
    return (
        _state_bytes(hparams, vocabulary_size, num_gradients=parts)
        + tokens * _bytes_per_token(hparams, precision)
        + parts * loss_bytes(hparams, vocabulary_size, logits)
    )


def _state_bytes(
    hparams: HParams, vocabulary_size: int, num_gradients: int
) -> int:
    """Returns the bytes of weights, Adam's moments, sums and gradients."""
    weights = flops.num_parameters(hparams, vocabulary_size)
    return (4 + num_gradients) * 4 * weights


def _bytes_per_token(hparams: HParams, precision: str) -> int:
    """Returns the bytes kept per source and target token to backpropagate."""
    width = 4 if precision == "float32" else 2
    D, F = hparams.d_model, hparams.d_ff
    attention = 8 * D + 2 * hparams.num_heads * hparams.max_length
    feed_forward = 8 * D + 3 * F
    encoder = hparams.num_layers * (attention + feed_forward)
    decoder = hparams.decoder_layers * (2 * attention + feed_forward)
    return width * (encoder + decoder + 3 * D)


def loss_bytes(hparams: HParams, vocabulary_size: int, logits: int) -> int:
    """Returns the bytes of a chunk's logits, and of two embeddings.

    Args:
        hparams: HParams.
        vocabulary_size: V.
        logits: of a chunk.
    """
    return _BYTES_PER_LOGIT * logits + 2 * 4 * vocabulary_size * hparams.d_model
