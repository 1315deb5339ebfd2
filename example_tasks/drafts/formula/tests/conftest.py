"""What the tests of all rounds share: the program, and its library."""

import json

import pytest

LIMIT = 8
"""Seconds for one call: many times what any machine needs."""

CALLS = """
const formula = require('/app/formula.js');
const said = JSON.parse(require('fs').readFileSync(0, 'utf8')).map(([name, ...given]) => {
  try {
    return formula[name](...given);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return `error ${error.exitCode}: ${error.message}`;
  }
});
process.stdout.write(JSON.stringify(said));
"""


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


@pytest.fixture
def formula(workspace):
    return Program(workspace)


@pytest.fixture
def said(workspace):
    """Say what the library makes of each of several files: `said("sheet", {"what it is": CONTENT}, x="1")`.

    Each is what is printed, or `error STATUS: MESSAGE` with FILE for the name of the file.
    """

    def of(function, contents, **values):
        files = {f"{number}.in": content for number, content in enumerate(contents.values())}
        calls = json.dumps([[function, name, values] for name in files])
        done = workspace.run(["node", "-e", CALLS], input=calls, files=files, cwd=workspace.path, timeout=LIMIT)
        assert (done.exit_code, done.stderr) == (0, "")
        answers = zip(contents, files, json.loads(done.stdout), strict=True)
        return {what: answer.replace(name, "FILE") for what, name, answer in answers}

    return of


@pytest.fixture
def library(workspace):
    """Call functions of the library in one process: `library(["evaluate", "1 + 1"], ["listing", "x"])`.

    What comes back for each is what it returns, or `error STATUS: MESSAGE` for what it throws.
    """

    def call(*calls):
        done = workspace.run(["node", "-e", CALLS], input=json.dumps(calls), timeout=LIMIT)
        assert (done.exit_code, done.stderr) == (0, "")
        return json.loads(done.stdout)

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
