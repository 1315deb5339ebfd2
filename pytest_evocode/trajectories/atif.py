"""Models of the Agent Trajectory Interchange Format (ATIF 1.x): what an agent did, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_evocode.errors import TaskError, describe_validation
from pytest_evocode.tasks import Round

#: The version that is written: 1.8 adds only audio, and readers of 1.7 refuse later versions.
ATIF_VERSION = "ATIF-v1.7"


class _Record(BaseModel):
    """A frozen model; fields of later ATIF versions are kept as they are."""

    # Built on first use: every session imports this, and many write no trajectory.
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)


class ToolCall(_Record):
    """One call of a tool by the model."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    extra: dict[str, Any] | None = None


class SubagentTrajectoryRef(_Record):
    """Where to find a subagent's trajectory: embedded, by its ``trajectory_id``, or in a file of its own."""

    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: dict[str, Any] | None = None


class ObservationResult(_Record):
    """The result of one tool call; ``source_call_id`` is the call's ``tool_call_id``, None for a result of no call.

    ``content`` is text, or a list of parts where there are images or audio.
    """

    source_call_id: str | None = None
    content: Any = None
    subagent_trajectory_ref: tuple[SubagentTrajectoryRef, ...] | None = None
    extra: dict[str, Any] | None = None


class Observation(_Record):
    """The results of a step's tool calls."""

    results: tuple[ObservationResult, ...] = ()


class StepMetrics(_Record):
    """Tokens and cost of one step; None where unknown."""

    prompt_tokens: int | None = None
    """Tokens sent, cached ones included."""
    completion_tokens: int | None = None
    """Tokens that the model wrote, reasoning included."""
    cached_tokens: int | None = None
    """Of the prompt tokens, those read from a cache."""
    cost_usd: float | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    extra: dict[str, Any] | None = None


class Step(_Record):
    """One message of the conversation; ``step_id`` counts from 1, ``timestamp`` is ISO 8601.

    Only an agent's step has a model, effort, reasoning, tool calls and metrics.
    """

    step_id: int
    timestamp: str | None = None
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    """Where it differs from the agent's."""
    reasoning_effort: str | float | None = None
    message: Any = ""
    """Text, or a list of parts where there are images or audio."""
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    observation: Observation | None = None
    metrics: StepMetrics | None = None
    is_copied_context: bool | None = None
    """Whether the step belongs to an earlier trajectory and is repeated as context."""
    llm_call_count: int | None = None
    """Replies of a model that the step stands for: 0 where no model was asked, None where unknown."""
    extra: dict[str, Any] | None = None


class AgentInfo(_Record):
    """The agent that acted."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: tuple[dict[str, Any], ...] | None = None
    """Its tools, in the format of OpenAI's function calling."""
    extra: dict[str, Any] | None = None


class FinalMetrics(_Record):
    """Totals over all steps; None where unknown."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_cost_usd: float | None = None
    total_steps: int | None = None
    extra: dict[str, Any] | None = None


class Trajectory(_Record):
    """The trajectory of one round.

    ``session_id`` is the same in all rounds of an attempt; ``trajectory_id`` is this document's own.
    """

    schema_version: str = ATIF_VERSION
    session_id: str | None = None
    trajectory_id: str | None = None
    agent: AgentInfo
    steps: tuple[Step, ...] = Field(default_factory=tuple)
    notes: str | None = None
    final_metrics: FinalMetrics | None = None
    continued_trajectory_ref: str | None = None
    extra: dict[str, Any] | None = None
    subagent_trajectories: tuple[Trajectory, ...] | None = None

    @property
    def tool_call_count(self) -> int:
        """Number of tool calls, whose mean EvoCode-Bench's leaderboard calls Avg Rounds."""
        return sum(len(step.tool_calls or ()) for step in self.steps if step.source == "agent")


def tools_together(*lists: Iterable[dict[str, Any]] | None) -> tuple[dict[str, Any], ...]:
    """Return tool definitions of several requests or rounds as one list; of one name the last definition counts.

    Programs add tools and take some away as they go on. A conversation has calls of all of them, and chat templates
    refuse calls of tools that are not defined.
    """
    found = {_tool_name(each): each for definitions in lists for each in definitions or ()}
    return tuple(found.values())


def _tool_name(definition: dict[str, Any]) -> str:
    function = definition.get("function")
    name = (function if isinstance(function, dict) else definition).get("name")
    return str(name or json.dumps(definition, sort_keys=True))


def actions_of(step: Step) -> list[dict[str, Any]]:
    """Return what a step's tool calls did, one table per call in order, as far as our recorder noted it.

    docs/read-results.md describes the tables.
    """
    ours = (step.extra or {}).get("evocode")
    actions = ours.get("actions") if isinstance(ours, dict) else None
    return [action for action in actions if isinstance(action, dict)] if isinstance(actions, list) else []


_LARGEST = 64 * 2**20  # bytes


def read_task_trajectory(round_: Round) -> Trajectory | None:
    """Return the conversation before a round's instruction, or None where the task gives none.

    Raises:
        TaskError: The file cannot be read, or is not in ATIF.
    """
    path = round_.trajectory
    if path is None:
        return None
    try:
        if path.stat().st_size > _LARGEST:
            raise TaskError(f"is larger than {_LARGEST} bytes; shorten the conversation", path)
        return Trajectory.model_validate_json(path.read_bytes())
    except OSError as error:
        raise TaskError(f"cannot be read ({error.strerror}); check its permissions", path) from error
    except ValidationError as error:
        why = describe_validation(error)
        raise TaskError(f"this is not an ATIF trajectory: {why}; write it anew, or remove it", path) from None
