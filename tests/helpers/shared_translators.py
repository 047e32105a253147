"""A tiny model, and translators with it whose graphs are made once.

Tracing a graph takes seconds, so the test files of a process share them. A
conftest imports the fixtures.
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

from t2t_lite.alignment.word_alignment import Aligner
from t2t_lite.decoding import engine
from t2t_lite.decoding import search as searching
from t2t_lite.decoding.devices import Replica
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.translation.line_translator import LineTranslator


@functools.cache
def _vocabulary():
    return learn_vocabulary()


@functools.cache
def _model():
    return random_model(ONE_LAYER, _vocabulary(), SEED)


@functools.cache
def _aligner():
    return Aligner(
        _model(), _vocabulary()
    )  # Its graph takes a second to trace.


# Searches with the same arguments share a graph, for any batches.
_search_function = functools.cache(searching._search_function)


@functools.cache
def _make_engine(options, xla=False):
    return engine.model_engine(_model(), _vocabulary(), options, xla=xla)


@functools.cache
def _make_divided():
    replicas = [Replica(_model(), "/device:CPU:0")] * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "make_replicas", lambda *_: replicas)
        return engine.model_engine(
            _model(),
            _vocabulary(),
            SearchOptions.from_hparams(ONE_LAYER, tokens_at_once=16),
            xla=False,
        )


@pytest.fixture(scope="session")
def vocabulary():
    return _vocabulary()


@pytest.fixture(scope="module")
def model():
    """The model of all translators here; its searches share their graphs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "_search_function", _search_function)
        yield _model()


@pytest.fixture(scope="module")
def engine_of(model):
    """A function from search options to an Engine, made once for each."""

    def make_once(**options):
        options = SearchOptions.from_hparams(ONE_LAYER, **options)
        # The Engine does not depend on these.
        told = {"alternatives": 0, "glossary": (), "keep": ()}
        return _make_engine(options._replace(**told, alignments=False))

    return make_once


@pytest.fixture(scope="module")
def steered(engine_of, vocabulary):
    """A function from search options, and others, to a LineTranslator."""

    def make(splitting=None, alignment_head=None, **options):
        translator = LineTranslator(
            engine_of(**options),
            vocabulary,
            SearchOptions.from_hparams(ONE_LAYER, **options),
            splitting=splitting,
            alignment_head=alignment_head,
        )
        if alignment_head is None:
            translator._aligner = _aligner()
        return translator

    return make


@pytest.fixture(scope="module")
def compiled(model):
    """An Engine whose search XLA compiles."""
    return _make_engine(SearchOptions.from_hparams(ONE_LAYER), xla=True)


@pytest.fixture(scope="module")
def divided(model):
    """An Engine of two devices, which take one line at a time.

    They share weights and search graphs; those of devices_test have copies.
    """
    return _make_divided()


@pytest.fixture(scope="module")
def translator(steered):
    return steered(nbest=3)


@pytest.fixture(scope="session")
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
