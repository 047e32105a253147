"""Nouns after numbers are plural, except after 1."""

from t2t_lite.english import counted


def test_one_thing_is_no_plural():
    found = [counted(n, "pair") for n in (0, 1, 2)]
    assert found == ["0 pairs", "1 pair", "2 pairs"]
