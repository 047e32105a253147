"""Tags go around the words that stand for theirs, once each and balanced."""

import collections
import random
import re

import pytest

from t2t_lite.alignment import tags
from t2t_lite.alignment.tags import Word

_WORD = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+|[^\w\s]")
_TAG = re.compile(r"<(/?)(\w+)[^<>]*?(/?)>")


def words_of(text, offsets):
    """Returns the Words of a text, given the source offset of each."""
    places = [match.span() for match in _WORD.finditer(text)]
    return [Word(*p, n) for p, n in zip(places, offsets, strict=True)]


def as_it_is(text):
    """Returns the Words of a text, each of which stands for itself."""
    return words_of(text, [m.start() for m in _WORD.finditer(text)])


# (line, what is translated, the line with its tags put back; None if unchanged)
_LINES = [
    ("Click <b>here</b> now.", "Click here now.", None),
    ("<p>One.</p> <p>Two.</p>", "One. Two.", None),
    ("a <b>b <i>c</i></b>, d<br/> e", "a b c, d e", None),
    ('<a href="x y">in</a>', "in", None),
    ("<x/> a <y/> b <z/>", "a b", None),
    ("a<x/>, b", "a, b", None),
    ("a <b></b>c", "a c", None),
    ("<b></b>", "", None),
    ("(<b>a</b>)", "(a)", None),
    # A single tag, or an end tag before a start tag, separates words.
    ("one<br>two", "one two", "one<br> two"),
    ("one<br/><br/>two", "one two", "one<br/><br/> two"),
    ("<p>One</p><p>Two</p>", "One Two", "<p>One</p> <p>Two</p>"),
    ("<td>a.</td><td>C</td>", "a. C", "<td>a.</td> <td>C</td>"),
    ("One.<br/>Two.", "One. Two.", "One.<br/> Two."),
    # An element that begins or ends within a word goes around it.
    ("one<b>two</b>", "onetwo", "<b>onetwo</b>"),
    ("<b>un</b>able c", "unable c", "<b>unable</b> c"),
    ("un<b>able</b> c", "unable c", "<b>unable</b> c"),
    ("a re<b>d c</b>at d", "a red cat d", "a <b>red cat</b> d"),
    ("a<b> b </b>c", "a b c", "a <b>b</b> c"),
    # Tags that form no element stay where they are.
    ("a </b> c <i> d", "a c d", None),
    ("<i>a <b>c</i> d</b>", "a c d", None),
    ("<B>a</b>", "a", None),
    # These are not tags.
    ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2", None),
    ("if a <b and c> d", "if a <b and c> d", None),
    # A ">" within quotes does not end a tag.
    ("<img src='a>b' alt=\"c\"/> d", "d", None),
    # In scripts without spaces, each character is a word.
    ("请点击<b>这里</b>继续。", "请点击这里继续。", None),
    # Lines without tags stay as they are.
    (">>deu<< I <3 you", ">>deu<< I <3 you", None),
    ("a  b\nc \u00a0 d", "a  b\nc \u00a0 d", None),
    # Spaces stay as they are, except next to tags.
    ("a  b <b>c  d</b>\ne", "a  b c  d\ne", None),
    ("<Br>a</Br>", "a", None),
]


@pytest.mark.parametrize(("line", "text", "whole"), _LINES)
def test_tags_are_taken_out_and_put_back(line, text, whole):
    taken = tags.take_out(line)
    assert taken.text == text
    found = tags.put_back(taken.nodes, text, as_it_is(text))
    assert found == (whole or line)


# (source, translation, the source word that each word of it stands for,
# the translation with tags)
_ALIGNED = [
    # Two words change places.
    ("a <b>c</b> d", "x y z", "a d c", "x y <b>z</b>"),
    # One word becomes two, and two become one.
    ("a <b>c</b> d", "x y z w", "a c c d", "x <b>y z</b> w"),
    ("a <b>c d</b>", "x y", "a d", "x <b>y</b>"),
    # A word for something outside comes between those for the element.
    ("a <b>c d e</b>", "x y z w", "a c a d", "x <b>y</b> z w"),
    ("a <b>c d e f</b>", "x y z w v", "a c d a e", "x <b>y z</b> w v"),
    # Elements change places; one within another stays within it.
    ("<i>a</i> <b>c</b>", "x y", "c a", "<b>x</b> <i>y</i>"),
    ("<b>a <i>c</i></b> d", "x y z", "d c a", "x <b><i>y</i> z</b>"),
    # Elements that would cross go one after the other.
    ("<i>a e</i> <b>c d</b>", "x y z", "a c e", "<i>x</i> <b>y</b> z"),
    # A tag or element that no word stands for goes before what follows it.
    ("a <b>c</b> d", "x y", "a d", "x <b></b>y"),
    ("a <x/>c d", "x y z", "d c a", "x <x/>y z"),
    ("a <b>c</b>", "x", "a", "x<b></b>"),
    ("a <b>c</b>", "", "", "<b></b>"),
    # Signs go by what they stand for, not by the word that they touch.
    ("a <b>c</b>.", "(x) y.", "c c c a .", "<b>(x)</b> y."),
    ("a <b>c</b> d", "x y, z", "a c d d", "x <b>y</b>, z"),
]


@pytest.mark.parametrize(("source", "text", "aligned", "expected"), _ALIGNED)
def test_tags_follow_the_words(source, text, aligned, expected):
    taken = tags.take_out(source)
    offsets = [taken.text.index(word) for word in aligned.split()]
    words = words_of(text, offsets)
    assert tags.put_back(taken.nodes, text, words) == expected


def is_balanced(text):
    is_open = []
    for is_end, name, is_empty in _TAG.findall(text):
        if is_end:
            if not is_open or is_open.pop() != name:
                return False
        elif not is_empty:
            is_open.append(name)
    return not is_open


def random_line(rng, depth=0):
    parts = []
    for _ in range(rng.randint(0, 4)):
        kind = rng.random()
        if kind < 0.5 or depth > 3:
            parts.append(rng.choice(["a", "dog", ".", "runs", "(x)", "<3"]))
        elif kind < 0.65:
            parts.append(f'<x id="{rng.randint(0, 9)}"/>')
        else:
            name = rng.choice("bip")
            inside = random_line(rng, depth + 1)
            parts.append(f"<{name}>{inside}</{name}>")
    return rng.choice(["", " "]).join(parts)


def test_whatever_words_stand_for_tags_are_balanced_and_there_once():
    rng = random.Random(5)
    num_tags = 0
    for _ in range(2000):
        line = random_line(rng)
        taken = tags.take_out(line)
        choice = ["ein", "Hund", "läuft.", "(so)"]
        text = " ".join(rng.choices(choice, k=rng.randint(0, 6)))
        count = len(_WORD.findall(text))
        offsets = [rng.randint(0, len(taken.text)) for _ in range(count)]
        found = tags.put_back(taken.nodes, text, words_of(text, offsets))
        assert is_balanced(line)
        assert is_balanced(found), (line, found)
        both = [
            collections.Counter(m[0] for m in _TAG.finditer(each))
            for each in (line, found)
        ]
        assert both[0] == both[1], (line, found)
        bare = _TAG.sub(" ", found).split()
        assert _WORD.findall(" ".join(bare)) == _WORD.findall(text)
        num_tags += both[0].total()
    assert num_tags > 2000


def test_elements_may_lie_as_deep_as_they_like():
    begin, end = "<b>" * 5000, "</b>" * 5000
    line = f"a {begin}c{end} d"
    taken = tags.take_out(line)
    assert taken.text == "a c d"
    assert tags.put_back(taken.nodes, "a c d", as_it_is("a c d")) == line
    assert tags.take_out(begin).text == ""


@pytest.mark.parametrize(
    "line", ["<br>" * 9000 + "<b>a</b>" * 9000, "<b>" * 9000 + "</i>" * 9000]
)
def test_many_tags_take_no_time(line):
    # In quadratic time, it took half a minute.
    assert tags.take_out(line).text in ("a " * 8999 + "a", "")


def test_the_check_sees_what_is_not_balanced():
    assert is_balanced("<b>a<i>c</i></b><x/>")
    for line in ("<b>", "</b>", "<b><i></b></i>", "</b><b>"):
        assert not is_balanced(line)
