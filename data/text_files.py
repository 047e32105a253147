"""Sentence pairs from line-aligned text files, plain or gzipped.

Line n of the source is translated by line n of the target. Only "\\n" ends a
line (the "\\r" of a CRLF file goes with it): corpora hold U+2028, U+0085 and
the like inside sentences, where `str.splitlines` would break the alignment.
A file that has "\\r" and no "\\n" is refused: it would be one line.
"""

import codecs
import contextlib
import glob
import gzip
import itertools
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NoReturn

from t2t_lite.errors import InputError
from t2t_lite.files import exists, is_folder, is_url, to_path


def pairs(
    source_pattern: str, target_pattern: str
) -> Iterator[tuple[str, str]]:
    """Yields the (source, target) lines of all files that match.

    The files are found, and missing ones reported, before the first pair is
    asked for; what is inside is checked as it is read. Blank lines are kept.

    Args:
        source_pattern: a path, a glob such as `train-*.en.gz`, or several of
            them separated by commas. The matches of a glob are sorted; the n-th
            source file pairs with the n-th target file.
        target_pattern: likewise.

    Raises:
        InputError: no file or a directory matches, or the numbers of files
            differ; and while reading, a file cannot be read, is empty, is not
            UTF-8, or has a different number of lines than its counterpart.
    """
    return pairs_of_files(paired_files(source_pattern, target_pattern))


def paired_files(
    source_pattern: str, target_pattern: str
) -> list[tuple[str, str]]:
    """Returns the (source file, target file) paths that match the patterns.

    Raises:
        InputError: no file or a directory matches, or the numbers of files
            differ.
    """
    sources, targets = files(source_pattern), files(target_pattern)
    if len(sources) != len(targets):
        raise InputError(
            "the n-th source file pairs with the n-th target file, so there "
            f"must be the same number of each; received {len(sources)} of "
            f"{source_pattern} and {len(targets)} of {target_pattern}"
        )
    return list(zip(sources, targets, strict=True))


def files(patterns: str) -> list[str]:
    """Returns the files of comma-separated patterns, each one's sorted.

    Raises:
        InputError: no file or a directory matches.
    """
    return list(itertools.chain.from_iterable(files_by_pattern(patterns)))


def files_by_pattern(patterns: str) -> list[list[str]]:
    """Returns the files of each of the comma-separated patterns, sorted.

    Raises:
        InputError: no file or a directory matches.
    """
    whole = os.path.expanduser(patterns)
    # A name may itself hold "," or "[".
    if not is_url(whole) and os.path.exists(whole):
        return [[_not_a_directory(whole)]]
    return [
        [_not_a_directory(path) for path in _matches(pattern)]
        for pattern in _split(patterns)
    ]


def absolute(patterns: str) -> str:
    """Returns comma-separated patterns that mean the same in any folder."""
    whole = os.path.abspath(os.path.expanduser(patterns))
    if not is_url(patterns) and os.path.exists(whole):
        return whole
    return ",".join(map(_absolute, _split(patterns)))


def _absolute(pattern: str) -> str:
    # An empty pattern, next to a comma, must not become a folder.
    if not pattern or is_url(pattern):
        return pattern
    path = os.path.abspath(os.path.expanduser(pattern))
    if os.path.exists(path):
        return _escape(path)
    home, slash, rest = pattern.partition("/")
    if home.startswith("~"):
        return _escape(os.path.expanduser(home)) + slash + rest
    return os.path.normpath(os.path.join(_escape(os.getcwd()), pattern))


def _escape(path: str) -> str:
    """Returns the pattern that matches this path only."""
    return glob.escape(path).replace(",", "[,]")


def _split(patterns: str) -> list[str]:
    return re.split(r",(?!\])", patterns)


def _matches(pattern: str) -> list[str]:
    if not pattern:
        raise InputError(
            "there is a comma with no file beside it: leave the comma out"
        )
    pattern = os.path.expanduser(pattern)
    if exists(pattern):
        return [pattern]
    if is_url(pattern):
        paths = sorted(map(str, to_path(pattern).matching()))
    else:
        paths = sorted(glob.glob(pattern))
    if not paths:
        raise InputError(f"no file matches {pattern!r}; check the path")
    return paths


def _not_a_directory(path: str) -> str:
    if is_folder(path):
        raise InputError(f"{path} is a directory; give the files inside it")
    return path


def pairs_of_files(
    paths: Iterable[tuple[str, str]],
) -> Iterator[tuple[str, str]]:
    """Yields the (source, target) lines of pairs of files.

    Raises:
        InputError: while reading, as for `pairs`.
    """
    for source, target in paths:
        yield from _aligned(source, target)


def _aligned(source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yields the line pairs of two files, which must be equally long."""
    source_lines, target_lines = lines(source), lines(target)
    rows = itertools.zip_longest(source_lines, target_lines)
    for number, (source_line, target_line) in enumerate(rows):
        if source_line is None:
            _refuse_lengths(
                source, number, target, read=1 + number, rest=target_lines
            )
        if target_line is None:
            _refuse_lengths(
                target, number, source, read=1 + number, rest=source_lines
            )
        yield source_line, target_line


def _refuse_lengths(
    short: str, short_count: int, long: str, read: int, rest: Iterator[str]
) -> NoReturn:
    """Raises InputError with the numbers of lines of both files."""
    long_count = read + sum(1 for _ in rest)
    raise InputError(
        "line n of the source must pair with line n of the target; received "
        f"{long_count} lines in {long} but {short_count} in {short}"
    )


def lines(path: str) -> Iterator[str]:
    """Yields the lines of one file, without their ends or a leading BOM."""
    number = 0
    for line in _lines_if_any(path):
        number += 1
        yield line
    if number == 0:
        raise InputError(f"{path} is empty; it must hold a sentence per line")


def _lines_if_any(path: str) -> Iterator[str]:
    """Yields the lines of one file, which may be empty."""
    number = 0
    try:
        with _open(path) as file:
            for line in decode_lines(file, path):
                number += 1
                yield line
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}"
        ) from error
    except (EOFError, zlib.error) as error:
        raise InputError(
            f"{path} is cut short or damaged after line {number}: {error}"
        ) from error


def decode_lines(file: BinaryIO, name: str) -> Iterator[str]:
    """Yields the lines of an open file, without their ends or a leading BOM.

    Args:
        file: opened for bytes.
        name: of the file, for messages.

    Raises:
        InputError: a line is not UTF-8, or "\\r" alone ends the lines.
    """
    for number, line in enumerate(file, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
            _require_no_utf16(line, name)
            _require_line_ends(line, name)
        yield _decoded(line, name, number)


def _require_no_utf16(line: bytes, name: str) -> None:
    # Without a byte order mark, its ASCII characters pass for UTF-8.
    if b"\0" in line[:2]:
        raise InputError(
            f"{name}: text must be UTF-8; one of its first two bytes is NUL, "
            "as in UTF-16: convert it to UTF-8"
        )


def _require_line_ends(first_line: bytes, name: str) -> None:
    # Without any "\n", each "\r" is the end of a line, not part of one.
    is_all = not first_line.endswith(b"\n")
    if is_all and b"\r" in first_line.rstrip(b"\r"):
        raise InputError(
            f'{name}: lines must end in "\\n"; these end in "\\r" alone: '
            "convert them with tr '\\r' '\\n'"
        )


def input_lines(path: str | None) -> tuple[Iterator[str], int | None]:
    """Returns the lines of a program's input, and how many there are.

    A file is read to its end beforehand, so that what is wrong with it is
    reported before the work. For standard input and pipes, the number is not
    known.

    Args:
        path: of a file, which may be empty; None or "-" for standard input.

    Raises:
        InputError: the file cannot be read, or standard input is closed.
    """
    if path in (None, "-"):
        if sys.stdin is None:
            raise InputError("standard input is closed: give --input")
        return _standard_input(), None
    path = os.path.expanduser(path)
    if not exists(path):
        raise InputError(f"{path} does not exist")
    is_file = to_path(_not_a_directory(path)).is_file()
    count = sum(1 for _ in _lines_if_any(path)) if is_file else None
    return _lines_if_any(path), count


def input_pairs(
    source: str, target: str
) -> tuple[Iterator[tuple[str, str]], int | None]:
    """Returns the line pairs of a program's two inputs, and how many there are.

    Files are read to their ends beforehand, as by `input_lines`; if one of
    them is not a file, but a pipe for example, only the first lines are.

    Args:
        source: path of a file.
        target: path of a file with as many lines.

    Raises:
        InputError: as for `pairs`.
    """
    paths = [(source, target)]
    if all(exists(path) and to_path(path).is_file() for path in paths[0]):
        return pairs_of_files(paths), sum(1 for _ in pairs_of_files(paths))
    rest = pairs_of_files(paths)
    return itertools.chain([next(rest)], rest), None


def prefix_lines(
    path: str | None, num_lines: int | None
) -> Iterator[str] | None:
    """Returns the lines of a file of prefixes; None if there is no file.

    Args:
        path: of the file; None for none.
        num_lines: of the text to be translated; None if that is not known.

    Raises:
        InputError: the file cannot be read, or has a different number of lines.
    """
    if path is None:
        return None
    if path == "-":
        raise InputError(
            "--prefix_file must be a file: - (standard input) is only for "
            "--input"
        )
    lines, count = input_lines(path)
    if None not in (count, num_lines) and count != num_lines:
        raise InputError(
            f"{path} must have one line for each input line, blank for no "
            f"prefix; it has {count} lines, and the input has {num_lines}"
        )
    return lines


def glossary(path: str | None) -> list[tuple[str, str]] | None:
    """Returns the pairs of terms of a file; None if there is no file.

    Args:
        path: of a file with a term, a tab and its translation in each line;
            None for none. Blank lines are left out.

    Raises:
        InputError: the file cannot be read, a line has no such pair, or a
            term has two translations.
    """
    if path is None:
        return None
    pairs: dict[str, str] = {}
    for number, line in enumerate(_lines_if_any(path), start=1):
        if not line.strip():
            continue
        pair = tuple(field.strip() for field in line.split("\t"))
        if len(pair) != 2 or not all(pair):
            raise InputError(
                f"{path}, line {number}: a line must be a term, a tab and its "
                f"translation; received {line!r}"
            )
        source, target = pair
        before = pairs.setdefault(source, target)
        if before != target:
            raise InputError(
                f"{path}, line {number}: {source!r} must have one translation; "
                f"received {before!r} before, and now {target!r}"
            )
    if not pairs:
        raise InputError(f"{path} has no terms")
    return list(pairs.items())


def _standard_input() -> Iterator[str]:
    try:
        yield from decode_lines(sys.stdin.buffer, "standard input")
    except OSError as error:
        raise InputError(
            f"standard input cannot be read: {error.strerror or error}"
        ) from None


@contextlib.contextmanager
def _open(path: str) -> Iterator[BinaryIO]:
    with to_path(path).open("rb") as file:
        if not path.endswith(".gz"):
            yield file
            return
        with gzip.open(file) as decompressed:
            yield decompressed


def _decoded(line: bytes, path: str, number: int) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: text must be UTF-8; received byte "
            f"0x{line[error.start]:02x} at position {error.start + 1}"
        ) from error
