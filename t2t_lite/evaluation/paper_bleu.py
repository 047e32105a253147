"""BLEU the paper's own way: tokenized by Moses, compounds split, no smoothing.

The paper does not say how it was counted. Its authors' get_ende_bleu.sh, in the
tensor2tensor of that month, has three steps, which are those of this module:
Moses' tokenizer.perl, a split of hyphenated compounds

    rich-text format  ->  rich ##AT##-##AT## text format

and multi-bleu.perl, cased. The split makes more n-grams match, so the figure is
not comparable with sacrebleu's: compare it with the paper's alone, and that of
newstest2014 with care. Their reference was tokenized before, and is said to
have had every typographic quote as a straight one; no quote is changed here.
"""

import importlib.metadata
import math
import re
from collections import Counter
from typing import NamedTuple

import sacremoses

_MAX_ORDER = 4
# On bytes, which is what Perl reads there: a-b-c is split at its first hyphen
# alone, for the second match would need the b again, but a-é-c at both, for é
# is two bytes.
_COMPOUND = re.compile(rb"(\S)-(\S)")


class PaperBleu(NamedTuple):
    """BLEU of a corpus, and what it is made of."""

    score: float  # 0 to 100
    precisions: tuple[float, ...]  # of n-grams of 1 to 4 tokens, 0 to 100
    brevity_penalty: float  # 0 to 1
    length: int  # tokens of all hypotheses
    reference_length: int
    signature: str


def paper_bleu(hypotheses, references, language):
    """Returns the PaperBleu of translations, each with one reference.

    Args:
        hypotheses: list of str, detokenized.
        references: list of str, as long, detokenized.
        language: of both, by its code of two letters, which chooses Moses'
            rules for abbreviations and apostrophes. Where Moses knows none of
            that code, it takes the abbreviations of English, which the
            signature says.

    Source: get_ende_bleu.sh of tensor2tensor.
    """
    tokenizer = sacremoses.MosesTokenizer(language)
    counts, *lengths = count_ngrams(
        [tokenize(line, tokenizer) for line in hypotheses],
        [tokenize(line, tokenizer) for line in references],
    )
    return PaperBleu(*bleu(counts, *lengths), *lengths, signature(language))


def signature(language):
    """Returns what decides a score, in the manner of sacrebleu's signatures."""
    version = importlib.metadata.version("sacremoses")
    known = sacremoses.corpus.NonbreakingPrefixes().available_langs.values()
    rules = "" if language in known else "-with-abbreviations-of-en"
    return (
        f"nrefs:1|case:mixed|tok:moses-{language}{rules}|compounds:split|smooth:none"
        f"|sacremoses:{version}"
    )


def tokenize(line, tokenizer):
    """Returns the tokens of a line, compounds split, as a list of bytes.

    >>> line = "a rich-text format"
    >>> b" ".join(tokenize(line, sacremoses.MosesTokenizer("en"))).decode()
    'a rich ##AT##-##AT## text format'

    Args:
        line: str.
        tokenizer: sacremoses.MosesTokenizer.
    """
    text = tokenizer.tokenize(line, return_str=True, escape=True).encode()
    return _COMPOUND.sub(rb"\1 ##AT##-##AT## \2", text).split()


def count_ngrams(hypotheses, references):
    """Returns what the BLEU of a corpus is computed from.

    Args:
        hypotheses: list of lists of tokens.
        references: list of lists of tokens, as long.

    Returns:
        list of (matches, n-grams in all) for n of 1 to 4, where an n-gram
        matches no more often than its reference has it; tokens of all
        hypotheses; tokens of all references.
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
    """Returns (score, precisions, brevity penalty), as multi-bleu.perl does.

    The score is 0 where a precision is.

    Args: what `count_ngrams` returns.

    Returns:
        float of 0 to 100; tuple of 4 floats of 0 to 100; float of 0 to 1.

    Source: Papineni et al. 2002, section 2.3.
    """
    precisions = tuple(
        100 * matches / total if total else 0.0 for matches, total in counts
    )
    if not length:
        return 0.0, precisions, 0.0
    brevity_penalty = math.exp(min(0.0, 1 - reference_length / length))
    if not all(precisions):
        return 0.0, precisions, brevity_penalty
    mean = math.exp(sum(map(math.log, precisions)) / _MAX_ORDER)
    return brevity_penalty * mean, precisions, brevity_penalty
