"""Calls of what this repository defines name most of their arguments."""

import ast
import collections
import textwrap

import pytest
from imports import MODULES, tree_of, wing_of

# Those whose calls are looked at, as `wing_of` names them; what they call may
# be anywhere.
WINGS = ("decoding", "serving", "formats")
MOST = 3


def _is_class(node):
    return isinstance(node, ast.ClassDef)


def _is_function(node):
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _is_definition(node):
    """Returns whether a node defines what takes a fixed number of arguments."""
    return _is_class(node) or (_is_function(node) and not node.args.vararg)


def _methods(node):
    return [
        each for each in filter(_is_function, node.body) if _is_definition(each)
    ]


class _Definitions:
    """The functions and classes of modules, by where they are.

    Args:
        trees: the syntax tree of each module, by its dotted name.
    """

    def __init__(self, trees):
        self.of_module = {}
        classes_with = collections.Counter()
        for module, tree in trees.items():
            names = {node.name for node in tree.body if _is_definition(node)}
            self.of_module[module] = names
            for node in filter(_is_class, ast.walk(tree)):
                classes_with.update(each.name for each in _methods(node))
        self.unambiguous_methods = {
            name for name, count in classes_with.items() if count == 1
        }


class _Calls(ast.NodeVisitor):
    """Finds the calls in a file that leave too many arguments unnamed."""

    def __init__(self, tree, definitions):
        self._definitions = definitions
        self._imported = _imported(tree)
        nodes = [*filter(_is_definition, ast.walk(tree))]
        methods = {
            each for node in filter(_is_class, nodes) for each in node.body
        }
        self._own = {node.name for node in nodes if node not in methods}
        self._classes = []
        self.found = []
        self.visit(tree)

    def visit_ClassDef(self, node):
        self._classes.append(node)
        self.generic_visit(node)
        self._classes.pop()

    def visit_Call(self, node):
        if len(node.args) > MOST and self._is_ours(node.func):
            self.found.append(f"{node.lineno}: {ast.unparse(node.func)}")
        self.generic_visit(node)

    def _is_ours(self, function):
        if isinstance(function, ast.Name):
            is_class = function.id == "cls" and bool(self._classes)
            return is_class or self._is_defined(function)
        if not isinstance(function, ast.Attribute):
            return False
        owner, name = function.value, function.attr
        if name == "__init__" and ast.unparse(owner) == "super()":
            return any(map(self._is_defined, self._classes[-1].bases))
        of_class = _methods(self._classes[-1]) if self._classes else []
        is_self = ast.unparse(owner) == "self"
        if is_self and name in {each.name for each in of_class}:
            return True
        imported = self._imported.get(ast.unparse(owner).split(".")[0])
        if imported in self._definitions.of_module:
            return name in self._definitions.of_module[imported]
        if imported is not None and not self._is_defined(owner):
            return False  # It is a library's.
        return name in self._definitions.unambiguous_methods

    def _is_defined(self, node):
        """Returns whether a name is that of our own function or class."""
        if isinstance(node, ast.Attribute):
            module = self._imported.get(ast.unparse(node.value), "")
            return node.attr in self._definitions.of_module.get(module, ())
        if not isinstance(node, ast.Name):
            return False
        module, _, name = self._imported.get(node.id, "").rpartition(".")
        defined = self._definitions.of_module.get(module, ())
        return name in defined or node.id in self._own


def _imported(tree):
    """Returns the full name of each name that a file imports."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                first = each.name.split(".")[0]
                found[each.asname or first] = (
                    each.name if each.asname else first
                )
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                found[each.asname or each.name] = f"{node.module}.{each.name}"
    return found


def test_at_most_three_arguments_go_by_position():
    trees = {module: tree_of(path) for module, path in MODULES.items()}
    definitions = _Definitions(trees)
    found = [
        f"{MODULES[module]}:{each}"
        for module, tree in trees.items()
        if wing_of(module) in WINGS
        for each in _Calls(tree, definitions).found
    ]
    assert not found, "\n".join(found)


def test_each_wing_has_modules():
    assert {*WINGS} <= {*map(wing_of, MODULES)}


@pytest.mark.parametrize(
    ("call", "is_found"),
    [
        ("one(1, 2, 3, 4)", True),
        ("one(1, 2, 3, d=4)", False),
        ("one(1, 2, *[3], 4)", True),
        ("imported(1, 2, 3, 4)", True),
        ("renamed(1, 2, 3, 4)", True),
        ("other.imported(1, 2, 3, 4)", True),
        ("np.imported(1, 2, 3, 4)", False),
        ("np.only(1, 2, 3, 4)", False),
        ("several(1, 2, 3, 4)", False),
        ("Child(1, 2, 3, 4)", True),
        ("anything.only(1, 2, 3, 4)", True),
        ("anything.twice(1, 2, 3, 4)", False),
        ("print(1, 2, 3, 4)", False),
    ],
)
def test_a_call_with_four_is_found(call, is_found):
    other = """
        def imported(a, b, c, d): ...

        class Parent:
            def twice(self, a, b, c, d): ...
    """
    mine = f"""
        import numpy as np
        from t2t_lite import other
        from t2t_lite.other import imported, imported as renamed

        def one(a, b, c, d): ...

        def several(*values): ...

        class Child(other.Parent):
            def only(self, a, b, c, d): ...

            def twice(self, a, b, c, d): ...

        {call}
    """
    assert bool(_found(mine, other)) == is_found


@pytest.mark.parametrize("base", ["Parent", "other.Parent"])
@pytest.mark.parametrize(
    "call",
    [
        "super().__init__(1, 2, 3, 4)",
        "self.twice(1, 2, 3, 4)",
        "cls(1, 2, 3, 4)",
    ],
)
def test_a_call_within_a_class_is_found(base, call):
    other = """
        class Parent:
            def __init__(self, a, b, c, d): ...

            def twice(self, a, b, c, d): ...
    """
    mine = f"""
        from t2t_lite import other
        from t2t_lite.other import Parent

        class Child({base}):
            def twice(self, a, b, c, d): ...

            def one(self, cls):
                {call}
    """
    assert len(_found(mine, other)) == 1


def _found(mine, other):
    trees = {
        "t2t_lite.mine": ast.parse(textwrap.dedent(mine)),
        "t2t_lite.other": ast.parse(textwrap.dedent(other)),
    }
    return _Calls(trees["t2t_lite.mine"], _Definitions(trees)).found
