"""Unpacks the archives that the tests keep."""

import pathlib
import tarfile


def unpack(archive: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes what a tar archive of this project holds into `folder`."""
    with tarfile.open(archive) as opened:
        # Python before 3.11.4 has no filters, and no argument for them.
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(folder)
