"""The paper's results: its Table 2, and the variations of its Table 3.

The cost of training can be stated in two ways. The model's own operations
follow from the shapes of its matrix products (`t2t_lite.model.flops`). The
paper instead multiplies hours, devices and what a device sustains
(`sustained_flops`), which also counts what a device does between products and
the time it waits: the model's own operations come to about 0.3 (base) and 0.4
(big) of that.
"""

from typing import NamedTuple

from t2t_lite.hparams import PRESETS, HParams
from t2t_lite.model.flops import (
    TYPICAL_LENGTH,
    num_parameters,
    tokens_flops,
)

# What a device sustains in single precision, in TFLOPS.
# Source: section 6.1, footnote 5.
SUSTAINED_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}


class Table2Row(NamedTuple):
    """A row of Table 2, and the training that sections 5.2 and 6.1 report."""

    training_flops: float
    bleu_en_de: float  # newstest2014
    bleu_en_fr: float  # of the _en_fr preset; 6.1 itself says 41.0 for big
    hours: float
    devices: int
    device: str  # a name of SUSTAINED_TFLOPS


# By preset.
TABLE_2 = {
    "transformer_base": Table2Row(
        training_flops=3.3e18,
        bleu_en_de=27.3,
        bleu_en_fr=38.1,
        hours=12,
        devices=8,
        device="P100",
    ),
    "transformer_big": Table2Row(
        training_flops=2.3e19,
        bleu_en_de=28.4,
        bleu_en_fr=41.8,
        hours=3.5 * 24,
        devices=8,
        device="P100",
    ),
}


def training_flops_text() -> str:
    """Returns what the models of Table 2 cost to train, for a reader.

    >>> training_flops_text()
    'base 3.3e+18, big 2.3e+19 FLOPs'
    """
    base = TABLE_2["transformer_base"].training_flops
    big = TABLE_2["transformer_big"].training_flops
    return f"base {base:.1e}, big {big:.1e} FLOPs"


class Table3Row(NamedTuple):
    """A row of Table 3: results on newstest2013 of English-German."""

    group: str  # (A) to (E)
    perplexity: float  # per token of the vocabulary
    bleu: float
    million_parameters: int | None = None  # where the paper prints them


# By preset.
TABLE_3 = {
    "transformer_base": Table3Row("base", 4.92, 25.8, million_parameters=65),
    "transformer_h1": Table3Row("(A)", 5.29, 24.9),
    "transformer_h4": Table3Row("(A)", 5.00, 25.5),
    "transformer_h16": Table3Row("(A)", 4.91, 25.8),
    "transformer_h32": Table3Row("(A)", 5.01, 25.4),
    "transformer_k16": Table3Row("(B)", 5.16, 25.1, million_parameters=58),
    "transformer_k32": Table3Row("(B)", 5.01, 25.4, million_parameters=60),
    "transformer_l2": Table3Row("(C)", 6.11, 23.7, million_parameters=36),
    "transformer_l4": Table3Row("(C)", 5.19, 25.3, million_parameters=50),
    "transformer_l8": Table3Row("(C)", 4.88, 25.5, million_parameters=80),
    "transformer_hs256": Table3Row("(C)", 5.75, 24.5, million_parameters=28),
    "transformer_hs1024": Table3Row("(C)", 4.66, 26.0, million_parameters=168),
    "transformer_ff1024": Table3Row("(C)", 5.12, 25.4, million_parameters=53),
    "transformer_ff4096": Table3Row("(C)", 4.75, 26.2, million_parameters=90),
    "transformer_dr0": Table3Row("(D)", 5.77, 24.6),
    "transformer_dr2": Table3Row("(D)", 4.95, 25.5),
    "transformer_ls0": Table3Row("(D)", 4.67, 25.3),
    "transformer_ls2": Table3Row("(D)", 5.47, 25.7),
    "transformer_learned": Table3Row("(E)", 4.92, 25.7),
    "transformer_big": Table3Row("big", 4.33, 26.4, million_parameters=213),
}
# The settings that Table 3 has a column for, under the paper's symbols.
_TABLE_3_SYMBOLS = {
    "num_layers": "N",
    "d_model": "d_model",
    "d_ff": "d_ff",
    "num_heads": "h",
    "d_k": "d_k",
    "d_v": "d_v",
    "dropout": "P_drop",
    "label_smoothing": "eps_ls",
    "positions": "positions",
    "steps": "steps",
}
_TABLE_3_NOTE = """\
Millions of parameters are those of a shared vocabulary of 37,000, the paper's
beside them where it prints them; a * marks those that differ by more than
rounding. The paper does not say how it counts. A vocabulary of 41,100 would
give every figure that it prints but big's: 218 million would be its count then.
FLOPs are those of one update's matrix products, at 25,000 tokens a side in
sentences of {length}. Perplexity and BLEU are the paper's, on newstest2013,
beam 4 and length penalty 0.6, without averaging of checkpoints."""


def sustained_flops(hours: float, devices: int, tflops: float) -> float:
    """Returns the most operations that devices can do in a time: a bound.

    >>> f"{sustained_flops(12, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '3.3e+18'

    Args:
        hours: of training.
        devices: how many.
        tflops: what one device sustains, in 10^12 operations a second.

    Source: section 6.1, "multiplying the training time, the number of GPUs
    used, and an estimate of the sustained single-precision floating-point
    capacity of each GPU".
    """
    return hours * 3600 * devices * tflops * 1e12


def table_3_text() -> str:
    """Returns Table 3 as lines for a reader, with presets beside its rows."""
    header = ("", "preset", "settings", "10^6", "paper", "FLOPs", "PPL", "BLEU")
    rows = [header, *map(_table_3_cells, TABLE_3)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    note = _TABLE_3_NOTE.format(length=TYPICAL_LENGTH)
    return "\n".join([*lines, "", note])


def _table_3_cells(name: str) -> tuple[str, ...]:
    hparams, row = PRESETS[name], TABLE_3[name]
    millions = num_parameters(hparams) / 1e6
    printed = ""
    if row.million_parameters is not None:
        differs = abs(millions - row.million_parameters) > 0.5
        printed = f"{row.million_parameters}{'*' if differs else ''}"
    return (
        row.group,
        name,
        _settings_text(hparams),
        f"{millions:.1f}",
        printed,
        f"{tokens_flops(hparams):.2e}",
        f"{row.perplexity:.2f}",
        f"{row.bleu:.1f}",
    )


def _settings_text(hparams: HParams) -> str:
    """Returns the settings that differ from base; for base itself, all."""
    base = PRESETS["transformer_base"]
    return " ".join(
        f"{symbol}={getattr(hparams, field)}"
        for field, symbol in _TABLE_3_SYMBOLS.items()
        if hparams is base or getattr(hparams, field) != getattr(base, field)
    )
