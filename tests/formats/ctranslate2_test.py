"""A model written for CTranslate2 gives the same translations and scores."""

import dataclasses
import itertools
import json
import math
import os
import random
import re
import shutil

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from tiny_models import AS_MARIAN
from tiny_translator import (
    LEARNED,
    LINES,
    TINY,
    WORDS,
    assert_same,
    learn_vocabulary,
    sentence,
)

from t2t_lite import hardware
from t2t_lite.decoding.engine import model_engine
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.search import (
    SearchOptions,
    ids_translator,
)
from t2t_lite.decoding.translation import LineTranslator
from t2t_lite.errors import InputError
from t2t_lite.formats import ctranslate2
from t2t_lite.formats.ctranslate2_engine import open_translator
from t2t_lite.formats.ctranslate2_search import CTranslate2Search, find_workers
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage import checkpoints
from t2t_lite.storage.model_directory import (
    ModelDirectory,
    Settings,
    named_tensors,
)
from t2t_lite.text import learning
from t2t_lite.text.vocabulary import OUTSIDE, Vocabulary
from t2t_lite.token_ids import EOS, PAD

VARIANTS = {
    "d_k_is_not_d_v": dataclasses.replace(
        TINY, num_layers=1, num_decoder_layers=2
    ),
    "learned_and_d_k_is_above_d_v": dataclasses.replace(
        LEARNED, d_k=7, num_decoder_layers=1
    ),
    "marian": dataclasses.replace(
        TINY,
        num_layers=1,
        d_v=4,
        norm_epsilon=1e-2,
        **AS_MARIAN,
    ),
    "pre_norm": dataclasses.replace(
        TINY,
        num_layers=1,
        norm="pre",
        activation="gelu",
        attention_bias=True,
        tied_embeddings="input",
        embedding_scale=1.5,
    ),
    "two_vocabularies": dataclasses.replace(
        TINY, num_layers=1, tied_embeddings="target", embedding_scale=1.0
    ),
    "untied": dataclasses.replace(
        TINY, num_layers=1, tied_embeddings="none", logit_bias=True
    ),
}
# Amounts that are added to the logit of EOS.
NEVER, SOMETIMES = -12.0, 7.0
HAVE_TWO_VOCABULARIES = {"two_vocabularies", "untied"}


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


@pytest.fixture(scope="module")
def two_vocabularies(vocabulary):
    numbers = ["eins zwei drei vier fünf", "drei vier fünf sechs sieben acht"]
    target = learning.learn([*numbers, *numbers, "."], "bpe", 320)
    assert target.size != vocabulary.size
    return Vocabulary(vocabulary.model, target)


def random_model(hparams, vocabulary, seed=3, end=NEVER):
    """Returns a model none of whose weights has its initial value.

    Args:
        hparams: HParams.
        vocabulary: Vocabulary.
        seed: for everything random.
        end: the amount to add to the logit of EOS.
    """
    keras.utils.set_random_seed(seed)
    model = Transformer(hparams, vocabulary.size, vocabulary.target.size)
    model.build()
    generator = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        noise = generator.normal(0, 0.2, variable.shape)
        factor = 1.5 if len(variable.shape) > 1 else 1
        variable.assign(variable * factor + noise)
    last = f"layer_{hparams.decoder_layers - 1}/feed_forward_norm"
    top = "top_norm" if hparams.norm == "pre" else last
    path = f"transformer/decoder/{top}/beta"
    (beta,) = [v for v in model.trainable_variables if v.path == path]
    row_D = model.output_embedding.embedding.numpy()[EOS]
    beta.assign(beta + end * row_D / (row_D @ row_D))
    return model


@dataclasses.dataclass
class Parts:
    """What `ctranslate2.write` takes, made from a Keras model."""

    model: Transformer
    vocabulary: Vocabulary
    splitting: dict | None = None

    @property
    def hparams(self):
        return self.model.hparams

    @property
    def weights(self):
        tensors = named_tensors(self.model.trainable_variables)
        return {name: tensor.numpy() for name, tensor in tensors.items()}


@pytest.fixture(scope="module", params=VARIANTS)
def parts(request, vocabulary, two_vocabularies):
    has_two = request.param in HAVE_TWO_VOCABULARIES
    chosen = two_vocabularies if has_two else vocabulary
    return Parts(random_model(VARIANTS[request.param], chosen), chosen)


@pytest.fixture(scope="module")
def tiny(vocabulary):
    return Parts(random_model(TINY, vocabulary), vocabulary)


@pytest.fixture(scope="module")
def tiny_ending(vocabulary):
    return Parts(random_model(TINY, vocabulary, end=SOMETIMES), vocabulary)


def random_sentences(count=50, seed=7):
    """Returns sentences of 1 to 12 words."""
    generator = random.Random(seed)
    return [
        " ".join(generator.choices(WORDS, k=generator.randint(1, 12))) + "."
        for _ in range(count)
    ]


FEW_TOKENS = {"max_extra_length": 5}


def search_options(parts, **changes):
    changes = {"length_penalty": 0.0} | changes
    return SearchOptions.from_hparams(parts.hparams, **changes)


def written_search(parts, folder, options, quantization=None):
    """Writes a model to a folder and returns its CTranslate2Search."""
    ctranslate2.write(parts, folder, quantization=quantization)
    library = find_workers(quantization=quantization).load(folder)
    return CTranslate2Search(library, parts.vocabulary, parts.hparams, options)


def encoded(parts, lines):
    return tf.ragged.constant(parts.vocabulary.encode(lines), tf.int32)


def pieces_of(ids):
    return [i for i in np.asarray(ids).tolist() if i != PAD]


def log_probs(model, sources, targets):
    """Returns the model's log probability of each target, leaving out PAD."""

    def padded(lists):
        return tf.ragged.constant(lists, tf.int32).to_tensor().numpy()

    shifted = padded([[EOS, *target[:-1]] for target in targets])
    logits_BTV = model((padded(sources), shifted)).numpy().astype("f8")
    logits_BTV[..., PAD] = -np.inf
    log_probs_BTV = logits_BTV - np.logaddexp.reduce(
        logits_BTV, axis=-1, keepdims=True
    )
    return [
        log_probs_TV[np.arange(len(target)), target].sum()
        for log_probs_TV, target in zip(log_probs_BTV, targets, strict=True)
    ]


# Search results.


@pytest.fixture(scope="module")
def ours(parts):
    """The Engine that searches `parts` with this package."""
    options = search_options(parts, nbest=4, **FEW_TOKENS)
    return model_engine(parts.model, parts.vocabulary, options, xla=False)


@pytest.mark.slow
def test_beam_search_finds_what_ours_finds(parts, ours, tmp_path):
    options = search_options(parts, nbest=4, **FEW_TOKENS)
    ids = encoded(parts, random_sentences())
    found = written_search(parts, tmp_path / "model", options)(ids)
    expected = ours.translate_ids(ids)
    np.testing.assert_array_equal(found.ids_BWT, expected.ids_BWT)
    np.testing.assert_allclose(found.scores_BW, expected.scores_BW, atol=1e-4)
    assert len({tuple(pieces_of(each[0])) for each in found.ids_BWT}) > 15


@pytest.fixture(scope="module")
def ending(parts):
    """Like `parts`, but with hypotheses that end."""
    model = random_model(parts.hparams, parts.vocabulary, end=SOMETIMES)
    return Parts(model, parts.vocabulary)


@pytest.fixture
def ours_ending(parts, ending, ours):
    """`ours` with the weights of `ending`, to save tracing a second graph."""
    weights = parts.model.get_weights()
    parts.model.set_weights(ending.model.get_weights())
    yield ours
    parts.model.set_weights(weights)


@pytest.mark.slow
def test_ends_behind_the_beam_are_all_that_ours_finds_more(
    ending, ours_ending, tmp_path
):
    options = search_options(ending, **FEW_TOKENS)
    ids = encoded(ending, random_sentences())
    found = written_search(ending, tmp_path / "model", options)(ids)
    expected = ours_ending.translate_ids(ids)
    for ids_WT, our_ids_WT, (score,), (our_score, *_) in zip(
        found.ids_BWT,
        expected.ids_BWT,
        found.scores_BW,
        expected.scores_BW.numpy(),
        strict=True,
    ):
        best, our_best = pieces_of(ids_WT[0]), pieces_of(our_ids_WT[0])
        if best == our_best:
            assert abs(score - our_score) < 1e-4
        elif best[-1] == EOS:
            assert our_best[-1] == EOS
            assert score < our_score


def test_scores_are_the_models_log_probabilities(ending, tmp_path):
    options = search_options(ending, nbest=4, max_extra_length=2)
    lines = random_sentences(8)
    search = written_search(ending, tmp_path / "model", options)
    found = search(encoded(ending, lines))
    sources = [s for s in ending.vocabulary.encode(lines) for _ in range(4)]
    targets = [pieces_of(ids_T) for ids_WT in found.ids_BWT for ids_T in ids_WT]
    assert any(target[-1] == EOS for target in targets)
    np.testing.assert_allclose(
        found.scores_BW.ravel(),
        log_probs(ending.model, sources, targets),
        atol=1e-4,
    )


def test_a_translation_has_at_most_its_own_limit_of_tokens(tiny, tmp_path):
    options = search_options(tiny, nbest=4, max_extra_length=1)
    lines = ["the dog.", "a dog runs.", sentence(12), sentence(20)]
    search = written_search(tiny, tmp_path / "model", options)
    together = search(encoded(tiny, lines))
    lengths = (together.ids_BWT != PAD).sum(-1).max(-1)
    limits = [len(ids) + 1 for ids in tiny.vocabulary.encode(lines)]
    assert (lengths <= limits).all()
    assert (lengths == limits).any()
    expected = ids_translator(tiny.model, options, xla=False)(
        encoded(tiny, lines)
    )
    T = expected.ids_BWT.shape[-1]
    ids_BT = np.pad(together.ids_BWT[:, 0], [(0, 0), (0, T)])[:, :T]
    np.testing.assert_array_equal(ids_BT, expected.ids_BWT[:, 0])


@pytest.mark.parametrize("name", ["tiny", "tiny_ending"])
def test_batch_mates_change_no_translation(name, request, tmp_path):
    parts = request.getfixturevalue(name)
    options = search_options(parts, nbest=2, max_extra_length=3)
    search = written_search(parts, tmp_path / "model", options)
    lines = random_sentences(12)
    together = search.search(parts.vocabulary.encode(lines))
    for line, expected in zip(lines, together, strict=True):
        (alone,) = search.search(parts.vocabulary.encode([line]))
        assert [f.ids for f in alone] == [f.ids for f in expected]


def test_with_a_penalty_the_papers_formula_ranks(tiny_ending, tmp_path):
    alpha = 1.5
    plain = search_options(tiny_ending, nbest=4)
    search = written_search(tiny_ending, tmp_path / "model", plain)
    options = search_options(tiny_ending, nbest=2, length_penalty=alpha)
    ranking = CTranslate2Search(
        search._library, tiny_ending.vocabulary, TINY, options
    )
    ids = encoded(tiny_ending, random_sentences(20))
    all_ids_BWT, log_probs_BW = search(ids)
    lengths_BW = (all_ids_BWT != PAD).sum(-1)
    scores_BW = log_probs_BW / ((5 + lengths_BW) / 6) ** alpha
    order_BW = np.argsort(-scores_BW, axis=1)[:, :2]
    assert (order_BW[:, 0] != 0).any()
    found = ranking(ids)
    np.testing.assert_allclose(
        found.scores_BW, np.take_along_axis(scores_BW, order_BW, 1), rtol=1e-5
    )


def test_a_source_without_tokens_has_no_translation(tiny, tmp_path):
    options = search_options(tiny, nbest=2)
    search = written_search(tiny, tmp_path / "model", options)
    ids = tf.ragged.constant([[], [EOS], [5, EOS]], tf.int32)
    found = search(ids)
    np.testing.assert_array_equal(found.ids_BWT[:2], 0)
    np.testing.assert_array_equal(found.scores_BW[:2], [[0, -math.inf]] * 2)
    assert found.scores_BW[2, 1] > -math.inf


@pytest.mark.parametrize("quantization", ["int8", "int8_float32", "bfloat16"])
def test_quantized_models_find_nearly_the_same(tiny, tmp_path, quantization):
    options = search_options(tiny, nbest=4)
    ids = encoded(tiny, random_sentences(10))
    exact = written_search(tiny, tmp_path / "float32", options)(ids)
    ctranslate2.write(tiny, tmp_path / "model", quantization=quantization)
    library = find_workers().load(tmp_path / "model")
    search = CTranslate2Search(library, tiny.vocabulary, TINY, options)
    found = search(ids)
    size, whole = (
        (tmp_path / name / "model.bin").stat().st_size
        for name in ("model", "float32")
    )
    assert size < 0.8 * whole
    difference_BW = np.abs(found.scores_BW - exact.scores_BW)
    assert 0 < np.median(difference_BW) < 0.6


# The written folder.


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def test_the_readme_translates(tiny, tmp_path, monkeypatch):
    folder = ctranslate2.write(tiny, tmp_path / "model")
    readme = (folder / "README.md").read_text("utf-8")
    (code,) = re.findall("```python\n(.*?)```", readme, re.DOTALL)
    monkeypatch.chdir(folder)
    translator = open_translator(folder, length_penalty=0.0)
    lines, printed = random_sentences(8), []
    for line in lines:
        line_code = code.replace("A dog runs .", line)
        exec(line_code, {"print": printed.extend})
    # Ignores spaces: SentencePiece drops a leading one of any origin.
    assert [text.split() for text in printed] == [
        text.split() for text in translator(lines)
    ]


def test_the_folder_has_all_that_its_users_need(parts, tmp_path):
    folder = ctranslate2.write(
        dataclasses.replace(parts, splitting={"language": "en"}),
        tmp_path / "model",
    )
    spm = {"vocabulary.model"}
    vocabularies = {"shared_vocabulary.json"}
    if parts.vocabulary is not parts.vocabulary.target:
        spm = {"source.model", "target.model"}
        vocabularies = {"source_vocabulary.json", "target_vocabulary.json"}
    assert set(os.listdir(folder)) == spm | vocabularies | {
        "README.md",
        "config.json",
        "metadata.json",
        "model.bin",
    }
    metadata = read_json(folder / "metadata.json")
    assert metadata["hparams"] == dataclasses.asdict(parts.hparams)
    assert metadata["splitting"] == {"language": "en"}
    config = read_json(folder / "config.json")
    assert config["layer_norm_epsilon"] == parts.hparams.norm_epsilon
    assert config["add_source_eos"]
    assert config["decoder_start_token"] == "</s>"
    loaded = ctranslate2.load_vocabulary(folder)
    assert loaded.sha256 == parts.vocabulary.sha256
    assert os.listdir(tmp_path) == ["model"]


def with_pieces(vocabulary, *pieces):
    """Returns a copy of a vocabulary with pieces (text, type) appended."""
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(vocabulary.model)
    for text, kind in pieces:
        proto.pieces.add(piece=text, score=0.0, type=kind)
    return Vocabulary(proto.SerializeToString())


CONTROL, USER_DEFINED, NORMAL = 3, 4, 1


def test_tokens_are_the_pieces_of_text(vocabulary):
    names = ctranslate2.token_names(vocabulary)
    assert len(names) == len(set(names)) == vocabulary.size - 1
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(vocabulary.model)
    line = "the dog sees Ω."  # Ω becomes byte pieces.
    pieces = processor.encode(line, out_type=str)
    assert any(piece.startswith("<0x") for piece in pieces)
    ids = [names.index(piece) + EOS for piece in pieces]
    assert [[*ids, EOS]] == vocabulary.encode([line])
    assert names[0] == "</s>"
    assert names[vocabulary.unknown_id - EOS] == "<unk>"


def test_pieces_outside_of_the_model_are_no_tokens(vocabulary):
    outside = with_pieces(vocabulary, (OUTSIDE, CONTROL), ("xyz", NORMAL))
    names = ctranslate2.token_names(outside)
    assert names == ctranslate2.token_names(vocabulary)


def test_a_control_symbol_is_not_taken_for_the_end(vocabulary):
    own = with_pieces(vocabulary, ("</s>", CONTROL), ("<<a>>", CONTROL))
    names = ctranslate2.token_names(own)
    assert names == [
        *ctranslate2.token_names(vocabulary), "</s>_", "<<a>>"
    ]  # fmt: skip


def test_a_piece_of_text_may_not_be_named_like_the_end(vocabulary):
    own = with_pieces(vocabulary, ("</s>", USER_DEFINED))
    with pytest.raises(InputError, match="reserves the names </s> and <unk>"):
        ctranslate2.token_names(own)


def test_the_table_of_positions_is_as_long_as_a_translation_may_be():
    def rows(**changes):
        hparams = dataclasses.replace(TINY, **changes)
        return ctranslate2.num_positions(hparams)

    assert rows() == 1024
    assert rows(max_extra_length=1020) == 1043
    assert rows(positions="learned", learned_positions=30) == 30


# What is refused.


def refused(message, parts, folder, **options):
    with pytest.raises(InputError, match=message) as error:
        ctranslate2.write(parts, folder, **options)
    assert "\n" not in str(error.value)
    assert not folder.exists()
    assert os.listdir(folder.parent) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention_window": 5}, "attention_window=0; received .*=5"),
    ],
)
def test_a_model_that_the_format_cannot_carry_is_refused(
    tiny, tmp_path, changes, message
):
    @dataclasses.dataclass
    class Other:
        hparams = dataclasses.replace(TINY, **changes)
        weights = tiny.weights
        vocabulary = tiny.vocabulary

    refused(message, Other(), tmp_path / "model")


def test_an_unknown_quantization_is_refused(tiny, tmp_path):
    message = "quantization must be None or one of int8.*received .*'int4'"
    refused(message, tiny, tmp_path / "model", quantization="int4")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.popitem(), "must be .* received nothing"),
        (
            lambda w: w.update({"transformer/more": np.ones(3)}),
            r"such a model has no transformer/more; received \[3\]",
        ),
        (
            lambda w: w.update({"transformer/embedding/embedding": np.ones(3)}),
            r"transformer/embedding/embedding must be \[\d+, 12\]; received \[",
        ),
    ],
)
def test_weights_of_another_model_are_refused(tiny, tmp_path, change, message):
    @dataclasses.dataclass
    class Other:
        hparams = TINY
        weights = tiny.weights
        vocabulary = tiny.vocabulary

    change(Other.weights)
    refused(message, Other(), tmp_path / "model")


def test_a_folder_that_is_there_is_left_alone(tiny, tmp_path):
    (tmp_path / "mine").write_text("mine", "utf-8")
    with pytest.raises(InputError, match="must not exist yet: give a new"):
        ctranslate2.write(tiny, tmp_path)
    assert os.listdir(tmp_path) == ["mine"]


def test_a_folder_appears_whole_or_not_at_all(tiny, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ctranslate2, "_write_beside", fail)
    refused("cannot write .*No space left", tiny, tmp_path / "model")


def test_without_the_extra_one_line_says_how_to_install_it(
    tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    message = r"needs ctranslate2, which is not installed: pip install"
    refused(message, tiny, tmp_path / "model")


# The engine on a model directory.


def write_directory(path, parts):
    """Writes a model directory with a checkpoint of these parts."""
    directory = ModelDirectory(path)
    directory.path.mkdir()
    vocabulary = parts.vocabulary
    vocabulary.save_in(directory.path)
    has_two = vocabulary.target is not vocabulary
    directory.save_settings(
        Settings(
            hparams=parts.hparams,
            corpus={},
            data_sha256="of the text",
            vocabulary_sha256=vocabulary.sha256,
            vocabulary_size=vocabulary.size,
            target_vocabulary_size=vocabulary.target.size if has_two else None,
            micro_batch_tokens=100,
        )
    )
    checkpoints.write(
        directory.checkpoints / "step-1", parts.weights | {"step": 1}
    )
    return directory


def write_checkpoint(directory, parts, step, seed):
    model = random_model(parts.hparams, parts.vocabulary, seed)
    tensors = named_tensors(model.trainable_variables) | {"step": step}
    checkpoints.write(directory.checkpoints / f"step-{step}", tensors)


@pytest.fixture(scope="module")
def tiny_directory(tiny, tmp_path_factory):
    return write_directory(tmp_path_factory.mktemp("tiny") / "run", tiny)


@pytest.fixture
def directory(tiny_directory, tmp_path):
    """A copy of `tiny_directory` that a test may change."""
    path = shutil.copytree(tiny_directory.path, tmp_path / "run")
    return ModelDirectory(path)


def conversions(directory):
    folder = directory.path / "ctranslate2"
    return sorted(os.listdir(folder)) if folder.exists() else []


@pytest.fixture(scope="module")
def parts_directory(parts, tmp_path_factory):
    return write_directory(tmp_path_factory.mktemp("parts") / "run", parts)


@pytest.mark.slow
def test_lines_are_translated_as_by_ours(parts, parts_directory, ours):
    directory = parts_directory
    translator = open_translator(
        directory.path, length_penalty=0.0, nbest=2, **FEW_TOKENS
    )
    our_translator = LineTranslator(
        ours,
        parts.vocabulary,
        search_options(parts, nbest=4, **FEW_TOKENS),
        directory.settings().splitting(),
    )
    lines = [*LINES, " ", f"{sentence(4)} {sentence(3)}", sentence(40)]
    found, expected = (
        translator.translate(lines),
        our_translator.translate(lines),
    )
    assert [len(each) for each in found] == [2] * len(lines)
    assert_same(found, [each[:2] for each in expected])
    assert found[2] == found[7] == [Translation("", 0.0)] * 2
    assert_same(translator.translate(lines[::-1]), found[::-1])
    assert list(translator.stream(iter(lines), lines_at_once=4))[4] == found[4]
    assert translator(lines[:2]) == [each[0].text for each in found[:2]]


def test_options_that_steer_are_kept(tiny, directory):
    """The library's steered scores are replaced by the model's own."""
    translator = open_translator(
        directory.path,
        length_penalty=0.0,
        min_length=4,
        no_repeat_ngram_size=2,
        suppress_pieces=["\u2581dog"],
    )
    unsteered = open_translator(directory.path, length_penalty=0.0)
    sources = tf.ragged.constant(tiny.vocabulary.encode(LINES[:2]), tf.int32)
    found, plain = (
        each.translate_ids(sources) for each in (translator, unsteered)
    )
    (dog,) = tiny.vocabulary.encode(["dog"])[0][:-1]
    for ids_WT, scores_W in zip(*found, strict=True):
        ids = ids_WT[0][ids_WT[0] > 0].tolist()
        assert len(ids) > 4
        assert dog not in ids
        pairs = [*itertools.pairwise(ids)]
        assert len({*pairs}) == len(pairs)
        assert scores_W[0] < 0
    assert found.ids_BWT.tolist() != plain.ids_BWT.tolist()


def test_what_has_ended_has_the_models_score(tiny, directory):
    steered = open_translator(
        directory.path, length_penalty=0.0, suppress_pieces=["\u2581dog"]
    )
    plain = open_translator(directory.path, length_penalty=0.0)
    sources = tiny.vocabulary.encode(LINES[:2])
    target = tiny.vocabulary.encode(["the old cat"])[0]
    for n, source in enumerate(sources):
        (log_probs,) = plain.translate_ids._scores([source], [target])
        assert len(log_probs) == len(target)
        (hypotheses,) = steered.translate_ids.search([source])
        for hypothesis in hypotheses:
            if hypothesis.has_ended:
                (again,) = plain.translate_ids._scores(
                    [source], [hypothesis.ids]
                )
                np.testing.assert_allclose(hypothesis.log_prob, sum(again))
        assert hypotheses, n


def test_prefixes_are_kept(directory):
    translator = open_translator(directory.path, length_penalty=0.0)
    lines = ["a dog runs", "the old cat", "Two men. A cat. The old dog."]
    prefixes = ["the wat", "", "the grass. two birds"]
    found = translator.translate(lines, prefixes=prefixes)
    for (best, *_), prefix in zip(found, prefixes, strict=True):
        assert best.text.startswith(prefix)
    assert_same(found[1:2], translator.translate(lines[1:2]))
    ended = translator.translate(["a dog. men."], prefixes=["the cat. men"])
    assert ended[0][0].text.startswith("the cat. men")


def test_a_model_directory_is_converted_once(directory, monkeypatch):
    first = open_translator(directory.path)
    (name,) = conversions(directory)
    assert name.endswith("-float32")
    monkeypatch.setattr(ctranslate2, "write", None)
    second = open_translator(directory.path)
    assert_same(first.translate(LINES), second.translate(LINES))
    assert first.sha256() == second.sha256()
    assert first.description == second.description == str(
        directory.checkpoints / "step-1"
    )  # fmt: skip


def test_each_quantization_and_checkpoint_is_converted_for_itself(
    directory, tiny
):
    names = set()

    def translations(**options):
        translator = open_translator(directory.path, **options)
        names.add(translator.sha256())
        return [each[0].text for each in translator.translate(LINES)]

    first = translations()
    translations(quantization="int8")
    assert len(conversions(directory)) == 2
    write_checkpoint(directory, tiny, 2, seed=4)
    assert translations() != first
    assert translations(checkpoint=directory.checkpoints / "step-1") == first
    assert translations(average_last=2) != first
    assert len(conversions(directory)) == 4
    assert len(names) == 4


def test_what_is_stale_is_neither_used_nor_kept(directory, tiny):
    old = open_translator(directory.path).translate(LINES)
    (name,) = conversions(directory)
    write_checkpoint(directory, tiny, 1, seed=5)  # Replaces the first.
    new = open_translator(directory.path).translate(LINES)
    assert [t.text for t, *_ in new] != [t.text for t, *_ in old]
    assert len(conversions(directory)) == 1
    assert name not in conversions(directory)


def test_what_cannot_be_kept_is_used_all_the_same(directory, monkeypatch):
    expected = open_translator(directory.path, quantization=None)
    (directory.path / "ctranslate2").rename(directory.path / "other")
    (directory.path / "ctranslate2").write_text("no folder")
    found = open_translator(directory.path)
    assert_same(found.translate(LINES), expected.translate(LINES))
    assert (directory.path / "ctranslate2").read_text() == "no folder"


def test_a_damaged_checkpoint_is_not_converted_from_the_one_before(
    directory, tiny
):
    first = open_translator(directory.path).translate(LINES)
    write_checkpoint(directory, tiny, 2, seed=4)
    data = directory.checkpoints / "step-2.data-00000-of-00001"
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    fallen_back = open_translator(directory.path)
    assert fallen_back.description.endswith("step-1")
    assert_same(fallen_back.translate(LINES), first)
    data.write_bytes(whole)
    second = open_translator(directory.path).translate(LINES)
    assert [t.text for t, *_ in second] != [t.text for t, *_ in first]


@pytest.mark.slow
def test_a_written_folder_is_translated_with_alone(
    parts, parts_directory, tmp_path
):
    folder = ctranslate2.write(parts, tmp_path / "model")
    expected = open_translator(parts_directory.path, nbest=2)
    found = open_translator(folder, nbest=2)
    lines = [*LINES, sentence(40)]
    assert_same(found.translate(lines), expected.translate(lines))
    with pytest.raises(InputError, match="holds one model: checkpoint must be"):
        open_translator(folder, checkpoint="best")
    (folder / "metadata.json").write_text("{}")
    with pytest.raises(InputError, match="is not a complete folder"):
        open_translator(folder)


def test_hparams_are_those_of_a_model_directory_or_a_folder(directory, tiny):
    folder = ctranslate2.write(tiny, directory.path.parent / "model")
    assert ctranslate2.read_hparams(directory.path) == TINY
    assert ctranslate2.read_hparams(str(folder)) == TINY
    with pytest.raises(InputError, match="is not a model directory"):
        ctranslate2.read_hparams(directory.path.parent)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xla": True}, "xla must be None or False; received xla=True"),
        (
            {"precision": "bfloat16"},
            "leave it at float32, and set quantization to",
        ),
        ({"devices": 2}, "devices must be all, or from 1 to 1 on this machine"),
        ({"devices": "two"}, "devices must be all, or from 1"),
        ({"quantization": "int4"}, "quantization must be None or one of"),
        ({"constraint": None}, "unknown option 'constraint'"),
        ({"checkpoint": "best"}, "has no checkpoint in best/"),
        ({"average_last": 3}, "too few to average the last 3"),
        ({"nbest": 9}, "nbest must be at most beam_width=4"),
        ({"suppress": ["the"]}, "not words: give suppress_pieces instead; rec"),
        (
            {"alternatives": 3},
            "alternatives are not available with the CTranslate2 engine: "
            "leave them out;",
        ),
        (
            {"glossary": {"a": "b"}},
            "a glossary is not available with the CTranslate2 engine: leave "
            "it out;",
        ),
        (
            {"keep": ["tags"]},
            "keep is not available with the CTranslate2 engine: leave it out;",
        ),
        ({"sample_top_k": 3}, "samples depend on their batch: leave it out;"),
    ],
)
def test_what_the_engine_cannot_keep_is_refused(directory, options, message):
    error = TypeError if "constraint" in options else InputError
    with pytest.raises(error, match=message) as raised:
        open_translator(directory.path, **options)
    assert "\n" not in str(raised.value)
    assert conversions(directory) == []


def test_a_quantization_that_the_device_has_not_is_refused(
    directory, monkeypatch
):
    import ctranslate2 as library

    monkeypatch.setattr(
        library, "get_supported_compute_types", lambda _: {"int8", "float32"}
    )
    message = "cpu supports: float32, int8; received quantization='float16'"
    with pytest.raises(InputError, match=message):
        open_translator(directory.path, quantization="float16")


def test_a_model_directory_of_another_machine_is_refused():
    with pytest.raises(
        InputError, match="only local files: copy gs://bucket/run to"
    ):
        open_translator("gs://bucket/run")


@pytest.mark.parametrize("lacks_vnni", [False, True])
def test_int8_without_instructions_for_it_is_warned_of(
    tiny, tmp_path, monkeypatch, caplog, lacks_vnni
):
    monkeypatch.setattr(hardware, "lacks_vnni", lambda: lacks_vnni)
    monkeypatch.setenv("CT2_USE_MKL", "0")
    ctranslate2.write(tiny, tmp_path / "model", quantization="int8")
    with caplog.at_level("WARNING"):
        find_workers().load(tmp_path / "model")
    assert ("no instructions for int8" in caplog.text) == lacks_vnni
    caplog.clear()
    find_workers(quantization="float32").load(tmp_path / "model")
    assert "int8" not in caplog.text


@pytest.mark.parametrize(
    ("lacks_vnni", "given", "expected"),
    [(False, None, None), (True, None, "1"), (True, "0", "0")],
)
def test_mkl_multiplies_where_onednn_is_wrong(
    monkeypatch, lacks_vnni, given, expected
):
    monkeypatch.setattr(hardware, "lacks_vnni", lambda: lacks_vnni)
    # Makes monkeypatch undo whatever load_library sets below.
    monkeypatch.setenv("CT2_USE_MKL", given or "")
    if given is None:
        del os.environ["CT2_USE_MKL"]
    ctranslate2.load_library()
    assert os.environ.get("CT2_USE_MKL") == expected


def test_cores_search_side_by_side(monkeypatch):
    monkeypatch.setattr(hardware, "num_cores", lambda: 32)
    workers = find_workers()
    assert (workers.inter_threads, workers.intra_threads) == (16, 2)
