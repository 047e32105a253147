"""A run learns to parse, and refuses what is no tree of its words."""

import dataclasses
import functools

import pytest
from tiny_trees import PARSING, TREES, WORDS

from t2t_lite import tasks
from t2t_lite.decoding import search as decoding
from t2t_lite.errors import InputError
from t2t_lite.evaluation.card import make_card
from t2t_lite.evaluation.report import evaluate
from t2t_lite.serving import export
from t2t_lite.serving import signatures as serving
from t2t_lite.storage import model_directory
from t2t_lite.text import learning
from t2t_lite.training import run
from t2t_lite.training.options import RunOptions
from t2t_lite.training.training_text import TrainingText
from t2t_lite.translation import line_translator


def test_a_run_refuses_a_vocabulary_of_the_other_task(tmp_path, vocabulary):
    pairs = list(zip(WORDS, TREES, strict=True))
    learning.learn(WORDS * 9, "bpe", 2000).save(tmp_path / "words.model")
    vocabulary.save(tmp_path / "trees.model")
    for task, name in (("parsing", "words"), ("translation", "trees")):
        hparams = dataclasses.replace(PARSING, task=task)
        options = RunOptions(vocabulary=tmp_path / f"{name}.model")
        with pytest.raises(InputError, match=f"a vocabulary for {task} must"):
            run.train(
                tmp_path / "run", hparams, text_of(pairs), options=options
            )


def test_a_run_refuses_a_vocabulary_without_its_labels(tmp_path, vocabulary):
    vocabulary.save(tmp_path / "trees.model")
    pairs = [*zip(WORDS, TREES, strict=True), ("oh", "(TOP (INTJ (UH oh)))")]
    options = RunOptions(vocabulary=tmp_path / "trees.model")
    with pytest.raises(InputError, match=r"lacks 2 of the symbols.*\(INTJ"):
        run.train(tmp_path / "run", PARSING, text_of(pairs), options=options)
    assert not (tmp_path / "run").exists()


def test_a_sentence_that_evalb_leaves_out_makes_no_model_better():
    """Its period is not tagged as punctuation, so EVALB sees other words."""
    wrong = TREES[0].replace("(. .)", "(DT .)")
    task = tasks.task_of(PARSING)
    assert task.scores([wrong, TREES[1]], TREES[:2])["f1"].value == 100
    # 4 of 7 brackets are found, and no others count: 2 * 4 / (4 + 7).
    score = task.score([wrong, TREES[1]], TREES[:2])
    assert score.value == pytest.approx(800 / 11)


def text_of(pairs):
    return TrainingText(
        {"corpus": "of this test"},
        {split: lambda: pairs for split in ("train", "dev")},
    )


@pytest.mark.slow
def test_a_run_learns_to_parse_and_its_directory_parses(tmp_path):
    pairs = list(zip(WORDS, TREES, strict=True)) * 4
    pairs.append(("", ""))  # As from a blank line at the end of a file.
    hparams = dataclasses.replace(
        PARSING, vocabulary_size=2000, tag_dictionary=True
    )
    options = RunOptions(save_every_steps=60, evaluate_every_steps=120)
    report = run.train(
        tmp_path / "run", hparams, text_of(pairs), options=options
    ).report
    assert "dev F1 of all 100.00 (EVALB, COLLINS.prm, 21 sentences" in report
    assert "0 errors, 1 skips)" in report
    parser = tasks.open_model(tmp_path / "run", checkpoint="best")
    assert parser(WORDS) == TREES
    directory = model_directory.ModelDirectory(tmp_path / "run")
    task = tasks.task_of(hparams)
    report = evaluate(
        parser,
        {"dev": pairs},
        score=task.scores,
        encode_targets=functools.partial(
            task.encode_targets, parser.vocabulary
        ),
    )
    text = make_card(report, directory, parser).as_markdown()
    assert "| F1 of all | 100.00 |" in text
    assert "EVALB" in text
    assert "bootstrap" not in text
    with pytest.raises(InputError, match="was trained for parsing"):
        line_translator.Translator(directory.path)
    options = serving.ServingOptions(
        decoding.SearchOptions.from_hparams(hparams), 48
    )
    with pytest.raises(InputError, match="was trained for parsing"):
        export.export(directory, tmp_path / "export", options)
    assert not (tmp_path / "export").exists()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("the cat", "outside of any tree"),
        ("(TOP (NN cat)) (TOP (NN cat))", "must be one tree"),
        ("(TOP (NN dog))", "must be the tree of the source line's words"),
    ],
)
def test_a_target_that_is_not_the_words_tree_is_refused(
    tmp_path, target, message
):
    text = text_of([("cat", target)])
    with pytest.raises(InputError, match=message):
        run.train(tmp_path / "run", PARSING, text, options=RunOptions())
    assert not (tmp_path / "run").exists()


def test_only_ascii_white_space_separates_words():
    pair = ("10\u00a0km off", "(TOP (CD 10\u00a0km) (RB off))")
    check = tasks.task_of(PARSING).check_pair
    assert check(*pair) == pair
    assert check("", " ") == ("", "")


def test_targets_are_learned_from_as_normalized_trees():
    pair = (
        "it saw",
        "((S (NP-SBJ-1 (PRP it)) (VP (VBD saw) (NP (-NONE- *T*)))))",
    )
    check = tasks.task_of(PARSING).check_pair
    assert check(*pair) == (
        "it saw",
        "(TOP (S (NP (PRP it)) (VP (VBD saw))))",
    )
