"""The evaluation card shows every figure with what it depends on."""

import dataclasses
import functools
import importlib.metadata
import json
import shutil

import numpy as np
import pytest
import tiny_translator
from eagerly import eagerly
from reversing import Reversing

import t2t_lite
from t2t_lite.decoding.search import SearchOptions
from t2t_lite.evaluation.card import Training, make_card
from t2t_lite.evaluation.report import evaluate
from t2t_lite.evaluation.scores import Score, score_text
from t2t_lite.storage import checkpoints
from t2t_lite.storage.model_directory import ModelDirectory, is_weight
from t2t_lite.text import token_files

PAIRS = [
    (line, line[::-1] or "nobody") for line in tiny_translator.LINES if line
]
SPLITS = {"dev": PAIRS[:4], "test": PAIRS}
RECORD = {
    "step": np.int64(12_000),
    "training_flops": np.float64(3.25e15),
    "device_seconds": np.float64(5400),
}


@pytest.fixture(scope="module")
def vocabulary():
    return tiny_translator.learn_vocabulary()


@pytest.fixture(scope="module")
def directory(vocabulary, tmp_path_factory):
    """A model directory with two checkpoints, the first by an old version."""
    path = tmp_path_factory.mktemp("runs") / "model"
    directory = tiny_translator.write_model(path, vocabulary, seeds=(3, 4))
    newest = directory.checkpoints / "step-2"
    checkpoints.write(newest, RECORD | checkpoints.read(newest, is_weight))
    return directory


def reversing(vocabulary, loaded):
    """Returns a predictor with a LoadedModel's model and training record."""
    predictor = Reversing(
        vocabulary,
        SearchOptions.from_hparams(tiny_translator.TINY),
        model=loaded.model,
        description=loaded.description,
    )
    predictor.training_record = loaded.training_record
    return predictor


@pytest.fixture(scope="module")
def card(directory, vocabulary):
    predictor = reversing(vocabulary, directory.load_model(average_last=2))
    score = functools.partial(score_text, language="de", with_margins=True)
    with eagerly():
        report = evaluate(
            predictor,
            SPLITS,
            score=score,
            encode_targets=vocabulary.target.encode_flat,
        )
    return make_card(report, directory, predictor)


def rows_of(markdown):
    """Returns each table row's cells by its first cell; checks row widths."""
    rows, width = {}, 0
    for line in markdown.split("\n"):
        if not line.startswith("|"):
            width = 0
            continue
        assert line.endswith("|")
        cells = [cell.strip() for cell in line[1:-1].split(" | ")]
        assert len(cells) == width or not width
        width = len(cells)
        rows[cells[0]] = cells[1:]
    return rows


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_a_card_says_in_which_precision_the_search_computed(
    card, directory, vocabulary, precision
):
    loaded = directory.load_model(precision=precision)
    predictor = reversing(vocabulary, loaded)
    found = make_card(card.report, directory, predictor)
    assert rows_of(found.as_markdown())["precision of the search"] == [
        precision
    ]
    assert json.loads(found.as_json())["precision"] == precision


@pytest.mark.slow
def test_a_reader_finds_every_figure_of_each_split(card):
    rows = rows_of(card.as_markdown())
    assert rows["sentence pairs"] == ["4", "6"]
    for n, split in enumerate(card.report.splits.values()):
        for score in split.text.values():
            assert rows[score.name][n] == score.as_text()
        perplexity = f"{split.tokens.perplexity:.3f}"
        assert rows["perplexity per token"][n] == perplexity
        assert rows["target tokens"][n] == str(split.tokens.tokens)
    assert "over-long" not in card.as_markdown()


def test_markup_in_options_and_signatures_is_shown_as_it_is(card):
    report, score = card.report, Score("BLEU", 1.0, "lang:`x`\n# y")
    odd = report._replace(
        search={"suppress": ("*a*", "[x](y)")},
        splits={"test": report.splits["test"]._replace(text={"bleu": score})},
    )
    markdown = card._replace(report=odd).as_markdown()
    assert r"\*a\*" in markdown
    assert r"\[x\](y)" in markdown
    assert "\n- BLEU: `lang:'x' # y`\n" in markdown


def test_signatures_stand_below_the_scores(card):
    markdown = card.as_markdown()
    for score in card.report.splits["test"].text.values():
        assert f"\n- {score.name}: `{score.signature}`\n" in markdown


def test_what_the_scores_depend_on_is_on_the_card(card, vocabulary):
    rows = rows_of(card.as_markdown())
    assert rows["checkpoint"] == ["average of step-2, step-1"]
    assert "reference tokens" in rows["BLEU, lowercase"][1]
    search = SearchOptions.from_hparams(tiny_translator.TINY)
    assert f"beam_width {search.beam_width}, " in rows["search"][0]
    assert rows["precision of the search"] == ["float32"]
    assert rows["train"] == ["`of the text`"]
    assert rows["dev"] == [f"`{token_files.hash_pairs(PAIRS[:4])}`"]
    assert rows["test"] == [f"`{token_files.hash_pairs(PAIRS)}`"]
    size = f"vocabulary, {vocabulary.size:,} ids"
    assert rows[size] == [f"`{vocabulary.sha256}`"]
    for package in ("tensorflow", "keras", "sacrebleu", "sacremoses"):
        assert rows[package] == [importlib.metadata.version(package)]
    assert rows["t2t_lite"] == [t2t_lite.__version__]
    unlike = rows["settings that are not the paper's base"][0]
    assert "num_layers 2, d_model 12, d_ff 20" in unlike
    assert "dropout" not in unlike


def test_its_own_version_is_that_of_the_code_not_of_what_is_installed(
    card, directory, vocabulary, monkeypatch
):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0.7")
    predictor = reversing(vocabulary, directory.load_model())
    found = make_card(card.report, directory, predictor).versions
    assert found["t2t_lite"] == t2t_lite.__version__ != "0.0.7"
    assert found["tensorflow"] == "0.0.7"


def test_parameters_are_the_weights_and_no_states_of_dropout(card, directory):
    _, weights = directory.weights()
    assert card.parameters == sum(w.size for w in weights.values())


def test_training_is_that_of_the_newest_checkpoint(card):
    assert card.training == (12_000, 3.25e15, 1.5)
    rows = rows_of(card.as_markdown())
    assert rows["updates"] == ["12,000"]
    assert rows["training, matrix products"] == ["3.25e+15 FLOPs"]
    assert rows["training, device hours"] == ["1.50"]


def test_a_written_average_keeps_the_record_of_its_newest(directory):
    path, _ = directory.write_average(2)
    assert checkpoints.read(path, lambda name: "/" not in name) == RECORD
    assert directory.load_model("averaged").training_record == RECORD
    assert set(directory.weights("averaged")[1]) == set(directory.weights()[1])


def test_a_damaged_checkpoint_is_passed_over(directory, tmp_path):
    copy = ModelDirectory(tmp_path / "model")
    shutil.copytree(directory.path, copy.path)
    (data,) = copy.checkpoints.glob("step-2.data*")
    # Cuts off a weight at the end, but not the training record before it.
    data.write_bytes(data.read_bytes()[:-100])
    path, _ = copy.weights()
    assert path.endswith("step-1")
    assert copy.load_model().training_record == {"step": 1}


def test_what_an_old_checkpoint_does_not_say_is_not_known(card, directory):
    old = directory.load_model(str(directory.checkpoints / "step-1"))
    assert old.training_record == {"step": 1}
    unknown = card._replace(training=Training(1, None, None))
    rows = rows_of(unknown.as_markdown())
    assert rows["training, matrix products"] == ["not known"]
    assert rows["training, device hours"] == ["not known"]


def test_a_count_that_began_too_late_is_not_known(
    card, directory, vocabulary, tmp_path
):
    path = tmp_path / "step-3"
    _, weights = directory.weights()
    late = RECORD | {"training_flops": np.float64(np.nan)}
    checkpoints.write(path, weights | late)
    predictor = reversing(vocabulary, directory.load_model(path))
    found = make_card(card.report, directory, predictor)
    assert found.training == (12_000, None, 1.5)
    json.loads(found.as_json(), parse_constant=pytest.fail)


def test_json_has_all_that_the_json_of_a_report_has(card):
    found = json.loads(card.as_json())
    report = json.loads(card.report.as_json())
    assert found | report == found
    assert found["training"] == {
        "updates": 12_000,
        "flops": 3.25e15,
        "device_hours": 1.5,
    }
    assert found["settings"]["hparams"]["d_model"] == 12
    assert found["settings"]["vocabulary_sha256"]
    assert found["versions"]["sacremoses"]


def test_pairs_without_a_perplexity_are_counted(card):
    splits = {
        name: scores._replace(tokens=scores.tokens._replace(left_out=n * 3))
        for n, (name, scores) in enumerate(card.report.splits.items())
    }
    report = card.report._replace(splits=splits)
    rows = rows_of(card._replace(report=report).as_markdown())
    assert rows["over-long pairs, not in the perplexity"] == ["0", "3"]


@pytest.mark.parametrize("name", ["card", "card.md", "card.json"])
def test_two_files_are_written(card, tmp_path, name):
    card.write(str(tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "card.json",
        "card.md",
    ]
    markdown = (tmp_path / "card.md").read_text("utf-8")
    assert markdown == card.as_markdown()
    text = (tmp_path / "card.json").read_text("utf-8")
    assert text == card.as_json()


def test_names_are_shown_as_they_are_and_on_one_line(card):
    odd = card._replace(
        model_dir="runs/a|b\n# *c* <br>",
        settings=dataclasses.replace(
            card.settings,
            hparams=dataclasses.replace(
                card.settings.hparams, reserved_symbols="<bt>"
            ),
        ),
        report=card.report._replace(
            model="[step](1)",
            splits={"de`v\n": card.report.splits["dev"]},
        ),
    ).as_markdown()
    assert odd.startswith("# Evaluation of runs/a|b \\# \\*c\\* \\<br\\>\n\n|")
    rows = rows_of(odd)
    assert rows["checkpoint"] == [r"\[step\](1)"]
    (changed,) = rows["settings that are not the paper's base"]
    assert r"reserved_symbols \<bt\>" in changed
    assert rows[r"de\`v"][0].startswith("`")
