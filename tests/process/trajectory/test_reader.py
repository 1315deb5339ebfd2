"""The same work with the tools of different agents gives the same activity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.normal_forms import idle_names
from pytest_evocode.process.trajectory.reader import TaskContext
from pytest_evocode.process.trajectory.shell.purposes import CommandPurposes
from tests.process.trajectories import LEDGER, Recording, read

OLD, NEW = "    return sum(entries)\n", "    return sum(entries, 0)\n"
CHANGED = LEDGER.replace(OLD, NEW)
PATCH = f"""*** Begin Patch
*** Update File: ledger.py
@@ def total(entries):
-{OLD}+{NEW}*** End Patch"""
STEPS = ("Read the budget", "Report overdrafts")


def ours(recording: Recording) -> None:
    recording.bash("cat ledger.py", LEDGER)
    recording.bash("sed -i 's/(entries)$/(entries, 0)/' ledger.py", changes={"ledger.py": CHANGED})
    recording.write("new.py", "x = 1\n")
    recording.bash("python -m pytest -q", "1 failed in 0.10s", 1)


def claude_code(recording: Recording) -> None:
    recording.call("TodoWrite", {"todos": [{"content": step, "status": "pending"} for step in STEPS]})
    recording.call("Read", {"file_path": "/app/ledger.py"}, LEDGER)
    recording.call("Edit", {"file_path": "/app/ledger.py", "old_string": OLD, "new_string": NEW}, "updated")
    recording.call("Write", {"file_path": "/app/new.py", "content": "x = 1\n"}, "File created")
    recording.call("Bash", {"command": "python -m pytest -q"}, "Exit code 1\n1 failed in 0.10s")


def codex(recording: Recording) -> None:
    recording.call("update_plan", {"plan": [{"step": step, "status": "pending"} for step in STEPS]})
    recording.call("shell", {"command": ["bash", "-lc", "cat ledger.py"], "workdir": "/app"}, LEDGER)
    recording.call("apply_patch", {"input": PATCH}, "Success")
    patch = "*** Begin Patch\n*** Add File: new.py\n+x = 1\n*** End Patch"
    recording.call("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{patch}\nEOF"]}, "Success")
    output = '{"output": "1 failed in 0.10s", "metadata": {"exit_code": 1, "duration_seconds": 0.2}}'
    recording.call("shell", {"command": ["python", "-m", "pytest", "-q"]}, output)


def gemini_cli(recording: Recording) -> None:
    recording.call("write_todos", {"todos": [{"description": step, "status": "pending"} for step in STEPS]})
    recording.call("read_file", {"absolute_path": "/app/ledger.py"}, LEDGER)
    recording.call("replace", {"file_path": "/app/ledger.py", "old_string": OLD, "new_string": NEW}, "modified")
    recording.call("write_file", {"file_path": "/app/new.py", "content": "x = 1\n"}, "created")
    output = "Command: python -m pytest -q\nOutput: 1 failed in 0.10s\nExit Code: 1"
    recording.call("run_shell_command", {"command": "python -m pytest -q"}, output)


def opencode(recording: Recording) -> None:
    recording.call(
        "todowrite", {"todos": [{"content": step, "status": "pending", "priority": "high"} for step in STEPS]}
    )
    recording.call("read", {"filePath": "/app/ledger.py"}, LEDGER)
    recording.call("edit", {"filePath": "/app/ledger.py", "oldString": OLD, "newString": NEW})
    recording.call("write", {"filePath": "/app/new.py", "content": "x = 1\n"})
    recording.call("bash", {"command": "python -m pytest -q", "description": "Run tests"}, "1 failed in 0.10s")


def an_editor_with_commands(recording: Recording) -> None:
    name = "str_replace_based_edit_tool"
    recording.call(name, {"command": "view", "path": "/app/ledger.py"}, LEDGER)
    recording.call(name, {"command": "str_replace", "path": "/app/ledger.py", "old_str": OLD, "new_str": NEW})
    recording.call(name, {"command": "create", "path": "/app/new.py", "file_text": "x = 1\n"})
    recording.call("execute_bash", {"command": "python -m pytest -q"}, "1 failed in 0.10s")


AGENTS = [ours, claude_code, codex, gemini_cli, opencode, an_editor_with_commands]


@pytest.mark.parametrize("play", AGENTS)
def test_reads_edits_and_runs_are_the_same_whatever_the_tools(play: Callable[[Recording], None]) -> None:
    recording = Recording()
    play(recording)
    (activity,) = read(recording)
    assert [each.path for each in activity.reads] == ["ledger.py"]
    assert [(edit.path, edit.kind, edit.after) for edit in activity.edits] == [
        ("ledger.py", "modified", CHANGED),
        ("new.py", "added", "x = 1\n"),
    ]
    assert activity.edits[0].hunks[0].added == (NEW,)
    (run,) = activity.runs
    assert (run.purpose, run.key, run.passed, run.failure) == ("test", "pytest", False, "product")


@pytest.mark.parametrize("play", [claude_code, codex, gemini_cli, opencode])
def test_plans_of_planning_tools_are_lists(play: Callable[[Recording], None]) -> None:
    recording = Recording()
    play(recording)
    (activity,) = read(recording)
    assert [plan.text for plan in activity.plans] == ["- Read the budget\n- Report overdrafts"]


@pytest.mark.parametrize("play", AGENTS)
def test_every_event_has_its_step_and_a_quote(play: Callable[[Recording], None]) -> None:
    recording = Recording()
    play(recording)
    (activity,) = read(recording)
    found = [*activity.reads, *activity.edits, *activity.runs, *activity.plans]
    assert all(1 < event.step <= recording.step and event.quote for event in found)
    assert activity.runs[0].step == recording.step


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "paths"),
    [
        ("Grep", {"pattern": "total", "output_mode": "content"}, "ledger.py:1:def total(entries):", ["ledger.py"]),
        ("Glob", {"pattern": "*.py"}, "/app/ledger.py", []),
        ("search_file_content", {"pattern": "total"}, "File: ledger.py\nledger.py:1: def total", ["ledger.py"]),
        ("bash", {"command": "grep -rn total ."}, "./ledger.py:1:def total(entries):\n", ["ledger.py"]),
        ("bash", {"command": "cat no.py ledger.py"}, "cat: no.py: No such file or directory\ndef", ["ledger.py"]),
        ("Read", {"file_path": "/app/no.py"}, "<tool_use_error>File does not exist.</tool_use_error>", []),
        ("read_many_files", {"paths": ["a.py", "b.py"]}, "...", ["a.py", "b.py"]),
        ("my_file_viewer_read", {"path": "a.py"}, "...", ["a.py"]),
    ],
)
def test_a_read_is_a_file_of_which_something_was_shown(
    tool: str, arguments: Mapping[str, Any], output: str, paths: list[str]
) -> None:
    (activity,) = read(Recording().call(tool, arguments, output))
    assert [each.path for each in activity.reads] == paths


def test_what_was_recorded_of_the_workspace_counts_and_not_what_a_line_says() -> None:
    recording = Recording().bash("python fix.py", changes={"ledger.py": CHANGED})
    recording.bash("sed -i s/nothing/something/ ledger.py")
    (activity,) = read(recording)
    assert [(edit.step, edit.path) for edit in activity.edits] == [(2, "ledger.py")]


def test_what_the_product_writes_when_it_runs_is_no_edit() -> None:
    recording = Recording().bash(
        "python -m pytest", "1 passed in 0.10s", changes={"state.json": "{}\n", "t.pyc": "x\n"}
    )
    recording.bash("echo '{}' > settings.json", changes={"settings.json": "{}\n"})
    (activity,) = read(recording)
    assert [edit.path for edit in activity.edits] == ["settings.json"]


def test_binary_and_lost_files_are_edits_without_a_text() -> None:
    recording = Recording().call(
        "bash",
        {"command": "convert a.svg a.png"},
        action={
            "exit_code": 0,
            "changes": [{"path": "a.png", "kind": "added", "diff": None, "content": "/9j/", "sha256": "x"}],
        },
    )
    (activity,) = read(recording)
    assert [(edit.path, edit.after, edit.role) for edit in activity.edits] == [("a.png", None, "other")]
    assert activity.lost == {"a.png"}


def test_texts_go_on_from_round_to_round() -> None:
    first = Recording().bash("edit", changes={"ledger.py": CHANGED})
    second = Recording("Go on.", files=first.files, name="round-2").bash("edit", changes={"ledger.py": LEDGER})
    rounds = read(first, second)
    assert [activity.before["ledger.py"] for activity in rounds] == [LEDGER, CHANGED]
    assert rounds[1].origin["ledger.py"] == LEDGER


def test_a_declared_test_command_is_known_as_one() -> None:
    context = TaskContext(purposes=CommandPurposes(build="./scripts/build.sh", test="./scripts/verify --all"))
    recording = Recording().bash("./scripts/verify --all --fast", "", 0).bash("./scripts/build.sh", "", 2)
    (activity,) = read(recording, context=context)
    assert [(run.purpose, run.passed) for run in activity.runs] == [("test", True), ("build", False)]


def test_messages_may_be_lists_of_parts() -> None:
    trajectory = Recording().say("x").trajectory()
    step = trajectory.steps[-1].model_copy(update={"message": [{"type": "text", "text": "Which one?"}]})
    recording = Recording()
    recording._steps.append(step)
    (activity,) = read(recording)
    assert [message.text for message in activity.messages] == ["Which one?"]


def test_the_activity_of_a_round_shows_what_it_is() -> None:
    activity: RoundActivity = read(Recording().bash("cat ledger.py", "x"))[0]
    assert repr(activity) == "<activity in round-1: 0 edits, 1 reads, 0 runs>"


def test_a_module_of_the_project_may_be_called_as_one_of_pythons() -> None:
    assert idle_names("", ["from .types import a as b\n"], frozenset()) == frozenset()
    assert idle_names("", ["from types import a as b\n"], frozenset()) == {"b"}


@pytest.mark.parametrize(("path", "counts"), [("shop/settings.py", True), ("shop/rooms.py", False)])
def test_a_setting_is_of_use_although_no_module_names_it(path: str, counts: bool) -> None:
    (activity,) = read(Recording(files={path: "DEBUG = False\n"}).write(path, "DEBUG = False\nMEDIA_ROOT = '/media'\n"))
    assert [edit.effective for edit in activity.edits] == [counts]
