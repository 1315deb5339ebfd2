"""Connections to a container's loopback from its own network namespace, where the engine runs on this machine.

A thread of root's enters the namespace, makes the connection, and ends. Nothing inside takes part in it, as a relay's
program does, which the agent may have replaced; and it takes a fraction of a millisecond in place of a program's start.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_ADDRESSES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))


class ContainerLoopback:
    """The loopback of a container; ``pid_of`` asks the engine for the process id of its PID 1."""

    def __init__(self, container: str, pid_of: Callable[[], int]) -> None:
        self._container = container
        self._pid_of = pid_of
        self._pid = 0
        self._is_elsewhere = False
        """Whether it cannot be entered from here: the engine is on another machine, or this is not root."""

    def connect(self, port: int, timeout: float) -> socket.socket | None:
        """Return a socket as :meth:`Environment.connect` does, and raise as it does; None where that cannot be done."""
        if self._is_elsewhere or (namespaces := self._open()) is None:
            return None
        answer: Future[socket.socket | None] = Future()

        def work() -> None:
            try:
                answer.set_result(_connect(namespaces, port, timeout))
            except BaseException as error:
                answer.set_exception(error)

        # A thread of its own, because no thread comes back out.
        thread = threading.Thread(target=work, name="container-loopback", daemon=True)
        thread.start()
        try:
            connection = answer.result()
        finally:
            thread.join()
            os.close(namespaces)
        self._is_elsewhere = connection is None
        return connection

    def _open(self) -> int | None:
        """Return a pidfd of the container's PID 1; None where that is no process of this machine."""
        for _ in range(2):
            if self._pid and (found := self._pidfd(self._pid)) is not None:
                return found
            self._pid = self._pid_of()  # The container may have been started again.
        self._is_elsewhere = self._pid > 0
        return None

    def _pidfd(self, pid: int) -> int | None:
        try:
            found = os.pidfd_open(pid)
        except OSError:
            return None
        try:
            # Or else it is another machine's, or that of a process which has its number now.
            if self._container in Path(f"/proc/{pid}/cgroup").read_text():
                return found
        except OSError:
            pass
        os.close(found)
        return None


def _connect(namespaces: int, port: int, timeout: float) -> socket.socket | None:
    if ctypes.CDLL(None).setns(namespaces, _CLONE_NEWNET) != 0:
        return None
    until = time.monotonic() + timeout
    for family, address in _ADDRESSES:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(max(0.001, until - time.monotonic()))
            connection.connect((address, port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(None)
            return connection
        except TimeoutError:
            connection.close()
            raise TimeoutError(f"port {port} did not take a connection within {timeout} s") from None
        except OSError:
            connection.close()
    raise ConnectionRefusedError(f"nobody listens at port {port}")
