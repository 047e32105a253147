"""pip installs all of the packages' files, and what the code imports."""

import functools
import importlib.metadata
import re
import sys
import tomllib

from checkout import PACKAGES, ROOT
from imports import MODULES, imported_packages

# Only these modules import what an extra installs.
EXTRAS = {
    "corpora": {"t2t_lite_data.wmt14"},
    "ctranslate2": {
        "t2t_lite.formats.ctranslate2",
    },
    "serve": {"t2t_lite.serving.server"},
    "figures": {
        "t2t_lite.training.curves",
        "t2t_lite.visualization.figures",
    },
    "formats": {
        "t2t_lite.formats.hugging_face_export",
        "t2t_lite.formats.marian",
        "t2t_lite.formats.marian_vocabulary",
        "t2t_lite.formats.tensor_files",
    },
    "serving": {"t2t_lite.serving.server_files"},
    "torch": {"t2t_lite.formats.tensor_files"},
}


@functools.cache
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def distributions(requirements):
    """Returns the lowercase names in requirements, without versions."""
    return {re.match(r"[\w-]+", each)[0].lower() for each in requirements}


def foreign_packages(path):
    """Returns the imported packages of a module that pip has to install."""
    return imported_packages(path) - sys.stdlib_module_names - set(PACKAGES)


def test_pip_finds_the_packages_where_a_checkout_does():
    (where,) = pyproject()["tool"]["setuptools"]["packages"]["find"]["where"]
    linked = {path.name: path.resolve() for path in (ROOT / where).iterdir()}
    assert {name: linked.get(name) for name in PACKAGES} == PACKAGES


def test_every_folder_with_modules_is_a_package():
    for name in MODULES:
        folder = name.rpartition(".")[0]
        assert not folder or MODULES[folder].name == "__init__.py"


def test_files_that_are_not_modules_are_installed():
    patterns = pyproject()["tool"]["setuptools"]["package-data"]["t2t_lite"]
    package = PACKAGES["t2t_lite"]
    listed = {path for each in patterns for path in package.glob(each)}
    found = {path for path in package.rglob("*.*") if path.suffix != ".py"}
    assert {path for path in found if path.suffix != ".pyc"} == listed
    assert {"page.html", "py.typed"} <= {path.name for path in listed}


@functools.cache
def installed():
    return importlib.metadata.packages_distributions()


def distributions_of(package):
    """Returns the lowercase names of the distributions of a package."""
    # A package that is not installed is taken for a distribution of its name.
    return {name.lower() for name in installed().get(package, [package])}


def test_what_a_module_imports_is_required():
    project = pyproject()["project"]
    missing = []
    for name, path in MODULES.items():
        required = distributions(project["dependencies"])
        for extra, users in EXTRAS.items():
            if name in users:
                optional = project["optional-dependencies"][extra]
                required |= distributions(optional)
        missing += [
            f"{name} imports {package}"
            for package in foreign_packages(path)
            if distributions_of(package).isdisjoint(required)
        ]
    assert missing == []


def test_all_that_is_required_is_imported():
    imported = set()
    for path in MODULES.values():
        for package in foreign_packages(path):
            imported |= distributions_of(package)
    required = distributions(pyproject()["project"]["dependencies"])
    assert required - imported == set()
