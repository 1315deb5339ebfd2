"""Trajectories for the viewer: steps whole or with what was left out, in parts, from damaged and foreign files too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.report.html import trajectory as trajectory_module
from pytest_evocode.report.html.step import purpose_of, use_of
from pytest_evocode.report.html.trajectory import PART, ShownTrajectory, trajectory_parts
from tests.report.html.contract import faults
from tests.report.html.hostile import CORPUS
from tests.report.html.recordings import change, recorded, shown, step, trajectory

#: Prints the peak of memory, in MB, that reading a trajectory adds, and the largest part in bytes.
_MEMORY = """
import json, resource, sys
from pathlib import Path
from pytest_evocode.report.html.trajectory import trajectory_parts
sizes = [0]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
begin = peak()
found = trajectory_parts(Path(sys.argv[1]), lambda part, steps: sizes.append(len(json.dumps(steps))))
print(json.dumps({"added": peak() - begin, "largest": max(sizes), "steps": found.steps, "parts": len(found.first)}))
"""


def read(tmp_path: Path, document: Any) -> tuple[ShownTrajectory, list[dict[str, Any]]]:
    """What is read of a trajectory, and its steps; a document that is bytes is written as it is."""
    path = tmp_path / "trajectory.json"
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    steps: list[dict[str, Any]] = []
    numbers: list[int] = []

    def write(part: int, of_part: list[dict[str, Any]]) -> None:
        numbers.append(part)
        assert [fault for each in of_part for fault in faults(each, "Step")] == []
        steps.extend(of_part)

    found = trajectory_parts(path, write)
    assert found is not None
    assert numbers == list(range(1, len(found.first) + 1))
    assert found.steps == len(steps)
    return found, steps


def test_a_call_has_its_output_its_end_and_its_changes(tmp_path: Path) -> None:
    document = trajectory(
        step(2, change("a.py", "1\n", "2\n"), command="sed -i s/1/2/ a.py", output="done\n", exit_code=3)
    )
    _, [only] = read(tmp_path, document)
    (call,) = only["calls"]
    assert (call["name"], call["arguments"]) == ("bash", {"command": "sed -i s/1/2/ a.py"})
    assert (call["output"], call["exit_code"], call["seconds"], call["purpose"]) == ("done\n", 3, 0.5, "edit")
    assert [(each["path"], each["diff"], each["steps"]) for each in call["changes"]] == [
        ("a.py", "@@ -1 +1 @@\n-1\n+2\n", [2])
    ]


def test_steps_of_all_sources_have_what_was_said_and_what_it_cost(tmp_path: Path) -> None:
    metrics = {"prompt_tokens": 5, "completion_tokens": 7, "cost_usd": 0.5, "logprobs": [0.1]}
    steps = [
        {"step_id": 1, "source": "user", "message": "do it", "timestamp": "2026-01-02T03:04:05Z"},
        {"step_id": 2, "source": "agent", "message": "ok", "reasoning_content": "hm", "metrics": metrics},
        {"step_id": 3, "source": "agent", "model_name": "n", "message": "", "is_copied_context": True},
    ]
    _, (user, agent, copied) = read(tmp_path, trajectory(*steps))
    assert (user["source"], user["text"], user["model"], user["time"]) == ("user", "do it", "", "2026-01-02T03:04:05Z")
    assert (agent["model"], agent["reasoning"]) == ("m", "hm")
    assert (agent["prompt_tokens"], agent["completion_tokens"], agent["cost_usd"]) == (5, 7, 0.5)
    assert (copied["model"], copied["copied"], copied["cost_usd"]) == ("n", True, None)


@pytest.mark.parametrize(
    ("extra", "remark"),
    [
        ({"elided": ["a", "b"]}, "the outputs of 2 earlier calls"),
        ({"retries": 3}, "retries: 3"),
        ({"refusal": "I cannot do that"}, "refusal: I cannot do that"),
        ({"actions": [{"commits": [{"id": "0123456789abc", "message": "Mend"}]}]}, "commit 0123456789: Mend"),
        ({"actions": [{"unrecorded": {"files": 7, "contents": 0}}]}, "7 more changed files were not recorded"),
    ],
)
def test_remarks_say_what_the_recording_says(tmp_path: Path, extra: dict[str, Any], remark: str) -> None:
    values = {"step_id": 1, "source": "agent", "message": "", "extra": {"evocode": extra}}
    _, [only] = read(tmp_path, trajectory(values))
    assert any(remark in each for each in only["remarks"])


def test_how_the_turn_ended_is_said_at_the_last_step(tmp_path: Path) -> None:
    found, steps = read(tmp_path, trajectory(step(1), step(2), ours={"stopped": "budget: 2 $ are spent"}))
    assert steps[-1]["remarks"] == ["The turn was ended: budget: 2 $ are spent"]
    assert found.notes == "The turn was ended: budget: 2 $ are spent"
    assert not steps[0]["remarks"]


def test_a_long_text_is_cut_and_says_by_how_much(tmp_path: Path) -> None:
    long = "x" * 5_000_000
    values = {**step(1, output=long), "message": long, "reasoning_content": long}
    values["tool_calls"][0]["arguments"] = {"command": long}
    _, [only] = read(tmp_path, trajectory(values))
    assert "4,800,000 characters left out" in only["text"]
    assert any("characters of an output of bash are left out" in each for each in only["remarks"])
    assert len(json.dumps(only)) < PART


@pytest.mark.nightly
def test_many_calls_of_one_step_do_not_make_a_part_too_large(tmp_path: Path) -> None:
    values = step(1)
    values["tool_calls"] = [
        {"tool_call_id": f"c{n}", "function_name": "bash", "arguments": {"command": "y" * 50_000}} for n in range(600)
    ]
    values["observation"] = {"results": [{"source_call_id": f"c{n}", "content": "x" * 50_000} for n in range(600)]}
    _, [only] = read(tmp_path, trajectory(values))
    assert len(only["calls"]) == 500
    assert "100 more calls are left out" in only["remarks"]
    assert len(json.dumps(only)) < 2 * PART


def test_a_long_trajectory_is_in_parts_that_say_where_they_begin(tmp_path: Path) -> None:
    steps = [step(number, output=f"{number} " * 5000) for number in range(1, 301)]
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(trajectory(*steps)))
    parts: list[list[dict[str, Any]]] = []
    found = trajectory_parts(path, lambda part, of_part: parts.append(of_part))
    assert found is not None
    assert len(parts) > 1
    assert found.first == [sum(len(part) for part in parts[:number]) for number in range(len(parts))]
    assert [each["id"] for part in parts for each in part] == list(range(1, 301))
    assert all(len(json.dumps(part)) <= PART * 1.01 for part in parts)


@pytest.mark.slow
def test_of_very_many_steps_the_first_are_shown_and_the_others_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trajectory_module, "_MOST_STEPS", 3)
    changed = [step(number, change(f"{number}.txt", None, "x\n")) for number in range(1, 6)]
    found, steps = read(tmp_path, trajectory(*changed))
    assert [each["id"] for each in steps] == [1, 2, 3]
    assert found.notes.startswith("Of 5 steps the first 3 are shown; the file has all.")
    assert found.changes is not None
    assert [each["path"] for each in found.changes] == ["1.txt", "2.txt", "3.txt", "..."]
    assert found.changes[-1]["note"] == "changes of steps that are not shown are left out"
    found, steps = read(tmp_path, trajectory(*changed[:3]))
    assert (len(steps), found.notes) == (3, "")


@pytest.mark.nightly
def test_a_trajectory_of_fifty_megabytes_takes_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    changes = [change(f"{number}.py", "".join(f"{n}\n" for n in range(200)), "new\n") for number in range(50)]
    steps = (step(number, changes[number % 50], output="0123456789" * 800) for number in range(1, 5601))
    with path.open("w") as file:
        file.write('{"agent": {"name": "a", "version": "1"}, "steps": [')
        for number, each in enumerate(steps):
            file.write(f"{',' if number else ''}{json.dumps(each)}")
        file.write("]}")
    assert path.stat().st_size > 50_000_000
    done = subprocess.run([sys.executable, "-c", _MEMORY, path], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["steps"] == 5600
    assert found["largest"] <= PART * 1.01
    # The file and what it holds, once each.
    assert found["added"] < 250


@pytest.mark.parametrize("text", CORPUS)
def test_hostile_texts_stay_texts(tmp_path: Path, text: str) -> None:
    values = {**step(1, output=text, command=text), "message": text, "reasoning_content": text, "timestamp": text}
    _, [only] = read(tmp_path, trajectory(values, notes=text))
    assert (only["text"], only["reasoning"]) == (text, text)
    assert only["calls"][0]["arguments"] == {"command": text}


@pytest.mark.parametrize(
    "raw",
    [None, 7, "text", [], {}, {"source": "nobody"}, {"source": "agent", "tool_calls": 3, "message": "hi"},
     {"source": "agent", "tool_calls": [{"tool_call_id": 1}]}, {"source": "agent", "observation": "x"},
     {"source": "agent", "extra": {"evocode": {"actions": [{"changes": [{"path": 3}, {"kind": "added"}]}]}}},
     {"source": "agent", "extra": {"evocode": []}}, {"step_id": -1, "source": "user"}],
)  # fmt: skip
def test_a_step_that_is_not_valid_is_shown_as_far_as_it_can_be(tmp_path: Path, raw: Any) -> None:
    _, steps = read(tmp_path, trajectory(step(1), raw, step(1)))
    assert len({each["id"] for each in steps}) == 3
    assert steps[1]["source"] in ("system", "user", "agent")


def test_what_a_step_that_is_not_valid_says_is_there(tmp_path: Path) -> None:
    raw = {"step_id": 1, "source": "agent", "message": "hi", "tool_calls": [{"function_name": "grep"}]}
    _, [only] = read(tmp_path, trajectory(raw))
    assert only["text"] == "hi"
    assert "grep" in only["calls"][0]["output"]
    assert only["remarks"][0].startswith("this step is not valid ATIF: tool_calls")


def test_of_a_file_that_is_cut_off_the_steps_before_are_shown(tmp_path: Path) -> None:
    whole = json.dumps(trajectory(*(step(number) for number in range(1, 20)))).encode()
    found, steps = read(tmp_path, whole[: len(whole) // 2])
    assert 5 < len(steps) < 19
    assert "shown are the steps before that; restore it" in found.problem


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"steps": 3}', b'{"a": ' * 100_000, b"[" * 100_000]
)
def test_a_file_that_is_no_trajectory_is_a_problem(tmp_path: Path, content: bytes) -> None:
    found, steps = read(tmp_path, content)
    assert steps == []
    assert found.problem.startswith(f"{tmp_path / 'trajectory.json'}: ")
    assert "restore it" in found.problem


@pytest.mark.parametrize("depth", [150, 250, 900, 5000])
def test_what_is_nested_very_deep_is_no_trouble(tmp_path: Path, depth: int) -> None:
    deep = b"[" * depth + b'"a \\ud800 b"' + b"]" * depth
    message = json.dumps(trajectory(step(1), {"step_id": 2, "source": "user", "message": "?"})).encode()
    found, steps = read(tmp_path, message.replace(b'"?"', deep))
    assert found.problem or len(steps) == 2
    output = json.dumps(trajectory(step(1, output='{"a":' * depth + "1" + "}" * depth))).encode()
    assert len(read(tmp_path, output)[1]) == 1


@pytest.mark.parametrize("piece", ["\n", " ", "exit code ", "{", "<<A\n", "'", "a=", "$(", "/a/", "\x1b["])
@pytest.mark.matrix
def test_an_output_of_one_thing_over_and_over_is_read_at_once(tmp_path: Path, piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    _, [only] = read(tmp_path, trajectory(step(1, output=text, command=text)))
    assert len(only["calls"]) == 1


def test_half_a_surrogate_pair_is_no_damage(tmp_path: Path) -> None:
    found, steps = read(tmp_path, trajectory({"step_id": 1, "source": "user", "message": "a \ud800 b"}))
    assert (found.problem, steps[0]["text"]) == ("", "a \ud800 b")


def test_a_file_that_is_not_there_is_no_trajectory(tmp_path: Path) -> None:
    assert trajectory_parts(tmp_path / "trajectory.json", lambda part, steps: None) is None


def test_images_and_subagents_of_other_harnesses(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "look"}, {"type": "image", "source": {"path": "a.png"}}]
    main = step(1, output=parts)
    main["observation"]["results"][0]["subagent_trajectory_ref"] = [{"trajectory_path": "sub.json"}]
    subagent = {"agent": {"name": "finder", "version": "1"}, "steps": [step(1), step(2)]}
    _, steps = read(tmp_path, trajectory(main, subagent_trajectories=[subagent]))
    assert steps[0]["calls"][0]["output"] == "look"
    assert "not shown: 1 of type image" in steps[0]["remarks"]
    assert any("sub.json" in each for each in steps[0]["remarks"])
    assert [(each["id"], each["remarks"][:1]) for each in steps[1:]] == [
        (2, ["of the subagent finder"]),
        (3, ["of the subagent finder"]),
    ]


@pytest.mark.parametrize(
    ("command", "purpose"),
    [
        ("python -m pytest -q", "test"),
        ("cd app && PYTHONPATH=. timeout 60 pytest tests", "test"),
        ("make", "build"),
        ("git status", "git"),
        ("cat a.py | head -5", "read"),
        ("grep -rn x . | head", "search"),
        ("cat > a.py <<'EOF'\nimport pytest\ngit status\nEOF", "edit"),
        ("python app.py", "other"),
        ("echo 'it", "other"),
        ("", "other"),
    ],
)
def test_what_a_command_is_for(command: str, purpose: str) -> None:
    assert purpose_of(use_of("bash", {"command": command}), changed=None) == purpose


def test_a_command_that_changed_files_is_an_edit_unless_it_tests() -> None:
    assert purpose_of(use_of("bash", {"command": "python mend.py"}), changed=True) == "edit"
    assert purpose_of(use_of("bash", {"command": "cat a > b"}), changed=False) == "read"
    assert purpose_of(use_of("Read", {"file_path": "a"}), changed=None) == "read"
    assert purpose_of(use_of("Edit", {"file_path": "a", "old_string": "x"}), changed=None) == "edit"


def test_a_recorded_attempt_has_all_its_steps() -> None:
    found = shown(recorded("recipes/reckless"))
    first = json.loads((recorded("recipes/reckless") / "steps/round-1/agent/trajectory.json").read_text())
    assert [each["id"] for each in found.steps(1)] == [each["step_id"] for each in first["steps"]]
    assert found.round(1)["trajectory"] == {"steps": 8, "parts": 1, "first": [0], "notes": ""}
    assert {call["purpose"] for each in found.steps(1) for call in each["calls"]} >= {"edit"}
