"""An accuracy counts the sentences that are right, to the letter."""

from typing import NamedTuple

from t2t_lite.evaluation import accuracy
from t2t_lite.evaluation.accuracy import Accuracy


class Doubled(NamedTuple):
    """A sentence whose right output is its source twice."""

    source: str

    def is_right(self, output):
        return output == self.source * 2


def test_each_output_is_judged_by_its_own_sentence():
    def predictor(lines):
        return ["aa", "aa", "CC"]

    sentences = [*map(Doubled, "abc")]
    found = accuracy.measure(predictor, sentences)
    assert found == Accuracy(right=1, total=3)


def test_each_list_has_a_line():
    found = accuracy.as_lines({"a_b": Accuracy(1, 3), "c": Accuracy(0, 0)})
    assert found == ["a b: 1 of 3 right", "c: 0 of 0 right"]
