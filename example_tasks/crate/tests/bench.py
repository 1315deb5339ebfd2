"""Both programs as a test handles them, each on the machine that README describes."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from pathlib import Path

from model import Item

LIMIT = 20
"""Seconds for any command: many times what any machine needs."""
DRIVER = Path(__file__).with_name("driver.txt").read_text()


@dataclass(frozen=True)
class Done:
    """How a program ended, and what it printed."""

    exit_code: int | None
    stdout: str
    stderr: str
    stdout_bytes: bytes


class Driver:
    """The process in the workspace that runs both programs, started when the first test needs it."""

    def __init__(self, workspace, script: str) -> None:
        self._workspace = workspace
        self._script = script
        self._process = None

    def ask(self, *requests: dict) -> list:
        if not self._process:
            self._process = self._workspace.popen(["python3", "-c", DRIVER, self._script])
        self._process.write(base64.b64encode(zlib.compress(json.dumps(requests).encode(), 1)) + b"\n")
        answer = self._process.read_until("\n", timeout=2 * LIMIT + len(requests))
        return json.loads(zlib.decompress(base64.b64decode(answer)))


def done_of(status: int | None, stdout: str, stderr: str) -> Done:
    out, err = stdout.encode("latin-1"), stderr.encode("latin-1")
    return Done(status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), out)


def tree_of(items: list | None) -> dict[bytes, Item] | None:
    """Return a tree as the model has it: without the times of directories and links."""
    if items is None:
        return None
    tree = {}
    for path, kind, mode, time, content in items:
        data = content.encode("latin-1")
        tree[path.encode("latin-1")] = Item(
            kind, mode, time, b"" if kind == "L" else data, data if kind == "L" else b""
        )
    return tree


class Program:
    """One of the two: it lists and unpacks."""

    def __init__(self, driver: Driver, place: str, name: str, command: list[str]) -> None:
        self._driver = driver
        self._place = place
        self.name = name
        self.command = command

    def request(self, *arguments: str, **more) -> dict:
        return {"command": [*self.command, *arguments], "cwd": self._place, "limit": LIMIT, **more}

    def _list(self, archive: bytes, *options: str) -> dict:
        name = f"{self._place}/listed.crate"
        return self.request("list", *options, name, file=name, archive=archive.decode("latin-1"))

    def _unpack(self, archive: bytes, *options: str) -> dict:
        name, made = f"{self._place}/unpacked.crate", f"{self._place}/unpacked-by-{self.name}"
        return self.request("unpack", *options, name, made, file=name, archive=archive.decode("latin-1"), made=made)

    def run(self, *arguments: str) -> Done:
        """Run it, in the directory of the test."""
        [[*answer, _]] = self._driver.ask(self.request(*arguments))
        return done_of(*answer)

    def list(self, archive: bytes, *options: str) -> Done:
        [[*answer, _]] = self._driver.ask(self._list(archive, *options))
        return done_of(*answer)

    def lines(self, archive: bytes, *options: str) -> list[str]:
        """Return the lines of a list that has to come, without their fourth word, the time."""
        return [without_time(line) for line in self.whole_lines(archive, *options)]

    def whole_lines(self, archive: bytes, *options: str) -> list[str]:
        done = self.list(archive, *options)
        assert (done.exit_code, done.stderr) == (0, ""), f"{self.name} does not list"
        return done.stdout.splitlines()

    def unpack(self, archive: bytes, *options: str) -> tuple[Done, dict[bytes, Item] | None]:
        """Unpack into a directory that is not there: what the program did, and the tree, None where there is none."""
        [[*answer, tree]] = self._driver.ask(self._unpack(archive, *options))
        return done_of(*answer), tree_of(tree)

    def tree(self, archive: bytes, *options: str) -> dict[bytes, Item]:
        """Return the tree of an archive that has to be unpacked."""
        done, tree = self.unpack(archive, *options)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", ""), f"{self.name} does not unpack"
        return tree

    def answers(self, archives: list[bytes]) -> list[tuple]:
        """List and unpack many archives: status, output, word of the error and tree of each time."""
        requests = [request for whole in archives for request in (self._list(whole), self._unpack(whole))]
        answers = []
        for *answer, tree in self._driver.ask(*requests):
            done = done_of(*answer)
            word, colon, rest = done.stderr.partition(": ")[2].partition(":")
            assert not done.stderr or (done.stderr.startswith("crate: ") and colon), f"{self.name}: {done.stderr}"
            assert rest.count("\n") == bool(done.stderr), f"{self.name}: {done.stderr}"
            answers.append((done.exit_code, done.stdout_bytes, word, tree_of(tree)))
        return answers

    def refuses(self, archive: bytes, status: int = 3, word: str = "damaged") -> None:
        """Assert that an archive is refused, with one line, and that nothing comes of it."""
        self.refuses_all({"": archive}, status, word)

    def refuses_all(self, archives: dict[str, bytes], status: int = 3, word: str = "damaged") -> None:
        """Assert that archives are refused, with one line, and that nothing comes of them."""
        answers = self.answers(list(archives.values()))
        for index, name in enumerate(archives):
            assert answers[2 * index : 2 * index + 2] == [(status, b"", word, None)] * 2, f"{self.name}: {name}"


class Bench:
    """Both programs, and the packing of the one that packs."""

    def __init__(self, workspace, driver: Driver, binary: str, script: str) -> None:
        self.workspace = workspace
        self.c = Program(driver, workspace.path, "crate", [binary])
        self.python = Program(driver, workspace.path, "crate.py", ["python3", script])
        self.both = [self.c, self.python]
        self._driver = driver
        self._trees = 0

    def make_tree(self, tree: dict[bytes, Item], *, backwards: bool = False) -> str:
        """Make a tree in a fresh directory, and return its path."""
        self._trees += 1
        where = f"{self.workspace.path}/tree{self._trees}"
        items = [
            [path.decode("latin-1"), item.kind, item.mode, item.time, (item.content or item.target).decode("latin-1")]
            for path, item in sorted(tree.items(), reverse=backwards)
        ]
        self._driver.ask({"where": where, "items": items})
        return where

    def pack(self, tree: dict[bytes, Item], *, backwards: bool = False, umask: int = 0o022) -> bytes:
        """Pack a tree that can be packed, and return the archive."""
        where = self.make_tree(tree, backwards=backwards)
        name = f"{where}.crate"
        [[*answer, made]] = self._driver.ask(self.c.request("pack", name, where, made=name, umask=umask))
        done = done_of(*answer)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
        assert made is not None
        return made.encode("latin-1")


def without_time(line: str) -> str:
    kind, mode, size, _, rest = line.split(" ", 4)
    return f"{kind} {mode} {size} {rest}"
