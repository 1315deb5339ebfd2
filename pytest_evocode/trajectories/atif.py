"""Trajectories: what an agent did, step by step, in the Agent Trajectory Interchange Format (ATIF 1.x)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

#: What is written. 1.8 adds only sound to it, and readers of 1.7 refuse what is called by a later version.
ATIF_VERSION = "ATIF-v1.7"


class _Record(BaseModel):
    """Frozen; fields of later ATIF versions are kept as they are."""

    # Built on first use: most sessions write none, and every session imports this.
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)


class ToolCall(_Record):
    """One call of a tool; ``arguments`` are the tool's own."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    extra: dict[str, Any] | None = None


class SubagentTrajectoryRef(_Record):
    """Where the trajectory of a subagent is: embedded, by its ``trajectory_id``, or in a file of its own."""

    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: dict[str, Any] | None = None


class ObservationResult(_Record):
    """What one call gave back; ``source_call_id`` is the call's ``tool_call_id``, None for what no call gave.

    ``content`` is a text, or a list of parts where there are images or sound.
    """

    source_call_id: str | None = None
    content: Any = None
    subagent_trajectory_ref: tuple[SubagentTrajectoryRef, ...] | None = None
    extra: dict[str, Any] | None = None


class Observation(_Record):
    """What the agent saw after a step's calls."""

    results: tuple[ObservationResult, ...] = ()


class StepMetrics(_Record):
    """Tokens and US dollars of one step; None where unknown."""

    prompt_tokens: int | None = None
    """All that was sent, cached ones included."""
    completion_tokens: int | None = None
    """All that the model wrote, its reasoning included."""
    cached_tokens: int | None = None
    """Of the prompt tokens those that came from a cache."""
    cost_usd: float | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    extra: dict[str, Any] | None = None


class Step(_Record):
    """One message of the conversation; ``step_id`` counts from 1, ``timestamp`` is ISO 8601.

    What only an agent's step has: model, effort, reasoning, calls and metrics.
    """

    step_id: int
    timestamp: str | None = None
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    """Where it is another than the trajectory's agent has."""
    reasoning_effort: str | float | None = None
    message: Any = ""
    """A text, or a list of parts where there are images or sound."""
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    observation: Observation | None = None
    metrics: StepMetrics | None = None
    is_copied_context: bool | None = None
    """Whether the step is an earlier trajectory's, repeated here for the model to see."""
    llm_call_count: int | None = None
    """How many replies of a model it stands for; 0 for a step that no model decided on, None where nobody counted."""
    extra: dict[str, Any] | None = None


class AgentInfo(_Record):
    """Who acted."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: tuple[dict[str, Any], ...] | None = None
    """The tools it had, in the form of OpenAI's function calling."""
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
    """One round of one attempt.

    ``session_id`` is the attempt's, and the same in all its rounds; ``trajectory_id`` is the document's own.
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
        """The agent's tool calls, which is what Avg Rounds averages (EvoCode-Bench's leaderboard notes)."""
        return sum(len(step.tool_calls or ()) for step in self.steps if step.source == "agent")


def actions_of(step: Step) -> list[dict[str, Any]]:
    """What a step's calls did, one table per call in their order, as far as our own recorder took it down.

    See docs/results.md for what is in them.
    """
    ours = (step.extra or {}).get("evocode")
    actions = ours.get("actions") if isinstance(ours, dict) else None
    return [action for action in actions if isinstance(action, dict)] if isinstance(actions, list) else []
