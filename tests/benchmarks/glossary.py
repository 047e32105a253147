"""What a glossary costs: seconds, BLEU, and whether all its terms are there.

    python tests/benchmarks/glossary.py MODEL SOURCE TARGET
        [--average_last=1] [--terms=50] [--rounds=1]

MODEL is a model directory. The terms are words that tend to occur in the same
lines, one in SOURCE and the other in TARGET. One glossary translates them by
these words of TARGET, another by made-up words: the same, spelled backwards.
The references for the second have the made-up words, too.
"""

import argparse
import collections
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2] / "bin"))

import checkout  # noqa: F401, this checkout's packages
import measuring

from t2t_lite_data import text_files

_WORD = re.compile(r"\w+")
_FEWEST_LINES = 3
_SHORTEST = 4  # Characters of a term's words.


def learn_terms(pairs, count):
    """Returns {source word: target word} of those that best go together.

    Args:
        pairs: (source, target) lines.
        count: how many terms, at most.
    """
    sides = [
        [{*_WORD.findall(line)} for line in side]
        for side in zip(*pairs, strict=True)
    ]
    lines_of = [
        collections.Counter(word for words in side for word in words)
        for side in sides
    ]
    together = collections.Counter(
        (source, target)
        for sources, targets in zip(*sides, strict=True)
        for source in sources
        for target in targets
    )
    scored = sorted(
        (
            -2 * number / (lines_of[0][source] + lines_of[1][target]),
            source,
            target,
        )
        for (source, target), number in together.items()
        if number >= _FEWEST_LINES
        and min(len(source), len(target)) >= _SHORTEST
    )
    terms = {}
    for _, source, target in scored:
        if source not in terms and target not in terms.values():
            terms[source] = target
    return dict([*terms.items()][:count])


def asked_of(line, terms):
    """Returns a Counter of the target words that a translation must have."""
    found = collections.Counter()
    for word in _WORD.findall(line):
        target = terms.get(word) or terms.get(word.lower())
        if target:
            found[target] += 1
    return found


def count_misses(sources, texts, terms):
    """Returns how many terms are missing, and how many are too many."""
    missing = too_many = 0
    for line, text in zip(sources, texts, strict=True):
        found = collections.Counter(_WORD.findall(text))
        for target, number in asked_of(line, terms).items():
            missing += max(0, number - found[target])
            too_many += max(0, found[target] - number)
    return missing, too_many


def main() -> None:
    """Prints a line without a glossary, and one for each glossary."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("model", "source", "target"):
        parser.add_argument(name)
    for name, default in (("average_last", 1), ("terms", 50), ("rounds", 1)):
        parser.add_argument(
            f"--{name}", type=measuring.positive_int, default=default
        )
    args = parser.parse_args()
    with measuring.usage_errors(parser):
        pairs = list(text_files.pairs(args.source, args.target))
    sources, targets = map(list, zip(*pairs, strict=True))
    terms = learn_terms(pairs, args.terms)
    made_up = {source: target[::-1] for source, target in terms.items()}
    backwards = {target: target[::-1] for target in terms.values()}
    rewritten = [
        _WORD.sub(lambda word: backwards.get(word[0], word[0]), line)
        for line in targets
    ]

    import sacrebleu

    from t2t_lite import Translator

    ways = {
        "nothing": (None, targets),
        "terms of the text": (terms, targets),
        "made-up terms": (made_up, rewritten),
    }
    with measuring.usage_errors(parser):
        translators = {
            name: Translator(
                args.model, average_last=args.average_last, glossary=glossary
            )
            for name, (glossary, _) in ways.items()
        }
    with_terms = sum(bool(asked_of(line, terms)) for line in sources)
    print(f"{len(terms)} terms, in {with_terms:,} of {len(sources):,} lines")
    found, seconds = {}, {}
    for _ in range(1 + args.rounds):
        for name, translator in translators.items():
            taken, found[name] = measuring.timed(
                lambda t=translator: t(sources)
            )
            seconds.setdefault(name, []).append(taken)
    base = statistics.median(seconds["nothing"][1:])
    for name, (glossary, references) in ways.items():
        middle = statistics.median(seconds[name][1:])
        bleu = sacrebleu.corpus_bleu(found[name], [references]).score
        missing, too_many = count_misses(sources, found[name], glossary or {})
        unlike = sum(
            a != b
            for line, a, b in zip(
                sources, found[name], found["nothing"], strict=True
            )
            if not asked_of(line, terms)
        )
        cost = f"{middle:7.2f} s, {middle / base:5.2f}; BLEU {bleu:.2f}"
        terms_found = f"{missing} missing, {too_many} too many"
        print(f"{name:18} {cost}; {terms_found}; {unlike} other lines differ")


if __name__ == "__main__":
    main()
