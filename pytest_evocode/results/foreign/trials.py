"""Reading of the trial directories that Harbor wrote, and of EvoCode-Bench's layout from before Harbor had steps.

They are counted as EvoCode-Bench's own scripts count: by the reward files, the totals of ``CASE_SUMMARY`` and the tool
calls in trajectories.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeGuard

from pytest_evocode.errors import RecordFault, UnreadableCases, VerifierFault
from pytest_evocode.names import natural_key
from pytest_evocode.results.cases import CASE_FILES, parse_case_file, parse_case_lines
from pytest_evocode.results.foreign.tasks import TaskLookup, old_round_name, table_in, tables_in
from pytest_evocode.results.foreign.trial_files import TrialFiles
from pytest_evocode.results.foreign.turns import ForeignTurn, read_turn, read_turns_by_round
from pytest_evocode.results.plain_files import is_within
from pytest_evocode.results.records import AttemptRecord, Case, Mode, Outcome, RoundRecord, Verdict
from pytest_evocode.results.rewards import REWARD_FILES, deciding_reward, trial_rewards, why_undecided
from pytest_evocode.results.task_facts import TaskFacts

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
    """A trial directory of Harbor; ``values`` is its ``result.json``, or ``config.json`` while there is no result."""

    path: Path
    values: dict[str, Any]

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


def read_trial(
    files: TrialFiles, values: dict[str, Any], number: int, tasks: TaskLookup, *, cases: bool
) -> AttemptRecord:
    """Return the record of a trial.

    A round that left nothing was not reached. Without a task.toml the rounds are those that the trial mentions.

    Args:
        files: The trial's files, which take note of what is refused.
        values: See :class:`HarborTrial`.
        number: The number of the attempt, since Harbor's trials have none.
        tasks: Finds the task's facts.
        cases: Whether to read the cases, and not only their number.

    Raises:
        RecordFault: The trial's files are damaged.
    """
    path = files.path
    trial = HarborTrial(path, values)
    facts = tasks.find(trial.task, *trial.directories)
    old = (path / OLD_RESULTS).is_file()
    is_of_steps = (path / "steps").is_dir()
    rounds = _OldRounds(trial, files) if old else _Steps(trial, files) if is_of_steps else _OnlyRound(trial, files)
    names = facts.rounds if facts else rounds.names()
    first, last = trial.window()
    mode: Mode = "fail-stop" if old else "chain"
    if first == last and (facts is None or facts.declared > 1):
        mode = "single-round"
    known = facts or TaskFacts(rounds=names)
    records = tuple(
        _record(trial, number, rounds.read(index, name), name, index, known, cases=cases)
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
        task_hash=str(values.get("task_checksum") or ""),
        made_by=trial.made_by,
        started=str(values.get("started_at") or ""),
        finished=str(values.get("finished_at") or ""),
        declared_rounds=names,
        facts=facts,
        rewards=trial_rewards(records, range(1, len(names) + 1), facts.reward_strategy if facts else "mean"),
        rounds=records,
    )


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What a trial has of one round: its files, and its part of ``result.json``."""

    files: TrialFiles
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


@dataclass(frozen=True, slots=True)
class _Steps:
    """The rounds of a multi-step trial."""

    trial: HarborTrial
    files: TrialFiles

    def names(self) -> tuple[str, ...]:
        """Return the names of the rounds that were begun, in order."""
        listed = [str(step.get("step_name")) for step in self._entries()]
        steps = self.trial.path / "steps"
        # A link is no directory of this trial.
        there = [each.name for each in steps.iterdir() if each.is_dir()] if is_within(steps, self.trial.path) else []
        return tuple(dict.fromkeys([*listed, *sorted(there, key=natural_key)]))

    def read(self, index: int, name: str) -> _Evidence:
        """Return what the trial has of a round."""
        step = self.trial.path / "steps" / name
        entry = next((each for each in self._entries() if each.get("step_name") == name), {})
        turn = read_turn(self.files.read(step / "agent" / "trajectory.json"), entry)
        return _Evidence(self.files, step / "verifier", entry, turn, reached=bool(entry) or step.is_dir())

    def _entries(self) -> list[dict[str, Any]]:
        return tables_in(self.trial.values.get("step_results"))


@dataclass(frozen=True, slots=True)
class _OnlyRound:
    """The single round of a trial of a task without steps."""

    trial: HarborTrial
    files: TrialFiles

    def names(self) -> tuple[str, ...]:
        """Return the name of the only round."""
        return ("round-1",)

    def read(self, index: int, name: str) -> _Evidence:
        """Return what the trial has of the first round; further ones, which the task got since, were not reached."""
        path, values = self.trial.path, self.trial.values
        if index > 1:
            return _Evidence(self.files, path, {}, ForeignTurn(), reached=False)
        turn = read_turn(self.files.read(path / "agent" / "trajectory.json"), values)
        return _Evidence(self.files, path / "verifier", values, turn, reached=True)


class _OldRounds:
    """The rounds of the layout before steps: ``verifier/multiround_results.json``, and files named by round numbers."""

    def __init__(self, trial: HarborTrial, files: TrialFiles) -> None:
        from pydantic_core import from_json

        self._files = files
        try:
            entries = from_json(files.read_or_refuse(trial.path / OLD_RESULTS) or b"")
        except OSError as error:
            raise RecordFault(f"{OLD_RESULTS} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise RecordFault(f"{OLD_RESULTS} is not JSON: {error}") from None
        if not isinstance(entries, list):
            raise RecordFault(f"{OLD_RESULTS} is JSON, but not a list")
        self._entries = {each["round"]: each for each in tables_in(entries) if isinstance(each.get("round"), int)}
        self._turns = read_turns_by_round(files.read(trial.path / "agent" / "trajectory.json"))

    def names(self) -> tuple[str, ...]:
        """Return the names of the rounds up to the last that was run."""
        return tuple(old_round_name(number) for number in range(1, max(self._entries, default=1) + 1))

    def read(self, index: int, name: str) -> _Evidence:
        """Return what the trial has of a round."""
        entry = self._entries.get(index, {})
        reward = entry.get("reward")
        return _Evidence(
            self._files,
            self._files.path / "verifier" / f"{old_round_name(index)}_",
            entry,
            self._turns.get(index, ForeignTurn()),
            reached=bool(entry),
            rewards={"reward": float(reward)} if _is_number(reward) else None,
        )


def _record(
    trial: HarborTrial,
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
        task=trial.task,
        agent=trial.agent,
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
        reward = deciding_reward(rewards, facts.reward_key or None, facts.minimum(index))
    except VerifierFault as error:
        return "error", str(error), None
    found, counts = _cases(evidence, wanted=cases)
    verdict = Verdict(reward=reward, rewards=rewards, cases=found, counts=counts)
    if reward is None:
        return "undecided", why_undecided(rewards), verdict
    return "passed" if verdict.passed else "failed", "", verdict


def _rewards(evidence: _Evidence) -> dict[str, float] | None:
    if evidence.rewards is not None:
        return evidence.rewards
    for name, parse in REWARD_FILES.items():
        try:
            data = evidence.files.read_or_refuse(evidence.file(name), _LARGEST_OUTPUT)
        except OSError as error:
            evidence.files.refuse(evidence.file(name), error)
            raise VerifierFault(f"{name} is not read: {error.strerror}") from None
        if data is not None:
            return parse(data.decode("utf-8", "replace"))
    rewards = table_in(table_in(evidence.entry.get("verifier_result")).get("rewards"))
    return {str(key): float(value) for key, value in rewards.items() if _is_number(value)} or None


def _is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value of JSON is a number that a float can hold."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _cases(evidence: _Evidence, *, wanted: bool) -> tuple[tuple[Case, ...], tuple[int, int] | None]:
    """Return the cases where they are wanted, and the numbers of passed and of all cases.

    The suite's own totals decide. A suite that broke off before them has passed none, as EvoCode-Bench counts.
    """
    output = _text(evidence, "test-stdout.txt") or ""
    summary = _SUMMARY_LINE.search(output)
    if summary:
        return _cases_in(output) if wanted else (), (int(summary[2]), int(summary[1]))
    for name in CASE_FILES:
        if (text := _text(evidence, name)) is not None:
            try:
                found = parse_case_file(name, text)
            except (UnreadableCases, VerifierFault):
                break
            passed = sum(case.status == "passed" for case in found)
            return found if wanted else (), (passed, len(found))
    found = _cases_in(output)
    return found if wanted else (), (0, len(found))


def _cases_in(output: str) -> tuple[Case, ...]:
    """Return the cases of a suite's output; none where it is flooded with them."""
    try:
        return parse_case_lines(output)[0]
    except VerifierFault:
        return ()


def _text(evidence: _Evidence, name: str) -> str | None:
    """Return the text of one of the verifier's files, cut off at a size that no suite writes; None without one."""
    data = evidence.files.read(evidence.file(name), _LARGEST_OUTPUT)
    return None if data is None else data.decode("utf-8", "replace")


def _seconds(timing: Any) -> float | None:
    """Return how many seconds a phase took, or None where it does not say when it began and ended."""
    begun, ended = (table_in(timing).get(key) for key in ("started_at", "finished_at"))
    try:
        return (datetime.fromisoformat(str(ended)) - datetime.fromisoformat(str(begun))).total_seconds()
    except (TypeError, ValueError):
        return None
