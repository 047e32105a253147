"""BLEU of tokenized text, counted by hand in the way of multi-bleu.perl."""

import math
from collections import Counter

_MAX_ORDER = 4


def count_ngrams(hypotheses, references):
    """Returns the counts that the BLEU of a corpus is computed from.

    Args:
        hypotheses: list of lists of tokens.
        references: list of lists of tokens, one for each hypothesis.

    Returns:
        list of (matches, total n-grams) for n from 1 to 4, where an n-gram
        matches no more often than it occurs in the reference; number of tokens
        of all hypotheses; number of tokens of all references.
    """
    matches, totals = [0] * _MAX_ORDER, [0] * _MAX_ORDER
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(_MAX_ORDER):
            found = _ngrams(hypothesis, n + 1)
            matches[n] += (found & _ngrams(reference, n + 1)).total()
            totals[n] += found.total()
    return (
        list(zip(matches, totals, strict=True)),
        sum(map(len, hypotheses)),
        sum(map(len, references)),
    )


def _ngrams(tokens, n):
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))


def bleu(counts, length, reference_length):
    """Returns (score, precisions, brevity penalty).

    The score is 0 if any precision is.

    Args: what `count_ngrams` returns.

    Returns:
        float from 0 to 100; list of 4 floats from 0 to 100; float from 0 to 1.

    Source: Papineni et al. 2002, section 2.3.
    """
    precisions = [
        100 * matches / total if total else 0.0 for matches, total in counts
    ]
    if not length:
        return 0.0, precisions, 0.0
    brevity_penalty = math.exp(min(0.0, 1 - reference_length / length))
    if not all(precisions):
        return 0.0, precisions, brevity_penalty
    mean = math.exp(sum(map(math.log, precisions)) / _MAX_ORDER)
    return brevity_penalty * mean, precisions, brevity_penalty
