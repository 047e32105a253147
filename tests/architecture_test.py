"""Wings import only what they may, and commands hold no logic.

A wing is a folder of t2t_lite, or a module next to these folders.
"""

import ast
import fnmatch
import graphlib
import importlib
import os
import subprocess
import sys

import pytest
from imports import (
    BASE,
    MODULES,
    imported_modules,
    imported_packages,
    tree_of,
    wing_of,
)
from paths import ROOT

PACKAGE = ROOT / "t2t_lite"

# What each wing may import besides BASE, and the reason.
MAY_IMPORT = {
    # Equations on tensors: no text, no files; TensorFlow only within ROWS.
    "model": "",
    # Text and ids exist before any model; it needs only the shift of targets.
    "text": "model",
    # Keeps the files of a run: weights, settings, a vocabulary.
    "storage": "model text",
    # Steers a search by tokens and the text that they stand for; of the model
    # it needs how rows are looked up.
    "constraints": "model",
    # Searches with a model, and what all that takes lines shares; no trees.
    "decoding": "constraints model storage text",
    # Needs a model's attention and the text on both sides, no search.
    "alignment": "constraints model text",
    # Lines become pieces, pieces ids, and all of it lines again.
    "translation": "alignment constraints decoding model storage text",
    # Compares the paper's tables with the size and cost of these models.
    "paper": "model",
    # Compares texts with references, whatever system wrote them.
    "evaluation": "alignment decoding model paper storage text",
    # The interface of a task: its methods have types of these wings.
    "task": "decoding evaluation model storage text",
    # The first task; only the registry imports it.
    "translation_task": "decoding evaluation model storage task text "
    "translation",
    # The second task; only the registry imports it.
    "parsing": "constraints decoding evaluation model storage task text",
    # The registry of tasks; it imports each one only when needed.
    "tasks": "decoding parsing storage task translation translation_task",
    # Updates a model from batches of ids; `storage` names its tensors.
    "optimization": "model storage",
    # Gets its targets and its dev score from a task.
    "training": "decoding evaluation model optimization paper storage task "
    "tasks text",
    # Exports and serves a trained model; no wing depends on it.
    "serving": "decoding model storage text",
    # Imports and exports other programs' models; only `engines` uses it.
    "formats": "decoding model storage text translation",
    # Chooses the program that searches, and imports it only when needed.
    "engines": "decoding formats storage tasks translation",
    # Draws the attention of a trained model; no wing depends on it.
    "visualization": "decoding model text translation",
    # How programs run, and the flags that they share: only for commands.
    "cli": "",
    "model_flags": "",
}
# The part that is written in keras.ops, for any backend of Keras.
ANY_BACKEND = (
    "t2t_lite.errors",
    "t2t_lite.hparams",
    "t2t_lite.tensor",
    "t2t_lite.token_ids",
    "t2t_lite.model.*",
    "t2t_lite.constraints.*",
    "t2t_lite.decoding.beam_search",
    "t2t_lite.decoding.ensemble",
    "t2t_lite.decoding.sampling",
)
# Modules without a test file of their name, and what tests them.
TESTED_ELSEWHERE = (
    "t2t_lite.engines",  # Chooses one: end_to_end/formats_test.
    "t2t_lite.model_flags",  # The flags of the programs in end_to_end.
    "t2t_lite.task",  # An interface: tasks_test.
    "t2t_lite.token_ids",  # Two numbers.
    "t2t_lite.translation_task",  # With the other task: tasks_test.
    "t2t_lite.decoding.saved_model",  # Needs an export: serving/export_test.
    "t2t_lite.formats.exporting",  # Chooses one: end_to_end/formats_test.
    "t2t_lite.formats.portable",  # Fields without methods.
    "t2t_lite.model.stacks",  # A model without its ends: transformer_test.
    "t2t_lite.optimization.dropout_seeds",  # Of replicas: replicas_test.
    "t2t_lite.optimization.sums",  # Of an update: trainer_test.
    "t2t_lite.optimization.update",  # Fields without methods.
    "t2t_lite.serving.server_files",  # Needs an export: export_test.
    "t2t_lite.training.batch_loop",  # Of a run: run_test, watchdog_test.
    "t2t_lite.training.plausibility",  # Before a run: preparation_test.
    "t2t_lite.training.preflight",  # Before a run: run_test.
    "t2t_lite.training.report",  # After a run: run_test.
    "t2t_lite.training.run_inputs",  # Before a run: run_test.
    "t2t_lite.training.run_state",  # Of a run: run_test, watchdog_test.
    "t2t_lite.training.training_text",  # Before a run: preparation_test.
    "t2t_lite_data.grammar",  # Of the embedded corpus: embedded_test.
    "t2t_lite_data.lexicon",  # Of the embedded corpus: embedded_test.
    "t2t_lite_data.marks",  # Of its links: alignments_test.
    "t2t_lite_data.patterns",  # Of the embedded corpus: embedded_test.
    "t2t_lite_data.short_patterns",  # Of the embedded corpus: embedded_test.
)


def modules_of(*patterns):
    """Returns those of MODULES that match any pattern, without packages."""
    return [
        name
        for name, path in MODULES.items()
        if path.name != "__init__.py"
        and any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
    ]


def test_every_wing_has_its_line():
    wings = {wing_of(name) for name in modules_of("t2t_lite.*")}
    assert wings == BASE | set(MAY_IMPORT)


@pytest.mark.parametrize("name", modules_of("t2t_lite.*"))
def test_a_wing_imports_only_what_it_may(name):
    wing = wing_of(name)
    imported = {wing_of(other) for other in imported_modules(MODULES[name])}
    allowed = {wing} | BASE | set(MAY_IMPORT.get(wing, "").split())
    assert imported <= allowed


def path_of_tests(module):
    """Returns where the tests of a module are, if it has a file of its own."""
    package, *parts = module.split(".")
    folders = {"t2t_lite": ROOT / "tests", "t2t_lite_data": ROOT / "tests/data"}
    return folders[package].joinpath(*parts[:-1], f"{parts[-1]}_test.py")


def test_every_module_has_a_test_file_of_its_name():
    """Or is in TESTED_ELSEWHERE."""
    untested = {
        name
        for name in modules_of("t2t_lite.*", "t2t_lite_data.*")
        if not path_of_tests(name).exists()
    }
    assert untested == set(TESTED_ELSEWHERE)


def test_wings_do_not_depend_on_each_other():
    above = {wing: names.split() for wing, names in MAY_IMPORT.items()}
    list(graphlib.TopologicalSorter(above).static_order())


def test_bazel_builds_the_wings_of_these_rules():
    build = ast.parse((ROOT / "BUILD").read_text("utf-8"))
    assigned = {
        node.targets[0].id: node.value
        for node in build.body
        if isinstance(node, ast.Assign)
    }
    assert ast.literal_eval(assigned["WINGS"]) == MAY_IMPORT


def test_no_module_compares_names_of_tasks():
    """Differences between tasks belong in their Task objects.

    One module may refuse the model of another task.
    """
    comparing = {
        name
        for name in modules_of("t2t_lite.*")
        for node in ast.walk(tree_of(MODULES[name]))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if getattr(side, "attr", getattr(side, "id", None))
        in ("task", "task_name")
    }
    assert comparing == {"t2t_lite.storage.settings_file"}


def test_imports_have_no_cycles():
    imports = {
        name: imported_modules(MODULES[name]) for name in modules_of("*")
    }
    list(graphlib.TopologicalSorter(imports).static_order())


@pytest.mark.parametrize("name", modules_of("t2t_lite_data.*"))
def test_data_imports_only_files_and_trees_of_t2t_lite(name):
    imported = imported_modules(MODULES[name]) - set(modules_of("*_data.*"))
    assert imported <= {
        "t2t_lite.errors",
        "t2t_lite.files",
        "t2t_lite.parsing.trees",
    }


ROWS = "t2t_lite.model.rows"  # Its functions import TensorFlow.


@pytest.mark.parametrize("name", modules_of(*ANY_BACKEND))
def test_the_half_for_any_backend_imports_no_backend(name):
    backends = {"tensorflow", "tensorflow_text", "tf_keras", "jax", "torch"}
    if name == ROWS:
        backends.remove("tensorflow")
    assert imported_packages(MODULES[name]).isdisjoint(backends)
    assert imported_modules(MODULES[name]) <= set(modules_of(*ANY_BACKEND))


def test_rows_need_tensorflow_only_where_it_is_the_backend():
    needed = [
        getattr(node, "module", None) or node.names[0].name
        for node in tree_of(MODULES[ROWS]).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert "keras" in needed
    assert not any(name.startswith("tensorflow") for name in needed)


@pytest.mark.parametrize("name", modules_of("t2t_lite_commands.*"))
def test_commands_hold_no_logic(name):
    tree = tree_of(MODULES[name])
    definitions = [
        getattr(node, "name", "lambda")
        for node in ast.walk(tree)
        if isinstance(
            node,
            ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda,
        )
    ]
    assert definitions == ["main"]
    assert ast.get_docstring(tree)
    main = next(n for n in tree.body if isinstance(n, ast.FunctionDef))
    assert main.end_lineno - main.lineno < 40  # Fits on a screen.


# The package's public names.


def test_the_package_itself_imports_no_module_of_its_own():
    assert imported_packages(MODULES["t2t_lite"]) == {"importlib", "typing"}


def homes():
    return importlib.import_module("t2t_lite")._HOMES


@pytest.mark.parametrize("name", homes())
def test_a_public_name_is_defined_in_its_home(name):
    defined = set()
    for node in tree_of(MODULES[f"t2t_lite.{homes()[name]}"]).body:
        defined.add(getattr(node, "name", None))
        if isinstance(node, ast.Assign):
            defined.update(
                getattr(target, "id", None) for target in node.targets
            )
        if isinstance(node, ast.AnnAssign):
            defined.add(getattr(node.target, "id", None))
    assert name in defined


def test_no_public_name_is_also_a_module():
    """Importing such a module would replace the name with the module."""
    beside = {path.stem for path in PACKAGE.iterdir()}
    assert set(homes()).isdisjoint(beside)


@pytest.mark.slow
def test_a_folder_of_its_name_is_not_taken_for_the_package(tmp_path):
    program = "import t2t_lite; print(t2t_lite.PRESETS['transformer_big'].d_ff)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def output_there():
        return subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        ).stdout

    if not output_there():
        pytest.skip("the package is not installed")
    (tmp_path / "t2t_lite").mkdir()  # Like a clone of the repository.
    assert output_there() == "4096\n"
