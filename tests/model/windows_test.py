"""Blocks of keys hold all that their queries may attend to."""

import pytest

from t2t_lite.model.windows import blocks

WINDOWS = [(0, 0), (3, 0), (0, 5), (2, 2), (16, 16), (17, 4), (4, 17)]


@pytest.mark.parametrize(("before", "after"), WINDOWS)
def test_a_block_reaches_as_far_as_its_queries_see(before, after):
    found = blocks(before, after)
    size = found.size
    for query in range(10 * size, 11 * size):
        first = (query // size - found.before) * size
        seen = range(query - before, query + after + 1)
        assert set(seen) <= set(range(first, first + found.num_keys))


@pytest.mark.parametrize(("before", "after"), WINDOWS)
@pytest.mark.parametrize("length", [1, 16, 33, 100])
def test_products_are_those_of_whole_blocks(before, after, length):
    found = blocks(before, after)
    products = sum(
        found.num_keys
        for start in range(0, length, found.size)
        for _ in range(start, start + found.size)
    )
    assert found.num_products(length) == products
