"""The house rules: which wing may import which, and commands hold no logic.

A wing is a folder of t2t_lite, or a module beside the folders.
"""

import ast
import graphlib
import importlib
import os
import subprocess
import sys

import pytest
from paths import ROOT

PACKAGE = ROOT / "t2t_lite"

# Names, numbers and files: every wing may import these.
BASE = {"errors", "files", "hparams", "tensor", "token_ids"}
# What else each wing may import, and why no more.
MAY_IMPORT = {
    # Equations of tensors: no text, no files, no TensorFlow.
    "model": "",
    # Text and ids exist before any model; only the shift of targets is shared.
    "text": "model",
    # What a run keeps: weights, settings, a vocabulary.
    "storage": "model text",
    # A model, the directory it lies in, and lines of text; no trees, no scores.
    "decoding": "model storage text",
    # The paper's tables beside what a model of these settings takes.
    "paper": "model",
    # Compares texts with references, whatever wrote them.
    "evaluation": "decoding model paper storage text",
    # The second task: only the registry and commands know it.
    "parsing": "decoding evaluation model storage text",
    # The registry: the one module that knows every task.
    "tasks": "decoding evaluation parsing storage text",
    # A task gives it targets and a score on dev.
    "training": "decoding evaluation model paper storage tasks text",
    # A way out for a trained model; nothing depends on it.
    "serving": "decoding model storage text",
    # Pictures of a trained model; nothing depends on them.
    "visualization": "decoding model text",
    # How programs run, and the flags they share: for commands only.
    "cli": "",
}
# The half that is written in keras.ops, for any backend.
ANY_BACKEND = (
    "errors",
    "tensor",
    "hparams",
    "token_ids",
    "model/*",
    "decoding/beam_search",
)


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported_by(path):
    """Returns all dotted names a file imports, within functions too.

    `from a import b` counts as a.b, for b may be a module.
    """
    names = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def packages_imported_by(path):
    return {name.split(".")[0] for name in imported_by(path)}


def module_name(path):
    """Returns the dotted name of a module of t2t_lite, without "t2t_lite."."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def modules_imported_by(path):
    """Returns the paths of the modules of t2t_lite that a file imports."""
    found = set()
    for name in imported_by(path):
        package, *parts = name.split(".")
        # The last part may be a name in the module, not the module itself.
        for end in (len(parts), len(parts) - 1):
            candidate = PACKAGE.joinpath(*parts[:end]).with_suffix(".py")
            if package == "t2t_lite" and end > 0 and candidate.exists():
                found.add(candidate)
                break
    return found


def wing_of(path):
    """Returns the folder of a module, or its own name if it is in none."""
    return module_name(path).split(".")[0]


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p.name != "__init__.py")
COMMANDS = sorted((ROOT / "bin" / "commands").glob("[!_]*.py"))
DATA = sorted((ROOT / "data").rglob("*.py"))


# To be removed; none may be added.
KNOWN_IMPORTS = {
    ("decoding.translation", "serving"),
    ("evaluation.card", "cli"),
    ("model.transformer", "decoding"),
    ("storage.model_directory", "parsing"),
    ("text.pipeline", "decoding"),
    ("text.vocabulary", "parsing"),
    ("training.preparation", "parsing"),
}
KNOWN_COMPARISONS = {
    *("decoding.translation", "hparams", "parsing.parser"),
    *("serving.export", "training.preparation"),
}


def test_every_wing_has_its_line():
    assert {wing_of(path) for path in MODULES} == BASE | set(MAY_IMPORT)


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_a_wing_imports_only_what_it_may(path):
    wing = wing_of(path)
    imported = {wing_of(other) for other in modules_imported_by(path)}
    known = {to for module, to in KNOWN_IMPORTS if module == module_name(path)}
    allowed = set(MAY_IMPORT.get(wing, "").split())
    assert imported - {wing} - BASE - known <= allowed


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
    """What tasks do differently hangs on the Task object."""
    comparing = {
        module_name(path)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if getattr(side, "attr", getattr(side, "id", None))
        in ("task", "task_name")
    }
    assert comparing <= KNOWN_COMPARISONS


def test_imports_have_no_cycles():
    imports = {path: modules_imported_by(path) for path in MODULES}
    list(graphlib.TopologicalSorter(imports).static_order())


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_t2t_lite_imports_neither_data_nor_commands(path):
    others = {"data", "t2t_lite_data", "t2t_lite_commands", "checkout", "tests"}
    assert packages_imported_by(path).isdisjoint(others)


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_data_imports_only_errors_and_trees_of_t2t_lite(path):
    names = {module_name(p) for p in modules_imported_by(path)}
    assert names <= {"errors", "parsing.trees"}


def for_any_backend():
    return [
        path
        for pattern in ANY_BACKEND
        for path in sorted(PACKAGE.glob(f"{pattern}.py"))
    ]


@pytest.mark.parametrize("path", for_any_backend(), ids=module_name)
def test_the_half_for_any_backend_imports_no_backend(path):
    backends = {"tensorflow", "tensorflow_text", "tf_keras", "jax", "torch"}
    assert packages_imported_by(path).isdisjoint(backends)
    assert modules_imported_by(path) <= set(for_any_backend())


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_commands_hold_no_logic(path):
    tree = tree_of(path)
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
    assert main.end_lineno - main.lineno < 40  # One screen.


# The names of the package.


def test_the_package_itself_imports_nothing():
    assert packages_imported_by(PACKAGE / "__init__.py") == {"importlib"}


def homes():
    return importlib.import_module("t2t_lite")._HOMES


@pytest.mark.parametrize("name", homes())
def test_a_public_name_is_defined_in_its_home(name):
    path = PACKAGE.joinpath(*homes()[name].split(".")).with_suffix(".py")
    defined = set()
    for node in tree_of(path).body:
        defined.add(getattr(node, "name", None))
        if isinstance(node, ast.Assign):
            defined.update(
                getattr(target, "id", None) for target in node.targets
            )
        if isinstance(node, ast.AnnAssign):
            defined.add(getattr(node.target, "id", None))
    assert name in defined


def test_no_public_name_is_also_a_module():
    """Importing such a module would put it in the place of the name."""
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
    (tmp_path / "t2t_lite").mkdir()  # As where this was cloned into.
    assert output_there() == "4096\n"
