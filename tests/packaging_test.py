"""What pip installs is what the code imports, and every folder of it."""

import ast
import functools
import importlib.metadata
import re
import sys
import tomllib

from paths import ROOT

PACKAGES = {
    "t2t_lite": ROOT / "t2t_lite",
    "t2t_lite_commands": ROOT / "bin" / "commands",
    "t2t_lite_data": ROOT / "data",
}
# Only these modules import what an extra installs.
EXTRAS = {
    "corpora": {"t2t_lite_data.wmt14"},
    "figures": {"t2t_lite.visualization.figures"},
    "serving": {"t2t_lite.serving.export"},
}


@functools.cache
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def modules():
    """Returns the path of every installed module by its dotted name."""
    return {
        ".".join(
            [package, *path.relative_to(folder).with_suffix("").parts]
        ): path
        for package, folder in PACKAGES.items()
        for path in sorted(folder.rglob("*.py"))
    }


def imported_packages(path):
    """Returns the packages a module imports that Python does not have."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    packages = {name.split(".")[0] for name in names}
    return packages - sys.stdlib_module_names - set(PACKAGES)


def distributions(requirements):
    """Returns the names before the versions of requirements."""
    return {re.match(r"[\w-]+", each)[0].lower() for each in requirements}


def test_every_folder_with_modules_is_installed():
    folders = {
        name.removesuffix(".__init__")
        for name in modules()
        if name.endswith(".__init__")
    }
    assert set(pyproject()["tool"]["setuptools"]["packages"]) == folders
    assert folders >= {name.rpartition(".")[0] for name in modules()}


@functools.cache
def installed():
    return importlib.metadata.packages_distributions()


def distributions_of(package):
    """Returns the names of what pip installs to make a package importable."""
    return {name.lower() for name in installed()[package]}


def test_what_a_module_imports_is_required():
    project = pyproject()["project"]
    missing = []
    for name, path in modules().items():
        required = distributions(project["dependencies"])
        for extra, users in EXTRAS.items():
            if name in users:
                optional = project["optional-dependencies"][extra]
                required |= distributions(optional)
        missing += [
            f"{name} imports {package}"
            for package in imported_packages(path)
            if distributions_of(package).isdisjoint(required)
        ]
    assert missing == []


def test_all_that_is_required_is_imported():
    """But for tensorboard, which TensorFlow imports for summaries."""
    imported = set()
    for path in modules().values():
        for package in imported_packages(path):
            imported |= distributions_of(package)
    required = distributions(pyproject()["project"]["dependencies"])
    assert required - imported == {"tensorboard"}
