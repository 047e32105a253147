"""Lines are translated without loss, and independently of each other."""

import dataclasses
import functools
import inspect
import math
import os
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_translator import (
    LEARNED,
    LINES,
    ONE_LAYER,
    TINY,
    assert_same,
    learn_vocabulary,
    random_model,
    sentence,
    write_model,
)

import t2t_lite
from t2t_lite.decoding import engine, translation
from t2t_lite.decoding import search as searching
from t2t_lite.decoding.alignment import Aligner, Pair
from t2t_lite.decoding.devices import Replica
from t2t_lite.decoding.engine import model_engine
from t2t_lite.decoding.glossary import Glossary
from t2t_lite.decoding.line_predictor import Translation, as_lines
from t2t_lite.decoding.search import (
    SearchOptions,
    ids_translator,
    search,
)
from t2t_lite.decoding.steering import Steering
from t2t_lite.decoding.translation import LineTranslator, _join
from t2t_lite.errors import InputError
from t2t_lite.hardware import GIB, Hardware
from t2t_lite.hparams import HParams
from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage.model_directory import Settings
from t2t_lite.text import pharaoh
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS, PAD


@pytest.fixture(scope="module")
def vocabulary():
    return learn_vocabulary()


SEED = 4  # With its weights, a beam search finds the best there is.


@pytest.fixture(scope="module")
def model(vocabulary):
    return random_model(ONE_LAYER, vocabulary, SEED)


@pytest.fixture(scope="module", autouse=True)
def _searches_have_one_graph():
    """Lets searches with the same arguments share a graph, for any batches."""
    with pytest.MonkeyPatch.context() as patch:
        shared = functools.cache(searching._search_function)
        patch.setattr(searching, "_search_function", shared)
        yield


@pytest.fixture(scope="module")
def engine_of(model, vocabulary):
    """A function from search options to an Engine, made once for each.

    Its graphs take seconds to trace.
    """

    @functools.cache
    def make(options):
        return model_engine(model, vocabulary, options, xla=False)

    def make_once(**options):
        options = SearchOptions.from_hparams(ONE_LAYER, **options)
        # The Engine does not depend on these.
        told = {"alternatives": 0, "glossary": (), "keep": ()}
        return make(options._replace(**told, alignments=False))

    return make_once


@pytest.fixture(scope="module")
def steered(engine_of, model, vocabulary):
    """A function from search options, and others, to a LineTranslator."""
    aligner = Aligner(model, vocabulary)  # Its graph takes a second to trace.

    def make(splitting=None, alignment_head=None, **options):
        translator = LineTranslator(
            engine_of(**options),
            vocabulary,
            SearchOptions.from_hparams(ONE_LAYER, **options),
            splitting,
            alignment_head,
        )
        if alignment_head is None:
            translator._aligner = aligner
        return translator

    return make


@pytest.fixture(scope="module")
def compiled(model, vocabulary):
    """An Engine whose search XLA compiles."""
    options = SearchOptions.from_hparams(ONE_LAYER)
    return model_engine(model, vocabulary, options, xla=True)


@pytest.fixture(scope="module")
def divided(model, vocabulary):
    """An Engine of two devices, which take one line at a time.

    They share weights and search graphs; those of devices_test have copies.
    """
    replicas = [Replica(model, "/device:CPU:0")] * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "make_replicas", lambda *_: replicas)
        return model_engine(
            model,
            vocabulary,
            SearchOptions.from_hparams(ONE_LAYER, tokens_at_once=16),
            xla=False,
        )


@pytest.fixture(scope="module")
def translator(steered):
    return steered(nbest=3)


# What searches find.


def eager_search(model, vocabulary, options, lines, constraint=None):
    """Returns the Hypotheses of lines that are not blank, without any graph."""
    ids = tf.ragged.constant(vocabulary.encode(lines), tf.int32)
    return search(model, ids.to_tensor(), options, constraint=constraint)


def eager_translations(model, vocabulary, options, lines):
    """Returns the `nbest` Translations of each line, without any graph."""
    texts = [line for line in lines if line]
    hypotheses = eager_search(model, vocabulary, options, texts)
    found = {"": [Translation("", 0.0)] * options.nbest}
    for n, text in enumerate(texts):
        best = vocabulary.decode(hypotheses.ids_BWT[n].numpy())
        scores = hypotheses.scores_BW[n].numpy().tolist()
        translations = map(Translation, best, scores)
        found[text] = list(translations)[: options.nbest]
    return [found[line] for line in lines]


def test_padding_and_batch_mates_change_no_translation(translator):
    together = translator.translate(LINES)
    alone = [translator.translate([line])[0] for line in LINES]
    assert_same(together, alone)
    assert len({best.text for best, *_ in together}) > len(LINES) / 2


def test_translations_come_in_the_order_of_their_lines(translator):
    found = translator.translate(LINES)
    assert_same(translator.translate(LINES[::-1]), found[::-1])


@pytest.mark.slow
@pytest.mark.parametrize("num_parts", [1, 3, 4])
def test_the_number_of_parts_changes_no_translation(
    model, vocabulary, translator, num_parts
):
    ids = tf.ragged.constant(vocabulary.encode(LINES[:6]), tf.int32)
    translate_ids = ids_translator(
        model,
        translator.options,
        xla=False,
        hardware=Hardware("CPU", GIB, num_cores=num_parts),
    )
    found, expected = translate_ids(ids), translator.translate_ids(ids)
    np.testing.assert_array_equal(found.ids_BWT, expected.ids_BWT)
    np.testing.assert_allclose(
        found.scores_BW, expected.scores_BW, rtol=1e-5, atol=1e-5
    )


# Settings that change decoding and that ONE_LAYER lacks.
UNLIKE = {
    "positions": "learned",
    "learned_positions": LEARNED.learned_positions,
    "attention_window": 5,
}
UNLIKE_ONE_LAYER = dataclasses.replace(ONE_LAYER, **UNLIKE)


@pytest.mark.slow
def test_xla_changes_no_translation(vocabulary):
    hparams = dataclasses.replace(TINY, **UNLIKE)
    model = random_model(hparams, vocabulary)
    options = SearchOptions.from_hparams(
        hparams, beam_width=2, max_extra_length=2
    )
    compiled = LineTranslator.from_model(model, vocabulary, options, xla=True)
    lines = ["", LINES[6], LINES[5]]
    assert_same(
        compiled.translate(lines),
        eager_translations(model, vocabulary, options, lines),
    )
    assert compiled.translate([]) == []


def test_without_a_gpu_xla_compiles_what_it_is_told_to_alone(
    vocabulary, monkeypatch
):
    compiled = []
    function = tf.function

    def noting(*args, jit_compile=None, **kwargs):
        compiled.append(jit_compile)
        return function(*args, jit_compile=jit_compile, **kwargs)

    monkeypatch.setattr(tf, "function", noting)
    options = SearchOptions.from_hparams(ONE_LAYER)
    for xla, gpus, expected in (
        (None, [], False),
        (None, ["a GPU"], True),
        (True, [], True),
        (False, ["a GPU"], False),
    ):
        monkeypatch.setattr(
            tf.config, "get_visible_devices", lambda _, gpus=gpus: gpus
        )
        compiled.clear()
        LineTranslator.from_model(
            random_model(ONE_LAYER, vocabulary), vocabulary, options, xla=xla
        )
        assert (True in compiled) == expected


def test_each_line_gets_as_many_results_as_asked_for_best_first(translator):
    for found in translator.translate(LINES):
        scores = [translation.score for translation in found]
        assert len(found) == 3
        assert scores == sorted(scores, reverse=True)
        assert all(isinstance(t, Translation) for t in found)


def test_results_are_those_of_the_search_in_its_order(
    translator, model, vocabulary
):
    hypotheses = eager_search(model, vocabulary, translator.options, [LINES[4]])
    (found,) = translator.translate([LINES[4]])
    texts = vocabulary.decode(hypotheses.ids_BWT[0].numpy())
    assert [t.text for t in found] == texts[:3]
    assert len(set(texts)) == 4
    np.testing.assert_allclose(
        [t.score for t in found], hypotheses.scores_BW[0, :3], atol=1e-4
    )


def test_one_result_is_the_best_of_several(model, vocabulary, translator):
    options = SearchOptions.from_hparams(ONE_LAYER)
    assert_same(
        eager_translations(model, vocabulary, options, LINES),
        [found[:1] for found in translator.translate(LINES)],
    )


def test_blank_lines_stay_blank(translator):
    blank = [Translation("", 0.0)] * 3
    lines = ["", " ", "\t", "the dog", "\u3000"]
    found = translator.translate(lines)
    assert found[:3] + found[4:] == [blank] * 4
    assert found[3][0].score < 0
    assert translator.translate(["", " "]) == [blank] * 2
    assert translator.translate([]) == []


def greedy(model, ids, max_length):
    """Returns the likeliest next id at each step, from full passes."""
    found = []
    while len(found) < max_length and EOS not in found:
        target = [EOS, *found, *[PAD] * (max_length - len(found))]
        logits_TV = model((np.array([ids]), np.array([target])))[0]
        logits_V = np.array(logits_TV[len(found)])
        logits_V[PAD] = -1e9
        found.append(int(np.argmax(logits_V)))
    return found


def test_a_beam_of_one_is_greedy(model, vocabulary):
    options = SearchOptions.from_hparams(
        ONE_LAYER, beam_width=1, max_extra_length=3
    )
    lines = [LINES[0], LINES[5]]
    hypotheses = eager_search(model, vocabulary, options, lines)
    for ids, ids_T in zip(
        vocabulary.encode(lines), hypotheses.ids_BWT[:, 0].numpy(), strict=True
    ):
        expected = greedy(model, ids, len(ids) + 3)
        assert ids_T[ids_T != PAD].tolist() == expected


def score_of(model, source_ids, target_ids, alpha):
    """Returns the log probability of a target divided by its length penalty."""
    inputs = np.array([source_ids]), np.array([[EOS, *target_ids[:-1]]])
    logits_TV = np.array(model(inputs)[0], np.float64)
    # Padding is not a token: its probability goes to the others.
    logits_TV[:, PAD] = -1e9
    log_probs_TV = logits_TV - np.logaddexp.reduce(logits_TV, 1, keepdims=True)
    log_prob = sum(log_probs_TV[t, i] for t, i in enumerate(target_ids))
    return log_prob / ((5 + len(target_ids)) / 6) ** alpha


def test_scores_are_log_probabilities_over_the_length_penalty(
    model, vocabulary
):
    options = SearchOptions.from_hparams(ONE_LAYER, length_penalty=0.7)
    (ids,) = vocabulary.encode([LINES[0]])
    found = search(model, np.array([ids], np.int32), options)
    best = [i for i in np.array(found.ids_BWT)[0, 0].tolist() if i != PAD]
    expected = score_of(model, ids, best, alpha=0.7)
    assert float(found.scores_BW[0, 0]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("extra", [0, 1, 5])
def test_translations_have_at_most_so_many_tokens_more(model, extra):
    source_ids = np.zeros((3, 9), np.int32)
    for row, length in enumerate((4, 9, 6)):
        source_ids[row, :length] = [*range(260, 259 + length), EOS]
    options = SearchOptions.from_hparams(
        ONE_LAYER, beam_width=2, max_extra_length=extra
    )
    found = search(model, source_ids, options)
    lengths = (np.array(found.ids_BWT) != PAD).sum(axis=2)
    assert (lengths <= np.array([[4], [9], [6]]) + extra).all()
    assert (lengths[:, 0] > 0).all()


def test_padding_is_never_found_however_likely(vocabulary):
    model = random_model(ONE_LAYER, vocabulary)
    embedding = model.embedding.trainable_variables[0]
    likelier = np.where(np.arange(vocabulary.size) == PAD, 100.0, 1.0)
    embedding.assign(embedding * likelier[:, None])
    rows = [[n, n + 1, n + 2, EOS] for n in (260, 270, 280)]
    options = SearchOptions.from_hparams(ONE_LAYER, beam_width=2)
    found = search(model, np.array(rows, np.int32), options)
    for ids in np.array(found.ids_BWT).reshape(6, 10).tolist():
        tokens = [i for i in ids if i != PAD]
        assert tokens == ids[: len(tokens)]
        assert len(tokens) == 10 or tokens[-1] == EOS


def test_rows_of_padding_end_at_once_and_change_nothing(model):
    row = [*range(270, 276), EOS]
    options = SearchOptions.from_hparams(ONE_LAYER, beam_width=2)
    alone, filled = (
        search(model, np.array(rows, np.int32), options)
        for rows in ([row], [row, [PAD] * 7, [PAD] * 7])
    )
    np.testing.assert_array_equal(alone.ids_BWT[0], filled.ids_BWT[0])
    assert not np.any(filled.ids_BWT[1:])


# Lines that are too long.


def test_the_translation_of_a_long_line_is_that_of_its_pieces(translator):
    parts = [sentence(18, n) for n in range(3)]
    (whole,) = translator.translate([" ".join(parts)])
    of_parts = translator.translate(parts)
    for n, found in enumerate(whole):
        texts = [translations[n].text for translations in of_parts]
        assert found.text == " ".join(text for text in texts if text)
        scores = [translations[n].score for translations in of_parts]
        assert found.score == pytest.approx(sum(scores), abs=1e-3)


def test_a_line_lacks_a_translation_that_one_of_its_pieces_lacks():
    found, missing = Translation("a", -0.5), Translation("", -math.inf)
    assert _join([[found, found], [found, missing]]) == [("a a", -1), missing]


def test_pieces_without_text_leave_no_space():
    texts = ["", "a", "", "b c", ""]
    parts = [[Translation(text, -0.5)] for text in texts]
    assert _join(parts) == [("a b c", -2.5)]


def test_long_lines_among_others_keep_their_places(translator):
    long = " ".join(sentence(18, n) for n in range(3))
    lines = [LINES[0], long, "", LINES[1], sentence(40)]
    found = translator.translate(lines)
    assert_same(found, [translator.translate([line])[0] for line in lines])


def test_warnings_count_lines_from_the_first_one_on(translator, caplog):
    lines = ["the dog", sentence(31), "", sentence(33)]
    translator.translate(lines, first_line=7)
    numbers = [message.split()[1] for message in caplog.messages]
    assert numbers == ["8", "10"]


def test_warnings_of_a_stream_count_its_lines(translator, caplog):
    lines = ["the dog", "a", "", sentence(33), "a dog", sentence(31)]
    list(translator.stream(iter(lines), 2))
    numbers = [message.split()[1] for message in caplog.messages]
    assert numbers == ["4", "6"]


def test_learned_positions_end_at_their_table(vocabulary):
    model = random_model(LEARNED, vocabulary)
    rows = [[*range(260, 282), EOS], [*range(270, 280), EOS, *[PAD] * 12]]
    options = SearchOptions.from_hparams(LEARNED, max_extra_length=50)
    found = search(model, np.array(rows, np.int32), options)
    assert found.ids_BWT.shape[2] == 23
    assert np.isfinite(np.array(found.scores_BW)).all()


def test_a_line_beyond_the_table_of_positions_is_translated(vocabulary):
    model = random_model(UNLIKE_ONE_LAYER, vocabulary)
    options = SearchOptions.from_hparams(LEARNED, max_extra_length=50)
    translator = LineTranslator.from_model(
        model, vocabulary, options, xla=False
    )
    parts = [sentence(18, n) for n in range(3)]
    ((whole,),) = translator.translate([" ".join(parts)])
    texts = [best.text for (best,) in translator.translate(parts)]
    assert whole.text == " ".join(text for text in texts if text)


# Streams.


def test_a_stream_gives_what_a_call_gives(translator):
    expected = translator.translate(LINES)
    for lines_at_once in (1, 3, len(LINES), 100):
        found = list(translator.stream(iter(LINES), lines_at_once))
        assert_same(found, expected)
    assert list(translator.stream([], 3)) == []


def test_a_stream_reads_no_further_than_a_block(translator):
    read = []
    results = translator.stream((read.append(n) or n for n in LINES), 3)
    assert read == []
    for done in range(1, 8):
        next(results)
        assert len(read) == min(3 * math.ceil(done / 3), len(LINES))


@pytest.mark.parametrize(
    ("lines", "lines_at_once", "message"),
    [
        (LINES, 0, "lines_at_once must be at least 1"),
        (LINES, 2.5, "lines_at_once must be an integer"),
        ("a dog", 1, "iterable of str; received 'a dog'"),
        ({"a": "b"}, 1, "iterable of str; received {'a': 'b'}"),
        (5, 1, "iterable of str; received 5"),
    ],
)
def test_what_is_no_stream_is_refused_at_once(
    translator, lines, lines_at_once, message
):
    with pytest.raises((TypeError, ValueError), match=message):
        translator.stream(lines, lines_at_once)


def test_what_is_no_line_of_a_stream_is_refused_by_its_place(translator):
    with pytest.raises(TypeError, match="received None at index 3"):
        list(translator.stream(["a", "dog", "runs", None], 2))


def test_a_stream_counts_from_the_line_that_is_its_first(translator, caplog):
    list(translator.stream(["a", sentence(31)], 2, first_line=7))
    assert [message.split()[1] for message in caplog.messages] == ["8"]
    with pytest.raises(InputError, match="first_line must be at least 1"):
        translator.stream(["a"], 2, first_line=0)


# What a translation depends on.


def test_the_hash_of_a_translator_is_that_of_all_that_shapes_a_translation(
    vocabulary, model
):
    def sha256(model=model, words=vocabulary, splitting=None, **options):
        return LineTranslator.from_model(
            model,
            words,
            SearchOptions.from_hparams(ONE_LAYER, **options),
            xla=False,
            splitting=splitting,
        ).sha256()

    like_it = random_model(ONE_LAYER, vocabulary, SEED)
    assert sha256() == sha256(like_it) == sha256(beam_width=2)
    like_it.weights[-1].assign(like_it.weights[-1] + 1e-6)
    unlike_it = dataclasses.replace(ONE_LAYER, relu_dropout=0.5)
    others = [
        sha256(like_it),
        sha256(random_model(unlike_it, vocabulary, SEED)),
        sha256(words=Vocabulary(vocabulary.model + b"\x12\x00")),
        sha256(splitting=Splitting("de")),
    ]
    assert len({sha256(), *others}) == 5


# Options.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam_width": 0}, "beam_width must be at least 1; .*beam_width=0"),
        ({"length_penalty": -0.5}, "length_penalty must be at least 0"),
        ({"max_extra_length": -1}, "max_extra_length must be at least 0"),
        ({"nbest": 0}, "nbest must be at least 1"),
        ({"nbest": 5}, "at most beam_width=4; received nbest=5"),
        ({"nbest": 3, "beam_width": 2}, "at most beam_width=2"),
        ({"beam_width": 4.5}, "beam_width must be an integer"),
        ({"max_extra_length": "9"}, "max_extra_length must be an integer"),
        ({"length_penalty": math.inf}, "length_penalty must be finite; .*=inf"),
        ({"length_penalty": "1"}, "length_penalty must be a number; .*='1'"),
    ],
)
def test_options_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        SearchOptions.from_hparams(ONE_LAYER, **changes)


def test_options_are_those_of_the_settings_but_for_those_given():
    assert SearchOptions.from_hparams(ONE_LAYER) == SearchOptions(4, 0.6, 6)
    changes = {"beam_width": 7, "length_penalty": None, "nbest": 7}
    expected = SearchOptions(7, 0.6, 6, nbest=7)
    assert SearchOptions.from_hparams(ONE_LAYER, **changes) == expected


# Lines of output.


def test_as_lines_writes_one_line_a_translation():
    found = [Translation("a b", -0.25), Translation("c\nd", -1.0)]
    assert as_lines(found) == "a b\nc d\n"
    assert as_lines(found, with_score=True) == "-0.2500\ta b\n-1.0000\tc d\n"
    assert as_lines(found, number=12) == (
        "12 ||| a b ||| -0.2500\n12 ||| c d ||| -1.0000\n"
    )


def test_a_translation_has_no_line_break_of_any_tool():
    found = [Translation("a\rb\nc\r\nd\u2028e", -0.25)]
    assert as_lines(found) == "a b c d\u2028e\n"


# A model directory.


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory, vocabulary):
    path = tmp_path_factory.mktemp("models") / "two_checkpoints"
    write_model(path, vocabulary, ONE_LAYER, (8, SEED))
    return path


@pytest.fixture(scope="module")
def from_disk(model_dir):
    return translation.Translator(model_dir, xla=False, nbest=3)


def test_a_translator_gives_a_text_for_a_text_and_a_list_for_a_list(
    from_disk, translator
):
    expected = [nbest[0].text for nbest in translator.translate(LINES)]
    assert from_disk(LINES) == expected
    assert from_disk(tuple(LINES)) == expected
    assert from_disk(LINES[1]) == expected[1]
    assert from_disk("") == ""
    assert from_disk([]) == []
    assert from_disk.description.endswith("step-2")


def test_a_translator_gives_the_scores_and_those_next_to_the_best(
    from_disk, translator
):
    expected = translator.translate(LINES[:2])
    assert from_disk(LINES[:2]) == [nbest[0].text for nbest in expected]
    assert_same(from_disk.translate(LINES[:2]), expected)
    assert_same(list(from_disk.stream(iter(LINES[:2]), 1)), expected)


@pytest.fixture(scope="module")
def drawn_scores(vocabulary):
    """A function from a dtype policy to scores, with freshly drawn weights."""

    @functools.cache
    def scores(policy):
        options = SearchOptions.from_hparams(ONE_LAYER, beam_width=2)
        keras.utils.set_random_seed(3)
        drawn = Transformer(ONE_LAYER, vocabulary.size)
        model = Transformer(ONE_LAYER, vocabulary.size, dtype=policy)
        for each in (drawn, model):
            each.build()
        model.set_weights(drawn.get_weights())
        lines = [LINES[0], LINES[6]]
        if policy == "float32":
            nbest = eager_translations(model, vocabulary, options, lines)
        else:
            translator = LineTranslator.from_model(
                model, vocabulary, options, xla=False
            )
            nbest = translator.translate(lines)
        return [best.score for best, *_ in nbest]

    return scores


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_a_translator_works_in_mixed_precision(drawn_scores, precision):
    # With freshly drawn weights, all tokens are about equally likely.
    np.testing.assert_allclose(
        drawn_scores(f"mixed_{precision}"),
        drawn_scores("float32"),
        rtol=0.02,
        atol=0.02,
    )


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_weights_rounded_once_give_the_same_scores(drawn_scores, precision):
    rounded = drawn_scores(precision)
    assert rounded == drawn_scores(f"mixed_{precision}")


def test_options_of_a_translator_replace_those_of_its_settings(model_dir):
    changed = translation.Translator(
        model_dir, xla=False, beam_width=2, max_extra_length=0
    )
    assert changed.options == SearchOptions(2, 0.6, 0)


def test_a_translator_takes_the_checkpoint_that_is_named(model_dir, vocabulary):
    path = str(model_dir / "checkpoints" / "step-1")
    for checkpoint, seed in (("last", SEED), (path, 8), (f"{path}.index", 8)):
        named = translation.Translator(model_dir, checkpoint, xla=False)
        assert named.description == (path if seed == 8 else path[:-1] + "2")
        expected = random_model(ONE_LAYER, vocabulary, seed).get_weights()
        for some, other in zip(
            named.model.get_weights(), expected, strict=True
        ):
            np.testing.assert_array_equal(some, other)


def test_a_translator_averages_the_last_checkpoints(model_dir, vocabulary):
    average = translation.Translator(model_dir, average_last=2, xla=False)
    assert average.description == "average of step-2, step-1"
    models = [random_model(ONE_LAYER, vocabulary, seed) for seed in (8, SEED)]
    for mean, *parts in zip(
        average.model.trainable_variables,
        *(model.trainable_variables for model in models),
        strict=True,
    ):
        expected = np.mean([part.numpy() for part in parts], axis=0)
        np.testing.assert_allclose(mean.numpy(), expected, atol=1e-6)


def test_more_checkpoints_than_are_kept_cannot_be_averaged(model_dir):
    with pytest.raises(InputError, match=r"keeps 2 .* too few .* 3"):
        translation.Translator(model_dir, average_last=3, xla=False)


@pytest.mark.parametrize("checkpoint", ["best", "averaged"])
def test_a_kind_of_checkpoint_that_is_not_there_is_named(model_dir, checkpoint):
    with pytest.raises(InputError, match=f"no checkpoint in {checkpoint}/"):
        translation.Translator(model_dir, checkpoint, xla=False)


def test_a_model_without_checkpoints_is_refused(tmp_path, vocabulary):
    write_model(tmp_path / "m", vocabulary, seeds=())
    with pytest.raises(InputError, match="no checkpoint in checkpoints/"):
        translation.Translator(tmp_path / "m", xla=False)
    with pytest.raises(InputError, match=r"checkpoint .*step-9 is missing"):
        translation.Translator(
            tmp_path / "m", str(tmp_path / "step-9"), xla=False
        )


def test_what_is_no_model_directory_is_refused_with_what_it_is(tmp_path):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "export/9").mkdir(parents=True)
    (tmp_path / "export/9/saved_model.pb").write_bytes(b"")
    for path, message in (
        ("", "is not a model directory: it has no settings.json"),
        ("nowhere", "there is no such folder"),
        ("file", "it is not a folder"),
        ("pipe", "it is not a folder"),
        ("export", r'Translator.from_saved_model\(".*/export/9"\)'),
        ("export/9", r'Translator.from_saved_model\(".*/export/9"\)'),
    ):
        with pytest.raises(InputError, match=message):
            translation.Translator(tmp_path / path)
    with pytest.raises(InputError, match="no file system for https://"):
        translation.Translator("https://models.example/m")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 3}, r"'beam' \(did you mean 'beam_width'\?\)"),
        ({"checkpont": "best"}, r"'checkpont' \(did you mean 'checkpoint'"),
        ({"top_k": 1}, "unknown option 'top_k'"),
    ],
)
def test_an_unknown_option_is_refused_with_all_there_are(
    model_dir, options, message
):
    with pytest.raises(TypeError, match=message) as raised:
        translation.Translator(model_dir, **options)
    known = set(inspect.signature(translation.Translator).parameters)
    known |= set(SearchOptions._fields)
    for name in known - {"model_dir", "options"}:
        assert name in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "fp16"}, "float32, bfloat16 or float16; .*='fp16'"),
        ({"average_last": 0}, "average_last must be at least 1"),
        ({"average_last": "5"}, "average_last must be an integer"),
        ({"average_last": 1.5}, "average_last must be an integer"),
    ],
)
def test_weights_that_there_cannot_be_are_refused(model_dir, options, message):
    with pytest.raises(InputError, match=message):
        translation.Translator(model_dir, **options)


def test_a_checkpoint_may_be_a_path(model_dir):
    path = model_dir / "checkpoints" / "step-1"
    assert translation.Translator(model_dir, path).description == str(path)


def test_a_checkpoint_of_another_model_is_refused(tmp_path, vocabulary):
    directory = write_model(tmp_path / "m", vocabulary, ONE_LAYER)
    bigger = HParams(**(ONE_LAYER.__dict__ | {"d_ff": 28}))
    settings = directory.settings()
    directory.save_settings(
        Settings(**(settings.__dict__ | {"hparams": bigger}))
    )
    with pytest.raises(InputError, match=r"step-1 does not fit this model"):
        translation.Translator(tmp_path / "m", xla=False)


# String tensors.


def long_line():
    return " ".join(sentence(18, n) for n in range(3))


def test_a_string_tensor_gives_what_a_list_gives(translator):
    lines = [*LINES, long_line(), "\u00a0", "שלום 🙂"]
    texts, scores = translator(lines, with_scores=True)
    found, found_scores = translator(tf.constant(lines), with_scores=True)
    assert [text.decode() for text in found.numpy()] == texts
    np.testing.assert_allclose(found_scores, scores, atol=1e-4)


@pytest.mark.parametrize("shape", [(), (7,), (7, 1), (1, 7), (0,), (2, 0)])
def test_translations_have_the_shape_of_their_tensor(translator, shape):
    lines = tf.constant(LINES[: math.prod(shape)], tf.string, shape)
    found, scores = translator(lines, with_scores=True)
    assert found.shape == scores.shape == shape
    expected = translator(LINES[: math.prod(shape)])
    texts = found.numpy().ravel().tolist() if shape else [found.numpy()]
    assert [text.decode() for text in texts] == expected


def test_a_translator_works_within_a_function(translator):
    @tf.function
    def shouted(text):
        return tf.strings.upper(translator(text), encoding="utf-8")

    found = shouted(tf.constant(LINES)).numpy()
    expected = [text.upper() for text in translator(LINES)]
    assert [text.decode() for text in found] == expected


def test_a_translator_works_within_a_pipeline(translator):
    lines = LINES * 3
    dataset = tf.data.Dataset.from_tensor_slices(lines).batch(4)
    dataset = dataset.map(translator, num_parallel_calls=4).unbatch()
    found = [text.decode() for text in dataset.as_numpy_iterator()]
    assert found == translator(lines)


@pytest.mark.parametrize(
    "text",
    [b"a dog", [b"a dog"], 3.5, ["a dog", None], {"a": "dog"}, {"a"}],
)
def test_what_is_no_text_is_refused(translator, text):
    with pytest.raises(TypeError):
        translator(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tf.constant([1, 2]), "string tensor; received a EagerTensor of int32"),
        (tf.ragged.constant([["a"], []]), "received a RaggedTensor of string"),
    ],
)
def test_tensors_that_are_no_text_are_refused(translator, text, message):
    with pytest.raises(TypeError, match=message):
        translator(text)


@pytest.mark.parametrize("lines", ["a dog", None, [b"a dog"], 7])
def test_what_is_no_list_is_not_translated(translator, lines):
    with pytest.raises(TypeError, match="lines must be a list of str; receiv"):
        translator.translate(lines)


def test_half_of_a_surrogate_pair_is_refused_by_its_place(translator):
    message = r"must be text .*; received 'dog\\ud800' at index 1"
    with pytest.raises(InputError, match=f"text {message}"):
        translator(["a", "dog\ud800"])
    with pytest.raises(InputError, match=f"prefixes {message}"):
        translator.translate(["a", "b"], prefixes=["", "dog\ud800"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xla": "yes"}, "xla must be True, False or None; received xla='yes'"),
        ({"xla": 1}, "xla must be True, False or None"),
        ({"checkpoint": None}, "checkpoint must be a path; received None"),
        ({"model_dir": None}, "model_dir must be a path; received None"),
        ({"model_dir": b"x"}, "model_dir must be a path; received b'x'"),
        ({"length_penalty": True}, "length_penalty must be a number"),
        ({"length_penalty": 1e308}, "length_penalty must be at most 10"),
    ],
)
def test_what_a_translator_cannot_be_made_of_is_refused(
    model_dir, options, message
):
    with pytest.raises((InputError, TypeError), match=message):
        translation.Translator(**({"model_dir": model_dir} | options))


def test_a_model_with_other_ids_than_the_vocabulary_is_refused(vocabulary):
    other = Transformer(ONE_LAYER, vocabulary.size + 1)
    with pytest.raises(InputError, match="must have as many ids as the voca"):
        LineTranslator.from_model(other, vocabulary)


def test_a_model_whose_weights_are_not_finite_is_refused(vocabulary):
    model = random_model(ONE_LAYER, vocabulary)
    weight = model.weights[3]
    weight.assign(np.full(weight.shape, np.nan))
    with pytest.raises(InputError, match="weights of a model must be finite"):
        LineTranslator.from_model(model, vocabulary)


def test_a_beam_that_cannot_be_counted_is_refused(model, vocabulary):
    options = SearchOptions(10**8, 0.6, 5)
    message = f"beam_width must be at most .* for {vocabulary.size} ids"
    with pytest.raises(InputError, match=message):
        LineTranslator.from_model(model, vocabulary, options)


def test_what_is_no_model_or_vocabulary_is_refused(vocabulary):
    model = Transformer(ONE_LAYER, vocabulary.size)
    for name, arguments in (
        ("model must be a Transformer", ("runs/a", vocabulary)),
        ("model must be a Transformer", (None, vocabulary)),
        ("options must be SearchOptions", (model, vocabulary, {})),
        ("vocabulary must be a Vocabulary", (model, "vocabulary.model")),
    ):
        with pytest.raises(TypeError, match=f"{name}.*; received"):
            LineTranslator.from_model(*arguments)


def test_a_model_that_was_never_called_translates(vocabulary):
    model = Transformer(ONE_LAYER, vocabulary.size)
    translator = LineTranslator.from_model(model, vocabulary, xla=False)
    assert len(translator(LINES)) == len(LINES)


def test_what_is_neither_yes_nor_no_is_refused(translator):
    for text in ("a dog", tf.constant("a dog")):
        with pytest.raises(InputError, match="with_scores must be True, Fals"):
            translator(text, with_scores="no")


def test_a_call_gives_scores_on_request(translator):
    text, score = translator(LINES[1], with_scores=True)
    ((best, *_),) = translator.translate([LINES[1]])
    assert (text, score) == best
    _, scores = translator(LINES, with_scores=True)
    assert scores[LINES.index("")] == 0.0


# Keras' settings.


@pytest.fixture
def float64():
    """Keras with float64 as its default."""
    policy = keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy(policy)


@pytest.mark.slow
@pytest.mark.parametrize("hparams", [ONE_LAYER, UNLIKE_ONE_LAYER])
def test_models_and_searches_work_where_keras_prefers_float64(
    float64, vocabulary, hparams
):
    model = random_model(hparams, vocabulary)
    options = SearchOptions.from_hparams(hparams, max_extra_length=1)
    translator = LineTranslator.from_model(
        model, vocabulary, options, xla=False
    )
    assert model.dtype == "float64"
    lines = [LINES[0], LINES[6]]
    expected = eager_translations(model, vocabulary, options, lines)
    assert_same(translator.translate(lines), expected)
    ids = tf.ragged.constant(vocabulary.encode(lines), tf.int32).to_tensor()
    loss = t2t_lite.LabelSmoothedCrossEntropy()
    model.compile("sgd", loss, run_eagerly=True)
    model.fit((ids, ids), ids, verbose=0)


@pytest.mark.parametrize("text", ["a red boat", ["a red boat", "two men"]])
def test_text_that_is_no_tensor_is_refused_inside_a_graph(translator, text):
    with pytest.raises(TypeError, match="text must be a string tensor that a"):
        tf.function(lambda: translator(text))()


# What steers a search.


PREFIXES = ["the c", "a red ", "", "m", "two men and a b", "old", "."]


def test_a_translation_begins_with_its_prefix(translator):
    found = translator(LINES, prefix=PREFIXES)
    for text, prefix, line in zip(found, PREFIXES, LINES, strict=True):
        assert text.startswith(prefix) or not line
    assert found != translator(LINES)
    assert found[0] != "the c"


@pytest.mark.slow
def test_a_sentence_without_a_translation_leaves_its_line_without_one(
    steered, vocabulary, caplog
):
    names = vocabulary.tokens(range(2, vocabulary.size))
    pieces = [name for name in names if not name.startswith("<<")]
    none = steered(Splitting(), suppress_pieces=pieces, min_length=1)
    with caplog.at_level("WARNING"):
        found = none("A dog. Two men.", with_scores=True)
    assert found == ("", -np.inf)
    assert "Line 1: no translation satisfies all options" in caplog.text
    texts, scores = none(tf.constant(["A dog. Two men.", ""]), with_scores=True)
    assert texts.numpy().tolist() == [b"", b""]
    assert scores.numpy().tolist() == [-np.inf, 0.0]


def test_without_a_prefix_nothing_changes(translator):
    expected = translator(LINES, with_scores=True)
    assert translator(LINES, prefix=[""] * 7, with_scores=True) == expected
    beside = translator(LINES, prefix=["", "", "", "the", "", "", ""])
    assert beside[:3] + beside[4:] == expected[0][:3] + expected[0][4:]


# Alternatives.


@pytest.mark.slow
def test_alternatives_differ_in_the_next_word(steered, translator):
    plain = steered()
    text, prefix = LINES[0], "the red "
    found = plain.alternatives(text, prefix, count=4)
    rests = [each.text.removeprefix(prefix) for each in found]
    words = [re.match(r"\w+|\W|$", rest)[0] for rest in rests]
    assert len({*words}) == len(found) == 4
    for (best, score), word in zip(found, words, strict=True):
        assert best.startswith(prefix)
        # It is the best that begins so, unless the best continues the word.
        ((again, *_),) = translator.translate([text], prefixes=[prefix + word])
        assert again.score >= score - 1e-4
        rest = again.text.removeprefix(prefix + word)
        assert again.score < score + 1e-4 or re.match(r"\w", rest)
    fewer = plain.alternatives(text, prefix, count=2)
    assert_same([fewer], [found[:2]])


@pytest.mark.slow
def test_alternatives_begin_anywhere(steered):
    """At the start, within a word, and after a word without a space."""
    translator = steered()
    for prefix in ("", "the r", "the red"):
        found = translator.alternatives(LINES[0], prefix, count=3)
        assert len({each.text for each in found}) == 3
        assert all(each.text.startswith(prefix) for each in found)


@pytest.mark.slow
def test_what_has_fewer_alternatives_has_no_others(steered, vocabulary):
    names = vocabulary.tokens(range(2, vocabulary.size))
    kept = "\N{LOWER ONE EIGHTH BLOCK}the"
    one = steered(
        suppress_pieces=[name for name in names if name != kept],
        max_extra_length=1,
    )
    found = one.alternatives("two men", count=3)
    assert {text for text, _ in found} == {"the", ""}
    assert one.alternatives(" ", count=3) == [Translation("", 0.0)]
    with pytest.raises(InputError, match="line 1 is blank but has the prefix"):
        one.alternatives(" ", "the")


@pytest.mark.slow
def test_lines_have_alternatives_where_their_prefixes_end(steered):
    """Of several sentences, only the first that the prefix leaves open."""
    several = steered(Splitting(), alternatives=3)
    plain = steered(Splitting())
    lines = ["The dog. A cat. Two men.", "", "a red boat"]
    found = several.translate(lines, prefixes=["the old hill. the ", "", ""])
    assert [len(each) for each in found] == [3, 3, 3]
    alone = plain.alternatives("A cat.", "the ", count=3)
    assert [text for text, _ in found[0]] == [
        f"the old hill. {each.text} {plain('Two men.')}" for each in alone
    ]
    assert found[1] == [
        Translation("", 0.0),
        *[Translation("", -math.inf)] * 2,
    ]
    assert_same(found[2:], [plain.alternatives("a red boat", count=3)])
    assert_same(several.translate(lines[2:]), found[2:])
    (first,) = several.translate(["A cat. Two men."])
    assert [text for text, _ in first] == [
        f"{each.text} {plain('Two men.')}"
        for each in plain.alternatives("A cat.", count=3)
    ]


@pytest.mark.slow
def test_alternatives_are_the_same_with_xla_and_on_several_devices(
    steered, compiled, divided
):
    plain = steered()
    on_two, with_xla = (
        LineTranslator(each, plain.vocabulary, plain.options)
        for each in (divided, compiled)
    )
    # Without a prefix, XLA would have to compile another program.
    for prefix, others in (("", [on_two]), ("the re", [on_two, with_xla])):
        expected = plain.alternatives(LINES[0], prefix, count=3)
        for other in others:
            assert_same([other.alternatives(LINES[0], prefix, 3)], [expected])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("a dog", "", 0), InputError, "count must be at least 1"),
        ((["a dog"],), TypeError, "text must be a str"),
        (("a dog", None), TypeError, "prefix must be a str"),
    ],
)
def test_no_alternatives_of_what_is_no_text(
    translator, arguments, error, message
):
    with pytest.raises(error, match=message):
        translator.alternatives(*arguments)


@pytest.mark.parametrize(
    "options",
    [{"sample_top_k": 3}, {"glossary": {"a": "the"}}, {"keep": ["tags"]}],
)
def test_no_alternatives_of_what_is_no_plain_search(steered, options):
    translator = steered(**options)
    message = "alternatives cannot be combined with sampling, a glossary or"
    with pytest.raises(InputError, match=message):
        translator.alternatives("a dog")


@pytest.mark.parametrize("options", [{"nbest": 2}, {"sample_top_k": 3}])
def test_alternatives_are_refused_beside_other_translations(options):
    message = "alternatives cannot be combined with nbest or sampling"
    with pytest.raises(InputError, match=message):
        SearchOptions.from_hparams(ONE_LAYER, alternatives=2, **options)


# Glossaries.

GLOSSARY = {"red boat": "old cat", "men": "the water", "sits": "two"}
WITH_TERMS = ["a red boat", "two men, men", "the dog", "He sits."]
REQUIRED = [["old cat"], ["the water", "the water"], [], ["two"]]


def words_in(text, term):
    return len(re.findall(rf"(?<!\w){re.escape(term)}(?!\w)", text))


@pytest.mark.slow
def test_translations_have_the_terms_of_a_glossary(steered, translator):
    with_glossary = steered(glossary=GLOSSARY, nbest=3)
    found = with_glossary.translate(WITH_TERMS)
    without = translator.translate(WITH_TERMS)
    assert_same(found[2:3], without[2:3])
    for several, before, terms in zip(found, without, REQUIRED, strict=True):
        assert several[0].score <= before[0].score
        for best in several:
            for term in terms:
                assert words_in(best.text, term) == terms.count(term)
    assert_same(with_glossary.translate(WITH_TERMS[::-1]), found[::-1])


@pytest.mark.slow
def test_the_best_of_several_with_terms_is_the_best(steered):
    lines = [WITH_TERMS[0], *WITH_TERMS[2:], *LINES]  # One beam width.
    alone, several = (
        steered(glossary=GLOSSARY, nbest=n).translate(lines) for n in (1, 3)
    )
    assert_same(alone, [each[:1] for each in several])
    for each in several:
        texts = [text for text, _ in each if text]
        assert len(set(texts)) == len(texts)


def test_a_term_takes_the_place_of_the_word_that_attends_to_it(
    steered, vocabulary
):
    plain = steered()
    lines = LINES[1], LINES[4]
    num_placed = 0
    for line, text in zip(lines, plain(list(lines)), strict=True):
        (ids,) = vocabulary.encode([line])
        (weights,) = plain._aligner.weights([Pair(ids, line, text)])
        for match in re.finditer(r"\w+", line):
            weight_W = weights.of_source(*match.span())
            best = int(weight_W.argmax())
            greatest = weights.weights_WS[best].max()
            is_word = line.split().count(match[0]) == 1 and "house" not in text
            if not is_word or weight_W[best] < 0.5 * greatest:
                continue
            start, end = weights.words[best]
            translator = steered(glossary={match[0]: "house"})
            expected = f"{text[:start]}house{text[end:]}"
            assert translator(line) == expected
            num_placed += 1
    assert num_placed > 1


ALL_THAT_STEERS = {
    "min_length": 3,
    "no_repeat_ngram_size": 2,
    "suppress": ["bird", "men"],
}


@pytest.mark.slow
def test_terms_go_with_whatever_else_steers(steered):
    translator = steered(glossary=GLOSSARY, **ALL_THAT_STEERS)
    prefixes = ["the ", "", "dog"]
    twice, without, with_two = translator(WITH_TERMS[1:], prefix=prefixes)
    # It would repeat the bigram "the water": there is no such translation.
    assert twice == ""
    assert len(without.split()) > 1
    assert with_two.startswith("dog")
    for text in (without, with_two.removeprefix("dog")):
        words = set(re.findall(r"\w+", text))
        assert words.isdisjoint(ALL_THAT_STEERS["suppress"])
    assert words_in(with_two, "two") == 1


def test_texts_have_the_scores_of_translations(model, vocabulary):
    options = SearchOptions.from_hparams(ONE_LAYER, length_penalty=0.7)
    engine = model_engine(model, vocabulary, options, xla=False)
    sources, targets = ["a red boat", "men, men"], ["the old cat", "two"]
    encoded = [vocabulary.encode(each) for each in (sources, targets)]
    ids = tf.ragged.constant(encoded[0], tf.int32)
    np.testing.assert_allclose(
        engine.score_texts(ids, targets),
        [score_of(model, *pair, 0.7) for pair in zip(*encoded, strict=True)],
        rtol=1e-5,
    )
    # There is no room for so long a text.
    assert engine.score_texts(ids[:1], ["the dog " * 50])[0] == -math.inf


def test_texts_that_the_options_rule_out_have_no_score(model, vocabulary):
    options = SearchOptions.from_hparams(
        ONE_LAYER, suppress=["old"], min_length=2, no_repeat_ngram_size=1
    )
    engine = model_engine(model, vocabulary, options, xla=False)
    texts = ["the dog", "the old dog", "", "the the"]
    ids = tf.ragged.constant(vocabulary.encode(["a dog"] * 4), tf.int32)
    is_possible = engine.score_texts(ids, texts) > -math.inf
    assert is_possible.tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("options", "differs"),
    [({"glossary": GLOSSARY}, True), ({"keep": ["urls"]}, True), ({}, False)],
)
def test_the_head_that_places_terms_shapes_what_is_translated(
    steered, options, differs
):
    one, other = (steered(**options) for _ in range(2))
    other._alignment_head = AlignmentHead(0, 0)
    assert (one.sha256() != other.sha256()) == differs


@pytest.mark.slow
def test_sentences_have_the_terms_of_their_own(steered):
    translator = steered(Splitting(), glossary=GLOSSARY, nbest=3)
    line = "A red boat. Two men. The dog."
    alone = [translator(text) for text in ("A red boat.", "Two men.")]
    assert translator(line) == " ".join([*alone, translator("The dog.")])
    begun = translator(line, prefix="the old hill. the r")
    assert begun.startswith("the old hill. the r")
    assert words_in(begun, "old cat") == 0
    assert words_in(begun, "the water") == 1


@pytest.mark.slow
def test_a_term_that_is_left_out_is_warned_of(steered, caplog):
    translator = steered(glossary={"boat": "the old cat"}, max_extra_length=0)
    with caplog.at_level("WARNING"):
        translator(["the dog", "boat"])
    assert "Line 2: there is no room for 'the old cat'" in caplog.text


@pytest.mark.slow
def test_terms_are_the_same_with_xla_and_on_several_devices(
    engine_of, compiled, divided, vocabulary
):
    lines = ["a red boat", "He sits."]
    ids = tf.ragged.constant(vocabulary.encode(lines), tf.int32)
    glossary = Glossary(tuple(GLOSSARY.items()), vocabulary)
    asked = [glossary.terms(line, room=9)[0] for line in lines]

    def found_by(engine):
        found = engine.translate_with_terms(
            ids, ["", "the"], [False] * 2, asked
        )
        texts = vocabulary.decode(np.asarray(found.ids_BWT)[:, 0])
        return texts, found.scores_BW, engine.score_texts(ids, texts)

    texts, *expected = found_by(engine_of())
    for text, term in zip(texts, ["old cat", "two"], strict=True):
        assert words_in(text, term) == 1
    for other in (compiled, divided):
        others, *scores = found_by(other)
        assert others == texts
        for some, right in zip(scores, expected, strict=True):
            np.testing.assert_allclose(some, right, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"glossary": "terms.tsv"}, "glossary must be a dict of str, or pairs"),
        ({"glossary": 3}, "glossary must be a dict of str, or pairs of str"),
        ({"glossary": ["ab"]}, "glossary must be a dict of str, or pairs of"),
        ({"glossary": [("a", 1)]}, "glossary must be a dict of str, or pairs"),
        (
            {"glossary": {"a": "b"}, "sample_top_k": 2},
            "a glossary cannot be combined with sampling or alternatives; "
            "received sample_top_k=2, glossary='1 terms'",
        ),
        (
            {"glossary": {"a": "b"}, "alternatives": 2},
            "a glossary cannot be combined with sampling or alternatives; rec",
        ),
        *(
            (
                {"glossary": {"x": target}, "suppress": ["one", word]},
                "a suppressed word must not be in a glossary translation; "
                f"received suppress={[word]}, translation={target!r}",
            )
            for word, target in [
                ("two", "two"),
                ("two", "a two, three"),
                ("a two", "is a two"),
                ("a two", "is a  two"),
                ("C++", "C++11"),
            ]
        ),
    ],
)
def test_a_glossary_that_cannot_be_kept_is_refused(options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        SearchOptions.from_hparams(ONE_LAYER, **options)


@pytest.mark.parametrize("word", ["two", "Twos", "", "s, two"])
def test_a_glossary_may_have_words_like_those_suppressed(word):
    options = {"glossary": {"x": "twos, two_a"}, "suppress": [word]}
    assert SearchOptions.from_hparams(ONE_LAYER, **options).suppress == (word,)


@pytest.mark.parametrize(
    "options", [{"glossary": GLOSSARY}, {"alternatives": 2}]
)
def test_a_tensor_is_refused_where_only_lines_do(steered, options):
    translator = steered(**options)
    with pytest.raises(InputError, match="text must be a str or a list of str"):
        translator(tf.constant(["a dog"]))


@pytest.mark.slow
def test_prefixes_are_kept_on_several_devices(steered, translator, divided):
    plain = steered()
    other = LineTranslator(divided, plain.vocabulary, plain.options)
    assert other(LINES, prefix=PREFIXES) == translator(LINES, prefix=PREFIXES)


@pytest.mark.slow
def test_what_steers_a_search_is_the_same_with_xla(
    steered, translator, model, vocabulary
):
    plain = steered(**ALL_THAT_STEERS)
    compiled = LineTranslator.from_model(
        model, vocabulary, plain.options, xla=True
    )
    lines, prefixes = LINES[::3], PREFIXES[::3]  # All of one shape.
    found, expected, without = (
        each(lines, prefix=prefixes) for each in (compiled, plain, translator)
    )
    assert found == expected != without


def test_sentences_begin_with_the_sentences_of_a_prefix(steered):
    translator = steered(Splitting(), nbest=3)
    line, prefix = "The dog. A cat. Two men.", "the old hill. the r"
    ((best, other, _),) = translator.translate([line], prefixes=[prefix])
    alone = [
        translator.translate([text], prefixes=[begun])[0]
        for text, begun in (("A cat.", "the r"), ("Two men.", ""))
    ]
    for nth_best, text in enumerate((best.text, other.text)):
        rest = " ".join(found[nth_best].text for found in alone)
        assert text == f"the old hill. {rest}"
    assert best.score > other.score


@pytest.mark.parametrize(
    ("lines", "prefixes", "message"),
    [
        (["a dog", " "], ["", "the"], "line 2 is blank but has the prefix"),
        (["a dog"], ["a", "b"], "as lines, blank for none; received more"),
        (["a dog"], [], "as lines, blank for none; received only 0"),
        (["a dog"], ["the\u2581c"], "line 1 has U\\+2581, which is a space"),
        (["a dog"], ["the " * 40], "line 1 must have at most .* tokens, the"),
    ],
)
def test_a_prefix_that_begins_no_translation_is_refused(
    translator, lines, prefixes, message
):
    with pytest.raises(InputError, match=message):
        translator(lines, prefix=prefixes)


def test_a_prefix_is_as_its_text(translator):
    with pytest.raises(TypeError, match="the prefix of a str must be a str"):
        translator("a dog", prefix=["the"])
    with pytest.raises(TypeError, match="lines must be an iterable of str"):
        translator(["a dog"], prefix="the")
    with pytest.raises(InputError, match="prefix must be None where text is a"):
        translator(tf.constant(["a dog"]), prefix=["the"])


def test_options_steer_translations(steered, translator):
    plain = translator(LINES)
    words = {word for text in plain for word in text.split()}
    suppressed = tuple(sorted(words)[:5])
    found = steered(suppress=suppressed)(LINES)
    assert not {word for text in found for word in text.split()} & {*suppressed}


def test_pieces_are_suppressed(steered, vocabulary, translator):
    sources = tf.ragged.constant(vocabulary.encode(LINES), tf.int32)
    plain = np.asarray(translator.translate_ids(sources).ids_BWT)
    newest = plain[plain > EOS][0]
    (piece,) = vocabulary.tokens([newest])
    without = steered(suppress_pieces=[piece])
    assert newest not in np.asarray(without.translate_ids(sources).ids_BWT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suppress": ["\u732b"]}, "the vocabulary has no piece for '\u732b'"),
        ({"suppress_pieces": ["zebra"]}, "has no piece 'zebra' to suppress"),
        ({"suppress_pieces": ["</s>"]}, "has no piece '</s>' to suppress"),
        ({"suppress": "the"}, "suppress must be a list of str"),
        ({"min_length": -1}, "min_length must be"),
        ({"no_repeat_ngram_size": 1.5}, "no_repeat_ngram_size must be"),
    ],
)
def test_options_that_cannot_steer_are_refused(steered, options, message):
    with pytest.raises(InputError, match=message):
        steered(**options)


# Sampling.


@pytest.fixture(scope="module")
def drawn(steered):
    """A LineTranslator that samples."""
    return steered(
        sample_top_k=30,
        sample_top_p=0.95,
        temperature=1.5,
        nbest=3,
        seed=5,
        min_length=2,
    )


@pytest.mark.slow
def test_what_is_drawn_depends_on_the_line_alone(drawn, model, vocabulary):
    found = drawn.translate(LINES)
    assert_same(drawn.translate(LINES[::-1]), found[::-1])
    for line, of_line in zip(LINES, found, strict=True):
        assert_same(drawn.translate([line]), [of_line])
    texts = {t.text for of_line in found for t in of_line}
    assert len(texts) > 2 * len(LINES)
    for seed in (5, 6):
        options = drawn.options._replace(seed=seed)
        steering = Steering(options, vocabulary)
        hypotheses = eager_search(
            model, vocabulary, options, LINES[:1], steering.constraint
        )
        others = vocabulary.decode(hypotheses.ids_BWT[0].numpy())
        is_same = others == [t.text for t in found[0]]
        assert is_same == (seed == 5)


@pytest.mark.slow
def test_xla_draws_the_same(drawn, model, vocabulary):
    compiled = LineTranslator.from_model(
        model, vocabulary, drawn.options, xla=True
    )
    lines = LINES[::3]  # All of one shape.
    assert_same(compiled.translate(lines), drawn.translate(lines))


@pytest.mark.slow
def test_the_likeliest_alone_is_what_a_beam_of_one_finds(model, vocabulary):
    drawn, greedy = (
        eager_search(
            model,
            vocabulary,
            SearchOptions.from_hparams(ONE_LAYER, **options),
            [line for line in LINES if line],
        )
        for options in ({"sample_top_k": 1}, {"beam_width": 1})
    )
    np.testing.assert_array_equal(drawn.ids_BWT, greedy.ids_BWT)
    np.testing.assert_allclose(drawn.scores_BW, greedy.scores_BW, atol=1e-4)


@pytest.mark.slow
def test_what_is_drawn_keeps_to_what_steers(steered):
    drawn = steered(sample_top_p=1.0, suppress=["the"])
    found = drawn(LINES, prefix=PREFIXES)
    for text, prefix, line in zip(found, PREFIXES, LINES, strict=True):
        assert text.startswith(prefix) or not line
        rest = text.removeprefix("the c").removeprefix(prefix)
        assert "the" not in rest.split()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_top_p": 1.5}, "sample_top_p must be a number from 0 to 1"),
        ({"sample_top_k": -1}, "sample_top_k must be"),
        (
            {"sample_top_k": 2, "temperature": 0},
            "temperature must be a number above 0",
        ),
        ({"sample_top_k": 2, "beam_width": 3}, "there is no beam in sampling"),
        ({"seed": 3}, "need sample_top_k or sample_top_p; received seed=3$"),
        ({"temperature": 2.0}, "seed and temperature need sample_top_k or"),
    ],
)
def test_options_that_cannot_be_drawn_by_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        SearchOptions.from_hparams(ONE_LAYER, **options)


# What is kept.

KEPT_LINES = [
    "the <b>red dog</b> sees {name}",
    "two men",
    "see a@b.org, or <i>the {x} and {y}</i>. A <br/>bird.",
    "<hr/>",
]
ITEMS = [
    ["<b>", "</b>", "{name}"],
    [],
    ["a@b.org", "<i>", "</i>", "{x}", "{y}", "<br/>"],
    ["<hr/>"],
]
ALL_KINDS = ["tags", "urls", "placeholders", "quantities"]


def without(text, items):
    for item in items:
        text = text.replace(item, "")
    return " ".join(text.split())


@pytest.mark.slow
def test_what_is_kept_is_there_once(steered, translator):
    keeping = steered(Splitting(), keep=ALL_KINDS, nbest=3)
    found = keeping.translate(KEPT_LINES)
    for several, items in zip(found, ITEMS, strict=True):
        for best in several:
            for item in items:
                assert best.text.count(item) == 1
    assert found[2][0].text.index("<i>") < found[2][0].text.index("</i>")
    assert [best.text for best in found[3]] == ["<hr/>"] * 3
    # A line with nothing to keep is translated as usual.
    plain = translator.translate(KEPT_LINES[1:2])
    assert_same(found[1:2], plain)
    assert_same(keeping.translate(KEPT_LINES[::-1]), found[::-1])


@pytest.mark.slow
def test_tags_leave_the_words_as_they_are(steered, translator):
    keeping = steered(keep=["tags"])
    lines = ["the <b>red</b> <i>ball on</i> a boat", "<p>men<br/></p>"]
    found = keeping.translate(lines)
    plain = translator.translate(["the red ball on a boat", "men"])
    names = ["<b>", "</b>", "<i>", "</i>", "<p>", "</p>", "<br/>"]
    for (best,), (expected, *_) in zip(found, plain, strict=True):
        assert without(best.text, names) == expected.text
        assert best.score == pytest.approx(expected.score, abs=1e-4)
        assert best.text != expected.text


def test_all_sentences_of_a_line_share_its_tags(steered):
    keeping = steered(Splitting(), keep=["tags"])
    (found,) = keeping.translate(["<b>A dog. Two men.</b> The <i>old</i> cat."])
    bold = found[0].text.partition("<b>")[2].partition("</b>")[0]
    alone = [keeping(text) for text in ("A dog.", "Two men.", "The old cat.")]
    assert without(found[0].text, ["<b>", "</b>", "<i>", "</i>"]) == " ".join(
        alone
    )
    assert len(bold.split()) >= 2


@pytest.mark.slow
def test_prefixes_come_from_anywhere(steered):
    prefixes = ["the {name} a", "dog"]
    lines = ["the dog sees {name}", "two men"]
    for options in ({}, {"keep": ["placeholders"]}):
        translator = steered(nbest=3, **options)
        expected = translator.translate(lines, prefixes=prefixes)
        assert expected[1][0].text.startswith("dog")
        for given in (iter(prefixes), dict(enumerate(prefixes)).values()):
            assert_same(translator.translate(lines, prefixes=given), expected)


@pytest.mark.slow
def test_a_prefix_may_have_what_is_kept(steered):
    keeping = steered(keep=["tags", "placeholders"], nbest=3)
    line = "the <b>dog</b> sees {name} and {other}"
    found = keeping(line, prefix="the {name} a")
    assert found.replace("<b>", "").replace("</b>", "").startswith("the {name}")
    for item in ("{name}", "{other}", "<b>", "</b>"):
        assert found.count(item) == 1


@pytest.mark.slow
def test_a_glossary_and_what_is_kept_go_together(steered):
    keeping = steered(
        keep=["placeholders"], glossary={"dog": "old cat"}, nbest=3
    )
    found = keeping("the dog sees {name}")
    assert words_in(found, "old cat") == 1
    assert found.count("{name}") == 1


def test_what_cannot_be_kept_is_warned_of(steered, caplog):
    keeping = steered(keep=["placeholders"], max_extra_length=0)
    items = [f"{{{number}}}" for number in range(99)]
    with caplog.at_level("WARNING"):
        keeping._kept(["a dog", " ".join(items)], first_line=1, prefixes=None)
    assert "Line 2 has too many items to keep, so '{98}' is" in caplog.text
    assert "'{0}'" not in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "tags"}, "keep must be a list of str"),
        ({"keep": ["tag"]}, "keep may hold only tags, urls, placeholders"),
        (
            {"keep": ["tags"], "sample_top_k": 2},
            "keep cannot be combined with sampling or alternatives; received",
        ),
        (
            {"keep": ["tags"], "alternatives": 2},
            "keep cannot be combined with sampling or alternatives; received",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        SearchOptions.from_hparams(ONE_LAYER, **options)


@pytest.mark.slow
def test_alignments_change_no_translation(steered, translator, model):
    aligning = steered(Splitting(), alignments=True, nbest=3)
    lines = ["two men. The old cat sits.", "", LINES[4]]
    found = aligning.translate(lines)
    assert_same(found, steered(Splitting(), nbest=3).translate(lines))
    assert found[1][0].links == ()
    (ids,) = aligning.vocabulary.encode(lines[2:])
    pairs = [Pair(ids, lines[2], each.text) for each in found[2]]
    heads = [AlignmentHead(0), AlignmentHead(0, 1)]
    aligner = Aligner(model, aligning.vocabulary, heads)
    expected, by_head = aligner.links(pairs)
    assert [list(each.links) for each in found[2]] == expected
    for line, several in zip(lines, found, strict=True):
        for text, _, links in several:
            pharaoh.links_of([pharaoh.as_text(links)], [(line, text)])
    # With another head.
    with_more = steered(None, heads[1], alignments=True, nbest=3)
    (others,) = with_more.translate(lines[2:])
    assert [list(each.links) for each in others] == by_head != expected
    assert aligning(LINES[4]) == found[2][0].text
    assert aligning.sha256() not in (translator.sha256(), with_more.sha256())


@pytest.mark.parametrize("options", [{"keep": ["tags"]}, {"alignments": "yes"}])
def test_alignments_that_cannot_be_are_refused(options):
    with pytest.raises(InputError, match="alignments"):
        SearchOptions.from_hparams(
            ONE_LAYER, **({"alignments": True} | options)
        )


def test_tensors_have_no_alignments(steered):
    with pytest.raises(InputError, match="text must be a str or a list of str"):
        steered(alignments=True)(tf.constant(["a dog"]))


def test_tensors_keep_nothing(steered):
    keeping = steered(keep=["tags"])
    with pytest.raises(InputError, match="text must be a str or a list of str"):
        keeping(tf.constant(["a <b>dog</b>"]))
