"""Runs the commands of README.md and docs/ as written, in order.

    python tests/end_to_end/documented_commands.py [--only=REGEX] [--skip=REGEX]
        [--list]

Use a fresh clone and a fresh virtual environment: the commands install packages
and write to runs/, export/ and the clone itself. $MULTI30K, $TREEBANKS and
$NEWSTEST are folders as the pages describe them; the files that a reader would
bring (some.en, my.en, ...) are made from $MULTI30K. It takes hours, most of
them in three trainings.

REGEX selects commands by their place ("README.md:29") or text, with re.search.
Prints a row for each command: "ok", "failed" with its status, or why it was
skipped. Its output is in documented/PAGE-LINE.log. The exit status is 1 if any
command failed.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

_ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path.append(str(_ROOT / "tests" / "helpers"))

import tiny_marian
from readme import PAGES

_LOGS = _ROOT / "documented"
_SERVER = "http://localhost:8501/"  # The page.
_SERVER_SECONDS = 120
_FOLDERS = ("MULTI30K", "TREEBANKS", "NEWSTEST")  # Of the environment.
# Why commands cannot be run here, by a pattern that matches their text.
_MISSING = {
    r"docker run": "needs docker",
    r"wmt14|runs/base": "needs WMT 2014",
    r"PENN_TREEBANK": "needs the Penn Treebank",
    r"TF_CONFIG": "needs two machines",
    r"=DIR\b": "has a placeholder",
}
# A reader's own files: (split of $MULTI30K, first line, line after the last).
_TEXT = {
    "some": ("test_2016_flickr", 0, 200),
    "my": ("train", 0, 2000),
    "dev": ("val", 0, 100),
    "test": ("test_2016_flickr", 200, 300),
    "train": ("train", 0, 29_000),
}


class Command(NamedTuple):
    """A command of a page."""

    place: str  # "docs/serving.md:57"
    text: str

    @property
    def reason(self) -> str:
        """Why it cannot be run here; "" if it can."""
        found = (w for rx, w in _MISSING.items() if re.search(rx, self.text))
        return next(found, "")

    @property
    def is_server(self) -> bool:
        """Whether it runs until Ctrl-C."""
        return self.text.startswith("bin/serve")

    @property
    def log(self) -> pathlib.Path:
        """Where its output goes."""
        return _LOGS / (re.sub(r"\W+", "-", self.place) + ".log")


def commands_of(page: pathlib.Path) -> Iterator[Command]:
    """Yields the commands in the bash blocks of a page."""
    text = page.read_text("utf-8")
    for block in re.finditer(r"^```bash\n(.*?)^```", text, re.M | re.S):
        number = text.count("\n", 0, block.start(1)) + 1
        lines = []
        for line in block.group(1).splitlines():
            lines.append(line)
            if is_whole("\n".join(lines)):
                first = number - len(lines) + 1
                place = f"{page.relative_to(_ROOT)}:{first}"
                yield Command(place, "\n".join(lines))
                lines = []
            number += 1


def is_whole(text: str) -> bool:
    """Returns whether the text is complete, so that bash would run it.

    A comment is not: it belongs to the command after it.
    """
    last = text.splitlines()[-1]
    if last.startswith("#") or last.endswith("\\"):
        return False
    checked = subprocess.run(["bash", "-nc", text], capture_output=True)
    return checked.returncode == 0


def all_commands() -> list[Command]:
    """Returns the commands of all pages, repeated ones only once."""
    by_text = {}
    for page in PAGES:
        for command in commands_of(page):
            by_text.setdefault(command.text, command)
    return list(by_text.values())


def bring_files() -> None:
    """Writes the files that the pages expect a reader to have."""
    source = pathlib.Path(os.environ["MULTI30K"])
    for name, (split, first, end) in _TEXT.items():
        for language in ("en", "de"):
            text = (source / f"{split}.{language}").read_text("utf-8")
            lines = text.splitlines(keepends=True)[first:end]
            path = _ROOT / f"{name}.{language}"
            path.write_text("".join(lines), "utf-8")
    for path in pathlib.Path(os.environ["NEWSTEST"], "en-de").iterdir():
        shutil.copy(path, _ROOT)
    opus = _ROOT / "opus"
    opus.mkdir(exist_ok=True)
    tiny_marian.write(opus, *tiny_marian.make("tied"))
    with zipfile.ZipFile(_ROOT / "opus-2020-02-26.zip", "w") as file:
        for path in sorted(opus.iterdir()):
            file.write(path, path.name)


def bring_models(command: Command) -> None:
    """Makes the two models of an ensemble out of runs/multi30k.

    Models that are the same are refused, so the second lacks the last update.
    """
    if "runs/second" not in command.text:
        return
    for model in ("runs/first", "runs/second"):
        shutil.copytree(
            _ROOT / "runs/multi30k", _ROOT / model, copy_function=os.link
        )
    by_age = sorted(
        (_ROOT / "runs/second/checkpoints").glob("step-*.index"),
        key=lambda path: int(path.stem.removeprefix("step-")),
    )
    for path in by_age[-1].parent.glob(f"{by_age[-1].stem}.*"):
        path.unlink()


def run(command: Command) -> str:
    """Runs a command to its end; returns how it ended."""
    (_LOGS / ".curlrc").write_text("fail\n")  # An error's status ends it.
    with command.log.open("w") as log:
        found = subprocess.run(
            ["bash", "-ec", command.text],
            cwd=_ROOT,
            env=os.environ | {"CURL_HOME": str(_LOGS)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    return f"failed: {found.returncode}" if found.returncode else "ok"


class Server:
    """The running server, if any, which later commands may query."""

    def __init__(self):
        self._process = None

    def start(self, command: Command) -> str:
        """Stops the last server and starts another; returns how that went."""
        ending = self.stop()
        if ending != "ok":
            return ending
        with command.log.open("w") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", "exec " + command.text],
                cwd=_ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        for _ in range(_SERVER_SECONDS):
            with contextlib.suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(_SERVER, timeout=10)
                return "ok"
            if self._process.poll() is not None:
                break
            time.sleep(1)
        return "failed: it does not answer"

    def stop(self) -> str:
        """Ends it as Ctrl-C does; returns how it ended."""
        if self._process is None:
            return "ok"
        self._process.send_signal(signal.SIGINT)
        status = self._process.wait()
        self._process = None
        return (
            "ok" if status in (0, 128 + signal.SIGINT) else f"failed: {status}"
        )


def pattern(text: str) -> re.Pattern:
    """Returns the compiled regular expression, for argparse."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def main() -> int:
    """Runs all commands, prints a row for each; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", type=pattern)
    parser.add_argument("--skip", type=pattern)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    missing = [n for n in _FOLDERS if not os.path.isdir(os.environ.get(n, ""))]
    if missing and not args.list:
        parser.error(f"set {', '.join(missing)} to the folders of their text")
    if not args.list:
        _LOGS.mkdir(exist_ok=True)
        bring_files()
    server, endings = Server(), []
    for command in all_commands():
        named = f"{command.place}\n{command.text}"
        if args.only and not args.only.search(named):
            continue
        ending = command.reason
        if args.skip and args.skip.search(named):
            ending = "left out"
        began = time.monotonic()
        if not ending and not args.list:
            bring_models(command)
            ending = (server.start if command.is_server else run)(command)
        endings.append(ending)
        first = command.text.splitlines()[0]
        seconds = time.monotonic() - began
        row = f"{command.place:26}{seconds:7.0f} s  {ending:24}{first}"
        print(row, flush=True)
    endings.append(server.stop())
    print(f"The last server's end: {endings[-1]}")
    return int(any(ending.startswith("failed") for ending in endings))


if __name__ == "__main__":
    sys.exit(main())
