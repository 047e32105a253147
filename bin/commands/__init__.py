"""The programs: each module is one, with flags and a main, loaded by itself.

`bin/NAME` runs a program from a checkout, `t2t-lite NAME` from an installation.
"""

import ast
import difflib
import importlib
import importlib.resources
import sys

from t2t_lite import cli

NAMES = (
    "train",
    "translate",
    "evaluate",
    "score",
    "export",
    "serve",
    "import_model",
    "average_checkpoints",
    "learn_vocabulary",
    "visualize_attention",
    "table_3",
)


def run(name: str) -> None:
    """Runs the program called `name` on sys.argv, and exits.

    Only this program is imported: flags are global, and others define flags
    with the same names.
    """
    cli.run(importlib.import_module(f"t2t_lite_commands.{name}"))


def main() -> None:
    """Runs `t2t-lite NAME --flag ...`; without a name, lists the names."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("help", "-h", "--help"):
        print("usage: t2t-lite COMMAND [--help]\n")
        for each in NAMES:
            print(f"  {each:20} {_summary(each)}")
        return
    if name not in NAMES:
        nearest = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else ", ".join(NAMES)
        sys.exit(f"error: no command is called {name!r}: {hint}")
    sys.argv[:2] = [f"t2t-lite {name}"]
    run(name)


def _summary(name: str) -> str:
    """Returns the first line of a program's docstring, without importing it."""
    source = importlib.resources.files(__name__) / f"{name}.py"
    docstring = ast.get_docstring(ast.parse(source.read_text("utf-8")))
    return docstring.split("\n")[0]
