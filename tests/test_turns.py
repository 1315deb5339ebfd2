"""The corpus of labelled turns, and the reading of public recordings that it names."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.environments.test_datasets import git

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

if TYPE_CHECKING:
    from benchmarks.recordings import Deed, Turn, read_recording
else:  # Where the package is installed, what lies beside it is not on the path.
    spec = importlib.util.spec_from_file_location("recordings", BENCHMARKS / "recordings.py")
    recordings = sys.modules["recordings"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recordings)
    Deed, Turn, read_recording = recordings.Deed, recordings.Turn, recordings.read_recording


def _turns(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (BENCHMARKS / "turns" / name).read_text(encoding="utf-8").splitlines()]


DEV, HELD_OUT = _turns("dev.jsonl"), _turns("held_out.jsonl")


def test_at_least_three_hundred_recorded_turns_of_five_harnesses_and_a_third_is_held_back() -> None:
    recorded = Counter(each["harness"] for each in DEV + HELD_OUT if each["harness"] not in ("own", "written"))
    assert set(recorded) == {"claude-code", "codex", "mini-swe-agent", "openhands", "swe-agent"}
    assert recorded.total() >= 300
    assert 0.3 <= len(HELD_OUT) / len(DEV + HELD_OUT) <= 0.36
    assert len({each["id"] for each in DEV + HELD_OUT}) == len(DEV + HELD_OUT)


def test_public_recordings_are_named_at_a_commit_with_a_licence_and_not_copied() -> None:
    for each in DEV + HELD_OUT:
        if "repository" in each.get("source", {}):
            assert not {"text", "output", "later"} & each.keys()
            assert len(each["source"]["commit"]) == 40
            assert each["digest"]
        assert each["licence"]


def test_all_turns_are_labelled_twice_and_settled() -> None:
    for each in DEV + HELD_OUT:
        passes = each["labels"]
        assert set(passes) == {"first", "second", "settled"}
        if each["kind"] == "message":
            assert all(said["plan"] == ("items" in said) for said in passes.values())
        else:
            assert all(said["test_run"] == ("outcome" in said) for said in passes.values())


def test_both_parts_have_some_of_each_label() -> None:
    for part in (DEV, HELD_OUT):
        found = Counter(name for each in part for name, said in each["labels"]["settled"].items() if said is True)
        assert min(found[name] for name in ("test_run", "plan", "clarification", "abstention", "success")) >= 8


RUN = "python -m pytest"
RECORDINGS: dict[str, object] = {
    "a.traj": {"trajectory": [{"thought": "I run it.", "action": RUN, "observation": "1 passed"}]},
    "a.traj.json": {
        "messages": [
            {"role": "system", "content": ""},
            {"role": "user", "content": ""},
            {"role": "assistant", "content": f"I run it.\n\n```python\nx\n```\n```bash\n{RUN}\n```"},
            {"role": "user", "content": "<returncode>0</returncode>\n<output>\n1 passed\n</output>"},
        ]
    },
    "output.jsonl": {
        "history": [
            {"source": "agent", "action": "run", "args": {"command": RUN, "thought": "I run it."}},
            {"observation": "run", "content": "1 passed", "extras": {"metadata": {"exit_code": 0}}},
        ]
    },
    "trajectory.json": {
        "steps": [
            {
                "source": "agent",
                "message": "I run it.",
                "tool_calls": [{"tool_call_id": "c", "arguments": {"command": RUN}}],
                "observation": {"results": [{"source_call_id": "c", "content": "1 passed"}]},
            }
        ]
    },
}
LINES: dict[str, list[object]] = {
    "session.jsonl": [
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "I run it."}]}},
        {
            "type": "assistant",
            "message": {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": RUN}}],
            },
        },
        {
            "type": "user",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": "1 passed"}],
            },
        },
    ],
    "logs/rollout-1.jsonl": [
        {"payload": {"type": "agent_reasoning", "text": "I run it."}},
        {
            "payload": {
                "type": "function_call",
                "name": "shell",
                "call_id": "c",
                "arguments": json.dumps({"command": ["bash", "-lc", RUN]}),
            }
        },
        {
            "payload": {
                "type": "function_call_output",
                "call_id": "c",
                "output": json.dumps({"output": "1 passed", "metadata": {"exit_code": 0}}),
            }
        },
    ],
}


@pytest.mark.parametrize("name", [*RECORDINGS, *LINES])
def test_a_recording_of_each_harness_reads_as_messages_and_commands(name: str, tmp_path: Path) -> None:
    clone = tmp_path / "owner+name"
    path = clone / name
    path.parent.mkdir(parents=True)
    lines = LINES[name] if name in LINES else [RECORDINGS[name]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    git(clone, "init", "--quiet")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "recorded")
    turns = read_recording(tmp_path, "owner/name", "HEAD", f"{name}#0" if name == "output.jsonl" else name)
    assert [(each.kind, each.output) for each in turns] == [("message", ""), ("command", "1 passed")]
    assert turns[0].text.startswith("I run it.")
    assert turns[1].text == RUN


def test_what_is_written_later_is_known_of_each_turn(tmp_path: Path) -> None:
    clone = tmp_path / "owner+name"
    clone.mkdir()
    steps = [{"thought": "First.", "action": "echo x > a.py", "observation": ""}]
    (clone / "a.traj").write_text(json.dumps({"trajectory": steps}))
    git(clone, "init", "--quiet")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "recorded")
    said, written = read_recording(tmp_path, "owner/name", "HEAD", "a.traj")
    assert said.later == (Deed("a.py", "echo x > a.py"), Deed("", "echo x > a.py"))
    assert written.later == ()
