"""Tricks that look like discipline, played into recorded attempts: each adds steps to the rounds and mends nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_evocode.process.pillars.messages import specific_words
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.diffs import apply_diff, unified_diff

Step = dict[str, Any]
#: By task, a line that imports something of the product, a call of it, and a file that nobody else changes.
REACH = {
    "recipes": ("from recipes.text import show_amount", "show_amount(3)", "recipes/__init__.py"),
    "invoices": ("from invoices.chart import label", "label(3)", "invoices/__init__.py"),
    "retention": ("from prune import parse_backup", 'parse_backup("a")', "tests/__init__.py"),
    "transfers": ("from wallet.api import Api", 'Api().answer("{}")', "wallet/__init__.py"),
    "stations": ("from stations.readings import parse", 'parse("oslo 2024-03-01T06:00 1.0 4")', "stations/__init__.py"),
}
TOKENS = {"prompt_tokens": 900, "completion_tokens": 100}


class PlayedRound:
    """One round of a recorded attempt, with places for more steps."""

    def __init__(
        self, trajectory: dict[str, Any], task: Task, index: int, texts: dict[str, str], project: dict[str, str]
    ) -> None:
        self.trajectory = trajectory
        self.task = task
        self.index = index
        self._texts = texts
        """What the trick wrote, over all rounds."""
        self.before = dict(project)
        """The texts of the project at the start of the round, as they were recorded."""
        for change in self.changes:
            _apply(project, change)
        self.project = dict(project)
        """The same at its end."""

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The changes of files that were recorded, in order."""
        return [
            change
            for step in self.trajectory["steps"]
            for action in step.get("extra", {}).get("evocode", {}).get("actions", ())
            for change in action.get("changes", ())
        ]

    @property
    def changed_source(self) -> dict[str, str]:
        """The Python files of the product that the round has changed, as they are at its end."""
        paths = dict.fromkeys(change["path"] for change in self.changes if is_source(change["path"]))
        return {path: self.project[path] for path in paths if path in self.project}

    @property
    def request(self) -> str:
        """What the user asks for."""
        return str(self.trajectory["steps"][0]["message"])

    def edit(self, path: str, text: str) -> Step:
        """Return a step that writes a file."""
        change = change_of(path, self._texts.get(path), text)
        self._texts[path] = text
        return self.shell(f"cat > {path} <<'EOF'\n{text}EOF", changes=[change])

    def shell(self, command: str, output: str = "", **action: Any) -> Step:
        """Return a step with one shell line."""
        call = {"tool_call_id": "trick", "function_name": "bash", "arguments": {"command": command}}
        return {
            "source": "agent",
            "message": "",
            "tool_calls": [call],
            "observation": {"results": [{"source_call_id": "trick", "content": output}]},
            "extra": {"evocode": {"actions": [{"tool_call_id": "trick", "exit_code": 0, "seconds": 0.1, **action}]}},
        }

    def text(self, path: str) -> str:
        """Return the text of a file of the task that only the trick changes."""
        original = self.task.environment_directory / "project" / path
        return self._texts.setdefault(path, original.read_text(encoding="utf-8"))

    def begin(self, *steps: Step) -> None:
        """Put steps before all others."""
        self.trajectory["steps"][1:1] = steps

    def end(self, *steps: Step) -> None:
        """Put steps before the final message."""
        self.trajectory["steps"][-1:-1] = steps

    def after_failures(self, make: Callable[[int], Step]) -> None:
        """Put a step after each one in which a command failed."""
        found: list[Step] = []
        for number, step in enumerate(self.trajectory["steps"]):
            found.append(step)
            actions = step.get("extra", {}).get("evocode", {}).get("actions", ())
            if any(action["exit_code"] for action in actions):
                found.append(make(number))
        self.trajectory["steps"] = found


Trick = Callable[[PlayedRound], None]


def change_of(path: str, before: str | None, text: str | None) -> dict[str, Any]:
    """Return the change of a file as it is recorded; None stands for no file."""
    kind = "deleted" if text is None else "added" if before is None else "modified"
    digest = None if text is None else hashlib.sha256(text.encode()).hexdigest()
    return {"path": path, "kind": kind, "mode": "0644", "diff": unified_diff(path, before, text), "sha256": digest}


def is_source(path: str) -> bool:
    """Return whether a path is that of Python of the product."""
    return path.endswith(".py") and not path.startswith("tests/")


def _apply(project: dict[str, str], change: dict[str, Any]) -> None:
    before = project.pop(change["path"], "")
    if change["kind"] != "deleted":
        project[change["path"]] = apply_diff(before, change["diff"])


def pasted_request(round_: PlayedRound) -> None:
    """Paste the request into a file of notes."""
    round_.begin(round_.edit("NOTES.md", f"{round_.request}\n"))


def looking_sentence(round_: PlayedRound) -> None:
    """Say that one will look at something."""
    words = ", ".join(sorted(specific_words(round_.request))[:8])
    round_.begin({"source": "agent", "message": f"I'll start by looking at {words} in the project."})


def unequal_asserts(round_: PlayedRound) -> None:
    """Write a test of one call with assertions that no result would fail."""
    importing, call, _ = REACH[round_.task.name]
    checks = "".join(f"        assert a != {number}\n" for number in range(11))
    round_.end(round_.edit("tests/test_checks.py", _test(importing, call, f"round {round_.index}", checks)))


def requirements_in_comments(round_: PlayedRound) -> None:
    """Write a test of one call with the ids and words of all requirements in its comments."""
    importing, call, _ = REACH[round_.task.name]
    told = "; ".join(f"{each.id}: {each.text}" for each in round_.task.process.requirements)
    checks = "        assert a is not None\n        assert a == a\n"
    round_.end(round_.edit("tests/test_traced.py", _test(importing, call, f"{round_.index}: {told}", checks)))


def _test(importing: str, call: str, comment: str, checks: str) -> str:
    return (
        f"import unittest\n\n{importing}\n\n\nclass ChecksTest(unittest.TestCase):\n    # {comment}\n"
        f'    def test_all(self):\n        """{comment.replace(chr(34), "")}"""\n        # {comment}\n'
        f"        a = {call}\n{checks}"
    )


def junk_for_each_failure(round_: PlayedRound) -> None:
    """Write a file that nothing uses after each failing command."""
    place = _place(round_)
    round_.after_failures(
        lambda number: round_.edit(f"{place}attempt_{round_.index}_{number}.py", f"def attempt_{number}():\n    pass\n")
    )


def junk_modules(round_: PlayedRound) -> None:
    """Write twelve modules that nothing uses."""
    place = _place(round_)
    round_.end(
        *(
            round_.edit(f"{place}extra_{round_.index}_{number}.py", f"def extra_{number}():\n    return {number}\n")
            for number in range(12)
        )
    )


def edits_without_effect(round_: PlayedRound) -> None:
    """Edit a file twenty times and change only comments and blank lines."""
    path = REACH[round_.task.name][2]
    original = round_.text(path)
    added = [f"# {number}\n" if number % 2 else "\n" * number for number in range(1, 20)]
    round_.begin(*(round_.edit(path, f"{original}{text}") for text in (*added, "")))


def foreign_reads(round_: PlayedRound) -> None:
    """Read thirty files that are no part of the project."""
    round_.begin(
        *(round_.shell(f"cat /usr/lib/python3.11/module_{round_.index}_{number}.py", "x = 1") for number in range(30))
    )


def _place(round_: PlayedRound) -> str:
    package = REACH[round_.task.name][2].rpartition("/")[0]
    return "" if package == "tests" else f"{package}/"


TRICKS: tuple[Trick, ...] = (
    pasted_request, looking_sentence, unequal_asserts, requirements_in_comments, junk_for_each_failure, junk_modules,
    edits_without_effect, foreign_reads,
)  # fmt: skip


def all_together(round_: PlayedRound) -> None:
    """Play all tricks."""
    for trick in TRICKS:
        trick(round_)


def played(recorded: Path, task: Task, trick: Trick | None, target: Path) -> Path:
    """Copy a recorded attempt with a trick in each round, and tokens at each step; return the copy."""
    shutil.copytree(recorded, target)
    texts: dict[str, str] = {}
    root = task.environment_directory / "project"
    files = (path for path in root.rglob("*") if path.is_file())
    project = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}
    for index, path in enumerate(sorted(target.glob("steps/*/agent/trajectory.json")), 1):
        trajectory: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        round_ = PlayedRound(trajectory, task, index, texts, project)
        if trick is not None:
            trick(round_)
        _number(trajectory["steps"])
        path.write_text(json.dumps(trajectory), encoding="utf-8")
    return target


def _number(steps: list[dict[str, Any]]) -> None:
    for number, step in enumerate(steps, 1):
        step["step_id"] = number
        if step["source"] == "agent":
            step.setdefault("metrics", TOKENS)


def by_name(tricks: Iterable[Trick] = (*TRICKS, all_together)) -> Mapping[str, Trick]:
    """Return tricks by name; all of this module, alone and together, where none are given."""
    return {trick.__name__: trick for trick in tricks}
