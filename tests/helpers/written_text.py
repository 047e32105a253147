"""Text files for the tests of corpora, written to the working directory."""

import gzip
import pathlib


def write(**content_of):
    """Writes files to the working directory; `a_en` becomes a.en."""
    for name, content in content_of.items():
        path = pathlib.Path(name.replace("_", "."))
        path.write_bytes(
            gzip.compress(content) if path.suffix == ".gz" else content
        )
