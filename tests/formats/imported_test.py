"""Imported models as model directories, for all that reads these."""

import dataclasses
import io

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from bilingual_text import CORPUS
from tiny_models import TINY_MODELS, tiny_transformer

from t2t_lite import Translator
from t2t_lite.errors import InputError
from t2t_lite.formats import imported, sentence_pieces
from t2t_lite.formats.portable import PortableModel
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text.vocabulary import Vocabulary


def sentencepiece_model(lines):
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=trained,
        vocab_size=50,
        minloglevel=2,
    )
    return trained.getvalue()


@pytest.fixture(scope="module")
def model():
    """One with separate vocabularies of different sizes."""
    models = [sentencepiece_model(CORPUS[n::2]) for n in range(2)]
    names = [
        [p.piece for p in sentence_pieces.parse(m).pieces if p.type != 3]
        for m in models
    ]
    source, target = (
        Vocabulary(sentence_pieces.reordered(m, ns[: 40 - 5 * n]))
        for n, (m, ns) in enumerate(zip(models, names, strict=True))
    )
    vocabulary = Vocabulary(source.model, target=target)
    hparams = dataclasses.replace(TINY_MODELS["marian"], max_length=40)
    transformer = tiny_transformer(
        hparams,
        vocabulary_size=vocabulary.size,
        num_target_ids=vocabulary.target.size,
    )
    weights = {w.path: w.numpy() for w in transformer.trainable_variables}
    return PortableModel(hparams, weights, vocabulary)


def test_sides_have_different_sizes(model):
    assert model.vocabulary.size == 42
    assert model.vocabulary.target.size == 37


def test_what_is_written_is_what_was_imported(model, tmp_path):
    imported.write(model, tmp_path / "m")
    directory = ModelDirectory(tmp_path / "m")
    assert directory.settings().hparams == model.hparams
    assert directory.vocabulary().sha256 == model.vocabulary.sha256
    _, weights = directory.weights()
    assert weights.keys() == model.weights.keys()
    for name, weight in model.weights.items():
        np.testing.assert_array_equal(weights[name], weight)


def test_a_translator_opens_it(model, tmp_path):
    imported.write(model, tmp_path / "m")
    translator = Translator(tmp_path / "m", beam_width=2)
    lines = CORPUS[:3]
    texts = translator(lines)
    in_graph = tf.function(translator)(tf.constant(lines)).numpy()
    assert [text.decode() for text in in_graph] == texts


def test_what_is_in_the_place_stays(model, tmp_path):
    place = tmp_path / "m"
    place.mkdir()
    (place / "mine").write_text("mine", "utf-8")
    with pytest.raises(InputError, match="must not exist yet"):
        imported.write(model, place)
    assert [path.name for path in place.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("transformer/embedding/logit_bias"), "nothing there"),
        (lambda w: w.update({"transformer/more": np.zeros(2)}), "nothing here"),
        (
            lambda w: w.update(
                {"transformer/embedding/logit_bias": np.ones(3)}
            ),
            r"\[37\] here and \[3\] there",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(model, tmp_path, change, message):
    weights = dict(model.weights)
    change(weights)
    with pytest.raises(InputError, match=message):
        imported.write(model._replace(weights=weights), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
