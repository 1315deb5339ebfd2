"""What one call of a tool did: the files it read and changed, and the product's builds, tests and programs it ran."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from pytest_evocode.process.trajectory.agent_tools import ToolUse, tool_use
from pytest_evocode.process.trajectory.call_results import CallResult
from pytest_evocode.process.trajectory.failure_causes import FailureCause, crashed, failure_cause, is_standard_module
from pytest_evocode.process.trajectory.file_roles import FileRoles, may_be_output, relative
from pytest_evocode.process.trajectory.runner_output import RunnerOutcome, read_runner_output
from pytest_evocode.process.trajectory.shell.command_lines import NOTHING, CommandLine, SimpleCommand, parse_line
from pytest_evocode.process.trajectory.shell.files import shown_files, touched_by
from pytest_evocode.process.trajectory.shell.purposes import CommandPurpose, CommandPurposes
from pytest_evocode.process.trajectory.text_changes import TextChange

_COMMITTED = re.compile(r"^\[[^\]\n]+ [0-9a-f]{4,40}\] (.*)$", re.MULTILINE)
_NOT_FOUND = re.compile(
    r"no such file|not found|does not exist|cannot access|cannot open|is a directory", re.IGNORECASE
)
_REFUSED = re.compile(
    r"^\W*(<tool_use_error>|error\b|file (does not exist|not found))|string to replace not found", re.I
)
_SUBJECT_LINES = re.compile(r"^(?:#.*)?\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ran:
    """A build, a test run or a start of the product's program."""

    text: str
    key: str
    purpose: CommandPurpose
    passed: bool | None
    failure: FailureCause | None
    exit_code: int | None
    outcome: RunnerOutcome
    whole: bool


@dataclass(slots=True)
class CallEffects:
    """What a call did; paths relative to the workspace where they are in it."""

    shown: str
    """The call in one line, for quotes."""
    reads: list[str] = field(default_factory=list)
    changes: list[TextChange] = field(default_factory=list)
    runs: list[Ran] = field(default_factory=list)
    plan: str = ""
    question: str = ""
    commits: list[str] = field(default_factory=list)
    uses_git: bool = False


@dataclass(frozen=True, slots=True)
class CallReader:
    """Reads calls of one workspace."""

    roles: FileRoles
    purposes: CommandPurposes
    workdir: str | None
    matching: Callable[[str], Iterable[str]]
    """The paths in the workspace that a shell's pattern stands for, as far as they are known."""
    is_ours: Callable[[str], bool]
    """Whether a top-level module belongs to the workspace."""
    recorded: bool
    """Whether changes were recorded, so that what calls say they do need not be believed."""

    def read(self, recorded: CallResult) -> CallEffects:
        """What a call did."""
        use = tool_use(recorded.call.function_name, recorded.call.arguments)
        line = parse_line(use.line) if use.kind == "shell" else NOTHING
        done = CallEffects(use.line or _shown(recorded, use), plan=use.plan, question=use.question)
        done.runs = list(self._runs(line, recorded))
        self._git(line, recorded, done)
        touched = [touched_by(command) for command in line.commands]
        said = [*use.changes, *(change for each in touched for change in each.changes)]
        refused = self._refuse(use, recorded)
        said = [change for change in self._placed(said, use.cwd) if not refused(change.path)]
        if self.recorded:
            done.changes = list(self._by_hand(recorded.changes, said, done.runs))
        else:
            done.changes = said
        paths = [*use.reads, *(path for each in touched for path in each.reads)]
        for command in line.commands:
            paths += shown_files(command, recorded.output)
        if use.kind == "search":
            grep = SimpleCommand(("grep",), "")
            paths += shown_files(grep, recorded.output)
        done.reads = list(dict.fromkeys(self._found(paths, use.cwd, refused)))
        return done

    def _by_hand(self, recorded: Iterable[TextChange], said: list[TextChange], runs: list[Ran]) -> Iterator[TextChange]:
        """What was recorded without what the product's programs and tests have written."""
        written = {change.path for change in said}
        for change in recorded:
            if not runs or change.path in written or not may_be_output(change.path):
                yield change

    def _placed(self, changes: Iterable[TextChange], cwd: str) -> Iterator[TextChange]:
        for change in changes:
            if change.path:
                yield replace(change, path=self._place(change.path, cwd))

    def _place(self, path: str, cwd: str) -> str:
        return relative(posixpath.join(cwd, path) if cwd else path, self.workdir)

    def _found(self, paths: Iterable[str], cwd: str, refused: Callable[[str], bool]) -> Iterator[str]:
        for path in dict.fromkeys(paths):
            placed = self._place(path, cwd)
            if "*" in placed:
                yield from list(self.matching(placed)) or [placed]
            elif not refused(placed):
                yield placed

    def _refuse(self, use: ToolUse, recorded: CallResult) -> Callable[[str], bool]:
        """Tells of paths whether the output says that there is no such file, or that the tool would not do it."""
        output = recorded.output
        if use.kind != "shell":
            refused = len(output) < 2000 and _REFUSED.search(output) is not None
            return lambda path: refused
        complaints = [line for line in output.splitlines() if len(line) < 300 and _NOT_FOUND.search(line)]
        return lambda path: any(posixpath.basename(path) in line for line in complaints)

    # Runs.

    def _runs(self, line: CommandLine, recorded: CallResult) -> Iterator[Ran]:
        found = [(number, self.purposes.of(command)) for number, command in enumerate(line.commands)]
        for number, purpose in found:
            command = line.commands[number]
            if purpose is None or (purpose == "program" and not self._is_product(command)):
                continue
            alone = sum(other == purpose for _, other in found) == 1
            yield self._run(command, purpose, line.exit_code_of(number, recorded.exit_code), recorded, alone)

    def _is_product(self, command: SimpleCommand) -> bool:
        """Whether a program is the workspace's own, and no script that was typed in."""
        words = [word for word in command.words[1:] if word is not None]
        if "-c" in words or "-e" in words or words[:1] == ["-"] or (not words and command.stdin is not None):
            return False
        if "-m" in words[:-1]:
            module = words[words.index("-m") + 1].partition(".")[0]
            return not is_standard_module(module) and self.is_ours(module)
        return bool(words) or "/" in (command.words[0] or "")

    def _run(
        self, command: SimpleCommand, purpose: CommandPurpose, exit_code: int | None, recorded: CallResult, alone: bool
    ) -> Ran:
        outcome = read_runner_output(recorded.output) if purpose == "test" and alone else RunnerOutcome(None)
        passed = outcome.passed
        if passed is None and recorded.timed_out:
            passed = False
        if passed is None and exit_code is not None:
            passed = exit_code == 0
        if purpose == "program" and not recorded.timed_out:
            # A program may be meant to refuse what it is given.
            passed = False if alone and crashed(recorded.output, exit_code) else (True if exit_code == 0 else None)
        failure: FailureCause | None = None
        if passed is False:
            has_run = outcome.passed is not None or purpose == "program"
            failure = failure_cause(recorded.output, exit_code=exit_code, has_run=has_run, is_ours=self.is_ours)
        whole = purpose == "test" and self.purposes.is_whole_suite(command)
        return Ran(command.text, self.purposes.key(command), purpose, passed, failure, exit_code, outcome, whole)

    # Git.

    def _git(self, line: CommandLine, recorded: CallResult, done: CallEffects) -> None:
        done.commits += recorded.commits
        done.uses_git = bool(recorded.commits)
        for number, command in enumerate(line.commands):
            words = [word for word in command.words if word is not None]
            if command.program != "git" or len(words) < 2:
                continue
            exit_code = line.exit_code_of(number, recorded.exit_code)
            done.uses_git |= exit_code in (0, 1, None) and "not a git repository" not in recorded.output
            if recorded.commits or "commit" not in words[1:4] or "--dry-run" in words:
                continue
            printed = _COMMITTED.search(recorded.output)
            if exit_code == 0 or printed:
                message = _commit_message(command) or (printed[1] if printed else "")
                done.commits.append(message)


def _commit_message(command: SimpleCommand) -> str:
    words = list(command.words)
    parts = []
    for word, following in zip(words, [*words[1:], None], strict=True):
        if word is None:
            continue
        if following is not None and (word == "--message" or (re.fullmatch(r"-[a-zA-Z]*m", word))):
            parts.append(following)
        elif word.startswith("--message="):
            parts.append(word.partition("=")[2])
    if not parts and command.stdin:
        parts = [_SUBJECT_LINES.sub("", command.stdin)]
    return "\n\n".join(parts).strip()


def _shown(recorded: CallResult, use: ToolUse) -> str:
    paths = [*use.reads, *(change.path for change in use.changes)]
    detail = ", ".join(paths) or use.question or use.plan
    return f"{recorded.call.function_name} {detail}".strip()
