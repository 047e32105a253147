"""What every program does with wrong input."""


def assert_refused(found, message):
    """Checks that a program failed with one error line that says `message`.

    Args:
        found: (status, stdout, stderr), what `binaries.run` and
            `in_process.run` return.
        message: str.
    """
    status, _, errors = found
    assert status == 1, errors
    said = [line for line in errors.split("\n") if line.startswith("error: ")]
    assert len(said) == 1, errors
    assert message in said[0]
    assert "Traceback" not in errors
