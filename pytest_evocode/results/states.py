"""What later sessions go on from: the state of an interrupted attempt, and kept snapshots."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from pytest_evocode.results.frozen import ResultsRecord
from pytest_evocode.results.phases import Phases
from pytest_evocode.results.records import RECORD_VERSION, DeniedConnection, Usage
from pytest_evocode.results.waits import Waits
from pytest_evocode.tasks import Verify


class TurnRecord(ResultsRecord):
    """An agent's turn that has ended, while the verdict of its round may still be outstanding."""

    index: int
    """The place of the round in the task, from 1."""
    snapshot: str
    """The engine's reference of the snapshot that was taken after the turn."""
    timed_out: bool
    tool_calls: int | None
    usage: Usage | None = None
    user_usage: Usage | None = None
    """What the model of a simulated user used and cost, which is none of the agent's; None where it was not asked."""
    stopped: str = ""
    refused: bool = False
    agent_seconds: float | None
    """None where nobody took the turn, because the state that it leads to was kept."""
    phases: Phases | None = None
    """Where the time of the turn went; None in records that do not say."""
    denied: tuple[DeniedConnection, ...] | None = None
    """As :attr:`RoundRecord.denied`, of the turn alone."""
    provider_waits: Waits | None = None
    """As :attr:`RoundRecord.provider_waits`."""
    notes: tuple[str, ...] = ()
    """What its verdict is to say of what happened between the turn and the suite."""


class Spent(ResultsRecord):
    """What an attempt has used of its budget."""

    tokens: int = 0
    cost_usd: float = 0.0
    turns: int = 0
    """How often the model has answered."""
    seconds: float = 0.0
    """Time of the agent's turns, without the suites'."""


class AttemptState(ResultsRecord):
    """The file from which an interrupted attempt can be resumed: ``state.json``, removed when the attempt ends."""

    version: int = RECORD_VERSION
    environment: str
    task_hash: str
    made_by: dict[str, Any] = {}
    last: int = 0
    """The index of the last round that any session was to run."""
    turns: tuple[TurnRecord, ...] = ()
    """The turns whose rounds have no verdict yet, and the last turn."""
    spent: Spent = Spent()
    agent: Any = None
    """What the agent's ``save_state`` returned after the last turn."""


class SnapshotFile(ResultsRecord):
    """The file that says where the workspace after a round is kept on this machine: ``steps/<round>/snapshot.json``."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    version: int = RECORD_VERSION
    environment: str
    reference: str
    """The engine's reference of the snapshot."""
    image: str
    """Identifies the contents of the task's image, without which the snapshot is of no use."""
    task: str
    """The task's directory."""
    strict: bool
    """Whether the suite found nothing of the agent's system that the task does not declare."""
    verify_times: int = 1
    """How often the suite was run."""
    timeout_multiplier: float = Field(validation_alias="timeouts", serialization_alias="timeouts")
    """What the timeouts of agents and suites were multiplied by; in the file it is called ``timeouts``."""
    verify: Verify | None = None
    """How suites were judged by the session's choice; None for the task's own."""
