"""The program as a test handles it: many commands in one batch, over files that are laid down together."""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
from typing import NamedTuple

LIMIT = 15
"""Seconds for one call: many times what any machine needs."""


class Answer(NamedTuple):
    """What came of a command."""

    status: int
    out: str
    err: str

    @property
    def fault(self):
        """Kind and address of the fault, wherever else it may be told to stand."""
        match = re.fullmatch(r"loom: fault: ([a-z]+) at ([0-9]+)(, [!-~]+:[0-9]+)?\n", self.err)
        return (match[1], int(match[2])) if match and self.status == 4 else None

    @property
    def is_damage(self):
        return self.status == 5 and self.out == "" and is_line(self.err, "loom: damaged: ")


def is_line(text, start):
    """Say whether a text is one line that begins so."""
    return text.startswith(start) and text.endswith("\n") and text.count("\n") == 1 and len(text) > len(start) + 1


class Loom:
    """The program, and the directory of the test that it works in."""

    def __init__(self, workspace):
        self.workspace = workspace
        self.script = f"{workspace.workdir}/loom.py"
        self.here = workspace.path
        self.tree = {}

    def lay(self, files, script="true"):
        """Write files (a link where the content is a tuple of its target), run a script, and return what it did."""
        tape = io.BytesIO()
        with tarfile.open(fileobj=tape, mode="w:gz", compresslevel=1) as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                if isinstance(content, tuple):
                    info.type, info.linkname = tarfile.SYMTYPE, content[0]
                    archive.addfile(info)
                    continue
                content = content.encode() if isinstance(content, str) else content
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        # As text, of which results keep less than of zeros.
        command = f"base64 -d | tar -xzf - && {{ {script}; }}"
        return self.workspace.run(command, input=base64.b64encode(tape.getvalue()), cwd=self.here, timeout=LIMIT)

    def all(self, commands, files=None):
        """Do commands in one batch, and return their answers; `tree` has what there is then."""
        lines = "".join(json.dumps(list(command)) + "\n" for command in commands)
        return self.lines(lines.encode(), len(commands), files)

    def lines(self, lines, count, files=None):
        """Give a batch these lines, and return so many answers."""
        batch = f"python3 {self.script} batch < .commands > .answers 2> .errors; echo $? > .status"
        done = self.lay({**(files or {}), ".commands": lines}, f"{batch}; tar -cf - . | gzip -1 | base64")
        assert (done.exit_code, done.truncated) == (0, False), done.stderr
        self.tree = tree_of(done.stdout_bytes)
        said, errors, status = (self.tree.pop(name) for name in (".answers", ".errors", ".status"))
        del self.tree[".commands"]
        assert (status, errors, said.count(b"\n")) == (b"0\n", b"", count)
        answers = [json.loads(line) for line in said.splitlines()]
        assert all(sorted(answer) == ["err", "out", "status"] for answer in answers)
        return [Answer(answer["status"], answer["out"], answer["err"]) for answer in answers]

    def runs(self, contents, *options, kind="knit", verb="run"):
        """Run each of these patterns, or decks, and return the answers in their order."""
        files = {f"p{index}.{kind}": content for index, content in enumerate(contents)}
        return self.all([[verb, name, *options] for name in files], files)

    def one(self, *words, files=None):
        """Do a command by itself."""
        done = self.workspace.run(
            ["python3", self.script, *words], cwd=self.here, timeout=LIMIT, **({"files": files} if files else {})
        )
        return Answer(done.exit_code, done.stdout, done.stderr)

    def built(self, *patterns):
        """Return the decks of patterns."""
        files = {f"b{index}.knit": text for index, text in enumerate(patterns)}
        answers = self.all([["build", name, name.replace("knit", "deck")] for name in files], files)
        assert answers == [Answer(0, "", "")] * len(patterns)
        return [self.tree[f"b{index}.deck"] for index in range(len(patterns))]

    def names(self, below="."):
        """Return what there was in the directory behind the last batch, or in one below it."""
        inside = [name.removeprefix(f"{below}/") for name in self.tree if below == "." or name.startswith(f"{below}/")]
        return sorted(name for name in inside if "/" not in name)


def tree_of(tape):
    """Return what a tape has: contents by names, None for what is no regular file."""
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(tape)), mode="r:gz") as archive:
        found = {info.name.removeprefix("./"): info for info in archive if info.name != "."}
        return {name: archive.extractfile(info).read() if info.isreg() else None for name, info in found.items()}


def marked(source):
    """Return a pattern without the `@` that marks a place in it, and the place as `LINE:COLUMN`."""
    before = source.partition("@")[0]
    line = before.rpartition("\n")[2]
    return source.replace("@", "", 1), f"{before.count(chr(10)) + 1}:{len(line) + 1}"


def told(loom, sources, place=marked):
    """Assert that each pattern has an error of its kind, at its mark, and that nothing is printed."""
    cases = [(kind, source, *place(source)) for kind, patterns in sources.items() for source in patterns]
    answers = loom.runs([text.encode("latin-1") for _, _, text, _ in cases])
    expected = {
        (kind, source): (3, "", f"p{index}.knit:{where}: {kind}\n")
        for index, (kind, source, _, where) in enumerate(cases)
    }
    assert dict(zip(expected, map(tuple, answers), strict=True)) == expected
