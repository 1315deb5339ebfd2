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
    """How a program ended, what it printed, and what it has made: an archive or a tree, None where there is none."""

    exit_code: int | None
    stdout: str
    stderr: str
    stdout_bytes: bytes
    made: str | list | None

    @property
    def tree(self) -> dict[bytes, Item] | None:
        return tree_of(self.made)


class Driver:
    """The process in the workspace that runs both programs, started when the first test needs it."""

    def __init__(self, workspace) -> None:
        self._workspace = workspace
        self._process = None
        self._started = 0
        self._places = 0

    @property
    def script(self) -> str:
        """The reader of the shops, which stands alone, in a directory where there is nothing else."""
        return f"{self._workspace.path}/shop{self._started}/crate.py"

    def place(self) -> str:
        """Return a directory that nobody else has; it is made when a program is run there."""
        self._places += 1
        return f"{self._workspace.path}/{self._places}"

    def ask(self, *requests: dict) -> list[Done]:
        """Do what requests say, in one go. A driver that is lost fails this test, and the next one has another."""
        try:
            if not self._process:
                name = f"{self._workspace.path}/driver.py"
                self._workspace.write(name, DRIVER)
                self._process = self._workspace.popen(["python3", name, "crate.py", self.script])
            self._process.write(base64.b64encode(zlib.compress(json.dumps(requests).encode(), 1)) + b"\n")
            answer = self._process.read_until("\n", timeout=2 * LIMIT + len(requests))
            return [done_of(*each) for each in json.loads(zlib.decompress(base64.b64decode(answer)))]
        except BaseException:
            self._process = None
            self._started += 1
            raise


def done_of(status: int | None, stdout: str, stderr: str, made: str | list | None) -> Done:
    out, err = stdout.encode("latin-1"), stderr.encode("latin-1")
    return Done(status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), out, made)


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


@dataclass(frozen=True)
class Contents:
    """What a program says to be in an archive, with the times of the list and without, and what it makes of it."""

    whole_lines: list[str]
    tree: dict[bytes, Item]

    @property
    def lines(self) -> list[str]:
        return without_times(self.whole_lines)

    @property
    def times(self) -> list[str]:
        return [line.split(" ")[3] for line in self.whole_lines]


class Program:
    """One of the two: it lists and unpacks."""

    def __init__(self, driver: Driver, place: str, name: str, command: list[str]) -> None:
        self._driver = driver
        self._place = place
        self.name = name
        self.command = command

    def request(self, *arguments: str, **more) -> dict:
        return {"command": [*self.command, *arguments], "cwd": self._place, "limit": LIMIT, **more}

    def listing(self, archive: bytes, *options: str) -> dict:
        """Return the request to list an archive."""
        name = f"{self._place}/listed.crate"
        return self.request("list", *options, name, file=name, archive=archive.decode("latin-1"))

    def unpacking(self, archive: bytes, *options: str) -> dict:
        """Return the request to unpack an archive into a directory that is not there."""
        name, made = f"{self._place}/unpacked.crate", f"{self._place}/unpacked-by-{self.name}"
        return self.request("unpack", *options, name, made, file=name, archive=archive.decode("latin-1"), made=made)

    def ask(self, *requests: dict) -> list[Done]:
        return self._driver.ask(*requests)

    def run(self, *arguments: str) -> Done:
        """Run it, in the directory of the test."""
        return self.runs(list(arguments))[0]

    def runs(self, *commands: list[str]) -> list[Done]:
        """Run it with one command line after the other."""
        return self.ask(*(self.request(*arguments) for arguments in commands))

    def list(self, archive: bytes, *options: str) -> Done:
        return self.ask(self.listing(archive, *options))[0]

    def unpack(self, archive: bytes, *options: str) -> Done:
        return self.ask(self.unpacking(archive, *options))[0]

    def contents(self, *archives: bytes) -> list[Contents]:
        """List and unpack archives that have to be read."""
        requests = [request for each in archives for request in (self.listing(each), self.unpacking(each))]
        answers = self.ask(*requests)
        return [
            Contents(self._lines_of(listing), self._tree_of(unpacking))
            for listing, unpacking in zip(answers[::2], answers[1::2], strict=True)
        ]

    def lists(self, *archives: bytes) -> list[list[str]]:
        """Return the lines of lists that have to come."""
        return [self._lines_of(done) for done in self.ask(*map(self.listing, archives))]

    def trees(self, *archives: bytes) -> list[dict[bytes, Item]]:
        """Return the trees of archives that have to be unpacked."""
        return [self._tree_of(done) for done in self.ask(*map(self.unpacking, archives))]

    def _lines_of(self, done: Done) -> list[str]:
        assert (done.exit_code, done.stderr) == (0, ""), f"{self.name} does not list"
        return done.stdout.splitlines()

    def _tree_of(self, done: Done) -> dict[bytes, Item]:
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", ""), f"{self.name} does not unpack"
        assert done.tree is not None, f"{self.name} makes nothing"
        return done.tree

    def answers(self, archives: list[bytes]) -> list[tuple]:
        """Unpack many archives and list every third one: status, output, word of the error and tree of each time."""
        requests = [self.unpacking(each) for each in archives] + [self.listing(each) for each in archives[::3]]
        answers = []
        for done in self.ask(*requests):
            word, colon, rest = done.stderr.partition(": ")[2].partition(":")
            assert not done.stderr or (done.stderr.startswith("crate: ") and colon), f"{self.name}: {done.stderr}"
            assert rest.count("\n") == bool(done.stderr), f"{self.name}: {done.stderr}"
            answers.append((done.exit_code, done.stdout_bytes, word, done.tree))
        return answers

    def refuses(self, archives: dict[str, bytes], sound: bytes) -> None:
        """Assert that `sound` is read, that the others are refused as damaged, and that nothing comes of them."""
        names, wrong = [*archives], [*archives.values()]
        (status, *_), *answers = self.answers([sound, *wrong])
        assert status == 0, f"{self.name} does not read what is sound"
        del answers[len(wrong)]  # That of the list of what is sound.
        for name, answer in zip([*names, *names[2::3]], answers, strict=True):
            assert answer == (3, b"", "damaged", None), f"{self.name}: {name}"


class Bench:
    """Both programs, and the packing of the one that packs."""

    def __init__(self, driver: Driver, binary: str) -> None:
        self.place = driver.place()
        self.c = Program(driver, self.place, "crate", [binary])
        self.python = Program(driver, self.place, "crate.py", ["python3", driver.script])
        self.both = [self.c, self.python]
        self._driver = driver
        self._trees = 0

    def shell(self, script: str, **more) -> dict:
        """Return the request to run a script for sh in the directory of the test."""
        return {"command": ["/bin/sh", "-c", script], "cwd": self.place, "limit": LIMIT, **more}

    def ask(self, *requests: dict) -> list[Done]:
        return self._driver.ask(*requests)

    def packing(self, tree: dict[bytes, Item], *, backwards: bool = False, umask: int = 0o022) -> dict:
        """Return the request to make a tree in a fresh directory and to pack it."""
        self._trees += 1
        where = f"{self.place}/tree{self._trees}"
        items = [
            [path.decode("latin-1"), item.kind, item.mode, item.time, (item.content or item.target).decode("latin-1")]
            for path, item in sorted(tree.items(), reverse=backwards)
        ]
        name = f"{where}.crate"
        return self.c.request("pack", name, where, where=where, items=items, made=name, umask=umask)

    def pack(self, tree: dict[bytes, Item]) -> bytes:
        """Pack a tree that can be packed, and return the archive."""
        return self.packed(self.packing(tree))[0]

    def packed(self, *requests: dict) -> list[bytes]:
        """Return the archives of trees that can be packed."""
        archives = []
        for done in self.ask(*requests):
            assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
            assert isinstance(done.made, str)
            archives.append(done.made.encode("latin-1"))
        return archives


def without_times(lines: list[str]) -> list[str]:
    """Return the lines of a list without their fourth word."""
    parts = [line.split(" ", 4) for line in lines]
    return [" ".join([*words[:3], *words[4:]]) for words in parts]
