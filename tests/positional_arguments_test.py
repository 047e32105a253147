"""Calls of our own functions name every argument after the third."""

import ast
import builtins
import functools

import pytest
from checkout import PACKAGES
from imports import tree_of
from paths import BENCHMARKS, HELPERS, ROOT

PROGRAMS = ("t2t_lite", "bin", "data")
FOLDERS = (*PROGRAMS, "tests")  # Functions of our own, and their calls.
MOST = 3  # Arguments by position.
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SOURCES = {folder: sorted((ROOT / folder).rglob("*.py")) for folder in FOLDERS}


@functools.cache
def nodes_of(tree):
    return list(ast.walk(tree))


@functools.cache
def definitions(tree):
    """Returns two sets of names.

    The first has functions, classes and methods; the second, those of them
    that take any number of arguments by position.
    """
    names, unbounded = set(), set()
    for node in nodes_of(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
        if isinstance(node, FUNCTIONS) and node.args.vararg is not None:
            unbounded.add(node.name)
    return names, unbounded


def own_names(trees):
    """Returns the names of functions and classes, methods included.

    What takes any number of arguments by position has no names for them, and
    a builtin's name may stand for that: these are left out.
    """
    names, ambiguous = set(), set(dir(builtins))
    for tree in trees:
        more, unbounded = definitions(tree)
        names |= more
        ambiguous |= unbounded
    return names - ambiguous


def names_in(path):
    """Returns the names of our own functions that a file may call.

    A program's file calls programs; a test calls the helpers and what is in
    its folder, too. Of two functions with one name, a file's is the nearest.
    """
    called = [each for folder in PROGRAMS for each in SOURCES[folder]]
    if path in SOURCES["tests"]:
        called += [
            each
            for each in SOURCES["tests"]
            if each.parent in (HELPERS, path.parent)
        ]
    return own_names(map(tree_of, called)) | own_names([tree_of(path)])


def imported_from(tree):
    """Returns {name here: (first part of the module, name there)}."""
    found = {}
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                found[alias.asname or first] = first, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                first = node.module.split(".")[0]
                found[alias.asname or alias.name] = first, alias.name
    return found


def name_of_own(function, imports):
    """Returns the name of what a call calls; None if it is not our own."""
    root = function
    while isinstance(root, ast.Attribute):
        root = root.value
    if isinstance(root, ast.Name):
        package, original = imports.get(root.id, (None, root.id))
        if package is not None and package not in PACKAGES:
            return None
        if root is function:
            return original
    return getattr(function, "attr", None)


def num_positions(call):
    """Returns how many arguments are given by position, at least.

    >>> num_positions(ast.parse("f(1, *(2, 3), *rest, x=4)").body[0].value)
    4
    """
    return sum(
        len(each.value.elts)
        if isinstance(each, ast.Starred)
        and isinstance(each.value, ast.Tuple | ast.List)
        else 1
        for each in call.args
    )


def offenders(tree, own):
    """Yields (line, call) of each call with too many arguments by position.

    Args:
        tree: of a module.
        own: names of our own functions and classes.
    """
    imports = imported_from(tree)
    for node in nodes_of(tree):
        if isinstance(node, ast.Call) and num_positions(node) > MOST:
            name = name_of_own(node.func, imports)
            if name == "cls" or name in own:
                yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize("folder", FOLDERS)
def test_arguments_after_the_third_are_named(folder):
    assert SOURCES[folder]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {call}"
        for path in SOURCES[folder]
        for line, call in offenders(tree_of(path), names_in(path))
    ]
    assert found == []


def test_helpers_that_take_any_number_hide_names_from_tests_alone():
    assert "run" not in names_in(ROOT / "tests" / "english_test.py")
    assert "run" in names_in(ROOT / "t2t_lite" / "cli.py")
    # What a file has itself is nearer than a helper's.
    assert "main" in names_in(BENCHMARKS / "gpu.py")


EXAMPLE = """
import numpy as np
from t2t_lite import files
from t2t_lite.files import move as moved
from typing import NamedTuple

class Point(NamedTuple):
    x: int
    def shifted(self, a, b, c, d): ...
    @classmethod
    def of(cls, values): ...

def draw(a, b, c, d): ...
def clip(a, b, c, d): ...
def join(*parts): ...
def move(a, b, c, d): ...
"""


@pytest.mark.parametrize(
    ("call", "is_found"),
    [
        ("draw(1, 2, 3, 4)", True),
        ("draw(1, 2, 3, d=4)", False),
        ("draw(*(1, 2), *[3, 4])", True),
        ("draw(1, 2, 3, *rest)", True),
        ("Point(1, 2, 3, 4)", True),
        ("cls(1, 2, 3, 4)", True),
        ("point.shifted(1, 2, 3, 4)", True),
        ("make().shifted(1, 2, 3, 4)", True),
        ("files.move(1, 2, 3, 4)", True),
        ("moved(1, 2, 3, 4)", True),
        ("np.clip(1, 2, 3, 4)", False),
        ("join(1, 2, 3, 4)", False),
        ("print(1, 2, 3, 4)", False),
    ],
)
def test_calls_with_too_many_positions_are_found(call, is_found):
    tree = ast.parse(f"{EXAMPLE}\n{call}\n")
    assert bool(list(offenders(tree, own_names([tree])))) == is_found
