"""Archives of models are unpacked whole and harmlessly, or refused."""

import io
import os
import tarfile
import tempfile
import zipfile

import numpy as np
import pytest
from marian_imports import assert_refused

from t2t_lite.formats import marian


def zipped(folder, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for each in sorted(folder.iterdir()):
            file.write(each, f"{folder.name}/{each.name}")


def tarred(folder, path):
    with tarfile.open(path, "w:gz") as file:
        file.add(folder, folder.name)


ARCHIVES = {".zip": zipped, ".tar.gz": tarred}


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_an_archive_is_its_folder_and_leaves_nothing(
    tmp_path, tied, suffix, monkeypatch
):
    path = tmp_path / f"opus{suffix}"
    ARCHIVES[suffix](tied, path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    expected, received = marian.read(tied), marian.read(path)
    assert received.hparams == expected.hparams
    assert received.vocabulary.model == expected.vocabulary.model
    for name, weight in expected.weights.items():
        np.testing.assert_array_equal(received.weights[name], weight)
    assert not os.listdir(tmp_path / "temporary")


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_an_archive_that_is_cut_short_is_refused(tmp_path, tied, suffix):
    path = tmp_path / f"opus{suffix}"
    ARCHIVES[suffix](tied, path)
    whole = path.read_bytes()
    for length in (0, 100, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:length])
        assert_refused(path, "is damaged or cut short")


def test_an_archive_with_a_wrong_byte_is_refused(tmp_path, tied):
    for suffix, make in ARCHIVES.items():
        path = tmp_path / f"opus{suffix}"
        make(tied, path)
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
        assert_refused(path, "is damaged or cut short")


def write_bomb(path, num_bytes):
    """Writes an archive that unpacks to `num_bytes` zero bytes."""
    if path.suffix in (".zip", ".npz"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("zeros.npy", bytes(num_bytes))
        return
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo("zeros")
        member.size = num_bytes
        file.addfile(member, io.BytesIO(bytes(num_bytes)))


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.tar.gz"])
def test_an_archive_that_holds_too_much_is_refused(tmp_path, name):
    write_bomb(tmp_path / name, 10_000_000)
    assert_refused(tmp_path / name, "holds more, and was not unpacked")


def test_an_npz_that_holds_too_much_is_refused(tied):
    write_bomb(tied / "model.npz", 10_000_000)
    assert_refused(tied, "model.npz holds more")


def write_member(path, name, link=None):
    """Writes an archive that holds one file or one symbolic link."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as file:
            member = zipfile.ZipInfo(name)
            member.external_attr = (0o120777 if link else 0o100644) << 16
            file.writestr(member, link or "x")
        return
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo(name)
        if link:
            member.type, member.linkname = tarfile.SYMTYPE, link
        file.addfile(member)


@pytest.mark.parametrize("suffix", ARCHIVES)
def test_an_archive_cannot_leave_its_folder(tmp_path, suffix, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    path = tmp_path / f"a{suffix}"
    for name in ("../x", "a/../../x", f"{tmp_path}/x", "..\\x", "C:\\x"):
        write_member(path, name)
        assert_refused(path, "is not a path inside it: nothing was unpacked")
    write_member(path, "decoder.yml", link="/etc/passwd")
    assert_refused(path, "is a link, device or sparse file")
    assert not os.listdir(tmp_path / "temporary")
    assert not (tmp_path / "x").exists()
