"""RemotePath works on ram://, TensorFlow's file system in memory."""

import errno
import gzip
import hashlib
import pathlib
import re
import uuid

import pytest
import tensorflow as tf

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.remote_path import RemotePath
from t2t_lite.storage import checkpoint_files, checkpoints
from t2t_lite.storage.model_directory import ModelDirectory


@pytest.fixture
def folder():
    return RemotePath(f"ram://{uuid.uuid4().hex}/folder")


def _write(path, content):
    with files.atomic_file(path, "wb") as file:
        file.write(content)


def _all_names(folder):
    found = tf.io.gfile.walk(str(folder))
    return sorted(name for *_, names in found for name in names)


@pytest.mark.parametrize(
    "url",
    ["gs://b/a/c", pathlib.Path("gs://b/a/c"), "gs://b//a/c/"],
)
def test_a_url_keeps_its_scheme_and_place(url):
    path = files.to_path(url)
    assert str(path) == "gs://b/a/c"
    assert path == RemotePath("gs://b/a/c")
    assert [str(p) for p in path.parents] == ["gs://b/a", "gs://b"]


def test_a_url_without_a_host_keeps_its_slashes():
    assert str(RemotePath("hdfs:///user/me/m")) == "hdfs:///user/me/m"
    assert str(RemotePath("hdfs:///user") / "m") == "hdfs:///user/m"


def test_paths_of_this_machine_stay_paths():
    home = pathlib.Path.home()
    assert files.to_path("~/a") == home / "a"
    for path in ("a:b/c", "c:/d", "ab:/d", "a/b://c", "."):
        assert files.to_path(path) == pathlib.Path(path)
    literal = files.to_path("./~/a")
    assert files.to_path(literal) == literal == pathlib.Path.cwd() / "~/a"


@pytest.mark.parametrize("path", ["run_1://b/m", "2nd://x", "s3+x://b", "://a"])
def test_what_tensorflow_would_not_take_for_a_url_is_refused(path):
    with pytest.raises(InputError, match="is not a URL that TensorFlow"):
        files.to_path(path)


def test_a_name_that_is_too_long_is_nowhere():
    assert not files.exists("x" * 300)
    assert not files.is_folder("x" * 300)


def test_what_is_written_is_read(folder):
    content = bytes(range(256)) * 9000  # More than is read at once.
    path = folder / "some"
    _write(path, content)
    assert path.read_bytes() == content
    assert files.sha256(path) == hashlib.sha256(content).hexdigest()
    with path.open() as file:
        file.seek(-10, 2)
        assert file.read() == content[-10:]
        file.seek(300)
        assert file.read(5) == content[300:305]
        file.seek(-5, 1)
        assert file.tell() == 300


def test_a_shorter_file_takes_the_place_of_a_longer(folder):
    _write(folder / "a", b"much longer")
    _write(folder / "a", b"short")
    assert (folder / "a").read_bytes() == b"short"
    assert _all_names(folder) == ["a"]


def test_nothing_appears_of_what_is_not_complete(folder):
    _write(folder / "a", b"before")

    def stop_halfway():
        with files.atomic_file(folder / "a") as file:
            file.write("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stop_halfway()
    assert (folder / "a").read_text() == "before"
    assert _all_names(folder) == ["a"]


def test_an_upload_that_fails_leaves_nothing(folder, monkeypatch):
    _write(folder / "a", b"before")

    def refuse(*_, **__):
        raise tf.errors.ResourceExhaustedError(None, None, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(tf.io.gfile, "rename", refuse)
        with pytest.raises(OSError, match="no room") as caught:
            _write(folder / "a", b"after")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(folder / "a")
    kept = re.search(
        r"the output was saved to (\S+) instead", str(caught.value)
    )
    assert pathlib.Path(kept[1]).read_bytes() == b"after"
    pathlib.Path(kept[1]).unlink()
    assert (folder / "a").read_bytes() == b"before"
    assert _all_names(folder) == ["a"]


def test_what_there_is_and_what_not(folder):
    _write(folder / "ab/c", b"x")
    assert (folder / "ab").is_dir()
    assert (folder / "ab/c").is_file()
    # An object store may take the beginning of a name for a folder.
    for name in ("a", "ab/", "ab/c", "nothing"):
        path = folder / name
        assert path.is_dir() == (name == "ab/")
        assert path.exists() == (name in ("ab/", "ab/c"))
    assert list((folder / "nothing").iterdir()) == []


def test_patterns(folder):
    for name in ("step-1.index", "step-1.data", "step-[2]", "sub/step-3"):
        _write(folder / name, b"x")

    def names(pattern):
        return sorted(path.name for path in folder.glob(pattern))

    assert names("step-*") == ["step-1.data", "step-1.index", "step-[2]"]
    assert names("*/") == ["sub"]
    assert names("s*/step-*") == ["step-3"]
    assert names("none*") == []
    assert list((folder / "missing").glob("*")) == []


def test_removing(folder):
    _write(folder / "a", b"x")
    (folder / "a").unlink()
    (folder / "a").unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError, match="ram://"):
        (folder / "a").unlink()
    _write(folder / f"{files.ASIDE}a-1", b"x")
    _write(folder / f"{files.ASIDE}b/c", b"x")
    _write(folder / "b", b"x")
    files.remove_leftovers(folder)
    assert _all_names(folder) == ["b"]


def test_what_is_missing_is_an_error_of_the_system(folder):
    with pytest.raises(FileNotFoundError) as caught:
        (folder / "missing").read_bytes()
    assert caught.value.filename == str(folder / "missing")


def test_appending(folder):
    (folder / "log").append(b"one\n")
    (folder / "log").append(b"two\n")
    assert (folder / "log").read_text() == "one\ntwo\n"


def test_an_unknown_scheme_is_refused():
    for use in ("exists", "read_bytes", "mkdir", "unlink"):
        with pytest.raises(InputError, match="has no file system for none://"):
            getattr(RemotePath("none://bucket/a"), use)()


def test_outputs_are_compressed_by_their_name(folder):
    with files.output_file(str(folder / "out.gz")) as file:
        file.write("line\n")
    assert gzip.decompress((folder / "out.gz").read_bytes()) == b"line\n"


def test_a_store_that_fails_is_not_taken_for_an_empty_one(folder, monkeypatch):
    _write(folder / "step-1.index", b"x")

    def fail(*_, **__):
        raise tf.errors.UnavailableError(None, None, "try again later")

    monkeypatch.setattr(tf.io.gfile, "stat", fail)
    for use in (
        lambda: list(folder.glob("step-*")),
        folder.exists,
        lambda: checkpoint_files.paths(folder),
    ):
        with pytest.raises(OSError, match="try again later"):
            use()


def test_a_checkpoint_that_is_not_given_is_not_damaged(folder, monkeypatch):
    path = folder / "step-1"
    checkpoints.write(path, {"x": tf.ones([2])})
    assert checkpoints.read(path)["x"].tolist() == [1, 1]

    def fail(*_, **__):
        raise tf.errors.UnavailableError(None, None, "try again later")

    reader = tf.compat.v1.train
    monkeypatch.setattr(reader, "NewCheckpointReader", fail)
    with pytest.raises(InputError, match="is damaged"):
        checkpoints.read(path)
    monkeypatch.setattr(tf.io.gfile, "GFile", fail)
    with pytest.raises(OSError, match="try again later"):
        checkpoints.read(path)


def test_a_path_that_would_be_a_pattern_is_refused():
    with pytest.raises(InputError, match="as a pattern"):
        ModelDirectory("ram://bucket/run[1]")


@pytest.mark.parametrize("name", ["", "sub"])
def test_an_output_that_is_a_folder_is_refused(folder, name):
    _write(folder / "sub/a", b"x")
    with pytest.raises(InputError, match="it is a folder"):
        files.require_writable(f"{folder}/{name}")


def test_an_output_on_an_unknown_machine_is_refused_at_once():
    with pytest.raises(InputError, match="has no file system for none://"):
        files.require_writable("none://bucket/a")


def test_an_output_must_not_be_an_input(folder):
    with pytest.raises(InputError, match="this command also reads it"):
        files.require_apart([str(folder / "a")], [f"{folder}//a"])
