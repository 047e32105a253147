"""One object per task decides what is refused, learned, encoded and scored."""

import dataclasses
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT

from t2t_lite import tasks
from t2t_lite.errors import InputError
from t2t_lite.hparams import _CHOICES, HParams, override, preset

GOLDEN = ROOT / "tests" / "golden" / "0.1.0"
TREE = "(TOP (S (NP (DT A) (NN dog)) (VP (VBZ runs)) (. .)))"
PAIRS = [("A dog runs .", TREE), ("", ""), ("dog", "(TOP (NN dog))")] * 9


def read_pairs():
    return iter(PAIRS)


def pieces_of(flat):
    return np.split(flat.ids, np.cumsum(flat.lengths)[:-1])


@pytest.fixture(scope="module", params=["translation", "parsing"])
def name(request):
    return request.param


@pytest.fixture(scope="module")
def vocabularies():
    return {
        name: tasks.named(name).learn_vocabulary(read_pairs, "bpe", 400)
        for name in ("translation", "parsing")
    }


def test_every_task_of_the_settings_is_there():
    for name in _CHOICES["task"]:
        task = tasks.task_of(HParams(task=name))
        assert task is tasks.named(name)


def test_the_registry_imports_no_tensorflow():
    """bin/train refuses wrong settings before it loads TensorFlow."""
    program = (
        "import sys\n"
        "from t2t_lite import hparams, tasks\n"
        "for preset in hparams.PRESETS.values(): tasks.task_of(preset)\n"
        "assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("name", "overrides", "rule"),
    [
        (
            "transformer_tiny",
            ["tag_dictionary=true"],
            "tag_dictionary must be False unless task=parsing",
        ),
        (
            "transformer_parsing_small",
            ["task=translation"],
            "tag_dictionary must be False unless task=parsing",
        ),
        (
            "transformer_parsing",
            ["max_extra_length=1"],
            r"max_extra_length must be at least 2, .*max_extra_length=1",
        ),
    ],
)
def test_settings_that_a_task_cannot_have_are_refused(name, overrides, rule):
    hparams = override(preset(name), overrides)
    with pytest.raises(InputError, match=rule):
        tasks.task_of(hparams)


def test_a_model_with_such_settings_is_not_opened(tmp_path):
    for name, change in (
        ("translation", {"tag_dictionary": True}),
        ("parsing", {"max_extra_length": 1}),
    ):
        path = tmp_path / name
        path.mkdir()
        for file in ("settings.json", "vocabulary.model"):
            shutil.copy(GOLDEN / name / file, path)
        settings = json.loads((path / "settings.json").read_text())
        settings["hparams"] |= change
        (path / "settings.json").write_text(json.dumps(settings))
        with pytest.raises(InputError, match=f"{next(iter(change))} must be"):
            tasks.open_model(path)


def test_a_vocabulary_suits_its_own_task_alone(vocabularies):
    for name, vocabulary in vocabularies.items():
        tasks.named(name).check_vocabulary(vocabulary, read_pairs)
        (other,) = vocabularies.keys() - {name}
        with pytest.raises(InputError, match=f"a vocabulary for {other} must"):
            tasks.named(other).check_vocabulary(vocabulary)


def test_symbols_that_a_vocabulary_lacks_are_named(vocabularies):
    more = [*PAIRS, ("oh", "(TOP (INTJ (UH oh)))")]
    with pytest.raises(InputError, match=r"lacks 3 of .*, such as '\(INTJ'"):
        tasks.named("parsing").check_vocabulary(
            vocabularies["parsing"], lambda: iter(more)
        )


def test_a_translations_targets_are_text(vocabularies):
    task, vocabulary = tasks.named("translation"), vocabularies["translation"]
    lines = [target for _, target in PAIRS]
    found = pieces_of(task.encode_targets(vocabulary, lines))
    assert [ids.tolist() for ids in found] == vocabulary.encode(lines)
    assert task.num_target_ids(vocabulary) == vocabulary.size


def test_a_parsers_targets_are_the_symbols_of_trees(vocabularies):
    task, vocabulary = tasks.named("parsing"), vocabularies["parsing"]
    flat = task.encode_targets(vocabulary, [TREE, "(TOP (NN dog))"])
    assert (flat.ids.dtype, flat.lengths.dtype) == (np.int32, np.int64)
    assert [" ".join(vocabulary.tokens(ids)) for ids in pieces_of(flat)] == [
        "(TOP (S (NP DT NN )NP (VP VBZ )VP . )S )TOP </s>",
        "(TOP NN )TOP </s>",
    ]
    assert task.num_target_ids(vocabulary) == flat.ids.max() + 1
    assert task.num_target_ids(vocabulary) < vocabulary.size


def test_a_pair_is_learned_from_as_its_task_has_it(name):
    check = tasks.named(name).check_pair
    assert check("A dog", "(S (NP-SBJ (DT A) (NN dog)))") == (
        ("A dog", "(S (NP-SBJ (DT A) (NN dog)))")
        if name == "translation"
        else ("A dog", "(TOP (S (NP (DT A) (NN dog))))")
    )


def test_the_primary_score_is_one_of_the_scores(name):
    task = tasks.named(name)
    outputs, references = [TREE.replace("NP", "X"), TREE], [TREE, TREE]
    score = task.score(outputs, references)
    assert score == task.scores(outputs, references)[task.primary_score]
    assert 0 < score.value < 100


def test_a_task_keeps_tags_only_where_it_is_told_to(tmp_path, vocabularies):
    from t2t_lite.storage.model_directory import ModelDirectory

    for name, has_tags in (
        ("translation", False),
        ("parsing", False),
        ("parsing", True),
    ):
        hparams = HParams(task=name, tag_dictionary=has_tags)
        tasks.named(name).save_extras(
            ModelDirectory(tmp_path),
            hparams,
            vocabularies[name],
            read_pairs=read_pairs,
        )
        assert (tmp_path / "tags.npz").exists() == has_tags


def test_a_directory_of_another_task_is_refused():
    from t2t_lite import Parser, Translator

    for opens, name in ((Parser, "translation"), (Translator, "parsing")):
        with pytest.raises(InputError, match=f"was trained for {name}; this"):
            opens(GOLDEN / name)


def test_hparams_know_tasks_by_name_alone():
    hparams = HParams(task="parsing", max_extra_length=0)
    assert dataclasses.replace(hparams, tag_dictionary=True).tag_dictionary
    with pytest.raises(InputError, match="task must be translation or parsing"):
        HParams(task="tagging")


def test_a_parser_splits_no_lines():
    with pytest.raises(InputError, match="--sentences is for translation"):
        tasks.open_model(GOLDEN / "parsing", sentences="split")
