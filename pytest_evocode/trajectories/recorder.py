"""Records an agent's turn step by step, so that everything up to a crash is on disk."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.results.directory import now
from pytest_evocode.results.records import NO_USAGE, Usage, total_usage
from pytest_evocode.trajectories.atif import (
    AgentInfo,
    FinalMetrics,
    Observation,
    ObservationResult,
    Step,
    StepMetrics,
    ToolCall,
    Trajectory,
    actions_of,
)
from pytest_evocode.trajectories.workspace_changes import WorkspaceChanges

#: Writes are at least this many times their own duration apart, so that a long turn is not spent on writing.
_WRITES_APART = 20

#: What usage and ATIF's metrics both have.
_COUNTED = {"prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"}
#: What metrics have of single tokens.
_OF_TOKENS = {"prompt_token_ids", "completion_token_ids", "logprobs"}
#: What only usage has; metrics have it in their ``extra``.
_COUNTED_BESIDE = {"cache_write_tokens", "reasoning_tokens"}


@dataclass(frozen=True, slots=True)
class Action:
    """How a tool call ended: ``exit_code`` is the shell's, None where there is none; ``seconds`` is wall-clock time."""

    exit_code: int | None = None
    seconds: float = 0.0
    timed_out: bool = False


class Recorder:
    """Builds the trajectory of one round.

    Args:
        agent: Who acts.
        session_id: The attempt's, for the trajectory.
        spending: The attempt's account, which all recorded usage is charged to.
        change_source: The workspace, asked after every action for what it changed.
        write: Called with the trajectory so far, again and again.
        keep: Writes a file beside the trajectory, by a name, and returns its path from there.
    """

    def __init__(
        self,
        agent: AgentInfo,
        session_id: str,
        *,
        spending: AttemptSpending | None = None,
        change_source: WorkspaceChanges | None = None,
        write: Callable[[Trajectory], None] | None = None,
        keep: Callable[[str, bytes], str] | None = None,
    ) -> None:
        self.agent = agent
        """May be replaced by one with the model's name before the first step."""
        self.session_id = session_id
        self.spending = spending or AttemptSpending()
        self.charges = True
        """Whether what is recorded is charged; not where a gateway does that with each request."""
        self._change_source = change_source
        self._write = write
        self._keep = keep
        self._steps: list[Step] = []
        self._usages: list[Usage] = []
        self._lost: Usage | None = None
        self._next_write = 0.0
        self._writing = threading.Lock()
        self._late: threading.Timer | None = None
        self._begun = False
        self.remarks: dict[str, Any] = {}
        """Notes on the whole round, for the trajectory's ``extra.evocode``."""

    @property
    def usage(self) -> Usage | None:
        """Usage of all steps so far, and of what was lost; None where none has any."""
        return total_usage([self._lost, *self._usages])

    def lose(self, usage: Usage) -> None:
        """Count what an earlier session is known to have used in the turn, whose steps are lost.

        It is a lower bound, the first session has counted it for the run, and limits of the attempt leave it out: what
        killed the session is not the agent's doing.
        """
        self._lost = usage.model_copy(update={"at_least": True})
        shown = self._lost.model_dump(exclude_none=True)
        self._add("system", "An earlier session was killed in this turn, which begins again.", {"lost_usage": shown})

    def break_off(self, usage: Usage | None) -> None:
        """Take ``usage`` as what the turn so far has used at least, because its program was killed in the middle."""
        if usage is not None:
            self._lost, self._usages = usage.model_copy(update={"at_least": True}), []

    def ask_nothing(self) -> None:
        """Count zero for what no request was made for: without it a turn's usage is unknown, and not zero."""
        self._usages.append(NO_USAGE)

    def leave_out(self, *paths: str) -> None:
        """Do not count files as the agent's work, because they were given to it; paths are relative to the workdir."""
        if self._change_source is not None:
            self._change_source.leave_out(paths)

    def begin(self) -> None:
        """Look at the workspace before the agent does anything; the first step does so by itself."""
        if self._change_source is not None and not self._begun:
            self._begun = True
            self._change_source.begin()

    def end(self, *, timed_out: bool, stopped: str) -> None:
        """Note how the turn has ended, and what changed in the workspace after the last observed action."""
        if timed_out or stopped:
            self.remarks |= {"timed_out": timed_out, "stopped": stopped}
        if self._begun:
            self.remarks |= self._changes()

    def _changes(self) -> dict[str, Any]:
        """Return what has changed since the last look, with notes on it."""
        if self._change_source is None:
            return {}
        changes = self._change_source.changes()
        return ({"changes": changes} if changes else {}) | self._change_source.remarks()

    def say(self, source: Literal["system", "user"], message: str, extra: Mapping[str, Any] | None = None) -> None:
        """Add a message to the agent; ``extra`` goes under ``extra.evocode``."""
        self._add(source, message, extra)

    def reply(
        self,
        message: str,
        calls: Iterable[ToolCall] = (),
        *,
        reasoning: str | None = None,
        usage: Usage | None = None,
        model: str | None = None,
        extra: Mapping[str, Any] | None = None,
        tokens: Mapping[str, Any] | None = None,
        paid_before: bool = False,
    ) -> None:
        """Add a reply of the agent with its tool calls, and charge its usage.

        Args:
            message: Its text.
            calls: Its tool calls.
            reasoning: Its reasoning, as far as it is shown.
            usage: What it took; None where unknown.
            model: The model that answered, where the provider says.
            extra: Goes under ``extra.evocode``.
            tokens: What is known of single tokens, by the names of ATIF's metrics.
            paid_before: Whether an earlier session has paid for it and counted it for the run.
        """
        if self.charges:
            self.spending.charge(usage, paid_before=paid_before)
        metrics = None
        if usage is not None:
            self._usages.append(usage)
            metrics = _metrics(usage)
            if usage.cached_tokens is not None:
                extra = {"cached_tokens": usage.cached_tokens, **(extra or {})}
        self._add(
            "agent",
            message,
            extra,
            model_name=model if model and model != self.agent.model_name else None,
            reasoning_content=reasoning or None,
            tool_calls=tuple(calls) or None,
            metrics=(metrics or StepMetrics()).model_copy(update=dict(tokens)) if tokens else metrics,
            llm_call_count=usage.requests if usage is not None else None,
        )

    def pay(
        self, message: str, usage: Usage, extra: Mapping[str, Any] | None = None, *, paid_before: bool = False
    ) -> None:
        """Add a message to the agent that was paid for apart from its own replies, and charge that."""
        if self.charges:
            self.spending.charge(usage, turns=0, paid_before=paid_before)
        self._usages.append(usage)
        self._add("system", message, {**(extra or {}), "usage": usage.model_dump(exclude_none=True)})

    def observe(
        self, call_id: str, content: Any, action: Action | None = None, extra: Mapping[str, Any] | None = None
    ) -> None:
        """Add the result of a tool call, and what the call changed in the workspace.

        Args:
            call_id: The call's.
            content: Its result: text, or a list of parts.
            action: How it ended, where it ran something.
            extra: Goes into the record of the action.
        """
        at = self._last(lambda step: any(call.tool_call_id == call_id for call in step.tool_calls or ()))
        at = len(self._steps) - 1 if at is None else at
        step = self._steps[at]
        done: dict[str, Any] = {"tool_call_id": call_id}
        if action is not None:
            done |= {"exit_code": action.exit_code, "seconds": round(action.seconds, 3), "timed_out": action.timed_out}
        done |= {**self._changes(), **(extra or {})}
        ours = dict((step.extra or {}).get("evocode", {}))
        ours["actions"] = [*ours.get("actions", []), done]
        results = step.observation.results if step.observation else ()
        observation = Observation(results=(*results, ObservationResult(source_call_id=call_id, content=content)))
        self._steps[at] = step.model_copy(
            update={"observation": observation, "extra": {**(step.extra or {}), "evocode": ours}}
        )
        self._written()

    def exited(self, codes: Mapping[str, int]) -> None:
        """Add the exit codes of observed calls, by id, which became known only later."""
        for action in (action for step in self._steps for action in actions_of(step)):
            if (call_id := action["tool_call_id"]) in codes:
                action["exit_code"] = codes[call_id]
                self._written()

    def keep_image(self, media_type: str, data: bytes) -> str | None:
        """Keep an image beside the trajectory, and return its path for a part of a result; None where nothing is kept.

        One that is shown again is kept once.
        """
        if self._keep is None:
            return None
        name = f"{hashlib.sha256(data).hexdigest()[:16]}.{media_type.rpartition('/')[2]}"
        return self._keep(name, data)

    def _last(self, is_wanted: Callable[[Step], bool]) -> int | None:
        """Return the index of the last step that is wanted; None where none is."""
        return next((at for at in reversed(range(len(self._steps))) if is_wanted(self._steps[at])), None)

    @property
    def last_reply(self) -> int:
        """The place of the last reply, for :meth:`amend`; -1 where there is none."""
        at = self._last(lambda step: step.source == "agent")
        return -1 if at is None else at

    def amend(
        self,
        *,
        calls: Iterable[ToolCall] = (),
        usage: Usage | None = None,
        notes: Mapping[str, Any] | None = None,
        at: int | None = None,
    ) -> None:
        """Add tool calls, usage and notes to a reply, for what becomes known of it later.

        The usage is charged even where there is no reply yet. ``at`` is the reply's place; None for the last one.
        """
        if usage is not None:
            self._usages.append(usage)
            if self.charges:
                self.spending.charge(usage, turns=0)
        at = self.last_reply if at is None else at
        if at < 0:
            return
        step = self._steps[at]
        update: dict[str, Any] = {"tool_calls": (*(step.tool_calls or ()), *calls) or None}
        if usage is not None:
            whole = total_usage([_usage_of(step), usage]) or usage
            update |= {"metrics": _metrics(whole, step.metrics), "llm_call_count": whole.requests}
        if notes:
            extra = step.extra or {}
            update["extra"] = {**extra, "evocode": {**extra.get("evocode", {}), **notes}}
        self._steps[at] = step.model_copy(update=update)
        self._written()

    def settle(self, usage: Usage) -> None:
        """Set the usage of the whole turn so far in place of the steps' sum, and charge the difference."""
        if self.charges:
            self.spending.correct(total_usage(self._usages), usage)
        self._usages = [usage]
        self._written()

    def _add(
        self, source: Literal["system", "user", "agent"], message: str, extra: Mapping[str, Any] | None, **fields: Any
    ) -> None:
        self.begin()
        number = len(self._steps) + 1
        step = Step(step_id=number, timestamp=now(), source=source, message=message, extra=_ours(extra), **fields)
        self._steps.append(step)
        self._written()

    def _written(self) -> None:
        """Write now, or as soon as the last write is long enough ago: the next step may take hours."""
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
                # If writing fails now, so does the last write, whose error is reported.
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
        """Write nothing more, because the turn has ended."""
        with self._writing:
            late, self._late = self._late, None
        if late is not None:
            late.cancel()

    @property
    def empty(self) -> bool:
        """Whether nothing was recorded."""
        return not self._steps

    def trajectory(self) -> Trajectory:
        """Return the trajectory so far."""
        usage = self.usage or Usage()
        steps = tuple(self._steps)
        return Trajectory(
            session_id=self.session_id,
            agent=self.agent,
            steps=steps,
            final_metrics=FinalMetrics(
                **{f"total_{name}": getattr(usage, name) for name in _COUNTED}, total_steps=len(steps)
            ),
            # Tells readers that an action without changes changed nothing.
            extra=_ours({**({"watched": True} if self._begun else {}), **self.remarks}),
        )


def _metrics(usage: Usage, before: StepMetrics | None = None) -> StepMetrics:
    """Return the metrics of a step; what is known of its tokens stays as it was ``before``."""
    more = usage.model_dump(include=_COUNTED_BESIDE, exclude_none=True)
    tokens = before.model_dump(include=_OF_TOKENS) if before is not None else {}
    return StepMetrics(**usage.model_dump(include=_COUNTED), **tokens, extra=more or None)


def trajectory_usage(trajectory: Trajectory) -> Usage | None:
    """Return the total usage of a trajectory's steps; None where no step has any."""
    return total_usage(map(_usage_of, trajectory.steps))


def _usage_of(step: Step) -> Usage | None:
    if step.metrics is None:
        return None
    requests = 1 if step.llm_call_count is None else step.llm_call_count
    beside = {name: value for name, value in (step.metrics.extra or {}).items() if name in _COUNTED_BESIDE}
    return Usage(**step.metrics.model_dump(include=_COUNTED), **beside, requests=requests)


def with_remarks(trajectory: Trajectory, remarks: Mapping[str, Any]) -> Trajectory:
    """Return a trajectory that an agent wrote itself, with the notes on its round."""
    if not remarks:
        return trajectory
    extra = trajectory.extra or {}
    return trajectory.model_copy(update={"extra": {**extra, "evocode": {**extra.get("evocode", {}), **remarks}}})


def _ours(extra: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return {"evocode": dict(extra)} if extra else None
