"""Runs the binaries as a user does, for the tests that need whole processes."""

import os
import pathlib
import socket
import subprocess
import sys

from paths import ROOT

TIMEOUT_S = 300

# A model and a run of seconds.
TINY = [
    "--override=num_layers=1",
    "--override=d_model=16",
    "--override=d_ff=24",
    "--override=num_heads=2",
    "--override=d_k=8",
    "--override=d_v=8",
    "--override=vocabulary_size=400",
    "--override=tokens_per_batch=256",
    "--override=max_length=64",
    "--override=num_buckets=4",
    "--override=warmup_steps=4",
    "--override=average_last=2",
]


def command(name, *flags):
    """Returns the command line of a binary of bin/."""
    path = ROOT / "bin" / name
    if not path.exists():  # Where only sources that end in .py are kept.
        path = path.with_suffix(".py")
    return [sys.executable, str(path), *map(str, flags)]


def environment(**changes):
    """Returns the environment of a binary, on a machine without GPUs."""
    return os.environ | {"CUDA_VISIBLE_DEVICES": "-1"} | changes


def start(name, *flags, **changes):
    """Starts a binary; returns the process."""
    return subprocess.Popen(
        command(name, *flags),
        env=environment(**changes),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="surrogateescape",
    )


def run(name, *flags, text="", **changes):
    """Runs a binary to its end; returns (status, stdout, stderr)."""
    process = start(name, *flags, **changes)
    out, errors = process.communicate(text, timeout=TIMEOUT_S)
    return process.returncode, out, errors


def free_ports(count):
    """Returns ports of the loopback that nobody listens to."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def write_corpus(folder, num_pairs=60):
    """Writes a small corpus of digits to files; returns the flags of it.

    A sentence of digit words is translated by its words in reverse.
    """
    words = ["null", "eins", "zwei", "drei", "vier", "acht", "neun", "elf"]
    flags = []
    for split, first in (("train", 100), ("dev", 500), ("test", 700)):
        numbers = [
            str((n * 7919) % 10**6) for n in range(first, first + num_pairs)
        ]
        sources = [" ".join(words[int(d) % 8] for d in n) for n in numbers]
        targets = [" ".join(reversed(line.split())) for line in sources]
        for side, lines in (("source", sources), ("target", targets)):
            path = pathlib.Path(folder, f"{split}.{side}")
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            flags.append(f"--{split}_{side}={path}")
    return flags
