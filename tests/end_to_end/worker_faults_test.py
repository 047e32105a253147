"""worker_faults.py tells what is as wanted from what is not; a short form."""

import pytest
import tiny_run
import worker_faults
from worker_faults import Row, Wanted

_WANTED = Wanted(
    1,
    r"error: worker \d has died",
    seconds=5.0,
    least_seconds=1.0,
    log="Step 1$",
)
_LINES = "12:00:00 Step 1\nerror: worker 1 has died\n"


@pytest.mark.parametrize(
    ("status", "seconds", "said", "expected"),
    [
        (1, 2.0, _LINES, True),
        (0, 2.0, _LINES, False),
        (None, 2.0, _LINES, False),
        (1, 6.0, _LINES, False),
        (1, 2.0, _LINES + "12:00:01 Step 2\n", False),
        (1, 0.5, _LINES, False),
        (1, 2.0, "Traceback (most recent call last)\n" + _LINES, False),
        (1, 2.0, "error: another\n" + _LINES, False),
        (
            1,
            2.0,
            "E0000 00:00:1795899933.5 1 abort.cc:2] Gone\n" + _LINES,
            False,
        ),
        (1, 2.0, "2026-11-28 21:05:33.5: F abort.cc:2] Gone\n" + _LINES, False),
        (1, 2.0, "2026-11-28 21:05:33.5: I abort.cc:2] Here\n" + _LINES, True),
        (1, 2.0, "error: worker 1 has died\n", False),
        (1, 2.0, "", False),
    ],
)
def test_a_process_ends_as_wanted_or_not(status, seconds, said, expected):
    row = Row("a fault", "chief", status, seconds, said)
    assert row.is_as(_WANTED) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["an evaluator", "worker 1 has another version"]
)
def test_what_cannot_train_together_is_refused(name, tmp_path):
    tiny_run.write_corpus(tmp_path)
    (case,) = (c for c in worker_faults.CASES if c.name == name)
    found = list(worker_faults.rows(case, tmp_path))
    assert len(found) == len(case.wanted)
    for row, wanted in found:
        assert row.is_as(wanted), row
