"""What the tests of all rounds share: the program, and its library."""

import json
import shlex
from base64 import b64encode

import pytest
from answers import answer, prints

LIMIT = 8
"""Seconds for one call: many times what any machine needs."""

END = "\x1e"
SERVE = """
const fs = require('fs');
require('readline').createInterface({ input: process.stdin }).on('line', async (line) => {
  const { directory, files, asked } = JSON.parse(line);
  process.chdir(directory);
  for (const [name, content] of Object.entries(files)) fs.writeFileSync(name, Buffer.from(content, 'base64'));
  const answers = [];
  for (const each of asked) answers.push(await answer(each));
  process.stdout.write('\\x1e' + JSON.stringify(answers) + '\\x1e');
});
"""
LIBRARY = """
const formula = require('/app/formula.js');
const answer = ([name, ...given]) => {
  try {
    return formula[name](...given);
  } catch (error) {
    return [error instanceof Error ? error.exitCode : 'no Error', String(error.message)];
  }
};
"""
COMMANDS = """
const { Worker } = require('worker_threads');
const { text } = require('stream/consumers');
const answer = (argv) => {
  const options = { argv, stdout: true, stderr: true, resourceLimits: { stackSizeMb: 1 } };
  const worker = new Worker('/app/formula.js', options);
  const status = new Promise((ended) => worker.on('error', () => {}).on('exit', ended));
  return Promise.all([status, text(worker.stdout), text(worker.stderr)]);
};
"""
FUNCTIONS = {"eval": "evaluate", "list": "listing", "run": "run", "sheet": "sheet"}


class Server:
    """A process of node that lasts, since starting one takes time, and that is begun anew where it has failed."""

    def __init__(self, workspace, source):
        self._workspace = workspace
        self._source = source
        self._process = None
        self.failed = False

    def __call__(self, directory, files, asked):
        """Return an answer to each, and what was printed beside the answers."""
        process = self._process or self._workspace.popen(["node", "-e", self._source + SERVE])
        self._process = None
        contents = {name: b64encode(content).decode() for name, content in files.items()}
        try:
            process.write(json.dumps({"directory": directory, "files": contents, "asked": asked}) + "\n")
            printed = process.read_until(END, timeout=2 * LIMIT).removesuffix(END)
            answers = json.loads(process.read_until(END, timeout=LIMIT).removesuffix(END))
        except BaseException:
            self.failed = True
            process.signal("KILL")
            raise
        self._process = process
        return answers, printed + process.errors


class Program:
    """The program, called in the directory of the test: `formula("eval", "1 + 1")` is (status, stdout, stderr)."""

    def __init__(self, workspace, commands):
        self._workspace = workspace
        self._commands = commands

    def __call__(self, *words, **files):
        command = ["node", "/app/formula.js", *words]
        done = self._workspace.run(command, files=named(files), cwd=self._workspace.path, timeout=LIMIT)
        return answer(done.exit_code, done.stdout, done.stderr)

    def answers(self, expected, **files):
        """Return what the program answers to each of these command lines of a shell.

        Starting node takes time. So each is first done by a thread of a process that lasts: node gives a thread
        arguments, output and a status of its own. Whoever answers otherwise than expected there, as programs may that
        write to descriptor 1, is started, and only that counts.
        """
        files = named(files)
        answers = self._in_threads(expected, files)
        if answers == expected:
            return answers
        return dict(zip(expected, self._started(list(expected), files), strict=False))

    def _in_threads(self, lines, files):
        if self._commands.failed:  # Trying again would cost each case a timeout.
            return None
        try:
            said, _ = self._commands(self._workspace.path, files, [shlex.split(line) for line in lines])
            return {line: answer(*each) for line, each in zip(lines, said, strict=True)}
        except (EOFError, TimeoutError, ValueError, TypeError):
            return None

    def _started(self, lines, files):
        end = r"""; status=$?; printf '\036'; cat errors; printf "\036$status\036" """
        script = "\n".join(f"node /app/formula.js {line} 2> errors{end}" for line in lines)
        done = self._workspace.run(script, files=files, cwd=self._workspace.path, timeout=2 * LIMIT)
        parts = done.stdout.split("\x1e")[:-1]
        return [answer(int(parts[at + 2]), parts[at], parts[at + 1]) for at in range(0, len(parts), 3)]


def named(files):
    """Files by their names, with points in place of underscores, as bytes."""
    contents = {name.replace("_", "."): content for name, content in files.items()}
    return {name: each.encode() if isinstance(each, str) else each for name, each in contents.items()}


class Inside:
    """The program as the library has it, for what is not about command lines: the same words have the same answers."""

    def __init__(self, library_process, directory):
        self._process = library_process
        self._directory = directory

    def __call__(self, *words, **files):
        return self.each(shlex.join(words), **files)[0]

    def each(self, *lines, **files):
        calls = []
        for line in lines:
            command, text, *rest = shlex.split(line)
            values = [dict(word.split("=", 1) for word in rest)] if command != "list" else []
            calls.append([FUNCTIONS[command], text, *values])
        said = self._process(self._directory, named(files), calls)
        return [self._answer(call, each) for call, each in zip(calls, said, strict=True)]

    @staticmethod
    def _answer(call, said):
        if isinstance(said, list):
            return said[0], "", f"error: {said[1]}\n"
        return 0, said if call[0] == "listing" or not said else f"{said}\n", ""


@pytest.fixture(scope="session")
def commands(workspace_session):
    return Server(workspace_session, COMMANDS)


@pytest.fixture
def formula(workspace, commands):
    return Program(workspace, commands)


@pytest.fixture(scope="session")
def library_process(workspace_session):
    """Return what each call returns, or the pair of status and message that it throws; a library prints nothing."""
    server = Server(workspace_session, LIBRARY)

    def call(directory, files, calls):
        answers, printed = server(directory, files, calls)
        assert printed == ""
        return answers

    return call


@pytest.fixture
def inside(library_process, workspace):
    return Inside(library_process, workspace.path)


@pytest.fixture
def said(library_process, workspace):
    """Say what the library makes of each of several files: `said("sheet", {"what it is": CONTENT}, x="1")`.

    Each is what is printed, or `error STATUS: MESSAGE` with FILE for the name of the file.
    """

    def of(function, contents, **values):
        files = {f"{number}.in": content for number, content in enumerate(contents.values())}
        answers = library_process(workspace.path, named(files), [[function, name, values] for name in files])
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
        done = {shlex.join(["build", *words, "made.f"]): prints()}
        assert formula.answers(done, **files) == done
        return workspace.read(f"{workspace.path}/made.f")

    return build
