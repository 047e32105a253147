"""How lines are split into sentences, in Python and in graphs."""

import pytest
import tensorflow as tf

from t2t_lite.text import sentences
from t2t_lite.text.sentences import Splitting

ANY = Splitting()


@pytest.mark.parametrize(
    "parts",
    [
        ["He ran.", "She sat."],
        ["He ran!", "Did she?", "Yes…", "No."],
        ["He ran.", '"Stop!" she said.', "(He did.)", "Then?"],
        ["Er sagte: „Komm!“", "Dann ging er."],
        ["¿Qué?", "¡No!", "Sí."],
        ["Dr. Who met Mrs. J. S. Fox.", "She sang."],
        ["In the U.S. Army.", "So do I.", "Him too."],
        ["It is on Main St.", "A dog runs at 5 p.m.", "The cat sits."],
        ["Dr. A. Fox met Mr. The.", "No."],
        ["See No. 5 and Fig. 3.", "It is on p. 7, Jan. 3."],
        ["Nimm z. B. Hunde, d.h. Tiere.", "Gut."],
        ["It is 3.5 m long.", "4 is more.", "Go to www.example.com now."],
        ["cats, dogs etc. and birds.", "Mice."],
        ["hello there.", "how are you?", "fine, mr. fox."],
        ["Hi!", "how are you?"],
        ["He ran .", "She sat ."],
        ["Он пришёл.", "Ёж ушёл."],
    ],
)
def test_a_line_is_split_where_its_sentences_end(parts):
    assert sentences.split_lines([" ".join(parts)], ANY) == [parts]


@pytest.mark.parametrize("end", ['."', ".'", ".”", ".»", "…", "!)", "?]"])
def test_a_sentence_ends_at_any_of_these(end):
    parts = [f"He ran{end}", f"She sat{end}"]
    assert sentences.split_lines([" ".join(parts)], ANY) == [parts]


def test_sentences_need_no_space_between_them_in_chinese():
    parts = ["你好。", "“再见！”", "好？"]  # noqa: RUF001
    assert sentences.split_lines(["".join(parts)], ANY) == [parts]


def test_a_number_before_a_dot_ends_a_sentence_but_in_german():
    line = "Am 3. Mai um 5. Gut."
    german = [line, "Er kam am 3. 4. 2020 an.", "Vom 3. 4. Mai an."]
    found = sentences.split_lines(german, Splitting("de"))
    assert found == [[each] for each in german]
    (found,) = sentences.split_lines([line], Splitting("en"))
    assert found == ["Am 3.", "Mai um 5.", "Gut."]


def test_line_breaks_end_sentences_and_blank_ones_go():
    assert sentences.split_lines(["a title \r\n\n a text"], ANY) == [
        ["a title", "a text"]
    ]


@pytest.mark.parametrize("line", ["A  dog . ", " Dr.  Who ", ".", "e.g.\tI"])
def test_a_single_sentence_stays_as_it_is(line):
    assert sentences.split_lines([line], ANY) == [[line]]


def test_blank_lines_have_no_sentence():
    lines = ["", " ", "\u00a0", "\x1c\u2028", "a"]
    assert sentences.split_lines(lines, ANY) == [[], [], [], [], ["a"]]
    assert sentences.split_lines([], ANY) == []


def test_lines_up_to_a_length_stay_whole():
    lines = ["Go on. Run.", "Go on. Run. Sit.", "Go on.\nRun."]
    found = sentences.split_lines(lines, Splitting(whole_up_to=5), [5, 6, 5])
    assert found == [
        ["Go on. Run."],
        ["Go on.", "Run.", "Sit."],
        ["Go on.", "Run."],
    ]


def test_a_graph_splits_as_python_does():
    lines = ["He ran. She sat.", "", "Dr. Who?\nNo.", "bad \udcff. Not."]
    text = [line.encode("utf-8", "surrogateescape") for line in lines]
    split = tf.function(lambda text_B: sentences.split_tensor(text_B, ANY))
    assert split(tf.constant(text)).to_list() == [
        [b"He ran.", b"She sat."],
        [],
        [b"Dr. Who?", b"No."],
        [b"bad \xff.", b"Not."],
    ]


def test_the_share_of_lines_with_several_sentences():
    lines = (f"A dog. {'A cat.' * (n % 5 == 0)}" for n in range(20_015))
    assert sentences.multi_sentence_share(lines) == 0.2
    assert sentences.multi_sentence_share([]) == 0


def test_a_language_token_is_that_of_each_sentence():
    lines = [
        ">>deu<< A dog runs. A cat sleeps.",
        ">>fra<< One. Two.",
        "No token. None.",
        ">>deu<<",
        "",
    ]
    splitting = Splitting(language_tokens=True)
    assert sentences.split_lines(lines, splitting) == [
        [">>deu<< A dog runs.", ">>deu<< A cat sleeps."],
        [">>fra<< One.", ">>fra<< Two."],
        ["No token.", "None."],
        [">>deu<<"],
        [],
    ]
    plain = sentences.split_lines(lines[:1], Splitting())
    assert plain == [[">>deu<< A dog runs.", "A cat sleeps."]]
