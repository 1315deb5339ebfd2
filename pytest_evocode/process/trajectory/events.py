"""What happened in a round, as far as a judgement of the process needs it; each with its place and a quote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_evocode.process.evidence import Evidence, quoted
from pytest_evocode.process.trajectory.failure_causes import FailureCause
from pytest_evocode.process.trajectory.file_roles import FileRole
from pytest_evocode.process.trajectory.shell.purposes import CommandPurpose
from pytest_evocode.process.trajectory.text_changes import ChangeKind, Hunk


@dataclass(frozen=True, slots=True)
class Event:
    """Something in a trajectory."""

    step: int
    """The ``step_id``."""
    at: int
    """Its place among all messages and calls of the round, from 1."""
    quote: str

    def evidence(self, what: str) -> Evidence:
        """This as evidence for something."""
        return Evidence(what=what, step=self.step, quote=quoted(self.quote))


@dataclass(frozen=True, slots=True)
class AgentMessage(Event):
    """What the agent said, or thought aloud."""

    text: str


@dataclass(frozen=True, slots=True)
class FileRead(Event):
    """A file was looked at."""

    path: str


@dataclass(frozen=True, slots=True)
class FileEdit(Event):
    """A file was changed; texts are None where there is no file or they are not known."""

    path: str
    kind: ChangeKind
    role: FileRole
    before: str | None
    after: str | None
    hunks: tuple[Hunk, ...]
    """Empty where they are not known."""

    @property
    def of_product(self) -> bool:
        """Whether the file belongs to the product or its tests."""
        return self.role in ("source", "tests")


@dataclass(frozen=True, slots=True)
class CommandRun(Event):
    """The product was built, tested or started."""

    key: str
    """What makes two runs runs of the same command."""
    purpose: CommandPurpose
    passed: bool | None
    """None where nothing tells."""
    failure: FailureCause | None
    exit_code: int | None
    tests: Mapping[str, bool] = field(default_factory=dict)
    whole: bool = False
    """Whether it was a run of all tests."""


@dataclass(frozen=True, slots=True)
class PlanUpdate(Event):
    """Steps that the agent set itself with a tool for that."""

    text: str


@dataclass(frozen=True, slots=True)
class Question(Event):
    """The user was asked with a tool for that."""

    text: str


@dataclass(frozen=True, slots=True)
class Commit(Event):
    """Changes were committed."""

    message: str


@dataclass(frozen=True, slots=True)
class StateChange:
    """One file's change, for rebuilding the states that the workspace went through."""

    at: int
    table: Mapping[str, Any]
    """As our agents record it; see docs/results.md."""
    of_product: bool
    """Whether the product is another one afterwards."""


@dataclass(frozen=True, slots=True)
class RoundActivity:
    """All of a round, in order."""

    name: str
    index: int
    """From 1."""
    instruction: str
    messages: tuple[AgentMessage, ...] = ()
    reads: tuple[FileRead, ...] = ()
    edits: tuple[FileEdit, ...] = ()
    runs: tuple[CommandRun, ...] = ()
    plans: tuple[PlanUpdate, ...] = ()
    questions: tuple[Question, ...] = ()
    commits: tuple[Commit, ...] = ()
    uses_git: bool = False
    """Whether a command has shown that the workspace is a repository."""
    replay: tuple[StateChange, ...] = ()
    """All changes, also those that the product's own programs have made."""
    tokens: Mapping[int, int | None] = field(default_factory=dict)
    """What each of the agent's steps took, prompt and completion together; None where that is not recorded."""
    before: Mapping[str, str | None] = field(default_factory=dict)
    """Of the files that were changed, their texts at the beginning of the round; None where there was none."""
    after: Mapping[str, str | None] = field(default_factory=dict)
    """And at its end."""
    lost: frozenset[str] = frozenset()
    """Files whose text could not be found out."""
    workspace: Mapping[str, str] = field(default_factory=dict)
    """All texts that are known at the end of the round."""
    origin: Mapping[str, str | None] = field(default_factory=dict)
    """The texts at the beginning of the attempt, of the files that were changed in this round or an earlier one."""

    @property
    def product_edits(self) -> tuple[FileEdit, ...]:
        """The edits of the product and its tests."""
        return tuple(edit for edit in self.edits if edit.of_product)

    @property
    def first_source_edit(self) -> FileEdit | None:
        """The first edit of the product itself."""
        return next((edit for edit in self.edits if edit.role == "source"), None)

    @property
    def last_message(self) -> AgentMessage | None:
        """What the agent ended with; None where it said nothing after its last call."""
        if not self.messages:
            return None
        last = self.messages[-1]
        calls = (self.reads, self.edits, self.runs, self.plans, self.commits)
        return last if all(signal.at < last.at for activity in calls for signal in activity) else None

    def __repr__(self) -> str:
        return f"<activity of {self.name}: {len(self.edits)} edits, {len(self.reads)} reads, {len(self.runs)} runs>"


PlanForm = Literal["document", "message", "tool"]
