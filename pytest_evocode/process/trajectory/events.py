"""The events of a round that its process is judged by, each with its place in the trajectory and a quote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.process.evidence import Evidence, quoted
from pytest_evocode.process.trajectory.failure_causes import FailureCause
from pytest_evocode.process.trajectory.file_roles import FileRole
from pytest_evocode.process.trajectory.file_texts import ChangeKind, Hunk
from pytest_evocode.process.trajectory.shell.purposes import CommandPurpose


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the agent did."""

    step: int
    """The ``step_id`` in the trajectory."""
    at: int
    """The position among all messages and calls of the round, from 1."""
    quote: str

    def evidence(self, what: str) -> Evidence:
        """Return the event as evidence for ``what``."""
        return Evidence(what=what, step=self.step, quote=quoted(self.quote))


@dataclass(frozen=True, slots=True)
class Statement(Event):
    """Text by the agent: a message, a plan or a question that it gave to a tool, or the message of a commit."""

    @property
    def text(self) -> str:
        """The whole text."""
        return self.quote


@dataclass(frozen=True, slots=True)
class FileRead(Event):
    """A file that the agent looked at."""

    path: str


@dataclass(frozen=True, slots=True)
class FileEdit(Event):
    """A file that the agent changed; a text is None where there is no file or the text is unknown."""

    path: str
    kind: ChangeKind
    role: FileRole
    before: str | None
    after: str | None
    hunks: tuple[Hunk, ...]
    """Empty where they are unknown."""
    effective: bool = True
    """Whether the product came to something that it had not been before in the round: no comment, no way back, and no
    name that nothing uses at the end."""

    @property
    def of_product(self) -> bool:
        """Whether the file belongs to the product or its tests."""
        return self.role in ("source", "tests")


@dataclass(frozen=True, slots=True)
class CommandRun(Event):
    """A command that built, tested or started the product."""

    key: str
    """Equal for two runs of the same command."""
    purpose: CommandPurpose
    passed: bool | None
    """None where neither the output nor the exit code says."""
    failure: FailureCause | None
    exit_code: int | None
    tests: Mapping[str, bool] = field(default_factory=dict)
    """Whether each test passed, for the tests that the output names."""
    whole: bool = False
    """Whether all tests were run."""
    told: bool = False
    """Whether only the agent's program says how it went."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """One file's change, from which the states of the workspace are rebuilt."""

    at: int
    """The position of the call in the round; see :attr:`Event.at`."""
    table: Mapping[str, Any]
    """The change as trajectories record it; see docs/read-results.md."""
    of_product: bool
    """Whether it changed the product or its tests."""


@dataclass(slots=True)
class RoundActivity:
    """All that happened in one round, in order."""

    name: str
    index: int
    """The round's number, from 1."""
    instruction: str
    requests: tuple[str, ...] = ()
    """The instructions of all rounds up to this one."""
    messages: list[Statement] = field(default_factory=list)
    reads: list[FileRead] = field(default_factory=list)
    edits: list[FileEdit] = field(default_factory=list)
    runs: list[CommandRun] = field(default_factory=list)
    plans: list[Statement] = field(default_factory=list)
    """Plans written with a planning tool, such as a to-do list."""
    questions: list[Statement] = field(default_factory=list)
    """Questions put to the user with a tool."""
    answered: list[Statement] = field(default_factory=list)
    """Messages that the task's simulated user has answered."""
    commits: list[Statement] = field(default_factory=list)
    """The messages of the agent's commits."""
    refused_by_git: bool = False
    """Whether git said that there is no repository, or none that the agent may write to."""
    state_changes: list[StateChange] = field(default_factory=list)
    """All changes of files, including those made by the product's own programs."""
    used: frozenset[str] | None = None
    """The changed files of the product and its tests that are of use; None where that was not looked into."""
    tokens: dict[int, int | None] = field(default_factory=dict)
    """Prompt and completion tokens of each of the agent's steps together; None where they were not recorded."""
    before: dict[str, str | None] = field(default_factory=dict)
    """The texts of the changed files at the start of the round; None for a file that did not exist."""
    after: Mapping[str, str | None] = field(default_factory=dict)
    """The texts of the changed files at the end of the round."""
    idle: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By Python file, the names that the attempt added to it and that nothing uses at the end of the round."""
    brought: bool = False
    """Whether most of what is new was made elsewhere: the calls that changed the product do not say it."""
    lost: frozenset[str] = frozenset()
    """Files whose text could not be reconstructed."""
    workspace: Mapping[str, str] = field(default_factory=dict)
    """All texts known at the end of the round."""
    origin: Mapping[str, str | None] = field(default_factory=dict)
    """The texts at the start of the attempt of all files changed in this round or an earlier one."""

    @property
    def product_edits(self) -> tuple[FileEdit, ...]:
        """The edits of the product and its tests."""
        return tuple(edit for edit in self.edits if edit.of_product)

    @property
    def working_edits(self) -> tuple[FileEdit, ...]:
        """The edits of the product and its tests that changed something of use."""
        return tuple(edit for edit in self.product_edits if edit.effective and self.is_used(edit.path))

    def is_used(self, path: str) -> bool:
        """Return whether a changed file is of use, as far as that is known."""
        return self.used is None or path in self.used

    @property
    def first_source_edit(self) -> FileEdit | None:
        """The first edit of the product's source."""
        return next((edit for edit in self.edits if edit.role == "source" and self.is_used(edit.path)), None)

    @property
    def last_message(self) -> Statement | None:
        """The message that the agent ended with; None where it said nothing after its last call."""
        if not self.messages:
            return None
        last = self.messages[-1]
        calls: tuple[Sequence[Event], ...] = (self.reads, self.edits, self.runs, self.plans, self.commits)
        return last if all(event.at < last.at for events in calls for event in events) else None

    def __repr__(self) -> str:
        return f"<activity in {self.name}: {len(self.edits)} edits, {len(self.reads)} reads, {len(self.runs)} runs>"
