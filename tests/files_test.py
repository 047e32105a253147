"""What is half-written is seen by nobody, and one process has a lock."""

import errno
import gzip
import os
import subprocess
import sys
import threading
import time

import pytest
from paths import ROOT

from t2t_lite import files
from t2t_lite.errors import InputError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("mode", "old", "new"), [("w", "old\n", "né\u2028w\n"), ("wb", b"o", b"\n")]
)
def test_a_file_appears_once_it_is_complete(tmp_path, mode, old, new):
    path = tmp_path / "file"
    for content in (old, new):
        with files.atomic_file(path, mode) as file:
            file.write(content)
            file.flush()
            assert path.exists() == (content == new)
    written = new if mode == "wb" else new.encode()
    assert path.read_bytes() == written
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_fails_leaves_nothing(tmp_path, kind, error):
    write = files.atomic_file if kind == "file" else files.atomic_folder
    with pytest.raises(error), write(tmp_path / "new"):
        raise error
    assert names(tmp_path) == []


def test_what_fails_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(TypeError), files.atomic_file(path) as file:
        file.write(b"not text")
    assert path.read_text() == "old"


def test_a_link_stays_and_its_file_is_new(tmp_path):
    (tmp_path / "folder").mkdir()
    link, file = tmp_path / "link", tmp_path / "folder" / "file"
    link.symlink_to(file)
    with files.atomic_file(link) as output:
        output.write("new")
    assert link.is_symlink()
    assert file.read_text() == "new"


def test_a_device_stays_what_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()
    with files.atomic_file(pipe) as output:
        output.write("a line\n")
    reader.join()
    assert received == ["a line\n"]
    assert pipe.is_fifo()


def test_a_folder_appears_once_it_is_complete(tmp_path):
    path = tmp_path / "parent" / "folder"
    with files.atomic_folder(path) as folder:
        (folder / "file").write_text("content")
        assert not path.exists()
    assert names(path) == ["file"]
    assert names(path.parent) == ["folder"]


def test_what_is_moved_out_of_a_scratch_folder_stays(tmp_path):
    with files.scratch_folder(tmp_path / "a") as folder:
        for name in ("a", "b"):
            (folder / name).write_text(name)
        os.replace(folder / "a", tmp_path / "a")
    assert names(tmp_path) == ["a"]


def test_leftovers_of_killed_processes_are_removed(tmp_path):
    killed = (
        "import os, sys; from t2t_lite import files\n"
        "with files.atomic_file('file') as f, files.atomic_folder('folder'):\n"
        "    f.write('half'); f.flush(); os._exit(9)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", killed], cwd=tmp_path, env=environment
    )
    (tmp_path / "notes").write_text("not ours")
    assert len(names(tmp_path)) == 3
    files.remove_leftovers(tmp_path, "file")
    assert len(names(tmp_path)) == 2
    files.remove_leftovers(tmp_path)
    assert names(tmp_path) == ["notes"]


def test_output_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    path = str(tmp_path / "none" / "file")
    with (
        pytest.raises(InputError, match=f"cannot write {path}: No such file"),
        files.output_file(path),
    ):
        pass
    path = str(tmp_path / "file")
    with (
        pytest.raises(InputError, match=f"cannot write {path}: No space"),
        files.output_file(path),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("path", [None, "-"])
def test_output_goes_to_stdout_where_no_file_is_given(capfd, path):
    program = (
        "from t2t_lite import files\n"
        f"with files.output_file({path!r}) as f: f.write('\\u00e9\\n')"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "LC_ALL": "C"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert capfd.readouterr().out == "é\n"


def test_output_to_gz_is_compressed(tmp_path):
    path = tmp_path / "file.gz"
    with files.output_file(str(path)) as file:
        file.write("né\u2028w\n")
    assert gzip.decompress(path.read_bytes()) == "né\u2028w\n".encode()
    assert names(tmp_path) == ["file.gz"]


def test_a_folder_that_cannot_hold_the_output_is_refused(tmp_path):
    files.require_folder_of(str(tmp_path / "file"))
    with pytest.raises(InputError, match="there is no folder"):
        files.require_folder_of(str(tmp_path / "none" / "file"))


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_lock_is_refused_while_another_has_it(tmp_path, kind):
    path = tmp_path if kind == "folder" else tmp_path / "lock"
    with files.locked(path):
        other = files.locked(path, "somebody is at work")
        with pytest.raises(InputError, match="somebody is at work"):
            other.__enter__()
    with files.locked(path, "nobody is"):
        pass
    assert kind == "folder" or not path.stat().st_mode & 0o111


def test_without_a_refusal_a_lock_is_waited_for(tmp_path):
    path, order = tmp_path / "lock", []

    def wait():
        with files.locked(path):
            order.append("the other")

    with files.locked(path):
        other = threading.Thread(target=wait)
        other.start()
        time.sleep(0.1)
        order.append("this")
    other.join()
    assert order == ["this", "the other"]
