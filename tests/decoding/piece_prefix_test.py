"""Each sentence of a line begins with its own part of a prefix."""

import pytest

from t2t_lite.errors import InputError
from t2t_lite.text.sentences import Splitting


def test_sentences_begin_with_the_sentences_of_a_prefix(steered):
    translator = steered(Splitting(), nbest=3)
    line, prefix = "The dog. A cat. Two men.", "the old hill. the r"
    ((best, other, _),) = translator.translate([line], prefixes=[prefix])
    alone = [
        translator.translate([text], prefixes=[begun])[0]
        for text, begun in (("A cat.", "the r"), ("Two men.", ""))
    ]
    for nth_best, text in enumerate((best.text, other.text)):
        rest = " ".join(found[nth_best].text for found in alone)
        assert text == f"the old hill. {rest}"
    assert best.score > other.score


@pytest.mark.parametrize(
    ("lines", "prefixes", "message"),
    [
        (["a dog", " "], ["", "the"], "line 2 is blank but has the prefix"),
        (["a dog"], ["a", "b"], "for each line, blank for none; received more"),
        (["a dog"], [], "for each line, blank for none; received only 0"),
        (["a dog"], ["the\u2581c"], "line 1 has U\\+2581, which is a space"),
        (["a dog"], ["the " * 40], "line 1 must have at most .* tokens, the"),
    ],
)
def test_a_prefix_that_begins_no_translation_is_refused(
    translator, lines, prefixes, message
):
    with pytest.raises(InputError, match=message):
        translator(lines, prefix=prefixes)
