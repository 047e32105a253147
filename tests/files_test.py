"""Nobody sees a half-written file, and only one process can hold a lock."""

import errno
import fcntl
import gzip
import os
import shutil
import stat
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
    reader = threading.Thread(
        target=lambda: received.append(pipe.read_text()),
        daemon=True,  # In case nobody writes.
    )
    reader.start()
    with files.atomic_file(pipe) as output:
        output.write("a line\n")
    reader.join()
    assert received == ["a line\n"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_what_is_open_already_is_written_to_where_it_stands(tmp_path, name):
    path = tmp_path / "file"
    path.write_text("earlier\n")
    with open(path, "a") as file:
        file.write("before\n")
        file.flush()
        with files.output_file(name.format(file.fileno())) as output:
            output.write("new\n")
        file.write("after\n")
    assert path.read_text() == "earlier\nbefore\nnew\nafter\n"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("name", "is_it"),
    [
        ("-", True),
        ("/dev/stdout", True),
        ("/dev/fd/1", True),
        ("the file", True),
        ("/dev/stderr", False),
        ("another file", False),
        (None, False),
        ("gs://bucket/file", False),
    ],
)
def test_a_file_that_stdout_goes_to_is_stdout(tmp_path, name, is_it):
    program = f"from t2t_lite import files; print(files.is_stdout({name!r}))"
    path = tmp_path / "the file"
    with open(path, "w") as file:
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=file,
            check=True,
        )
    assert path.read_text() == f"{is_it}\n"


@pytest.mark.parametrize(("name", "number"), [("stdout", 1), ("stderr", 2)])
def test_dev_stdout_and_stderr_are_those_of_the_process(tmp_path, name, number):
    program = (
        "from t2t_lite import files\n"
        f"with files.output_file('/dev/{name}') as f: f.write('new')"
    )
    path = tmp_path / "file"
    path.write_text("old ")
    command = 'exec "$0" -c "$1" ' + f'{number}>>"$2"'
    subprocess.run(
        ["bash", "-c", command, sys.executable, program, path],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert path.read_text() == "old new"


def test_a_reader_that_leaves_is_no_error_of_the_file():
    reading, writing = os.pipe()
    os.close(reading)
    with (
        pytest.raises(BrokenPipeError),
        files.output_file(f"/dev/fd/{writing}") as output,
    ):
        output.write("nobody reads this")
    os.close(writing)


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


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_error_while_writing_names_the_path(tmp_path, kind):
    write = files.atomic_file if kind == "file" else files.atomic_folder
    path = tmp_path / "new"
    with pytest.raises(OSError, match=str(path)) as caught, write(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(path)
    with pytest.raises(OSError, match="other"), write(path):
        (tmp_path / "other").read_text()
    (tmp_path / "file").write_text("in the way")
    path = tmp_path / "file" / "new"
    with pytest.raises(NotADirectoryError) as caught, write(path):
        pass
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_content_is_on_the_disk_before_its_name(tmp_path, monkeypatch, kind):
    events = []

    def fsync(descriptor):
        events.append(os.fstat(descriptor).st_ino)

    def replace(source, target, replace=os.replace):
        events.append("moved")
        replace(source, target)

    monkeypatch.setattr(files.os, "fsync", fsync)
    monkeypatch.setattr(files.os, "replace", replace)
    path = file = tmp_path / "new"
    if kind == "file":
        with files.atomic_file(path) as output:
            output.write("content")
    else:
        file = path / "file"
        with files.atomic_folder(path) as folder:
            (folder / "file").write_text("content")
    written, moved = events.index(file.stat().st_ino), events.index("moved")
    assert written < moved < events.index(tmp_path.stat().st_ino)


def test_a_process_substitution_is_written_to(tmp_path):
    output = tmp_path / "out"
    program = (
        "import sys\n"
        "from t2t_lite import files\n"
        "with files.output_file(sys.argv[1]) as output:\n"
        "    output.write('new')\n"
    )
    shell = '"$0" -c "$1" >(cat > "$2"); wait $!'
    subprocess.run(
        ["bash", "-c", shell, sys.executable, program, str(output)],
        check=True,
        cwd=ROOT,
    )
    assert output.read_text() == "new"


def test_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    files.require_writable("~/file")
    with files.output_file("~/file") as output:
        output.write("new")
    assert (tmp_path / "file").read_text() == "new"


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
    files.require_writable(str(tmp_path / "file"))
    for path in (tmp_path / "none" / "file", f"{tmp_path}/none/"):
        with pytest.raises(InputError, match="there is no folder"):
            files.require_writable(str(path))
    with pytest.raises(InputError, match="it is a folder"):
        files.require_writable(str(tmp_path))


def test_a_device_needs_no_folder_to_write_to(monkeypatch):
    monkeypatch.setattr(files.os, "access", lambda *_: False)
    for path in ("/dev/null", "/dev/stdout", "/dev/fd/1"):
        files.require_writable(path)


def test_an_empty_file_is_called_so(tmp_path):
    path = tmp_path / "empty.json"
    path.write_text(" \n")
    with pytest.raises(ValueError, match="it is empty"):
        files.read_json(path)


def test_json_that_is_too_deep_is_no_json(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="brackets are too deep"):
        files.read_json(path)


def test_leftovers_of_version_0_1_0_are_removed(tmp_path):
    (tmp_path / "tokens.tmp-123").mkdir()
    (tmp_path / "tags.npz.tmp").write_text("half")
    (tmp_path / "other.tmp").write_text("not ours")
    files.remove_leftovers(tmp_path, "tokens")
    files.remove_leftovers(tmp_path, "tags.npz")
    assert names(tmp_path) == ["other.tmp"]


def test_private_folders_of_killed_processes_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path))
    killed = tmp_path / "worker-killed"
    (killed / "tokens").mkdir(parents=True)
    with files.private_folder("worker") as living:
        for folder in (killed, living):
            os.utime(folder, (0, 0))
        with files.private_folder("worker") as other:
            assert names(tmp_path) == sorted([living.name, other.name])
    assert names(tmp_path) == []


def test_private_folders_stay_where_folders_cannot_be_locked(
    tmp_path, monkeypatch
):
    flock = fcntl.flock

    def flock_of_files(descriptor, operation):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "as on NFS")
        flock(descriptor, operation)

    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", flock_of_files)
    with files.private_folder("worker") as living:
        os.utime(living, (0, 0))
        with files.private_folder("worker"):
            assert living.exists()


def test_an_output_is_not_blamed_for_another_file(tmp_path):
    output = files.output_file(str(tmp_path / "output"))
    with pytest.raises(OSError, match="missing") as caught, output:
        (tmp_path / "missing").read_text()
    assert "cannot write" not in str(caught.value)


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


def test_a_folder_that_cannot_be_locked_is_used_without(tmp_path, monkeypatch):
    def flock(descriptor, _):
        raise OSError(errno.EBADF, "as on NFS")

    monkeypatch.setattr(fcntl, "flock", flock)
    with files.locked(tmp_path):
        pass
    with pytest.raises(OSError, match="as on NFS"):
        files.locked(tmp_path / "file").__enter__()


def test_a_lock_file_that_was_removed_is_made_anew(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    flock, held = fcntl.flock, []

    def flock_too_late(descriptor, how):
        if not held:  # The last holder has just removed it.
            path.unlink()
        held.append(descriptor)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock_too_late)
    with files.locked(path) as descriptor:
        assert files.is_in_place(descriptor, path)
    assert len(held) == 2


def test_a_folder_that_was_moved_is_not_in_place(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    with files.locked(path) as descriptor:
        assert files.is_in_place(descriptor, path)
        shutil.move(path, tmp_path / "elsewhere")
        assert not files.is_in_place(descriptor, path)
        path.mkdir()
        assert not files.is_in_place(descriptor, path)


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
