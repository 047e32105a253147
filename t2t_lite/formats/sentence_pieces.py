"""SentencePiece models in the order of another program's ids.

Such programs keep a SentencePiece model that segments text, and next to it a
table of ids for the pieces. Here piece n of the model is id n + 2, everywhere:
in Python, in graphs and in exports. So the model is rewritten with its pieces
in the table's order; how it segments a text does not depend on that.
"""

from collections.abc import Sequence

from sentencepiece import sentencepiece_model_pb2

from t2t_lite.errors import InputError, require
from t2t_lite.text.vocabulary import (
    OUTSIDE,
    SPACE,
    Vocabulary,
    is_language_token,
)

UNKNOWN = "<unk>"

_Model = sentencepiece_model_pb2.ModelProto
_Piece = _Model.SentencePiece


def parse(model: bytes) -> _Model:
    """Returns a SentencePiece model as a protocol buffer.

    Raises:
        InputError: the bytes are not one.
    """
    try:
        proto = _Model.FromString(model)
    except Exception:  # protobuf's DecodeError; protobuf is not imported here.
        proto = _Model()
    if not proto.pieces:
        raise InputError("the vocabulary is not a SentencePiece model")
    return proto


def reordered(model: bytes, pieces: Sequence[str]) -> bytes:
    """Returns the SentencePiece model whose pieces begin with these.

    Pieces that the model does not have are never part of a text, with two
    exceptions. A language token such as `>>deu<<` is one piece where it begins
    a line or follows a space. A character that is in none of the model's pieces
    is one piece too: such programs look up what SentencePiece does not know.
    (They look up a run of such characters as a whole.) Pieces that only the
    model has are put after a control piece, `vocabulary.OUTSIDE`, and are
    unknown; its own control symbols are left out.

    Args:
        model: a serialized SentencePiece model.
        pieces: str, the first of them "<unk>".

    Raises:
        InputError: a piece occurs twice, or the first is not "<unk>".
    """
    pieces = list(pieces)
    require(
        "the first piece must be <unk>",
        pieces[:1] == [UNKNOWN],
        first=pieces[0] if pieces else None,
    )
    twice = len(pieces) - len(set(pieces))
    require("pieces must be different", not twice, repeated=twice)
    proto = parse(model)
    own = {
        UNKNOWN if piece.type == _Piece.UNKNOWN else piece.piece: piece
        for piece in proto.pieces
        if piece.type != _Piece.CONTROL
    }
    outside = [own[name] for name in own.keys() - set(pieces)]
    characters = set("".join(own.keys() - {UNKNOWN}))
    has_bytes = any(piece.type == _Piece.BYTE for piece in own.values())
    least = min(piece.score for piece in own.values())
    ordered = [
        own.get(name)
        or _foreign(name, None if has_bytes else characters, least)
        for name in pieces
    ]
    if outside:
        ordered.append(_Piece(piece=OUTSIDE, type=_Piece.CONTROL))
        ordered += sorted(outside, key=lambda piece: piece.piece)
    return _with_pieces(proto, ordered)


def _with_pieces(proto: _Model, pieces: list[_Piece]) -> bytes:
    """Returns a serialized model that has these pieces, in this order."""
    new = _Model()
    new.CopyFrom(proto)
    del new.pieces[:]
    new.pieces.extend(pieces)
    for n, piece in enumerate(new.pieces):
        if piece.type == _Piece.UNKNOWN:
            new.trainer_spec.unk_id = n
            new.trainer_spec.unk_piece = piece.piece
    # No piece begins, ends or pads a sentence: ids below 2 do.
    new.trainer_spec.bos_id = -1
    new.trainer_spec.eos_id = -1
    new.trainer_spec.pad_id = -1
    new.trainer_spec.vocab_size = len(new.pieces)
    return new.SerializeToString(deterministic=True)


def _foreign(name: str, characters: set[str] | None, score: float) -> _Piece:
    """Returns a piece that the SentencePiece model does not have.

    Args:
        name: of the piece.
        characters: those that are in pieces of the model; None for all.
        score: the lowest score of the model's pieces.
    """
    if is_language_token(name):
        return _Piece(piece=SPACE + name, type=_Piece.USER_DEFINED)
    is_known = characters is None or name in characters
    if len(name) == 1 and not is_known:
        return _Piece(piece=name, score=score, type=_Piece.NORMAL)
    return _Piece(piece=name, type=_Piece.UNUSED)


def join(source: bytes, target: bytes) -> Vocabulary:
    """Returns the Vocabulary of both sides' models, which may be the same."""
    if source == target:
        return Vocabulary(source)
    return Vocabulary(source, target=Vocabulary(target))


def kind_of(vocabulary: Vocabulary) -> str:
    """Returns "unigram" or "bpe", as in HParams."""
    proto = parse(vocabulary.model)
    spec = proto.trainer_spec
    return "unigram" if spec.model_type == spec.UNIGRAM else "bpe"
