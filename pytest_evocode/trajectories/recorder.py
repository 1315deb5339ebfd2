"""Takes an agent's turn down, step by step, so that what happened is on disk whenever the turn is broken off."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.results.directory import now
from pytest_evocode.results.records import Usage, total_usage
from pytest_evocode.trajectories.atif import (
    AgentInfo,
    FinalMetrics,
    Observation,
    ObservationResult,
    Step,
    StepMetrics,
    ToolCall,
    Trajectory,
)

#: So many times as long as a write takes, the next one waits: a long turn is not spent on writing.
_WRITES_APART = 20


@dataclass(frozen=True, slots=True)
class Action:
    """How a tool call ended: ``exit_code`` as the shell has it, None where there is none; ``seconds`` wall clock."""

    exit_code: int | None = None
    seconds: float = 0.0
    timed_out: bool = False


class ChangeSource(Protocol):
    """What changes while the agent works."""

    def begin(self) -> None:
        """See what there is before the agent does anything."""

    def changes(self) -> list[dict[str, Any]]:
        """What has changed since the last call, a table per file."""

    def remarks(self) -> dict[str, Any]:
        """What else is to be recorded of the action that the last :meth:`changes` was about."""

    def leave_out(self, paths: Iterable[str]) -> None:
        """Pass over files and directories, by paths relative to the working directory."""


class Recorder:
    """One round's trajectory, as it comes to be.

    ``write`` gets it again and again, and once more when the turn has ended; ``watched`` is looked at after every
    action. Usage is charged to ``spending``, so an agent that records has its budget held.
    """

    def __init__(
        self,
        agent: AgentInfo,
        session_id: str,
        *,
        spending: AttemptSpending | None = None,
        watched: ChangeSource | None = None,
        write: Callable[[Trajectory], None] | None = None,
    ) -> None:
        self.agent = agent
        """May be set to one that knows the model, before the first step."""
        self.session_id = session_id
        self.spending = spending or AttemptSpending()
        self._watched = watched
        self._write = write
        self._steps: list[Step] = []
        self._usages: list[Usage] = []
        self._next_write = 0.0
        self._writing = threading.Lock()
        self._late: threading.Timer | None = None
        self._begun = False
        self.remarks: dict[str, Any] = {}
        """What there is to be said of the whole round, for the trajectory's ``extra.evocode``."""

    @property
    def usage(self) -> Usage | None:
        """Of all steps so far; None where no step has any."""
        return total_usage(self._usages)

    @property
    def turns(self) -> int:
        """The agent's steps so far."""
        return sum(step.source == "agent" for step in self._steps)

    def leave_out(self, *paths: str) -> None:
        """Have files, by paths relative to the working directory, not taken for the agent's work: what it is given."""
        if self._watched is not None:
            self._watched.leave_out(paths)

    def begin(self) -> None:
        """See what there is in the workspace; comes by itself with the first step."""
        if self._watched is not None and not self._begun:
            self._begun = True
            self._watched.begin()

    def end(self, *, timed_out: bool, stopped: str) -> None:
        """Note how the turn has ended, and what has changed in the workspace by no action that was observed."""
        if timed_out or stopped:
            self.remarks |= {"timed_out": timed_out, "stopped": stopped}
        if self._watched is not None and self._begun:
            if changes := self._watched.changes():
                self.remarks["changes"] = changes
            self.remarks |= self._watched.remarks()

    def say(self, source: Literal["system", "user"], message: str, extra: Mapping[str, Any] | None = None) -> None:
        """Add what the agent was told."""
        self._add(
            Step(step_id=len(self._steps) + 1, timestamp=now(), source=source, message=message, extra=_ours(extra))
        )

    def reply(
        self,
        message: str,
        calls: Iterable[ToolCall] = (),
        *,
        reasoning: str | None = None,
        usage: Usage | None = None,
        extra: Mapping[str, Any] | None = None,
        paid_before: bool = False,
    ) -> None:
        """Add what the agent said and calls, and charge what it cost. ``extra`` goes under ``extra.evocode``."""
        self.spending.charge(usage, paid_before=paid_before)
        metrics = None
        if usage is not None:
            self._usages.append(usage)
            metrics = _metrics(usage)
            if usage.cached_tokens is not None:
                extra = {"cached_tokens": usage.cached_tokens, **(extra or {})}
        self._add(
            Step(
                step_id=len(self._steps) + 1,
                timestamp=now(),
                source="agent",
                message=message,
                reasoning_content=reasoning or None,
                tool_calls=tuple(calls) or None,
                metrics=metrics,
                llm_call_count=usage.requests if usage is not None else None,
                extra=_ours(extra),
            )
        )

    def observe(
        self, call_id: str, content: Any, action: Action | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        """Add what a call gave back, and what it changed in the workspace.

        ``extra`` goes into the table of the action.
        """
        at = self._calling(call_id)
        step = self._steps[at]
        done: dict[str, Any] = {"tool_call_id": call_id}
        if action is not None:
            done |= {"exit_code": action.exit_code, "seconds": round(action.seconds, 3), "timed_out": action.timed_out}
        if self._watched is not None:
            if changes := self._watched.changes():
                done["changes"] = changes
            done |= self._watched.remarks()
        done |= extra or {}
        ours = dict((step.extra or {}).get("evocode", {}))
        ours["actions"] = [*ours.get("actions", []), done]
        results = step.observation.results if step.observation else ()
        observation = Observation(results=(*results, ObservationResult(source_call_id=call_id, content=content)))
        self._steps[at] = step.model_copy(
            update={"observation": observation, "extra": {**(step.extra or {}), "evocode": ours}}
        )
        self._written()

    def _calling(self, call_id: str) -> int:
        """The step with a call, the last where none has it."""
        for at in range(len(self._steps) - 1, -1, -1):
            if any(call.tool_call_id == call_id for call in self._steps[at].tool_calls or ()):
                return at
        return len(self._steps) - 1

    def amend(self, *, calls: Iterable[ToolCall] = (), usage: Usage | None = None) -> None:
        """Add to the last reply what becomes known of it later: what it calls besides, and what it cost.

        What was paid counts as well where there is no reply.
        """
        if usage is not None:
            self._usages.append(usage)
            self.spending.charge(usage, turns=0)
        at = next((at for at in range(len(self._steps) - 1, -1, -1) if self._steps[at].source == "agent"), None)
        if at is None:
            return
        step = self._steps[at]
        update: dict[str, Any] = {"tool_calls": (*(step.tool_calls or ()), *calls) or None}
        if usage is not None:
            whole = total_usage([_usage_of(step), usage]) or usage
            update |= {"metrics": _metrics(whole), "llm_call_count": whole.requests}
        self._steps[at] = step.model_copy(update=update)
        self._written()

    def settle(self, usage: Usage) -> None:
        """Put what the turn has taken so far, all told, in place of what its steps say, and charge the difference."""
        self.spending.correct(self.usage, usage)
        self._usages = [usage]
        self._written()

    def _add(self, step: Step) -> None:
        self.begin()
        self._steps.append(step)
        self._written()

    def _written(self) -> None:
        """Have it written now, or as soon as the last write is long enough ago: a step may be the last for hours."""
        if self._write is None:
            return
        with self._writing:
            wait = self._next_write - time.monotonic()
            if wait <= 0:
                self._write_now()
            elif self._late is None:
                self._late = threading.Timer(wait, self._write_late)
                self._late.daemon = True
                self._late.start()

    def _write_late(self) -> None:
        with self._writing:
            if self._late is threading.current_thread():
                # What keeps it from being written now keeps the last write from it as well, and that one is told of.
                with contextlib.suppress(Exception):
                    self._write_now()
                self._late = None

    def _write_now(self) -> None:
        assert self._write is not None
        began = time.monotonic()
        self._write(self.trajectory())
        ended = time.monotonic()
        self._next_write = ended + _WRITES_APART * (ended - began)

    def close(self) -> None:
        """Write nothing more: the turn has ended."""
        with self._writing:
            late, self._late = self._late, None
        if late is not None:
            late.cancel()

    @property
    def empty(self) -> bool:
        """Whether nothing was recorded."""
        return not self._steps

    def trajectory(self) -> Trajectory:
        """What there is of it."""
        usage = self.usage or Usage()
        steps = tuple(self._steps)
        return Trajectory(
            session_id=self.session_id,
            agent=self.agent,
            steps=steps,
            final_metrics=FinalMetrics(
                total_prompt_tokens=usage.prompt_tokens,
                total_completion_tokens=usage.completion_tokens,
                total_cached_tokens=usage.cached_tokens,
                total_cost_usd=usage.cost_usd,
                total_steps=len(steps),
            ),
            # Whoever reads it has to know whether an action without changes is one that changed nothing.
            extra=_ours({**({"watched": True} if self._begun else {}), **self.remarks}),
        )


def _metrics(usage: Usage) -> StepMetrics:
    return StepMetrics(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=usage.cached_tokens,
        cost_usd=usage.cost_usd,
    )


def trajectory_usage(trajectory: Trajectory) -> Usage | None:
    """What a trajectory says that its steps took; None where it says nothing."""
    return total_usage(map(_usage_of, trajectory.steps))


def _usage_of(step: Step) -> Usage | None:
    if step.metrics is None:
        return None
    return Usage(
        prompt_tokens=step.metrics.prompt_tokens,
        cached_tokens=step.metrics.cached_tokens,
        completion_tokens=step.metrics.completion_tokens,
        cost_usd=step.metrics.cost_usd,
        requests=1 if step.llm_call_count is None else step.llm_call_count,
    )


def with_remarks(trajectory: Trajectory, remarks: Mapping[str, Any]) -> Trajectory:
    """A trajectory that an agent gives, with what was noted of its round."""
    if not remarks:
        return trajectory
    extra = trajectory.extra or {}
    return trajectory.model_copy(update={"extra": {**extra, "evocode": {**extra.get("evocode", {}), **remarks}}})


def _ours(extra: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {"evocode": dict(extra)} if extra else None
