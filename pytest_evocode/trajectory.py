"""Trajectories: what an agent did, step by step, in the Agent Trajectory Interchange Format (ATIF 1.x)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

ATIF_VERSION = "ATIF-v1.4"


class _Record(BaseModel):
    """Frozen; fields of later ATIF versions are kept as they are."""

    # Built on first use: most sessions write none, and every session imports this.
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)


class ToolCall(_Record):
    """One call of a tool; ``arguments`` are the tool's own."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class ObservationResult(_Record):
    """What one call gave back; ``source_call_id`` is the call's ``tool_call_id``."""

    source_call_id: str | None = None
    content: Any = None


class Observation(_Record):
    """What the agent saw after a step's calls."""

    results: tuple[ObservationResult, ...] = ()


class StepMetrics(_Record):
    """Tokens and US dollars of one step; None where unknown."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None


class Step(_Record):
    """One message of the conversation; ``step_id`` counts from 1, ``timestamp`` is ISO 8601."""

    step_id: int
    timestamp: str | None = None
    source: Literal["system", "user", "agent"]
    message: Any = ""
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    observation: Observation | None = None
    metrics: StepMetrics | None = None
    extra: dict[str, Any] | None = None


class AgentInfo(_Record):
    """Who acted."""

    name: str
    version: str
    model_name: str | None = None


class FinalMetrics(_Record):
    """Totals over all steps; None where unknown."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cost_usd: float | None = None


class Trajectory(_Record):
    """One round of one attempt."""

    schema_version: str = ATIF_VERSION
    session_id: str
    agent: AgentInfo
    steps: tuple[Step, ...] = Field(default_factory=tuple)
    final_metrics: FinalMetrics | None = None

    @property
    def tool_call_count(self) -> int:
        """The agent's tool calls, which is what Avg Rounds averages (EvoCode-Bench's leaderboard notes)."""
        return sum(len(step.tool_calls or ()) for step in self.steps if step.source == "agent")
