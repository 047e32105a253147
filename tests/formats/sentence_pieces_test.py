"""Reordered SentencePiece models give the same pieces the ids of a table."""

import io

import pytest
import sentencepiece
import tensorflow as tf
from bilingual_text import CORPUS

from t2t_lite.errors import InputError
from t2t_lite.formats.sentence_pieces import reordered
from t2t_lite.text.vocabulary import EOS, FIRST_PIECE, OUTSIDE, Vocabulary

LINES = [*CORPUS[:30], "", " two  spaces ", "Zzyzx!", "½ ﬁ"]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def model(request):
    """A model as other programs train it, with normalization and controls."""
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=trained,
        model_type=request.param,
        vocab_size=60,
        character_coverage=1.0,
        minloglevel=2,
    )
    return trained.getvalue()


def processor_of(model):
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return processor


def pieces_of(model):
    """Returns <unk>, then the pieces of text in reverse order."""
    processor = processor_of(model)
    names = [
        processor.id_to_piece(n)
        for n in range(processor.get_piece_size())
        if not processor.is_control(n) and not processor.is_unknown(n)
    ]
    return ["<unk>", *reversed(names)]


def ids_of_table(model, pieces, lines):
    """Returns the ids of other programs: pieces looked up in a table."""
    table = {name: n + FIRST_PIECE for n, name in enumerate(pieces)}
    unknown = table["<unk>"]
    return [
        [*(table.get(piece, unknown) for piece in line), EOS]
        for line in processor_of(model).encode(lines, out_type=str)
    ]


def test_ids_are_those_of_the_table(model):
    pieces = pieces_of(model)
    vocabulary = Vocabulary(reordered(model, pieces))
    expected = ids_of_table(model, pieces, LINES)
    assert vocabulary.encode(LINES) == expected
    assert vocabulary.encode_tensor(tf.constant(LINES)).to_list() == expected
    assert vocabulary.size == len(pieces) + FIRST_PIECE


def test_pieces_that_the_table_lacks_are_unknown(model):
    pieces = pieces_of(model)[:-15]
    vocabulary = Vocabulary(reordered(model, pieces))
    expected = ids_of_table(model, pieces, LINES)
    assert expected != ids_of_table(model, pieces_of(model), LINES)
    assert vocabulary.encode(LINES) == expected
    flat = vocabulary.encode_flat(LINES)
    assert flat.ids.tolist() == [i for ids in expected for i in ids]
    assert vocabulary.encode_tensor(tf.constant(LINES)).to_list() == expected
    assert vocabulary.size == len(pieces) + FIRST_PIECE
    with pytest.raises(IndexError, match=f"0 to {vocabulary.size - 1}"):
        vocabulary.decode([[vocabulary.size]])


def test_text_comes_back(model):
    vocabulary = Vocabulary(reordered(model, pieces_of(model)))
    lines = CORPUS[:30]
    assert vocabulary.decode(vocabulary.encode(lines)) == lines
    ids = tf.ragged.constant(vocabulary.encode(lines), tf.int32).to_tensor()
    decoded = vocabulary.decode_tensor(ids).numpy()
    assert [line.decode() for line in decoded] == lines


def test_a_language_token_is_one_piece(model):
    pieces = [*pieces_of(model), ">>deu<<", "never"]
    vocabulary = Vocabulary(reordered(model, pieces))
    plain, tagged = vocabulary.encode([CORPUS[0], f">>deu<< {CORPUS[0]}"])
    assert tagged == [len(pieces) - 2 + FIRST_PIECE, *plain]
    ids = vocabulary.encode_tensor(tf.constant([f">>deu<< {CORPUS[0]}"]))
    assert ids.to_list() == [tagged]


def test_an_unknown_character_is_looked_up(model):
    """Other programs look up the text that SentencePiece does not know."""
    lines = ["a Ж b", "Ж", "aЖ", *LINES]
    pieces = [*pieces_of(model), "Ж", "▁Ж", "ЖЖ"]
    found = Vocabulary(reordered(model, pieces)).encode(lines)
    assert found == ids_of_table(model, pieces, lines)
    assert len(pieces) - 3 + FIRST_PIECE in found[1]


def test_a_graph_drops_the_spaces_that_python_drops(model):
    """Of a space piece and then a word, SentencePiece strips both spaces."""
    pieces = pieces_of(model)
    assert "▁" in pieces
    vocabulary = Vocabulary(reordered(model, pieces))
    space = pieces.index("▁") + FIRST_PIECE
    (ids,) = vocabulary.encode([CORPUS[0]])
    sequences = [[space, *ids], [space, space, *ids], ids]
    expected = vocabulary.decode(sequences)
    padded = tf.ragged.constant(sequences, tf.int32).to_tensor()
    found = vocabulary.decode_tensor(padded).numpy()
    assert [text.decode() for text in found] == expected


def test_a_piece_that_no_text_has_is_still_decoded(model):
    vocabulary = Vocabulary(reordered(model, [*pieces_of(model), "▁never"]))
    assert vocabulary.decode([[vocabulary.size - 1]]) == ["never"]


def test_what_is_reordered_can_be_reordered_again(model):
    pieces = pieces_of(model)[:-15]
    once = reordered(model, pieces)
    names = [p for p in pieces_of(once) if p != "<unk>"]
    assert OUTSIDE not in names
    twice = Vocabulary(reordered(once, pieces))
    assert twice.encode(LINES) == Vocabulary(once).encode(LINES)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (["a", "<unk>"], "the first piece must be <unk>; received first='a'"),
        ([], "the first piece must be <unk>; received first=None"),
        (["<unk>", "a", "a"], "pieces must be different; received repeated=1"),
    ],
)
def test_a_table_that_is_none_is_refused(model, pieces, message):
    with pytest.raises(InputError, match=message):
        reordered(model, pieces)


def test_what_is_no_model_is_refused():
    with pytest.raises(InputError, match="not a SentencePiece model"):
        reordered(b"\xff\xff", ["<unk>"])
