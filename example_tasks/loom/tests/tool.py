"""The program as a test handles it: many commands in one batch, and what the cases of a module ask for together."""

from __future__ import annotations

import base64
import io
import itertools
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


class Ask(NamedTuple):
    """Files, and what is to be done with each of them."""

    contents: tuple
    options: tuple
    kind: str
    verb: str

    @property
    def names(self):
        return [f"p{index}.{self.kind}" for index in range(len(self.contents))]


def patterns(contents, *options):
    """Ask for runs of patterns."""
    return Ask(tuple(contents), options, "knit", "run")


def decks(contents, *options, kind="deck", verb="run"):
    """Ask for runs of decks, or for something else that is done with one file."""
    return Ask(tuple(contents), options, kind, verb)


def asks(*asked):
    """Let a case ask for this, or for what functions of its parameters return; `loom.answers()` has what came of it."""

    def mark(function):
        function.asked = asked
        return function

    return mark


def asked_by(item):
    """Return what a test asks for."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return [each(**parameters) if callable(each) else each for each in getattr(item.function, "asked", ())]


class Together:
    """What all cases of a module ask for, which is done in one batch when the first of them looks."""

    def __init__(self, workspace, items):
        self.loom = Loom(workspace)
        self.items = items
        self.found = None

    def answers(self, item):
        """Return the answers that a case asked for, None where the program could not do all of it at once."""
        if self.found is None:
            cases = {each.nodeid: asked_by(each) for each in self.items}
            self.found = {}
            try:
                answers = iter(self.loom.asked([ask for asked in cases.values() for ask in asked]))
                self.found = {name: [next(answers) for _ in asked] for name, asked in cases.items()}
            except AssertionError:
                pass  # So that each case by itself shows whether it is the one that fails.
        return self.found.get(item.nodeid)


class Loom:
    """The program, and the directory of the test that it works in."""

    def __init__(self, workspace, together=None, item=None):
        self.workspace = workspace
        self.together = together
        self.item = item
        self.script = f"{workspace.workdir}/loom.py"
        self._tree = None

    @property
    def here(self):
        return self.workspace.path

    def answers(self):
        """Return a list of answers for each thing that the case asks for."""
        return self.together.answers(self.item) or self.asked(asked_by(self.item))

    def asked(self, asked):
        """Do what is asked for in one batch. Each has a directory of its own, which is left out of what is told."""
        files, commands = {}, []
        for number, ask in enumerate(asked):
            for name, content in zip(ask.names, ask.contents, strict=True):
                files[f"{number}/{name}"] = content
                commands.append([ask.verb, f"{number}/{name}", *ask.options])
        answers = iter(self.all(commands, files))
        return [
            [
                answer._replace(err=answer.err.removeprefix(f"{number}/"))
                for answer in itertools.islice(answers, len(ask.contents))
            ]
            for number, ask in enumerate(asked)
        ]

    def all(self, commands, files=None):
        """Do commands in one batch, and return their answers."""
        lines = "".join(json.dumps(list(command)) + "\n" for command in commands)
        return self.lines(lines.encode(), len(commands), files)

    def lines(self, lines, count, files=None):
        """Give a batch these lines, and return so many answers."""
        done = self._run(["python3", self.script, "batch"], files, lines)
        assert (done.exit_code, done.stderr, done.truncated) == (0, "", False), f"{done.exit_code}: {done.stderr}"
        *said, rest = done.stdout_bytes.split(b"\n")
        answers = [answer_of(line) for line in said]
        assert (len(answers), rest) == (count, b""), f"{len(answers)} lines for {count} commands"
        assert None not in answers, f"no answer: {said[answers.index(None)]!r}"
        return answers

    def one(self, *words, files=None):
        """Do a command by itself."""
        done = self._run(["python3", self.script, *words], files)
        return Answer(done.exit_code, done.stdout, done.stderr)

    def shell(self, script, files=None):
        """Run a script in the directory."""
        done = self._run(f"set -e; {script}", files)
        assert done.exit_code == 0, done.stderr

    def _run(self, command, files, lines=b""):
        # The directory is made with the files, in one request.
        where = {"files": files} if files else {"cwd": self.here}
        self._tree = None
        return self.workspace.run(command, input=lines, timeout=LIMIT, **where)

    @property
    def tree(self):
        """What is in the directory now: contents by names, None for what is no regular file."""
        if self._tree is None:
            # As text, of which results keep less than of zeros.
            done = self.workspace.run("tar -czf - . | base64", cwd=self.here, timeout=LIMIT)
            self._tree = tree_of(done.stdout_bytes)
        return self._tree

    def names(self, below="."):
        """Return what there is in the directory, or in one below it."""
        return self.workspace.list(f"{self.here}/{below}")

    def built(self, *texts):
        """Return the decks of patterns."""
        files = {f"b{index}.knit": text for index, text in enumerate(texts)}
        answers = self.all([["build", name, name.replace("knit", "deck")] for name in files], files)
        assert answers == [Answer(0, "", "")] * len(texts)
        return [self.tree[f"b{index}.deck"] for index in range(len(texts))]


def answer_of(line):
    """Return the answer that a line of a batch is, None where it is none."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        return None
    kinds = {"status": int, "out": str, "err": str}
    is_sound = isinstance(answer, dict) and {name: type(value) for name, value in answer.items()} == kinds
    return Answer(**answer) if is_sound else None


def tree_of(tape):
    """Return what a tape has: contents by names, None for what is no regular file."""
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(tape)), mode="r:gz") as archive:
        found = {info.name.removeprefix("./"): info for info in archive if info.name != "."}
        return {name: archive.extractfile(info).read() if info.isreg() else None for name, info in found.items()}


def outs(answers):
    return [answer.out for answer in answers]


def ends(answers):
    """Return what each answer has printed, and its fault."""
    return [(answer.out, answer.fault) for answer in answers]


def marked(source):
    """Return a pattern without the `@` that marks a place in it, and the place as `LINE:COLUMN`."""
    before = source.partition("@")[0]
    line = before.rpartition("\n")[2]
    return source.replace("@", "", 1), f"{before.count(chr(10)) + 1}:{len(line) + 1}"


def marks(sources, place=marked):
    """Ask for runs of patterns with marks, which are by their kinds of errors."""
    return patterns(place(source)[0].encode("latin-1") for sources in sources.values() for source in sources)


def told(answers, sources, place=marked):
    """Assert that each pattern has an error of its kind, at its mark, and that nothing is printed."""
    cases = [(kind, source) for kind, each in sources.items() for source in each]
    expected = {
        (kind, source): (3, "", f"p{index}.knit:{place(source)[1]}: {kind}\n")
        for index, (kind, source) in enumerate(cases)
    }
    assert dict(zip(cases, map(tuple, answers), strict=True)) == expected
