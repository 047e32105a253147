"""The output of a long translation, which resumes after an interruption.

Until all is done, it is in OUTPUT.partial: a line that says which work it
belongs to, and below it what OUTPUT will hold. Lines are translated in windows
that begin at fixed lines of the input, so what a window gives depends only on
its lines. Each line of the input gives the same number of lines, so those of
the file tell how many windows are whole; what a killed process has left after
them is cut off. So nothing else has to be kept in step with the file.
"""

import contextlib
import dataclasses
import hashlib
import io
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn

from absl import logging

from t2t_lite import files
from t2t_lite.errors import InputError
from t2t_lite.hardware import KINDS, Hardware, find_hardware

if TYPE_CHECKING:
    from t2t_lite.decoding.line_predictor import LinePredictor

_INPUT, _PREFIXES = "input_sha256", "prefixes_sha256"
_MODEL, _GLOSSARY = "model_sha256", "glossary_sha256"
_HARDWARE = "hardware"
_MOST_HEADER_BYTES = 2**20
_ENOUGH_SHARE = 0.9


class LineOutput:
    """Takes the output of an input's lines, one after the other.

    Args:
        file: to write text to.
        first_line: int, the number of the line to begin with; those before it
            are done.
        window: int, after how many lines what was written survives the end of
            the process; None: only when the file is complete.
    """

    def __init__(
        self, file: IO[str], first_line: int = 1, window: int | None = None
    ):
        self.first_line = first_line
        self.is_complete = False  # Whether all lines are written.
        # How many lines another process would not have to do again.
        self.lines_kept = first_line - 1
        self._file, self._window = file, window
        self._lines_done = first_line - 1

    def write(self, text: str) -> None:
        """Writes all the output of one line of the input."""
        self._file.write(text)
        self._lines_done += 1
        if self._window and self._lines_done % self._window == 0:
            self._file.flush()
            self.lines_kept = self._lines_done

    def rest(self, lines: Iterable[str] | None) -> Iterator[str] | None:
        """Returns those of all lines that are not done yet; None for None."""
        if lines is None:
            return None
        return itertools.islice(lines, self.first_line - 1, None)

    def isatty(self) -> bool:
        """Returns whether the output is shown on a terminal."""
        return self._file.isatty()


def partial_path(path: str | None) -> str | None:
    """Returns where the finished part of an output is; None for nowhere.

    >>> partial_path("some.de"), partial_path("-")
    ('some.de.partial', None)
    """
    is_here = files.is_atomic_output(path) and not files.is_remote(path)
    return f"{path}.partial" if is_here else None


@contextlib.contextmanager
def open_output(
    path: str | None,
    inputs: Sequence[str | None],
    predictor: "LinePredictor",
    window: int,
    options: Mapping[str, Any],
) -> Iterator[LineOutput]:
    """Gives a program's output, which continues where an earlier one stopped.

    It starts over if the input cannot be read again (standard input, pipes) or
    the output is not a file (standard output, devices).

    Args:
        path: that of `files.output_file`.
        inputs: paths of the input, None or "-" for standard input; and of the
            prefixes, None for none.
        predictor: LinePredictor.
        window: int, how many lines are translated together.
        options: what else shapes the output, by name; the predictor's own
            options need not be among them.

    Raises:
        InputError: the output cannot be written, another process is writing it,
            or its finished part belongs to other work.
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
    # Only its hash is kept: it may have any number of terms.
    terms = json.dumps(work.pop("glossary", None)).encode()
    work[_GLOSSARY] = hashlib.sha256(terms).hexdigest()
    header = json.dumps(work).encode() + b"\n"
    with files.os_errors_as_input_errors(partial), _locked(partial) as file:
        _require_header(file, header, partial)
        windows = _keep_windows(
            file, window * predictor.options.results_per_line
        )
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


def read_header(partial: str | None) -> dict[str, Any]:
    """Returns what the finished part says of its work; {} if there is none.

    Args:
        partial: that of `partial_path`.
    """
    if partial is None or not os.path.isfile(os.path.expanduser(partial)):
        return {}
    with open(os.path.expanduser(partial), "rb") as file:
        return _parsed(file.readline(_MOST_HEADER_BYTES)) or {}


class Sizing(NamedTuple):
    """The hardware that the batches of a translation suit."""

    hardware: Hardware | None  # None for that of this process
    options: dict[str, Any]  # of `open_output`: what OUTPUT.partial keeps of it


def find_sizing(
    header: Mapping[str, Any], engine: str = "tensorflow"
) -> Sizing:
    """Returns the Sizing of a translation that is begun or resumed.

    What is resumed keeps its batches, because the last bits of scores may
    depend on them. A device of another kind, or a GPU with less memory, has
    batches of its own: it gives other bits anyway, or cannot hold the others.

    Args:
        header: that of `read_header`. If it has no hardware, as with older
            versions, the batches suit this process.
        engine: one of `engines.NAMES`. With CTranslate2, batches always suit
            the process: it loads its model before TensorFlow uses a GPU.
    """
    if engine == "ctranslate2" or (header and _HARDWARE not in header):
        return Sizing(None, {})
    found = find_hardware()
    begun_on = _as_hardware(header.get(_HARDWARE)) or found
    hardware = begun_on if _can_take_batches_of(begun_on, found) else found
    # Hardware that is none is not kept, so that its header is refused.
    return Sizing(hardware, {_HARDWARE: dataclasses.asdict(begun_on)})


def _as_hardware(kept: Any) -> Hardware | None:
    """Returns the Hardware that a first line has; None if it is none."""
    try:
        hardware = Hardware(**kept)
    except TypeError:
        return None
    numbers = (
        hardware.memory_bytes,
        hardware.num_cores,
        hardware.most_parts,
    )
    are_sizes = all(isinstance(n, int | float) and n > 0 for n in numbers)
    return hardware if hardware.kind in KINDS and are_sizes else None


def _can_take_batches_of(begun_on: Hardware, found: Hardware) -> bool:
    """Returns whether batches that suit the first Hardware suit another, too.

    How much of a GPU's memory is free varies a little from start to start.
    """
    if begun_on.kind != found.kind:
        return False
    enough = _ENOUGH_SHARE * begun_on.memory_bytes
    return found.kind == "CPU" or found.memory_bytes >= enough


def _parsed(header: bytes) -> dict[str, Any] | None:
    """Returns what a first line says; None if it is not such a line."""
    try:
        return dict(files.parse_json(header))
    except (ValueError, TypeError):
        return None


def _can_be_read_again(source: str | None) -> bool:
    is_stdin = source in (None, "-")
    return not is_stdin and files.to_path(source).is_file()


@contextlib.contextmanager
def _locked(partial: str) -> Iterator[BinaryIO]:
    """Gives the file to read and write; creates it if there is none."""
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
    """Reads the first line; writes it if none or only a part of it is there.

    Raises:
        InputError: it belongs to other work.
    """
    found = file.readline(_MOST_HEADER_BYTES)
    if found == header:
        return
    if not _is_cut(found, header):
        _refuse(found, json.loads(header), partial)
    file.seek(0)
    file.write(header)
    file.truncate()


def _is_cut(found: bytes, header: bytes) -> bool:
    """Returns whether a first line is the beginning of one like the header.

    Where it is cut, the hardware that it may have kept is lost.
    """
    same_work, _, _ = header.partition(f'"{_HARDWARE}"'.encode())
    return header.startswith(found) or (
        found.startswith(same_work) and not found.endswith(b"\n")
    )


def _refuse(found: bytes, work: dict[str, Any], partial: str) -> NoReturn:
    """Raises InputError, because the first line is not that of the work."""
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
        different.remove(_MODEL)  # Because its weights are rounded.
    differences = [
        names.get(name, f"{name}={begun.get(name)}") for name in different
    ]
    begun_with = ", ".join(differences) or "a different version"
    raise InputError(
        f"{partial} was started with {begun_with}: use the same again, or "
        "delete it to start over"
    )


def _keep_windows(file: BinaryIO, lines_per_window: int) -> int:
    """Returns how many windows are whole; cuts off what is after them."""
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
    """Logs what an interruption leaves; removes it if no window is whole."""
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
    """Writes what is left to read in a file to `path`, atomically."""
    with (
        files.os_errors_as_input_errors(path),
        files.atomic_file(path, "wb") as output,
    ):
        if not path.endswith(".gz"):
            shutil.copyfileobj(file, output)
            return
        with files.compressed(output) as binary:
            shutil.copyfileobj(file, binary)
