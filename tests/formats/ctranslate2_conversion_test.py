"""A checkpoint is converted once, and again when it changes."""

from tiny_ctranslate2 import conversions, write_checkpoint
from tiny_translator import LINES, assert_same

from t2t_lite.formats import ctranslate2
from t2t_lite.formats.ctranslate2_engine import open_translator


def test_a_model_directory_is_converted_once(directory, monkeypatch):
    first = open_translator(directory.path)
    (name,) = conversions(directory)
    assert name.endswith("-float32")
    monkeypatch.setattr(ctranslate2, "write", None)
    second = open_translator(directory.path)
    assert_same(first.translate(LINES), second.translate(LINES))
    assert first.sha256() == second.sha256()
    assert first.description == second.description == str(
        directory.checkpoints / "step-1"
    )  # fmt: skip


def test_each_quantization_and_checkpoint_is_converted_for_itself(
    directory, tiny
):
    names = set()

    def translations(**options):
        translator = open_translator(directory.path, **options)
        names.add(translator.sha256())
        return [each[0].text for each in translator.translate(LINES)]

    first = translations()
    translations(quantization="int8")
    assert len(conversions(directory)) == 2
    write_checkpoint(directory, tiny, 2, seed=4)
    assert translations() != first
    assert translations(checkpoint=directory.checkpoints / "step-1") == first
    assert translations(average_last=2) != first
    assert len(conversions(directory)) == 4
    assert len(names) == 4


def test_what_is_stale_is_neither_used_nor_kept(directory, tiny):
    old = open_translator(directory.path).translate(LINES)
    (name,) = conversions(directory)
    write_checkpoint(directory, tiny, 1, seed=5)  # Replaces the first.
    new = open_translator(directory.path).translate(LINES)
    assert [t.text for t, *_ in new] != [t.text for t, *_ in old]
    assert len(conversions(directory)) == 1
    assert name not in conversions(directory)


def test_what_cannot_be_kept_is_used_all_the_same(directory, monkeypatch):
    expected = open_translator(directory.path, quantization=None)
    (directory.path / "ctranslate2").rename(directory.path / "other")
    (directory.path / "ctranslate2").write_text("no folder")
    found = open_translator(directory.path)
    assert_same(found.translate(LINES), expected.translate(LINES))
    assert (directory.path / "ctranslate2").read_text() == "no folder"


def test_a_damaged_checkpoint_is_not_converted_from_the_one_before(
    directory, tiny
):
    first = open_translator(directory.path).translate(LINES)
    write_checkpoint(directory, tiny, 2, seed=4)
    data = directory.checkpoints / "step-2.data-00000-of-00001"
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    fallen_back = open_translator(directory.path)
    assert fallen_back.description.endswith("step-1")
    assert_same(fallen_back.translate(LINES), first)
    data.write_bytes(whole)
    second = open_translator(directory.path).translate(LINES)
    assert [t.text for t, *_ in second] != [t.text for t, *_ in first]
