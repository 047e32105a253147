"""The head that aligns dev best is found and saved with the model."""

import dataclasses
import shutil
import types

import pytest
from eagerly import eagerly
from tiny_translator import TINY, learn_vocabulary, random_model, write_model

from t2t_lite.alignment.word_alignment import Aligner, Pair
from t2t_lite.errors import InputError
from t2t_lite.evaluation import alignment_heads
from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.serving.opening import serving_options
from t2t_lite.storage.model_directory import ModelDirectory

PAIRS = [
    ("a red ball", "the old cat sits."),
    ("two men by a tree", "dog runs by a tree"),
    ("the " * 30, "the"),
    ("the house", "bird over house"),
    ("men", "a tree"),
]


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


@pytest.fixture(scope="module")
def model(vocabulary):
    return random_model(TINY, vocabulary)


def links_by(head, model, vocabulary):
    """Returns the links of PAIRS by a head.

    Those of the pair that is too long are wrong, and the last pair has none.
    """
    encoded = vocabulary.encode([source for source, _ in PAIRS])
    pairs = [Pair(i, *each) for i, each in zip(encoded, PAIRS, strict=True)]
    with eagerly():
        (found,) = Aligner(model, vocabulary, [head]).links(
            [pair for pair in pairs if len(pair.source_ids) < 24]
        )
    return [*found[:2], [(0, 0)], found[2], []]


@pytest.mark.parametrize(
    "head",
    [AlignmentHead(0, 2), AlignmentHead(1), AlignmentHead(1, 0, reads=True)],
)
def test_the_head_that_found_the_links_has_no_errors(head, model, vocabulary):
    """Pairs that are too long or have no known links do not count."""
    links = links_by(head, model, vocabulary)
    with eagerly():
        ranked = alignment_heads.ranked_heads(
            model, vocabulary, PAIRS, links=links
        )
    assert ranked[0] == (0, head, 3)
    assert ranked[1].error_rate > 0
    rates = [each.error_rate for each in ranked]
    assert rates == sorted(rates)
    assert {each.head for each in ranked} == {
        AlignmentHead(layer, head, reads)
        for layer in (0, 1)
        for head in (None, 0, 1, 2)
        for reads in (False, True)
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory, vocabulary):
    return write_model(tmp_path_factory.mktemp("runs") / "model", vocabulary)


@pytest.fixture
def directory(tmp_path, written):
    """A copy of the model directory that the test may change."""
    shutil.copytree(written.path, tmp_path / "model")
    return ModelDirectory(tmp_path / "model")


@pytest.mark.slow
def test_the_best_head_is_kept(directory, model, vocabulary):
    links = links_by(AlignmentHead(1, 2, reads=True), model, vocabulary)
    before = directory.settings()
    translator = types.SimpleNamespace(model=model, vocabulary=vocabulary)
    text = alignment_heads.choose(
        directory,
        translator,
        {"dev": PAIRS, "test": PAIRS[:2]},
        links={"dev": links, "test": [links[0], [(0, 0)]]},
    )
    settings = directory.settings()
    assert settings == dataclasses.replace(before, alignment_head=[1, 2, True])
    first, second, third = text.splitlines()
    assert first == (
        "alignment head: head 2 of layer 1, where tokens are read (best of 16)"
    )
    assert second == "dev: 3 pairs with links, alignment error rate 0.00%"
    assert third.startswith("test: 2 pairs with links, alignment error rate ")
    assert not third.endswith(" 0.00%")


def test_exports_give_the_attention_of_the_head(directory):
    settings = directory.settings()

    def served(**options):
        found = serving_options(
            directory, search={}, sentences="auto", max_length=9, **options
        )
        return (
            found.attention_layer,
            found.attention_head,
            found.attention_reads,
        )

    given = {"attention_layer": None, "attention_head": None}
    assert served(**given) == (None, None, False)
    for head in ([1, 2, True], [0, None, False]):
        directory.save_settings(
            dataclasses.replace(settings, alignment_head=head)
        )
        assert served(**given) == served() == tuple(head)
    assert served(attention_layer=1, attention_head=None) == (1, None, False)
    assert served(attention_layer=None, attention_head=0) == (None, 0, False)


@pytest.mark.parametrize(
    "head",
    [
        [2, 0, True],
        [-1, 0, True],
        [0, 3, False],
        [0, 1],
        [],
        [0, 1, 1],
        [None, 0, True],
        [True, 0, True],
        [0, 1.0, True],
    ],
)
def test_a_head_that_there_is_not_is_refused(directory, head):
    with pytest.raises(TypeError, match="alignment_head must be a layer of"):
        dataclasses.replace(directory.settings(), alignment_head=head)


def test_links_must_be_known(model, vocabulary):
    with pytest.raises(InputError, match="a pair must have links"):
        alignment_heads.ranked_heads(model, vocabulary, PAIRS, links=[[]] * 5)
