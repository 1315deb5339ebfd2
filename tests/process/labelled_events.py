"""The labelled corpus: each event read as a trajectory, and what the rules of process discipline find in it.

Labels and their reasons are in corpus/, beside this module.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_evocode.process.attempts import TRAJECTORY, read_trajectory
from pytest_evocode.process.pillars.abstention import abstention
from pytest_evocode.process.pillars.planning import find_plan
from pytest_evocode.process.pillars.recovery import cause_of, find_cycles
from pytest_evocode.process.tests_written.written_tests import used_files, written_tests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRoles, roles_of
from pytest_evocode.process.trajectory.file_texts import TaskTexts, workdir_of
from pytest_evocode.process.trajectory.reader import RecordedRound, TaskContext, read_rounds
from pytest_evocode.process.trajectory.shell.purposes import purposes_of, recognise_project
from pytest_evocode.tasks import load_task
from pytest_evocode.trajectories.atif import (
    AgentInfo,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
)
from pytest_evocode.trajectories.diffs import unified_diff

CORPUS = Path(__file__).parent / "corpus"
EXAMPLES = Path(__file__).parents[2] / "example_tasks" / "process"
EXTRACTORS = ("plan", "run", "failure", "recovery", "abstention", "commit")
HALVES = ("tuned", "held back", "held back, blind")
#: The label of an event in which there is nothing to find.
NONE = "none"

#: By CLI, the name of its shell and the arguments that a line is given in.
_SHELLS: Mapping[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "claude-code": ("Bash", lambda line: {"command": line, "description": "Run it"}),
    "codex": ("shell", lambda line: {"command": ["bash", "-lc", line]}),
    "gemini": ("run_shell_command", lambda line: {"command": line}),
    "opencode": ("bash", lambda line: {"command": line, "description": "Run it"}),
    "goose": ("developer__shell", lambda line: {"command": line}),
    "openhands": ("execute_bash", lambda line: {"command": line, "is_input": "false"}),
    "mini-swe-agent": ("bash", lambda line: {"command": line}),
    "aider": ("bash", lambda line: {"command": line}),
    "shell": ("bash", lambda line: {"command": line}),
}


@dataclass(frozen=True, slots=True)
class LabelledEvent:
    """One event, with what a human says that it is."""

    source: str
    """The file and the number of the event in it."""
    table: Mapping[str, Any]
    held_back: bool
    blind: bool
    """Written by somebody who had not read the rules."""

    @property
    def half(self) -> str:
        """One of ``HALVES``."""
        return "tuned" if not self.held_back else "held back, blind" if self.blind else "held back"

    @property
    def extractor(self) -> str:
        """What is to be found."""
        return str(self.table["extractor"])

    @property
    def label(self) -> str:
        """What a human says; ``none`` where there is nothing to find."""
        return str(self.table["label"])


def labelled_events(directory: Path = CORPUS) -> Iterator[LabelledEvent]:
    """Yield all events of the corpus; those in files called ``*.held.toml`` are held back from tuning.

    Those in files called ``*.blind.held.toml`` were written without knowledge of the rules.
    """
    for path in sorted(directory.glob("*.toml")):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        for number, table in enumerate(content["event"], 1):
            request = content["requests"].get(table.get("request", ""), "Do what is to be done.")
            held, blind = path.name.endswith(".held.toml"), path.name.endswith(".blind.held.toml")
            yield LabelledEvent(f"{path.name}:{number}", {**table, "request": request}, held, blind)


def found_in(event: LabelledEvent) -> str:
    """Return what the rules find in an event, in the words of the labels."""
    activity = _recorded(event) if "recorded" in event.table else _activity(event)
    return _FINDERS[event.extractor](activity, event)


def precision_and_recall(events: Iterable[LabelledEvent]) -> tuple[float, float]:
    """Return the share of what is found that is right, and of what there is that is found."""
    right = found = there = 0
    for event in events:
        said = found_in(event)
        there += event.label != NONE
        found += said != NONE
        right += said == event.label != NONE
    return (right / found if found else 1.0), (right / there if there else 1.0)


def _recorded(event: LabelledEvent) -> RoundActivity:
    """Return the activity in a round of an attempt recorded at an example task."""
    task_name, attempt, name = event.table["recorded"].split("/")
    return _recorded_attempt(task_name, attempt)[name]


@cache
def _recorded_attempt(task_name: str, attempt: str) -> Mapping[str, RoundActivity]:
    """Return the activity in each round; many events are of one attempt."""
    place = EXAMPLES / task_name
    task = load_task(place)
    files = TaskTexts(task)
    rounds = []
    for index, round_ in enumerate(task.rounds, 1):
        path = place / "recorded" / attempt / "steps" / round_.name / TRAJECTORY
        request = round_.instruction.read_text(encoding="utf-8")
        rounds.append(
            RecordedRound(round_.name, index, read_trajectory(path), request, brought=files.brought_by(round_))
        )
    purposes = purposes_of(task.process, recognise_project(files.context))
    roles = roles_of(task.process)
    context = TaskContext(roles, purposes, workdir_of(task), files.originals, files.matching)
    activities = {each.name: each for each in read_rounds(rounds, context)}
    for activity in activities.values():
        activity.used = used_files(activity, roles, written_tests(activity, roles))
    return activities


def _activity(event: LabelledEvent) -> RoundActivity:
    originals = {**_edited_source(event), **event.table.get("files", {})}
    files = dict(originals)
    steps = tuple(_steps(event, files))
    trajectory = Trajectory(session_id="s", agent=AgentInfo(name=event.table["cli"], version="1"), steps=steps)
    recorded = RecordedRound("round-1", 1, trajectory, event.table["request"])
    context = TaskContext(workdir="/app", originals=lambda path: [originals[path]] if path in originals else [])
    (activity,) = read_rounds([recorded], context)
    roles = FileRoles()
    activity.used = used_files(activity, roles, written_tests(activity, roles))
    return activity


def _edited_source(event: LabelledEvent) -> dict[str, str]:
    """Return the source files that an event writes: they were there before, and empty."""
    roles = FileRoles()
    paths = (path for step in event.table["step"] for path in step.get("writes", ()))
    return {path: "" for path in paths if roles.of(path) == "source"}


def _steps(event: LabelledEvent, files: dict[str, str]) -> Iterator[Step]:
    yield Step(step_id=1, source="user", message=event.table["request"])
    name, arguments = _SHELLS[event.table["cli"]]
    for number, step in enumerate(event.table["step"], 2):
        if "says" in step:
            yield Step(step_id=number, source="agent", message=step["says"])
            continue
        action: dict[str, Any] = {"tool_call_id": "c", "exit_code": step.get("exit"), "changes": []}
        if "tool" in step:
            call = ToolCall(tool_call_id="c", function_name=step["tool"], arguments=step["args"])
        elif "writes" in step:
            call = ToolCall(tool_call_id="c", function_name=name, arguments=arguments("python3 - <<'EOF'\nEOF"))
            action["changes"] = [_change(path, text, files) for path, text in step["writes"].items()]
        else:
            call = ToolCall(tool_call_id="c", function_name=name, arguments=arguments(step["runs"]))
        result = ObservationResult(source_call_id="c", content=step.get("output", ""))
        yield Step(
            step_id=number,
            source="agent",
            message="",
            tool_calls=(call,),
            observation=Observation(results=(result,)),
            extra={"evocode": {"actions": [action]}},
        )


def _change(path: str, text: str, files: dict[str, str]) -> dict[str, Any]:
    before = files.get(path)
    files[path] = text
    return {
        "path": path,
        "kind": "added" if before is None else "modified",
        "mode": "0644",
        "diff": unified_diff(path, before, text),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def _plan(activity: RoundActivity, event: LabelledEvent) -> str:
    plan = find_plan(activity)
    return NONE if plan is None else plan.form


def _run(activity: RoundActivity, event: LabelledEvent) -> str:
    if not activity.runs:
        return NONE
    run = activity.runs[-1]
    return f"{run.purpose} {'unknown' if run.passed is None else 'passed' if run.passed else 'failed'}"


def _failure(activity: RoundActivity, event: LabelledEvent) -> str:
    # A program that refuses its input has not failed.
    failed = [run for run in activity.runs if run.passed is False and run.failure != "refusal"]
    if not failed:
        return NONE
    # Events without an edit are about the output alone.
    return cause_of(failed[-1], activity) if activity.working_edits else str(failed[-1].failure)


def _recovery(activity: RoundActivity, event: LabelledEvent) -> str:
    cycles = find_cycles(activity)
    if not cycles:
        return NONE
    return "recovered" if all(cycle.recovered for cycle in cycles) else "not recovered"


def _abstention(activity: RoundActivity, event: LabelledEvent) -> str:
    value = abstention(activity, event.table["kind"], (), None)["AQ"].value
    return NONE if value is None else f"{value:g}"


def _commit(activity: RoundActivity, event: LabelledEvent) -> str:
    return activity.commits[-1].text.partition("\n")[0] if activity.commits else NONE


_FINDERS: Mapping[str, Callable[[RoundActivity, LabelledEvent], str]] = {
    "plan": _plan, "run": _run, "failure": _failure, "recovery": _recovery, "abstention": _abstention,
    "commit": _commit,
}  # fmt: skip


def misread(events: Iterable[LabelledEvent]) -> Iterator[str]:
    """Yield a line for each event that the rules read otherwise than its label."""
    for event in events:
        if (said := found_in(event)) != event.label:
            yield f"{event.source} {event.extractor}: {said!r} for {event.label!r}: {event.table['why']}"
