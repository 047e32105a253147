"""Vocabularies lose no text, and their two tokenizers agree."""

import io
import itertools
import random
import sys

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from bilingual_text import CORPUS

from t2t_lite.errors import InputError
from t2t_lite.text import learning
from t2t_lite.text.vocabulary import Vocabulary
from t2t_lite.token_ids import EOS, PAD

KINDS = ("bpe", "unigram")
SIZE = 420

ODD_LINES = [
    "",
    "A dog läuft über den Fluss.",
    "Words never seen: Quetzalcóatl, zzyzx",
    " one space before",
    "one space after ",
    "  two  spaces   everywhere    ",
    " ",
    "   ",
    "\t",
    "tabs\tbetween\t\twords",
    "\x00",
    "a NUL\x00 inside",
    "a newline\n inside",
    "carriage\r\nreturn",
    "line\u2028separator\u2029s",
    "no-break\u00a0space, zero\u200bwidth, mark\ufeff",
    "e\u0301 is not é",
    "ﬁgure ½ Ⅷ ＡＢＣ",  # noqa: RUF001
    "🏳️‍🌈 👩🏽‍🚒 🎉",
    "Привет, мир! 你好，世界。 こんにちは हिन्दी ᚠᚢᚦ",  # noqa: RUF001
    "مرحبا بالعالم",
    "\U0010ffff \ud7ff \ufffd ▅ ⁇",
    "<unk> <s> </s> <pad> <0x41>",
]


@pytest.fixture(scope="module", params=KINDS)
def vocabulary(request):
    return learning.learn(CORPUS, request.param, SIZE)


@pytest.fixture(scope="module")
def bpe():
    return learning.learn(CORPUS, "bpe", SIZE)


def ids_of_op(vocabulary, lines):
    return vocabulary.encode_tensor(tf.constant(lines)).to_list()


# Text to ids and back.


@pytest.mark.parametrize("line", ODD_LINES)
def test_any_text_comes_back(vocabulary, line):
    assert vocabulary.decode(vocabulary.encode([line])) == [line]


def test_every_character_of_unicode_but_one_comes_back(vocabulary):
    code_points = [
        *range(0xD800),
        *range(0xE000, 0x10000),
        # Of the other planes, one character in 37 is enough.
        *range(0x10000, sys.maxunicode + 1, 37),
    ]
    characters = [chr(n) for n in code_points if n != 0x2581]
    lines = ["".join(characters[n::9001]) for n in range(9001)]
    assert vocabulary.decode(vocabulary.encode(lines)) == lines


def test_the_sign_for_a_space_comes_back_as_one(vocabulary):
    ids = vocabulary.encode(["a\u2581b", "\u2581"])
    assert vocabulary.decode(ids) == ["a b", " "]


def test_many_lines_come_back_in_order(vocabulary):
    assert vocabulary.decode(vocabulary.encode(CORPUS)) == CORPUS


def test_any_number_of_threads_gives_the_same_ids(bpe):
    lines = CORPUS + ODD_LINES
    alone = bpe.encode(lines, num_threads=1)
    assert bpe.encode(lines, num_threads=3) == alone


def sequences(ids, lengths):
    ends = np.cumsum(lengths).tolist()
    return [ids[a:b].tolist() for a, b in itertools.pairwise([0, *ends])]


@pytest.mark.parametrize("lines", [CORPUS + ODD_LINES, ["", "a", ""], [""], []])
def test_flat_ids_are_those_of_each_line_one_after_the_other(bpe, lines):
    ids, lengths = bpe.encode_flat(lines)
    assert (ids.dtype, lengths.dtype) == (np.int32, np.int64)
    assert len(ids) == sum(lengths)
    assert sequences(ids, lengths) == bpe.encode(lines)


def test_known_words_take_fewer_ids_than_bytes(vocabulary):
    line = "Zwei Hunde springt auf die Straße."
    assert len(vocabulary.encode([line])[0]) < len(line.encode()) * 2 / 3


# Ids.


def test_each_sequence_ends_in_eos_and_has_no_other_reserved_id(vocabulary):
    for ids in vocabulary.encode(CORPUS + ODD_LINES):
        assert ids[-1] == EOS
        assert min(ids[:-1], default=2) >= 2
        assert max(ids) < vocabulary.size


def test_piece_i_has_id_i_plus_2(bpe):
    processor = sentencepiece.SentencePieceProcessor(model_proto=bpe.model)
    for line in CORPUS[:7]:
        pieces = processor.encode(line, out_type=int)
        assert bpe.encode([line]) == [[i + 2 for i in pieces] + [1]]


def test_decoding_stops_at_eos_and_passes_over_padding(vocabulary):
    (two, dogs) = vocabulary.encode(["Two men", " the water"])
    assert vocabulary.decode([two + dogs]) == ["Two men"]
    assert vocabulary.decode([[PAD, *two[:-1], PAD, PAD]]) == ["Two men"]
    assert vocabulary.decode([[EOS], [], [PAD]]) == ["", "", ""]


def test_half_a_character_becomes_the_replacement_character(bpe):
    (ids,) = bpe.encode(["x𝄞"])
    assert bpe.decode([ids[:-2]])[0].startswith("x\ufffd")


def test_tokens_names_each_id(bpe):
    (ids,) = bpe.encode(["A dog 🎉"])
    *pieces, last = bpe.tokens([*ids[:-1], PAD, EOS])
    assert last == "</s>"
    assert pieces.pop() == "<pad>"
    assert pieces[-4:] == ["<0xF0>", "<0x9F>", "<0x8E>", "<0x89>"]
    assert "".join(pieces[:-4]) == "▁A▁dog▁"


# The operation of TensorFlow Text.


def test_the_op_gives_the_ids_of_the_library(vocabulary):
    shuffled = random.Random(3).sample(CORPUS, len(CORPUS))
    mixed = [f"{a} {b}" for a, b in zip(shuffled, CORPUS, strict=True)]
    for lines in (ODD_LINES, mixed):
        assert ids_of_op(vocabulary, lines) == vocabulary.encode(lines)


def test_the_op_gives_the_text_of_the_library(vocabulary):
    ids = vocabulary.encode_tensor(tf.constant(ODD_LINES)).to_tensor(PAD)
    texts = vocabulary.decode_tensor(ids).numpy()
    # The next test covers spaces at the start.
    assert [text.decode().lstrip(" ") for text in texts] == [
        line.lstrip(" ") for line in ODD_LINES
    ]


def test_the_op_keeps_spaces_at_the_start(vocabulary):
    lines = [" one space before", "   three", "  "]
    ids = vocabulary.encode_tensor(tf.constant(lines)).to_tensor(PAD)
    texts = vocabulary.decode_tensor(ids).numpy()
    assert [text.decode() for text in texts] == lines


def test_the_op_stops_at_eos_and_passes_over_padding(bpe):
    two, dogs = bpe.encode(["Two men", "the water"])
    rows = [[*two, *dogs], [PAD, *two[:-1], PAD], [EOS, *two]]
    ids = tf.ragged.constant(rows, dtype=tf.int32).to_tensor(PAD)
    texts = bpe.decode_tensor(ids).numpy().tolist()
    assert texts == [b"Two men", b"Two men", b""]


def test_the_op_works_in_a_graph(vocabulary):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def there_and_back(text):
        ids = vocabulary.encode_tensor(text)
        return ids, vocabulary.decode_tensor(ids.to_tensor(PAD))

    for lines in (["tabs\tand\x00 🎉", "", "мир"], CORPUS[:5]):
        ids, texts = there_and_back(tf.constant(lines))
        assert ids.to_list() == vocabulary.encode(lines)
        assert [text.decode() for text in texts.numpy()] == lines


def test_the_op_works_on_a_batch_of_no_lines(bpe):
    ids = bpe.encode_tensor(tf.constant([], tf.string))
    assert ids.to_list() == []
    assert bpe.decode_tensor(ids.to_tensor(PAD)).shape == (0,)


def test_the_op_works_in_a_dataset(vocabulary):
    dataset = (
        tf.data.Dataset.from_tensor_slices(ODD_LINES)
        .batch(5)
        .map(vocabulary.encode_tensor)
    )
    ids = [row for batch in dataset for row in batch.to_list()]
    assert ids == vocabulary.encode(ODD_LINES)


# Models and files from elsewhere.


def test_a_model_with_control_symbols_keeps_its_pieces_apart_from_ours():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=model,
        model_type="unigram",
        vocab_size=97,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    vocabulary = Vocabulary(model.getvalue())
    lines = [line for line in CORPUS if "—" not in line]
    ids = vocabulary.encode(lines)
    assert vocabulary.decode(ids) == lines
    assert ids_of_op(vocabulary, lines) == ids
    # 2 to 5 are its <pad>, <unk>, <s> and </s>.
    assert min(i for line in ids for i in line[:-1]) > 5
    assert vocabulary.tokens(range(2, 6)) == ["<pad>", "<unk>", "<s>", "</s>"]


@pytest.mark.parametrize("content", [b"a dog\na cat\n", b"\x00\x01\x02"])
def test_another_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "lines.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"lines\.txt is not a SentencePiece"):
        Vocabulary.load(path)


def test_an_empty_file_is_refused_by_name(tmp_path):
    path = tmp_path / "empty.model"
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"empty\.model"):
        Vocabulary.load(path)


def test_a_flipped_bit_gives_another_vocabulary_or_a_refusal(bpe):
    num_refused = 0
    for place in range(len(bpe.model)):
        model = bytearray(bpe.model)
        model[place] ^= 1 << place % 8
        try:
            assert Vocabulary(bytes(model)).sha256 != bpe.sha256
        except InputError:
            num_refused += 1
    assert num_refused > 0


def test_a_truncated_model_is_refused(tmp_path, bpe):
    path = tmp_path / "short.model"
    path.write_bytes(bpe.model[: len(bpe.model) // 2])
    with pytest.raises(InputError, match=r"short\.model"):
        Vocabulary.load(path)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=r"none\.model: No such file"):
        Vocabulary.load(tmp_path / "none.model")


# Saving.


def test_a_saved_vocabulary_loads_as_the_same(tmp_path, vocabulary):
    vocabulary.save(tmp_path / "v.model")
    loaded = Vocabulary.load(tmp_path / "v.model")
    assert loaded.sha256 == vocabulary.sha256
    assert loaded.encode(ODD_LINES) == vocabulary.encode(ODD_LINES)
    assert [path.name for path in tmp_path.iterdir()] == ["v.model"]


def test_hashes_tell_vocabularies_apart(bpe):
    other = learning.learn(CORPUS, "bpe", SIZE + 1)
    assert other.sha256 != bpe.sha256
    assert Vocabulary(bytes(bpe.model)).sha256 == bpe.sha256


def test_a_path_is_no_model():
    with pytest.raises(TypeError, match=r"Vocabulary\.load reads a file"):
        Vocabulary("vocabulary.model")


def test_tensors_are_encoded_after_a_change_of_the_random_seed(vocabulary):
    """A new seed clears TensorFlow's cache of operations, and what they own."""
    text = tf.constant(CORPUS[:9])
    encode = tf.function(
        lambda text: vocabulary.encode_tensor(text).to_tensor()
    )
    expected = encode(text)
    dataset = tf.data.Dataset.from_tensors(text).map(encode)
    for seed in range(2):
        tf.random.set_seed(seed)
        assert encode(text).numpy().tolist() == expected.numpy().tolist()
        (found,) = dataset
        assert found.numpy().tolist() == expected.numpy().tolist()
        decoded = vocabulary.decode_tensor(expected).numpy()
        assert [line.decode() for line in decoded] == CORPUS[:9]


def odd_ids(vocabulary, count):
    """Returns random ids, int32 [count, 4], almost all of them special."""
    names = dict(
        zip(
            vocabulary.tokens(range(vocabulary.size)),
            range(vocabulary.size),
            strict=True,
        )
    )
    special = ["<0x20>", "<0xC3>", "<0xA4>", "▁", "▁d", "▁t", "<unk>", "(S"]
    known = [names[name] for name in special if name in names]
    ids = np.array([PAD, EOS, *known, *range(2, 5), vocabulary.size - 1])
    return np.random.default_rng(0).choice(ids, (count, 4)).astype(np.int32)


@pytest.mark.parametrize("kind", KINDS)
def test_any_ids_are_the_same_text_in_a_graph(kind):
    vocabulary = learning.learn(CORPUS, kind, SIZE, symbols=["(S", ")S"])
    random_ids = np.random.default_rng(1).integers(0, vocabulary.size, (999, 4))
    ids = np.concatenate([odd_ids(vocabulary, 2999), random_ids])
    texts = vocabulary.decode_tensor(tf.constant(ids, tf.int32)).numpy()
    assert [text.decode() for text in texts] == vocabulary.decode(ids)


@pytest.mark.parametrize(
    ("lines", "received"),
    [
        ("A dog.", "'A dog.'"),
        (["a", 3], "3 at index 1"),
        ([b"a"], "b'a' at index 0"),
        ({"a": 1}, "{'a': 1}"),
        (5, "5"),
    ],
)
def test_what_is_no_list_of_str_is_not_encoded(bpe, lines, received):
    for encode in (bpe.encode, bpe.encode_flat):
        with pytest.raises(
            TypeError, match=f"list of str; received {received}"
        ):
            encode(lines)


@pytest.mark.parametrize("ids", [[5, 6, 1], [["a"]], 5])
def test_what_is_no_list_of_ids_is_not_decoded(bpe, ids):
    with pytest.raises(TypeError, match="sequences must be lists of ids"):
        bpe.decode(ids)


def test_no_sequences_are_decoded_to_none(bpe):
    assert bpe.decode([]) == []


def test_an_id_that_is_not_there_is_named(bpe):
    with pytest.raises(
        IndexError, match=f"from 0 to {bpe.size - 1}; received 5000"
    ):
        bpe.decode([[7], [5000, EOS]])


@pytest.mark.parametrize("wrong", [-3, 10**6, 2**40, -(2**40)])
def test_ids_that_are_none_are_not_decoded(wrong):
    vocabulary = learning.learn(["a b"], "bpe", 300)
    message = f"ids must be from 0 to {vocabulary.size - 1}; received {wrong}"
    with pytest.raises(IndexError, match=message):
        vocabulary.decode([[5, 6], [7, wrong]])
    with pytest.raises(IndexError, match=message):
        vocabulary.tokens([5, wrong])


def test_ids_that_are_no_integers_are_not_decoded():
    vocabulary = learning.learn(["a b"], "bpe", 300)
    with pytest.raises(TypeError, match="must be lists of ids, in a list"):
        vocabulary.decode([[5.7]])


def test_text_that_utf8_cannot_hold_is_refused():
    vocabulary = learning.learn(["a b"], "bpe", 300)
    with pytest.raises(InputError, match=r"'a\\ud800' at index 1"):
        vocabulary.encode(["a", "a\ud800"])


def test_no_id_ends_the_process_in_a_graph(bpe):
    size = bpe.size
    ids = tf.constant([[size, size - 1, 2**31 - 1, -(2**31)]])
    last = bpe.tokens([size - 1])[0].encode()
    first = bpe.tokens([2])[0].encode()
    found = bpe.tokens_tensor(ids).numpy().tolist()
    assert found == [[last, last, last, first]]


@pytest.mark.parametrize(
    "text", ["eins", tf.constant("eins"), tf.constant([["eins"]]), tf.range(3)]
)
def test_the_op_encodes_no_other_tensors(bpe, text):
    with pytest.raises(TypeError, match=r"must be a tensor of string \[B\]"):
        bpe.encode_tensor(text)


@pytest.mark.parametrize(
    "ids", [[[3, 1]], tf.constant([3, 1]), tf.constant([[3.0]])]
)
@pytest.mark.parametrize("name", ["decode_tensor", "tokens_tensor"])
def test_the_op_decodes_no_other_tensors(bpe, ids, name):
    message = r"ids_BT must be a tensor of int32 \[B, T\]; received"
    with pytest.raises(TypeError, match=message):
        getattr(bpe, name)(ids)


def test_targets_have_a_vocabulary_or_none(bpe):
    with pytest.raises(TypeError, match="must be a Vocabulary"):
        Vocabulary(bpe.model, target="x")


def test_no_path_is_no_vocabulary():
    with pytest.raises(TypeError, match="path must be a path; received None"):
        Vocabulary.load(None)


# Reserved symbols.


@pytest.fixture(scope="module", params=KINDS)
def tagged(request):
    return learning.learn(CORPUS, request.param, SIZE, reserved=["<bt>", "#x"])


def test_a_reserved_symbol_is_one_id_at_the_start_and_after_a_space(tagged):
    ids = tagged.reserved_ids(["<bt>", "#x", "<ft>"])
    assert list(ids) == ["<bt>", "#x"]
    bt, x = ids.values()
    plain, *encoded = tagged.encode(
        ["A dog.", "<bt> A dog.", "<bt>", "#x <bt> A dog."]
    )
    assert encoded == [[bt, *plain], [bt, EOS], [x, bt, *plain]]


def test_text_with_reserved_symbols_comes_back(tagged):
    lines = ["<bt> A dog.", " <bt>", "<bt>#x", "a<bt>b #xy", "<bt", "<BT>"]
    assert tagged.decode(tagged.encode(lines)) == lines


def test_the_op_keeps_reserved_symbols_whole(tagged):
    lines = ["<bt> A dog.", "#x <bt> läuft", "a<bt>b", "<bt>"]
    assert ids_of_op(tagged, lines) == tagged.encode(lines)


def test_others_reserved_symbols_are_found_too():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=model,
        vocab_size=200,
        hard_vocab_limit=False,
        user_defined_symbols=["<bt>"],
        minloglevel=2,
    )
    vocabulary = Vocabulary(model.getvalue())
    ids = vocabulary.reserved_ids(["<bt>", "<ft>"])
    assert vocabulary.tokens(ids.values()) == ["<bt>"]
