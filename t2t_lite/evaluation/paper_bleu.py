"""BLEU the paper's own way: tokenized by Moses, compounds split, no smoothing.

The paper does not say how it was counted. Its authors' get_ende_bleu.sh, in the
tensor2tensor of that month, has three steps, which are those of this module:
Moses' tokenizer.perl, a split of hyphenated compounds

    rich-text format  ->  rich ##AT##-##AT## text format

and multi-bleu.perl, cased. The split makes more n-grams match, so the figure is
not comparable with sacrebleu's: compare it only with the paper's, and that of
newstest2014 with care. Their reference was already tokenized, and is said to
have had a straight quote for every typographic one; no quote is changed here.
"""

import re
from collections.abc import Sequence

import sacremoses
from sacrebleu.metrics.bleu import BLEU, BLEUScore

from t2t_lite.errors import InputError

# On bytes, which is what Perl reads there: a-b-c is split only at its first
# hyphen, because the second match would need the b again, but a-é-c at both,
# because é is two bytes.
_COMPOUND = re.compile(rb"(\S)-(\S)")


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> BLEUScore:
    """Returns the BLEU of translations, each with one reference.

    >>> round(corpus_bleu(["a b c d e"], ["a b c d x"], "en").score, 2)
    66.87

    Args:
        hypotheses: detokenized.
        references: one for each hypothesis, detokenized.
        language: of both, by its code of two letters, which chooses Moses'
            rules for abbreviations and apostrophes. If Moses knows none for
            that code, it uses the abbreviations of English, and the
            `signature` says so.

    Returns:
        sacrebleu's BLEUScore: the score and the precisions of 0 to 100, the
        brevity penalty and the lengths in tokens.

    Raises:
        InputError: the numbers of hypotheses and references differ.

    Source: get_ende_bleu.sh of tensor2tensor.
    """
    tokenizer = sacremoses.MosesTokenizer(language)
    return multi_bleu(
        [tokenize(line, tokenizer) for line in hypotheses],
        [tokenize(line, tokenizer) for line in references],
    )


def multi_bleu(
    hypotheses: Sequence[str], references: Sequence[str]
) -> BLEUScore:
    """Returns the BLEU of tokens with spaces between them, without smoothing.

    Raises:
        InputError: the numbers of hypotheses and references differ.

    Source: Moses' multi-bleu.perl.
    """
    if len(hypotheses) != len(references):
        raise InputError(
            "each hypothesis needs one reference; received "
            f"{len(hypotheses)} hypotheses and {len(references)} references"
        )
    # Lines that look tokenized are meant to be.
    bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    return bleu.corpus_score(hypotheses, [references])


def tokenize(line: str, tokenizer: sacremoses.MosesTokenizer) -> str:
    """Returns a line as tokens with a space between them, compounds split.

    >>> tokenize("a rich-text format", sacremoses.MosesTokenizer("en"))
    'a rich ##AT##-##AT## text format'
    """
    # Whatever white space the line has becomes a space here.
    text = tokenizer.tokenize(line, return_str=True, escape=True)
    return _COMPOUND.sub(rb"\1 ##AT##-##AT## \2", text.encode()).decode()


def signature(language: str) -> str:
    """Returns what decides a score, in the style of sacrebleu's signatures."""
    return (
        f"nrefs:1|case:mixed|tok:{moses_rules(language)}|compounds:split"
        f"|smooth:none|sacremoses:{sacremoses.__version__}"
    )


def moses_rules(language: str) -> str:
    """Returns which rules Moses splits text of a language by.

    >>> moses_rules("de"), moses_rules("tlh")
    ('moses-de', 'moses-tlh-with-abbreviations-of-en')
    """
    known = sacremoses.corpus.NonbreakingPrefixes().available_langs.values()
    return f"moses-{language}" + (
        "" if language in known else "-with-abbreviations-of-en"
    )
