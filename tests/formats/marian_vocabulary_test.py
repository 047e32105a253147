"""Vocabularies of Marian's models give its pieces their ids."""

import numpy as np
import pytest
import tiny_marian
from marian_imports import assert_refused, marian_ids

from t2t_lite.formats import marian
from t2t_lite.text.vocabulary import SPACE


def write_with_map(folder, suffix, source=None, target=None, pieces=None):
    """Writes a tied model whose piece ids are in a YAML, JSON or text file."""
    pieces = pieces or tiny_marian.pieces_of(tiny_marian.SMALL)
    options = tiny_marian.options(
        len(pieces), len(pieces), tied_embeddings_all=True
    )
    arrays = tiny_marian.arrays(options)
    source = source or tiny_marian.SMALL
    tiny_marian.write(folder, options, arrays, source, target or source)
    tiny_marian.write_map(folder / f"vocab{suffix}", pieces)
    tiny_marian.write_config(folder, vocabs=[f"vocab{suffix}"] * 2)
    return options, arrays


@pytest.mark.parametrize("suffix", [".yml", ".json", ".txt"])
def test_a_map_gives_pieces_their_ids(tmp_path, suffix):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    shuffled = pieces[::-1]
    write_with_map(tmp_path, suffix, pieces=shuffled)
    vocabulary = marian.read(tmp_path).vocabulary
    assert vocabulary.target is vocabulary
    names = vocabulary.tokens(range(1, vocabulary.size))
    assert names == pieces[:2] + pieces[:1:-1]
    lines = list(tiny_marian.SOURCES)
    ids = marian_ids(tiny_marian.SMALL, lines)
    texts = [[pieces[i] for i in each] for each in ids]
    assert [vocabulary.tokens(each) for each in vocabulary.encode(lines)] == [
        [text if text in pieces else "<unk>" for text in each] for each in texts
    ]


def test_words_that_yaml_takes_for_other_things_are_pieces(tmp_path):
    pieces = ["</s>", "<unk>", "no", "1", "1.5", "null", "~", "<<", "=", "on"]
    path = tmp_path / "vocab.yml"
    path.write_text("".join(f"{p}: {i}\n" for i, p in enumerate(pieces)))
    write_with_map(tmp_path, ".json", pieces=pieces)
    tiny_marian.write_config(tmp_path, vocabs=["vocab.yml", "vocab.yml"])
    vocabulary = marian.read(tmp_path).vocabulary
    assert vocabulary.tokens(range(1, vocabulary.size)) == pieces


def test_pieces_without_an_id_are_unknown(tmp_path):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    pieces.remove(f"{SPACE}haus")
    write_with_map(tmp_path, ".yml", pieces=pieces)
    vocabulary = marian.read(tmp_path).vocabulary
    (ids,) = vocabulary.encode(["das haus"])
    expected = [SPACE, "d", "a", "s", "<unk>", "</s>"]
    assert vocabulary.tokens(ids) == expected
    assert vocabulary.size == len(pieces) + 1


def test_ids_beyond_the_matrix_are_unknown(tmp_path):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    write_with_map(tmp_path, ".yml", pieces=pieces[:30])
    tiny_marian.write_map(tmp_path / "vocab.yml", pieces)
    assert marian.read(tmp_path).vocabulary.size == 31


def test_names_of_nematus_are_those_of_marian(tmp_path):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    write_with_map(tmp_path, ".json", pieces=["eos", "UNK", *pieces[2:]])
    vocabulary = marian.read(tmp_path).vocabulary
    assert vocabulary.tokens([1, 2]) == ["</s>", "<unk>"]
    assert vocabulary.unknown_id == 2


def test_two_segmentations_may_share_one_map(tmp_path):
    pieces = tiny_marian.pieces_of(tiny_marian.SMALL)
    others = tiny_marian.pieces_of(tiny_marian.OTHER)
    pieces += [piece for piece in others if piece not in pieces]
    write_with_map(
        tmp_path,
        ".yml",
        tiny_marian.SMALL,
        target=tiny_marian.OTHER,
        pieces=[*pieces, ">>deu<<"],
    )
    (tmp_path / "target.spm").write_bytes(tiny_marian.OTHER)
    imported = marian.read(tmp_path)
    vocabulary, target = imported.vocabulary, imported.vocabulary.target
    assert target is not vocabulary
    assert target.size == vocabulary.size == len(pieces) + 2
    (ids,), (target_ids,) = vocabulary.encode(["das"]), target.encode(["das"])
    assert vocabulary.tokens(ids) == [SPACE, "d", "a", "s", "</s>"]
    assert target.tokens(target_ids) == [f"{SPACE}das", "</s>"]
    (ids,) = vocabulary.encode([">>deu<< das"])
    assert ids[0] == len(pieces) + 1
    assert any(">>deu<<" in line for line in imported.found)


def test_eos_and_unknown_may_have_any_ids(tmp_path):
    model = tiny_marian.spm(unknown=0, eos=2)
    size = len(tiny_marian.pieces_of(model))
    options = tiny_marian.options(size, size, tied_embeddings_all=True)
    arrays = tiny_marian.arrays(options)
    tiny_marian.write(tmp_path, options, arrays, model)
    imported = marian.read(tmp_path)
    embedding = imported.weights["transformer/embedding/logit_bias"]
    bias = arrays["decoder_ff_logit_out_b"][0]
    np.testing.assert_array_equal(embedding[1:4], bias[[2, 0, 1]])
    assert imported.vocabulary.tokens([1, 2]) == ["</s>", "<unk>"]
    vocabulary = imported.vocabulary
    ours = vocabulary.encode(list(tiny_marian.SOURCES))
    theirs = marian_ids(model, tiny_marian.SOURCES)
    names = tiny_marian.pieces_of(model)
    assert [vocabulary.tokens(ids) for ids in ours] == [
        [names[i] for i in ids] for ids in theirs
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"</s>": 0, "<unk>": 1, "a": 3}', "from 0 to 2, without gaps"),
        ('{"</s>": 0, "<unk>": 1, "a": 1}', "an id of its own"),
        ('{"</s>": 0, "a": 1}', "must have a piece <unk>"),
        ('{"</s>": "x"}', "this one is damaged"),
        ("[1, 2]", "this one is damaged"),
        ('{"</s>": 0', "this one is damaged"),
        ("[" * 100_000, "this one is damaged"),
    ],
)
@pytest.mark.parametrize("suffix", [".json", ".yml"])
def test_a_map_that_is_none_is_refused(tied, text, says, suffix):
    (tied / f"vocab{suffix}").write_text(text)
    tiny_marian.write_config(tied, vocabs=[f"vocab{suffix}"] * 2)
    assert_refused(tied, f"vocab{suffix}", says)
