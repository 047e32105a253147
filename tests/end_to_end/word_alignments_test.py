"""Word alignments are learned from, printed and scored, or refused."""

import json
import pathlib
import re

import edited_settings
import in_process
import pytest
import tiny_run
from refusal import assert_refused
from tiny_translator import LINES, ONE_LAYER, learn_vocabulary, write_model

from t2t_lite.text import pharaoh

GUIDED = "--override=guided_alignment=0.1"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The flags of a small corpus, with files of word links beside its text."""
    folder = tmp_path_factory.mktemp("corpus")
    flags = tiny_run.write_corpus(folder)
    for split in ("train", "dev", "test"):
        lines = (folder / f"{split}.source").read_text("utf-8").splitlines()
        with open(folder / f"{split}.links", "w") as file:
            for line in lines:
                last = len(line.split()) - 1
                links = [(n, last - n) for n in range(last + 1)]
                print(pharaoh.as_text(links), file=file)
    return flags


@pytest.fixture
def one_core():
    with in_process.on_one_core():
        yield


def of_train(corpus):
    """Returns the flags of a corpus that name its training text."""
    return [flag for flag in corpus if flag.startswith("--train_")]


def links_of(corpus, *splits):
    """Returns the flags that name the word links of splits."""
    folder = pathlib.Path(corpus[0].partition("=")[2]).parent
    return [f"--{split}_alignments={folder / split}.links" for split in splits]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    return write_model(path, learn_vocabulary(), ONE_LAYER).path


@pytest.mark.slow
def test_the_links_of_words_stand_behind_translations(model_dir):
    flags = ["--alignments", "--sentences=split", "--nbest=2"]
    lines = [*LINES[:3], "two men. The old cat sits."]
    status, output, errors = in_process.run(
        "translate",
        f"--model_dir={model_dir}",
        *flags,
        text="".join(f"{line}\n" for line in lines),
    )
    assert status == 0, errors
    rows = [row.split(" ||| ") for row in output.splitlines()]
    assert [int(row[0]) for row in rows] == [1, 1, 2, 2, 3, 3, 4, 4]
    for number, text, _, links in rows:
        source = lines[int(number) - 1]
        pharaoh.links_of([links], [(source, text)])
        targets = {target for _, target in pharaoh.parse(links)}
        assert targets == set(range(len(text.split())))
    sources = {source for source, _ in pharaoh.parse(rows[6][3])}
    assert min(sources) < 2 <= max(sources)  # Both sentences.


@pytest.mark.slow
def test_a_run_learns_alignments_and_keeps_the_best_head(
    corpus, tmp_path, one_core
):
    path = tmp_path / "model"
    flags = [f"--model_dir={path}", *tiny_run.FLAGS, GUIDED, *of_train(corpus)]
    train = [*flags, *links_of(corpus, "train"), "--steps=3"]
    status, _, errors = in_process.run("train", *train)
    assert status == 0, errors
    settings = json.loads((path / "settings.json").read_text())
    assert settings["alignment_head"] == [0, 0, True]
    assert settings["hparams"]["guided_alignment"] == 0.1
    other = tmp_path / "other"
    other.write_text("0-0\n" * 60)
    found = in_process.run("train", *flags, f"--train_alignments={other}")
    assert_refused(found, "was trained with different training text")
    edited_settings.edit(path, alignment_head=None)
    status, output, errors = in_process.run(
        "evaluate",
        f"--model_dir={path}",
        "--choose_alignment_head",
        *(flag for flag in corpus if flag not in of_train(corpus)),
        *links_of(corpus, "dev", "test"),
    )
    assert status == 0, errors
    first, *others = output.splitlines()
    assert re.fullmatch(r"alignment head: .* of layer 0.* \(best of 6\)", first)
    assert [line.partition(":")[0] for line in others] == ["dev", "test"]
    assert all("60 pairs with links, alignment" in line for line in others)
    # The choice outlasts further training, which still uses the alignments that
    # the run began with.
    chosen = json.loads((path / "settings.json").read_text())["alignment_head"]
    assert chosen is not None
    status, _, errors = in_process.run(
        "train", f"--model_dir={path}", "--steps=4"
    )
    assert status == 0, errors
    settings = json.loads((path / "settings.json").read_text())
    assert settings["alignment_head"] == chosen


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--keep=tags"], "keep cannot be combined with alignments; received"),
        (
            ["--engine=ctranslate2"],
            "alignments are not available with the CTranslate2",
        ),
    ],
)
def test_alignments_that_nothing_finds_are_refused(model_dir, flags, message):
    flags = f"--model_dir={model_dir}", "--alignments", *flags
    assert_refused(in_process.run("translate", *flags, text="a"), message)


def test_alignments_to_learn_from_need_each_other(corpus, tmp_path):
    flags = [*corpus, *tiny_run.FLAGS, f"--model_dir={tmp_path / 'model'}"]
    for more, message in (
        (
            [GUIDED],
            "guided_alignment=0.1 needs the links of words: give --trai",
        ),
        (links_of(corpus, "train"), "--train_alignments has no effect alone"),
        (["--override=guided_alignment=-1"], "guided_alignment must be at lea"),
        ([GUIDED, "--train_alignments=/no"], "no file matches '/no'; check"),
        (
            [GUIDED, "--override=task=parsing", *links_of(corpus, "train")],
            "guided_alignment must be 0 for parsing",
        ),
    ):
        assert_refused(in_process.run("train", *flags, *more), message)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "has no alignments for dev: give --dev_alignments"),
        (["--json=-"], "has no effect with"),
        (
            ["--splits=test"],
            "choosing an alignment head needs dev text: give --splits=dev",
        ),
        (["--beam_width=2"], "has no effect with"),
        (
            ["--dev_alignments={other}"],
            "dev: line 1 of the links: link 9-9 is out of range",
        ),
    ],
)
def test_a_head_is_chosen_by_links_of_dev_alone(
    corpus, model_dir, tmp_path, flags, message
):
    other = tmp_path / "other"
    other.write_text("9-9\n" * 60)
    flags = [flag.format(other=other) for flag in flags]
    found = in_process.run(
        "evaluate",
        f"--model_dir={model_dir}",
        "--choose_alignment_head",
        *(flag for flag in corpus if flag not in of_train(corpus)),
        *flags,
    )
    assert_refused(found, message)


def test_links_to_score_by_are_for_the_choice_of_a_head(corpus, model_dir):
    found = in_process.run(
        "evaluate", f"--model_dir={model_dir}", *links_of(corpus, "dev")
    )
    message = "--dev_alignments has no effect alone: give --choose_alignment"
    assert_refused(found, message)
