"""Treebanks for the tests of corpora, and what is read or refused of them."""

import gzip
import pathlib

import pytest

from t2t_lite.errors import InputError

LAYOUTS = [
    "{:02}/wsj_{:02}01.mrg",
    "wsj/{:02}/wsj_{:02}01.mrg",
    "parsed/mrg/wsj/{:02}/wsj_{:02}01.mrg",
    "PARSED/MRG/WSJ/{:02}/WSJ_{:02}01.MRG",
    "{:02}/wsj_{:02}01.mrg.gz",
]


def write(path, *words, text=None):
    """Writes a file with a tree for each word, or with the given text."""
    text = text or "".join(f"( (NN {word}))\n" for word in words)
    content = text.encode()
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    gzipped = path.suffix == ".gz"
    path.write_bytes(gzip.compress(content) if gzipped else content)


def write_wsj(directory, layout=LAYOUTS[0], sections=range(25)):
    for section in sections:
        name = layout.format(section, section)
        write(f"{directory}/{name}", f"of{section:02}")


def sentences(corpus, split):
    return [sentence for sentence, _ in corpus.pairs(split)]


def refusal(function, *args, **kwargs):
    """Returns the one-line message of the InputError that a function raises."""
    with pytest.raises(InputError) as raised:
        function(*args, **kwargs)
    assert "\n" not in str(raised.value)
    return str(raised.value)
