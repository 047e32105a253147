"""Table 3 of the paper: variations of the model, and how good they were."""

from typing import NamedTuple

from t2t_lite.hparams import PRESETS
from t2t_lite.model import flops as training_cost

# The fields that its columns are, under the paper's symbols.
_COLUMNS = {
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


class PaperRow(NamedTuple):
    """What the paper prints, on newstest2013 of English-German."""

    group: str  # (A) to (E)
    perplexity: float  # per token of the vocabulary
    bleu: float
    parameters: int | None = None  # millions, where it prints them


# By preset.
TABLE_3 = {
    "transformer_base": PaperRow("base", 4.92, 25.8, 65),
    "transformer_h1": PaperRow("(A)", 5.29, 24.9),
    "transformer_h4": PaperRow("(A)", 5.00, 25.5),
    "transformer_h16": PaperRow("(A)", 4.91, 25.8),
    "transformer_h32": PaperRow("(A)", 5.01, 25.4),
    "transformer_k16": PaperRow("(B)", 5.16, 25.1, 58),
    "transformer_k32": PaperRow("(B)", 5.01, 25.4, 60),
    "transformer_l2": PaperRow("(C)", 6.11, 23.7, 36),
    "transformer_l4": PaperRow("(C)", 5.19, 25.3, 50),
    "transformer_l8": PaperRow("(C)", 4.88, 25.5, 80),
    "transformer_hs256": PaperRow("(C)", 5.75, 24.5, 28),
    "transformer_hs1024": PaperRow("(C)", 4.66, 26.0, 168),
    "transformer_ff1024": PaperRow("(C)", 5.12, 25.4, 53),
    "transformer_ff4096": PaperRow("(C)", 4.75, 26.2, 90),
    "transformer_dr0": PaperRow("(D)", 5.77, 24.6),
    "transformer_dr2": PaperRow("(D)", 4.95, 25.5),
    "transformer_ls0": PaperRow("(D)", 4.67, 25.3),
    "transformer_ls2": PaperRow("(D)", 5.47, 25.7),
    "transformer_learned": PaperRow("(E)", 4.92, 25.7),
    "transformer_big": PaperRow("big", 4.33, 26.4, 213),
}

_EXPLANATION = """\
Millions of parameters are those of a shared vocabulary of 37,000, the paper's
beside them where it prints them; a * marks those that differ by more than
rounding. The paper does not say how it counts. A vocabulary of 41,100 would
give every figure that it prints but big's: 218 million would be its count then.
FLOPs are those of one update's matrix products, at 25,000 tokens a side in
sentences of {length}. Perplexity and BLEU are the paper's, on newstest2013,
beam 4 and length penalty 0.6, without averaging of checkpoints."""


def num_parameters(hparams, vocabulary_size=None):
    """Returns how many weights a Transformer has.

    Args:
        hparams: HParams.
        vocabulary_size: int, V; that of the hparams when not given.
    """
    D, F, N = hparams.d_model, hparams.d_ff, hparams.num_layers
    attention = 2 * D * hparams.num_heads * (hparams.d_k + hparams.d_v)
    feed_forward = (D * F + F) + (F * D + D)
    norm = 2 * D
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    is_learned = hparams.positions == "learned"
    positions = 2 * hparams.learned_positions * D if is_learned else 0
    embedding = (vocabulary_size or hparams.vocabulary_size) * D
    return embedding + positions + N * (encoder_layer + decoder_layer)


def as_text():
    """Returns the table as lines for a reader."""
    header = ("", "preset", "settings", "10^6", "paper", "FLOPs", "PPL", "BLEU")
    rows = [header, *map(_row, TABLE_3)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    explanation = _EXPLANATION.format(length=training_cost.TYPICAL_LENGTH)
    return "\n".join([*lines, "", explanation])


def _row(name):
    hparams, paper = PRESETS[name], TABLE_3[name]
    millions = num_parameters(hparams) / 1e6
    printed = ""
    if paper.parameters is not None:
        is_other = abs(millions - paper.parameters) > 0.5
        printed = f"{paper.parameters}{'*' if is_other else ''}"
    return (
        paper.group,
        name,
        _settings(hparams),
        f"{millions:.1f}",
        printed,
        f"{training_cost.tokens_flops(hparams):.2e}",
        f"{paper.perplexity:.2f}",
        f"{paper.bleu:.1f}",
    )


def _settings(hparams):
    """Returns what is not as in the base model; of that one, all."""
    base = PRESETS["transformer_base"]
    return " ".join(
        f"{symbol}={getattr(hparams, name)}"
        for name, symbol in _COLUMNS.items()
        if hparams is base or getattr(hparams, name) != getattr(base, name)
    )
