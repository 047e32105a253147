"""Exports translate text as this package itself does."""

import contextlib
import dataclasses
import importlib.util
import io
import itertools
import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from readme import example_with
from tiny_models import AS_MARIAN
from tiny_translator import (
    LEARNED,
    LINES,
    MAX_LENGTH,
    TINY,
    WORDS,
    learn_vocabulary,
    sentence,
    write_model,
)

from t2t_lite import files
from t2t_lite.decoding.search import SearchOptions, search
from t2t_lite.decoding.shapes import batch_shapes
from t2t_lite.errors import InputError
from t2t_lite.model import loss, masks
from t2t_lite.model.attention import attention_weights
from t2t_lite.model.transformer import shift_right
from t2t_lite.serving import export
from t2t_lite.serving.signatures import (
    NUM_ALTERNATIVES,
    ServedModel,
    ServingOptions,
)
from t2t_lite.storage.model_directory import ModelDirectory
from t2t_lite.text import learning
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS
from t2t_lite.translation.line_translator import Translator

pytestmark = pytest.mark.slow  # The first export takes half a minute.

SEARCH = SearchOptions.from_hparams(TINY)
# Like imported Marian models.
MARIAN = dataclasses.replace(
    TINY,
    num_layers=1,
    norm_epsilon=1e-2,
    tied_embeddings="target",
    **AS_MARIAN,
)
COUNTING = "eins zwei drei vier fünf sechs sieben acht neun zehn"
NUMBERS = COUNTING.split()
LONG = " ".join(WORDS * 2)  # More than twice the words that the model takes.
ODD = [
    "",
    " ",
    "\t\u00a0\u2003 \x1c\x85",
    "a\nb",
    "\x00",
    "\x07\x1b[0m",
    "🙂 👩‍👩‍👧 ",
    "שלום עולם",
    "\u202eabc",
    "é é",
    "\u2581",
    "\ufffd",
    "x" * 3000,
]


def tiny_export(
    folder,
    hparams=TINY,
    vocabulary=None,
    precision="float32",
    names=None,
    **changes,
):
    """Writes a model and its export, and returns the paths of both.

    Args:
        folder: path of the folder that gets both.
        hparams: HParams.
        vocabulary: Vocabulary.
        precision: that of `export.export`.
        names: of the signatures to export; None for all.
        **changes: fields of ServingOptions.
    """
    vocabulary = vocabulary or learn_vocabulary()
    directory = write_model(folder / "model", vocabulary, hparams)
    options = ServingOptions(SEARCH, MAX_LENGTH)._replace(**changes)
    every = ServedModel.signatures

    def signatures(served):
        return {n: f for n, f in every(served).items() if n in names}

    with pytest.MonkeyPatch.context() as patch:
        if names is not None:
            patch.setattr(ServedModel, "signatures", signatures)
        path = export.export(
            directory, folder / "export", options, precision=precision
        )
    return directory.path, path


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return tiny_export(tmp_path_factory.mktemp("exported"))


@pytest.fixture(scope="module")
def translator(exported):
    return Translator(exported[0], xla=False)


@pytest.fixture(scope="module")
def example(exported, tmp_path_factory):
    """The variables of the documented loading example, and its output."""
    folder = tmp_path_factory.mktemp("example")
    (folder / "export/multi30k").mkdir(parents=True)
    (folder / "export/multi30k/1").symlink_to(exported[1])
    made, printed = {}, io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        exec(example_with("served = tf.saved_model.load"), made)
    return made, printed.getvalue()


@pytest.fixture(scope="module")
def signatures(example):
    return example[0]["served"].signatures


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The paths of a model and of its export next to a user's own files."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "export" / "7").mkdir(parents=True)
    (folder / "export" / "models.config").write_text("mine")
    hparams = dataclasses.replace(LEARNED, num_layers=1, num_decoder_layers=2)
    return tiny_export(
        folder,
        hparams,
        names=[
            "serving_default",
            "translate_nbest",
            "translate_aligned",
            "translate_prefix",
            "alternatives",
        ],
        max_length=9,
        xla=True,
        attention_layer=0,
        attention_head=2,
        attention_reads=True,
        splitting=Splitting(whole_up_to=8),
    )


@pytest.fixture(scope="module")
def other_translator(other):
    """A translator that does not split texts into sentences."""
    return Translator(other[0], xla=False, sentences="whole")


@pytest.fixture(scope="module")
def other_signatures(other):
    return tf.saved_model.load(str(other[1])).signatures


def served(signature, **inputs):
    found = signature(
        **{k: tf.constant(v, tf.string) for k, v in inputs.items()}
    )
    return {name: tensor.numpy() for name, tensor in found.items()}


def text_of(found):
    return [text.decode() for text in found.ravel()]


def test_tensorflow_loads_it_as_the_readme_says(example, translator):
    _, printed = example
    assert printed == f"{translator('A dog runs.')}\n"


def test_served_translations_are_those_of_the_translator(
    signatures, translator
):
    found = served(signatures["serving_default"], inputs=LINES)
    texts, scores = translator(LINES, with_scores=True)
    assert text_of(found["outputs"]) == texts
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4)
    assert not found["truncated"].any()
    assert len(set(texts)) > 3  # The model tells the lines apart.


def test_outputs_are_dense_and_have_plain_names(signatures):
    expected = {
        "serving_default": {
            "outputs": ([None], "string"),
            "scores": ([None], "float32"),
            "truncated": ([None], "bool"),
        },
        "translate_nbest": {
            "outputs": ([None, 4], "string"),
            "scores": ([None, 4], "float32"),
            "truncated": ([None], "bool"),
        },
        "translate_aligned": {
            "source_tokens": ([None, None], "string"),
            "target_tokens": ([None, None], "string"),
            "attention": ([None, None, None], "float32"),
            "truncated": ([None], "bool"),
        },
        "translate_prefix": {
            "outputs": ([None], "string"),
            "scores": ([None], "float32"),
            "truncated": ([None], "bool"),
        },
        "alternatives": {
            "outputs": ([None, 5], "string"),
            "scores": ([None, 5], "float32"),
            "truncated": ([None], "bool"),
        },
        "score": {
            "log_probabilities": ([None], "float32"),
            "num_tokens": ([None], "int32"),
        },
    }
    found = {
        signature: {
            name: (spec.shape.as_list(), spec.dtype.name)
            for name, spec in function.structured_outputs.items()
        }
        for signature, function in signatures.items()
        if not signature.startswith("_")
    }
    assert found == expected


def test_a_text_beyond_the_largest_length_is_truncated_and_says_so(
    signatures,
):
    fits = " ".join(WORDS[: MAX_LENGTH - 1])
    cut = " ".join((WORDS * 2)[: MAX_LENGTH - 1])
    found = served(
        signatures["serving_default"], inputs=[fits, f"{cut} and on", cut]
    )
    assert found["truncated"].tolist() == [False, True, False]
    assert found["outputs"][1] == found["outputs"][2]
    np.testing.assert_allclose(
        found["scores"][1], found["scores"][2], atol=1e-4
    )


def test_the_best_of_several_is_the_best(signatures):
    best = served(signatures["serving_default"], inputs=LINES)
    found = served(signatures["translate_nbest"], inputs=LINES)
    assert text_of(found["outputs"][:, 0]) == text_of(best["outputs"])
    np.testing.assert_allclose(found["scores"][:, 0], best["scores"], atol=1e-4)
    assert np.all(np.diff(np.nan_to_num(found["scores"], neginf=-1e9)) <= 0)
    is_missing = np.isneginf(found["scores"])
    assert not any(found["outputs"][is_missing])
    assert np.all(is_missing[LINES.index(""), 1:])


def test_hypotheses_without_an_end_are_missing_but_for_the_best(
    signatures, translator
):
    lines = [line for line in LINES if line]
    ids = tf.ragged.constant(translator.vocabulary.encode(lines), tf.int32)
    hypotheses = search(
        translator.model,
        ids.to_tensor(),
        SEARCH,
        min_finished=SEARCH.beam_width,
    )
    expected = (hypotheses.ids_BWT.numpy() == EOS).any(2)
    assert not expected[:, 0].all()
    expected[:, 0] = True
    found = served(signatures["translate_nbest"], inputs=lines)["scores"]
    np.testing.assert_array_equal(np.isfinite(found), expected)


def test_no_hypothesis_depends_on_batch_mates(signatures):
    lines = [line for line in LINES if line] * 2
    together = served(signatures["translate_nbest"], inputs=lines)
    for n, line in enumerate(lines):
        alone = served(signatures["translate_nbest"], inputs=[line])
        assert alone["outputs"].tolist() == [together["outputs"][n].tolist()]
        np.testing.assert_allclose(
            alone["scores"][0], together["scores"][n], atol=1e-4
        )


def test_scores_are_the_log_probabilities_of_the_model(signatures, translator):
    targets = LINES[::-1]
    found = served(signatures["score"], sources=LINES, targets=targets)
    encode = translator.vocabulary.encode
    for n, ids in enumerate(zip(encode(LINES), encode(targets), strict=True)):
        source_ids, target_ids = (np.array([side]) for side in ids)
        logits = translator.model((source_ids, shift_right(target_ids)))
        nats, tokens = loss.cross_entropy(logits, target_ids)
        np.testing.assert_allclose(
            found["log_probabilities"][n], -nats, rtol=1e-5
        )
        assert found["num_tokens"][n] == tokens


def test_pairs_too_long_have_no_score(signatures):
    found = served(
        signatures["score"],
        sources=["the dog", LONG, "the dog"],
        targets=["a cat", "a cat", LONG * 3],
    )
    assert np.isnan(found["log_probabilities"]).tolist() == [False, True, True]
    assert found["num_tokens"][:2].tolist() == [3, 3]


def test_scores_depend_on_no_batch_mate(signatures):
    pairs = {"sources": LINES, "targets": LINES[::-1]}
    together = served(signatures["score"], **pairs)["log_probabilities"]
    for n, (source, target) in enumerate(zip(*pairs.values(), strict=True)):
        alone = served(signatures["score"], sources=[source], targets=[target])
        np.testing.assert_allclose(
            alone["log_probabilities"], together[n : n + 1], atol=1e-4
        )


def test_there_must_be_one_target_for_each_source(signatures):
    with pytest.raises(tf.errors.InvalidArgumentError, match="one target"):
        served(signatures["score"], sources=["a", "b"], targets=["a"])


def test_attention_is_a_distribution_over_the_tokens_of_the_source(
    signatures, translator
):
    found = served(signatures["translate_aligned"], inputs=LINES)
    source_tokens, target_tokens = (
        found[f"{side}_tokens"] for side in ("source", "target")
    )
    attention = found["attention"]
    assert attention.shape == (*target_tokens.shape, source_tokens.shape[1])
    np.testing.assert_allclose(
        attention.sum(2), target_tokens != b"", atol=1e-5
    )
    assert np.all(attention.transpose(0, 2, 1)[source_tokens == b""] == 0)
    ids = translator.vocabulary.encode(LINES)
    for line, of_line, tokens in zip(LINES, ids, source_tokens, strict=True):
        expected = translator.vocabulary.tokens(of_line) if line else []
        assert text_of(tokens[tokens != b""]) == expected


def assert_attends(found, translator, layer, head, reads):
    """Asserts that a text's attention is that of a head, or the heads' mean."""
    names = {
        token: n
        for n, token in enumerate(
            translator.vocabulary.tokens(range(translator.vocabulary.size))
        )
    }
    source, target = (
        [names[t.decode()] for t in found[f"{side}_tokens"][0]]
        for side in ("source", "target")
    )
    expected = attention_by_hand(translator.model, source, target, layer=layer)
    expected = expected.mean(0) if head is None else expected[head]
    if reads:  # Each token but the last is read one position later.
        expected = np.concatenate([expected[1:], expected[-1:]])
    np.testing.assert_allclose(found["attention"][0], expected, atol=1e-5)


def test_attention_is_the_mean_of_the_last_layer(signatures, translator):
    found = served(signatures["translate_aligned"], inputs=[LINES[1]])
    assert_attends(found, translator, layer=None, head=None, reads=False)


def test_attention_is_that_of_the_layer_and_head(
    other_signatures, other_translator
):
    found = served(other_signatures["translate_aligned"], inputs=[LINES[1]])
    assert_attends(found, other_translator, layer=0, head=2, reads=True)


def attention_by_hand(model, source, target, layer):
    """Returns [H, T, S], the weights of a layer's memory attention."""
    source, target = np.array([source]), np.array([[1, *target[:-1]]])
    memory = model.encode(source)
    decoder = model.decoder
    x = decoder.embed(model.embedding(target))
    last = len(decoder.layers) - 1 if layer is None else layer
    may_attend = masks.causal(target.shape[1])
    for each in decoder.layers[: last + 1]:
        y = each.self_attention(x, may_attend=may_attend)
        y = each._add_and_norm(x, each.self_attention, y)
        attention = each.memory_attention
        weights = attention_weights(
            attention.queries(y), attention.keys_and_values(memory)[0]
        )
        x = each(x, memory, may_attend=may_attend)
    return np.array(weights)[0]


SENTENCES = [sentence(3), sentence(9, 4), sentence(1), sentence(12)]


def test_texts_of_several_sentences_are_translated_one_by_one(
    signatures, translator
):
    lines = [" ".join(SENTENCES), "", SENTENCES[1], "\n".join(SENTENCES[2:])]
    found = served(signatures["serving_default"], inputs=lines)
    texts, scores = translator(lines, with_scores=True)
    assert text_of(found["outputs"]) == texts
    assert texts[0] == " ".join(filter(None, translator(SENTENCES)))
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4)
    assert not found["truncated"].any()
    nbest = served(signatures["translate_nbest"], inputs=lines)
    assert text_of(nbest["outputs"][:, 0]) == texts
    of_parts = served(signatures["translate_nbest"], inputs=SENTENCES)
    np.testing.assert_allclose(
        nbest["scores"][0], of_parts["scores"].sum(0), atol=1e-4
    )


def test_a_text_is_truncated_where_one_of_its_sentences_is(signatures):
    lines = [f"{SENTENCES[0]} {sentence(40)} {SENTENCES[1]}", SENTENCES[1]]
    found = served(signatures["serving_default"], inputs=lines)
    assert found["truncated"].tolist() == [True, False]


def assert_splits(translate, translator, three):
    """Asserts that two of three sentences stay one text, but three do not."""
    short, long = " ".join(three[:2]), " ".join(three)
    texts = translate([short, long])
    assert texts[0] == translator(short)
    assert texts[1] == " ".join(filter(None, translator(three)))
    assert texts[1] != translator(long)


def test_an_export_splits_what_its_model_takes_as_too_long(
    other_signatures, other_translator
):
    def translate(lines):
        signature = other_signatures["serving_default"]
        return text_of(served(signature, inputs=lines)["outputs"])

    three = [sentence(2, 2), sentence(3, 4), sentence(1, 9)]
    assert_splits(translate, other_translator, three)


def test_an_empty_batch_gives_empty_results(signatures):
    for name in ("serving_default", "translate_nbest", "translate_aligned"):
        for tensor in served(signatures[name], inputs=[]).values():
            assert tensor.shape[0] == 0
    for name in ("translate_prefix", "alternatives"):
        for tensor in served(signatures[name], inputs=[], prefixes=[]).values():
            assert tensor.shape[0] == 0
    found = served(signatures["score"], sources=[], targets=[])
    assert all(tensor.shape == (0,) for tensor in found.values())


def test_a_served_prefix_is_kept_as_by_the_translator(signatures, translator):
    texts = [line for line in LINES if line]
    prefixes = ["", "the c", "old ", "red ball", "men", "boa"]
    found = served(
        signatures["translate_prefix"], inputs=texts, prefixes=prefixes
    )
    expected, scores = translator(texts, prefix=prefixes, with_scores=True)
    assert text_of(found["outputs"]) == expected
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4)
    assert expected[0] == translator(texts[0])
    for text, prefix in zip(expected, prefixes, strict=True):
        assert text.startswith(prefix)


def test_served_alternatives_are_those_of_the_translator(
    signatures, translator
):
    texts = [line for line in LINES if line]
    prefixes = ["", "the c", "old ", "red ball", "men", "boa"]
    found = served(signatures["alternatives"], inputs=texts, prefixes=prefixes)
    assert found["outputs"].shape == (len(texts), NUM_ALTERNATIVES)
    for *one, outputs, scores in zip(
        texts, prefixes, found["outputs"], found["scores"], strict=True
    ):
        expected = translator.alternatives(*one, count=NUM_ALTERNATIVES)
        missing = [""] * (NUM_ALTERNATIVES - len(expected))
        assert text_of(outputs) == [*(each.text for each in expected), *missing]
        np.testing.assert_allclose(
            scores[: len(expected)],
            [each.score for each in expected],
            atol=1e-4,
        )
        assert np.all(scores[len(expected) :] == -np.inf)


def test_a_blank_text_begins_with_nothing(signatures):
    for name in ("translate_prefix", "alternatives"):
        found = served(signatures[name], inputs=["", " "], prefixes=["a", ""])
        assert text_of(found["outputs"].reshape(2, -1)[:, 0]) == ["", ""]
        scores = found["scores"].reshape(2, -1)
        assert scores[:, 0].tolist() == [-np.inf, 0.0]
        assert np.all(scores[:, 1:] == -np.inf)


@pytest.mark.parametrize("name", ["translate_prefix", "alternatives"])
def test_a_prefix_with_the_mark_of_a_space_has_no_translation(signatures, name):
    prefixes = ["\u2581men", "men\n\u2581", "men"]
    found = served(signatures[name], inputs=LINES[:1] * 3, prefixes=prefixes)
    is_valid_B = np.isfinite(found["scores"].reshape(3, -1)[:, 0])
    assert is_valid_B.tolist() == [False, False, True]


@pytest.mark.parametrize("name", ["translate_prefix", "alternatives"])
def test_a_prefix_is_for_one_input(signatures, name):
    with pytest.raises(tf.errors.InvalidArgumentError, match="one prefix for"):
        served(signatures[name], inputs=LINES[:2], prefixes=["a"])


def test_a_batch_of_500_is_that_of_its_parts(signatures):
    lines = (LINES * 80)[:500]
    found = served(signatures["serving_default"], inputs=lines)
    few = served(signatures["serving_default"], inputs=LINES)
    expected = (text_of(few["outputs"]) * 80)[:500]
    assert text_of(found["outputs"]) == expected


def test_odd_texts_are_translated_as_by_the_translator(signatures, translator):
    found = served(signatures["serving_default"], inputs=ODD)
    lengths = [len(ids) for ids in translator.vocabulary.encode(ODD)]
    is_long = [n > MAX_LENGTH for n in lengths]
    assert found["truncated"].tolist() == is_long
    short = [n for n in range(len(ODD)) if not is_long[n]]
    assert len(short) > 5
    texts, scores = translator([ODD[n] for n in short], with_scores=True)
    assert [text_of(found["outputs"])[n] for n in short] == texts
    np.testing.assert_allclose(found["scores"][short], scores, atol=1e-4)


def test_bytes_that_are_not_utf8_are_answered_in_utf8(signatures):
    lines = [b"\xff\xfe", b"the \xc3", b"\xed\xa0\x80", b"the dog \xf0\x9f"]
    found = served(signatures["serving_default"], inputs=lines)
    assert len(text_of(found["outputs"])) == 4
    assert np.isfinite(found["scores"]).all()


def test_a_line_of_100000_characters_is_truncated(signatures):
    for line in ("the dog " * 12_500, "x" * 100_000, " " * 100_000):
        for name in ("serving_default", "translate_nbest", "translate_aligned"):
            found = served(signatures[name], inputs=[line])
            assert found["truncated"].tolist() == [bool(line.strip())]


def test_a_long_text_is_translated_by_its_first_tokens(signatures):
    """The rest of a very long text is not even tokenized."""
    start = " ".join(WORDS[: MAX_LENGTH - 1])
    lines = [start, f"{start} the", f"{start} the" * 1000]
    found = served(signatures["serving_default"], inputs=lines)
    assert len(set(found["outputs"].tolist())) == 1


def test_a_text_that_is_aligned_or_scored_is_not_split(signatures):
    """Attention and scores come from one pass over all sentences."""
    text = "the dog. a cat."
    aligned = served(signatures["translate_aligned"], inputs=[text])
    tokens = [t.decode() for t in aligned["source_tokens"][0].tolist()]
    assert tokens == learn_vocabulary().tokens(
        learn_vocabulary().encode([text])[0]
    )
    scored = served(signatures["score"], sources=[text], targets=[text])
    assert scored["num_tokens"].tolist() == [len(tokens)]


def test_an_export_is_on_the_disk_before_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    made, events = tmp_path / "made", []
    made.mkdir()
    file = made / "saved_model.pb"
    file.write_bytes(b"model")
    inodes = [path.stat().st_ino for path in (file, made)]
    (tmp_path / "export").mkdir()

    def fsync(descriptor):
        events.append(os.fstat(descriptor).st_ino)

    def replace(source, target, replace=os.replace):
        events.append("named")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    target = export._move_to_next_version(made, files.to_path("~/export"))
    assert target == tmp_path / "export" / "1"
    named = events.index("named")
    assert set(inodes) <= set(events[:named])
    assert events[named + 1 :] == [target.parent.stat().st_ino]


def has_xla(path):
    return b"_XlaMustCompile" in (path / "saved_model.pb").read_bytes()


def test_a_learned_and_shorter_export_with_xla_translates_as_its_model(
    other, exported, other_signatures, other_translator
):
    lines = [LINES[0], "men", ""]
    found = served(other_signatures["serving_default"], inputs=lines)
    texts, scores = other_translator(lines, with_scores=True)
    assert text_of(found["outputs"]) == texts
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4)
    assert has_xla(other[1])
    assert not has_xla(exported[1])


@pytest.mark.slow
def test_an_export_in_int8_translates_as_its_model_does(tmp_path):
    model_dir, path = tiny_export(
        tmp_path, precision="int8", names=["serving_default"], xla=True
    )
    signature = tf.saved_model.load(str(path)).signatures["serving_default"]
    found = served(signature, inputs=[LINES[0]])
    (text, score), (_, in_float32) = (
        Translator(model_dir, precision=precision, xla=True)(
            LINES[0], with_scores=True
        )
        for precision in ("int8", "float32")
    )
    assert text_of(found["outputs"]) == [text]
    np.testing.assert_allclose(found["scores"], [score], atol=1e-4)
    assert abs(score - in_float32) > 1e-3


# A bfloat16 export of a Marian-like model with two vocabularies.


@pytest.fixture(scope="module")
def two_vocabularies():
    numbers = [f"{a} {b}" for a, b in itertools.pairwise(NUMBERS)]
    target = learning.learn([*numbers, *numbers, "."], "bpe", 320)
    return Vocabulary(learn_vocabulary().model, target=target)


@pytest.fixture(scope="module")
def marian(tmp_path_factory, two_vocabularies):
    """The paths of the model and of its export."""
    return tiny_export(
        tmp_path_factory.mktemp("marian"),
        MARIAN,
        two_vocabularies,
        precision="bfloat16",
        names=["serving_default", "alternatives", "score"],
        splitting=Splitting(whole_up_to=15),
    )


@pytest.fixture(scope="module")
def marian_translator(marian):
    """A translator that does not split texts into sentences."""
    return Translator(
        marian[0], xla=False, precision="bfloat16", sentences="whole"
    )


@pytest.fixture(scope="module")
def odd_home(tmp_path_factory):
    """A folder whose name keeps TensorFlow from finding the files in it."""
    home = tmp_path_factory.mktemp("home") / "a[1]\\b"
    home.mkdir()
    return home


@pytest.fixture(scope="module")
def marian_root_and_translator(marian, odd_home):
    """The object that TensorFlow loads, and the translator that loads it."""
    shutil.copytree(marian[1], odd_home / "copy")
    roots, load = [], tf.saved_model.load

    def recorded(path):
        roots.append(load(path))
        return roots[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.saved_model, "load", recorded)
        patch.setenv("HOME", str(odd_home))
        loaded = Translator.from_saved_model("~/copy")
    (root,) = roots
    return root, loaded


@pytest.fixture(scope="module")
def loaded_marian(marian_root_and_translator):
    return marian_root_and_translator[1]


@pytest.fixture(scope="module")
def marian_signatures(marian_root_and_translator):
    return marian_root_and_translator[0].signatures


def test_a_bfloat16_export_translates_as_its_model(
    loaded_marian, marian_translator
):
    texts, scores = loaded_marian(LINES, with_scores=True)
    expected = marian_translator(LINES, with_scores=True)
    assert texts == expected[0]
    np.testing.assert_allclose(scores, expected[1], atol=0.1)
    # Of 7; which of them are empty depends on how a processor rounds.
    assert len(set(texts)) > 2


def test_a_loaded_export_splits_what_its_model_takes_as_too_long(
    loaded_marian, marian_translator
):
    assert_splits(loaded_marian, marian_translator, SENTENCES[:3])


def test_a_loaded_export_names_the_signature_to_call(loaded_marian):
    with pytest.raises(InputError, match="SavedModel's signature translate_pr"):
        loaded_marian("men", prefix="the")
    with pytest.raises(InputError, match="SavedModel's signature alternatives"):
        loaded_marian.alternatives("men", "the")


def test_each_vocabulary_serves_its_side(marian_signatures, marian_translator):
    found = served(marian_signatures["serving_default"], inputs=LINES)
    texts, scores = marian_translator(LINES, with_scores=True)
    assert text_of(found["outputs"]) == texts
    np.testing.assert_allclose(found["scores"], scores, atol=0.02)


def test_an_export_has_both_vocabularies(
    marian_signatures, loaded_marian, two_vocabularies
):
    assert loaded_marian.vocabulary.sha256 == two_vocabularies.sha256
    targets = [COUNTING, "the dog"]
    found = served(
        marian_signatures["score"], sources=LINES[:2], targets=targets
    )
    lengths = [len(ids) for ids in two_vocabularies.target.encode(targets)]
    assert found["num_tokens"].tolist() == lengths
    assert lengths != [len(ids) for ids in two_vocabularies.encode(targets)]


# Written files.


def test_versions_count_up_and_nothing_else_is_left(other):
    _, path = other
    export_dir = path.parent
    assert path == export_dir / "8"
    assert sorted(p.name for p in export_dir.iterdir()) == [
        "7",
        "8",
        "batching_parameters.txt",
        "models.config",
    ]
    assert (export_dir / "models.config").read_text() == "mine"
    assert path.stat().st_mode & 0o777 == 0o755


def test_each_weight_is_written_once(exported, translator):
    path = exported[1] / "variables" / "variables"
    shapes = [s for _, s in tf.train.list_variables(str(path)) if s]
    expected = [list(w.shape) for w in translator.model.trainable_weights]
    assert sorted(shapes) == sorted(expected)


def test_the_metadata_say_what_was_exported(exported):
    model_dir, path = exported
    metadata = json.loads((path / "assets" / "metadata.json").read_text())
    assert metadata["hparams"] == dataclasses.asdict(TINY)
    assert metadata["checkpoint"] == str(model_dir / "checkpoints" / "step-1")
    assert metadata["search"] == json.loads(json.dumps(SEARCH._asdict()))
    assert metadata["vocabulary_sha256"] == learn_vocabulary().sha256
    assert metadata["versions"]["tensorflow"] == tf.__version__
    assert metadata["max_length"] == MAX_LENGTH


def test_server_files_are_messages_of_the_server(exported):
    from google.protobuf import text_format
    from tensorflow_serving.config import model_server_config_pb2

    text = (exported[1].parent / "models.config").read_text()
    config = model_server_config_pb2.ModelServerConfig()
    text_format.Parse(text, config)
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path) == ("export", "/models/export")


def test_warmup_covers_every_shape_and_signature(exported, translator):
    from tensorflow_serving.apis import prediction_log_pb2

    path = exported[1] / "assets.extra" / "tf_serving_warmup_requests"
    shapes, signatures = set(), []
    for record in tf.data.TFRecordDataset(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        signatures.append(request.model_spec.signature_name)
        if signatures[-1] == "serving_default":
            texts = [t.decode() for t in request.inputs["inputs"].string_val]
            (length,) = {len(i) for i in translator.vocabulary.encode(texts)}
            ladder = [n for _, n in batch_shapes(MAX_LENGTH)]
            padded = min(n for n in ladder if n >= length)
            shapes.add((len(texts), padded))
    assert shapes == set(batch_shapes(MAX_LENGTH))
    assert set(signatures) == {
        "serving_default",
        "translate_nbest",
        "translate_aligned",
        "translate_prefix",
        "alternatives",
        "score",
    }
    assert len(signatures) <= 1000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_length": 1}, "max_length must be from 2 to 23"),
        ({"max_length": 24}, "max_length must be from 2 to 23"),
        ({"attention_layer": 2}, "attention_layer must be from 0 to 1"),
        ({"attention_head": -1}, "attention_head must be from 0 to 2"),
    ],
)
def test_options_that_do_not_suit_the_model_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        ServingOptions(SEARCH, MAX_LENGTH)._replace(**changes).check(TINY)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "export").write_text("in the way")
    with pytest.raises(InputError, match="cannot write the export"):
        tiny_export(tmp_path)


def test_a_missing_library_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    options = ServingOptions(SEARCH, MAX_LENGTH)
    with pytest.raises(InputError, match=r"pip install .*serving"):
        export.export(ModelDirectory(tmp_path), tmp_path / "export", options)
    assert list(tmp_path.iterdir()) == []


# Loading.


def empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("assets/metadata.json", empty),
        ("assets/metadata.json", lambda path: path.write_text("[]")),
        ("assets/metadata.json", lambda path: path.write_text('{"a": 1}')),
        ("assets/vocabulary.model", empty),
        ("variables/variables.data-00000-of-00001", empty),
        ("saved_model.pb", empty),
    ],
)
def test_a_damaged_export_is_refused(other, tmp_path, name, damage):
    copy = tmp_path / "copy"
    shutil.copytree(other[1], copy)
    damage(copy / name)
    with pytest.raises(InputError, match="copy is not a complete SavedModel"):
        Translator.from_saved_model(copy)


def test_the_saved_model_of_another_program_is_refused(exported, tmp_path):
    copy, other = tmp_path / "copy", tmp_path / "other"
    shutil.copytree(exported[1], copy)
    tf.saved_model.save(tf.Module(), str(other))
    for name in ("saved_model.pb", "variables"):
        target = copy / name
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        shutil.move(other / name, target)
    message = "complete SavedModel .*saved_model.pb was written by another pro"
    with pytest.raises(InputError, match=message):
        Translator.from_saved_model(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_length": "long"}, "max_length must be an integer"),
        ({"max_length": 10**6}, f"at most that of its hparams, {MAX_LENGTH}"),
        ({"max_length": None}, "max_length must be an integer"),
        ({"search": SEARCH._replace(nbest=9)._asdict()}, "nbest must be at mo"),
        (
            {"search": SEARCH._replace(beam_width="4")._asdict()},
            "beam_width must be an integer",
        ),
        ({"splitting": {"whole_up_to": "x"}}, "whole_up_to must be an integer"),
        ({"splitting": {"language": 7}}, "language must be text or null"),
    ],
)
def test_an_export_with_damaged_metadata_is_refused(
    exported, tmp_path, change, message
):
    copy = shutil.copytree(exported[1], tmp_path / "copy")
    path = copy / "assets/metadata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        Translator.from_saved_model(copy)


@pytest.fixture(scope="module")
def loaded(exported, example):
    """A translator around the SavedModel that the example has loaded."""
    known = {str(exported[1]): example[0]["served"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.saved_model, "load", known.__getitem__)
        return Translator.from_saved_model(exported[1])


def test_an_export_is_read_where_tensorflow_does_not_find_it(
    loaded_marian, marian_translator, odd_home, caplog
):
    assert loaded_marian(LINES) == marian_translator(LINES)
    copy = odd_home / "copy"
    assert loaded_marian.description == str(copy)
    export._warn_if_misread(copy)
    assert "TF Serving reads" in caplog.text


def test_an_export_has_no_hash(loaded):
    with pytest.raises(InputError, match="sha256 needs a model in memory"):
        loaded.sha256()


def test_a_loaded_export_translates_as_its_model(loaded, translator):
    lines = [*LINES, LONG]
    assert loaded(lines) == translator(lines)
    assert loaded.translate(lines)[1][0].text == translator(lines[1])


def test_a_loaded_export_has_what_a_translator_has(loaded, translator):
    assert vars(loaded).keys() >= vars(translator).keys() - {
        "_translate_tensor"
    }
    assert loaded.model is None
    assert loaded.max_length == translator.max_length
    assert loaded.vocabulary.sha256 == translator.vocabulary.sha256
    assert loaded.options == translator.options == SEARCH


def test_an_export_with_the_vocabulary_of_another_model_is_refused(
    exported, tmp_path
):
    copy = tmp_path / "copy"
    shutil.copytree(exported[1], copy)
    learning.learn(LINES, "bpe", 290).save(copy / "assets/vocabulary.model")
    with pytest.raises(InputError, match="model came from a different mod"):
        Translator.from_saved_model(copy)


def test_what_is_no_export_is_refused(tmp_path, exported):
    with pytest.raises(InputError, match="is not a complete SavedModel"):
        Translator.from_saved_model(tmp_path)
    with pytest.raises(InputError, match=r"nowhere .* \(there is no such path"):
        Translator.from_saved_model(tmp_path / "nowhere")
    parent, version = exported[1].parent, exported[1]
    with pytest.raises(InputError, match=f"one version, such as {version}$"):
        Translator.from_saved_model(parent)
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(InputError, match="is a model directory; open it with"):
        Translator.from_saved_model(tmp_path)
