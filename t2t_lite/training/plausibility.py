"""Warns about text and settings that are probably a mistake."""

import collections

import numpy as np
from absl import logging

from t2t_lite.hparams import HParams
from t2t_lite.text.token_files import TokenPairs
from t2t_lite.text.vocabulary import Vocabulary

_PAIRS_LOOKED_AT = 10_000
_NEARLY_ALL = 0.9  # The share above which a corpus is odd.


def warn_of_odd_text(pairs: TokenPairs, vocabulary: Vocabulary) -> None:
    """Warns about a corpus that is probably not what was meant."""
    num_pairs = len(pairs.source_offsets) - 1
    count = min(num_pairs, _PAIRS_LOOKED_AT)
    indices = np.linspace(0, num_pairs - 1, count).astype(int)
    sources = _sequences(pairs.source_ids, pairs.source_offsets, indices)
    targets = _sequences(pairs.target_ids, pairs.target_offsets, indices)
    if vocabulary.target is not vocabulary:  # The same text has different ids.
        sources = vocabulary.decode(sources)
        targets = vocabulary.target.decode(targets)
    most = max(collections.Counter(targets).values())
    if count > 1 and most > _NEARLY_ALL * count:
        logging.warning(
            "%.0f%% of the training targets are the same line: is this the "
            "right file?",
            100 * most / count,
        )
    copies = sum(s == t for s, t in zip(sources, targets, strict=True))
    if copies > _NEARLY_ALL * count:
        logging.warning(
            "%.0f%% of the training targets are copies of their sources: are "
            "these the right files?",
            100 * copies / count,
        )


def _sequences(
    ids: np.ndarray, offsets: np.ndarray, indices: np.ndarray
) -> list[tuple[int, ...]]:
    """Returns the sequences of ids at `indices`, as hashable tuples."""
    return [tuple(ids[offsets[n] : offsets[n + 1]].tolist()) for n in indices]


def warn_of_unknown(pairs: TokenPairs, vocabulary: Vocabulary) -> None:
    """Warns if a vocabulary from elsewhere lacks characters of the text."""
    ids = pairs.source_ids, pairs.target_ids
    sides = vocabulary, vocabulary.target
    unknown = sum(
        int((i == side.unknown_id).sum())
        for i, side in zip(ids, sides, strict=True)
    )
    if unknown:
        logging.warning(
            "%d of the %d training tokens are unknown to the vocabulary, so "
            "their text is lost: learn a vocabulary from this text, without "
            "--vocabulary and --warm_start_from.",
            unknown,
            sum(map(len, ids)),
        )


def warn_of_depths(hparams: HParams) -> None:
    """Warns if d_v is not d_model / num_heads, as it is throughout the paper.

    Source: section 3.2.2; in Table 3 (B), too, only d_k differs.
    """
    depth, rest = divmod(hparams.d_model, hparams.num_heads)
    if hparams.d_v != depth and not rest:
        logging.warning(
            "num_heads=%d times d_v=%d is not d_model=%d, but in the paper it "
            "is: give --override=d_k=%d --override=d_v=%d, unless this is "
            "meant.",
            hparams.num_heads,
            hparams.d_v,
            hparams.d_model,
            depth,
            depth,
        )


def warn_of_steps(
    hparams: HParams, evaluate_every_steps: int | None = None
) -> None:
    """Warns about what will not happen in so few updates.

    Args:
        hparams: HParams.
        evaluate_every_steps: that of RunOptions, None without dev text.
    """
    every = evaluate_every_steps or 0
    if hparams.steps < every:
        logging.warning(
            "evaluate_every_steps=%d is above steps=%d, so the dev text is "
            "never scored: give --evaluate_every_steps=%d.",
            every,
            hparams.steps,
            hparams.steps,
        )
    if hparams.steps < hparams.warmup_steps:
        logging.warning(
            "steps=%d is below warmup_steps=%d, so the learning rate never "
            "reaches its peak: give more --steps, or a shorter warm-up with "
            "--override=warmup_steps=%d.",
            hparams.steps,
            hparams.warmup_steps,
            max(1, hparams.steps // 3),
        )
