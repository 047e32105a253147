"""What every head attends to in one pair of sentences: the weights, as arrays.

Nothing is drawn here; `page` and `figures` do that.
"""

import itertools
import re
import unicodedata
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from keras import ops

from t2t_lite.decoding.ensemble import only_model
from t2t_lite.decoding.search import max_target_length
from t2t_lite.errors import InputError, require_index
from t2t_lite.model.multi_head_attention import record_weights
from t2t_lite.model.transformer import Transformer, shift_right
from t2t_lite.text.vocabulary import SPACE, Vocabulary
from t2t_lite.token_ids import PAD
from t2t_lite.translation.line_translator import LineTranslator

START, END = "<s>", "</s>"
_BYTE_PIECES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


class AttentionMap(NamedTuple):
    """One kind of attention, in all N layers and H heads.

    Each row of a head's matrix sums to 1.
    """

    query_tokens: list[str]  # L, what the rows belong to
    key_tokens: list[str]  # M, what the columns belong to
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
    words_joined: bool = False  # whether each token is a whole word


class Kind(NamedTuple):
    """What to call a kind of attention, its queries and its keys."""

    title: str
    query: str
    key: str
    caption: str
    words_caption: str = ""  # more, if words are joined


KINDS = {
    "encoder_self": Kind(
        title="Encoder self-attention",
        query="source token",
        key="source token",
        caption="Each token of the source attends to all tokens of the source.",
    ),
    "decoder_self": Kind(
        title="Decoder self-attention",
        query="token predicted",
        key="token read",
        caption="Each position of the decoder attends to the tokens that it "
        "has read. It stands on the left under the token that it predicts: the "
        "decoder reads the translation shifted right by one, so that the "
        "position that predicts a token has read <s> and the tokens before "
        "that one, and not the token itself.",
        words_caption=" A word of several pieces can attend to its own earlier "
        "pieces.",
    ),
    "encoder_decoder": Kind(
        title="Encoder-decoder attention",
        query="token predicted",
        key="source token",
        caption="Each position of the decoder attends to all tokens of the "
        "source. It stands on the left under the token that it predicts; it "
        "has read the tokens before that one, and not the token itself.",
    ),
}
WORDS_CAPTION = (
    " The pieces of a word are joined into one token: weights are averaged "
    "over the pieces that attend, and summed over those attended to."
)


class Selection(NamedTuple):
    """The part of the maps that a picture shows."""

    kind: str  # one of KINDS
    layer: int  # from 0
    heads: list[int]  # from 0
    queries: list[int]  # the rows whose lines are drawn


def compute_maps(
    translator: LineTranslator, sentence: str, translation: str | None = None
) -> AttentionMaps:
    """Returns the AttentionMaps of a sentence and its translation.

    Args:
        translator: LineTranslator with a model in memory.
        sentence: str.
        translation: str; when not given, what the translator finds.

    Raises:
        InputError: a text is blank, or too long for the model.
    """
    model = only_model(translator.model)
    vocabulary = translator.vocabulary
    source_ids = _encode(
        vocabulary, sentence, "sentence", max_length=translator.max_length
    )
    if translation is None:
        target_ids = _translate(translator, source_ids)
    else:
        target_ids = _encode(
            vocabulary.target,
            translation,
            "translation",
            max_length=max_target_length(
                model.hparams, translator.max_length, translator.options
            ),
        )
    return compute_maps_from_ids(
        model, vocabulary, source_ids=source_ids, target_ids=target_ids
    )


def _encode(
    vocabulary: Vocabulary, text: str, name: str, *, max_length: int
) -> list[int]:
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
    if len(ids) > max_length:
        raise InputError(
            f"the {name} must have at most the {max_length} tokens that this "
            f"model takes; received {len(ids)}"
        )
    return ids


def _translate(translator: LineTranslator, source_ids: list[int]) -> list[int]:
    """Returns the best translation's ids, with EOS at its end if it ended."""
    ids = tf.ragged.constant([source_ids], tf.int32)
    ids_T = np.asarray(translator.translate_ids(ids).ids_BWT[0, 0])
    return ids_T[ids_T != PAD].tolist()


def compute_maps_from_ids(
    model: Transformer,
    vocabulary: Vocabulary,
    *,
    source_ids: list[int],
    target_ids: list[int],
) -> AttentionMaps:
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

    def stack(attention_layers):
        return np.stack(
            [
                ops.convert_to_numpy(weights[layer.path])[0]
                for layer in attention_layers
            ]
        )

    encoder, decoder = model.encoder.layers, model.decoder.layers
    source_tokens = vocabulary.tokens(source_ids)
    predicted_tokens = vocabulary.target.tokens(target_ids)
    (source,) = vocabulary.decode([source_ids])
    (target,) = vocabulary.target.decode([target_ids])
    return AttentionMaps(
        source,
        target,
        encoder_self=AttentionMap(
            source_tokens,
            source_tokens,
            stack([layer.self_attention for layer in encoder]),
        ),
        decoder_self=AttentionMap(
            predicted_tokens,
            [START, *predicted_tokens[:-1]],
            stack([layer.self_attention for layer in decoder]),
        ),
        encoder_decoder=AttentionMap(
            predicted_tokens,
            source_tokens,
            stack([layer.memory_attention for layer in decoder]),
        ),
    )


# Words instead of pieces.


def join_words(maps: AttentionMaps) -> AttentionMaps:
    """Returns the AttentionMaps with `join_pieces` applied to each kind."""
    joined = {kind: join_pieces(getattr(maps, kind)) for kind in KINDS}
    return maps._replace(words_joined=True, **joined)


def join_pieces(attention_map: AttentionMap) -> AttentionMap:
    """Returns an AttentionMap in which the pieces of each word are one token.

    Weights are averaged over the pieces of the query's word and added up over
    those of the key's: what a word's pieces attend to on average, and what
    goes to any piece of a word. So rows still sum to 1.

    A word is what stands between spaces, without the punctuation at its ends;
    each piece of punctuation is a word by itself, and so are <s> and </s>.

    Args:
        attention_map: AttentionMap of SentencePiece's pieces.

    >>> pieces = ["▁it", "▁r", "uns"]
    >>> weights_LM = np.array([[2, 1, 1], [2, 2, 0], [0, 1, 3]]) / 4
    >>> words = join_pieces(
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


def _word_starts(pieces: list[str]) -> list[int]:
    """Returns the index of the first piece of each word.

    >>> _word_starts(["<s>", "▁(", "w", "ell", "-", "off", ")", ".", "▁x"])
    [0, 1, 2, 6, 7, 8]
    """
    after_spaces = [
        n
        for n, piece in enumerate(pieces)
        if n == 0 or piece[0] == SPACE or {piece, pieces[n - 1]} & {START, END}
    ]
    starts = []
    for start, end in itertools.pairwise([*after_spaces, len(pieces)]):
        inner = [n for n in range(start, end) if not _is_punctuation(pieces[n])]
        first, last = (inner[0], inner[-1]) if inner else (end, end)
        starts += [n for n in range(start, end) if n <= first or n > last]
    return starts


def _is_punctuation(piece: str) -> bool:
    characters = piece.lstrip(SPACE)
    return characters != "" and all(
        unicodedata.category(c)[0] == "P" for c in characters
    )


def _words(pieces: list[str], starts: list[int]) -> list[str]:
    """Returns the text of each word, given its pieces' starts."""
    return [
        _text("".join(pieces[start:end]))
        for start, end in itertools.pairwise([*starts, len(pieces)])
    ]


def _text(joined: str) -> str:
    """Returns joined pieces as text: without the space, bytes as characters.

    >>> _text("▁<0xC3><0xA4>h")
    'äh'
    """
    text = joined.lstrip(SPACE) or joined
    return _BYTE_PIECES.sub(
        lambda found: bytes.fromhex(
            found[0].replace("<0x", "").replace(">", "")
        ).decode("utf-8", "replace"),
        text,
    )


# What to show.


def select(
    maps: AttentionMaps,
    kind: str,
    *,
    layer: int | None = None,
    heads: list[int] | None = None,
    token: str | None = None,
) -> Selection:
    """Returns the Selection of a kind, a layer, heads and queries.

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
    require_index(N, layer=layer)
    for head in heads:
        require_index(H, head=head)
    queries = [
        n for n in range(L) if token is None or chosen.query_tokens[n] == token
    ]
    if not queries:
        raise InputError(
            f"{token!r} is not an attending token in {kind}: choose one of "
            f"{' '.join(chosen.query_tokens)}"
        )
    return Selection(kind, layer, heads, queries=queries)
