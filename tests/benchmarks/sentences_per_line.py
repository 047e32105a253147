"""What several sentences in a line cost: BLEU by their number.

    python tests/benchmarks/sentences_per_line.py MODEL SOURCE TARGET
        [--sentences=auto] [--average_last=1]

MODEL is a model directory, or one version of an export, whose signature
serving_default then translates. Lines without an end mark are left out; the
others are joined, 1, 2, 5 and 50 to a line. Longer lines by themselves have a
higher BLEU, so each BLEU is printed beside that of the same sentences,
translated one by one and joined afterwards.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import measuring

from t2t_lite_data import text_files

_END_MARKS = tuple('.!?"')


def sentence_pairs(source: str, target: str) -> list[tuple[str, str]]:
    """Returns the pairs of two files whose source ends with an end mark."""
    pairs = text_files.pairs(source, target)
    return [pair for pair in pairs if pair[0].rstrip().endswith(_END_MARKS)]


def joined(lines: list[str], count: int) -> list[str]:
    """Returns lines that each join `count` of the given ones with spaces."""
    return [
        " ".join(lines[start : start + count])
        for start in range(0, len(lines), count)
    ]


def translator(model: str, sentences: str, average_last: int):
    """Returns a function from a list of lines to a list of translations."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401, the ops of an export

    if not pathlib.Path(model, "saved_model.pb").exists():
        from t2t_lite import Translator

        return Translator(model, average_last=average_last, sentences=sentences)
    served = tf.saved_model.load(model)
    translate = served.signatures["serving_default"]

    def translated(lines):
        outputs = translate(inputs=tf.constant(lines))["outputs"].numpy()
        return [text.decode() for text in outputs]

    return translated


def main() -> None:
    """Prints a line for each number of sentences per line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("model", "source", "target"):
        parser.add_argument(name)
    parser.add_argument("--sentences", default="auto")
    parser.add_argument("--average_last", type=int, default=1)
    args = parser.parse_args()
    with measuring.usage_errors(parser):
        pairs = sentence_pairs(args.source, args.target)
        if not pairs:
            parser.error(f"no line of {args.source} has an end mark")
        sources, targets = map(list, zip(*pairs, strict=True))
        translate = translator(args.model, args.sentences, args.average_last)

    import sacrebleu

    one_by_one = translate(sources)
    print(f"{len(pairs)} sentences\nto a line    BLEU  one by one")
    for count in (1, 2, 5, 50):
        bleu, best = (
            sacrebleu.corpus_bleu(found, [joined(targets, count)]).score
            for found in (
                translate(joined(sources, count)),
                joined(one_by_one, count),
            )
        )
        print(f"{count:9} {bleu:7.2f} {best:11.2f}", flush=True)


if __name__ == "__main__":
    main()
