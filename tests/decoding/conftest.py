"""A tiny model, and translators with it whose graphs are made once.

Tracing a graph takes seconds, so the test files of this folder share them.
"""

import functools

import pytest
from tiny_searches import SEED
from tiny_translator import (
    ONE_LAYER,
    OTHER,
    learn_vocabulary,
    random_model,
    write_model,
)

from t2t_lite.decoding import engine
from t2t_lite.decoding import search as searching
from t2t_lite.decoding.alignment import Aligner
from t2t_lite.decoding.devices import Replica
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.decoding.translation import LineTranslator


@pytest.fixture(scope="package")
def vocabulary():
    return learn_vocabulary()


@pytest.fixture(scope="package")
def _model(vocabulary):
    return random_model(ONE_LAYER, vocabulary, SEED)


@pytest.fixture(scope="package")
def _search_function():
    """Lets searches with the same arguments share a graph, for any batches."""
    return functools.cache(searching._search_function)


@pytest.fixture(scope="package")
def _aligner(_model, vocabulary):
    return Aligner(_model, vocabulary)  # Its graph takes a second to trace.


@pytest.fixture(scope="package")
def _make_engine(_model, vocabulary):
    """A function from SearchOptions to an Engine, made once for each."""

    @functools.cache
    def make(options, xla=False):
        return engine.model_engine(_model, vocabulary, options, xla=xla)

    return make


@pytest.fixture(scope="package")
def _make_divided(_model, vocabulary):
    """A function that returns the Engine of `divided`, made once."""

    @functools.cache
    def make():
        replicas = [Replica(_model, "/device:CPU:0")] * 2
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine, "make_replicas", lambda *_: replicas)
            return engine.model_engine(
                _model,
                vocabulary,
                SearchOptions.from_hparams(ONE_LAYER, tokens_at_once=16),
                xla=False,
            )

    return make


@pytest.fixture(scope="module")
def model(_model, _search_function):
    """The model of all translators here; its searches share their graphs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "_search_function", _search_function)
        yield _model


@pytest.fixture(scope="module")
def engine_of(model, _make_engine):
    """A function from search options to an Engine, made once for each."""

    def make_once(**options):
        options = SearchOptions.from_hparams(ONE_LAYER, **options)
        # The Engine does not depend on these.
        told = {"alternatives": 0, "glossary": (), "keep": ()}
        return _make_engine(options._replace(**told, alignments=False))

    return make_once


@pytest.fixture(scope="module")
def steered(engine_of, _aligner, vocabulary):
    """A function from search options, and others, to a LineTranslator."""

    def make(splitting=None, alignment_head=None, **options):
        translator = LineTranslator(
            engine_of(**options),
            vocabulary,
            SearchOptions.from_hparams(ONE_LAYER, **options),
            splitting,
            alignment_head,
        )
        if alignment_head is None:
            translator._aligner = _aligner
        return translator

    return make


@pytest.fixture(scope="module")
def compiled(model, _make_engine):
    """An Engine whose search XLA compiles."""
    return _make_engine(SearchOptions.from_hparams(ONE_LAYER), xla=True)


@pytest.fixture(scope="module")
def divided(model, _make_divided):
    """An Engine of two devices, which take one line at a time.

    They share weights and search graphs; those of devices_test have copies.
    """
    return _make_divided()


@pytest.fixture(scope="module")
def translator(steered):
    return steered(nbest=3)


@pytest.fixture(scope="package")
def directories(tmp_path_factory, vocabulary):
    """Two model directories; the first has two checkpoints."""
    folder = tmp_path_factory.mktemp("ensemble")
    return tuple(
        write_model(folder / name, vocabulary, hparams, seeds).path
        for name, hparams, seeds in (
            ("first", ONE_LAYER, (3, 4)),
            ("second", OTHER, (5,)),
        )
    )
