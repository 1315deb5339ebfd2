"""What Ray runs: tasks that tell what a node has, start processes of attempts and pass messages on; and the broker.

That is the one actor of a run. It has the messages from attempts to the driver, what the run has spent, which attempts
stop, and the limits of connections to models' providers over all nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pytest_evocode.environments.host_variables import host_variables
from pytest_evocode.llm.connection_limits import LocalConnections
from pytest_evocode.plugin.cluster.orders import ASK, ENDED, FAILED, MEMORY, SPENT, AttemptOrder, Message

_BEAT = 0.5
"""Seconds between two messages to the broker at most; after so long an attempt knows that it is to stop."""
_STOPPING = 60.0
"""Seconds that an attempt has to clean up once it is told to stop."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node says of itself."""

    engine: str
    """``docker`` or ``sandbox``; empty where no attempt can be made there."""
    description: str
    """What the engine is there, or why there is none."""
    has: frozenset[str]
    """The tags of tasks' images and the names of attempts of which it has states."""
    memory: tuple[int, int]
    """Bytes that are left, and in all."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions of what the engine is made of, by name."""
    disk: int = 0
    """Bytes that are free where the engine keeps images and what attempts write."""


def look_at_node(environment: str) -> NodeFacts:
    """Start an engine, which removes what dead sessions left on this machine, and say what there is.

    Args:
        environment: As in ``--evocode-env``.
    """
    from pytest_evocode.environments import choose_engine
    from pytest_evocode.environments.kept_tasks import attempt_homes
    from pytest_evocode.errors import EvocodeError

    try:
        engine, _ = choose_engine(environment)
    except EvocodeError as error:
        return NodeFacts("", str(error), frozenset(), read_memory())
    with contextlib.closing(engine):
        has = engine.image_tags | frozenset(home.name for home in attempt_homes())
        disk = shutil.disk_usage(engine.storage).free
        return NodeFacts(engine.name, engine.description, has, read_memory(), dict(engine.versions), disk)


def read_memory() -> tuple[int, int]:
    """Return the bytes of memory that this machine, or the container that this process is in, has left and in all."""
    found = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        found[name] = int(value.split()[0]) * 1024
    left, total = found["MemAvailable"], found["MemTotal"]
    with contextlib.suppress(OSError, ValueError):  # No cgroup of version 2, or none with a limit: its text is "max".
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        total, left = min(total, limit), min(left, limit - used)
    return max(left, 0), total


def make_attempt(broker: Any, node: str, order: AttemptOrder, number: int, archive: Sequence[Any]) -> str:
    """Make an attempt, as a Ray task that has the attempt's resources.

    Args:
        broker: The handle of the run's :class:`Broker`.
        node: This node's id.
        order: What to make.
        number: Which try at the attempt it is.
        archive: Ray's reference to the archive of the task, in a sequence so that Ray does not fetch it.

    Returns:
        Why the process was lost that ran the attempt; empty where that sent its last message.
    """
    import ray

    from pytest_evocode.environments.kept_tasks import KeptTasks

    def exchange(messages: Sequence[Message]) -> Any:
        return ray.get(broker.exchange.remote(order.name, number, node, messages))

    try:
        task = KeptTasks().place(order.task_hash, order.directory_name, lambda: ray.get(archive[0]))
    except (OSError, ValueError) as error:
        exchange([(FAILED, f"the task's directory could not be brought there: {error}")])
        return ""
    connection, process = start_process()
    with contextlib.closing(connection):
        connection.send((order, str(task)))
        has_ended, stopping_since = False, 0.0
        while not has_ended:
            try:
                messages = _received(connection)
            except (EOFError, OSError):
                from pytest_evocode.environments.cleanup import remove_leftovers

                remove_leftovers()
                return f"process {process}, which ran the attempt, was killed"
            answer = exchange([*messages, (MEMORY, *read_memory())])
            has_ended = any(message[0] in (ENDED, FAILED) for message in messages)
            with contextlib.suppress(OSError):  # It has just ended, or will be found to be lost.
                connection.send(answer)
            if answer.stop and not stopping_since:
                stopping_since = time.monotonic()
            if stopping_since and time.monotonic() - stopping_since > _STOPPING:
                return "it did not stop in time"
    return ""


def start_process() -> tuple[Connection, int]:
    """Start the process of an attempt, and return the connection to it and its number."""
    ours, theirs = socket.socketpair()
    with theirs:
        # Not from where Ray's process is, which may be a directory that Ray removes.
        command = [sys.executable, "-m", "pytest_evocode.plugin.cluster.attempt_process", str(theirs.fileno())]
        environ = host_variables() | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        started = subprocess.run(
            command,
            pass_fds=[theirs.fileno()],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
        )
    return Connection(ours.detach()), int(started.stdout)


def _received(connection: Connection) -> list[Message]:
    """Return what an attempt has sent by now, or within a moment."""
    messages: list[Message] = []
    wait = _BEAT
    while len(messages) < 100 and connection.poll(wait):
        messages.append(connection.recv())
        wait = 0.0
    return messages


def versions() -> dict[str, str]:
    """Return the versions that have to be the same on all nodes."""
    from importlib.metadata import version

    return {"pytest-evocode": version("pytest-evocode"), "Python": platform.python_version()}


Sent = tuple[str, int, str, Message]
"""An attempt's name, which try at it, the node's id, and a message."""

_MOST = 64 * 2**20
"""Bytes of files for the driver at once; attempts wait with more, so that nobody's memory fills up."""
_DRIVER_GONE = 30.0
"""Seconds after which a driver that takes no messages counts as lost."""


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """What an attempt learns whenever it has sent something."""

    stop: bool
    answers: Mapping[int, Any] = field(default_factory=dict)
    """The answers to questions, by the questions' numbers."""


class Broker:
    """What attempts on all nodes share; Ray calls its methods in one event loop."""

    def __init__(self, spent: float) -> None:
        self._spent = spent
        self._waiting: list[Sent] = []
        self._size = 0
        self._changed = asyncio.Condition()
        self._stops_all = False
        self._stopped: set[tuple[str, int]] = set()
        self._taken_at = time.monotonic()
        self._limits = LocalConnections()
        """A place is known by the attempt, the try at it, and its number there."""

    async def exchange(self, attempt: str, number: int, node: str, messages: Sequence[Message]) -> BrokerAnswer:
        """Take messages of one try at an attempt, in order, and say what it has to know."""
        told = [message for message in messages if message[0] != ASK]
        async with self._changed:
            while self._size > _MOST and not self._is_to_stop(attempt, number):
                await self._changed.wait()
            self._waiting += [(attempt, number, node, message) for message in told]
            self._size += sum(_size(message) for message in told)
            self._spent += sum(message[1] for message in told if message[0] == SPENT)
            if told:
                self._changed.notify_all()
        asked = (message[1:] for message in messages if message[0] == ASK)
        answers = {question: self._answer((attempt, number), *what) for question, *what in asked}
        return BrokerAnswer(self._is_to_stop(attempt, number), answers)

    def _answer(self, attempt: tuple[str, int], operation: str, *arguments: Any) -> Any:
        if operation == "spent":
            return self._spent
        account, *rest = arguments
        if operation == "take":
            most, place = rest
            return self._limits.take_for(account, most, (*attempt, place))
        if operation == "give_back":
            return self._limits.give_back(account, (*attempt, *rest))
        return getattr(self._limits, operation)(account, *rest)

    async def take(self, seconds: float) -> list[Sent]:
        """Return the messages that there are, or wait for some; for the driver."""
        self._taken_at = time.monotonic()
        async with self._changed:
            if not self._waiting:
                try:
                    await asyncio.wait_for(self._changed.wait(), seconds)
                except TimeoutError:
                    return []
            taken, self._waiting, self._size = self._waiting, [], 0
            self._changed.notify_all()
        return taken

    async def stop(self, attempt: str, number: int) -> None:
        """Have one try at an attempt stop."""
        self._stopped.add((attempt, number))

    async def forget(self, attempt: str, number: int) -> None:
        """Give back what a try at an attempt holds that is over, whether it ended or was lost."""
        self._limits.give_back_all(lambda place: isinstance(place, tuple) and place[:2] == (attempt, number))

    async def stop_all(self) -> None:
        """Have all attempts stop, later ones too."""
        self._stops_all = True
        async with self._changed:
            self._changed.notify_all()

    def _is_to_stop(self, attempt: str, number: int) -> bool:
        gone = time.monotonic() - self._taken_at > _DRIVER_GONE
        return self._stops_all or gone or (attempt, number) in self._stopped


def _size(message: Message) -> int:
    return sum(len(part) for part in message if isinstance(part, bytes))
