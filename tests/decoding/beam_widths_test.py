"""Each width of beam has one search, which is wide enough."""

import concurrent.futures
import time

import pytest

from t2t_lite.decoding.beam_widths import SearchesByWidth


@pytest.mark.parametrize(
    ("narrowest", "widest"), [(1, 9), (5, 32), (40, 32), (6, None)]
)
def test_a_width_is_the_least_that_suffices(narrowest, widest):
    """Widths are the least, the largest, and multiples of 4 between them."""
    searches = SearchesByWidth(print, narrowest, widest)
    most = max(narrowest, widest or 100)
    widths = [n for n in range(narrowest, most) if n % 4 == 0]
    widths += [narrowest, most]
    for needed in range(1, 50):
        enough = [width for width in widths if width >= needed]
        assert searches.width(needed) == min(enough, default=most)


def test_threads_make_each_search_once():
    made = []

    def make(width):
        made.append(width)
        time.sleep(0.01)  # For other threads to ask meanwhile.
        return width

    searches = SearchesByWidth(make, narrowest=4)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = [*pool.map(searches.__getitem__, [4, 8] * 8)]
    assert found == [4, 8] * 8
    assert sorted(made) == [4, 8]
