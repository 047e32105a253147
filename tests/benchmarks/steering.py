"""What steering costs: seconds and BLEU on a file, compared with none.

    python tests/benchmarks/steering.py MODEL SOURCE TARGET
        [--average_last=1] [--rounds=3]

MODEL is a model directory. A prefix is the first third of the characters of its
reference, even if that ends within a word; BLEU with prefixes thus counts the
reference's own words. Marks that are kept are removed from the translations, so
that BLEU is comparable. The ways take turns, after an untimed run of each.
"""

import argparse
import functools
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import measuring

from t2t_lite_data import text_files

_OPTIONS = {
    "nothing": {},
    "no_repeat_ngram_size=3": {"no_repeat_ngram_size": 3},
    "min_length=5": {"min_length": 5},
    "suppress=Frau,Hund,Mann": {"suppress": ["Frau", "Hund", "Mann"]},
}


def ways(model_dir: str, average_last: int, sources: list, targets: list):
    """Returns functions, by name, whose calls return translations."""
    from t2t_lite import Translator

    translators = {
        name: Translator(model_dir, average_last=average_last, **options)
        for name, options in _OPTIONS.items()
    }
    plain = translators["nothing"]
    alternatives = Translator(
        model_dir, average_last=average_last, alternatives=5
    )
    prefixes = {
        # One is not blank: without any prefix, the search is another.
        "blank prefixes but one": [*[""] * (len(targets) - 1), "Ein"],
        "prefixes": [target[: len(target) // 3] for target in targets],
    }
    keeping = Translator(
        model_dir, average_last=average_last, keep=["tags", "placeholders"]
    )
    marked = {
        "keep: a word in <b> in each line": "<b>{}</b>",
        "keep: a placeholder in each line": "{} {{x}}",
    }
    return {
        **{n: lambda t=t: t(sources) for n, t in translators.items()},
        **{
            name: functools.partial(keep, keeping, sources, mark)
            for name, mark in marked.items()
        },
        "5 alternatives of the first word": lambda: [
            found[0].text for found in alternatives.translate(sources)
        ],
        **{
            name: lambda of_lines=of_lines: plain(sources, prefix=of_lines)
            for name, of_lines in prefixes.items()
        },
    }


def keep(translator, lines: list[str], mark: str) -> list[str]:
    """Returns the translations of marked lines, with the marks removed."""
    translations = translator([with_mark(line, mark) for line in lines])
    return [without_marks(text) for text in translations]


def with_mark(line: str, mark: str) -> str:
    """Returns a line with a mark at the word in its middle."""
    words = line.split()
    if words:
        words[len(words) // 2] = mark.format(words[len(words) // 2])
    return " ".join(words)


def without_marks(text: str) -> str:
    """Returns a translation with the marks removed."""
    return " ".join(re.sub(r"</?b>|\{x\}", "", text).split())


def main() -> None:
    """Prints a line for each kind of steering."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("model", "source", "target"):
        parser.add_argument(name)
    parser.add_argument("--average_last", type=int, default=1)
    parser.add_argument("--rounds", type=measuring.positive_int, default=3)
    args = parser.parse_args()
    with measuring.usage_errors(parser):
        pairs = list(text_files.pairs(args.source, args.target))
        sources, targets = map(list, zip(*pairs, strict=True))
        translate = ways(
            args.model, args.average_last, sources, targets=targets
        )

    import sacrebleu

    found, seconds = {}, {}
    for _ in range(1 + args.rounds):
        for name, run in translate.items():
            taken, found[name] = measuring.timed(run)
            seconds.setdefault(name, []).append(taken)
    print(f"{'':32}   seconds  ratio   BLEU  lines that differ")
    base = statistics.median(seconds["nothing"][1:])
    for name, texts in found.items():
        middle = statistics.median(seconds[name][1:])
        bleu = sacrebleu.corpus_bleu(texts, [targets]).score
        differ = sum(
            a != b for a, b in zip(texts, found["nothing"], strict=True)
        )
        figures = f"{middle:9.2f} {middle / base:6.2f} {bleu:6.2f} {differ:6}"
        print(f"{name:32} {figures}")


if __name__ == "__main__":
    main()
