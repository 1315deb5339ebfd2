"""Planning fidelity: was there a plan before the first edit, how good was it, and was it followed?"""

from __future__ import annotations

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.plans import (
    FoundPlan,
    decomposition,
    find_plan,
    first_matches,
    kendall_tau_b,
    names_of_work,
    plan_steps,
)

_CREATED = {"document": 1.0, "tool": 1.0, "message": 0.5}
_SHOWN = {"document": "a plan in a document of its own", "tool": "a plan in a list", "message": "a plan in a message"}


def planning(activity: RoundActivity) -> dict[str, Measure]:
    """PAC, DQ and PEA."""
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
        "PAC": measured(_CREATED[plan.form], _SHOWN[plan.form], (plan.signal.evidence(_SHOWN[plan.form]), shared)),
        "DQ": measured(quality, why, (Evidence(what=why, step=plan.signal.step, quote=quoted(plan.text)),)),
        "PEA": _alignment(plan, activity),
    }


def _alignment(plan: FoundPlan, activity: RoundActivity) -> Measure:
    steps = plan_steps(plan.text)
    matches = first_matches(steps, activity, plan.signal.at)
    pairs = [(number, match) for number, match in enumerate(matches) if match is not None]
    evidence = tuple(match.evidence(f"step {number + 1} of the plan: {steps[number].text}") for number, match in pairs)
    if len(pairs) < 2:
        return not_measured(f"{len(pairs)} of {len(steps)} steps of the plan can be found in what was done", evidence)
    tau = kendall_tau_b([number for number, _ in pairs], [match.at for _, match in pairs])
    if tau is None:
        return not_measured("all steps of the plan that can be found were done at once", evidence)
    return measured((tau + 1) / 2, f"tau-b = {tau:.3f} over {len(pairs)} of {len(steps)} steps", evidence)
