"""The output of a long translation, which an interrupted one goes on with.

Until all is done it lies in OUTPUT.partial: a line that says what work it is
of, and below it what OUTPUT will hold. Lines are translated in windows that
begin at fixed lines of the input, so what a window gives depends on its lines
alone. Each line of the input gives the same number of lines: those of the file
tell how many windows are whole, and what a killed process has left behind them
is cut off. So there is nothing that would have to be in step with the file.
"""

import contextlib
import hashlib
import io
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NoReturn

from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError

if TYPE_CHECKING:
    from t2t_lite.decoding.line_predictor import LinePredictor

_INPUT, _PREFIXES = "input_sha256", "prefixes_sha256"
_MODEL, _GLOSSARY = "model_sha256", "glossary_sha256"
_MOST_HEADER_BYTES = 2**20


class LineOutput:
    """Takes what the lines of an input give, one after the other.

    Args:
        file: to write text to.
        first_line: int, the number of the line to begin with; those before it
            are done.
        window: int, after how many lines what was written is safe from the
            end of the process; None: when the file is complete.
    """

    def __init__(
        self, file: IO[str], first_line: int = 1, window: int | None = None
    ):
        self.first_line = first_line
        self.is_complete = False  # Whether all lines are written.
        # How many lines are done that another process need not do again.
        self.lines_kept = first_line - 1
        self._file, self._window = file, window
        self._lines_done = first_line - 1

    def write(self, text: str) -> None:
        """Writes all that one line of the input gives."""
        self._file.write(text)
        self._lines_done += 1
        if self._window and self._lines_done % self._window == 0:
            self._file.flush()
            self.lines_kept = self._lines_done

    def rest(self, lines: Iterable[str] | None) -> Iterator[str] | None:
        """Returns the lines that are not done yet, of all; None for None."""
        if lines is None:
            return None
        return itertools.islice(lines, self.first_line - 1, None)

    def isatty(self) -> bool:
        """Returns whether it is shown on a terminal."""
        return self._file.isatty()


def partial_path(path: str | None) -> str | None:
    """Returns where the part of an output that is done lies; None: nowhere.

    >>> partial_path("some.de"), partial_path("-")
    ('some.de.partial', None)
    """
    is_here = files.is_whole_file(path) and not files.is_remote(path)
    return f"{path}.partial" if is_here else None


@contextlib.contextmanager
def opened(
    path: str | None,
    inputs: Sequence[str | None],
    predictor: "LinePredictor",
    window: int,
    options: Mapping[str, Any],
) -> Iterator[LineOutput]:
    """Gives a program's output, which goes on where an earlier one stopped.

    It begins anew where the input cannot be read again (standard input, pipes)
    and where the output is no file (standard output, devices).

    Args:
        path: that of `files.output_file`.
        inputs: paths of the input, None or "-" for standard input; and of the
            prefixes, None for none.
        predictor: LinePredictor.
        window: int, how many lines are translated together.
        options: what else shapes the output, by name; the predictor's own
            options need not be among them.

    Raises:
        InputError: the output cannot be written, another process writes it, or
            what is done of it is of other work.
    """
    partial = partial_path(path)
    source, prefixes = inputs
    can_go_on = _can_be_read_again(source) and (
        prefixes is None or _can_be_read_again(prefixes)
    )
    if partial is None or not can_go_on:
        with files.output_file(path) as file:
            yield LineOutput(file)
        return
    work = {
        _INPUT: files.sha256(source),
        _PREFIXES: None if prefixes is None else files.sha256(prefixes),
        _MODEL: predictor.sha256(),
        "batch_lines": window,
        **predictor.options._asdict(),
        **options,
    }
    # Of any number of terms.
    terms = json.dumps(work.pop("glossary", None)).encode()
    work[_GLOSSARY] = hashlib.sha256(terms).hexdigest()
    header = json.dumps(work).encode() + b"\n"
    with files.refused_errors(partial), _locked(partial) as file:
        _require_header(file, header, partial)
        windows = _keep_windows(file, window * predictor.options.num_results)
        first_line = 1 + windows * window
        if windows:
            logging.info("Resuming at line %d, from %s.", first_line, partial)
        with (
            io.TextIOWrapper(file, "utf-8", newline="\n") as text,
            _kept_if_begun(
                LineOutput(text, first_line, window), partial
            ) as output,
        ):
            yield output
            text.flush()
            output.is_complete = True
            file.seek(len(header))
            _complete(file, path)
            os.remove(os.path.expanduser(partial))


def begun_with(partial: str | None) -> dict[str, Any]:
    """Returns what the part that is done says of its work; {} if it is none.

    Args:
        partial: that of `partial_path`.
    """
    if partial is None or not os.path.isfile(os.path.expanduser(partial)):
        return {}
    with open(os.path.expanduser(partial), "rb") as file:
        return _parsed(file.readline(_MOST_HEADER_BYTES)) or {}


def _parsed(header: bytes) -> dict[str, Any] | None:
    """Returns what a first line says; None if it is no such line."""
    try:
        return dict(files.parse_json(header))
    except (ValueError, TypeError):
        return None


def _can_be_read_again(source: str | None) -> bool:
    is_stdin = source in (None, "-")
    return not is_stdin and files.to_path(source).is_file()


@contextlib.contextmanager
def _locked(partial: str) -> Iterator[BinaryIO]:
    """Gives the file to read and write; it is made if there is none."""
    if os.path.isdir(os.path.expanduser(partial)):
        raise InputError(
            f"cannot keep a partial translation in {partial}, which is a "
            "folder: move it, or give another --output"
        )
    refusal = (
        f"another process is writing {partial}: wait for it to finish, or give "
        "another --output"
    )
    with (
        files.locked(os.path.expanduser(partial), refusal) as descriptor,
        os.fdopen(os.dup(descriptor), "r+b") as file,
    ):
        yield file


def _require_header(file: BinaryIO, header: bytes, partial: str) -> None:
    """Reads the first line; writes it where there is none, or a part of it.

    Raises:
        InputError: it is that of other work.
    """
    found = file.readline(_MOST_HEADER_BYTES)
    if found == header:
        return
    if not header.startswith(found):
        _refuse(found, json.loads(header), partial)
    file.seek(0)
    file.write(header)


def _refuse(found: bytes, work: dict[str, Any], partial: str) -> NoReturn:
    """Raises InputError where the first line is not that of the work."""
    begun = _parsed(found)
    if begun is None:
        raise InputError(
            f"{partial} is not a partial translation: delete it, or give "
            "another --output"
        )
    names = {
        _INPUT: "a different input",
        _PREFIXES: "different prefixes",
        _MODEL: "a different model",
        _GLOSSARY: "a different glossary",
    }
    different = [name for name in work if begun.get(name) != work[name]]
    if "precision" in different and _MODEL in different:
        different.remove(_MODEL)  # Its weights are rounded.
    differences = [
        names.get(name, f"{name}={begun.get(name)}") for name in different
    ]
    begun_with = ", ".join(differences) or "a different version"
    raise InputError(
        f"{partial} was started with {begun_with}: use the same again, or "
        "delete it to start over"
    )


def _keep_windows(file: BinaryIO, lines_per_window: int) -> int:
    """Returns how many windows are whole; what is behind them is cut off."""
    windows, position = 0, file.tell()
    end = position
    for n, line in enumerate(file, start=1):
        position += len(line)
        if n % lines_per_window == 0 and line.endswith(b"\n"):
            windows, end = windows + 1, position
    file.seek(end)
    file.truncate()
    return windows


@contextlib.contextmanager
def _kept_if_begun(output: LineOutput, partial: str) -> Iterator[LineOutput]:
    """Says what an interruption leaves; without a whole window, nothing."""
    try:
        yield output
    except BaseException:
        if output.is_complete:
            logging.info("All lines are done, and are in %s.", partial)
        elif not output.lines_kept:
            os.remove(os.path.expanduser(partial))
        else:
            logging.info(
                "Stopped; run the same command again to resume at line %d.",
                output.lines_kept + 1,
            )
        raise


def _complete(file: BinaryIO, path: str) -> None:
    """Writes what is left to read in a file to `path`, at once."""
    with files.refused_errors(path), files.atomic_file(path, "wb") as output:
        if not path.endswith(".gz"):
            shutil.copyfileobj(file, output)
            return
        with files.compressed(output) as binary:
            shutil.copyfileobj(file, binary)
