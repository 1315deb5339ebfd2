"""The effects of one call of a tool: files read and changed, and the builds, tests and programs it ran."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from pytest_evocode.process.rules import COMMANDS, OUTPUTS
from pytest_evocode.process.trajectory.agent_tools import ToolUse, tool_use
from pytest_evocode.process.trajectory.events import CommandRun
from pytest_evocode.process.trajectory.failure_causes import FailureCause, crashed, failure_cause, is_known
from pytest_evocode.process.trajectory.file_roles import may_be_output, relative
from pytest_evocode.process.trajectory.file_texts import TextChange
from pytest_evocode.process.trajectory.outputs import (
    CallResult,
    RunnerOutcome,
    passed_by_last_words,
    read_runner_output,
    summaries_in,
)
from pytest_evocode.process.trajectory.shell.commands import EMPTY_LINE, CommandLine, SimpleCommand, parse_line
from pytest_evocode.process.trajectory.shell.files import shown_files, touched_by
from pytest_evocode.process.trajectory.shell.purposes import (
    CommandPurpose,
    CommandPurposes,
    only_shows,
    prepares,
    script_of,
)

#: With which pytest refuses its command line.
_USAGE_ERROR = 4
#: Words by which a runner's summary is found in what an agent has written.
_WORDS_OF_SUMMARY = 4
#: What each command of a line is for.
Purposes = Sequence[CommandPurpose | None]
_SUBJECT_LINES = re.compile(r"^(?:#.*)?\n", re.MULTILINE)


@dataclass(slots=True)
class CallEffects:
    """What a call did; paths inside the workspace are relative to it."""

    use: ToolUse
    summary: str
    """The call in one line, for quotes."""
    says: str = ""
    """All that a call which changed something was given, and what earlier ones were about the scripts that it runs."""
    reads: list[str] = field(default_factory=list)
    changes: list[TextChange] = field(default_factory=list)
    runs: list[CommandRun] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    refused_by_git: bool = False
    """Whether git said that there is no repository, or none that the agent may write to."""


@dataclass(frozen=True, slots=True)
class CallReader:
    """Finds out what the calls in one workspace did."""

    purposes: CommandPurposes
    workdir: str | None
    matching: Callable[[str], Iterable[str]]
    """Returns the known paths in the workspace that match a shell's pattern."""
    is_ours: Callable[[str], bool]
    """Whether a top-level Python module belongs to the workspace."""
    recorded: bool
    """Whether changes were recorded, so that they need not be guessed from what a call says it does."""
    known_text: Callable[[str], str | None]
    """Returns the text of a file in the workspace; None where it is unknown."""
    said: list[str] = field(default_factory=list)
    """All that the agent has given to its tools so far."""
    logs: dict[str, SimpleCommand] = field(default_factory=dict)
    """By file, the command that may have run tests and has written what they printed."""

    def read(self, result: CallResult, step: int, at: int) -> CallEffects:
        """Return the effects of a call in the step ``step``, at the position ``at`` of the round."""
        use = tool_use(result.call.function_name, result.call.arguments)
        line = parse_line(use.line) if use.kind == "shell" else EMPTY_LINE
        if line.broken and OUTPUTS.find(result.output, "unparsed"):
            line = self._meant(line, use.line)
        effects = CallEffects(use, use.line or _summary(result, use))
        self.said.extend(_strings(result.call.arguments))
        if use.kind == "other" and COMMANDS.find(tool := result.call.function_name, "running_tools"):
            line = CommandLine((SimpleCommand((tool,), tool),), False)
        effects.runs = list(self._runs(line, result, step, at))
        self._git(line, result, effects)
        touched = [touched_by(command) for command in line.commands]
        stated = [*use.changes, *(change for each in touched for change in each.changes)]
        refused = self._refuse(use, result)
        stated = [replace(change, path=self._place(change.path, use.cwd)) for change in stated if change.path]
        stated = [change for change in stated if not refused(change.path)]
        effects.changes = list(_by_hand(result.changes, stated, effects.runs)) if self.recorded else stated
        if effects.changes:
            effects.says = self._says(line, result)
        paths = [*use.reads, *(path for each in touched for path in each.reads)]
        for command in line.commands:
            paths += shown_files(command, result.output)
        if use.kind == "search":
            paths += shown_files(SimpleCommand(("grep",), ""), result.output)
        effects.reads = list(dict.fromkeys(self._found(paths, use.cwd, refused)))
        return effects

    def _says(self, line: CommandLine, result: CallResult) -> str:
        run = {_script(each) for each in line.commands if COMMANDS.find(each.program, "runs_scripts")} - {""}
        written = [text for text in self.said if any(script in text for script in run)] if run else ()
        return "\n".join([*written, *_strings(result.call.arguments)])

    def _meant(self, line: CommandLine, text: str) -> CommandLine:
        """Return the first build or test of a line that the shell could not parse, and that was not run therefore."""
        if known := [replace(each, after="") for each in line.commands if self.purposes.of(each)]:
            return CommandLine(tuple(known[:1]), True)
        parts = [SimpleCommand(tuple(part.split()), part.strip()) for part in re.split(r"[;&|()\n]+", text)]
        meant = [part for part in parts if self.purposes.of(part) in ("build", "test")]
        return CommandLine(tuple(meant[:1]), True) if meant else line

    def _place(self, path: str, cwd: str) -> str:
        return relative(posixpath.join(cwd, path) if cwd else path, self.workdir)

    def _found(self, paths: Iterable[str], cwd: str, refused: Callable[[str], bool]) -> Iterator[str]:
        for path in dict.fromkeys(paths):
            placed = self._place(path, cwd)
            if "*" in placed:
                yield from list(self.matching(placed)) or [placed]
            elif not refused(placed):
                yield placed

    def _refuse(self, use: ToolUse, result: CallResult) -> Callable[[str], bool]:
        """Return a predicate for paths that do not exist, or that the tool refused, according to the output."""
        if use.kind != "shell":
            refused = len(result.output) < 2000 and OUTPUTS.find(result.output, "refused")
            return lambda path: refused
        complaints = [line for line in result.output.splitlines() if len(line) < 300 and OUTPUTS.find(line, "no_file")]
        return lambda path: any(posixpath.basename(path) in line for line in complaints)

    def _runs(self, line: CommandLine, result: CallResult, step: int, at: int) -> Iterator[CommandRun]:
        found: Purposes = [self._purpose(command, result) for command in line.commands]
        prepared = [prepares(command) for command in line.commands]
        if any(purpose and not prepares for purpose, prepares in zip(found, prepared, strict=True)):
            # What was run behind an installation tells how it went.
            found = [None if prepares else purpose for purpose, prepares in zip(found, prepared, strict=True)]
        if summaries := summaries_in(result.output):
            printed = "\n".join(filter(None, map(_printed_by, line.commands)))
            if _has_words_of(printed, summaries):
                result = replace(result, output="")  # The agent has printed it, whatever was run beside that.
            elif "test" not in found:
                line, found = self._by_output(line, summaries, found)
        self._keep_logs(line, found, result)
        found = found[: self._reached(line, result, found)]
        for number, purpose in enumerate(found):
            command = line.commands[number]
            if purpose is None or (purpose == "program" and not self._starts_product(command)):
                continue
            exit_code = line.exit_code_of(number, result.exit_code)
            alone = len({each.text for each, what in zip(line.commands, found, strict=False) if what == purpose}) == 1
            if purpose == "program" and exit_code is None:
                alone = sum(other is not None for other in found) == 1  # What was printed may be another's.
            outcome = read_runner_output(result.output) if purpose == "test" and alone else RunnerOutcome(None)
            stopped = number + 1 == len(found) < len(line.commands) and command.after == "&&"
            if stopped and exit_code is None and _has_failed(purpose, result):
                exit_code = result.exit_code
            passed = _passed(purpose, exit_code, outcome, result, alone)
            yield CommandRun(
                step,
                at,
                command.text if exit_code is None else f"{command.text} -> exit code {exit_code}",
                key=self.purposes.key(command),
                purpose=purpose,
                passed=passed,
                failure=self._cause(command, purpose, outcome, result, exit_code) if passed is False else None,
                exit_code=exit_code,
                tests=outcome.tests,
                whole=purpose == "test" and self.purposes.runs_all_tests(command),
                told=result.told,
            )

    def _by_output(self, line: CommandLine, summaries: Sequence[str], found: Purposes) -> tuple[CommandLine, Purposes]:
        """Make the last command that may have run tests a test run, as a runner has summed up tests.

        What only shows an output stands for the command that has written it, if that was seen. What the agent has
        written before is no runner's.
        """
        if any(text.strip() in said for said in self.said for text in summaries):
            return line, found
        commands, purposes = list(line.commands), list(found)
        for number, command in reversed(list(enumerate(commands))):
            shown = next((path for path in self._places(touched_by(command).reads) if path in self.logs), None)
            if shown is not None:
                commands[number] = replace(self.logs.pop(shown), after=command.after)
            if shown is not None or self._may_test(command, summaries):
                purposes[number] = "test"
                break
        return replace(line, commands=tuple(commands)), purposes

    def _may_test(self, command: SimpleCommand, summaries: Sequence[str] = ()) -> bool:
        """Return whether a command may run tests, and neither only shows nor makes up what a runner prints."""
        if (script := self._shell_script(command)) is not None:
            return not _has_words_of(script, summaries) and any(map(self._may_test, parse_line(script).commands))
        if typed_in := _typed_in(command):
            calls = self._starts_product(command) or COMMANDS.find(typed_in, "may_call_tests")
            return calls and not _has_words_of(typed_in, summaries)
        text = self.known_text(self._place(_script(command), command.cwd or "")) or ""
        return not only_shows(command) and not _has_words_of(text, summaries)

    def _shell_script(self, command: SimpleCommand) -> str | None:
        return script_of(command, lambda path: self.known_text(self._place(path, command.cwd or "")))

    def _keep_logs(self, line: CommandLine, found: Purposes, result: CallResult) -> None:
        """Remember which command has written which file, where it may have run tests and how it ended is not known."""
        for number, (command, purpose) in enumerate(zip(line.commands, found, strict=True)):
            changes = touched_by(command).changes
            if command.after in ("|", "|&") and line.commands[number + 1 :][:1]:
                changes += touched_by(line.commands[number + 1]).changes  # As of tee.
            known = purpose == "test" and line.exit_code_of(number, result.exit_code) is not None
            if changes and not known and self._may_test(command):
                self.logs.update(dict.fromkeys(self._places(change.path for change in changes), command))

    def _places(self, paths: Iterable[str]) -> list[str]:
        return [self._place(path, "") for path in paths]

    @staticmethod
    def _reached(line: CommandLine, result: CallResult, found: Purposes) -> int:
        """Return how many commands were run, by what the first builds or tests of ``a && b`` have printed."""
        if result.exit_code in (None, 0) or any(each.after not in ("&&", "") for each in line.commands):
            return len(found)
        for number, purpose in enumerate(found[:-1]):
            following = [each for each in found[number + 1 :] if each]
            ran = "test" in following and read_runner_output(result.output).passed is not None
            if purpose in ("build", "test") and following and not ran and _has_failed(purpose, result):
                return number + 1
        return len(found)

    def _purpose(self, command: SimpleCommand, result: CallResult) -> CommandPurpose | None:
        """Return what a command is for; a script whose text is known is for what its commands are for."""
        purpose = self.purposes.of(command)
        if purpose is None and result.exit_code not in (None, 0) and prepares(command):
            return "build"  # What cannot be fetched or installed stops the build.
        if purpose is None and COMMANDS["installed"].match(command.text) and not is_known(command.program):
            return "program"
        if script := self._shell_script(command):
            within = parse_line(script).commands
            if purpose == "test" and within and all(map(only_shows, within)):
                return None
            purpose = "test" if any(self.purposes.of(each) == "test" for each in within) else purpose
        return purpose

    def _cause(
        self,
        command: SimpleCommand,
        purpose: CommandPurpose,
        outcome: RunnerOutcome,
        result: CallResult,
        exit_code: int | None,
    ) -> FailureCause:
        if purpose == "program" and not result.timed_out and not crashed(result.output, exit_code):
            return "refusal"
        script = _script(command)
        placed = self._place(script, command.cwd or "")
        if _typed_in(command):
            script, placed = "<typed in>", "~"
        return failure_cause(
            result.output,
            exit_code=exit_code,
            has_run=outcome.passed is not None or purpose == "program",
            is_ours=self.is_ours,
            command=command.text,
            scratch=script if purpose == "program" and _is_scratch(placed) else "",
        )

    def _starts_product(self, command: SimpleCommand) -> bool:
        """Return whether a program is the workspace's own, or a script that was typed in and imports it."""
        typed_in = _typed_in(command)
        if COMMANDS.find(typed_in, "writes"):
            return False  # It edits, and what it imports may be the text of a file.
        if typed_in:
            names = (name for match in COMMANDS["imports"].finditer(typed_in) for name in match.groups() if name)
            return any(name.startswith(".") or self.is_ours(name.partition(".")[0]) for name in names)
        words = [word for word in command.words[1:] if word is not None]
        if "-m" in words[:-1]:
            module = words[words.index("-m") + 1].partition(".")[0]
            return module not in sys.stdlib_module_names and self.is_ours(module)
        return bool(words) or "/" in (command.words[0] or "")

    def _git(self, line: CommandLine, result: CallResult, effects: CallEffects) -> None:
        effects.commits += result.commits
        for number, command in enumerate(line.commands):
            words = [word for word in command.words if word is not None]
            if command.program != "git" or len(words) < 2:
                continue
            verb = _verb_of_git(words)
            exit_code = line.exit_code_of(number, result.exit_code)
            effects.refused_by_git |= OUTPUTS.find(result.output, "no_repository")
            if result.commits or verb != "commit" or "--dry-run" in words:
                continue
            printed, message = OUTPUTS["committed"].search(result.output), _commit_message(command)
            if exit_code == 0 or printed or (exit_code is None and _is_logged(message, result.output)):
                effects.commits.append(message or (printed[1] if printed else ""))
        if not effects.commits and any(self._purpose(command, result) == "program" for command in line.commands):
            effects.commits += (match[1] for match in OUTPUTS["committed_by_script"].finditer(result.output))


def _script(command: SimpleCommand) -> str:
    """Return the script that a program runs: by its path, or as the first script or word that an interpreter is given.

    What a script, a module or a tool chain is given is no script.
    """
    words = [word for word in command.words if word]
    if words and "/" in words[0] and not COMMANDS.find(command.program, "runs_scripts"):
        return words[0]
    if "-m" in words or command.program in COMMANDS.words["run_by_name"]:
        return ""
    named = [word for word in words[1:] if not word.startswith("-")]
    return next(filter(COMMANDS["of_a_script"].search, named), named[0] if named else "")


def _printed_by(command: SimpleCommand) -> str:
    """Return the text that a command prints as it was written, as far as its words tell."""
    words = command.words[1:] if command.program in ("echo", "printf") else (command.stdin, _typed_in(command))
    return " ".join(word for word in words if word)


def _has_words_of(text: str, summaries: Iterable[str]) -> bool:
    """Return whether a text has the words of what a runner has printed to sum up, with whatever between them."""
    for summary in summaries if text else ():
        words = re.findall(r"[^\W\d_]{2,}", summary)[:_WORDS_OF_SUMMARY]
        if re.search(r"\b" + r"\b.{0,40}?\b".join(map(re.escape, words)), text, re.DOTALL):
            return True
    return False


def _is_scratch(path: str) -> bool:
    """Return whether a script is none of the workspace's, or is called as scripts for a try are."""
    return path.startswith(("/", "~", "../")) or COMMANDS.find(path, "scratch")


def _typed_in(command: SimpleCommand) -> str:
    """Return the script that an interpreter is given on the command line or as a here-document; empty for none."""
    words = [word for word in command.words[1:] if word is not None]
    for option, script in pairwise(words):
        if option in ("-e", "--eval") or f"{command.program[:4]} {option}" in COMMANDS.words["types_in"]:
            return script or " "
    if command.program in ("psql", "mysql", "sqlite3"):
        return ""
    if words[:1] in (["-"], ["-e"]) or (not words and command.stdin is not None):
        return command.stdin or " "
    return ""


def _has_failed(purpose: CommandPurpose, result: CallResult) -> bool:
    """Return whether a build or tests failed by what was printed."""
    if purpose == "build":
        return passed_by_last_words("build", result.output) is False
    return purpose == "test" and read_runner_output(result.output).passed is False


def _passed(
    purpose: CommandPurpose, exit_code: int | None, outcome: RunnerOutcome, result: CallResult, alone: bool
) -> bool | None:
    if purpose == "program" and not result.timed_out:
        # A program may be meant to refuse its input, so a failing exit code alone says nothing.
        if alone and crashed(result.output, exit_code):
            return False
        if exit_code is None and alone and result.exit_code == 0 and result.output.strip():
            return True  # It has printed something, and another program has taken that.
        return None if exit_code is None else exit_code == 0
    if outcome.passed is not None:
        return outcome.passed
    if result.timed_out:
        return False
    if outcome.empty and not (exit_code == _USAGE_ERROR and "ERROR: " in result.output):
        return None  # No test failed, and none passed.
    if purpose != "program" and exit_code is None and alone:
        return passed_by_last_words(purpose, result.output)
    return None if exit_code is None else exit_code == 0


def _by_hand(
    recorded: Iterable[TextChange], stated: Iterable[TextChange], runs: Iterable[CommandRun]
) -> Iterator[TextChange]:
    """Yield the recorded changes, except for files that the product's own programs and tests have written."""
    written = {change.path for change in stated}
    for change in recorded:
        if not runs or change.path in written or not may_be_output(change.path):
            yield change


def _verb_of_git(words: list[str]) -> str:
    """Return what git is asked to do, behind its own options."""
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-c", "-C", "--git-dir", "--work-tree", "--namespace") else rest[1:]
    return rest[0] if rest else ""


def _is_logged(message: str, output: str) -> bool:
    """Return whether a log in the output has a commit with the subject of a message."""
    subject = message.partition("\n")[0]
    return bool(subject) and bool(
        re.search(rf"^[^\w\n]*[0-9a-f]{{7,40}} (?:\([^)]*\) )?{re.escape(subject)}$", output, re.MULTILINE)
    )


def _commit_message(command: SimpleCommand) -> str:
    words = list(command.words)
    words = words[words.index("commit") :] if "commit" in words else words
    parts = [
        following or ""
        for word, following in pairwise(words)
        if word and re.fullmatch(r"--message|-[a-zA-Z]*m", word) and following is not None
    ]
    parts += [word.partition("=")[2] for word in words if word and word.startswith("--message=")]
    if not parts and command.stdin:
        parts = [_SUBJECT_LINES.sub("", command.stdin)]
    return "\n\n".join(parts).strip()


def _strings(value: object) -> Iterator[str]:
    """Yield the texts in what a tool was given."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(each)


def _summary(result: CallResult, use: ToolUse) -> str:
    paths = [*use.reads, *(change.path for change in use.changes)]
    detail = ", ".join(paths) or use.question or use.plan
    return f"{result.call.function_name} {detail}".strip()
