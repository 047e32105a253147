"""Attention maps have the model's weights and tokens, and can join words."""

import numpy as np
import pytest
import reference
from tiny_attention import softmax_of_noise
from tiny_translator import LEARNED, LINES, TINY, learn_vocabulary, random_model

from t2t_lite.decoding.search import SearchOptions
from t2t_lite.errors import InputError
from t2t_lite.token_ids import EOS
from t2t_lite.translation.line_translator import LineTranslator
from t2t_lite.visualization import maps as attention_maps
from t2t_lite.visualization.maps import AttentionMap, join_pieces, select

SOURCE, TARGET = LINES[1], LINES[4]


def tiny_translator(hparams=TINY):
    vocabulary = learn_vocabulary()
    return LineTranslator.from_model(
        random_model(hparams, vocabulary),
        vocabulary,
        SearchOptions.from_hparams(hparams),
        xla=False,
    )


@pytest.fixture(scope="module")
def translator():
    return tiny_translator()


@pytest.fixture(scope="module")
def maps(translator):
    return attention_maps.compute_maps(translator, SOURCE, TARGET)


def all_maps(maps):
    return [getattr(maps, kind) for kind in attention_maps.KINDS]


def weights_by_hand(monkeypatch, translator):
    """Returns the three weights_NHLM, the softmaxes of the NumPy reference.

    That computes the encoder's layers, head by head, then in each layer of the
    decoder the heads of self-attention and those of attention to the memory.
    """
    softmax, found = reference.softmax, []

    def recorded(x):
        found.append(softmax(x))
        return found[-1]

    monkeypatch.setattr(reference, "softmax", recorded)
    source, target = translator.vocabulary.encode([SOURCE, TARGET])
    reference.transformer(
        reference.weights_of(translator.model),
        TINY,
        np.array([source]),
        np.array([[EOS, *target[:-1]]]),
    )
    N, H = TINY.num_layers, TINY.num_heads
    of_encoder, of_decoder = found[: N * H], found[N * H :]
    layers = [of_decoder[n * 2 * H :][: 2 * H] for n in range(N)]
    return [
        np.reshape(of_encoder, (N, H, len(source), len(source))),
        np.array([layer[:H] for layer in layers]),
        np.array([layer[H:] for layer in layers]),
    ]


def test_weights_are_those_of_the_paper_in_numpy(monkeypatch, translator, maps):
    expected = weights_by_hand(monkeypatch, translator)
    for found, by_hand in zip(all_maps(maps), expected, strict=True):
        np.testing.assert_allclose(found.weights_NHLM, by_hand, atol=1e-5)
        assert found.weights_NHLM.dtype == np.float32


def test_rows_sum_to_1(maps):
    for found in all_maps(maps):
        sums = found.weights_NHLM.sum(axis=-1)
        np.testing.assert_allclose(sums, np.ones_like(sums), atol=1e-5)


def test_each_row_and_column_has_a_token(maps):
    for found in all_maps(maps):
        sizes = len(found.query_tokens), len(found.key_tokens)
        assert found.weights_NHLM.shape[2:] == sizes
    assert len(maps.encoder_self.key_tokens) != len(
        maps.decoder_self.key_tokens
    )


def test_decoder_self_attention_has_nothing_above_the_diagonal(maps):
    assert not np.triu(maps.decoder_self.weights_NHLM, 1).any()
    assert np.tril(maps.decoder_self.weights_NHLM).any(axis=(2, 3)).all()


def test_queries_of_the_decoder_are_what_it_predicts_keys_what_it_read(
    translator, maps
):
    (ids,) = translator.vocabulary.encode([TARGET])
    tokens = translator.vocabulary.tokens(ids)
    assert tokens[-1] == "</s>"
    assert maps.decoder_self.query_tokens == tokens
    assert maps.decoder_self.key_tokens == ["<s>", *tokens[:-1]]
    assert maps.encoder_decoder.query_tokens == tokens
    assert maps.encoder_decoder.key_tokens == maps.encoder_self.query_tokens
    assert maps.encoder_self.query_tokens == maps.encoder_self.key_tokens


def test_the_row_of_a_token_depends_on_the_tokens_before_it_alone(translator):
    source, target = translator.vocabulary.encode([SOURCE, TARGET])
    changed = [*target[:2], target[0], *target[3:]]
    assert changed[2] != target[2]
    before, after = (
        attention_maps.compute_maps_from_ids(
            translator.model,
            translator.vocabulary,
            source_ids=source,
            target_ids=ids,
        )
        for ids in (target, changed)
    )
    for kind in ("decoder_self", "encoder_decoder"):
        old, new = (
            getattr(maps, kind).weights_NHLM for maps in (before, after)
        )
        np.testing.assert_array_equal(old[:, :, :3], new[:, :, :3])
        assert np.abs(old[:, :, 3] - new[:, :, 3]).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in LINES if line])
def test_without_a_translation_it_is_the_translators(translator, line):
    maps = attention_maps.compute_maps(translator, line)
    assert maps.source == line
    assert maps.target == translator(line)
    # A hypothesis that never ended has no </s>.
    tokens = [t for t in maps.decoder_self.query_tokens if t != "</s>"]
    assert "".join(tokens).replace("\u2581", " ").strip() == maps.target.strip()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ((" \n",), "the sentence must have words"),
        ((SOURCE, ""), "the translation must have words"),
        (("the dog \udcff",), "the sentence must be UTF-8"),
        (("the " * 22 + "dog",), "at most the 23 tokens .* received 24"),
        (
            (SOURCE, "the " * 28 + "dog"),
            "the translation .* the 29 .* received 30",
        ),
    ],
)
def test_texts_that_the_model_does_not_take_are_refused(
    translator, texts, message
):
    with pytest.raises(InputError, match=message):
        attention_maps.compute_maps(translator, *texts)


def test_a_translation_of_the_largest_length_is_taken():
    for hparams, longest in ((TINY, 29), (LEARNED, 23)):
        target = "the " * (longest - 2) + "dog"
        maps = attention_maps.compute_maps(
            tiny_translator(hparams), SOURCE, target
        )
        assert len(maps.decoder_self.query_tokens) == longest


# Words instead of pieces.


QUERIES = ["▁(", "w", "ell", "-", "off", ")", ".", "▁it", "'", "s", "</s>"]
KEYS = ["<s>", "x", "▁", "<0xC3>", "<0xA4>", "▁...", "▁", "▁y", "!", "?"]
QUERY_WORDS = ["(", "well-off", ")", ".", "it's", "</s>"]
KEY_WORDS = ["<s>", "x", "ä", "...", "▁", "y", "!", "?"]


def map_of_pieces():
    weights_NHLM = softmax_of_noise(2, 3, len(QUERIES), len(KEYS))
    return AttentionMap(QUERIES, KEYS, weights_NHLM)


def test_words_are_what_stands_between_spaces_and_punctuation():
    joined = join_pieces(map_of_pieces())
    assert joined.query_tokens == QUERY_WORDS
    assert joined.key_tokens == KEY_WORDS


def test_joined_weights_are_means_over_queries_of_sums_over_keys():
    pieces, joined = map_of_pieces(), join_pieces(map_of_pieces())
    queries = [[0], [1, 2, 3, 4], [5], [6], [7, 8, 9], [10]]
    keys = [[0], [1], [2, 3, 4], [5], [6], [7], [8], [9]]
    for i, rows in enumerate(queries):
        for j, columns in enumerate(keys):
            expected = sum(
                pieces.weights_NHLM[:, :, row, column]
                for row in rows
                for column in columns
            ) / len(rows)
            np.testing.assert_allclose(
                joined.weights_NHLM[:, :, i, j], expected, atol=1e-6
            )


def test_rows_of_words_sum_to_1():
    sums = join_pieces(map_of_pieces()).weights_NHLM.sum(axis=-1)
    assert sums.shape == (2, 3, len(QUERY_WORDS))
    np.testing.assert_allclose(sums, np.ones_like(sums), atol=1e-5)


def test_words_of_one_piece_keep_their_weights(maps):
    joined = attention_maps.join_words(maps)
    assert joined.words_joined
    for before, after in zip(all_maps(maps), all_maps(joined), strict=True):
        np.testing.assert_array_equal(before.weights_NHLM, after.weights_NHLM)
        assert [t.lstrip("▁") for t in before.key_tokens] == after.key_tokens


def test_joining_changes_nothing_that_it_is_given():
    pieces = map_of_pieces()
    join_pieces(pieces)
    np.testing.assert_array_equal(
        pieces.weights_NHLM, map_of_pieces().weights_NHLM
    )


# What to show.


def test_all_heads_of_the_last_layer_are_selected_unless_told(maps):
    rows = list(range(len(maps.encoder_self.query_tokens)))
    assert select(maps, "encoder_self") == ("encoder_self", 1, [0, 1, 2], rows)
    chosen = select(maps, "decoder_self", layer=0, heads=[2, 0, 2])
    assert (chosen.layer, chosen.heads) == (0, [2, 0])


def test_every_occurrence_of_a_token_is_selected(maps):
    tokens = maps.encoder_self.query_tokens
    expected = [n for n, token in enumerate(tokens) if token == "▁the"]
    assert len(expected) == 2
    assert select(maps, "encoder_self", token="▁the").queries == expected


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"layer": 2}, "layer must be from 0 to 1 .* received layer=2"),
        ({"layer": -1}, "layer must be from 0 to 1"),
        ({"heads": [0, 3]}, "head must be from 0 to 2 .* received head=3"),
        (
            {"token": "the"},
            "'the' is not an attending token in encoder_self: .*▁the",
        ),
    ],
)
def test_what_there_is_not_cannot_be_selected(maps, choice, message):
    with pytest.raises(InputError, match=message):
        select(maps, "encoder_self", **choice)
