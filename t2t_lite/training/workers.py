"""Workers of one run meet before they train, and end together.

TensorFlow waits forever for a worker that does not come, and if one dies, the
others hang or abort. So each worker is two processes: a child trains, and its
parent, which never loads TensorFlow, watches over it:

    worker 0, the chief       worker 1              worker 2
    parent <------------------ parent                 parent
       ^---------------------------------------------- '
    child  <== TensorFlow ==>  child  <============>  child

The parents of the others keep a connection to the chief's parent, which tells
everyone how each child has ended. A broken connection means that a worker has
died.
"""

import contextlib
import importlib.metadata
import json
import math
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

from absl import logging

from t2t_lite import __version__, files
from t2t_lite.errors import InputError
from t2t_lite.optimization.cluster import Cluster, find_cluster
from t2t_lite.training.options import RunOptions

_TIMEOUT_MINUTES = 10.0  # Until all have come, by default.
_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_TO_SAY_HELLO = 5.0
# Until all have ended for the same reason; less than the child's
# `strategies.SECONDS_FOR_NEWS`, because the parent knows more.
_SECONDS_TO_AGREE = 10.0
_SECONDS_FOR_NEWS = 30.0  # Of which worker has died, if a child aborted.
_SECONDS_TO_STOP = 600.0  # A large checkpoint takes time to save.
_MAX_MESSAGE_BYTES = 1 << 16  # Of a message; a stranger's may never end.
_PACKAGES = ("tensorflow", "keras", "numpy")
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# With which the trainer exits once all have agreed to stop.
_STOP_STATUSES = tuple(128 + number for number in _FORWARDED)
_RESUME = "run the same commands again to resume from the last checkpoint"


class _Connection:
    """One end of a connection that carries JSON objects, a line each."""

    def __init__(self, connection: socket.socket):
        self.socket = connection
        self._received = b""
        _notice_lost_machines(connection)

    def send(self, **message: Any) -> None:
        """Sends a message; does nothing if nobody is left to receive it."""
        with contextlib.suppress(OSError):
            self.socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float = 0.0) -> list[dict[str, Any]] | None:
        """Returns the messages that come in time, None after a disconnect.

        Args:
            seconds: how long to wait for the first.
        """
        if not select.select([self.socket], [], [], seconds)[0]:
            return []
        try:
            received = self.socket.recv(_MAX_MESSAGE_BYTES)
        except OSError:
            received = b""
        if not received or len(self._received) > _MAX_MESSAGE_BYTES:
            return None
        *lines, self._received = (self._received + received).split(b"\n")
        try:
            messages = [files.parse_json(line) for line in lines]
        except ValueError:  # A stranger that speaks something else.
            return None
        is_ours = all(isinstance(message, dict) for message in messages)
        return messages if is_ours else None

    def first_message(self, deadline: float) -> dict[str, Any] | None:
        """Returns the first message; None if none comes in time or at all.

        Args:
            deadline: when to stop waiting, by time.monotonic.
        """
        while (left := deadline - time.monotonic()) > 0:
            messages = self.receive(left)
            if messages is None:
                break
            if messages:
                return messages[0]
        return None

    def close(self) -> None:
        """Closes this end."""
        self.socket.close()


def _notice_lost_machines(connection: socket.socket) -> None:
    """Makes a connection break within half a minute of losing the machine."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", 10),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 3),
    ):
        if hasattr(socket, name):  # macOS names the first differently.
            option = getattr(socket, name)
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def join_cluster(options: RunOptions) -> None:
    """Meets the other workers, if there are any, and watches over a child.

    It returns in that child, which then trains; this process exits with the
    child's status. No other thread may run, and TensorFlow must not be loaded.

    Args:
        options: RunOptions.

    Raises:
        InputError: TF_CONFIG or SLURM's variables are wrong; a worker has not
            come, runs another version, or has died.
    """
    cluster = find_cluster(options.strategy)
    minutes = options.worker_timeout_minutes
    if cluster is None:
        if minutes is not None:
            raise InputError(
                "--worker_timeout_minutes has no effect where one process "
                "trains: leave it out, or name the others with TF_CONFIG"
            )
        return
    if "tensorflow" in sys.modules:
        raise InputError(
            "several workers must connect before any URL is read: repeat the "
            "flags whose values are URLs, such as --train_source, when resuming"
        )
    minutes = minutes or _TIMEOUT_MINUTES
    hello = {"addresses": list(cluster.addresses)} | _versions()
    if cluster.is_chief:
        connections = _Meeting(cluster, hello).wait_for_workers(minutes)
    else:
        connections = {0: _join(cluster, hello, minutes)}
    logging.info("All %d workers have connected.", len(cluster.addresses))
    parent_pipe, keep = os.pipe()
    child = os.fork()
    if child:
        os.close(parent_pipe)
        sys.exit(_Watch(cluster, connections, child).supervise())
    os.close(keep)
    for connection in connections.values():
        connection.close()
    _begin_as_child(parent_pipe)


def _versions() -> dict[str, str]:
    """Returns the versions that must be the same on all, by package."""
    # The code that runs, which need not be what is installed.
    found = {"t2t_lite": __version__}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _begin_as_child(parent_pipe: int) -> None:
    """Leaves signals to the parent, and makes this child end with it.

    Args:
        parent_pipe: descriptor of a pipe that the parent keeps open.
    """
    os.setpgid(0, 0)  # A terminal's Ctrl-C comes only by the parent.

    def end_with_parent() -> None:
        os.read(parent_pipe, 1)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


class _Meeting:
    """The chief waits for the other workers.

    Args:
        cluster: Cluster.
        hello: what each worker has to say besides its index.
    """

    def __init__(self, cluster: Cluster, hello: Mapping[str, Any]):
        self._cluster, self._hello = cluster, hello
        self._connections: dict[int, _Connection] = {}

    def wait_for_workers(self, minutes: float) -> dict[int, _Connection]:
        """Returns the connections to all others, by their index.

        Args:
            minutes: when to give up.

        Raises:
            InputError: a worker is missing, or one does not match.
        """
        host, port = _host_and_port(self._cluster.addresses[0])
        try:
            server = _listen(port)
        except OSError as error:
            raise InputError(
                f"cannot wait for the other workers at {host}:{port}: "
                f"{error.strerror or error}"
            ) from None
        with server:  # Afterward the port is TensorFlow's.
            self._admit_all(server, minutes)
        for connection in self._connections.values():
            connection.send(all_are_here=True)
        return self._connections

    def _admit_all(self, server: socket.socket, minutes: float) -> None:
        deadline, said = time.monotonic() + 60 * minutes, None
        while missing := self._missing():
            names = ", ".join(map(self._cluster.name, missing))
            if said != missing:
                logging.info("Waiting for %s.", names)
                said = missing
            if time.monotonic() > deadline:
                self._refuse(_did_not_come(names, minutes))
            ready = select.select([server], [], [], _SECONDS_BETWEEN_LOOKS)[0]
            if ready:
                self._admit(_Connection(server.accept()[0]))

    def _missing(self) -> list[int]:
        """Returns the workers that have not come, or have left again."""
        for index, connection in list(self._connections.items()):
            if connection.receive() is None:
                connection.close()
                del self._connections[index]
        others = range(1, len(self._cluster.addresses))
        return [index for index in others if index not in self._connections]

    def _admit(self, connection: _Connection) -> None:
        """Admits a worker that has connected, and turns away a stranger."""
        deadline = time.monotonic() + _SECONDS_TO_SAY_HELLO
        hello = connection.first_message(deadline) or {}
        index = hello.pop("index", None)
        if index not in range(1, len(self._cluster.addresses)):
            if "addresses" in hello:
                connection.send(
                    refused="all workers must have the chief's addresses in "
                    f"TF_CONFIG, {self._hello['addresses']}"
                )
            connection.close()
            return
        name, before = self._cluster.name(index), self._connections.get(index)
        self._connections[index] = connection
        # One that left and came back is welcome.
        if before is not None and before.receive() is not None:
            reason = f"two processes say that they are {name}"
            before.send(refused=reason)
            self._refuse(reason)
        for what in self._hello.keys() | hello.keys():
            own, other = self._hello.get(what), hello.get(what)
            if other != own:
                self._refuse(
                    f"all workers must have the chief's {what}, "
                    f"{own or 'none'}; {name} has {other or 'none'}"
                )

    def _refuse(self, reason: str) -> None:
        """Tells all workers that have come, and raises InputError."""
        for connection in self._connections.values():
            connection.send(refused=reason)
        raise InputError(reason)


def _join(
    cluster: Cluster, hello: Mapping[str, Any], minutes: float
) -> _Connection:
    """Returns the connection to the chief, once all workers have come.

    The arguments are those of `_Meeting` and its `wait_for_workers`.

    Raises:
        InputError: the chief has not come, or refuses.
    """
    logging.info("Waiting for %s.", cluster.name(0))
    # A chief that waits for others gives up first, and says for whom.
    deadline = time.monotonic() + 60 * minutes + _SECONDS_FOR_NEWS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            connection = _connect(cluster.addresses[0])
            connection.send(index=cluster.index, **hello)
            answer = connection.first_message(deadline)
            if answer is not None and "refused" in answer:
                raise InputError(answer["refused"])
            if answer is not None:
                return connection
            connection.close()  # The chief has left, and may come back.
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    raise InputError(_did_not_come(cluster.name(0), minutes))


def _connect(address: str) -> _Connection:
    """Returns a connection to whoever listens at an address.

    Raises:
        OSError: nobody does.
    """
    found = socket.create_connection(_host_and_port(address), timeout=5)
    found.settimeout(None)
    return _Connection(found)


def _listen(port: int) -> socket.socket:
    """Returns a socket that listens on all addresses of this machine."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, dualstack_ipv6=True
        )
    return socket.create_server(("", port))


def _host_and_port(address: str) -> tuple[str, int]:
    """Returns the parts of an address.

    >>> _host_and_port("[::1]:8888")
    ('::1', 8888)
    """
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _did_not_come(names: str, minutes: float) -> str:
    return (
        f"{names} did not connect within {minutes:g} minutes: start all "
        "workers, or raise --worker_timeout_minutes"
    )


class _Watch:
    """A parent watches over its child, and hears how the others end.

    Args:
        cluster: Cluster.
        connections: the chief's to all others by index; another worker's to
            the chief, 0.
        child: ID of the process that trains.
    """

    def __init__(
        self, cluster: Cluster, connections: dict[int, _Connection], child: int
    ):
        self._cluster, self._connections = cluster, connections
        self._child = child
        self._is_child_ended = self._is_child_signaled = False
        self._ended: dict[int, int | None] = {}  # The others' exit status.
        # When the child is ended because of another worker, and why; and when
        # it is asked to stop before that.
        self._ends_at, self._why = math.inf, ""
        self._stops_at = math.inf

    def supervise(self) -> int:
        """Returns the exit status of the child.

        Raises:
            InputError: another worker has died or failed, or this child died.
        """
        self._forward_signals()
        while (status := self._child_status()) is None:
            for index, other in self._poll_exits():
                self._handle_exit(index, other)
            if time.monotonic() >= self._stops_at:
                self._stop_child()
            if time.monotonic() >= self._ends_at:
                self._end_child()
                raise InputError(self._why)
        return self._after_child(status)

    def _handle_exit(self, index: int, status: int | None) -> None:
        """Reacts to how another worker has ended."""
        name = self._cluster.name(index)
        failure = f"{name} has stopped, and its own output says why"
        if _has_died(status):
            self._end_in(0, self._death(index, status))
        elif status in _STOP_STATUSES:
            # All have agreed to stop, unless this one does not train yet.
            self._stops_at = time.monotonic() + _SECONDS_TO_AGREE
            self._end_in(_SECONDS_TO_STOP, f"{failure}: {_RESUME}")
        elif status:
            self._end_in(_SECONDS_TO_AGREE, f"{failure}: {_RESUME}")

    def _end_in(self, seconds: float, why: str) -> None:
        """Makes the child end after a while, unless it ends by itself first."""
        ends_at = time.monotonic() + seconds
        if ends_at < self._ends_at:
            self._ends_at, self._why = ends_at, why

    def _forward_signals(self) -> None:
        def forward(number: int, _: FrameType | None) -> None:
            self._is_child_signaled = True
            if not self._is_child_ended:
                os.kill(self._child, number)

        for number in _FORWARDED:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, forward)

    def _child_status(self) -> int | None:
        """Returns the child's exit status, or None if it still runs.

        It is negative if a signal ended the child.
        """
        child, status = os.waitpid(self._child, os.WNOHANG)
        if not child:
            return None
        self._is_child_ended = True
        return os.waitstatus_to_exitcode(status)

    def _stop_child(self) -> None:
        """Asks the child to stop, if nobody has yet."""
        self._stops_at = math.inf
        if not self._is_child_signaled:
            os.kill(self._child, signal.SIGTERM)

    def _end_child(self) -> None:
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        self._is_child_ended = True

    def _after_child(self, status: int) -> int:
        """Tells the others how the child has ended, and returns its status.

        Raises:
            InputError: it died, by itself or because of another worker.
        """
        # TensorFlow also aborts if another worker has died.
        deadline = time.monotonic() + _SECONDS_FOR_NEWS
        has_aborted = status == -signal.SIGABRT
        while has_aborted and not self._why and time.monotonic() < deadline:
            for index, other in self._poll_exits():
                self._handle_exit(index, other)
        if has_aborted and self._why:
            self._report_exit(self._cluster.index, 1)
            raise InputError(self._why)
        self._report_exit(self._cluster.index, status)
        if _has_died(status):
            raise InputError(self._death(self._cluster.index, status))
        return status

    def _death(self, index: int, status: int | None) -> str:
        how = "" if status is None else f" ({signal.Signals(-status).name})"
        if status == -signal.SIGKILL:
            how = " (SIGKILL, as when memory runs out)"
        return f"{self._cluster.name(index)} has died{how}: {_RESUME}"

    def _poll_exits(self) -> list[tuple[int, int | None]]:
        """Waits a little; returns the (index, status) of others that ended.

        The status is None if a connection broke. The chief passes it on.
        """
        sockets = [each.socket for each in self._connections.values()]
        select.select(sockets, [], [], _SECONDS_BETWEEN_LOOKS)
        news = []
        for index, connection in list(self._connections.items()):
            messages = connection.receive()
            ends = [(m["index"], m["status"]) for m in messages or ()]
            if messages is None:
                connection.close()
                del self._connections[index]
                ends = [(index, None)]
            # One that has said how it ended also closes its connection.
            news += [end for end in ends if end[0] not in self._ended]
            self._ended |= dict(news)
        if self._cluster.is_chief:
            for index, status in news:
                self._report_exit(index, status)
        return news

    def _report_exit(self, index: int, status: int | None) -> None:
        for connection in self._connections.values():
            connection.send(index=index, status=status)


def _has_died(status: int | None) -> bool:
    """Returns whether a status means that a process did not end by itself."""
    return status is None or status < 0
