"""The exception that programs turn into one line, and checks that raise it."""

import importlib.util
import math
import numbers
import os
import pathlib
import re
from typing import Any

# What each extra of pyproject.toml is for.
_EXTRAS = {
    "corpora": "reading WMT14",
    "ctranslate2": "CTranslate2's format",
    "figures": "drawing pictures of attention",
    "formats": "reading or writing a model of another program",
    "serve": "serving a model on this machine",
    "serving": "exporting a model",
    "torch": "reading pytorch_model.bin",
}
# The limit on counts and sizes; no machine holds that many.
MOST = 1_000_000_000


class InputError(ValueError):
    """Something the user gave is wrong; one line says what to do.

    Raised for files, flags, settings and model directories that cannot be
    used. A program prints the line and exits with status 1; a library's caller
    sees an ordinary ValueError.
    """


def reason(error: Exception) -> str:
    """Returns the first line of an error, without TensorFlow's own names.

    >>> reason(OSError("{{function_node f}} a/b; disk full [Op:SaveV2]"))
    'a/b; disk full'
    """
    line = str(getattr(error, "message", error)).split("\n")[0]
    return re.sub(r"^\{\{.*?\}\} | \[Op:\w+\]$", "", line)


def program(name: str) -> str:
    """Returns what users call a program: bin/NAME, or t2t-lite NAME."""
    return f"bin/{name}" if _is_checkout() else f"t2t-lite {name}"


def _is_checkout() -> bool:
    checkout = pathlib.Path(__file__).resolve().parents[1]
    return (checkout / "pyproject.toml").exists()


def require_index(count: int, **received: int | None) -> None:
    """Checks that indices, counted from 0, are below `count`.

    Args:
        count: how many there are.
        **received: indices by name; None is allowed.

    Raises:
        InputError: one is not.
    """
    for name, index in received.items():
        if index is not None and not 0 <= index < count:
            raise InputError(
                f"{name} must be from 0 to {count - 1} for this model; "
                f"received {name}={index}"
            )


def require(rule: str, holds: bool, **received: Any) -> None:
    """Checks that a rule about arguments holds.

    >>> require("d_model must be even", 3 % 2 == 0, d_model=3)
    Traceback (most recent call last):
    t2t_lite.errors.InputError: d_model must be even; received d_model=3

    Args:
        rule: what must hold.
        holds: whether it does.
        **received: the arguments that the rule is about.

    Raises:
        InputError: the rule does not hold.
    """
    if not holds:
        values = ", ".join(f"{k}={v!r}" for k, v in received.items())
        raise InputError(f"{rule}; received {values}")


def require_int(least: int, **arguments: Any) -> None:
    """Checks that arguments are integers and at least `least`.

    Raises:
        InputError: one is not.
    """
    for name, value in arguments.items():
        received = {name: value}
        is_bool = isinstance(value, bool)
        is_int = isinstance(value, numbers.Integral) and not is_bool
        require(f"{name} must be an integer", is_int, **received)
        require(f"{name} must be at least {least}", value >= least, **received)
        require_small(**received)


def require_small(**integers: int) -> None:
    """Checks that integers are so small that the sum of two fits in 32 bits.

    Raises:
        InputError: one is not.
    """
    for name, value in integers.items():
        rule = f"{name} must be at most {MOST:,}"
        require(rule, value <= MOST, **{name: value})


def require_optional_bool(**arguments: Any) -> None:
    """Checks that arguments are True, False, or None.

    Raises:
        InputError: one is not.
    """
    for name, value in arguments.items():
        is_bool = value is None or _is_bool(value)
        require(f"{name} must be True, False or None", is_bool, **{name: value})


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ == "bool_"


def require_bool(**arguments: Any) -> None:
    """Checks that arguments are True or False.

    Raises:
        InputError: one is not.
    """
    for name, value in arguments.items():
        rule = f"{name} must be True or False"
        require(rule, _is_bool(value), **{name: value})


def require_positive(**arguments: Any) -> None:
    """Checks that arguments are finite numbers above 0.

    Raises:
        InputError: one is not.
    """
    for name, value in arguments.items():
        is_number = isinstance(value, numbers.Real)
        holds = is_number and 0 < value < math.inf  # NaN is refused too.
        rule = f"{name} must be a finite number above 0"
        require(rule, holds, **{name: value})


def require_path(**arguments: Any) -> None:
    """Checks that arguments are paths.

    Raises:
        TypeError: one is neither a str nor an os.PathLike.
    """
    for name, value in arguments.items():
        if not isinstance(value, str | os.PathLike):
            raise TypeError(f"{name} must be a path; received {value!r}")


def require_rate(**arguments: Any) -> None:
    """Checks that arguments are numbers in [0, 1).

    Raises:
        InputError: one is not.
    """
    for name, value in arguments.items():
        is_rate = isinstance(value, numbers.Real) and 0 <= value < 1
        require(f"{name} must be in [0, 1)", is_rate, **{name: value})


def require_extra(module: str, extra: str, otherwise: str = "") -> None:
    """Checks that a module that comes only with an extra is installed.

    Args:
        module: name of the module, such as "matplotlib"; it is not imported.
        extra: name of the extra, such as "figures".
        otherwise: what else the user can do, such as "leave out --png_prefix".

    Raises:
        InputError: the module is missing; the line says how to install it.
    """
    if importlib.util.find_spec(module.split(".")[0]) is not None:
        return
    remedy = f", or {otherwise}" if otherwise else ""
    what = f"-e '.[{extra}]'" if _is_checkout() else f"'t2t_lite[{extra}]'"
    raise InputError(
        f"{_EXTRAS[extra]} needs {module}, which is not installed: "
        f"pip install {what}{remedy}"
    )
