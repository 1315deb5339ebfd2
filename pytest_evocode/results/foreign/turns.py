"""Tool calls and usage of an agent's turns, read from the trajectories that others wrote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from pytest_evocode.results.records import Usage


@dataclass(frozen=True, slots=True)
class ForeignTurn:
    """What an agent did and used in one round; None is unknown."""

    tool_calls: int | None = None
    usage: Usage | None = None


def read_turn(trajectory_file: bytes | None, entry: Mapping[str, Any]) -> ForeignTurn:
    """Return the turn that a trajectory is of.

    Args:
        trajectory_file: What the trajectory's file holds; None where there is none.
        entry: The round's part of Harbor's ``result.json``; the agent's own token counts in it are preferred.
    """
    trajectory, steps = _parse(trajectory_file)
    context = entry.get("agent_result")
    usage = _usage(
        context if isinstance(context, dict) else {},
        ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd"),
    )
    if usage is None:
        final = trajectory.get("final_metrics")
        names = ("total_prompt_tokens", "total_cached_tokens", "total_completion_tokens", "total_cost_usd")
        usage = _usage(final if isinstance(final, dict) else {}, names)
    return ForeignTurn(None if steps is None else _tool_calls(steps), usage or _summed(steps or []))


def read_turns_by_round(trajectory_file: bytes | None) -> dict[int, ForeignTurn]:
    """Return the turns of a trajectory of a whole trial, by the numbers of the rounds that its steps name."""
    rounds: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for step in _parse(trajectory_file)[1] or ():
        extra = step.get("extra")
        number = extra.get("round") if isinstance(extra, dict) else None
        if isinstance(number, int):
            rounds[number].append(step)
    return {number: ForeignTurn(_tool_calls(steps), _summed(steps)) for number, steps in rounds.items()}


def _parse(trajectory_file: bytes | None) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
    """Return a trajectory and its steps, which may be all there is; without steps (None) where it is not one."""
    try:
        trajectory = from_json(trajectory_file) if trajectory_file is not None else None
    except ValueError:
        return {}, None
    steps = trajectory.get("steps", []) if isinstance(trajectory, dict) else trajectory
    if not isinstance(steps, list):
        return {}, None
    return trajectory if isinstance(trajectory, dict) else {}, [step for step in steps if isinstance(step, dict)]


def _tool_calls(steps: list[dict[str, Any]]) -> int:
    calls = (step.get("tool_calls") for step in steps if step.get("source") == "agent")
    return sum(len(each) if isinstance(each, list) else bool(each) for each in calls)


def _summed(steps: list[dict[str, Any]]) -> Usage | None:
    """Return the sum over the agent's steps; a number is unknown where a step with metrics does not have it."""
    names = ("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd")
    measured = [metrics for step in steps if isinstance(metrics := step.get("metrics"), dict)]
    if not measured:
        return None
    known = [name for name in names if all(_number(each, name) for each in measured)]
    usage = _usage({name: sum(each[name] for each in measured) for name in known}, names)
    return usage and usage.model_copy(update={"requests": len(measured)})


def _usage(values: Mapping[str, Any], names: tuple[str, str, str, str]) -> Usage | None:
    """Return prompt, cached and completion tokens and US dollars found by these names, or None where there are none."""
    found = [values[name] if _number(values, name) else None for name in names]
    if all(each is None for each in found):
        return None
    prompt, cached, completion, cost = found
    return Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion, cost_usd=cost)


def _number(values: Mapping[str, Any], name: str) -> bool:
    value = values.get(name)
    return isinstance(value, int | float) and not isinstance(value, bool)
