"""Finds what modules import by reading their source, importing nothing."""

import ast
import functools

from checkout import PACKAGES

# Names, numbers and files: every wing of t2t_lite may import these.
BASE = {
    "english",
    "errors",
    "files",
    "hardware",
    "hparams",
    "remote_path",
    "tensor",
    "terminal",
    "token_ids",
}
# The path of every module by its dotted name; a package's is its __init__.
MODULES = {
    ".".join(
        [package, *path.relative_to(folder).with_suffix("").parts]
    ).removesuffix(".__init__"): path
    for package, folder in PACKAGES.items()
    for path in sorted(folder.rglob("*.py"))
}


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text("utf-8"), str(path))


def imported_names(path):
    """Returns all dotted names that a file imports, even within functions.

    `from a import b` counts as a.b, because b may be a module. A string that
    names one of MODULES, other than a whole package, counts too, because
    importlib imports such modules when they are used.
    """
    names = set()
    lazy = set(MODULES) - set(PACKAGES)
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and node.value in lazy:
            names.add(node.value)
    return names


def imported_packages(path):
    """Returns the first parts of the names that a file imports."""
    return {name.split(".")[0] for name in imported_names(path)}


def imported_modules(path):
    """Returns the names of those of MODULES that a file imports.

    The version is not counted: it is the package's, and of no module.
    """
    found = set()
    for name in imported_names(path) - {"t2t_lite.__version__"}:
        if name in MODULES:
            found.add(name)
        elif name.rpartition(".")[0] in MODULES:  # A name in a module.
            found.add(name.rpartition(".")[0])
    return found


def wing_of(module):
    """Returns the folder of t2t_lite that a module is in, or its own name.

    >>> wing_of("t2t_lite.model.attention"), wing_of("t2t_lite.hparams")
    ('model', 'hparams')
    >>> wing_of("t2t_lite_data.wmt14")
    't2t_lite_data'
    """
    package, *parts = module.split(".")
    return parts[0] if package == "t2t_lite" and parts else package
