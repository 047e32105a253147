"""What every head attends to in one pair of sentences: the weights, as arrays.

Nothing is drawn here; `attention_page` and `attention_figures` do that.
"""

import itertools
import re
import unicodedata
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from keras import ops

from t2t_lite.decoding import search as decoding
from t2t_lite.errors import InputError
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import shift_right
from t2t_lite.token_ids import PAD

START, END = "<s>", "</s>"
_SPACE = "\u2581"  # What SentencePiece writes for a space.
_BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


class AttentionMap(NamedTuple):
    """One kind of attention, in all N layers and H heads.

    Each row of a head's matrix sums to 1.
    """

    query_tokens: list  # L of str, what the rows belong to
    key_tokens: list  # M of str, what the columns belong to
    weights_NHLM: np.ndarray  # float32


class AttentionMaps(NamedTuple):
    """All attention of the model between a source and its translation.

    A position of the decoder has read a token and predicts the next one. As a
    query it goes by the token that it predicts, as a key by the one that it
    has read: its input is the translation shifted right, so that the query of
    target token t attends to <s> and the target tokens before t, never to t.
    (The model is given </s> where <s> stands here.)
    """

    source: str
    target: str
    encoder_self: AttentionMap  # [N, H, S, S]
    decoder_self: AttentionMap  # [N, H, T, T]
    encoder_decoder: AttentionMap  # [N, H, T, S]
    is_in_words: bool = False


class Kind(NamedTuple):
    """What to call a kind of attention, its queries and its keys."""

    title: str
    query: str
    key: str
    caption: str
    caption_of_words: str = ""  # more, where words are joined


_PREDICTED = "token predicted"
KINDS = {
    "encoder_self": Kind(
        "Encoder self-attention",
        *("source token", "source token"),
        "Each token of the source attends to all tokens of the source.",
    ),
    "decoder_self": Kind(
        "Decoder self-attention",
        *(_PREDICTED, "token read"),
        "Each position of the decoder attends to the tokens that it has read. "
        "It stands on the left under the token that it predicts: the decoder "
        "reads the translation shifted right by one, so that the position "
        "that predicts a token has read <s> and the tokens before that one, "
        "and not the token itself.",
        " A word of several pieces can attend to its own first ones.",
    ),
    "encoder_decoder": Kind(
        "Encoder-decoder attention",
        *(_PREDICTED, "source token"),
        "Each position of the decoder attends to all tokens of the source. It "
        "stands on the left under the token that it predicts; it has read the "
        "tokens before that one, and not the token itself.",
    ),
}
IN_WORDS = (
    " The pieces of a word are joined to one token: weights are averaged over "
    "the pieces that attend, and added up over those that are attended to."
)


class Selection(NamedTuple):
    """The part of the maps that a picture shows."""

    kind: str  # one of KINDS
    layer: int  # from 0
    heads: list  # of int, from 0
    queries: list  # of int, the rows whose lines are drawn


def of_sentence(translator, sentence, translation=None):
    """Returns the AttentionMaps of a sentence and its translation.

    Args:
        translator: Translator with a model in memory.
        sentence: str.
        translation: str; when not given, what the translator finds.

    Raises:
        InputError: a text is blank, or too long for the model.
    """
    model, longest = translator.model, translator.max_length
    source_ids = _ids(translator.vocabulary, "sentence", sentence, longest)
    if translation is None:
        target_ids = _translate(translator, source_ids)
    else:
        longest = decoding.max_target_length(
            model.hparams, longest, translator.options
        )
        target_ids = _ids(
            translator.vocabulary, "translation", translation, longest
        )
    return of_ids(model, translator.vocabulary, source_ids, target_ids)


def _ids(vocabulary, name, text, longest):
    """Returns the ids of a text, EOS at its end."""
    if not text.strip():
        raise InputError(f"the {name} must have words; received {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"the {name} must be UTF-8; received {text!r}"
        ) from None
    (ids,) = vocabulary.encode([text], num_threads=1)
    if len(ids) > longest:
        raise InputError(
            f"the {name} must have at most the {longest} tokens that this "
            f"model takes; received {len(ids)}"
        )
    return ids


def _translate(translator, source_ids):
    """Returns the best translation's ids, EOS at its end if it came to one."""
    ids = tf.ragged.constant([source_ids], tf.int32)
    ids_T = translator.translate_ids(ids).ids_BWT[0, 0].numpy()
    return ids_T[ids_T != PAD].tolist()


def of_ids(model, vocabulary, source_ids, target_ids):
    """Returns the AttentionMaps of one teacher-forced pass of the model.

    Args:
        model: Transformer.
        vocabulary: Vocabulary.
        source_ids: list of S int, EOS at its end.
        target_ids: list of T int, EOS at its end if it is whole.
    """
    source_ids_BS, target_ids_BT = (
        np.array([ids], "int32") for ids in (source_ids, target_ids)
    )
    with record_weights() as weights:
        model((source_ids_BS, shift_right(target_ids_BT)))

    def stacked(layers, name):
        paths = (getattr(layer, name).path for layer in layers)
        return np.stack([ops.convert_to_numpy(weights[p])[0] for p in paths])

    encoder, decoder = model.encoder.layers, model.decoder.layers
    source, predicted = map(vocabulary.tokens, (source_ids, target_ids))
    read = [START, *predicted[:-1]]
    return AttentionMaps(
        *vocabulary.decode([source_ids, target_ids]),
        AttentionMap(source, source, stacked(encoder, "self_attention")),
        AttentionMap(predicted, read, stacked(decoder, "self_attention")),
        AttentionMap(predicted, source, stacked(decoder, "memory_attention")),
    )


# Words instead of pieces.


def in_words(maps):
    """Returns the AttentionMaps with `joined_to_words` done to each kind."""
    joined = {kind: joined_to_words(getattr(maps, kind)) for kind in KINDS}
    return maps._replace(is_in_words=True, **joined)


def joined_to_words(attention_map):
    """Returns an AttentionMap in which the pieces of each word are one token.

    Weights are averaged over the pieces of the query's word and added up over
    those of the key's: what a word's pieces attend to on average, and what
    goes to any piece of a word. So rows still sum to 1.

    A word is what stands between spaces, without the punctuation at its ends;
    each piece of that is a word by itself, and so are <s> and </s>.

    Args:
        attention_map: AttentionMap of SentencePiece's pieces.

    >>> pieces = ["▁it", "▁r", "uns"]
    >>> weights_LM = np.array([[2, 1, 1], [2, 2, 0], [0, 1, 3]]) / 4
    >>> words = joined_to_words(
    ...     AttentionMap(pieces, pieces, weights_LM[None, None])
    ... )
    >>> words.key_tokens
    ['it', 'runs']
    >>> words.weights_NHLM[0, 0].tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    query_tokens, key_tokens, weights_NHLM = attention_map
    queries, keys = _word_starts(query_tokens), _word_starts(key_tokens)
    weights_NHLM = np.add.reduceat(weights_NHLM, keys, axis=3)
    weights_NHLM = np.add.reduceat(weights_NHLM, queries, axis=2)
    num_pieces_L = np.diff([*queries, len(query_tokens)])
    weights_NHLM /= num_pieces_L[:, None].astype(weights_NHLM.dtype)
    return AttentionMap(
        _words(query_tokens, queries), _words(key_tokens, keys), weights_NHLM
    )


def _word_starts(pieces):
    """Returns the index of the first piece of each word.

    >>> _word_starts(["<s>", "▁(", "w", "ell", "-", "off", ")", ".", "▁x"])
    [0, 1, 2, 6, 7, 8]
    """
    after_spaces = [
        n
        for n, piece in enumerate(pieces)
        if n == 0 or piece[0] == _SPACE or {piece, pieces[n - 1]} & {START, END}
    ]
    starts = []
    for start, end in itertools.pairwise([*after_spaces, len(pieces)]):
        inner = [n for n in range(start, end) if not _is_punctuation(pieces[n])]
        first, last = (inner[0], inner[-1]) if inner else (end, end)
        starts += [n for n in range(start, end) if n <= first or n > last]
    return starts


def _is_punctuation(piece):
    characters = piece.lstrip(_SPACE)
    return characters != "" and all(
        unicodedata.category(c)[0] == "P" for c in characters
    )


def _words(pieces, starts):
    """Returns the text of each word, given its pieces' starts."""
    return [
        _text("".join(pieces[start:end]))
        for start, end in itertools.pairwise([*starts, len(pieces)])
    ]


def _text(joined):
    """Returns joined pieces as text: without the space, bytes as characters.

    >>> _text("▁<0xC3><0xA4>h")
    'äh'
    """
    text = joined.lstrip(_SPACE) or joined
    return _BYTES.sub(
        lambda found: bytes.fromhex(
            found[0].replace("<0x", "").replace(">", "")
        ).decode("utf-8", "replace"),
        text,
    )


# What to show.


def select(maps, kind, layer=None, heads=None, token=None):
    """Returns the Selection of what the user chose.

    Args:
        maps: AttentionMaps.
        kind: str, one of KINDS.
        layer: int, from 0; the last when not given.
        heads: list of int, from 0; all when not given.
        token: str, the query whose lines are drawn; all when not given.

    Raises:
        InputError: there is no such layer, head or token.
    """
    chosen = getattr(maps, kind)
    N, H, L, _ = chosen.weights_NHLM.shape
    layer = N - 1 if layer is None else layer
    heads = list(dict.fromkeys(heads or range(H)))
    for name, received, most in (
        ("layer", layer, N - 1),
        *(("head", head, H - 1) for head in heads),
    ):
        if not 0 <= received <= most:
            raise InputError(
                f"{name} must be from 0 to {most} for this model; received "
                f"{name}={received}"
            )
    queries = [
        n for n in range(L) if token is None or chosen.query_tokens[n] == token
    ]
    if not queries:
        raise InputError(
            f"no token {token!r} attends in {kind}: those that do are "
            f"{' '.join(chosen.query_tokens)}"
        )
    return Selection(kind, layer, heads, queries)
