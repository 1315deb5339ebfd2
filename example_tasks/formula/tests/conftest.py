"""What the tests of all rounds share: the program, and its library."""

import json
import shlex
from base64 import b64encode

import pytest

LIMIT = 8
"""Seconds for one call: many times what any machine needs."""

END = "\x1e"
CALLS = """
const formula = require('/app/formula.js');
const fs = require('fs');
const call = ([name, ...given]) => {
  try {
    return formula[name](...given);
  } catch (error) {
    return [error instanceof Error ? error.exitCode : 'no Error', String(error.message)];
  }
};
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { directory, files, calls } = JSON.parse(line);
  process.chdir(directory);
  for (const [name, content] of Object.entries(files)) fs.writeFileSync(name, Buffer.from(content, 'base64'));
  process.stdout.write(JSON.stringify(calls.map(call)) + '\\x1e');
});
"""
FUNCTIONS = {"eval": "evaluate", "list": "listing", "run": "run", "sheet": "sheet"}


class Program:
    """The program, called in the directory of the test: `formula("eval", "1 + 1")` is (status, stdout, stderr)."""

    def __init__(self, workspace):
        self._workspace = workspace

    def __call__(self, *words, **files):
        done = self._run(["node", "/app/formula.js", *words], files, LIMIT)
        return done.exit_code, done.stdout, done.stderr

    def each(self, *lines, **files):
        """Call the program once for each of these command lines of a shell, and return all answers."""
        end = r"""; status=$?; printf '\036'; cat errors; printf "\036$status\036" """
        done = self._run("\n".join(f"node /app/formula.js {line} 2> errors{end}" for line in lines), files, 2 * LIMIT)
        parts = done.stdout.split("\x1e")[:-1]
        return [(int(parts[at + 2]), parts[at], parts[at + 1]) for at in range(0, len(parts), 3)]

    def _run(self, command, files, timeout):
        named = {name.replace("_", "."): content for name, content in files.items()}
        return self._workspace.run(command, files=named, cwd=self._workspace.path, timeout=timeout)


class Library:
    """The library in a process that lasts, since starting one takes time, and that is begun anew where it has ended."""

    def __init__(self, workspace):
        self._workspace = workspace
        self._process = None

    def __call__(self, directory, files, calls):
        """Return what each call returns, or the pair of status and message that it throws."""
        process = self._process or self._workspace.popen(["node", "-e", CALLS])
        self._process = None
        contents = {name: b64encode(content).decode() for name, content in files.items()}
        process.write(json.dumps({"directory": directory, "files": contents, "calls": calls}) + "\n")
        said = json.loads(process.read_until(END, timeout=2 * LIMIT).removesuffix(END))
        assert process.errors == ""
        self._process = process
        return said


class Inside:
    """The program as the library has it, for what is not about command lines: the same words have the same answers.

    What the library has no function for is done by the program.
    """

    def __init__(self, formula, library_process, directory):
        self._formula = formula
        self._process = library_process
        self._directory = directory

    def __call__(self, *words, **files):
        return self.each(shlex.join(words), **files)[0]

    def each(self, *lines, **files):
        named = {name.replace("_", "."): content for name, content in files.items()}
        encoded = {name: each.encode() if isinstance(each, str) else each for name, each in named.items()}
        calls, answers = {}, {}
        for number, line in enumerate(lines):
            command, text, *rest = shlex.split(line)
            if command in FUNCTIONS and not text.startswith("--"):
                values = [dict(word.split("=", 1) for word in rest)] if command != "list" else []
                calls[number] = [FUNCTIONS[command], text, *values]
        said = self._process(self._directory, encoded, list(calls.values()))
        for (number, call), each in zip(calls.items(), said, strict=True):
            if isinstance(each, list):
                answers[number] = (each[0], "", f"error: {each[1]}\n")
            else:
                answers[number] = (0, each if call[0] == "listing" or not each else f"{each}\n", "")
        others = [number for number in range(len(lines)) if number not in calls]
        if others:
            done = self._formula.each(*(lines[number] for number in others))
            answers |= dict(zip(others, done, strict=True))
        return [answers[number] for number in range(len(lines))]


@pytest.fixture
def formula(workspace):
    return Program(workspace)


@pytest.fixture(scope="session")
def library_process(workspace_session):
    return Library(workspace_session)


@pytest.fixture
def inside(formula, library_process, workspace):
    return Inside(formula, library_process, workspace.path)


@pytest.fixture
def said(library_process, workspace):
    """Say what the library makes of each of several files: `said("sheet", {"what it is": CONTENT}, x="1")`.

    Each is what is printed, or `error STATUS: MESSAGE` with FILE for the name of the file.
    """

    def of(function, contents, **values):
        files = {f"{number}.in": content for number, content in enumerate(contents.values())}
        encoded = {name: each.encode() if isinstance(each, str) else each for name, each in files.items()}
        answers = library_process(workspace.path, encoded, [[function, name, values] for name in files])
        return {
            what: shown(answer).replace(name, "FILE")
            for what, name, answer in zip(contents, files, answers, strict=True)
        }

    return of


def shown(answer):
    return f"error {answer[0]}: {answer[1]}" if isinstance(answer, list) else answer


@pytest.fixture
def library(library_process, workspace):
    """Call functions of the library: `library(["evaluate", "1 + 1"], ["listing", "x"])`.

    What comes back for each is what it returns, or `error STATUS: MESSAGE` for what it throws.
    """

    def call(*calls):
        return [shown(answer) for answer in library_process(workspace.path, {}, calls)]

    return call


@pytest.fixture
def values(library):
    """Say what formulas are worth, or what is thrown, by their texts: `values(["1 + 1"])` is `{"1 + 1": "2"}`."""

    def of(texts, **given):
        return dict(zip(texts, library(*(["evaluate", text, given] for text in texts)), strict=True))

    return of


@pytest.fixture
def built(formula, workspace):
    """Build a file and return its bytes: `built("x + 1")`, or `built("--sheet", "prices.sheet", prices_sheet=TEXT)`."""

    def build(*words, **files):
        assert formula("build", *words, "made.f", **files) == (0, "", "")
        return workspace.read(f"{workspace.path}/made.f")

    return build
