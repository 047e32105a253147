"""BLEU as most papers on Multi30k count it: lowercased, and split by Moses.

Their text goes through Moses' lowercase.perl, normalize-punctuation.perl and
tokenizer.perl before anything else, so that multi-bleu.perl, which counts in
the end, sees lowercased tokens with `&apos;` and the like. That is easier than
cased text: compare the figure only with those of such papers.
"""

from collections.abc import Sequence

import sacremoses
from sacrebleu.metrics.bleu import BLEUScore

from t2t_lite.evaluation import paper_bleu


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> BLEUScore:
    """Returns the BLEU of translations, each with one reference.

    >>> found = corpus_bleu(["Der Hund schläft."], ["der hund schläft ."], "de")
    >>> round(found.score, 2)
    100.0

    The arguments and errors are those of `paper_bleu.corpus_bleu`.

    Source: the scripts of the multi30k-dataset, task 1, and multi-bleu.perl.
    """
    return paper_bleu.multi_bleu(
        tokenize(hypotheses, language), tokenize(references, language)
    )


def tokenize(lines: Sequence[str], language: str) -> list[str]:
    """Returns lines as lowercase tokens with a space between them.

    >>> tokenize(["L'été, «so»."], "fr")
    ['l&apos; été , &quot; so &quot; .']
    """
    normalizer = sacremoses.MosesPunctNormalizer(language)
    tokenizer = sacremoses.MosesTokenizer(language)
    return [
        tokenizer.tokenize(
            normalizer.normalize(line.lower()), return_str=True, escape=True
        )
        for line in lines
    ]


def signature(language: str) -> str:
    """Returns what decides a score, in the style of sacrebleu's signatures."""
    return (
        f"nrefs:1|case:lc|tok:{paper_bleu.moses_rules(language)}"
        f"|punctuation:normalized|smooth:none|sacremoses:{sacremoses.__version__}"
    )
