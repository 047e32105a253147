"""Tiny models of other programs, and of this one for CTranslate2.

What loads TensorFlow is imported where it is used: tests of the other formats
start without it.
"""

import functools
import shutil

import pytest
import tiny_marian
from tiny_hugging_face import GOLDEN


@pytest.fixture
def tied(tmp_path):
    """The folder of the "tied" model of tiny_marian."""
    folder = tmp_path / "model"
    tiny_marian.write(folder, *tiny_marian.make("tied"))
    return folder


@pytest.fixture
def folder(tmp_path):
    """A copy of the golden model in OPUS-MT's format."""
    return shutil.copytree(GOLDEN / "opus", tmp_path / "model")


@pytest.fixture(scope="package")
def vocabulary():
    from tiny_translator import learn_vocabulary

    return learn_vocabulary()


@pytest.fixture(scope="package")
def two_vocabularies(vocabulary):
    from t2t_lite.text import learning
    from t2t_lite.text.vocabulary import Vocabulary

    numbers = ["eins zwei drei vier fünf", "drei vier fünf sechs sieben acht"]
    target = learning.learn([*numbers, *numbers, "."], "bpe", 320)
    assert target.size != vocabulary.size
    return Vocabulary(vocabulary.model, target)


@pytest.fixture(scope="package")
def make_parts(vocabulary, two_vocabularies):
    """A function from the name of a variant to its Parts, made once."""
    from tiny_ctranslate2 import (
        HAVE_TWO_VOCABULARIES,
        VARIANTS,
        Parts,
        random_model,
    )

    @functools.cache
    def make(name):
        has_two = name in HAVE_TWO_VOCABULARIES
        chosen = two_vocabularies if has_two else vocabulary
        return Parts(random_model(VARIANTS[name], chosen), chosen)

    return make


@pytest.fixture(scope="package")
def make_directory(make_parts, tmp_path_factory):
    """A function from the name of a variant to its model directory."""
    from tiny_ctranslate2 import write_directory

    @functools.cache
    def make(name):
        folder = tmp_path_factory.mktemp("parts")
        return write_directory(folder / "run", make_parts(name))

    return make


@pytest.fixture(scope="package")
def tiny(vocabulary):
    from tiny_ctranslate2 import Parts, random_model
    from tiny_translator import TINY

    return Parts(random_model(TINY, vocabulary), vocabulary)


@pytest.fixture(scope="package")
def _tiny_directory(tiny, tmp_path_factory):
    from tiny_ctranslate2 import write_directory

    return write_directory(tmp_path_factory.mktemp("tiny") / "run", tiny)


@pytest.fixture
def directory(_tiny_directory, tmp_path):
    """A model directory of `tiny` that a test may change."""
    from t2t_lite.storage.model_directory import ModelDirectory

    path = shutil.copytree(_tiny_directory.path, tmp_path / "run")
    return ModelDirectory(path)
