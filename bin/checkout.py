"""Imports this checkout's packages, under the names that a wheel gives them.

    import checkout

A program next to this file, or one that has its folder on sys.path, gets the
code of the same checkout, whatever is installed.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import types
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = {
    "t2t_lite": ROOT / "t2t_lite",
    "t2t_lite_data": ROOT / "data",
    "t2t_lite_commands": ROOT / "bin" / "commands",
}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds each of PACKAGES in its folder of the checkout."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in PACKAGES:
            return None
        folder = PACKAGES[fullname]
        return importlib.util.spec_from_file_location(
            fullname,
            folder / "__init__.py",
            submodule_search_locations=[str(folder)],
        )


sys.meta_path.insert(0, _Finder())
