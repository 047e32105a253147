"""Word links are read as they were written, and wrong ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_lite.errors import InputError
from t2t_lite.text import pharaoh

WORDS = st.integers(0, 40)


@given(st.frozensets(st.tuples(WORDS, WORDS)))
def test_links_are_read_as_they_were_written(links):
    text = pharaoh.as_text(links)
    assert pharaoh.parse(text) == links
    assert text.split() == [f"{s}-{t}" for s, t in sorted(links)]


@pytest.mark.parametrize("text", ["", " ", "\t 3-0  0-11 "])
def test_spaces_do_not_count(text):
    assert pharaoh.parse(text) == ({(3, 0), (0, 11)} if text.strip() else set())


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "0-",
        "-0",
        "0-1-2",
        "0:1",
        "a-b",
        "0-1,1-2",
        "-1-2",
        "0-1?",
        "٣-0",
        "9" * 9999 + "-0",
    ],
)
def test_what_is_no_link_is_refused(text):
    with pytest.raises(InputError, match=r'links must look like "0-0 1-2"'):
        pharaoh.parse(text)


PAIRS = [("a dog", "ein Hund"), ("", ""), ("the cat .", "die Katze")]


def test_each_pair_has_its_links():
    links = pharaoh.links_of(["0-0 1-1", "", "2-1"], iter(PAIRS))
    assert links == [{(0, 0), (1, 1)}, set(), {(2, 1)}]
    by_split = pharaoh.links_by_split({"dev": ["1-0"]}, {"dev": PAIRS[:1]})
    assert by_split == {"dev": [{(1, 0)}]}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0", ""], "a line of links for each pair; received 2 for 3 pairs"),
        ([""] * 4, "a line of links for each pair; received 4 for 3 pairs"),
        (["", "", "3-0"], "line 3 of the links: link 3-0 is out of range"),
        (["", "", "2-2"], "2-2 is out of range: the pair has 3 source words"),
        (["0-0", "0-0", ""], "line 2 of the links: link 0-0 is out of range"),
        (["0-0", "x", ""], "line 2 of the links: links must look like"),
    ],
)
def test_links_of_other_pairs_are_refused(lines, message):
    with pytest.raises(InputError, match=message):
        pharaoh.links_of(lines, PAIRS)
    with pytest.raises(InputError, match=f"^dev: .*{message}"):
        pharaoh.links_by_split({"dev": lines}, {"dev": PAIRS})


def test_a_split_without_links_is_refused():
    with pytest.raises(InputError, match=r"^test: no pair has any word links"):
        pharaoh.links_by_split({"test": ["", "", ""]}, {"test": PAIRS})
