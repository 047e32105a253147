"""How many sentences of a list a model gets right, to the letter."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from t2t_lite.decoding.line_predictor import LinePredictor


class CheckedSentence(Protocol):
    """A source sentence that knows its right outputs."""

    @property
    def source(self) -> str: ...

    def is_right(self, output: str) -> bool:
        """Returns whether `output` is one of the right outputs."""


# By the name of each list, which is its name in JSON, too.
Checks = Mapping[str, Sequence[CheckedSentence]]
ReadChecks = Callable[[], Checks]


class Accuracy(NamedTuple):
    """How many sentences of a list are right."""

    right: int
    total: int

    def as_text(self) -> str:
        """Returns the figure for a reader.

        >>> Accuracy(193, 200).as_text()
        '193 of 200 right'
        """
        return f"{self.right} of {self.total} right"


def measure(
    predictor: LinePredictor, sentences: Sequence[CheckedSentence]
) -> Accuracy:
    """Returns the Accuracy of a model on a list of sentences."""
    outputs = predictor([sentence.source for sentence in sentences])
    verdicts = [
        sentence.is_right(output)
        for sentence, output in zip(sentences, outputs, strict=True)
    ]
    return Accuracy(sum(verdicts), len(verdicts))


def as_lines(accuracies: Mapping[str, Accuracy]) -> list[str]:
    """Returns a line for each list, for a reader.

    >>> as_lines({"plain_sentences": Accuracy(193, 200)})
    ['plain sentences: 193 of 200 right']
    """
    return [
        f"{name.replace('_', ' ')}: {accuracy.as_text()}"
        for name, accuracy in accuracies.items()
    ]
