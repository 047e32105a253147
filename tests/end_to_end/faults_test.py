"""A short form of faults.py: no fault silently makes a result wrong."""

import faults
import in_process
import pytest
from shared_trainer import shared_trainers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    with in_process.on_one_core(), shared_trainers():
        yield faults.Trial(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize(
    ("pattern", "damage", "expected"),
    [
        ("step-12.index", "cut", {"translate": "warned"}),
        ("step-12.index", "a bit flipped", {"train": "same"}),
        (
            "vocabulary.model",
            "a bit flipped",
            {"translate": "refused", "train": "refused"},
        ),
        (
            "vocabulary.model",
            "missing",
            {"translate": "refused", "train": "same"},
        ),
    ],
)
def test_a_damaged_file_changes_no_result_in_silence(
    trial, pattern, damage, expected
):
    rows = faults.damaged_files(trial, pattern, [damage], expected)
    assert {row.program: row.outcome for row in rows} == expected


def test_a_full_disk_leaves_a_right_result_or_none(trial):
    trained = faults.trained_on_disks(trial, sizes=(128, 8192))
    exported = faults.exported_to_disks(trial, sizes=(128,))
    outcomes = [row.outcome for row in (*trained, *exported)]
    if "skipped" in outcomes:
        pytest.skip("no disk may be mounted")
    assert outcomes == ["refused", "same", "refused"]


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
