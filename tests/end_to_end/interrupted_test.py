"""An interrupted bin/translate resumes and writes the same bytes."""

import dataclasses
import time

import binaries
import in_process
import pytest
import tensorflow as tf
from refusal import assert_refused
from tiny_translator import (
    LINES,
    ONE_LAYER,
    learn_vocabulary,
    sentence,
    write_model,
)

from t2t_lite import engines, hardware
from t2t_lite.decoding import partial_output, shapes
from t2t_lite.hardware import GIB
from t2t_lite.translation.line_translator import LineTranslator


@pytest.fixture(scope="module", autouse=True)
def _opened_once():
    """Makes commands with the same options share a translator, traced once.

    Optimized and unoptimized graphs are not shared with each other.
    """
    open_model, opened = engines.open_model, {}

    def give(*engine, **options):
        # The memory that is free changes all the time.
        sizing = dataclasses.replace(options["hardware"], memory_bytes=4 * GIB)
        key = repr((engine, options | {"hardware": sizing}))
        key += str(tf.config.optimizer.get_experimental_options())
        if key not in opened:
            opened[key] = open_model(*engine, **options)
        return opened[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "open_model", give)
        yield


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    return write_model(path, learn_vocabulary(), ONE_LAYER, seeds=(3, 4)).path


@pytest.fixture
def source(tmp_path):
    """A file of 12 lines; the 11th is longer than the model allows."""
    path = tmp_path / "source"
    lines = [*LINES, *LINES[:3], sentence(40), "a dog"]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


class _Stop:
    """Interrupts a translation at its n-th window; never if n is 0."""

    def __init__(self, monkeypatch, n):
        self.first_lines, translate = [], LineTranslator.translate

        def stopped(translator, lines, first_line, *beside):
            self.first_lines.append(first_line)
            if len(self.first_lines) == n:
                raise KeyboardInterrupt
            return translate(translator, lines, first_line, *beside)

        monkeypatch.setattr(LineTranslator, "translate", stopped)


def _flags(model_dir, source, output, *more):
    return (
        f"--model_dir={model_dir}",
        f"--input={source}",
        f"--output={output}",
        "--batch_lines=3",
        *more,
    )


@pytest.mark.slow
def test_an_interrupted_translation_goes_on_to_the_same_bytes(
    model_dir, source, tmp_path, monkeypatch
):
    whole, output = tmp_path / "whole", tmp_path / "output"
    flags = _flags(model_dir, source, whole, "--nbest=2")
    status, _, errors = in_process.run("translate", *flags)
    assert status == 0, errors
    flags = _flags(model_dir, source, output, "--nbest=2")
    for n, windows in ((3, [1, 4, 7]), (0, [7, 10])):
        with monkeypatch.context() as patch:
            stop = _Stop(patch, n)
            status, _, errors = in_process.run("translate", *flags)
        assert stop.first_lines == windows
        assert status == (130 if n else 0), errors
        assert output.exists() == (n == 0)
    assert "Line 11 has a sentence of" in errors
    assert output.read_bytes() == whole.read_bytes()
    assert not (tmp_path / "output.partial").exists()


@pytest.mark.slow
def test_what_is_done_is_no_part_of_other_work(
    model_dir, source, tmp_path, monkeypatch
):
    flags = _flags(model_dir, source, tmp_path / "output")
    with monkeypatch.context() as patch:
        _Stop(patch, 2)
        assert in_process.run("translate", *flags)[0] == 130
    for flag, difference in (
        ("--beam_width=2", "beam_width=4"),
        ("--precision=bfloat16", "precision=float32"),
        ("--average_last=2", "a different model"),
        ("--scores", "scores=False"),
    ):
        message = (
            f"was started with {difference}: use the same again, or delete it"
        )
        assert_refused(in_process.run("translate", *flags, flag), message)
    assert (tmp_path / "output.partial").exists()


@pytest.mark.slow
def test_the_precision_that_auto_has_chosen_stays(
    model_dir, source, tmp_path, monkeypatch
):
    whole, output = tmp_path / "whole", tmp_path / "output"
    flags = _flags(model_dir, source, whole, "--precision=bfloat16")
    assert in_process.run("translate", *flags)[0] == 0
    flags = _flags(model_dir, source, output)
    with monkeypatch.context() as patch:
        _Stop(patch, 2)
        patch.setattr(hardware, "faster_precision", lambda *_: "bfloat16")
        status, _, errors = in_process.run(
            "translate", *flags, "--precision=auto"
        )
    assert status == 130
    assert "Computing in bfloat16." in errors
    with monkeypatch.context() as patch:
        stop = _Stop(patch, 0)
        patch.setattr(hardware, "faster_precision", lambda *_: "float32")
        status, _, errors = in_process.run(
            "translate", *flags, "--precision=auto"
        )
    assert status == 0, errors
    assert stop.first_lines[0] == 4
    assert "Computing in bfloat16." in errors
    assert output.read_bytes() == whole.read_bytes()


def test_a_part_of_the_output_is_not_the_input(model_dir, tmp_path):
    source = tmp_path / "output.partial"
    source.write_text("")
    found = in_process.run(
        "translate", *_flags(model_dir, source, tmp_path / "output")
    )
    assert_refused(found, "this command also reads it")
    assert source.read_text() == ""


@pytest.mark.slow
def test_a_translation_that_was_killed_has_the_same_bytes(model_dir, tmp_path):
    source, partial = tmp_path / "source", tmp_path / "output.partial"
    lines = [sentence(1 + n % 20, n) for n in range(600)]
    source.write_text("".join(f"{line}\n" for line in lines))
    whole, output = tmp_path / "whole", tmp_path / "output"
    flags = _flags(model_dir, source, whole, "--batch_lines=25")
    with in_process.optimized_graphs():
        status, _, errors = in_process.run("translate", *flags)
    assert status == 0, errors
    flags = _flags(model_dir, source, output, "--batch_lines=25")
    process = binaries.start("translate", *flags)
    while not partial.exists() or partial.stat().st_size < 6_000:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.kill()
    process.communicate()
    with in_process.optimized_graphs():
        status, _, errors = in_process.run("translate", *flags)
    assert status == 0, errors
    assert "Resuming at line" in errors
    assert output.read_bytes() == whole.read_bytes()
    assert not partial.exists()


@pytest.mark.slow
def test_a_translation_keeps_its_batches_where_there_are_other_cores(
    model_dir, source, tmp_path, monkeypatch
):
    flags = _flags(model_dir, source, tmp_path / "output")
    capacity, found = shapes.capacity, []

    def note(*arguments, **others):
        found.append(capacity(*arguments, **others))
        return found[-1]

    monkeypatch.setattr(shapes, "capacity", note)
    for n, num_cores in ((2, 3), (0, 1)):
        machine = hardware.Hardware("CPU", 4 * GIB, num_cores)
        with monkeypatch.context() as patch:
            patch.setattr(partial_output, "find_hardware", lambda m=machine: m)
            stop = _Stop(patch, n)
            status, _, errors = in_process.run("translate", *flags)
        assert status == (130 if n else 0), errors
    assert stop.first_lines[0] == 4
    # The second process was given the translator of the first.
    assert found == [shapes.Capacity(tokens=3072, rows=192, num_parts=3)]


@pytest.mark.slow
def test_other_tokens_at_once_are_other_work(
    model_dir, source, tmp_path, monkeypatch
):
    flags = _flags(model_dir, source, tmp_path / "output")
    with monkeypatch.context() as patch:
        _Stop(patch, 2)
        assert in_process.run("translate", *flags)[0] == 130
    found = in_process.run("translate", *flags, "--tokens_at_once=64")
    assert_refused(found, "was started with tokens_at_once=None: use the same")
