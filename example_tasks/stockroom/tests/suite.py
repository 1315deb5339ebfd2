"""What a case is made of: its declaration, a fresh stock directory, and the program under test as a black box."""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

WORKSPACE = Path("/app")
STOCK_HEADER = "sku,name,qty,price,location"
MOVES_HEADER = "at,sku,delta,note"


class Mismatch(AssertionError):
    """The program did something else than its requirement says."""

    def __init__(self, what: str, expected: object, actual: object) -> None:
        super().__init__(what)
        self.expected = expected
        self.actual = actual


def expect(what: str, actual: object, expected: object) -> None:
    """Raises Mismatch unless both are equal."""
    if actual != expected:
        raise Mismatch(what, expected, actual)


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    command: str
    status: int
    out: str
    err: str

    def prints(self, *lines: str) -> None:
        """Status 0, exactly these lines on standard output."""
        expect(f"{self.command}: status, output", (self.status, self.out), (0, "".join(f"{line}\n" for line in lines)))

    def fails(self, status: int, message: str) -> None:
        """This status, nothing on standard output, the one line `error: message` on standard error."""
        actual = (self.status, self.out, self.err)
        expect(f"{self.command}: status, output, error", actual, (status, "", f"error: {message}\n"))


class Launcher:
    """A process of `launcher.py`, which starts one program at a time."""

    def __init__(self, cache: Path) -> None:
        # Compiled once for all cases, and never what lies in the workspace.
        options = ["-I", "-X", f"pycache_prefix={cache}"]
        self._process = subprocess.Popen(
            [sys.executable, *options, str(Path(__file__).with_name("launcher.py"))],
            env={"LANG": "C.UTF-8"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def run(self, request: Mapping[str, object], limit: float) -> int | None:
        """The exit status, None if it takes longer than `limit` seconds. Nothing of the program is left then."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        program = int(self._process.stdout.readline())
        in_time = select.select([self._process.stdout], [], [], limit)[0]
        with suppress(ProcessLookupError):
            os.killpg(program, signal.SIGKILL)
        status = int(self._process.stdout.readline())
        return status if in_time else None

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Box:
    """A fresh directory for one case, and the program run against it."""

    def __init__(self, root: Path, cache: Path, launcher: Launcher) -> None:
        self._root = root
        self._launcher = launcher
        self.stock = root / "stock"
        self.stock.mkdir()
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            "HOME": str(root),
            "TMPDIR": str(root),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(WORKSPACE),
            "PYTHONPYCACHEPREFIX": str(cache),
        }

    def run(
        self, *arguments: str | bytes, data: Path | None = None, env: Mapping[str, str] | None = None, limit: float = 60
    ) -> Outcome:
        """`python3 -m stockroom --data DIR ARGUMENTS`; `limit` in seconds."""
        start = ["-m", "stockroom", "--data", str(data or self.stock)]
        return self._python([*start, *arguments], env or {}, limit)

    def python(self, code: str, *arguments: str, limit: float = 60) -> Outcome:
        """A program that imports stockroom, in a process of its own; `arguments` are its `sys.argv[1:]`."""
        return self._python(["-c", code, *arguments], {}, limit)

    def _python(self, arguments: Sequence[str | bytes], env: Mapping[str, str], limit: float) -> Outcome:
        words = [os.fsdecode(word) for word in arguments]
        shown = _shown(words)
        out, err = self._root / ".stdout", self._root / ".stderr"
        request = {"arguments": words, "environment": {**self.environment, **env}, "cwd": str(self._root)}
        status = self._launcher.run({**request, "out": str(out), "err": str(err)}, limit)
        if status is None:
            raise Mismatch(f"{shown} takes too long", f"under {limit:g} s", "still running")
        return Outcome(shown, status, _text(out.read_bytes()), _text(err.read_bytes()))

    def finish(self, process: subprocess.Popen[bytes], limit: float = 60) -> Outcome:
        """Waits `limit` seconds; then, or before, nothing of the process is left."""
        assert isinstance(process.args, list)
        shown = _shown([os.fsdecode(word) for word in process.args[1:]])
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise Mismatch(f"{shown} takes too long", f"under {limit:g} s", "still running") from None
        finally:
            _end(process)
        return Outcome(shown, process.returncode, _text(out), _text(err))

    def start(self, arguments: Sequence[str | bytes], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """`python3 ARGUMENTS`, running beside the case, which has to `finish` it."""
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self._root,
            env={**self.environment, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def write(self, name: str, *lines: str) -> Path:
        """A file of the stock directory, one line feed after each line."""
        path = self.stock / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        return path

    def migrated(self, *rows: str) -> None:
        """Makes the stock directory one that holds these CSV rows and was migrated."""
        self.write("stock.csv", STOCK_HEADER, *rows)
        self.run("migrate").prints(f"migrated {len(rows)} items, 0 moves")

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Rows of stock.db."""
        path = self.stock / "stock.db"
        if not path.is_file():
            raise Mismatch("stock.db", "a database", "no such file")
        connection = sqlite3.connect(path)
        try:
            return connection.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise Mismatch(f"stock.db: {sql}", "rows", str(error)) from None
        finally:
            connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _shown(words: Sequence[str]) -> str:
    if words[0] == "-c":
        return "python3 -c ..."
    return " ".join(["stockroom", *(ascii(word)[1:-1] for word in words[4:])])


@dataclass(frozen=True)
class Case:
    """One requirement's check. Required from `origin` on, and no longer from `retired_in` on."""

    name: str
    origin: int
    retired_in: int | None
    kind: str
    requirement: str
    intent: str
    body: Callable[[Box], None]

    def active_in(self, round_index: int) -> bool:
        """Whether the suite of that round contains this case."""
        return self.origin <= round_index and (self.retired_in is None or round_index < self.retired_in)


CASES: list[Case] = []


def case(
    origin: int, kind: str, requirement: str, intent: str, *, retired_in: int | None = None
) -> Callable[[Callable[[Box], None]], Callable[[Box], None]]:
    """Declares a case; its id is the round and the name of the function."""

    def declare(body: Callable[[Box], None]) -> Callable[[Box], None]:
        name = f"r{origin}-{body.__name__.replace('_', '-')}"
        CASES.append(Case(name, origin, retired_in, kind, requirement, intent, body))
        return body

    return declare


def fresh_directory() -> tempfile.TemporaryDirectory[str]:
    """A directory that goes when its `with` block ends."""
    # In memory where possible: a hundred small databases wait for the disk longer than they compute.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="case-", dir=memory, ignore_cleanup_errors=True)
