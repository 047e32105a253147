"""How well a model of the embedded corpus aligns its test text.

    python tests/benchmarks/alignments.py MODEL [--average_last=1]

Prints the alignment error rate of the head that the settings name, or else of
the mean over the last layer's heads: on all pairs, on those with reordering,
whose links cross, as in subordinate clauses and with separable verbs, and on
the others.
"""

import argparse
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import measuring

from t2t_lite.storage import settings_file
from t2t_lite.text import pharaoh
from t2t_lite_data import embedded


def is_reordered(links) -> bool:
    """Returns whether any two links of a pair cross."""
    return any(
        (s - other_s) * (t - other_t) < 0
        for (s, t), (other_s, other_t) in itertools.combinations(links, 2)
    )


def main() -> None:
    """Prints a line for the head, and one for each kind of pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--average_last", type=int, default=1)
    args = parser.parse_args()
    with measuring.usage_errors(parser):
        settings_file.require_task(args.model, "translation")

    from t2t_lite.evaluation.alignment_heads import ranked_heads
    from t2t_lite.model.alignment_head import AlignmentHead
    from t2t_lite.storage.model_directory import ModelDirectory

    directory = ModelDirectory(args.model)
    with measuring.usage_errors(parser):
        settings, vocabulary = directory.settings(), directory.vocabulary()
        loaded = directory.load_model(average_last=args.average_last)
    chosen = settings.alignment_head
    head = (
        AlignmentHead(*chosen)
        if chosen
        else AlignmentHead(settings.hparams.decoder_layers - 1)
    )
    pairs = embedded.pairs("test")
    links = pharaoh.links_of(embedded.alignments("test"), pairs)
    kinds = {
        "all": [True] * len(pairs),
        "reordered": list(map(is_reordered, links)),
        "in order": [not is_reordered(each) for each in links],
    }
    print(f"layer {head.layer}, head {head.head}, reads {head.reads}")
    for name, is_wanted in kinds.items():
        wanted = [
            each if is_one else frozenset()
            for each, is_one in zip(links, is_wanted, strict=True)
        ]
        (found,) = ranked_heads(
            loaded.model, vocabulary, pairs, links=wanted, heads=[head]
        )
        print(
            f"{name}: {found.num_pairs} pairs, alignment error rate "
            f"{found.error_rate:.2%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
