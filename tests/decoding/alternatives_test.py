"""Alternatives are those that brute force finds, on tables of logits."""

import itertools
import math
import re
import types

import numpy as np
import pytest
import reference
import tensorflow as tf
from keras import ops
from search_tables import EOS, log_prob, random_table, search, without_padding
from tiny_translator import LINES, assert_same

from t2t_lite.constraints.token_constraints import SearchBatch
from t2t_lite.decoding.alternatives import AlternativesSearch
from t2t_lite.decoding.beam_search import Hypotheses
from t2t_lite.decoding.line_predictor import Translation
from t2t_lite.decoding.search_options import SearchOptions
from t2t_lite.decoding.steering import Steering
from t2t_lite.errors import InputError
from t2t_lite.tensor import NEG_INF
from t2t_lite.text.sentences import Splitting
from t2t_lite.translation.line_translator import LineTranslator

# The text of each id of a table; the three characters differ in their kind.
TEXTS = [b"", b"", b" ", b" a", b"a", b"."]
TOKENS = range(2, len(TEXTS))
T, ALPHA, COUNT = 4, 0.6, 12
OPTIONS = SearchOptions(len(TOKENS) ** T, ALPHA, max_extra_length=50)
# All texts of up to two characters.
PREFIXES = [
    "".join(letters).encode()
    for n in range(3)
    for letters in itertools.product(" a.", repeat=n)
]


def sequences(longest):
    """Returns all tuples of up to `longest` tokens other than EOS."""
    return [
        ids
        for n in range(longest + 1)
        for ids in itertools.product(TOKENS, repeat=n)
    ]


def text_of(ids):
    return b"".join(TEXTS[i] for i in ids if i != EOS)


def longest_tokens(text):
    """Returns the ids of a text: from the left, the longest tokens that fit."""
    ids = []
    while text:
        fits = [i for i in TOKENS if text.startswith(TEXTS[i])]
        ids.append(max(fits, key=lambda i: len(TEXTS[i])))
        text = text[len(TEXTS[ids[-1]]) :]
    return tuple(ids)


def follows(ids, begun):
    """Returns whether ids follow a prefix, up to a token that has its rest."""
    for n in range(len(begun)):
        if text_of(ids[n : n + 1]).startswith(text_of(begun[n:])):
            return True
        if ids[n : n + 1] != begun[n : n + 1]:
            return False
    return True


def begins_new(ids, token):
    """Returns whether a token begins something new after some ids."""
    last, first = text_of(ids)[-1:], TEXTS[token][:1]
    return token == EOS or (last not in (b"", b" ") and first != last)


def is_one_word(path, begun):
    """Returns whether all that a path adds to a prefix is one word."""
    return not any(
        begins_new(path[:n], path[n])
        for n in range(len(path))
        if len(text_of(path[:n])) > len(text_of(begun))
    )


def next_words(table_NV, begun):
    """Returns the paths to all next words after a prefix, likeliest first.

    Each is a tuple of ids, with EOS if the translation ends there.
    """
    found = {}
    for path in sequences(T - 1):
        if not (follows(path, begun) and is_one_word(path, begun)):
            continue
        is_over = len(text_of(path)) == len(text_of(begun))
        ends = [EOS] if is_over else [EOS, *TOKENS]
        total = sum(
            np.exp(log_prob(table_NV, (*path, end)))
            for end in ends
            if begins_new(path, end)
        )
        best = found.get(text_of(path), (0, ()))
        path = (*path, EOS) if is_over else path
        found[text_of(path)] = max(best, (total, path))
    return [path for _, path in sorted(found.values(), reverse=True)]


def best_end(table_NV, path):
    """Returns (score, ids) of the best translation that begins with a path."""
    rests = [()]
    if path[-1:] != (EOS,):
        rests = [(*ids, EOS) for ids in sequences(T - len(path) - 1)]
    return max(
        (
            log_prob(table_NV, path + rest)
            / reference.length_penalty(len(path + rest), ALPHA),
            path + rest,
        )
        for rest in rests
        if not rest or begins_new(path, rest[0])
    )


def table_translator(table_NV):
    """Returns a function like `ids_translator`, with a table as its model."""

    def make(options, constraint, given):
        def translate(ids, places_BK3):
            B = int(ids.nrows())
            batch = SearchBatch(
                source_ids_BS=ids.to_tensor(),
                max_lengths_B=ops.convert_to_tensor(np.full(B, T, "int32")),
                max_length=T,
                beam_width=options.beam_width,
                num_target_ids=len(TEXTS),
                prefixes_BK3=places_BK3,
            )
            found = search(
                np.repeat(table_NV[None], B, axis=0),
                [T] * B,
                constraint=constraint(batch),
                beam_width=options.beam_width,
                num_best=options.nbest,
                alpha=options.length_penalty,
            )
            return Hypotheses(*map(tf.constant, found))

        assert given == ("prefixes_BK3",)
        return translate

    return make


def test_the_likeliest_next_words_behind_every_prefix_have_their_best_ends():
    (table_NV,) = random_table(seed=3, batch_size=1, V=len(TEXTS), T=T)
    table_NV[:, 0] = NEG_INF  # Padding.
    alternatives = AlternativesSearch(
        table_translator(table_NV),
        OPTIONS,
        Steering(OPTIONS, types.SimpleNamespace(token_bytes=TEXTS)),
    )
    begun = [*map(longest_tokens, PREFIXES)]
    found = alternatives(
        tf.ragged.constant([[EOS]] * len(begun), tf.int32),
        tf.ragged.constant(begun, tf.int32).to_tensor(),
        COUNT,
    )
    assert found.ids_BWT.shape[:2] == (len(PREFIXES), COUNT)
    counts = set()
    for n, prefix in enumerate(begun):
        words = next_words(table_NV, prefix)[:COUNT]
        expected = [best_end(table_NV, path) for path in words]
        ids = [*map(without_padding, found.ids_BWT[n].numpy())]
        assert ids[: len(words)] == [ids for _, ids in expected]
        scores = found.scores_BW[n].numpy()
        np.testing.assert_allclose(
            scores[: len(words)], [score for score, _ in expected], rtol=1e-5
        )
        assert np.all(scores[len(words) :] == -np.inf)
        assert not np.any(ids[len(words) :])
        counts.add(len(words))
    assert min(counts) < max(counts) == COUNT


def test_words_without_an_end_come_last():
    (table_NV,) = random_table(seed=3, batch_size=1, V=len(TEXTS), T=T)
    table_NV[:, 0] = NEG_INF  # Padding.
    steering = Steering(OPTIONS, types.SimpleNamespace(token_bytes=TEXTS))

    def without_some(options, **arguments):
        translate = table_translator(table_NV)(options, **arguments)

        def without_second_and_fifth(*given):
            ids_BWT, scores_BW = translate(*given)
            is_left_B = np.isin(np.arange(len(ids_BWT)), [1, 4])
            return Hypotheses(
                ops.where(is_left_B[:, None, None], 0, ids_BWT),
                ops.where(is_left_B[:, None], -np.inf, scores_BW),
            )

        return translate if options.nbest > 1 else without_second_and_fifth

    whole, found = (
        AlternativesSearch(make, OPTIONS, steering)(
            tf.ragged.constant([[EOS]], tf.int32), tf.zeros([1, 0], "int32"), 6
        )
        for make in (table_translator(table_NV), without_some)
    )
    left = [0, 2, 3, 5]
    for ours, theirs, missing in zip(found, whole, (0, -np.inf), strict=True):
        np.testing.assert_array_equal(ours[0, :4], ops.take(theirs[0], left, 0))
        assert np.all(ours[0, 4:] == missing)


def test_numbers_of_alternatives_share_searches():
    table_NV = random_table(seed=3, batch_size=1, V=len(TEXTS), T=T)[0]
    made = []

    def make(options, **arguments):
        made.append((options.beam_width, options.nbest))
        return table_translator(table_NV)(options, **arguments)

    alternatives = AlternativesSearch(
        make,
        OPTIONS._replace(beam_width=3),
        Steering(OPTIONS, types.SimpleNamespace(token_bytes=TEXTS)),
    )
    ids = tf.ragged.constant([[EOS]], tf.int32)
    for count in (1, 2, 3, 4, 1):
        found = alternatives(ids, tf.zeros([1, 0], tf.int32), count)
        assert found.ids_BWT.shape[1] == count
    ends, *words = made
    assert ends == (3, 1)
    assert words == [(3, 3), (4, 4), (8, 8)]


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
