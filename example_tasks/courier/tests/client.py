"""A client of the daemon, and the daemon as a test handles it."""

from __future__ import annotations

import base64
import contextlib
import time
from dataclasses import dataclass

REPLY = 10
"""Seconds in which an answer has come that is on its way: many times what any machine needs."""

START = 20
"""Seconds in which a daemon has started or ended."""

KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Variables with which no daemon is compiled anew; the image has it otherwise, for the sake of the agent's files."""


@dataclass
class Message:
    """What TAKE handed out. Its handle is what ACK names: the words between MSG and LENGTH."""

    handle: str
    body: bytes

    @property
    def id(self) -> int:
        return int(self.handle.split()[0])

    @property
    def attempt(self) -> int:
        return int(self.handle.split()[1])


class Client:
    """One connection. Answers are lines without their LF; "(closed)" once the daemon has closed it."""

    def __init__(self, connection):
        connection.settimeout(REPLY)
        self._connection = connection
        self._stream = connection.makefile("rb")

    def send(self, data: bytes | str) -> None:
        self._connection.sendall(data.encode() if isinstance(data, str) else data)

    def line(self) -> str:
        """Return the next line of an answer."""
        try:
            line = self._stream.readline(100_000)
        except ConnectionError:
            line = b""
        except TimeoutError:
            raise AssertionError(f"no answer after {REPLY} s") from None
        return line.decode("utf-8", "replace").removesuffix("\n") if line else "(closed)"

    def lines(self, number: int) -> list[str]:
        return [self.line() for _ in range(number)]

    def body(self, length: int) -> bytes:
        """Return a body, and read the LF behind it."""
        whole = self._stream.read(length + 1)
        assert whole[length:] == b"\n", f"no LF behind {length} bytes of body: {whole!r}"
        return whole[:length]

    def ask(self, request: str) -> str:
        self.send(f"{request}\n")
        return self.line()

    def listed(self, request: str) -> list[str]:
        """Return the lines behind an `OK N`."""
        answer = self.ask(request)
        assert answer.startswith("OK "), f"{request}: {answer}"
        return self.lines(int(answer.split()[1]))

    def put(self, queue: str, body: bytes | str = b"", options: str = "") -> str:
        body = body.encode() if isinstance(body, str) else body
        self.send(f"PUT {queue} {len(body)} {options}".rstrip().encode() + b"\n" + body + b"\n")
        return self.line()

    def fill(self, queue: str, *bodies: str) -> list[int]:
        """Put messages, and return their ids."""
        answers = [self.put(queue, body) for body in bodies]
        assert all(answer.startswith("OK ") for answer in answers), answers
        return [int(answer.split()[1]) for answer in answers]

    def taken(self) -> Message | str:
        """Return the answer to a TAKE that was sent: a message, or the line that is none."""
        line = self.line()
        word, _, rest = line.partition(" ")
        if word != "MSG":
            return line
        handle, _, length = rest.rpartition(" ")
        return Message(handle, self.body(int(length)))

    def take(self, queue: str, options: str = "") -> Message | str:
        self.send(f"TAKE {queue} {options}".rstrip() + "\n")
        return self.taken()

    def take_body(self, queue: str, options: str = "") -> str:
        """Return the text of the next message, or the line that is none."""
        answer = self.take(queue, options)
        return answer if isinstance(answer, str) else answer.body.decode()

    def bodies(self, queue: str) -> list[str]:
        """Take all that is to be had, and return the texts in order."""
        found = []
        while isinstance(answer := self.take(queue), Message):
            found.append(answer.body.decode())
        assert answer == "EMPTY", answer
        return found

    def ack(self, message: Message) -> str:
        return self.ask(f"ACK {message.handle}")

    def close(self) -> None:
        self._stream.close()
        self._connection.close()


class Daemon:
    """The daemon over a data directory of its own."""

    def __init__(self, workspace, journal: bytes | str | None, arguments: str, name: str = "data") -> None:
        self._workspace = workspace
        self.data = f"{workspace.path}/{name}"
        self.arguments = arguments
        self._clients = []
        if journal is not None:
            self.write_journal(journal)
        self.start()

    def start(self) -> None:
        command = ["python3", "-m", "courier", "--data", self.data, *self.arguments.split()]
        self.process = self._workspace.popen(command, env=KEEP_BYTECODE)
        self.process.read_until("listening ", timeout=START)
        said = self.process.read_until("\n", timeout=START).strip()
        self.port = int(said) if said.isdecimal() else 0  # To which nobody can connect.

    def end(self, signal: str) -> int:
        self.process.signal(signal)
        return self.process.wait(timeout=START)

    def restart(self, signal: str = "SIGKILL") -> None:
        self.end(signal)
        self.start()

    def client(self) -> Client:
        self._clients.append(Client(self._workspace.connect(self.port, timeout=REPLY)))
        return self._clients[-1]

    def close(self) -> None:
        for client in self._clients:
            with contextlib.suppress(OSError):
                client.close()

    # The journal.

    def write_journal(self, text: bytes | str) -> None:
        self._workspace.write(f"{self.data}/journal", text)

    def journal(self) -> str:
        return self._workspace.read_text(f"{self.data}/journal")

    def files(self) -> list[str]:
        return self._workspace.list(self.data)

    def records(self) -> list[list[str]]:
        """Return the journal as operations' awk sees it."""
        return [line.split(" ") for line in self.journal().splitlines()]


def packed(body: str) -> str:
    """Return a body as the journal has it."""
    return base64.b64encode(body.encode()).decode() or "-"


def until_clients_wait(client, queue, number):
    """Return once so many clients wait for a queue."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        lines = [line.split() for line in client.listed("QUEUES")]
        if next((int(line[3]) for line in lines if line[0] == queue), 0) == number:
            return
        time.sleep(0.01)
    raise AssertionError(f"QUEUES never said that {number} clients wait for {queue}: {lines}")


def until_queues_have(client, *lines):
    """Return once QUEUES has these lines, beside others."""
    deadline = time.monotonic() + 20
    while not set(lines) <= set(found := client.listed("QUEUES")):
        assert time.monotonic() < deadline, f"QUEUES never had {list(lines)}: {found}"
        time.sleep(0.05)
