"""An output interrupted anywhere is completed as if it had not been."""

import dataclasses
import errno
import gzip
import os
import resource
import types

import pytest

from t2t_lite.decoding import partial_output
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.errors import InputError
from t2t_lite.hardware import Hardware

CPU = Hardware("CPU", 4e9, num_cores=2)
BUSY_CPU = Hardware("CPU", 123_456_789, num_cores=16)
GPU = Hardware("GPU", 80e9, num_cores=16)
SMALL_GPU = Hardware("GPU", 16e9, num_cores=16)
WINDOW = 3
LINES = [f"é{n}\u2028" for n in range(8)]  # The last window is not full.


class StoppedError(Exception):
    """Stands for whatever ends a process before its work is done."""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source"
    path.write_text("".join(f"{line}\n" for line in LINES), "utf-8")
    return path


def outputs(line, nbest):
    return "".join(f"{line} {n}\n" for n in range(nbest))


def write(
    path,
    source,
    *,
    prefixes=None,
    stop_at=None,
    nbest=1,
    window=WINDOW,
    **options,
):
    """Writes the output of LINES; returns the numbers of the lines written.

    Args:
        path: that of the output.
        source: path of the input.
        prefixes: path of the prefixes; None for none.
        stop_at: int, the number of the line to be interrupted at, or None.
        nbest: int.
        window: int.
        **options: what else shapes the output; "model" is the model's hash.
    """
    predictor = types.SimpleNamespace(
        options=SearchOptions(4, 0.6, max_extra_length=50, nbest=nbest),
        sha256=lambda: options.pop("model", "a model"),
    )
    taken = []
    with partial_output.open_output(
        str(path),
        (str(source), prefixes),
        predictor,
        window=window,
        options=options,
    ) as output:
        first = output.first_line
        for n, line in enumerate(LINES[first - 1 :], start=first):
            if n == stop_at:
                raise StoppedError
            output.write(outputs(line, nbest))
            taken.append(n)
    return taken


def begin_on(hardware, monkeypatch):
    """Returns the Sizing of a translation that begins on some Hardware."""
    monkeypatch.setattr(partial_output, "find_hardware", lambda: hardware)
    return partial_output.find_sizing({})


def expected(nbest=1):
    return "".join(outputs(line, nbest) for line in LINES)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_output_appears_once_it_is_complete(tmp_path, source):
    path = tmp_path / "output"
    path.write_text("old")
    with pytest.raises(StoppedError):
        write(path, source, stop_at=8)
    assert path.read_text() == "old"
    write(path, source)
    assert path.read_text("utf-8") == expected()
    assert names(tmp_path) == ["output", "source"]


@pytest.mark.parametrize("nbest", [1, 2])
def test_an_interrupted_output_goes_on_at_its_window(tmp_path, source, nbest):
    path = tmp_path / "output"
    for stop_at in (4, 6, 7, 8):
        with pytest.raises(StoppedError):
            write(path, source, stop_at=stop_at, nbest=nbest)
    assert write(path, source, nbest=nbest) == [7, 8]
    assert path.read_text("utf-8") == expected(nbest)


def test_a_process_that_is_killed_at_any_byte_changes_none(tmp_path, source):
    path, partial = tmp_path / "output", tmp_path / "output.partial"
    with pytest.raises(StoppedError):
        write(path, source, stop_at=8)
    content = partial.read_bytes()
    firsts = set()
    for size in range(len(content) + 1):
        partial.write_bytes(content[:size])
        firsts.add(write(path, source)[0])
        assert path.read_text("utf-8") == expected()
        assert names(tmp_path) == ["output", "source"]
    assert firsts == {1, 4, 7}


def test_what_a_lost_machine_left_behind_the_windows_is_cut_off(
    tmp_path, source
):
    path, partial = tmp_path / "output", tmp_path / "output.partial"
    with pytest.raises(StoppedError):
        write(path, source, stop_at=5)
    with open(partial, "ab") as file:
        file.write(bytes(1000))
    assert write(path, source)[0] == 4
    assert path.read_text("utf-8") == expected()


def test_a_disk_that_is_full_in_the_end_leaves_what_is_done(
    tmp_path, source, monkeypatch
):
    def copyfileobj(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "output"
    with monkeypatch.context() as patch:
        patch.setattr(partial_output.shutil, "copyfileobj", copyfileobj)
        with pytest.raises(InputError, match=r"cannot write .*output: No"):
            write(path, source)
    assert names(tmp_path) == ["output.partial", "source"]
    assert write(path, source) == [7, 8]


def test_a_process_that_is_killed_at_its_end_loses_nothing(
    tmp_path, source, monkeypatch
):
    path = tmp_path / "output"
    with monkeypatch.context() as patch:
        patch.setattr(partial_output.os, "remove", lambda _: None)
        write(path, source)
    assert names(tmp_path) == ["output", "output.partial", "source"]
    write(path, source)
    assert path.read_text("utf-8") == expected()
    assert names(tmp_path) == ["output", "source"]


def test_a_compressed_output_has_the_bytes_of_one_not_interrupted(
    tmp_path, source
):
    whole, path = tmp_path / "a.gz", tmp_path / "b.gz"
    write(whole, source)
    with pytest.raises(StoppedError):
        write(path, source, stop_at=5)
    write(path, source)
    assert path.read_bytes() == whole.read_bytes()
    assert gzip.decompress(path.read_bytes()).decode() == expected()


def test_what_was_stopped_in_its_first_window_leaves_nothing(tmp_path, source):
    with pytest.raises(StoppedError):
        write(tmp_path / "output", source, stop_at=3)
    assert names(tmp_path) == ["source"]


def test_where_it_stopped_and_goes_on_is_said(tmp_path, source, caplog):
    path = tmp_path / "output"
    with caplog.at_level("INFO", "absl"):
        with pytest.raises(StoppedError):
            write(path, source, stop_at=8)
        write(path, source)
    assert caplog.messages == [
        "Stopped; run the same command again to resume at line 7.",
        f"Resuming at line 7, from {path}.partial.",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "another"}, "was started with a different model: use the"),
        ({"nbest": 2}, "was started with nbest=1"),
        ({"window": 4}, "was started with batch_lines=3"),
        ({"xla": True, "scores": True}, "started with xla=None, scores=None"),
    ],
)
def test_other_work_is_refused_and_leaves_what_is_done(
    tmp_path, source, changes, message
):
    path, partial = tmp_path / "output", tmp_path / "output.partial"
    with pytest.raises(StoppedError):
        write(path, source, stop_at=5)
    content = partial.read_bytes()
    with pytest.raises(InputError, match=message):
        write(path, source, **changes)
    assert partial.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"text", b"[" * 100_000, b"\xff"])
def test_a_file_of_others_says_nothing_of_the_work(tmp_path, source, content):
    path, partial = tmp_path / "output", tmp_path / "output.partial"
    partial.write_bytes(content + b"\n")
    assert partial_output.read_header(str(partial)) == {}
    with pytest.raises(InputError, match=r"output\.partial"):
        write(path, source)


def test_another_input_is_refused(tmp_path, source):
    path = tmp_path / "output"
    with pytest.raises(StoppedError):
        write(path, source, stop_at=5)
    with open(source, "a") as file:
        file.write("more\n")
    with pytest.raises(InputError, match="started with a different input: use"):
        write(path, source)


@pytest.mark.parametrize("content", ["notes", "notes\n", "[1]\n", "7\n"])
def test_what_is_no_part_of_an_output_is_refused(tmp_path, source, content):
    partial = tmp_path / "output.partial"
    partial.write_text(content)
    with pytest.raises(InputError, match=r"output.partial is not a partial tr"):
        write(tmp_path / "output", source)
    assert partial.read_text() == content


def test_a_folder_where_the_part_would_lie_is_refused(tmp_path, source):
    (tmp_path / "output.partial").mkdir()
    with pytest.raises(InputError, match=r"output.partial, which is a folder"):
        write(tmp_path / "output", source)


def test_prefixes_are_a_part_of_the_work(tmp_path, source):
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("a\n")
    with pytest.raises(StoppedError):
        write(tmp_path / "output", source, prefixes=prefixes, stop_at=6)
    assert write(tmp_path / "output", source, prefixes=prefixes)[0] > 1
    with pytest.raises(StoppedError):
        write(tmp_path / "output", source, prefixes=prefixes, stop_at=6)
    prefixes.write_text("b\n")
    with pytest.raises(
        InputError, match="started with different prefixes: use"
    ):
        write(tmp_path / "output", source, prefixes=prefixes)


def test_two_processes_do_not_write_one_output(tmp_path, source):
    path = tmp_path / "output"
    predictor = types.SimpleNamespace(
        options=SearchOptions(4, 0.6, 50), sha256=lambda: "a model"
    )
    with partial_output.open_output(
        str(path), (str(source), None), predictor, window=3, options={}
    ):
        with pytest.raises(InputError, match=r"process is writing .*\.par"):
            write(path, source)
        assert names(tmp_path) == ["output.partial", "source"]


def test_a_full_disk_leaves_what_is_done(tmp_path, source):
    path = tmp_path / "output"
    with pytest.raises(StoppedError):
        write(path, source, stop_at=5)
    size = (tmp_path / "output.partial").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
    try:
        message = "cannot write .*output.partial: File too large"
        with pytest.raises(InputError, match=message):
            write(path, source)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert write(path, source)[0] == 4
    assert path.read_text("utf-8") == expected()


def test_what_cannot_be_read_again_is_written_from_its_first_line(tmp_path):
    pipe, path = tmp_path / "pipe", tmp_path / "output"
    os.mkfifo(pipe)
    for source in (pipe, "-"):
        with pytest.raises(StoppedError):
            write(path, source, stop_at=8)
        assert names(tmp_path) == ["pipe"]
        assert write(path, source) == [*range(1, 9)]
        assert path.read_text("utf-8") == expected()
        path.unlink()


def test_what_goes_to_a_device_leaves_nothing(tmp_path, source):
    with pytest.raises(StoppedError):
        write("/dev/null", source, stop_at=8)
    assert not os.path.exists("/dev/null.partial")
    assert partial_output.partial_path(None) is None


def test_home_is_found(tmp_path, source, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for stop_at in (5, 8):
        with pytest.raises(StoppedError):
            write("~/output", source, stop_at=stop_at)
        assert names(tmp_path) == ["output.partial", "source"]
    write("~/output", source)
    assert (tmp_path / "output").read_text("utf-8") == expected()
    assert names(tmp_path) == ["output", "source"]


def test_lines_that_cannot_be_moved_to_their_place_are_kept(
    tmp_path, source, monkeypatch
):
    def complete(file, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(partial_output, "_complete", complete)
    with pytest.raises(InputError, match="No space"):
        write(tmp_path / "output", source, window=100)
    kept = (tmp_path / "output.partial").read_text("utf-8")
    assert kept.endswith(expected())


@pytest.mark.parametrize(
    ("begun_on", "resumed_on", "sized_for"),
    [
        (CPU, CPU, CPU),
        (CPU, BUSY_CPU, CPU),
        (GPU, dataclasses.replace(GPU, memory_bytes=79e9), GPU),
        (GPU, SMALL_GPU, SMALL_GPU),
        (SMALL_GPU, GPU, SMALL_GPU),
        (GPU, CPU, CPU),
        (CPU, GPU, GPU),
    ],
)
def test_what_is_resumed_keeps_its_batches_where_they_fit(
    tmp_path, source, monkeypatch, begun_on, resumed_on, sized_for
):
    path, partial = tmp_path / "output", str(tmp_path / "output.partial")
    begun = begin_on(begun_on, monkeypatch)
    assert begun.hardware == begun_on
    with pytest.raises(StoppedError):
        write(path, source, stop_at=5, **begun.options)
    monkeypatch.setattr(partial_output, "find_hardware", lambda: resumed_on)
    resumed = partial_output.find_sizing(partial_output.read_header(partial))
    assert resumed.hardware == sized_for
    assert write(path, source, **resumed.options)[0] == 4
    assert path.read_text("utf-8") == expected()


def test_what_kept_no_hardware_is_resumed_on_any(tmp_path, source, monkeypatch):
    path, partial = tmp_path / "output", str(tmp_path / "output.partial")
    with pytest.raises(StoppedError):
        write(path, source, stop_at=5)
    monkeypatch.setattr(partial_output, "find_hardware", lambda: CPU)
    resumed = partial_output.find_sizing(partial_output.read_header(partial))
    assert resumed.hardware is None
    assert write(path, source, **resumed.options)[0] == 4


def test_ctranslate2_is_not_told_of_hardware(monkeypatch):
    monkeypatch.setattr(partial_output, "find_hardware", lambda: 1 / 0)
    for header in ({}, {"engine": "ctranslate2"}):
        found = partial_output.find_sizing(header, "ctranslate2")
        assert found == partial_output.Sizing(None, {})


@pytest.mark.parametrize(
    "kept",
    [
        7,
        None,
        {},
        {"kind": "CPU"},
        dataclasses.asdict(CPU) | {"memory_bytes": None},
        dataclasses.asdict(CPU) | {"num_cores": "2"},
        dataclasses.asdict(CPU) | {"most_parts": 0},
        dataclasses.asdict(CPU) | {"kind": "TPU"},
    ],
)
def test_hardware_that_is_none_is_refused(tmp_path, source, monkeypatch, kept):
    path = tmp_path / "output"
    with pytest.raises(StoppedError):
        write(path, source, stop_at=5, hardware=kept)
    monkeypatch.setattr(partial_output, "find_hardware", lambda: CPU)
    header = partial_output.read_header(f"{path}.partial")
    found = partial_output.find_sizing(header)
    assert found.hardware == CPU
    with pytest.raises(InputError, match="was started with hardware="):
        write(path, source, **found.options)


def test_a_first_line_that_was_cut_is_written_again(
    tmp_path, source, monkeypatch
):
    path, partial = tmp_path / "output", tmp_path / "output.partial"
    with pytest.raises(StoppedError):
        write(path, source, stop_at=5, **begin_on(GPU, monkeypatch).options)
    header = partial.read_bytes().split(b"\n")[0]
    others = begin_on(BUSY_CPU, monkeypatch).options
    for size in range(len(header)):
        partial.write_bytes(header[:size])
        assert write(path, source, **others)[0] == 1
        assert path.read_text("utf-8") == expected()
    partial.write_bytes(header[:-1] + b"\n")
    with pytest.raises(InputError, match="is not a partial translation"):
        write(path, source, **others)
