"""RigorBench's released scorer, as it is: it counts events. For comparison only; nothing else here uses it.

Its results are YAML files: ``task_id``, ``agent_name`` and ``phases`` whose ``actions`` have a ``type``. What has no
event gets a neutral value, so that an empty file scores 0.37 and one with nothing but a plan 0.525.
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

#: A harness by a part of the file's name, the first that fits, with the directory that its work is in.
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


def read_released(directory: Path) -> tuple[list[ReleasedResult], list[str]]:
    """The results in a directory, and what was left out with the reason.

    Raises UsageError where there is none, and where PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise UsageError(
            "RigorBench's result files are YAML; install its reader with: pip install 'pytest-evocode[rigorbench]'"
        ) from None
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
    """The means by harness; every pillar always has a value, so the coverage is 1."""
    by_harness: dict[str, list[ReleasedResult]] = {}
    for result in results:
        by_harness.setdefault(result.harness, []).append(result)
    summaries = {}
    for harness, found in sorted(by_harness.items()):
        values = mean_pillars(result.values for result in found)
        summaries[harness] = ProcessSummary(values, rigor_score(values), len(found), {}, None)
    return summaries


def harness_of(name: str) -> str:
    """Whose result a file is, by its name.

    >>> harness_of("agentrigor_task_1.yaml"), harness_of("react_task_1.yaml")
    ('rigor', 'baseline')
    """
    return next((harness for harness in HARNESSES if harness in name.lower()), BASELINE)


def _score(path: Path, data: Any) -> ReleasedResult:
    harness = harness_of(path.name)
    events = _events(data)
    task = str(data.get("task_id", ""))
    values = released_pillars(events, _assertion_density(_repository(path, task, harness)))
    return ReleasedResult(path, harness, task, values)


def _events(data: Any) -> Counter[str]:
    """How often each type of action occurs; raises ValueError for what is no result."""
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
    """The released formulas, over numbers of events by type.

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


def _repository(path: Path, task: str, harness: str) -> Path | None:
    """What the harness left of the task: ``tasks/<category>/<task>/repo_<harness>`` beside the results' directory."""
    name = HARNESSES.get(harness, f"repo_{BASELINE}")
    tasks = path.resolve().parent.parent / "tasks"
    places = sorted(tasks.glob(f"*/{task}/{name}")) if task and "/" not in task else []
    return next((place for place in places if place.is_dir()), None)


def _assertion_density(repository: Path | None) -> float:
    """Asserts a test in the ``test_*.py`` at the top, five being enough; 0.5 where there is nothing to count."""
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
    """All but ``assert True`` and what has ``is not`` in it."""
    if isinstance(test, ast.Constant):
        return test.value is not True
    return not (isinstance(test, ast.Compare) and any(isinstance(operator, ast.IsNot) for operator in test.ops))
