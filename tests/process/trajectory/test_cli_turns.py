"""Turns as CLIs have them, in the words of their tools: what was run, how that ended, and what was changed."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_evocode.agents.installed.exchange_reader import ExchangeReader
from pytest_evocode.process.trajectory.reader import RecordedRound, TaskContext, read_rounds
from pytest_evocode.trajectories.atif import AgentInfo
from pytest_evocode.trajectories.recorder import Recorder
from tests.agents.installed.conftest import Blocks, exchange

FAILED, PASSED = "1 failed, 1 passed in 0.1s", "2 passed in 0.1s"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-old\n+new\n*** End Patch\n"
REMINDER = "\n\n<system-reminder>\n<total_tokens>15000000 tokens left</total_tokens>\n</system-reminder>"


def codex(code: int, output: str) -> str:
    return f"Chunk ID: 1a\nWall time: 0.1000 seconds\nProcess exited with code {code}\nOutput:\n{output}"


#: By CLI of its tests, its edit and its build: the tool, its arguments, its result and whether that is an error.
TURNS: dict[str, list[tuple[str, dict[str, Any], str, bool]]] = {
    "claude-code": [
        ("Bash", {"command": "pytest -q", "description": "Run"}, f"Exit code 1\n{FAILED}{REMINDER}", True),
        ("Edit", {"file_path": "/app/a.py", "old_string": "old", "new_string": "new"}, "The file was updated.", False),
        ("Bash", {"command": "pytest -q"}, f"{PASSED}{REMINDER}", False),
        ("Bash", {"command": "make build"}, f"(Bash completed with no output){REMINDER}", False),
    ],
    "codex": [
        ("exec_command", {"cmd": "pytest -q", "yield_time_ms": 1000}, codex(1, FAILED), False),
        ("apply_patch", {"input": PATCH}, "Success. Updated the following files:\nM a.py", False),
        ("exec_command", {"cmd": "pytest -q"}, codex(0, PASSED), False),
        ("exec_command", {"cmd": "make build"}, codex(0, ""), False),
    ],
    "gemini-cli": [
        ("run_shell_command", {"command": "pytest -q"}, f"Output: {FAILED}\nExit Code: 1", False),
        ("replace", {"file_path": "/app/a.py", "old_string": "old", "new_string": "new"}, "Modified.", False),
        ("run_shell_command", {"command": "pytest -q"}, f"Output: {PASSED}", False),
        ("run_shell_command", {"command": "make build"}, "Output: (empty)", False),
    ],
    "opencode": [
        ("bash", {"command": "pytest -q", "description": "Run"}, FAILED, False),
        ("edit", {"filePath": "/app/a.py", "oldString": "old", "newString": "new"}, "Edit applied.", False),
        ("bash", {"command": "pytest -q"}, PASSED, False),
        ("bash", {"command": "make build"}, "(no output)", False),
    ],
}


@pytest.mark.parametrize("cli", TURNS)
def test_the_tests_and_edits_of_a_cli_are_seen_and_whether_they_passed(cli: str) -> None:
    recorder = Recorder(AgentInfo(name=cli, version="0"), "session")
    reader = ExchangeReader(recorder, tells_failures=cli in ("claude-code", "gemini-cli"))
    asked: Blocks = []
    for number, (tool, arguments, shown, failed) in enumerate(TURNS[cli], 1):
        reader.take(
            exchange(number, [{"type": "tool_use", "id": f"c{number}", "name": tool, "input": arguments}], asked)
        )
        asked = [{"type": "tool_result", "tool_use_id": f"c{number}", "content": shown, "is_error": failed}]
    reader.take(exchange(9, [{"type": "text", "text": "Done."}], asked))
    reader.settle()
    if cli == "opencode":
        recorder.exited({"c1": 1, "c3": 0, "c4": 0})
    recorded = RecordedRound("round-1", 1, recorder.trajectory(), "Do it.")
    (activity,) = read_rounds([recorded], TaskContext(workdir="/app", originals=lambda path: ("old\n",)))
    assert [(run.purpose, run.passed) for run in activity.runs] == [("test", False), ("test", True), ("build", True)]
    assert [(edit.path, edit.after) for edit in activity.edits] == [("a.py", "new\n")]
    assert [statement.text for statement in activity.messages] == ["Done."]
