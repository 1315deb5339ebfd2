"""Score RigorBench's own result files as its released scorer does, for comparison; no other score uses this.

The results are YAML files: ``task_id``, ``agent_name`` and ``phases`` whose ``actions`` have a ``type``. The scorer
counts actions by type. A pillar without any gets a neutral value, so that an empty file scores 0.37 and one with
nothing but a plan 0.525.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_evocode.errors import UsageError
from pytest_evocode.process.scores.rigor_score import mean_pillars, rigor_score
from pytest_evocode.process.scores.summary import ProcessSummary

#: Harnesses by the first of these parts in the file's name, with the directory of their work.
HARNESSES: Mapping[str, str] = {
    "rigor": "repo_agentrigor",
    "superpower": "repo_superpowers",
    "skill": "repo_agentskills",
}
BASELINE = "baseline"
_NO_RESULTS = ("trajectory", "averages")
_MODIFYING = ("file_modified", "test_written", "plan_created")


@dataclass(frozen=True, slots=True)
class ReleasedResult:
    """One result file as the released scorer scores it."""

    path: Path
    harness: str
    task: str
    values: Mapping[str, float]
    has_work: bool = True
    """Whether the directory with the harness's work is there, which alone tells the density of assertions."""


def read_released(directory: Path) -> tuple[list[ReleasedResult], list[str]]:
    """Return the results in a directory, and the files that were left out with the reasons.

    Raises:
        UsageError: There is no result.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    results, left_out = [], []
    for path in sorted((*directory.glob("*.yaml"), *directory.glob("*.yml"))):
        if any(part in path.name for part in _NO_RESULTS):
            continue
        try:
            data = yaml.load(path.read_bytes(), loader)
            results.append(_score(path, data))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f"{path}:{mark.line + 1}" if mark is not None else str(path)
            left_out.append(f"{place}: not valid YAML: {getattr(error, 'problem', None) or 'it cannot be read'}")
        except (OSError, ValueError) as error:
            left_out.append(f"{path}: no result: {error}")
    if not results:
        reasons = "".join(f"\n{reason}" for reason in left_out[:3])
        raise UsageError(f"{directory}: no result file of RigorBench (*.yaml) in it{reasons}")
    return results, left_out


def summarise_released(results: list[ReleasedResult]) -> dict[str, ProcessSummary]:
    """Return the means by harness; every pillar always has a value, so the coverage is 1."""
    by_harness: dict[str, list[ReleasedResult]] = {}
    for result in results:
        by_harness.setdefault(result.harness, []).append(result)
    summaries = {}
    for harness, found in sorted(by_harness.items()):
        values = mean_pillars(result.values for result in found)
        summaries[harness] = ProcessSummary(values, rigor_score(values), len(found), {}, None)
    return summaries


def harness_of(name: str) -> str:
    """Return the harness of a result file, by the file's name.

    >>> harness_of("agentrigor_task_1.yaml"), harness_of("react_task_1.yaml")
    ('rigor', 'baseline')
    """
    return next((harness for harness in HARNESSES if harness in name.lower()), BASELINE)


def _score(path: Path, data: Any) -> ReleasedResult:
    harness = harness_of(path.name)
    events = _events(data)
    task = str(data.get("task_id", ""))
    repository = _repository(path, task, harness)
    values = released_pillars(events, _assertion_density(repository))
    return ReleasedResult(path, harness, task, values, repository is not None)


def _events(data: Any) -> Counter[str]:
    """Count the actions of each type; raises ValueError for data that is no result."""
    if not isinstance(data, dict) or "task_id" not in data:
        raise ValueError("it has no task_id")
    events: Counter[str] = Counter()
    for phase in _list_in(data, "phases"):
        for action in _list_in(phase, "actions"):
            if not isinstance(action, dict) or not isinstance(action.get("type"), str):
                raise ValueError("an action has no type")
            events[action["type"]] += 1
    return events


def _list_in(table: Any, key: str) -> list[Any]:
    found = table.get(key) if isinstance(table, dict) else table
    if found is not None and not isinstance(found, list):
        raise ValueError(f"{key} is no list")
    return found or []


def released_pillars(events: Mapping[str, int], assertion_density: float = 0.5) -> dict[str, float]:
    """Return the pillars by the released formulas, from the number of actions of each type.

    >>> released_pillars({})["re"], round(rigor_score(released_pillars({})).value, 3)
    (0.5, 0.37)
    """
    errors, read = events.get("error_encountered", 0), events.get("file_read", 0)
    modified = sum(events.get(name, 0) for name in _MODIFYING)
    return {
        "pf": 0.9 if events.get("plan_created") else 0.2,
        "vc": min(1.0, 0.25 * events.get("test_written", 0)),
        "re": min(1.0, events.get("recovery_attempted", 0) / errors) if errors else 0.5,
        "aq": 1.0 if events.get("abstention_declared") else 0.5,
        "ati": min(1.0, 0.4 + 0.2 * events.get("checkpoint_validated", 0)),
        "tad": assertion_density,
        "ee": modified / (read + modified) if read + modified else 0.5,
    }


def work_of(harness: str) -> str:
    """Return the name of the directory with the work of a harness at a task."""
    return HARNESSES.get(harness, f"repo_{BASELINE}")


def _repository(path: Path, task: str, harness: str) -> Path | None:
    """Return the directory with the harness's work: ``tasks/<category>/<task>/repo_<harness>`` beside the results."""
    name = work_of(harness)
    tasks = path.resolve().parent.parent / "tasks"
    places = sorted(tasks.glob(f"*/{task}/{name}")) if task and "/" not in task else []
    return next((place for place in places if place.is_dir()), None)


def _assertion_density(repository: Path | None) -> float:
    """Return the asserts for each test of the top-level ``test_*.py``, over five and at most 1; 0.5 without a test."""
    if repository is None:
        return 0.5
    asserts = functions = 0
    for path in sorted(repository.glob("test_*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                functions += 1
                asserts += sum(isinstance(inner, ast.Assert) and _counts(inner.test) for inner in ast.walk(node))
    return min(1.0, asserts / functions / 5) if functions else 0.5


def _counts(test: ast.expr) -> bool:
    """Return whether the released scorer counts an assert: all but ``assert True`` and those with ``is not``."""
    if isinstance(test, ast.Constant):
        return test.value is not True
    return not (isinstance(test, ast.Compare) and any(isinstance(operator, ast.IsNot) for operator in test.ops))
