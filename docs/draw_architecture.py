"""Draws the graph in docs/architecture.md from what the modules import.

    python docs/draw_architecture.py

A box is a wing and its modules; an arrow goes to a wing that it imports, unless
another arrow leads there too. What all wings import is left out.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).absolute().parents[1]
sys.path[:0] = [str(ROOT / "bin"), str(ROOT / "tests" / "helpers")]

from imports import BASE, MODULES, imported_modules, wing_of  # noqa: E402

PAGE = ROOT / "docs" / "architecture.md"

TITLES = {"t2t_lite_commands": "bin/commands", "t2t_lite_data": "data"}
WIDTH = 26  # Characters in a line of a box.


def modules_of_wings() -> dict[str, list[str]]:
    """Returns the names of each wing's modules, without the wing's own."""
    wings = {}
    for module, path in MODULES.items():
        if wing_of(module) not in BASE | {"t2t_lite"}:
            modules = wings.setdefault(wing_of(module), [])
            if path.stem not in ("__init__", wing_of(module)):
                modules.append(path.stem)
    return wings


def imports_of_wings() -> dict[str, set[str]]:
    """Returns the wings that each wing imports."""
    imports = {wing: set() for wing in modules_of_wings()}
    for module, path in MODULES.items():
        wing = wing_of(module)
        if wing in imports:
            imports[wing] |= {wing_of(name) for name in imported_modules(path)}
    return {
        wing: (found & set(imports)) - {wing} for wing, found in imports.items()
    }


def reachable(imports: dict[str, set[str]], wing: str) -> set[str]:
    """Returns all wings that a wing imports, or that those import."""
    found = set(imports[wing])
    for each in imports[wing]:
        found |= reachable(imports, each)
    return found


def arrows(imports: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Returns the imports that no longer way implies.

    >>> arrows({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    [('a', 'b'), ('b', 'c')]
    """
    return [
        (wing, below)
        for wing, found in imports.items()
        for below in sorted(found)
        if not any(below in reachable(imports, each) for each in found)
    ]


def drawing() -> str:
    """Returns the graph as Mermaid's text."""
    lines = ["graph TD"]
    for wing, modules in modules_of_wings().items():
        title = f"<b>{TITLES.get(wing, wing)}</b>"
        label = [title, *textwrap.wrap(", ".join(modules), WIDTH)]
        lines.append(f'  {wing}["{"<br/>".join(label)}"]')
    lines += [f"  {a} --> {b}" for a, b in arrows(imports_of_wings())]
    return "\n".join(lines)


def main() -> None:
    """Puts the graph into the page."""
    page = PAGE.read_text("utf-8")
    graph = f"```mermaid\n{drawing()}\n```"
    page = re.sub(r"```mermaid\n.*?```", lambda _: graph, page, flags=re.S)
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
