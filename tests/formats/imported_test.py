"""Imported models are model directories: they translate, serve and train."""

import dataclasses
import io

import in_process
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tiny_run
from bilingual_text import CORPUS
from refusal import assert_refused
from tiny_models import TINY_MODELS, tiny_transformer

from t2t_lite import Translator
from t2t_lite.errors import InputError
from t2t_lite.formats import imported, sentence_pieces
from t2t_lite.formats.portable import PortableModel
from t2t_lite.serving import opening
from t2t_lite.serving.signatures import ServingOptions
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text.long_lines import LineSplitter
from t2t_lite.text.sentences import Splitting
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


MODEL = sentencepiece_model(CORPUS)


@pytest.fixture(scope="module")
def model():
    """A PortableModel with separate vocabularies of different sizes."""
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


@pytest.fixture(scope="module")
def written(model, tmp_path_factory):
    """The path of `model` as a model directory."""
    path = tmp_path_factory.mktemp("written") / "m"
    imported.write(model, path)
    return path


@pytest.fixture(scope="module")
def translator(written):
    return Translator(
        written, beam_width=2, max_extra_length=5, sentences="whole"
    )


@pytest.mark.slow
def test_a_translator_opens_it(translator):
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
        (
            lambda w: w.pop("transformer/embedding/logit_bias"),
            "received nothing",
        ),
        (
            lambda w: w.update({"transformer/more": np.zeros(2)}),
            "which has no transfor",
        ),
        (
            lambda w: w.update(
                {"transformer/embedding/logit_bias": np.ones(3)}
            ),
            r"logit_bias must be \[37\]; received \[3\]",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused(model, tmp_path, change, message):
    weights = dict(model.weights)
    change(weights)
    with pytest.raises(InputError, match=message):
        imported.write(model._replace(weights=weights), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_it_is_served_as_the_translator_translates(model, written, translator):
    options = ServingOptions(translator.options, model.hparams.max_length)
    served, _ = opening.served_model(ModelDirectory(written), options)
    signatures = served.signatures()
    lines = [*CORPUS[:3], ""]
    found = signatures["serving_default"](inputs=tf.constant(lines))
    texts = [text.decode() for text in found["outputs"].numpy()]
    assert texts == translator(lines)
    score = signatures["score"](
        sources=tf.constant(CORPUS[:2]), targets=tf.constant(CORPUS[1:3])
    )
    targets = model.vocabulary.target.encode(CORPUS[1:3])
    assert score["num_tokens"].numpy().tolist() == [*map(len, targets)]


@pytest.mark.slow
def test_it_is_trained_on_by_ids_of_both_sides(model, tmp_path):
    """With the sides swapped, the target has ids that the source lacks."""
    swapped = _swapped(model)
    imported.write(swapped, tmp_path / "m")
    train_corpus = tiny_run.write_corpus(tmp_path)[:2]
    new = tmp_path / "new"
    with in_process.on_one_core():
        status, _, errors = in_process.run(
            "train",
            *train_corpus,
            f"--warm_start_from={tmp_path / 'm'}",
            f"--model_dir={new}",
            "--steps=2",
            "--override=tokens_per_batch=256",
            "--override=num_buckets=1",
        )
    assert status == 0, errors
    directory = ModelDirectory(new)
    assert directory.settings().target_vocabulary_size == 42
    assert directory.vocabulary().sha256 == swapped.vocabulary.sha256
    _, weights = directory.weights()
    name = "transformer/embedding/logit_bias"
    assert (weights[name] != swapped.weights[name]).any()


def _swapped(model):
    """Returns a model like another, with its two vocabularies swapped."""
    sides = model.vocabulary.target.model, model.vocabulary.model
    vocabulary = Vocabulary(sides[0], target=Vocabulary(sides[1]))
    transformer = tiny_transformer(
        model.hparams,
        vocabulary_size=vocabulary.size,
        num_target_ids=vocabulary.target.size,
    )
    weights = {w.path: w.numpy() for w in transformer.trainable_variables}
    return model._replace(vocabulary=vocabulary, weights=weights)


def test_an_imported_model_is_not_trained_in_place(model, tmp_path):
    imported.write(model, tmp_path / "m")
    corpus = tiny_run.write_corpus(tmp_path)
    found = in_process.run("train", *corpus, f"--model_dir={tmp_path / 'm'}")
    assert_refused(found, "continue training it with --warm_start_from=")


def test_long_lines_keep_their_language_token(model):
    names = [p.piece for p in sentence_pieces.parse(MODEL).pieces][3:30]
    pieces = ["<unk>", *names, ">>deu<<"]
    vocabulary = Vocabulary(sentence_pieces.reordered(MODEL, pieces))
    assert vocabulary.language_tokens == [">>deu<<"]
    splitter = LineSplitter(vocabulary, 12, Splitting(language_tokens=True))
    line = f">>deu<< {CORPUS[0]}"
    found = splitter.split_lines([line]).ids
    (whole,) = vocabulary.encode([line])
    assert len(found) > 1
    assert all(len(ids) <= 12 for ids in found)
    assert all(ids[0] == whole[0] for ids in found)
    assert [i for ids in found for i in ids[1:-1]] == whole[1:-1]
