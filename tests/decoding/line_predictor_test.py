"""Lines come out in their order; what is no text is refused."""

import math

import pytest
import tensorflow as tf
from tiny_translator import LINES, assert_same, sentence

from t2t_lite.decoding.line_predictor import Translation, as_lines
from t2t_lite.errors import InputError


def test_warnings_of_a_stream_count_its_lines(translator, caplog):
    lines = ["the dog", "a", "", sentence(33), "a dog", sentence(31)]
    list(translator.stream(iter(lines), 2))
    numbers = [message.split()[1] for message in caplog.messages]
    assert numbers == ["4", "6"]


def test_a_stream_gives_what_a_call_gives(translator):
    expected = translator.translate(LINES)
    for lines_at_once in (1, 3, len(LINES), 100):
        found = list(translator.stream(iter(LINES), lines_at_once))
        assert_same(found, expected)
    assert list(translator.stream([], 3)) == []


def test_a_stream_reads_no_further_than_a_block(translator):
    read = []
    results = translator.stream((read.append(n) or n for n in LINES), 3)
    assert read == []
    for done in range(1, 8):
        next(results)
        assert len(read) == min(3 * math.ceil(done / 3), len(LINES))


@pytest.mark.parametrize(
    ("lines", "lines_at_once", "message"),
    [
        (LINES, 0, "lines_at_once must be at least 1"),
        (LINES, 2.5, "lines_at_once must be an integer"),
        ("a dog", 1, "iterable of str; received 'a dog'"),
        ({"a": "b"}, 1, "iterable of str; received {'a': 'b'}"),
        (5, 1, "iterable of str; received 5"),
    ],
)
def test_what_is_no_stream_is_refused_at_once(
    translator, lines, lines_at_once, message
):
    with pytest.raises((TypeError, ValueError), match=message):
        translator.stream(lines, lines_at_once)


def test_what_is_no_line_of_a_stream_is_refused_by_its_place(translator):
    with pytest.raises(TypeError, match="received None at index 3"):
        list(translator.stream(["a", "dog", "runs", None], 2))


def test_a_stream_counts_from_the_line_that_is_its_first(translator, caplog):
    list(translator.stream(["a", sentence(31)], 2, first_line=7))
    assert [message.split()[1] for message in caplog.messages] == ["8"]
    with pytest.raises(InputError, match="first_line must be at least 1"):
        translator.stream(["a"], 2, first_line=0)


def test_as_lines_writes_one_line_a_translation():
    found = [Translation("a b", -0.25), Translation("c\nd", -1.0)]
    assert as_lines(found) == "a b\nc d\n"
    assert as_lines(found, with_score=True) == "-0.2500\ta b\n-1.0000\tc d\n"
    assert as_lines(found, number=12) == (
        "12 ||| a b ||| -0.2500\n12 ||| c d ||| -1.0000\n"
    )


def test_a_translation_has_no_line_break_of_any_tool():
    found = [Translation("a\rb\nc\r\nd\u2028e", -0.25)]
    assert as_lines(found) == "a b c d\u2028e\n"


@pytest.mark.parametrize(
    "text",
    [b"a dog", [b"a dog"], 3.5, ["a dog", None], {"a": "dog"}, {"a"}],
)
def test_what_is_no_text_is_refused(translator, text):
    with pytest.raises(TypeError):
        translator(text)


@pytest.mark.parametrize("lines", ["a dog", None, [b"a dog"], 7])
def test_what_is_no_list_is_not_translated(translator, lines):
    with pytest.raises(TypeError, match="lines must be a list of str; receiv"):
        translator.translate(lines)


def test_half_of_a_surrogate_pair_is_refused_by_its_place(translator):
    message = r"must be .* UTF-8 can hold; received 'dog\\ud800' at index 1"
    with pytest.raises(InputError, match=f"text {message}"):
        translator(["a", "dog\ud800"])
    with pytest.raises(InputError, match=f"prefixes {message}"):
        translator.translate(["a", "b"], prefixes=["", "dog\ud800"])


def test_what_is_neither_yes_nor_no_is_refused(translator):
    for text in ("a dog", tf.constant("a dog")):
        with pytest.raises(InputError, match="with_scores must be True, Fals"):
            translator(text, with_scores="no")


def test_a_call_gives_scores_on_request(translator):
    text, score = translator(LINES[1], with_scores=True)
    ((best, *_),) = translator.translate([LINES[1]])
    assert (text, score) == best
    _, scores = translator(LINES, with_scores=True)
    assert scores[LINES.index("")] == 0.0


def test_a_prefix_is_as_its_text(translator):
    with pytest.raises(TypeError, match="the prefix of a str must be a str"):
        translator("a dog", prefix=["the"])
    with pytest.raises(TypeError, match="lines must be an iterable of str"):
        translator(["a dog"], prefix="the")
    with pytest.raises(InputError, match="prefix must be None where text is a"):
        translator(tf.constant(["a dog"]), prefix=["the"])


@pytest.mark.slow
def test_prefixes_come_from_anywhere(steered):
    prefixes = ["the {name} a", "dog"]
    lines = ["the dog sees {name}", "two men"]
    for options in ({}, {"keep": ["placeholders"]}):
        translator = steered(nbest=3, **options)
        expected = translator.translate(lines, prefixes=prefixes)
        assert expected[1][0].text.startswith("dog")
        for given in (iter(prefixes), dict(enumerate(prefixes)).values()):
            assert_same(translator.translate(lines, prefixes=given), expected)
