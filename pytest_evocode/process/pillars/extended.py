"""RigorBench's extended metrics, which are not part of the RigorScore."""

from __future__ import annotations

import ast
import math
import posixpath
import sys
from collections.abc import Mapping, Sequence

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.pillars.abstention import abstention
from pytest_evocode.process.pillars.recovery import as_claimed
from pytest_evocode.process.protocols import ExecutedMeasures
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRole, FileRoles
from pytest_evocode.process.trajectory.file_texts import hunks_between
from pytest_evocode.process.trajectory.normal_forms import Function, imported_by, names_used, tree_of
from pytest_evocode.results.records import Case
from pytest_evocode.tasks import Abstention


def extended(
    activity: RoundActivity,
    roles: FileRoles,
    kind: Abstention | None,
    cases: Sequence[Case],
    executed: ExecutedMeasures,
) -> dict[str, Measure]:
    """Return all extended metrics of a round."""
    return {
        "RR": _regression_resilience(activity),
        "DCA": _dead_code_avoidance(activity, roles),
        "DM": _diff_minimality(activity, roles, executed.reference_lines),
        "CGR": executed.grounding or _grounding(activity, roles),
        "SC": _specification_coverage(cases),
        "CBS": _clarification(activity, kind),
    }


def _regression_resilience(activity: RoundActivity) -> Measure:
    """Return the share of test runs in which nothing fails that passed in an earlier run."""
    last: dict[str, bool] = {}
    known: dict[str, bool] = {}
    runs = [run for run in activity.runs if run.purpose == "test" and run.passed is not None]
    if len(runs) < 2:
        return not_measured(f"{len(runs)} test runs")
    evidence = []
    for run in runs:
        broken = [name for name, passed in run.tests.items() if not passed and known.get(name)]
        turned = last.get(run.key) is True and not run.passed and run.failure in (None, "product")
        if broken or turned:
            evidence.append(run.evidence(f"failed, and passed before: {', '.join(broken) or run.key}"))
        known.update(run.tests)
        last[run.key] = bool(run.passed)
    value = 1 - len(evidence) / len(runs)
    reason = f"{len(evidence)} of {len(runs)} test runs with a regression"
    return as_claimed(measured(value, reason, tuple(evidence)), runs)


def changed_python_files(activity: RoundActivity, roles: FileRoles, *wanted: FileRole) -> dict[str, str]:
    """Return the changed Python files of the wanted roles, by path in order, as they are at the end of the round."""
    return {
        path: text
        for path, text in sorted(activity.after.items())
        if text is not None and path.endswith(".py") and roles.of(path, text) in wanted
    }


def _dead_code_avoidance(activity: RoundActivity, roles: FileRoles) -> Measure:
    """Return the share of the names added to Python modules that something uses."""
    modules = [text for path, text in activity.workspace.items() if path.endswith(".py")]
    used = names_used(modules)
    added: list[tuple[str, str]] = []
    for path, after in changed_python_files(activity, roles, "source").items():
        fresh = _added_names(after) - _added_names(activity.before[path] or "")
        added += [(path, name) for name in sorted(fresh)]
    if not added:
        return not_measured("no name was added to a Python module")
    dead = [(path, name) for path, name in added if name not in used]
    evidence = tuple(Evidence(what="is not used anywhere", quote=f"{path}: {name}") for path, name in dead)
    return measured(1 - len(dead) / len(added), f"{len(dead)} of {len(added)} added names are not used", evidence)


def _added_names(text: str) -> set[str]:
    names: set[str] = set()
    for node in tree_of(text).body:
        names |= {name for module, _, name in imported_by(node) if module != "__future__"}
        if isinstance(node, Function | ast.ClassDef):
            if not node.decorator_list:  # A decorator may have registered it.
                names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in names if not (name.startswith("__") and name.endswith("__")) and name not in ("main", "*")}


def changed_lines(before: Mapping[str, str | None], after: Mapping[str, str | None], roles: FileRoles) -> int:
    """Count the lines of the product's source that were added or removed between two states of some files."""
    return sum(
        len(hunk.added) + len(hunk.removed)
        for path in before.keys() | after.keys()
        if roles.of(path, after.get(path) or before.get(path)) == "source"
        for hunk in hunks_between(before.get(path) or "", after.get(path) or "")
    )


def _diff_minimality(activity: RoundActivity, roles: FileRoles, reference: int | None) -> Measure:
    """Return 1 / (1 + ln(1 + n)), n being the changed lines in excess of those that the reference changes."""
    if reference is None:
        return not_measured("what the reference solution changes is known only when it is executed")
    if any(roles.of(path) == "source" for path in activity.lost):
        return not_measured("what was changed was not recorded in full")
    lines = changed_lines(activity.before, activity.after, roles)
    value = 1 / (1 + math.log1p(max(0, lines - reference)))
    return measured(value, f"{lines} changed lines, {reference} in the reference solution", certainty="executed")


def imports_of(activity: RoundActivity, roles: FileRoles) -> dict[str, str]:
    """Return the top-level modules that changed Python files import, each with a file that imports it."""
    found: dict[str, str] = {}
    for path, text in changed_python_files(activity, roles, "source", "tests").items():
        for node in ast.walk(tree_of(text)):
            modules = (module.partition(".")[0] for module, _, _ in imported_by(node))
            found.update({module: path for module in modules if module})
    return found


def _grounding(activity: RoundActivity, roles: FileRoles) -> Measure:
    """Measure grounding without an environment: the modules of Python and of the workspace are known to exist."""
    imports = imports_of(activity, roles)
    if not imports:
        return not_measured("nothing is imported in a Python file that was changed")
    stems = {part for path in activity.workspace for part in posixpath.splitext(path)[0].split("/")}
    unknown = sorted(set(imports) - set(sys.stdlib_module_names) - stems)
    if unknown:
        return not_measured(f"whether the environment has {', '.join(unknown)} is known only when it is executed")
    return measured(1.0, f"{len(imports)} imports, all of Python or of the workspace")


def _specification_coverage(cases: Sequence[Case]) -> Measure:
    """Return the mean over requirements of the share of their cases that passed."""
    by_requirement: dict[str, list[bool]] = {}
    for case in cases:
        if case.requirement:
            by_requirement.setdefault(case.requirement, []).append(case.status == "passed")
    if not by_requirement:
        return not_measured("the suite's cases name no requirement")
    shares = {name: sum(passed) / len(passed) for name, passed in by_requirement.items()}
    missed = {name: share for name, share in shares.items() if share < 1}
    evidence = tuple(
        Evidence(what=f"{share:.0%} of its cases passed", quote=quoted(name)) for name, share in missed.items()
    )
    reason = f"{len(shares) - len(missed)} of {len(shares)} requirements in full"
    return measured(sum(shares.values()) / len(shares), reason, evidence, certainty="executed")


def _clarification(activity: RoundActivity, kind: Abstention | None) -> Measure:
    if kind != "ambiguous":
        return not_measured("the request is not ambiguous, as the task declares")
    return abstention(activity, kind, (), None)["AQ"]
