"""Lines are translated without loss, and independently of each other."""

import dataclasses
import functools
import inspect
import math
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_searches import (
    GLOSSARY,
    PREFIXES,
    SEED,
    UNLIKE_ONE_LAYER,
    eager_search,
    eager_translations,
)
from tiny_translator import (
    LEARNED,
    LINES,
    ONE_LAYER,
    assert_same,
    random_model,
    sentence,
    write_model,
)

from t2t_lite.alignment.word_alignment import Aligner, Pair
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.search import SearchOptions
from t2t_lite.errors import InputError
from t2t_lite.hparams import HParams
from t2t_lite.model.alignment_head import AlignmentHead
from t2t_lite.model.transformer import Transformer
from t2t_lite.storage.model_directory import Settings
from t2t_lite.text import pharaoh
from t2t_lite.text.sentences import Splitting
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.translation import line_translator
from t2t_lite.translation.line_translator import LineTranslator, _join

# What searches find.


def test_padding_and_batch_mates_change_no_translation(translator):
    together = translator.translate(LINES)
    alone = [translator.translate([line])[0] for line in LINES]
    assert_same(together, alone)
    assert len({best.text for best, *_ in together}) > len(LINES) / 2


def test_translations_come_in_the_order_of_their_lines(translator):
    found = translator.translate(LINES)
    assert_same(translator.translate(LINES[::-1]), found[::-1])


def test_each_line_gets_as_many_results_as_asked_for_best_first(translator):
    for found in translator.translate(LINES):
        scores = [line_translator.score for line_translator in found]
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


# A model directory.


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory, vocabulary):
    path = tmp_path_factory.mktemp("models") / "two_checkpoints"
    write_model(path, vocabulary, ONE_LAYER, (8, SEED))
    return path


@pytest.fixture(scope="module")
def from_disk(model_dir):
    return line_translator.Translator(model_dir, xla=False, nbest=3)


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
    changed = line_translator.Translator(
        model_dir, xla=False, beam_width=2, max_extra_length=0
    )
    assert changed.options == SearchOptions(2, 0.6, 0)


def test_a_translator_takes_the_checkpoint_that_is_named(model_dir, vocabulary):
    path = str(model_dir / "checkpoints" / "step-1")
    for checkpoint, seed in (("last", SEED), (path, 8), (f"{path}.index", 8)):
        named = line_translator.Translator(model_dir, checkpoint, xla=False)
        assert named.description == (path if seed == 8 else path[:-1] + "2")
        expected = random_model(ONE_LAYER, vocabulary, seed).get_weights()
        for some, other in zip(
            named.model.get_weights(), expected, strict=True
        ):
            np.testing.assert_array_equal(some, other)


def test_a_translator_averages_the_last_checkpoints(model_dir, vocabulary):
    average = line_translator.Translator(model_dir, average_last=2, xla=False)
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
        line_translator.Translator(model_dir, average_last=3, xla=False)


@pytest.mark.parametrize("checkpoint", ["best", "averaged"])
def test_a_kind_of_checkpoint_that_is_not_there_is_named(model_dir, checkpoint):
    with pytest.raises(InputError, match=f"no checkpoint in {checkpoint}/"):
        line_translator.Translator(model_dir, checkpoint, xla=False)


def test_a_model_without_checkpoints_is_refused(tmp_path, vocabulary):
    write_model(tmp_path / "m", vocabulary, seeds=())
    with pytest.raises(InputError, match="no checkpoint in checkpoints/"):
        line_translator.Translator(tmp_path / "m", xla=False)
    with pytest.raises(InputError, match=r"checkpoint .*step-9 is missing"):
        line_translator.Translator(
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
            line_translator.Translator(tmp_path / path)
    with pytest.raises(InputError, match="no file system for https://"):
        line_translator.Translator("https://models.example/m")


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
        line_translator.Translator(model_dir, **options)
    known = set(inspect.signature(line_translator.Translator).parameters)
    known |= set(SearchOptions._fields)
    for name in known - {"model_dir", "options"}:
        assert name in str(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"precision": "fp16"},
            "float32, bfloat16, float16 or int8; .*='fp16'",
        ),
        ({"average_last": 0}, "average_last must be at least 1"),
        ({"average_last": "5"}, "average_last must be an integer"),
        ({"average_last": 1.5}, "average_last must be an integer"),
    ],
)
def test_weights_that_there_cannot_be_are_refused(model_dir, options, message):
    with pytest.raises(InputError, match=message):
        line_translator.Translator(model_dir, **options)


def test_a_checkpoint_may_be_a_path(model_dir):
    path = model_dir / "checkpoints" / "step-1"
    assert line_translator.Translator(model_dir, path).description == str(path)


def test_a_checkpoint_of_another_model_is_refused(tmp_path, vocabulary):
    directory = write_model(tmp_path / "m", vocabulary, ONE_LAYER)
    bigger = HParams(**(ONE_LAYER.__dict__ | {"d_ff": 28}))
    settings = directory.settings()
    directory.save_settings(
        Settings(**(settings.__dict__ | {"hparams": bigger}))
    )
    with pytest.raises(InputError, match=r"step-1 does not fit this model"):
        line_translator.Translator(tmp_path / "m", xla=False)


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
        line_translator.Translator(**({"model_dir": model_dir} | options))


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


def test_a_translation_begins_with_its_prefix(translator):
    found = translator(LINES, prefix=PREFIXES)
    for text, prefix, line in zip(found, PREFIXES, LINES, strict=True):
        assert text.startswith(prefix) or not line
    assert found != translator(LINES)
    assert found[0] != "the c"


def test_without_a_prefix_nothing_changes(translator):
    expected = translator(LINES, with_scores=True)
    assert translator(LINES, prefix=[""] * 7, with_scores=True) == expected
    beside = translator(LINES, prefix=["", "", "", "the", "", "", ""])
    assert beside[:3] + beside[4:] == expected[0][:3] + expected[0][4:]


@pytest.mark.slow
def test_prefixes_are_kept_on_several_devices(steered, translator, divided):
    plain = steered()
    other = LineTranslator(divided, plain.vocabulary, plain.options)
    assert other(LINES, prefix=PREFIXES) == translator(LINES, prefix=PREFIXES)
