"""The short form of faults.py: no fault makes a result wrong in silence."""

import faults
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    return faults.Trial(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    ("pattern", "damages", "expected"),
    [
        ("step-12.index", {"cut", "a bit flipped"}, ["warned", "same"] * 2),
        ("vocabulary.model", {"a bit flipped"}, ["refused", "refused"]),
        ("vocabulary.model", {"missing"}, ["refused", "same"]),
    ],
)
def test_a_damaged_file_changes_no_result_in_silence(
    trial, pattern, damages, expected
):
    chosen = {n: do for n, do in faults.DAMAGES.items() if n in damages}
    rows = faults.damaged_files(trial, pattern, chosen)
    assert [row.outcome for row in rows] == expected


def test_a_full_disk_leaves_a_right_result_or_none(trial):
    rows = list(faults.full_disks(trial, sizes=(128, 8192)))
    if any(row.outcome == "skipped" for row in rows):
        pytest.skip("no disk may be mounted")
    assert [row.outcome for row in rows] == ["refused", "same"] * 2


@pytest.mark.parametrize(
    ("status", "result", "errors", "expected"),
    [
        (0, 1, "", "same"),
        (0, 2, "12:00:00 Warning: damaged\n", "warned"),
        (0, 2, "", "WRONG: another result"),
        (1, None, "error: damaged\n", "refused"),
        (1, None, "", "WRONG: status 1"),
        (1, None, "error: a\nerror: b", "WRONG: ['error: a', 'error: b']"),
        (1, None, "Traceback\nerror: b", "WRONG: ['Traceback', 'error: b']"),
    ],
)
def test_an_outcome_is_told_from_what_a_program_did(
    status, result, errors, expected
):
    found = faults.Found(status, result, errors)
    assert faults.outcome(found, 1) == expected
