"""train.log has all that a run logs, including the error that ends it."""

import logging as python_logging
import re

import pytest
from absl import logging

from t2t_lite.errors import InputError
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.training.run_log import log_to_file


@pytest.fixture(autouse=True)
def _informative(caplog):
    caplog.set_level(python_logging.INFO, "absl")


@pytest.fixture
def directory(tmp_path):
    tmp_path.joinpath("settings.json").write_text("{}")
    return ModelDirectory(tmp_path)


def lines(directory):
    """Returns the log's lines without their times."""
    text = directory.log.read_text("utf-8")
    dated = re.findall(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (.*)$", text, re.M)
    assert len(dated) == len(text.splitlines())
    return dated


def end_in_an_error(directory, message):
    with log_to_file(directory):
        logging.info("Training.")
        raise InputError(message)


def test_the_log_of_all_processes_of_a_run_is_kept(directory):
    for _ in range(2):
        with log_to_file(directory):
            logging.info("Saved step-%d.", 3)
            logging.warning("the disk is slow")
        logging.info("Of no run.")
    assert lines(directory) == 2 * [
        "INFO Saved step-3.",
        "WARNING the disk is slow",
    ]


def test_the_error_that_ends_a_run_is_its_last_line(directory):
    with pytest.raises(InputError):
        end_in_an_error(directory, "memory ran out")
    assert lines(directory) == ["INFO Training.", "ERROR memory ran out"]


def test_a_run_that_never_began_leaves_no_log(tmp_path):
    directory = ModelDirectory(tmp_path)
    with pytest.raises(InputError):
        end_in_an_error(directory, "there is no text")
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_written_ends_no_run(directory, caplog):
    directory.log.mkdir()  # A folder is in the way.
    with log_to_file(directory):
        logging.info("Training.")
        logging.info("Saved.")
    assert caplog.text.count("Cannot write") == 1
    assert "Saved." in caplog.text
