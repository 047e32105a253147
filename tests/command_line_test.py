"""What the binaries share and no run of one shows."""

import os

import pytest

from t2t_lite import command_line

THREADS = "TF_NUM_INTRAOP_THREADS"


@pytest.mark.parametrize(
    ("cores", "in_halves", "before", "after"),
    [
        (2, True, None, "1"),
        (2, True, "2", "2"),  # What the user has set stays.
        (2, False, None, None),
        (8, True, None, None),
    ],
)
def test_of_two_cores_each_half_of_a_batch_has_one(
    monkeypatch, cores, in_halves, before, after
):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setenv(THREADS, before or "")
    if before is None:
        monkeypatch.delenv(THREADS)
    command_line.load_tensorflow(in_halves)
    assert os.environ.get(THREADS) == after
