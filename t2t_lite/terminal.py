"""What a terminal shows and takes: bars, and typed lines."""

import contextlib
import io
import os
import sys
from collections.abc import Iterable, Iterator
from typing import IO, TypeVar

import tqdm
from absl import logging

_Result = TypeVar("_Result")


def is_typed(path: str | None) -> bool:
    """Returns whether a program's input is typed on a terminal.

    Args:
        path: of the input; None or "-" for stdin.
    """
    is_stdin = path in (None, "-") and sys.stdin is not None
    return is_stdin and sys.stdin.isatty()


def typed_lines() -> Iterator[str]:
    """Yields the lines that are typed, each after a prompt, until Ctrl-D.

    If stdout is a terminal too, lines can be edited, and the arrow keys bring
    back earlier ones. A line that is not UTF-8 is skipped, with a message.
    """
    with contextlib.suppress(ImportError):  # Not all builds of Python have it.
        import readline  # noqa: F401, input() edits lines with it
    sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    print("Ready: type a line. Ctrl-D ends.", file=sys.stderr)
    while True:
        try:
            yield _typed_line("> ")
        except UnicodeDecodeError:
            print("error: text must be UTF-8: type it again", file=sys.stderr)
        except EOFError:
            print(file=sys.stderr)
            return


def _typed_line(prompt: str) -> str:
    if sys.stdout.isatty():
        return input(prompt)
    with contextlib.redirect_stdout(sys.stderr):  # Not among the results.
        return input(prompt)


def with_bar(
    results: Iterable[_Result],
    total: int | None,
    output: IO | None = None,
    done: int = 0,
) -> Iterator[_Result]:
    """Yields results, and shows in a bar on stderr how many there are.

    There is no bar if stderr is not a terminal, or if `output` shows the
    results on one. Log lines appear above the bar.

    Args:
        results: one for each line.
        total: how many; None if that is not known.
        output: where the results are written meanwhile, if anywhere.
        done: how many of the total came before these.
    """
    is_shown = sys.stderr.isatty() and not (output and output.isatty())
    if not is_shown:
        yield from results
        return
    bar = tqdm.tqdm(
        results,
        total=total,
        initial=done,
        unit=" lines",
        dynamic_ncols=True,
        leave=False,
    )
    handler = logging.get_absl_handler().python_handler
    stream = handler.setStream(AboveBar())
    try:
        yield from bar
    finally:
        handler.setStream(stream)


class AboveBar(io.TextIOBase):
    """A stream to stderr that the bars on it make room for."""

    def write(self, text: str) -> int:
        """Writes text above the bars; returns its length."""
        tqdm.tqdm.write(text, file=sys.stderr, end="")
        return len(text)


@contextlib.contextmanager
def silent_cpp() -> Iterator[None]:
    """Discards what C++ code writes to stderr; Python still writes there.

    So it is in all threads, and in child processes.
    """
    with (
        os.fdopen(os.dup(2), "w", 1, errors="backslashreplace") as python,
        silent_stderr(),
        contextlib.redirect_stderr(python),
    ):
        handler = logging.get_absl_handler().python_handler
        stream = handler.setStream(python)
        try:
            yield
        finally:
            handler.setStream(stream)


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Discards what C++ code writes to stderr; exceptions still propagate."""
    if sys.stderr is not None:
        sys.stderr.flush()
    before = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def discard_stderr() -> None:
    """Discards all that is written to stderr from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
