"""Runs the binaries as a user does, for tests that need separate processes."""

import os
import socket
import subprocess
import sys

from paths import HELPERS, ROOT

TIMEOUT_S = 300
_GIVEN_PORTS = set()
# Hides JAX and matplotlib, which `pip install -e .` does not install.
# TensorFlow and Keras import them if they can, which takes each process 1.5 s.
WITHOUT_EXTRAS = str(HELPERS / "absent")


def command(name, *flags):
    """Returns the command line of a binary in bin/."""
    path = ROOT / "bin" / name
    if not path.exists():  # In copies that keep only .py files.
        path = path.with_suffix(".py")
    return [sys.executable, str(path), *map(str, flags)]


def environment(**changes):
    """Returns the environment of a binary.

    It is that of a machine without GPUs, JAX or matplotlib.
    """
    paths = filter(None, [WITHOUT_EXTRAS, os.environ.get("PYTHONPATH")])
    machine = {
        "CUDA_VISIBLE_DEVICES": "-1",
        "PYTHONPATH": os.pathsep.join(paths),
    }
    return os.environ | machine | changes


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
    """Returns free ports of the loopback interface, others in each call."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    if not _GIVEN_PORTS.isdisjoint(ports):
        return free_ports(count)
    _GIVEN_PORTS.update(ports)
    return ports
