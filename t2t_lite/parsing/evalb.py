"""How good parses are: labeled bracketing F1, as EVALB counts it.

    print(evalb.as_text(evalb.report(gold, predicted)))

These are the rules of EVALB (Sekine and Collins, 1997) with its parameter file
COLLINS.prm, by which results on the Wall Street Journal are published:

- Words tagged `,` `:` a pair of quotes or `.` do not count, and neither do
  traces; a constituent that held only such words is gone. Each tree's own tags
  decide: a word tagged `?` counts.
- A constituent is its label and the words that it spans; one that a
  sentence has several times counts that often. Labels end before the first
  `-` or `=`. TOP is not a constituent (ROOT and S1 are: `trees.normalize`
  renames them), tags are not, and PRT is ADVP.
- A sentence whose parse has no word left is skipped. One where the words that
  count differ is an error, even if they differ only in a tag that decides
  whether a word counts. Neither enters the recall, precision and F1.

EVALB stops at the twelfth error. Here all sentences are scored, and because
leaving some out makes a result look better than it is, `f1_of_all` includes
them, as ones where no bracket was found.

Source: section 6.3, Table 4
"""

import collections
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from t2t_lite.errors import InputError
from t2t_lite.parsing import trees
from t2t_lite.parsing.trees import Tree

MAX_WORDS = 40  # Of the sentences that are also reported by themselves.
_NOT_COUNTED = {"TOP", trees.TRACE, ",", ":", "``", "''", "."}
_SAME_LABEL = {"PRT": "ADVP"}

Span = tuple[str, int, int]


class Analysis(NamedTuple):
    """What EVALB sees of a tree.

    words: those that count.
    tags: theirs.
    constituents: (label, first word, word after the last), inner ones first.
    """

    words: list[str]
    tags: list[str]
    constituents: list[Span]


def is_counted(tag: str) -> bool:
    """Returns whether a word with this part-of-speech tag counts."""
    return tag not in _NOT_COUNTED


def analyze(tree: Tree | None) -> Analysis:
    """Returns what counts of a tree; nothing does if there is none."""
    seen = Analysis([], [], [])
    if tree is not None:
        _collect(tree, seen)
    return seen


def _collect(tree: Tree, seen: Analysis) -> None:
    if tree.is_pre_terminal:
        if is_counted(tree.label):
            seen.words.append(tree.children[0])
            seen.tags.append(_same(tree.label))
        return
    start = len(seen.words)
    for child in tree.children:
        _collect(child, seen)
    label = tree.label.partition("-")[0].partition("=")[0]
    if len(seen.words) > start and label not in _NOT_COUNTED:
        seen.constituents.append((_same(label), start, len(seen.words)))


def _same(label: str) -> str:
    return _SAME_LABEL.get(label, label)


class Sentence(NamedTuple):
    """The counts of one sentence; all but the first three 0 if it is left out.

    status: "valid", "skip" or "error".
    length: words of the gold tree, with punctuation, without traces.
    all_gold: constituents of the gold tree, whatever the status.
    matched, gold, predicted: constituents.
    crossing: predicted constituents that overlap a gold one, neither of them
        inside the other.
    words: that count.
    correct_tags: of these words.
    """

    status: str
    length: int
    all_gold: int
    matched: int = 0
    gold: int = 0
    predicted: int = 0
    crossing: int = 0
    words: int = 0
    correct_tags: int = 0

    @property
    def recall(self) -> float:
        """Of the gold constituents, those found; 0 to 1."""
        return _ratio(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """Of the predicted constituents, those that are right; 0 to 1."""
        return _ratio(self.matched, self.predicted)

    @property
    def is_complete_match(self) -> bool:
        """Returns whether exactly the gold constituents were found."""
        return (
            self.status == "valid"
            and self.matched == self.gold == self.predicted
        )


def compare(gold: Tree | None, predicted: Tree | None) -> Sentence:
    """Returns the counts of one sentence.

    Args:
        gold: Tree, or None for a blank line.
        predicted: Tree of the same words, or None for a parser that failed.
    """
    gold_analysis, predicted_analysis = analyze(gold), analyze(predicted)
    length = sum(tag != trees.TRACE for tag in trees.tags(gold)) if gold else 0
    all_gold = len(gold_analysis.constituents)
    if not predicted_analysis.words:
        return Sentence("skip", length, all_gold)
    if gold_analysis.words != predicted_analysis.words:
        return Sentence("error", length, all_gold)
    gold_counts = collections.Counter(gold_analysis.constituents)
    predicted_counts = collections.Counter(predicted_analysis.constituents)
    return Sentence(
        "valid",
        length,
        all_gold,
        matched=(gold_counts & predicted_counts).total(),
        gold=all_gold,
        predicted=len(predicted_analysis.constituents),
        crossing=_num_crossing(gold_analysis, predicted_analysis),
        words=len(gold_analysis.words),
        correct_tags=sum(
            map(str.__eq__, gold_analysis.tags, predicted_analysis.tags)
        ),
    )


def _num_crossing(gold: Analysis, predicted: Analysis) -> int:
    """Returns how many predicted constituents cross any gold one."""
    return sum(
        any(
            gold_start < start < gold_end < end
            or start < gold_start < end < gold_end
            for _, gold_start, gold_end in gold.constituents
        )
        for _, start, end in predicted.constituents
    )


class Scores(NamedTuple):
    """The counts of many sentences, and what follows from them.

    All but the first four are sums over the valid sentences.
    """

    sentences: int
    errors: int
    skips: int
    all_gold: int  # constituents, also of sentences left out
    matched: int
    gold: int
    predicted: int
    crossing: int
    words: int
    correct_tags: int
    complete_matches: int  # sentences
    without_crossing: int  # sentences

    @property
    def valid(self) -> int:
        """Sentences that are scored."""
        return self.sentences - self.errors - self.skips

    @property
    def recall(self) -> float:
        """Of the gold constituents, those found; 0 to 1."""
        return _ratio(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """Of the predicted constituents, those that are right; 0 to 1."""
        return _ratio(self.matched, self.predicted)

    @property
    def f1(self) -> float:
        """The harmonic mean of recall and precision; 0 to 1."""
        return _ratio(2 * self.matched, self.gold + self.predicted)

    @property
    def f1_of_all(self) -> float:
        """F1 if sentences that EVALB leaves out count as without brackets."""
        return _ratio(2 * self.matched, self.all_gold + self.predicted)

    @property
    def complete_match(self) -> float:
        """Of the valid sentences, those that are entirely right; 0 to 1."""
        return _ratio(self.complete_matches, self.valid)

    @property
    def average_crossing(self) -> float:
        """Crossing constituents per valid sentence."""
        return _ratio(self.crossing, self.valid)

    @property
    def no_crossing(self) -> float:
        """Of the valid sentences, those where nothing crosses; 0 to 1."""
        return _ratio(self.without_crossing, self.valid)

    @property
    def tagging_accuracy(self) -> float:
        """Of the words that count, those with the right tag; 0 to 1."""
        return _ratio(self.correct_tags, self.words)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def sum_up(sentences: Iterable[Sentence]) -> Scores:
    """Returns the Scores of sentences."""
    sentences = list(sentences)
    valid = [s for s in sentences if s.status == "valid"]
    names = ["matched", "gold", "predicted", "crossing", "words"]
    sums = {
        name: sum(getattr(sentence, name) for sentence in valid)
        for name in [*names, "correct_tags"]
    }
    return Scores(
        sentences=len(sentences),
        errors=sum(s.status == "error" for s in sentences),
        skips=sum(s.status == "skip" for s in sentences),
        all_gold=sum(s.all_gold for s in sentences),
        complete_matches=sum(s.is_complete_match for s in valid),
        without_crossing=sum(not s.crossing for s in valid),
        **sums,
    )


class Report(NamedTuple):
    """Parses of a treebank against their gold trees.

    sentences: the counts of each.
    all: the scores of all.
    short: the scores of those of up to 40 words.
    """

    sentences: list[Sentence]
    all: Scores
    short: Scores


def report(
    gold: Sequence[Tree | None], predicted: Sequence[Tree | None]
) -> Report:
    """Returns the Report of parses.

    Args:
        gold: Trees, and None for blank lines.
        predicted: as many, each None or of the same words.

    Raises:
        InputError: their numbers differ.
    """
    if len(gold) != len(predicted):
        raise InputError(
            "each gold tree needs one parse, or None; received "
            f"{len(gold)} gold trees and {len(predicted)} parses"
        )
    sentences = list(map(compare, gold, predicted))
    short = (s for s in sentences if s.length <= MAX_WORDS)
    return Report(sentences, sum_up(sentences), sum_up(short))


def as_text(scores: Report) -> str:
    """Returns a Report as lines for a reader, in percent."""
    return "\n".join(
        [
            *_lines("all sentences", scores.all),
            *_lines(f"sentences of up to {MAX_WORDS} words", scores.short),
        ]
    )


def _lines(title: str, scores: Scores) -> Iterator[str]:
    yield f"{title}: {scores.sentences}"
    yield (
        f"  labeled F1 {_percent(scores.f1)} (recall {_percent(scores.recall)}"
        f", precision {_percent(scores.precision)}: {scores.matched} matched of"
        f" {scores.gold} gold and {scores.predicted} predicted)"
    )
    if scores.valid < scores.sentences:
        yield (
            f"  left out, as by EVALB: {scores.errors} errors (different "
            f"words), {scores.skips} skips (no parse); F1 "
            f"{_percent(scores.f1_of_all)} if these count as parses without "
            "brackets"
        )
    yield (
        f"  complete match {_percent(scores.complete_match)}, no crossing "
        f"{_percent(scores.no_crossing)}, average crossing "
        f"{scores.average_crossing:.2f}"
    )
    yield (
        f"  tagging accuracy {_percent(scores.tagging_accuracy)} of "
        f"{scores.words} words"
    )


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.2f}"
