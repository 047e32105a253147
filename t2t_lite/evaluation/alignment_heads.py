"""Which head of the decoder best tells which words stand for which."""

import dataclasses
import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from t2t_lite.alignment.word_alignment import Aligner, Pair
from t2t_lite.decoding.ensemble import only_model
from t2t_lite.decoding.line_predictor import LinePredictor
from t2t_lite.english import counted
from t2t_lite.evaluation.alignment_error import alignment_error_rate
from t2t_lite.hparams import HParams
from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text.pharaoh import Link
from t2t_lite.text.vocabulary import Vocabulary

_WAYS = (False, True)  # Where tokens are predicted, and where they are read.

Pairs = Sequence[tuple[str, str]]  # (source, target)
Links = Sequence[Collection[Link]]  # of each pair


class Ranked(NamedTuple):
    """A head, and how far the links that it finds are from the right ones."""

    error_rate: float
    head: AlignmentHead
    num_pairs: int  # whose links are known


def candidate_heads(hparams: HParams) -> list[AlignmentHead]:
    """Returns the heads of each decoder layer, and their means, both ways."""
    layers = range(hparams.decoder_layers)
    heads = [None, *range(hparams.num_heads)]
    return list(
        itertools.starmap(
            AlignmentHead, itertools.product(layers, heads, _WAYS)
        )
    )


def ranked_heads(
    model: Transformer,
    vocabulary: Vocabulary,
    pairs: Pairs,
    links: Links,
    heads: Sequence[AlignmentHead] | None = None,
) -> list[Ranked]:
    """Returns heads by their alignment error rate, the lowest first.

    Args:
        model: Transformer.
        vocabulary: Vocabulary.
        pairs: those to align; those whose source is too long for the model are
            left out.
        links: the right ones; none of a pair for which they are not known.
        heads: which to rank; `candidate_heads` when not given.

    Raises:
        InputError: no pair has links.
    """
    aligner = Aligner(
        model, vocabulary, heads or candidate_heads(model.hparams)
    )
    sources, targets = zip(*pairs, strict=True)
    encoded = vocabulary.encode(list(sources))
    fits = [len(ids) <= model.hparams.max_length for ids in encoded]
    known = [n for n, each in enumerate(links) if each and fits[n]]
    by_head = aligner.links(
        [Pair(encoded[n], sources[n], targets[n]) for n in known]
    )
    right = [links[n] for n in known]
    ranked = [
        Ranked(alignment_error_rate(found, right), head, len(known))
        for found, head in zip(by_head, aligner.heads, strict=True)
    ]
    return sorted(ranked, key=lambda each: each.error_rate)


def choose(
    directory: ModelDirectory,
    translator: LinePredictor,
    pairs: Mapping[str, Pairs],
    links: Mapping[str, Links],
) -> str:
    """Saves the head that aligns dev best in the settings of a model.

    Args:
        directory: ModelDirectory of the model.
        translator: the model's.
        pairs: those of each split, including "dev".
        links: the right ones of each split that is to be scored.

    Returns:
        which head it is and its error rates, for a reader.

    Raises:
        InputError: no pair of a split has links.
    """
    rank = functools.partial(
        ranked_heads, only_model(translator.model), translator.vocabulary
    )
    ranked = rank(pairs["dev"], links["dev"])
    found = {"dev": ranked[0]}
    for split in sorted({*links} - {"dev"}):
        (found[split],) = rank(pairs[split], links[split], [found["dev"].head])
    best = found["dev"].head
    settings = directory.settings()
    directory.save_settings(
        dataclasses.replace(settings, alignment_head=list(best))
    )
    return "\n".join(
        [
            f"alignment head: {_described(best)} (best of {len(ranked)})",
            *(
                f"{split}: {counted(each.num_pairs, 'pair')} with links, "
                f"alignment error rate {each.error_rate:.2%}"
                for split, each in found.items()
            ),
        ]
    )


def _described(head: AlignmentHead) -> str:
    """Returns the name of a head.

    >>> _described(AlignmentHead(1, 3))
    'head 3 of layer 1'
    """
    which = "the mean" if head.head is None else f"head {head.head}"
    where = ", where tokens are read" if head.reads else ""
    return f"{which} of layer {head.layer}{where}"
