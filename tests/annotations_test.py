"""Public functions are annotated, and all docstrings follow one style."""

import ast
import itertools
import re

import pytest
from imports import MODULES, tree_of

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPERATIVE = re.compile(
    r"(Add|Build|Check|Compute|Draw|Give|Load|Make|Parse|Print|Raise|Read"
    r"|Return|Run|Save|Set|Start|Train|Write|Yield) "
)
VERB = re.compile(r"[A-Z][a-z]*(?<!s)s")  # Returns, Writes.
# Words that look like verbs, but begin a docstring as something else.
NO_VERBS = {
    "always", "as", "bytes", "hours", "indices", "its", "items", "keys",
    "layers", "lengths", "lines", "links", "names", "nouns", "numbers", "pairs",
    "paths", "pieces", "places", "rows", "seconds", "sentences", "shapes",
    "sides", "splits", "steps", "tensors", "texts", "this", "times", "tokens",
    "trees", "values", "verbs", "weights", "words",
}  # fmt: skip
SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields):$")


def is_public(name):
    return not name.startswith("_") or name.endswith("__")


def public_functions(body, prefix=""):
    """Yields (dotted name, node) of public functions and methods."""
    for node in body:
        if isinstance(node, FUNCTIONS) and is_public(node.name):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef) and is_public(node.name):
            yield from public_functions(node.body, f"{prefix}{node.name}.")


def parameters(function):
    """Returns all of a function's parameters, as nodes of the syntax tree."""
    every = function.args
    named = [*every.posonlyargs, *every.args, *every.kwonlyargs]
    return named + [each for each in (every.vararg, every.kwarg) if each]


def not_annotated(function):
    """Yields the names of what a function leaves without an annotation."""
    for each in parameters(function):
        if each.annotation is None and each.arg not in ("self", "cls"):
            yield each.arg
    if function.returns is None and function.name != "__init__":
        yield "what it returns"


def parameters_of(node):
    """Returns the names that a docstring's Args may explain; None if all."""
    if isinstance(node, ast.ClassDef):
        methods = {getattr(each, "name", None): each for each in node.body}
        node = methods.get("__init__")
    if node is None or node.args.kwarg:
        return None
    return {each.arg for each in parameters(node)}


def misspoken(node):
    """Yields how a function's or class's docstring departs from the style."""
    lines = (ast.get_docstring(node) or "").split("\n")
    if IMPERATIVE.match(lines[0]):
        yield f"begins with {lines[0].split()[0]!r}, not in the third person"
    for line in lines:
        if re.match(r"Args\b(?!:$)", line):
            yield f"has more than a header in {line!r}"
    for header, line in itertools.pairwise(lines):
        if SECTION.match(header) and not re.match(r" {4}\S", line):
            yield f"does not indent {header} by four"


def begins_with_a_verb(docstring):
    """Returns whether the first word is in the third person: Writes."""
    first = docstring.split()[0].rstrip(",")
    return bool(VERB.fullmatch(first)) and first.lower() not in NO_VERBS


def is_property(function):
    return any("property" in ast.unparse(d) for d in function.decorator_list)


def patterns(tree):
    """Returns the names in a module's table PATTERNS.

    These functions draw sentences, and their docstrings are examples of them.
    """
    return {
        each.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and ast.unparse(node.target) == "PATTERNS"
        for each in ast.walk(node.value)
        if isinstance(each, ast.Name)
    }


def without_a_verb(tree):
    """Yields (function, docstring) where that does not begin with a verb.

    Properties and patterns are left out: they say what they are.
    """
    excepted = patterns(tree)
    for node in ast.walk(tree):
        if not isinstance(node, FUNCTIONS) or is_property(node):
            continue
        docstring = ast.get_docstring(node)
        if not docstring or node.name in excepted:
            continue
        if not begins_with_a_verb(docstring):
            yield node, docstring


def explained(node):
    """Yields the names that the Args of a docstring explain."""
    section = None
    for line in (ast.get_docstring(node) or "").split("\n"):
        if line and not line.startswith(" "):
            section = line
        entry = re.match(r" {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*): ", line)
        if section == "Args:" and entry:
            yield from entry[1].replace("*", "").split(", ")


def documented(tree):
    """Yields the functions and classes of a module, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_are_annotated(name):
    missing = [
        f"line {node.lineno}, {function}: {each}"
        for function, node in public_functions(tree_of(MODULES[name]).body)
        for each in not_annotated(node)
    ]
    assert missing == []


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_are_of_one_dialect(name):
    found = [
        f"line {node.lineno}, {node.name}: {fault}"
        for node in documented(tree_of(MODULES[name]))
        for fault in misspoken(node)
    ]
    assert found == []


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_of_functions_begin_with_a_verb(name):
    found = [
        f"line {node.lineno}, {node.name}: {docstring}"
        for node, docstring in without_a_verb(tree_of(MODULES[name]))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("def f(): 'Returns it.'", False),
        ("def f(): 'Returns, for each line, its words.'", False),
        ("def f(): 'Does nothing.'", False),
        ("def f(): pass", False),
        ("def f(): 'Return it.'", True),
        ("def f(): 'Guess it.'", True),
        ("def f(): 'The words.'", True),
        ("def f(): 'Words of a line.'", True),
        ("def f(): 'Where: in the kitchen.'", True),
        ("def f(): '`words` without marks.'", True),
        ("def _f(): 'The words.'", True),
        ("async def f(): 'The words.'", True),
        ("def f():\n def g(): 'The words.'", True),
        ("class C:\n def f(self): 'The words.'", True),
        ("class C:\n @property\n def f(self): 'The words.'", False),
        ("class C: 'The words.'", False),
        ("def reading(draw): 'The boy reads.'", False),
        ("def helper(draw): 'The boy reads.'", True),
    ],
)
def test_docstrings_that_begin_with_no_verb_are_found(code, is_found):
    table = "PATTERNS: list = [(1, reading), (2, other_patterns.sleeping)]"
    tree = ast.parse(f"{code}\n{table}\n")
    assert bool(list(without_a_verb(tree))) == is_found


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_explain_all_arguments_or_none(name):
    found = [
        f"line {node.lineno}, {node.name}: {each}"
        for node in documented(tree_of(MODULES[name]))
        if (known := set(explained(node)))
        for each in (parameters_of(node) or set()) - known - {"self", "cls"}
    ]
    assert found == []


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_explain_arguments_that_exist(name):
    found = [
        f"line {node.lineno}, {node.name}: {each}"
        for node in documented(tree_of(MODULES[name]))
        for each in explained(node)
        if each not in (parameters_of(node) or [each])
    ]
    assert found == []
