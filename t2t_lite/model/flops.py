"""What training costs, in floating-point operations: Table 2 of the paper.

There are two ways to say it. The model's own operations follow from the shapes
of its matrix products (`forward_flops`, `update_flops`). The paper instead
multiplies hours, devices and what a device sustains (`sustained_flops`), which
also counts what a device does between products and while it waits: the model's
own operations come to about 0.3 (base) and 0.4 (big) of that.
"""

import math
from typing import NamedTuple

from t2t_lite.hparams import preset
from t2t_lite.model import windows

# What a device sustains in single precision, in TFLOPS.
# Source: section 6.1, footnote 5.
SUSTAINED_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}


class PaperResult(NamedTuple):
    """A row of Table 2, and how section 5.2 and 6.1 say it was trained."""

    training_flops: float
    bleu_en_de: float  # newstest2014
    bleu_en_fr: float  # of the preset's _en_fr; 6.1 itself has 41.0 for big
    hours: float
    devices: int
    device: str  # a name of SUSTAINED_TFLOPS


# By preset.
TABLE_2 = {
    "transformer_base": PaperResult(3.3e18, 27.3, 38.1, 12, 8, "P100"),
    "transformer_big": PaperResult(2.3e19, 28.4, 41.8, 3.5 * 24, 8, "P100"),
}

# A sentence of WMT has about 20 words: with punctuation and words that are
# split, 25 to 30 tokens. Little depends on it: 25 or 30 change an update of the
# base model by 0.1%.
TYPICAL_LENGTH = 28
_PRODUCTS_PER_UPDATE = 3  # One forward; two backward: by weight and by input.


def forward_flops(
    hparams, vocabulary_size, batch_size, source_length, target_length
):
    """Returns the floating-point operations of a forward pass over a batch.

    A product of an [m, k] and a [k, n] matrix counts 2 m n k. All products of
    the model are counted: projections of attention, queries by keys, weights
    by values, both products of the feed-forward layers, and the pre-softmax.
    Softmax, layer normalization, dropout, ReLU, biases, residual additions and
    the loss are left out, and looking embeddings up takes none.

    Args:
        hparams: HParams.
        vocabulary_size: int, V.
        batch_size: int, B.
        source_length: int, S. Padding counts like tokens, though the loss
            leaves some of it out.
        target_length: int, T.

    Returns:
        int.
    """
    S, T = source_length, target_length
    reach = hparams.attention_window // 2
    encoder_layer = _attention(
        hparams, S, S, _products(hparams, S, reach, reach)
    ) + _feed_forward(hparams, S)
    decoder_layer = (
        _attention(hparams, T, T, _products(hparams, T, reach, 0))
        + _attention(hparams, T, S, T * S)
        + _feed_forward(hparams, T)
    )
    logits = 2 * T * hparams.d_model * vocabulary_size
    layers = hparams.num_layers * (encoder_layer + decoder_layer)
    return batch_size * (layers + logits)


def _products(hparams, length, before, after):
    """Returns how many queries times keys self-attention takes.

    A mask saves nothing: each query is multiplied by every key. A window does.
    """
    if not hparams.attention_window:
        return length * length
    return windows.blocks(before, after).num_products(length)


def _attention(hparams, query_length, memory_length, num_products):
    """Returns what one sub-layer of multi-head attention takes."""
    depths = hparams.num_heads * (hparams.d_k + hparams.d_v)
    # Each head's keys and values from the memory, queries and output from x.
    projections = 2 * hparams.d_model * depths * (query_length + memory_length)
    return projections + 2 * depths * num_products


def _feed_forward(hparams, length):
    return 2 * 2 * length * hparams.d_model * hparams.d_ff


def update_flops(
    hparams, vocabulary_size, batch_size, source_length, target_length
):
    """Returns the operations of one update: forward and backward pass.

    The backward pass has two products of the same size for each of the forward
    pass, so an update takes three times as much. The optimizer's few
    operations per weight are left out.

    Args: those of `forward_flops`.
    """
    return _PRODUCTS_PER_UPDATE * forward_flops(
        hparams, vocabulary_size, batch_size, source_length, target_length
    )


def tokens_flops(
    hparams, vocabulary_size=None, tokens=None, mean_length=TYPICAL_LENGTH
):
    """Returns the operations of one update of so many tokens on each side.

    >>> from t2t_lite.hparams import PRESETS
    >>> f"{tokens_flops(PRESETS['transformer_base']):.2e}"
    '9.53e+12'

    Args:
        hparams: HParams.
        vocabulary_size: int, V; that of the hparams when not given.
        tokens: int, of source, and as many of target, none of them padding;
            `tokens_per_batch` of the hparams when not given.
        mean_length: float, tokens of a sentence.

    Returns:
        float.
    """
    tokens = tokens or hparams.tokens_per_batch
    return update_flops(
        hparams,
        vocabulary_size or hparams.vocabulary_size,
        tokens / mean_length,
        mean_length,
        mean_length,
    )


def sustained_flops(hours, devices, tflops):
    """Returns what devices do in a time if they sustain so much: a bound.

    >>> f"{sustained_flops(12, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '3.3e+18'

    Args:
        hours: float.
        devices: int.
        tflops: float, of one device, in 10^12 operations a second.

    Source: section 6.1, "multiplying the training time, the number of GPUs
    used, and an estimate of the sustained single-precision floating-point
    capacity of each GPU".
    """
    return hours * 3600 * devices * tflops * 1e12


def describe(flops, device_hours, tflops=None):
    """Returns what a run has cost as lines for a reader, the paper's beside it.

    >>> print(describe(5.2e16, device_hours=2.0, tflops=9.5))
    Training cost, matrix products: 5.20e+16 FLOPs
    Training cost, 2.00 device hours at 9.5 TFLOPS: 6.84e+16 FLOPs
    Training cost in the paper, by time: base 3.3e+18, big 2.3e+19 FLOPs

    Args:
        flops: float, the operations of all updates; NaN if not known.
        device_hours: float, the sum over devices; NaN if not known.
        tflops: float, what a device sustains; None to leave the estimate by
            time out.
    """
    lines = [f"Training cost, matrix products: {flops_text(flops)}"]
    if tflops is not None:
        by_time = flops_text(sustained_flops(device_hours, 1, tflops))
        lines.append(
            f"Training cost, {device_hours:.2f} device hours at {tflops:g} "
            f"TFLOPS: {by_time}"
        )
    base, big = (row.training_flops for row in TABLE_2.values())
    lines.append(
        f"Training cost in the paper, by time: base {base:.1e}, big {big:.1e} "
        "FLOPs"
    )
    return "\n".join(lines)


def flops_text(flops):
    """Returns a number of operations for a reader; NaN is not known."""
    if math.isnan(flops):
        return "not known (begun by a version that did not count)"
    return f"{flops:.2e} FLOPs"


class Comparison(NamedTuple):
    """A model of the paper: its estimate, and what its products take."""

    paper_flops: float  # hours by devices by sustained speed
    model_flops: float  # the products of all updates

    @property
    def ratio(self):
        """The share of the paper's figure that is the model's products."""
        return self.model_flops / self.paper_flops


def compare_with_paper(name):
    """Returns the Comparison of a preset of Table 2.

    >>> base = compare_with_paper("transformer_base")
    >>> big = compare_with_paper("transformer_big")
    >>> f"{base.paper_flops:.1e} {big.paper_flops:.1e}"
    '3.3e+18 2.3e+19'
    >>> f"{base.ratio:.2f} {big.ratio:.2f}"
    '0.29 0.42'

    Args:
        name: a key of TABLE_2.
    """
    paper, hparams = TABLE_2[name], preset(name)
    return Comparison(
        sustained_flops(
            paper.hours, paper.devices, SUSTAINED_TFLOPS[paper.device]
        ),
        hparams.steps * tokens_flops(hparams),
    )
