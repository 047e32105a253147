"""The house rules: imports point downwards, and binaries hold no logic."""

import ast
import graphlib
import importlib
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).absolute().parents[1]

LAYERS = [
    # 0: settings
    ("errors", "hparams", "command_line"),
    # 1: functions
    (
        *("positions", "masks", "loss", "optimization", "beam_search"),
        *("tokenization", "batching", "token_cache", "memory", "training_cost"),
        *("paper_bleu", "table_3", "trees", "tree_constraint", "windows"),
        *("tag_dictionary", "rows"),
    ),
    # 2: layers
    ("attention", "blocks", "embedding"),
    # 3: the model
    ("transformer",),
    # 4: runs
    (
        *("checkpoints", "model_directory", "decoding", "translation"),
        *("evaluation", "evaluation_card", "bracketing", "serving", "export"),
        *("parsing", "tasks", "trainer", "preparation", "progress", "training"),
        *("attention_maps", "attention_page", "attention_figures", "pipeline"),
    ),
]
LAYER_OF = {name: n for n, layer in enumerate(LAYERS) for name in layer}

# Written in keras.ops, for any backend.
ANY_BACKEND = {
    *("errors", "hparams"),
    *("positions", "masks", "loss", "optimization", "beam_search"),
    *("training_cost", "table_3", "trees", "tree_constraint", "windows"),
    *("tag_dictionary", "rows"),
    *LAYERS[2],
    *LAYERS[3],
}


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


def modules_imported_by(path, package="t2t_lite"):
    """Returns the modules of a package that a file imports."""
    parts = (name.split(".") for name in imported_by(path))
    return {part[1] for part in parts if part[0] == package and part[1:]}


def module_path(name):
    return ROOT / "t2t_lite" / f"{name}.py"


MODULES = sorted(
    ".".join(path.relative_to(ROOT / "t2t_lite").with_suffix("").parts)
    for path in (ROOT / "t2t_lite").rglob("*.py")
    if path.name != "__init__.py"
)
BINARIES = sorted(path for path in (ROOT / "bin").iterdir() if path.is_file())
DATA = sorted((ROOT / "data").rglob("*.py"))


def test_every_module_has_a_layer():
    assert sorted(LAYER_OF) == MODULES
    assert len(LAYER_OF) == sum(map(len, LAYERS))


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_downwards(name):
    for imported in modules_imported_by(module_path(name)):
        assert LAYER_OF[imported] <= LAYER_OF[name]


def test_imports_have_no_cycles():
    imports = {name: modules_imported_by(module_path(name)) for name in MODULES}
    list(graphlib.TopologicalSorter(imports).static_order())


@pytest.mark.parametrize("name", MODULES)
def test_t2t_lite_imports_neither_data_nor_tests(name):
    packages = packages_imported_by(module_path(name))
    assert packages.isdisjoint({"data", "tests", "conftest", "reference"})


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_data_imports_only_errors_and_trees_of_t2t_lite(path):
    assert modules_imported_by(path) <= {"errors", "trees"}


@pytest.mark.parametrize("name", sorted(ANY_BACKEND))
def test_the_half_for_any_backend_imports_no_backend(name):
    path = module_path(name)
    backends = {"tensorflow", "tensorflow_text", "tf_keras", "jax", "torch"}
    assert packages_imported_by(path).isdisjoint(backends)
    assert modules_imported_by(path) <= ANY_BACKEND


@pytest.mark.parametrize("path", BINARIES, ids=lambda path: path.name)
def test_binaries_hold_no_logic(path):
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
    path = ROOT / "t2t_lite" / "__init__.py"
    assert packages_imported_by(path) == {"importlib"}


def homes():
    return importlib.import_module("t2t_lite")._HOMES


@pytest.mark.parametrize("name", homes())
def test_a_public_name_is_defined_in_its_home(name):
    body = tree_of(module_path(homes()[name])).body
    defined = {getattr(node, "name", None) for node in body}
    for node in body:
        if isinstance(node, ast.Assign):
            defined.update(
                getattr(target, "id", None) for target in node.targets
            )
    assert name in defined


def test_no_public_name_is_also_a_module():
    """Importing such a module would put it in the place of the name."""
    assert set(homes()).isdisjoint(MODULES)


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
