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
        ("checkpoints/step-12.index", "cut", {"translate": "warned"}),
        (
            "checkpoints/step-12.index",
            "a bit flipped in third 2",
            {"train": "same"},
        ),
        ("best/*.index", "cut", {"translate": "refused"}),
        (
            "vocabulary.model",
            "a bit flipped in third 1",
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
    ("num_killed", "num_in_saves", "expected"),
    [
        (4, 1, "same"),
        (3, 1, "WRONG: fewer than 4 kills"),
        (4, 0, "WRONG: no kill in a save"),
    ],
)
def test_kills_that_test_nothing_are_wrong(num_killed, num_in_saves, expected):
    row = faults.with_kills(
        faults.Row("", "train", "same"),
        4,
        num_killed=num_killed,
        num_in_saves=num_in_saves,
    )
    assert row.outcome == expected
    assert row.fault == (
        f"SIGKILL, {num_killed} times, {num_in_saves} of them in a save"
    )


def test_a_stage_in_which_no_disk_is_full_is_wrong():
    def outcomes(*rows):
        rows = [faults.Row("a disk", "train", *row) for row in rows]
        return [row.outcome for row in faults.with_stages(rows)][len(rows) :]

    tokens = "refused", "/a/model/tokens: No space left on device"
    checkpoint = "refused", "cannot write the checkpoint /a/model: no space"
    wrong = "WRONG: no disk was full then"
    assert outcomes(tokens, checkpoint, ("same",)) == ["refused"] * 2
    assert outcomes(checkpoint) == [wrong, "refused"]
    assert outcomes(tokens) == ["refused", wrong]
    assert outcomes(("skipped",)) == ["skipped"] * 2


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
