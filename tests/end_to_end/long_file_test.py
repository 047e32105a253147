"""A short form of long_file.py: kills change no byte, and memory is flat."""

import long_file
import pytest


@pytest.mark.slow
def test_a_long_file_with_a_kill_has_the_same_bytes_in_flat_memory(tmp_path):
    trial = long_file.LongFile(tmp_path, num_lines=3000, batch_lines=100)
    undisturbed = trial.undisturbed()
    killed, last = trial.with_kills(1, seed=1, undisturbed=undisturbed)
    assert killed.first_line == undisturbed.first_line == 1
    assert 1 < last.first_line <= 3000
    assert last.first_line % 100 == 1
    assert trial.killed.read_bytes() == trial.whole.read_bytes()
    assert trial.whole.read_bytes().count(b"\n") == 3000
    assert long_file.is_flat(undisturbed.mib, killed.mib + last.mib)


@pytest.mark.parametrize(
    ("undisturbed", "others", "expected"),
    [
        ([600.0] * 30, [600.0], True),
        ([500.0, *[600.0] * 29], [664.0], True),
        ([600.0] * 30, [665.0], False),
        ([600.0] * 20 + [664.0] * 10, [600.0], True),
        ([600.0] * 20 + [665.0] * 10, [600.0], False),
        ([600.0] * 29 + [700.0], [600.0], True),  # Not the median.
        ([2000.0] * 20 + [2199.0] * 10, [2000.0], True),
        ([600.0], [], True),
    ],
)
def test_memory_is_flat_or_not(undisturbed, others, expected):
    assert long_file.is_flat(undisturbed, others) == expected


def test_memory_counts_from_the_first_lines_that_a_process_writes():
    samples = [
        long_file.Sample(float(mib), num_bytes)
        # The lines of the window that a kill cut are there at first.
        for mib, num_bytes in enumerate([90, 90, 70, 70, 80, 95, 95, 0])
    ]
    assert long_file._since_first_lines(samples) == [4.0, 5.0, 6.0, 7.0]
