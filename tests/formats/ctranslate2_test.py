"""A model written for CTranslate2 gives the same translations and scores."""

import dataclasses
import json
import os
import re

import numpy as np
import pytest
import sentencepiece
from tiny_ctranslate2 import VARIANTS, random_sentences
from tiny_translator import TINY

from t2t_lite import hardware
from t2t_lite.errors import InputError
from t2t_lite.formats import ctranslate2
from t2t_lite.formats.ctranslate2_engine import open_translator
from t2t_lite.text.vocabulary import OUTSIDE, Vocabulary
from t2t_lite.token_ids import EOS


@pytest.fixture(scope="module", params=VARIANTS)
def parts(request, make_parts):
    return make_parts(request.param)


# The written folder.


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def test_the_readme_translates(tiny, tmp_path, monkeypatch):
    folder = ctranslate2.write(tiny, tmp_path / "model")
    readme = (folder / "README.md").read_text("utf-8")
    (code,) = re.findall("```python\n(.*?)```", readme, re.DOTALL)
    monkeypatch.chdir(folder)
    translator = open_translator(folder, length_penalty=0.0)
    lines, printed = random_sentences(8), []
    for line in lines:
        line_code = code.replace("A dog runs .", line)
        exec(line_code, {"print": printed.extend})
    # Ignores spaces: SentencePiece drops a leading one of any origin.
    assert [text.split() for text in printed] == [
        text.split() for text in translator(lines)
    ]


@pytest.mark.parametrize(
    ("sentences", "whole_up_to"),
    [("auto", 7), ("split", 0), ("whole", TINY.max_length)],
)
def test_a_folder_says_which_lines_are_split(
    tiny, tmp_path, sentences, whole_up_to
):
    splitting = {"language": "en", "whole_up_to": 7}
    folder = ctranslate2.write(
        dataclasses.replace(tiny, splitting=splitting), tmp_path / "model"
    )
    translator = open_translator(folder, sentences=sentences)
    assert translator._splitting == ("en", whole_up_to, False)


def test_an_unknown_way_to_split_lines_is_refused(tiny, tmp_path):
    folder = ctranslate2.write(tiny, tmp_path / "model")
    rule = "sentences must be auto, split or whole; received sentences='some'"
    with pytest.raises(InputError, match=rule):
        open_translator(folder, sentences="some")


def test_the_folder_has_all_that_its_users_need(parts, tmp_path):
    folder = ctranslate2.write(
        dataclasses.replace(parts, splitting={"language": "en"}),
        tmp_path / "model",
    )
    spm = {"vocabulary.model"}
    vocabularies = {"shared_vocabulary.json"}
    if parts.vocabulary is not parts.vocabulary.target:
        spm = {"source.model", "target.model"}
        vocabularies = {"source_vocabulary.json", "target_vocabulary.json"}
    assert set(os.listdir(folder)) == spm | vocabularies | {
        "README.md",
        "config.json",
        "metadata.json",
        "model.bin",
    }
    metadata = read_json(folder / "metadata.json")
    assert metadata["hparams"] == dataclasses.asdict(parts.hparams)
    assert metadata["splitting"] == {"language": "en"}
    config = read_json(folder / "config.json")
    assert config["layer_norm_epsilon"] == parts.hparams.norm_epsilon
    assert config["add_source_eos"]
    assert config["decoder_start_token"] == "</s>"
    loaded = ctranslate2.load_vocabulary(folder)
    assert loaded.sha256 == parts.vocabulary.sha256
    assert os.listdir(tmp_path) == ["model"]


def with_pieces(vocabulary, *pieces):
    """Returns a copy of a vocabulary with pieces (text, type) appended."""
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(vocabulary.model)
    for text, kind in pieces:
        proto.pieces.add(piece=text, score=0.0, type=kind)
    return Vocabulary(proto.SerializeToString())


CONTROL, USER_DEFINED, NORMAL = 3, 4, 1


def test_tokens_are_the_pieces_of_text(vocabulary):
    names = ctranslate2.token_names(vocabulary)
    assert len(names) == len(set(names)) == vocabulary.size - 1
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(vocabulary.model)
    line = "the dog sees Ω."  # Ω becomes byte pieces.
    pieces = processor.encode(line, out_type=str)
    assert any(piece.startswith("<0x") for piece in pieces)
    ids = [names.index(piece) + EOS for piece in pieces]
    assert [[*ids, EOS]] == vocabulary.encode([line])
    assert names[0] == "</s>"
    assert names[vocabulary.unknown_id - EOS] == "<unk>"


def test_pieces_outside_of_the_model_are_no_tokens(vocabulary):
    outside = with_pieces(vocabulary, (OUTSIDE, CONTROL), ("xyz", NORMAL))
    names = ctranslate2.token_names(outside)
    assert names == ctranslate2.token_names(vocabulary)


def test_a_control_symbol_is_not_taken_for_the_end(vocabulary):
    own = with_pieces(vocabulary, ("</s>", CONTROL), ("<<a>>", CONTROL))
    names = ctranslate2.token_names(own)
    assert names == [
        *ctranslate2.token_names(vocabulary), "</s>_", "<<a>>"
    ]  # fmt: skip


def test_a_piece_of_text_may_not_be_named_like_the_end(vocabulary):
    own = with_pieces(vocabulary, ("</s>", USER_DEFINED))
    with pytest.raises(InputError, match="reserves the names </s> and <unk>"):
        ctranslate2.token_names(own)


def test_the_table_of_positions_is_as_long_as_a_translation_may_be():
    def rows(**changes):
        hparams = dataclasses.replace(TINY, **changes)
        return ctranslate2.num_positions(hparams)

    assert rows() == 1024
    assert rows(max_extra_length=1020) == 1043
    assert rows(positions="learned", learned_positions=30) == 30


# What is refused.


def refused(message, parts, folder, **options):
    with pytest.raises(InputError, match=message) as error:
        ctranslate2.write(parts, folder, **options)
    assert "\n" not in str(error.value)
    assert not folder.exists()
    assert os.listdir(folder.parent) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention_window": 5}, "attention_window=0; received .*=5"),
    ],
)
def test_a_model_that_the_format_cannot_carry_is_refused(
    tiny, tmp_path, changes, message
):
    @dataclasses.dataclass
    class Other:
        hparams = dataclasses.replace(TINY, **changes)
        weights = tiny.weights
        vocabulary = tiny.vocabulary

    refused(message, Other(), tmp_path / "model")


def test_an_unknown_quantization_is_refused(tiny, tmp_path):
    message = "quantization must be None or one of int8.*received .*'int4'"
    refused(message, tiny, tmp_path / "model", quantization="int4")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.popitem(), "must be .* received nothing"),
        (
            lambda w: w.update({"transformer/more": np.ones(3)}),
            r"such a model has no transformer/more; received \[3\]",
        ),
        (
            lambda w: w.update({"transformer/embedding/embedding": np.ones(3)}),
            r"transformer/embedding/embedding must be \[\d+, 12\]; received \[",
        ),
    ],
)
def test_weights_of_another_model_are_refused(tiny, tmp_path, change, message):
    @dataclasses.dataclass
    class Other:
        hparams = TINY
        weights = tiny.weights
        vocabulary = tiny.vocabulary

    change(Other.weights)
    refused(message, Other(), tmp_path / "model")


def test_a_folder_that_is_there_is_left_alone(tiny, tmp_path):
    (tmp_path / "mine").write_text("mine", "utf-8")
    with pytest.raises(InputError, match="must not exist yet: give a new"):
        ctranslate2.write(tiny, tmp_path)
    assert os.listdir(tmp_path) == ["mine"]


def test_a_folder_appears_whole_or_not_at_all(tiny, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ctranslate2, "_write_beside", fail)
    refused("cannot write .*No space left", tiny, tmp_path / "model")


def test_without_the_extra_one_line_says_how_to_install_it(
    tiny, tmp_path, monkeypatch
):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    message = r"needs ctranslate2, which is not installed: pip install"
    refused(message, tiny, tmp_path / "model")


def test_hparams_are_those_of_a_model_directory_or_a_folder(directory, tiny):
    folder = ctranslate2.write(tiny, directory.path.parent / "model")
    assert ctranslate2.read_hparams(directory.path) == TINY
    assert ctranslate2.read_hparams(str(folder)) == TINY
    with pytest.raises(InputError, match="is not a model directory"):
        ctranslate2.read_hparams(directory.path.parent)


@pytest.mark.parametrize(
    ("lacks_vnni", "given", "expected"),
    [(False, None, None), (True, None, "1"), (True, "0", "0")],
)
def test_mkl_multiplies_where_onednn_is_wrong(
    monkeypatch, lacks_vnni, given, expected
):
    monkeypatch.setattr(hardware, "lacks_vnni", lambda: lacks_vnni)
    # Makes monkeypatch undo whatever load_library sets below.
    monkeypatch.setenv("CT2_USE_MKL", given or "")
    if given is None:
        del os.environ["CT2_USE_MKL"]
    ctranslate2.load_library()
    assert os.environ.get("CT2_USE_MKL") == expected
