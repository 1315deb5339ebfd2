"""An agent's program in the container: the files that it is given, and its run within the turn's time and budget."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import posixpath
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from pytest_evocode.agents.harness import HarnessOptions, read_file
from pytest_evocode.agents.installed.model_access import ModelAccess, ModelApi
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.environments import Environment, ExecResult, User, read_environment_file
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import AgentFault, UnreadableFile
from pytest_evocode.llm.model_options import split_words
from pytest_evocode.tasks import Task

#: Not below /opt or /usr, where nothing may change after the image was built.
STAGE = "/var/lib/evocode"
INSTRUCTION = f"{STAGE}/instruction.md"
SERVERS = f"{STAGE}/servers.json"
_ERRORS = f"{STAGE}/stderr.txt"
_ERRORS_LIMIT = 2**20  # bytes
_PLACING = 120.0  # seconds

# Run as the agent's user, who owns the files. Rules that the image already has come after ours.
_PLACE_RULES = """
mkdir -p "$(dirname "$target")"
if [ -s "$target" ]; then
    printf '\\n' | cat "$source" - "$target" >"$target.new"
    mv "$target.new" "$target"
else
    cat "$source" >"$target"
fi
"""
# Run as root, whoever owns the workspace. A file of the task keeps its owner and mode; a new one is hidden from Git.
_SHOW_RULES = """
set -e
if [ -e "$file" ]; then
    cp "$file" "$stage/before"
    cat "$stage/rules" "$stage/before" >"$file"
else
    mkdir -p "$(dirname "$file")"
    cat "$stage/rules" >"$file"
    chmod 666 "$file"
    [ ! -d .git/info ] || printf '%s\\n' "/$file" >>.git/info/exclude
fi
"""
_HIDE_RULES = """
set -e
if [ -f .git/info/exclude ] && grep -qxF "/$file" .git/info/exclude; then
    { grep -vxF "/$file" .git/info/exclude || true; } >"$stage/exclude"
    cat "$stage/exclude" >.git/info/exclude
fi
[ -f "$file" ] && [ "$(head -c "$size" "$file" | sha256sum | cut -d' ' -f1)" = "$sha256" ] || exit 0
tail -c "+$((size + 1))" "$file" >"$stage/after"
if [ -s "$stage/after" ] || [ "$was_there" = yes ]; then
    cat "$stage/after" >"$file"
else
    rm "$file"
    rmdir -p "$(dirname "$file")" 2>/dev/null || true
fi
"""
_PLACE_SKILLS = 'mkdir -p "$target" && cp -R "$source/." "$target/"'


@dataclass(frozen=True, slots=True)
class UserFiles:
    """Where a CLI looks for its user's rules and skills, relative to the user's home."""

    rules: str
    skills: str


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """A directory in the container with the files of one turn."""

    environment: Environment
    user: User | None
    instruction: str

    @property
    def redirections(self) -> str:
        """Redirections of the program: the instruction as its input, and stderr kept apart from its events."""
        return f"<{INSTRUCTION} 2>{_ERRORS}"

    def tell(self, instruction: str) -> None:
        """Put an instruction in the place of what is there, and an empty stderr file."""
        with scratch_directory() as directory:
            Path(directory, "instruction.md").write_text(instruction, encoding="utf-8")
            Path(directory, "stderr.txt").touch()
            self.environment.upload([Path(directory)], STAGE, writable=True)

    def errors(self) -> str:
        """Return what the program printed to stderr."""
        try:
            written = read_environment_file(self.environment, _ERRORS, _ERRORS_LIMIT)
        except UnreadableFile:  # The agent replaced the file, or it is too long.
            written = None
        return (written or b"").decode("utf-8", "replace")

    def place(self, files: UserFiles, task: Task, *, rules: Path | None = None, skills: Path | None) -> None:
        """Put the harness's files, and the task's skills, where the CLI looks for them.

        Raises:
            AgentFault: The container has no such directory as the task names.
        """
        for source, target, script in ((rules, files.rules, _PLACE_RULES), (skills, files.skills, _PLACE_SKILLS)):
            if source is None:
                continue
            with scratch_directory() as directory:
                copy = shutil.copytree if source.is_dir() else shutil.copy
                copy(source, Path(directory, "files"))
                self.environment.upload([Path(directory)], STAGE, writable=True)
            self.run(f"set -e; source={STAGE}/files target=~/{shlex.quote(target)}; {script}")
            self.environment.remove([f"{STAGE}/files"])
        if (of_task := task.config.environment.skills_dir) is not None:
            fault = f"skills_dir = {of_task!r} could not be copied; correct it in task.toml, or the image"
            # Relative paths count from the working directory.
            script = f"set -e; source={shlex.quote(of_task)} target=~/{shlex.quote(files.skills)}; {_PLACE_SKILLS}"
            self._run(script, fault, user=self.user)

    def add_servers(self, values: Any) -> None:
        """Write what the CLI is to know of MCP servers into :data:`SERVERS`, as JSON, until the turn's end."""
        with scratch_directory() as directory:
            Path(directory, posixpath.basename(SERVERS)).write_text(json.dumps(values), encoding="utf-8")
            self.environment.upload([Path(directory)], STAGE, writable=True)

    @contextlib.contextmanager
    def rules_in_workspace(self, rules: str, file: str) -> Iterator[None]:
        """Put rules into a file of the workspace, before its own text, until the context ends."""
        text = f"{rules.rstrip()}\n\n".encode()
        try:
            path = posixpath.join(self.environment.workdir, file)
            was_there = read_environment_file(self.environment, path, 0) is not None
        except UnreadableFile:  # It has more than 0 bytes.
            was_there = True
        with scratch_directory() as directory:
            Path(directory, "rules").write_bytes(text)
            self.environment.upload([Path(directory)], STAGE)
        given = {
            "stage": STAGE,
            "file": file,
            "size": str(len(text)),
            "sha256": hashlib.sha256(text).hexdigest(),
            "was_there": "yes" if was_there else "no",
        }
        assignments = "".join(f"{name}={shlex.quote(value)}\n" for name, value in given.items())
        fault = "the harness's rules could not be put into the workspace"
        self._run(assignments + _SHOW_RULES, fault, user="0")
        yield
        self._run(assignments + _HIDE_RULES, fault, user="0")

    def run(self, script: str) -> None:
        """Run a script as the agent's user; raises AgentFault when it fails."""
        self._run(script, "the agent could not be given its files in the container", user=self.user, cwd="/")

    def _run(self, script: str, fault: str, *, user: User | None, cwd: str | None = None) -> None:
        done = self.environment.exec(script, user=user, cwd=cwd, timeout=_PLACING)
        if not done.ok:
            raise AgentFault(f"{fault}: {done.output.strip()[-2000:]}")


@contextlib.contextmanager
def staged(context: RoundContext, instruction: str) -> Iterator[StagedFiles]:
    """Put the instruction and an empty stderr file into the container until the context ends."""
    stage = StagedFiles(context.environment, context.round.agent_user, instruction)
    stage.tell(instruction)
    yield stage
    context.environment.remove([STAGE])


def below_workdir(path: str) -> str:
    """Return a path below the working directory in its one form; raises ValueError for any other."""
    if posixpath.isabs(path) or posixpath.normpath(path).split("/")[0] in ("..", "."):
        raise ValueError("it has to be a path below the working directory, such as AGENTS.md")
    return posixpath.normpath(path)


def below_home(path: str | None) -> str | None:
    """Return a path that begins with ``~/`` in its one form; raises ValueError for any other."""
    if path is not None and not path.startswith("~/"):
        raise ValueError("it has to be a path below the home directory, such as ~/.agents/skills")
    return None if path is None else f"~/{below_workdir(path[2:])}"


class ProgramHarness(HarnessOptions):
    """The harness of a program that a project declares."""

    rules: Path | None = None
    """File whose text is put before that of ``rules_file``, during the turns only."""
    skills: Path | None = None
    """Directory with one directory per skill, for a program that has a ``skills_directory``."""
    ca: Path | None = None
    """File of certificates, in PEM form, to trust while the program is installed."""


class DeclaredProgram(ModelApi):
    """Options of a program that a project declares: what it needs, and where it looks for what it is given."""

    secrets: Annotated[tuple[str, ...], BeforeValidator(split_words)] = ()
    """Variables of this machine that the program gets."""
    hosts: Annotated[tuple[str, ...], BeforeValidator(split_words)] = ()
    """Hosts that the program calls, which its turns may reach beside those of a task's ``allowed_hosts``."""
    install: str = Field(default="", examples=["pip install mine"])
    """Script that runs as root, with a network, when the image is built."""
    rules_file: Annotated[str, AfterValidator(below_workdir)] = "AGENTS.md"
    """File in which the program looks for rules, relative to the working directory."""
    skills_directory: Annotated[str | None, AfterValidator(below_home)] = Field(
        default=None, examples=["~/.agents/skills"]
    )
    """Directory in which the program looks for skills, such as ~/.agents/skills; None where it uses none."""

    @contextlib.contextmanager
    def staged(
        self, context: RoundContext, harness: ProgramHarness, *, is_first: bool, places_skills: bool
    ) -> Iterator[StagedFiles]:
        """Put the instruction and the harness into the container until the context ends; skills stay.

        Args:
            context: The agent's turn.
            harness: What the program is given beside the instruction.
            is_first: Whether it is the program's first instruction, before which it gets the prompt.
            places_skills: Whether the skills are not there yet.
        """
        instruction = context.instruction
        if harness.prompt is not None and is_first:
            instruction = f"{read_file(harness.prompt).strip()}\n\n{instruction}"
        with staged(context, instruction) as stage, contextlib.ExitStack() as turn:
            if harness.rules is not None:
                context.recorder.leave_out(self.rules_file)
                turn.enter_context(stage.rules_in_workspace(read_file(harness.rules), self.rules_file))
            if places_skills and self.skills_directory is not None:
                files = UserFiles(rules="", skills=self.skills_directory.removeprefix("~/"))
                stage.place(files, context.task, skills=harness.skills)
            yield stage


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """How an agent's program ended."""

    result: ExecResult
    stopped: str
    """The budget limit that ended it; empty where none did."""


def run_program(
    context: RoundContext,
    command: str,
    *,
    env: Mapping[str, str],
    access: ModelAccess | None = None,
    deadline: Deadline | None = None,
) -> ProgramRun:
    """Run a script as the round's agent user until it ends, or its time or the attempt's budget is over.

    The budget is checked before the program starts, and by the gateway before each request to a model. When it is over,
    all processes of the container are killed, as they are at the deadline.

    Args:
        context: The agent's turn.
        command: Bash script.
        env: Variables that the program gets.
        access: What the program reaches its model by, where that is the gateway.
        deadline: The turn's, where another program has run in it before.
    """
    if spent := context.spending.exhausted:
        if not context.goes_on:
            context.recorder.ask_nothing()
        return ProgramRun(ExecResult(None, "", timed_out=False, seconds=0.0), spent)
    turn = f"{context.task.name} {context.round.name}"
    logger.info("%s: the agent's program is started", turn)
    running = contextlib.nullcontext() if access is None else access.running()
    deadline = deadline or Deadline(context.timeout, context.spending.waiting)
    with deadline.watched(context.environment), running:
        result = context.environment.exec(command, user=context.round.agent_user, env=env, timeout=deadline.latest)
    if deadline.passed:
        result = replace(result, exit_code=None, timed_out=True)
    ending = "was killed at its deadline" if result.timed_out else f"ended with exit code {result.exit_code}"
    logger.info("%s: the agent's program %s after %.1f s", turn, ending, result.seconds)
    return ProgramRun(result, "" if access is None else access.session.exhausted)
