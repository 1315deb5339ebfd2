"""Results as Harbor's programs read them: an attempt as its ``TrialResult``, a run's attempts at a task as a job.

What Harbor has no word for is left out: a round that was not reached, and when a round's phases began. No path of the
machine is in it, so that a results directory can be moved.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pytest_evocode.errors import RecordFault
from pytest_evocode.results.parsing import parse_object, read_record
from pytest_evocode.results.plain_files import open_plain
from pytest_evocode.results.records import AttemptRecord, RoundRecord, RunRecord, Usage
from pytest_evocode.tasks.atomic_write import write_atomically

_UNKNOWN = "unknown"
_ENGINES = ("docker",)
"""Our environments that Harbor has by the same name; of others it is told the module."""
_DATASET = "adhoc"  # What Harbor calls trials of tasks that are in no data set.


def trial_fields(record: AttemptRecord, directory: Path) -> dict[str, Any]:
    """Return what an attempt's ``result.json`` has for Harbor: the fields of its ``TrialResult``, ready for JSON.

    Args:
        record: The attempt.
        directory: Its directory in the results.
    """
    job, trial = Path(*directory.parts[-5:-1]).as_posix(), directory.name
    agent = _agent(record)
    played = [each for each in record.rounds if each.outcome != "not reached"]
    exceptions = [found for each in played if (found := _exception(each, record.finished)) is not None]
    return {
        "id": _id(record.agent, job, trial, record.started),
        "task_name": record.task,
        "trial_name": trial,
        "trial_uri": f"{job}/{trial}",
        "task_id": {"path": record.task},
        "task_checksum": record.task_hash,
        "config": {
            "task": {"path": record.task},
            "trial_name": trial,
            "trials_dir": job,
            "agent": agent,
            "environment": _environment(record.environment),
        },
        "agent_info": _agent_info(record, agent),
        "verifier_result": _rewards(record.rewards),
        "exception_info": exceptions[0] if exceptions else None,
        "started_at": record.started or None,
        "finished_at": record.finished or None,
        "step_results": [_step(each, record.finished) for each in played],
    }


def _id(*parts: str) -> str:
    """Return the same UUID for the same parts, so that a file that is written again stays what it is."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "\0".join(parts)))


def _agent(record: AttemptRecord) -> dict[str, Any]:
    """Return the agent as in Harbor's configuration."""
    model = _model(record.made_by)
    options = record.made_by.get("options")
    return {
        "name": record.agent,
        "model_name": model or None,
        "kwargs": dict(options) if isinstance(options, Mapping) else {},
    }


def _model(made_by: Mapping[str, Any]) -> str:
    """Return the model, with its provider in front where that is known; empty for agents that are none.

    >>> _model({"spec": "openai/gpt-5"}), _model({"spec": "codex:gpt-5", "harness": {"name": "codex"}}), _model({})
    ('openai/gpt-5', 'gpt-5', '')
    """
    spec, harness = str(made_by.get("spec") or ""), made_by.get("harness")
    name, _, model = spec.partition(":")
    if isinstance(harness, Mapping) and harness.get("name") == name:
        return model
    return spec if "/" in name else ""


def _agent_info(record: AttemptRecord, agent: Mapping[str, Any]) -> dict[str, Any]:
    harness = record.made_by.get("harness")
    version = harness.get("version") if isinstance(harness, Mapping) else None
    provider, slash, name = (agent["model_name"] or "").rpartition("/")
    return {
        "name": record.agent,
        "version": str(version) if version else _UNKNOWN,
        "model_info": {"name": name, "provider": provider if slash else None} if name else None,
    }


def _environment(name: str) -> dict[str, Any]:
    return {"type": name} if name in _ENGINES else {"import_path": f"pytest_evocode.environments:{name or _UNKNOWN}"}


def _rewards(rewards: Mapping[str, float]) -> dict[str, Any] | None:
    return {"rewards": dict(rewards)} if rewards else None


def _step(record: RoundRecord, moment: str) -> dict[str, Any]:
    return {
        "step_name": record.round,
        "agent_result": _used(record.usage),
        "verifier_result": _rewards(record.verdict.rewards) if record.verdict is not None else None,
        "exception_info": _exception(record, moment),
    }


def _used(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "n_input_tokens": usage.prompt_tokens,
        "n_cache_tokens": usage.cached_tokens,
        "n_output_tokens": usage.completion_tokens,
        "cost_usd": usage.cost_usd,
    }


def _exception(record: RoundRecord, moment: str) -> dict[str, Any] | None:
    """Return what ended a round or its turn, by Harbor's names where it has one; None where it went to its end."""
    if record.timed_out is not None:
        kind = "AgentTimeoutError" if record.timed_out == "agent" else "VerifierTimeoutError"
    elif record.outcome == "error":
        kind = "AgentError" if record.fault == "agent" else "InfrastructureError"
    else:
        return None
    return {
        "exception_type": kind,
        "exception_message": record.cause,
        "exception_traceback": "",
        "occurred_at": moment,
    }


def write_jobs(results: Path, run: RunRecord) -> None:
    """Write ``result.json`` and ``config.json`` beside the attempts of a run, for each task and agent.

    What an attempt left that is damaged or not there counts as not ended. Raises OSError.
    """
    for task, agents in run.selected.items():
        for agent, numbers in agents.items():
            directory = results / task / "harbor_jobs" / agent / run.run
            if directory.is_dir():
                _write_job(directory, task, run, numbers)


def write_job_of(attempt: Path) -> None:
    """Write the same files beside one attempt, after it was changed; not where its run has no record."""
    results, run = attempt.parents[4], attempt.parents[0].name
    try:
        with open_plain(results / "runs" / f"{run}.json") as file:
            record = read_record(RunRecord, parse_object(file.read()))
    except (OSError, RecordFault):
        return
    task, agent = attempt.parents[3].name, attempt.parents[1].name
    _write_job(attempt.parent, task, record, record.numbers(task, agent))


def _write_job(directory: Path, task: str, run: RunRecord, numbers: Sequence[int]) -> None:
    trials = [found for name in sorted(os.listdir(directory)) if (found := _trial(directory / name)) is not None]
    if not trials:
        return  # Nothing that Harbor reads: attempts under way, or of versions that wrote nothing for it.
    job = Path(*directory.parts[-4:])
    config = {
        "job_name": run.run,
        "jobs_dir": job.parent.as_posix(),
        "n_attempts": max(1, len(numbers)),
        "agents": [trial["config"]["agent"] for trial in trials[:1]],
        "environment": _environment(run.environment),
        "tasks": [{"path": task}],
    }
    begun, ended = ([str(trial[key]) for trial in trials if trial.get(key)] for key in ("started_at", "finished_at"))
    started = run.started or min(begun, default="")
    result = {
        "id": _id(job.as_posix(), started),
        "started_at": started,
        "updated_at": run.finished or max(ended, default=started),
        "finished_at": run.finished,
        "n_total_trials": max(len(numbers), len(trials)),
        "stats": _stats(trials, max(len(numbers), len(trials))),
    }
    for name, values in (("config.json", config), ("result.json", result)):
        write_atomically(directory / name, json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def _trial(directory: Path) -> dict[str, Any] | None:
    """Return what an attempt's ``result.json`` has for Harbor; None where that is not what its record comes to.

    So it is of attempts that have not ended, of versions that wrote nothing for Harbor, and where somebody edited it.
    """
    try:
        with open_plain(directory / "result.json", within=directory) as file:
            values = parse_object(file.read())
        record = read_record(AttemptRecord, dict(values), cases=False)
    except (OSError, RecordFault):
        return None
    found = trial_fields(record, directory)
    # Without the names of its places, which a merge changes.
    places = ("id", "trial_uri", "config")
    config = values.get("config")
    is_same = isinstance(config, dict) and config.get("agent") == found["config"]["agent"]
    return found if is_same and all(values.get(key) == found[key] for key in found if key not in places) else None


def _stats(trials: Sequence[Mapping[str, Any]], of: int) -> dict[str, Any]:
    """Return the counts and means of a job, as Harbor makes them of its trials."""
    steps = [step.get("agent_result") or {} for trial in trials for step in trial["step_results"]]
    by_agent: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for trial in trials:
        model = (trial["agent_info"].get("model_info") or {}).get("name")
        by_agent["__".join(filter(None, (trial["agent_info"]["name"], model, _DATASET)))].append(trial)
    return {
        "n_completed_trials": len(trials),
        "n_errored_trials": sum(trial["exception_info"] is not None for trial in trials),
        "n_pending_trials": of - len(trials),
        "evals": {name: _evaluation(found) for name, found in by_agent.items()},
        **{key: _sum(step.get(key) for step in steps) for key in _USED},
    }


_USED = ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "cost_usd")


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _evaluation(trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rewards = [(trial["trial_name"], (trial["verifier_result"] or {}).get("rewards")) for trial in trials]
    stats: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    exceptions: dict[str, list[str]] = defaultdict(list)
    for name, found in rewards:
        for key, value in (found or {}).items():
            stats[key][str(value)].append(name)
    for trial in trials:
        if trial["exception_info"] is not None:
            exceptions[trial["exception_info"]["exception_type"]].append(trial["trial_name"])
    return {
        "n_trials": sum(found is not None for _, found in rewards),
        "n_errors": sum(map(len, exceptions.values())),
        "metrics": [_means([found or {} for _, found in rewards])],
        "reward_stats": stats,
        "exception_stats": exceptions,
    }


def _means(rewards: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return Harbor's metric ``mean``: by key where there are several, and a trial without one counts 0.

    >>> _means([{"reward": 1.0}, {}]), _means([{"tests": 1.0, "style": 0.5}, {}])
    ({'mean': 0.5}, {'style': 0.25, 'tests': 0.5})
    """
    keys = sorted({key for found in rewards for key in found})
    if len(keys) < 2:
        return {"mean": fmean(next(iter(found.values()), 0.0) for found in rewards)}
    return {key: fmean(found.get(key, 0.0) for found in rewards) for key in keys}
