"""Both programs as a test handles them, each on the machine that README describes."""

from __future__ import annotations

import io
import shlex
import tarfile

from model import SECOND, Item

LIMIT = 20
"""Seconds for any command: many times what any machine needs."""


class Program:
    """One of the two: it lists and unpacks."""

    def __init__(self, workspace, name: str, command: list[str]) -> None:
        self._workspace = workspace
        self.name = name
        self._command = command
        self._unpacked = 0

    def run(self, *arguments: str, cwd: str | None = None):
        # By way of a shell, so that a program that was not built is a status, too.
        command = shlex.join([*self._command, *arguments])
        return self._workspace.run(command, cwd=cwd or self._workspace.path, timeout=LIMIT)

    def list(self, archive: bytes, *options: str):
        name = f"{self._workspace.path}/listed.crate"
        self._workspace.write(name, archive)
        return self.run("list", *options, name)

    def lines(self, archive: bytes, *options: str) -> list[str]:
        """Return the lines of a list that has to come, without their fourth word, the time."""
        return [without_time(line) for line in self.whole_lines(archive, *options)]

    def whole_lines(self, archive: bytes, *options: str) -> list[str]:
        done = self.list(archive, *options)
        assert (done.exit_code, done.stderr) == (0, ""), f"{self.name} does not list"
        return done.stdout.splitlines()

    def unpack(self, archive: bytes, *options: str):
        """Unpack into a directory that is not there: what the program did, and the tree, None where there is none."""
        self._unpacked += 1
        name, target = f"{self._workspace.path}/unpacked.crate", f"{self._workspace.path}/{self.name}{self._unpacked}"
        self._workspace.write(name, archive)
        done = self.run("unpack", *options, name, target)
        return done, (read_tree(self._workspace, target) if self._workspace.exists(target) else None)

    def tree(self, archive: bytes, *options: str) -> dict[bytes, Item]:
        """Return the tree of an archive that has to be unpacked."""
        done, tree = self.unpack(archive, *options)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", ""), f"{self.name} does not unpack"
        return tree

    def refuses(self, archive: bytes, status: int = 3, word: str = "damaged") -> None:
        """Assert that an archive is refused, with one line, and that nothing comes of it."""
        listing = self.list(archive)
        unpacking, tree = self.unpack(archive)
        for done in (listing, unpacking):
            assert (done.exit_code, done.stdout) == (status, ""), f"{self.name}: {done.stderr}"
            assert done.stderr.startswith(f"crate: {word}: "), done.stderr
            assert done.stderr.count("\n") == 1, done.stderr
        assert tree is None

    def answers(self, archives: list[bytes]) -> list[str]:
        """List and unpack many archives, and return what came of each: status, output, lines and begin of the error."""
        done = self._workspace.run(
            f"mkdir many && cd many && tar -xf - && for f in *; do for what in list unpack; do "
            f"{shlex.join(self._command)} $what $f $([ $what = list ] || echo ../out) > ../o 2> ../e; "
            f'echo "$? $(base64 -w 0 ../o) $(wc -l < ../e) $(cut -c -16 ../e | head -n 1)'
            f'$([ ! -e ../out ] || echo made)"; '
            f"rm -rf ../out; done; done; cd ..; rm -rf many",
            input=tar_of({b"%04d" % index: Item("F", content=whole) for index, whole in enumerate(archives)}, False),
            cwd=self._workspace.path,
            timeout=120,
        )
        lines = done.stdout.splitlines()
        assert len(lines) == 2 * len(archives), done.stderr
        return lines

    def refuses_all(self, archives: dict[str, bytes]) -> None:
        """Assert that archives are damaged, with one line, and that nothing comes of them."""
        answers = self.answers(list(archives.values()))
        for index, name in enumerate(archives):
            assert answers[2 * index : 2 * index + 2] == ["3  1 crate: damaged: "] * 2, f"{self.name}: {name}"


class Bench:
    """Both programs, and the packing of the one that packs."""

    def __init__(self, workspace, binary: str, script: str) -> None:
        self.workspace = workspace
        self.c = Program(workspace, "crate", [binary])
        self.python = Program(workspace, "crate.py", ["python3", script])
        self.both = [self.c, self.python]
        self._trees = 0

    def make_tree(self, tree: dict[bytes, Item], *, backwards: bool = False, umask: str = "022") -> str:
        """Make a tree in a fresh directory, and return its path."""
        self._trees += 1
        where = f"{self.workspace.path}/tree{self._trees}"
        done = self.workspace.run(
            f"umask {umask} && mkdir {where} && tar -xpf - --warning=no-unknown-keyword -C {where}",
            input=tar_of(tree, backwards),
            timeout=LIMIT,
        )
        assert done.exit_code == 0, done.stderr
        return where

    def pack(self, tree: dict[bytes, Item], **how) -> bytes:
        """Pack a tree that can be packed, and return the archive."""
        where = self.make_tree(tree, **how)
        done = self.c.run("pack", f"{where}.crate", where)
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
        return self.workspace.read(f"{where}.crate")


def without_time(line: str) -> str:
    kind, mode, size, _, rest = line.split(" ", 4)
    return f"{kind} {mode} {size} {rest}"


def tar_of(tree: dict[bytes, Item], backwards: bool) -> bytes:
    """Return a tape of a tree. Directories come last when it is written backwards, which tar does not mind."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tape:
        for path, item in sorted(tree.items(), reverse=backwards):
            info = tarfile.TarInfo(path.decode("utf-8", "surrogateescape"))
            info.mode = item.mode
            info.pax_headers["mtime"] = decimal(item.time)
            content = None
            if item.kind == "D":
                info.type = tarfile.DIRTYPE
            elif item.kind == "L":
                info.type = tarfile.SYMTYPE
                info.linkname = item.target.decode("utf-8", "surrogateescape")
            else:
                info.size = len(item.content)
                content = io.BytesIO(item.content)
            tape.addfile(info, content)
    return out.getvalue()


def decimal(time: int) -> str:
    sign, time = ("-", -time) if time < 0 else ("", time)
    return f"{sign}{time // SECOND}.{time % SECOND:09d}"


def nanoseconds(text: str) -> int:
    whole, _, fraction = text.lstrip("-").partition(".")
    value = int(whole) * SECOND + int(fraction.ljust(9, "0")[:9])
    return -value if text.startswith("-") else value


def read_tree(workspace, where: str) -> dict[bytes, Item]:
    """Return what is in a directory, without the times of directories and links."""
    done = workspace.run(f"tar -cf - --format=pax -C {shlex.quote(where)} .", timeout=LIMIT)
    assert done.exit_code == 0, done.stderr
    tree = {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout_bytes)) as tape:
        for info in tape:
            path = info.name.encode("utf-8", "surrogateescape").removeprefix(b"./")
            if path in (b".", b""):
                continue
            if info.isdir():
                tree[path] = Item("D", info.mode, 0)
            elif info.issym():
                tree[path] = Item("L", 0, 0, b"", info.linkname.encode("utf-8", "surrogateescape"))
            else:
                assert info.isreg() or info.islnk(), info
                time = info.pax_headers.get("mtime", str(int(info.mtime)))
                tree[path] = Item("F", info.mode, nanoseconds(time), tape.extractfile(info).read())
    return tree
