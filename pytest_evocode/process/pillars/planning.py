"""Planning fidelity: was there a plan before the first edit, how good was it, and was it followed?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from math import sqrt

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.trajectory.events import Event, FileEdit, RoundActivity
from pytest_evocode.process.trajectory.plans import (
    FILE_PATH,
    RUNS_TESTS,
    FoundPlan,
    PlanStep,
    decomposition,
    find_plan,
    names_of_work,
    plan_steps,
)
from pytest_evocode.process.trajectory.words import specific_words

_LOOKING = re.compile(r"^\W*(read|look|inspect|study|explore|examine|understand|review|open|find)\b", re.IGNORECASE)
_CREATED = {"document": 1.0, "tool": 1.0, "message": 0.5}
_SHOWN = {"document": "a plan in a document of its own", "tool": "a plan in a list", "message": "a plan in a message"}


def planning(activity: RoundActivity) -> dict[str, Measure]:
    """Return PAC, DQ and PEA."""
    plan = find_plan(activity)
    if plan is None:
        first = activity.first_source_edit
        evidence = (first.evidence("the first edit of the source"),) if first else ()
        return {
            "PAC": measured(0.0, "no plan of the task before the first edit of the source", evidence),
            "DQ": measured(0.0, "no plan"),
            "PEA": not_measured("no plan"),
        }
    shared = Evidence(what="words it shares with the request", quote=quoted(", ".join(plan.shared)))
    quality, why = decomposition(plan.text, names_of_work(activity))
    return {
        "PAC": measured(_CREATED[plan.form], _SHOWN[plan.form], (plan.event.evidence(_SHOWN[plan.form]), shared)),
        "DQ": measured(quality, why, (Evidence(what=why, step=plan.event.step, quote=quoted(plan.text)),)),
        "PEA": _alignment(plan, activity),
    }


def _alignment(plan: FoundPlan, activity: RoundActivity) -> Measure:
    steps = plan_steps(plan.text)
    matches = [_first_match(step, activity, plan.event.at) for step in steps]
    pairs = [(number, match) for number, match in enumerate(matches) if match is not None]
    evidence = tuple(match.evidence(f"step {number + 1} of the plan: {steps[number].text}") for number, match in pairs)
    if len(pairs) < 2:
        return not_measured(f"{len(pairs)} of {len(steps)} steps of the plan can be found in what was done", evidence)
    tau = kendall_tau_b([number for number, _ in pairs], [match.at for _, match in pairs])
    if tau is None:
        return not_measured("all steps of the plan that can be found were done at once", evidence)
    return measured((tau + 1) / 2, f"tau-b = {tau:.3f} over {len(pairs)} of {len(steps)} steps", evidence)


def _first_match(step: PlanStep, activity: RoundActivity, after: int) -> Event | None:
    """Return the first thing that the agent did after the plan that the step is about."""
    looking = _LOOKING.match(step.text) is not None
    found: list[Event] = []
    for name in step.names:
        if name == "run tests" or RUNS_TESTS.search(name):
            found += [run for run in activity.runs if run.purpose == "test" and run.at > after][:1]
        elif looking and FILE_PATH.fullmatch(name):
            found += [read for read in activity.reads if _is_path(name, read.path) and read.at > after][:1]
        elif FILE_PATH.fullmatch(name):
            found += [edit for edit in activity.edits if _is_path(name, edit.path) and edit.at > after][:1]
        else:
            word = re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\b")
            found += [edit for edit in activity.edits if edit.at > after and _writes(edit, word)][:1]
            found += [run for run in activity.runs if run.at > after and word.search(run.key)][:1]
    # A step that names several things has begun once the agent has turned to the last of them.
    if found:
        return max(found, key=lambda event: event.at)
    return _by_words(step, activity, after) if not step.names else None


def _by_words(step: PlanStep, activity: RoundActivity, after: int) -> Event | None:
    words = specific_words(step.text)
    for edit in activity.edits:
        if edit.at > after and edit.of_product:
            written = specific_words(f"{edit.path} " + "".join(line for hunk in edit.hunks for line in hunk.added))
            if len(words & written) >= 2:
                return edit
    return None


def _is_path(name: str, path: str) -> bool:
    return path == name or path.endswith(f"/{name}") or name.endswith(f"/{path}")


def _writes(edit: FileEdit, word: re.Pattern[str]) -> bool:
    return edit.of_product and any(word.search(line) for hunk in edit.hunks for line in (*hunk.added, *hunk.removed))


# Not scipy's, which is a download of 35 MB.
def kendall_tau_b(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Kendall's rank correlation with ties (tau-b, 1945), from -1 to 1; None where one side is all ties.

    >>> kendall_tau_b([1, 2, 3], [1, 2, 3]), kendall_tau_b([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    concordant = discordant = left_ties = right_ties = 0
    for i, j in combinations(range(len(left)), 2):
        a, b = left[i] - left[j], right[i] - right[j]
        if a == 0 or b == 0:
            left_ties += a == 0
            right_ties += b == 0
        elif (a > 0) == (b > 0):
            concordant += 1
        else:
            discordant += 1
    pairs = len(left) * (len(left) - 1) // 2
    scale = sqrt((pairs - left_ties) * (pairs - right_ties))
    return (concordant - discordant) / scale if scale else None
