"""The one exception that the programs turn into one line on stderr."""

import importlib.util
import pathlib

# What each extra of pyproject.toml is for.
_EXTRAS = {
    "corpora": "reading WMT14",
    "figures": "drawing pictures of attention",
    "serving": "exporting a model",
}


class InputError(ValueError):
    """Something the user gave is wrong; one line says what to do.

    Raised for files, flags, settings and model directories that cannot be
    used. A program prints the line and exits with status 1; a library's caller
    sees an ordinary ValueError.
    """


def require_extra(module: str, extra: str) -> None:
    """Checks that a module is installed that comes with an extra only.

    Args:
        module: Name of the module, such as "matplotlib"; it is not imported.
        extra: Name of the extra, such as "figures".

    Raises:
        InputError: The module is missing; the line says how to install it.
    """
    if importlib.util.find_spec(module.split(".")[0]) is not None:
        return
    checkout = pathlib.Path(__file__).resolve().parents[1]
    is_checkout = (checkout / "pyproject.toml").exists()
    what = f"-e '.[{extra}]'" if is_checkout else f"'t2t_lite[{extra}]'"
    raise InputError(
        f"{_EXTRAS[extra]} needs {module}, which is not installed: "
        f"pip install {what}"
    )
