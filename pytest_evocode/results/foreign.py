"""Reading of the trial directories that Harbor wrote, and of EvoCode-Bench's layout from before Harbor had steps.

They are counted as EvoCode-Bench's own scripts count: by the reward files, the totals of ``CASE_SUMMARY`` and the tool
calls in trajectories.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeGuard

import tomli
from pydantic_core import from_json

from pytest_evocode.errors import RecordFault, UnreadableCases, UsageError, VerifierFault
from pytest_evocode.names import TASK_FILE, natural_key
from pytest_evocode.results.cases import parse_case_lines
from pytest_evocode.results.plain_files import is_within, open_plain
from pytest_evocode.results.records import (
    AttemptRecord,
    Case,
    Mode,
    Outcome,
    RoundRecord,
    TaskFacts,
    Usage,
    Verdict,
    keys_by_round,
    texts_in,
)
from pytest_evocode.results.reports import CASE_FILES, parse_case_file
from pytest_evocode.results.rewards import REWARD_FILES, decide, trial_rewards
from pytest_evocode.tasks import find_tasks


def read_facts(path: Path) -> TaskFacts | None:
    """Return the facts in one task.toml, or None where it does not exist or is not TOML."""
    try:
        task = tomli.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    metadata = table_in(task.get("metadata"))
    names = tuple(str(step["name"]) for step in tables_in(task.get("steps")) if step.get("name"))
    if not names and isinstance(count := table_in(metadata.get("multiround")).get("num_rounds"), int):
        names = tuple(old_round_name(number) for number in range(1, count + 1))
    names = names or ("round-1",)
    steps = {str(step["name"]): step.get("min_reward") for step in tables_in(task.get("steps")) if step.get("name")}
    changes = {
        str(step.get("step")): _texts(step.get("change_types"))
        for step in tables_in(table_in(metadata.get("requirement_chain")).get("steps"))
    }
    return TaskFacts(
        rounds=names,
        change_types=tuple(changes.get(name, ()) for name in names),
        reward_key=key if isinstance(key := table_in(metadata.get("evocode")).get("reward_key"), str) else "",
        minimum_keys=keys_by_round(table_in(steps.get(name)) for name in names),
        reward_strategy="final" if task.get("multi_step_reward_strategy") == "final" else "mean",
        **texts_in(metadata),
    )


def old_round_name(number: int) -> str:
    """Return the name of a round in the layout from before Harbor had steps, where rounds have numbers only."""
    return f"round_{number}"


def read_task_directories(directory: Path) -> dict[str, TaskFacts]:
    """Return the facts about all tasks in a directory, by name; raises UsageError where there is no task."""
    if not directory.is_dir():
        raise UsageError(f"there is no directory {directory}")
    found = {
        name: facts
        for name, place in find_tasks(directory).items()
        if (facts := read_facts(place / TASK_FILE)) is not None
    }
    if not found:
        raise UsageError(f"{directory} is not a task and has none in it: there is no {TASK_FILE}")
    return found


class TaskLookup:
    """Finds facts about tasks by name: the given ones first, then those of a task.toml that results point to."""

    def __init__(self, given: Mapping[str, TaskFacts]) -> None:
        self._given = given
        self._read = cache(read_facts)

    def find(self, task: str, *directories: Path) -> TaskFacts | None:
        """Return the facts about a task that may lie in one of the directories, or None."""
        read = (self._read(directory / TASK_FILE) for directory in directories)
        return self._given.get(task) or next(filter(None, read), None)


def table_in(value: Any) -> dict[str, Any]:
    """Return a table, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def tables_in(value: Any) -> list[dict[str, Any]]:
    """Return the tables of a list, without anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(each for each in values if isinstance(each, str))


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
    known = [name for name in names if all(_has_number(each, name) for each in measured)]
    usage = _usage({name: sum(each[name] for each in measured) for name in known}, names)
    return usage and usage.model_copy(update={"requests": len(measured)})


def _usage(values: Mapping[str, Any], names: tuple[str, str, str, str]) -> Usage | None:
    """Return prompt, cached and completion tokens and US dollars found by these names, or None where there are none."""
    found = [values[name] if _has_number(values, name) else None for name in names]
    if all(each is None for each in found):
        return None
    prompt, cached, completion, cost = found
    return Usage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion, cost_usd=cost)


def _has_number(values: Mapping[str, Any], name: str) -> bool:
    value = values.get(name)
    return isinstance(value, int | float) and not isinstance(value, bool)


OLD_RESULTS = Path("verifier", "multiround_results.json")

_SUMMARY_LINE = re.compile(
    r"^CASE_SUMMARY total_cases=([0-9]{1,9}) success_count=([0-9]{1,9}) fail_count=[0-9]", re.MULTILINE
)
#: Harbor's names of exceptions, and what they are here; an API out of reach is not the agent's failure.
_TIMEOUTS: dict[str, Literal["agent", "verifier"]] = {"AgentTimeoutError": "agent", "VerifierTimeoutError": "verifier"}
_AGENTS_OWN = {
    "AgentTimeoutError",
    "NonZeroAgentExitCodeError",
    "OutputTokenExceededError",
    "ContextWindowExceededError",
    "AgentSafetyRefusalError",
}
_LARGEST_OUTPUT = 64 * 2**20


def is_trial(values: dict[str, Any]) -> bool:
    """Return whether a ``result.json``, or ``config.json`` in its place, is that of a trial and not of a job."""
    return "trial_name" in values and ("task_name" in values or isinstance(values.get("task"), dict))


@dataclass(frozen=True, slots=True)
class HarborTrial:
    """A trial directory of Harbor."""

    path: Path
    values: dict[str, Any]
    """Its ``result.json``, or ``config.json`` while there is no result."""
    problems: list[str] = field(default_factory=list)
    """A line for each file that is there and was not read, with the reason, for the reader of the results."""

    def read(self, path: Path, most: int = -1) -> bytes | None:
        """Return a file's first bytes, all of them by default; None where there is none, or where it is refused."""
        try:
            return self.read_or_refuse(path, most)
        except OSError as error:
            self.refuse(path, error)
            return None

    def refuse(self, path: Path, error: OSError) -> None:
        """Note that a file is not read."""
        self.problems.append(f"{path}: {error.strerror}; not read, and the trial counts without it")

    def read_or_refuse(self, path: Path, most: int = -1) -> bytes | None:
        """Return a file's first bytes, or None where there is none; raises OSError where it is not to be read."""
        try:
            with open_plain(path, within=self.path) as file:
                return file.read(most)
        except (FileNotFoundError, NotADirectoryError):
            return None

    @property
    def config(self) -> dict[str, Any]:
        """The configuration that the trial was run with."""
        return table_in(self.values.get("config")) or self.values

    @property
    def bench(self) -> tuple[Path, str] | None:
        """The task's directory and the agent, where the path has them: ``<task>/harbor_jobs/<agent>/...``."""
        parts = self.path.parts
        if "harbor_jobs" not in parts[1:-2]:
            return None
        where = parts.index("harbor_jobs", 1)
        return Path(*parts[:where]), parts[where + 1]

    @property
    def task(self) -> str:
        """The name of the task's directory."""
        if self.bench:
            return self.bench[0].name
        path = table_in(self.config.get("task")).get("path")
        name = path if isinstance(path, str) else self.values.get("task_name") or self.values["trial_name"]
        return str(name).rstrip("/").rpartition("/")[2]

    @property
    def agent(self) -> str:
        """The agent and its model, as Harbor's own statistics name them."""
        if self.bench:
            return self.bench[1]
        info, config = table_in(self.values.get("agent_info")), table_in(self.config.get("agent"))
        name = str(info.get("name") or config.get("name") or config.get("import_path") or "unknown")
        model = table_in(info.get("model_info")).get("name") or config.get("model_name")
        if not isinstance(model, str) or name in ("oracle", "nop"):
            return name
        return f"{name}__{model.rpartition('/')[2]}"

    @property
    def made_by(self) -> dict[str, Any]:
        """What made the agent, as far as the trial's result says: its name, version, model and settings."""
        info, config = table_in(self.values.get("agent_info")), table_in(self.config.get("agent"))
        if not info or info.get("name") in ("oracle", "nop"):
            return {}
        model = table_in(info.get("model_info"))
        names = [str(model[key]) for key in ("provider", "name") if isinstance(model.get(key), str)]
        parts = {
            "harness": {"name": str(info.get("name") or ""), "version": str(info.get("version") or "")},
            "model": "/".join(names),
            "options": table_in(config.get("kwargs")),
        }
        return {name: part for name, part in parts.items() if part}

    @property
    def directories(self) -> list[Path]:
        """The directories where the task may lie."""
        path = table_in(self.config.get("task")).get("path")
        found = [self.bench[0]] if self.bench else []
        return [*found, Path(path)] if isinstance(path, str) and Path(path).is_absolute() else found

    def window(self) -> tuple[int, int | None]:
        """Return the first and the last round that were run, from 1; None is the last round of the task."""
        verifier = table_in(self.config.get("verifier"))
        first = self.config.get("multi_step_start_step") or verifier.get("multiround_start_round")
        last = self.config.get("multi_step_end_step") or verifier.get("multiround_max_round")
        # A trial that continues another one has that one's records of the earlier rounds.
        if not isinstance(first, int) or verifier.get("multiround_resume_source"):
            first = 1
        return first, last if isinstance(last, int) else None


def read_trial(trial: HarborTrial, number: int, tasks: TaskLookup, *, cases: bool) -> AttemptRecord:
    """Return the record of a trial, which takes note of what is refused.

    A round that left nothing was not reached. Without a task.toml the rounds are those that the trial mentions.

    Args:
        trial: The trial.
        number: The number of the attempt, since Harbor's trials have none.
        tasks: Finds the task's facts.
        cases: Whether to read the cases, and not only their number.

    Raises:
        RecordFault: The trial's files are damaged.
    """
    facts = tasks.find(trial.task, *trial.directories)
    old = (trial.path / OLD_RESULTS).is_file()
    find = _old_rounds if old else _steps if (trial.path / "steps").is_dir() else _only_round
    names, read = find(trial)
    names = facts.rounds if facts else names
    first, last = trial.window()
    mode: Mode = "fail-stop" if old else "chain"
    if first == last and (facts is None or facts.declared > 1):
        mode = "single-round"
    known = facts or TaskFacts(rounds=names)
    records = tuple(
        _record(number, read(index, name), name, index, known, cases=cases)
        for index, name in enumerate(names, 1)
        if first <= index <= (last or len(names))
    )
    return AttemptRecord(
        task=trial.task,
        agent=trial.agent,
        attempt=number,
        mode=mode,
        from_round=names[first - 1] if 1 < first <= len(names) else None,
        environment=str(table_in(trial.config.get("environment")).get("type") or ""),
        task_hash=str(trial.values.get("task_checksum") or ""),
        made_by=trial.made_by,
        started=str(trial.values.get("started_at") or ""),
        finished=str(trial.values.get("finished_at") or ""),
        declared_rounds=names,
        facts=facts,
        rewards=trial_rewards(records, range(1, len(names) + 1), facts.reward_strategy if facts else "mean"),
        rounds=records,
    )


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What a trial has of one round: files, and a part of ``result.json``."""

    trial: HarborTrial
    verifier: Path
    """The directory of the verifier's files, or, where it ends with ``_``, the first part of their names."""
    entry: dict[str, Any]
    turn: ForeignTurn
    reached: bool
    rewards: dict[str, float] | None = None
    """The rewards, where a file of the whole trial has them."""

    def file(self, name: str) -> Path:
        """Return the path of one of the verifier's files."""
        verifier = self.verifier
        return verifier.parent / f"{verifier.name}{name}" if verifier.name.endswith("_") else verifier / name


_Rounds = tuple[tuple[str, ...], Callable[[int, str], _Evidence]]
"""The names of a trial's rounds as far as it tells them, and what reads a round by its index and name."""


def _steps(trial: HarborTrial) -> _Rounds:
    """Return the rounds of a multi-step trial that were begun, in order."""
    entries = tables_in(trial.values.get("step_results"))
    steps = trial.path / "steps"
    # A link is no directory of this trial.
    there = [each.name for each in steps.iterdir() if each.is_dir()] if is_within(steps, trial.path) else []
    names = dict.fromkeys([*(str(each.get("step_name")) for each in entries), *sorted(there, key=natural_key)])

    def read(_: int, name: str) -> _Evidence:
        step = steps / name
        entry = next((each for each in entries if each.get("step_name") == name), {})
        turn = read_turn(trial.read(step / "agent" / "trajectory.json"), entry)
        return _Evidence(trial, step / "verifier", entry, turn, reached=bool(entry) or step.is_dir())

    return tuple(names), read


def _only_round(trial: HarborTrial) -> _Rounds:
    """Return the single round of a trial of a task without steps; later ones, which it got since, were not reached."""
    path, values = trial.path, trial.values

    def read(index: int, _: str) -> _Evidence:
        if index > 1:
            return _Evidence(trial, path, {}, ForeignTurn(), reached=False)
        turn = read_turn(trial.read(path / "agent" / "trajectory.json"), values)
        return _Evidence(trial, path / "verifier", values, turn, reached=True)

    return ("round-1",), read


def _old_rounds(trial: HarborTrial) -> _Rounds:
    """Return the rounds, up to the last that was run, of the layout before steps: files are named by round numbers."""
    try:
        listed = from_json(trial.read_or_refuse(trial.path / OLD_RESULTS) or b"")
    except OSError as error:
        raise RecordFault(f"{OLD_RESULTS} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RecordFault(f"{OLD_RESULTS} is not JSON: {error}") from None
    if not isinstance(listed, list):
        raise RecordFault(f"{OLD_RESULTS} is JSON, but not a list")
    entries = {each["round"]: each for each in tables_in(listed) if isinstance(each.get("round"), int)}
    turns = read_turns_by_round(trial.read(trial.path / "agent" / "trajectory.json"))

    def read(index: int, _: str) -> _Evidence:
        entry = entries.get(index, {})
        reward = entry.get("reward")
        return _Evidence(
            trial,
            trial.path / "verifier" / f"{old_round_name(index)}_",
            entry,
            turns.get(index, ForeignTurn()),
            reached=bool(entry),
            rewards={"reward": float(reward)} if _is_number(reward) else None,
        )

    return tuple(map(old_round_name, range(1, max(entries, default=1) + 1))), read


def _record(
    number: int,
    evidence: _Evidence,
    name: str,
    index: int,
    facts: TaskFacts,
    *,
    cases: bool,
) -> RoundRecord:
    outcome, cause, verdict = _verdict(evidence, facts, index, cases=cases)
    exception = table_in(evidence.entry.get("exception_info"))
    if exception and verdict is None:
        cause = f"{exception.get('exception_type')}: {exception.get('exception_message')}"
    kind = str(exception.get("exception_type") or "")
    return RoundRecord(
        task=evidence.trial.task,
        agent=evidence.trial.agent,
        attempt=number,
        round=name,
        index=index,
        declared_rounds=facts.declared,
        outcome=outcome,
        cause="" if outcome == "passed" else cause,
        verdict=verdict,
        fault=None if outcome != "error" else "agent" if kind in _AGENTS_OWN else "infrastructure",
        timed_out=_TIMEOUTS.get(kind),
        tool_calls=evidence.turn.tool_calls,
        usage=evidence.turn.usage,
        agent_seconds=_seconds(evidence.entry.get("agent_execution")),
        verifier_seconds=_seconds(evidence.entry.get("verifier")),
    )


def _verdict(evidence: _Evidence, facts: TaskFacts, index: int, *, cases: bool) -> tuple[Outcome, str, Verdict | None]:
    """Return a round's outcome, the cause of an error, and the verdict where there is one."""
    if not evidence.reached:
        return "not reached", "the trial ended before it", None
    try:
        rewards = _rewards(evidence)
        if rewards is None:
            return "error", "there is no reward", None
        verdict = decide(rewards, facts.reward_key or None, facts.minimum(index))
    except VerifierFault as error:
        return "error", str(error), None
    found, counts, flags = _cases(evidence, wanted=cases)
    verdict = verdict.model_copy(update={"cases": found, "counts": counts, "flags": flags})
    return "passed" if verdict.passed else "failed", "", verdict


def _rewards(evidence: _Evidence) -> dict[str, float] | None:
    if evidence.rewards is not None:
        return evidence.rewards
    for name, parse in REWARD_FILES.items():
        try:
            data = evidence.trial.read_or_refuse(evidence.file(name), _LARGEST_OUTPUT)
        except OSError as error:
            evidence.trial.refuse(evidence.file(name), error)
            raise VerifierFault(f"{name} is not read: {error.strerror}") from None
        if data is not None:
            return parse(data.decode("utf-8", "replace"))
    rewards = table_in(table_in(evidence.entry.get("verifier_result")).get("rewards"))
    return {str(key): float(value) for key, value in rewards.items() if _is_number(value)} or None


def _is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value of JSON is a number that a float can hold."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _cases(evidence: _Evidence, *, wanted: bool) -> tuple[tuple[Case, ...], tuple[int, int] | None, tuple[str, ...]]:
    """Return the cases where they are wanted, the numbers of passed and of all cases, and flags.

    The suite's own totals decide. A suite that broke off before them has passed none, as EvoCode-Bench counts.
    """
    output = _text(evidence, "test-stdout.txt") or ""
    summary = _SUMMARY_LINE.search(output)
    if summary:
        return _cases_in(output) if wanted else (), (int(summary[2]), int(summary[1])), ()
    flags: tuple[str, ...] = ()
    for name in CASE_FILES:
        if (report := evidence.trial.read(evidence.file(name), _LARGEST_OUTPUT)) is not None:
            try:
                found, notes = parse_case_file(name, report)
            except (UnreadableCases, VerifierFault) as error:
                flags = (f"cases: {error}",)
                break
            passed = sum(case.status == "passed" for case in found)
            return found if wanted else (), (passed, len(found)), tuple(f"cases: {note}" for note in notes)
    found = _cases_in(output)
    return found if wanted else (), (0, len(found)), flags


def _cases_in(output: str) -> tuple[Case, ...]:
    """Return the cases of a suite's output; none where it is flooded with them."""
    try:
        return parse_case_lines(output)[0]
    except VerifierFault:
        return ()


def _text(evidence: _Evidence, name: str) -> str | None:
    """Return the text of one of the verifier's files, cut off at a size that no suite writes; None without one."""
    data = evidence.trial.read(evidence.file(name), _LARGEST_OUTPUT)
    return None if data is None else data.decode("utf-8", "replace")


def _seconds(timing: Any) -> float | None:
    """Return how many seconds a phase took, or None where it does not say when it began and ended."""
    begun, ended = (table_in(timing).get(key) for key in ("started_at", "finished_at"))
    try:
        return (datetime.fromisoformat(str(ended)) - datetime.fromisoformat(str(begun))).total_seconds()
    except (TypeError, ValueError):
        return None
