"""How large a micro-batch may be for an update to fit in memory."""

import dataclasses
import math

from t2t_lite.errors import InputError
from t2t_lite.hardware import GIB, Hardware
from t2t_lite.hparams import HParams
from t2t_lite.model import flops, loss

# What to do where memory runs out.
SMALLER = "choose a smaller model, or a smaller --override=vocabulary_size=..."
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


def with_fitting_parts(
    hardware: Hardware,
    hparams: HParams,
    vocabulary_size: int,
    memory_bytes: float,
) -> Hardware:
    """Returns a Hardware of fewer parts where memory is short for all.

    Each part has its own gradients. They and all else that has the size of the
    model may take half of what an update may; if they do not fit, there are
    half as many parts, and so on.

    Args:
        hardware: Hardware; one part is all that a GPU has.
        hparams: HParams.
        vocabulary_size: V.
        memory_bytes: float, that the machine has. It must not depend on what
            is free: resumed in other parts, a run ends with other bits.
    """
    budget, parts = _SHARES["CPU"] * memory_bytes / 2, hardware.num_parts
    while parts > 1 and budget < _state_bytes(
        hparams, vocabulary_size, num_gradients=parts
    ):
        parts //= 2
    return dataclasses.replace(hardware, most_parts=parts)


def fitting_micro_batch_tokens(
    hparams: HParams, vocabulary_size: int, precision: str, hardware: Hardware
) -> int:
    """Returns how many source tokens, and target tokens, one pass may take.

    The whole update of `tokens_per_batch`, or the first of its `halves` whose
    estimated peak fits the hardware; the smallest if none does.

    Args:
        hparams: HParams.
        vocabulary_size: V.
        precision: "float32", "bfloat16" or "float16".
        hardware: Hardware.

    Raises:
        InputError: the memory of a CPU cannot hold the smallest. (On a GPU,
            where this is no more than an estimate, it can be tried.)
    """
    tokens = hparams.tokens_per_batch
    if hardware.kind == "CPU":
        tokens = min(tokens, _most_cpu_tokens(hardware))
    budget = _SHARES[hardware.kind] * hardware.memory_bytes

    for size in halves(tokens):
        peak = peak_bytes(
            hparams,
            vocabulary_size,
            precision,
            hardware=hardware,
            tokens=size,
        )
        if peak <= budget:
            return size
    if hardware.kind == "CPU" and peak > hardware.memory_bytes:
        raise InputError(
            f"training takes about {peak / GIB:.1f} GiB, but only "
            f"{hardware.memory_bytes / GIB:.1f} GiB are free: {SMALLER} (or "
            f"give --micro_batch_tokens={size} to try it)"
        )
    return size


def why_so_many(tokens: int, hparams: HParams, hardware: Hardware) -> str:
    """Returns why micro-batches have that many tokens, for a reader.

    >>> cpu = Hardware("CPU", 64e9, num_cores=2)
    >>> why_so_many(4096, HParams(), cpu)
    'as many as suit its cores'

    Args:
        tokens: int, of a micro-batch.
        hparams: HParams.
        hardware: Hardware.
    """
    if tokens >= hparams.tokens_per_batch:
        return "all of it"
    if hardware.kind == "CPU" and tokens == _most_cpu_tokens(hardware):
        return "as many as suit its cores"
    return "as many as memory holds"


def _most_cpu_tokens(hardware: Hardware) -> int:
    return _MOST_CPU_TOKENS * hardware.num_parts


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
