"""The programs: flags and a main each, loaded one at a time.

`bin/NAME` runs one from a checkout, and `t2t-lite NAME` from an installation.
"""

import ast
import importlib
import importlib.resources
import sys

from t2t_lite import cli

NAMES = (
    *("train", "translate", "evaluate", "export", "average_checkpoints"),
    *("learn_vocabulary", "visualize_attention", "table_3"),
)


def run(name: str) -> None:
    """Runs the program called `name` on sys.argv, and exits.

    Two programs define flags of the same names, so only this one is imported.
    """
    cli.run(importlib.import_module(f"t2t_lite_commands.{name}"))


def main() -> None:
    """Runs `t2t-lite NAME --flag ...`; without a name it lists the names."""
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        wrong = len(sys.argv) > 1 and sys.argv[1] not in ("help", "--help")
        lines = [f"  {name:20} {_summary(name)}" for name in NAMES]
        text = "\n".join(["usage: t2t-lite COMMAND [--help]", "", *lines])
        print(text, file=sys.stderr if wrong else sys.stdout)
        sys.exit(1 if wrong else 0)
    name = sys.argv.pop(1)
    sys.argv[0] = f"t2t-lite {name}"
    run(name)


def _summary(name: str) -> str:
    """Returns the first line of a program's docstring, without importing it."""
    source = importlib.resources.files(__name__) / f"{name}.py"
    docstring = ast.get_docstring(ast.parse(source.read_text("utf-8")))
    return docstring.split("\n")[0]
