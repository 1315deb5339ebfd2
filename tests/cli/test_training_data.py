"""``evocode export --format=sft`` and ``rl``: attempts to train on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.report.training import read_rows
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt

CANARY = "# Keep it out of training. Canary GUID evocode:a:1234\n"
TOOLS = [{"type": "function", "function": {"name": "bash"}}]
LATER_TOOLS = [{"type": "function", "function": {"name": name}} for name in ("bash", "edit")]


def step(number: int, source: str, message: str, **more: Any) -> dict[str, Any]:
    return {"step_id": number, "source": source, "message": message, **more}


def reply(number: int, command: str, output: str, **metrics: Any) -> dict[str, Any]:
    calls = [{"tool_call_id": f"c{number}", "function_name": "bash", "arguments": {"command": command}}]
    results = [{"source_call_id": f"c{number}", "content": output}]
    told = {"metrics": metrics} if metrics else {}
    return step(number, "agent", "So.", tool_calls=calls, observation={"results": results}, **told)


def write_turn(attempt: Path, round_: str, *steps: dict[str, Any], tools: list[dict[str, Any]] = TOOLS) -> None:
    agent = {"name": "shell", "version": "1", "tool_definitions": tools}
    trajectory = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": steps}
    path = attempt / "steps" / round_ / "agent" / "trajectory.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(trajectory))


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    """One that passed the first of two rounds, with the tokens of all replies."""
    path = write_attempt(tmp_path / "evocode-results", "a", "gpt", "pf", cases=["p", "pf"])
    write_turn(
        path,
        "round-1",
        step(1, "system", "You are at a shell."),
        step(2, "user", "Do one."),
        reply(3, "ls", "a", prompt_token_ids=[1, 2, 3], completion_token_ids=[4, 5], logprobs=[-0.5, -0.25]),
        reply(4, "make", "ok", prompt_token_ids=[1, 2, 3, 4, 5, 6], completion_token_ids=[7]),
    )
    write_turn(
        path,
        "round-2",
        step(1, "system", "You are at a shell."),
        step(2, "user", "Do two."),
        step(3, "agent", "", metrics={"prompt_token_ids": [1, 9], "completion_token_ids": [8]}),
        tools=LATER_TOOLS,
    )
    return path


def rows_of(evocode: Evocode, kind: str, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in evocode("export", f"--format={kind}", *arguments).out.splitlines()]


@pytest.mark.usefixtures("attempt")
def test_a_conversation_is_that_of_all_rounds_with_its_tools(evocode: Evocode) -> None:
    [row] = rows_of(evocode, "sft")
    assert [message["role"] for message in row["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant", "tool"),
        *("user", "assistant"),
    ]
    first = row["messages"][2]
    assert first["tool_calls"] == [
        {"id": "c3", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    ]
    assert row["messages"][3] == {"role": "tool", "tool_call_id": "c3", "content": "a"}
    assert row["turns"] == [{"index": 1, "first_message": 0}, {"index": 2, "first_message": 6}]
    assert row["tools"] == LATER_TOOLS
    assert (row["task"], row["agent"], row["attempt"], row["score"]) == ("a", "gpt", 1, 50.0)
    assert row["rounds"] == [
        {"round": "round-1", "index": 1, "passed": True, "reward": 1.0},
        {"round": "round-2", "index": 2, "passed": False, "reward": 0.0},
    ]


@pytest.mark.usefixtures("attempt")
def test_tokens_are_the_servers_own_with_a_mask_and_rewards_by_step(evocode: Evocode) -> None:
    [row] = rows_of(evocode, "rl")
    first, second = row["sequences"]  # The prompt of round 2 does not begin with what came before.
    assert first["token_ids"] == [1, 2, 3, 4, 5, 6, 7]
    assert first["mask"] == [0, 0, 0, 1, 1, 0, 1]
    assert first["logprobs"] == [None, None, None, -0.5, -0.25, None, None]
    assert first["steps"] == [
        {"index": 1, "begin": 3, "end": 5, "reward": 0.0},
        {"index": 1, "begin": 6, "end": 7, "reward": 1.0},
    ]
    assert (second["token_ids"], second["mask"]) == ([1, 9, 8], [0, 0, 1])
    assert second["steps"] == [{"index": 2, "begin": 2, "end": 3, "reward": 0.0}]


def test_a_reply_without_tokens_leaves_an_attempt_out(evocode: Evocode, attempt: Path) -> None:
    write_turn(attempt, "round-2", step(1, "user", "Do two."), reply(2, "ls", "a"))
    ran = evocode("export", "--format=rl")
    assert (ran.out, "1 of the attempts left out: without token ids" in ran.err) == ("", True)
    assert len(rows_of(evocode, "sft")) == 1


def test_what_is_the_infrastructures_fault_has_no_reward(evocode: Evocode, tmp_path: Path) -> None:
    path = write_attempt(tmp_path / "evocode-results", "a", "gpt", "pe")
    for name in ("round-1", "round-2"):
        write_turn(path, name, step(1, "agent", "", metrics={"prompt_token_ids": [1], "completion_token_ids": [2]}))
    [row] = rows_of(evocode, "rl")
    assert ([each["reward"] for each in row["rounds"]], row["rewards"]) == ([1.0, None], None)
    assert [each["steps"][0]["reward"] for each in row["sequences"]] == [1.0, None]


@pytest.mark.usefixtures("attempt")
def test_attempts_are_chosen_by_their_score_and_have_their_tasks_canaries(evocode: Evocode, tmp_path: Path) -> None:
    task = tmp_path / "tasks/a"
    (task / "environment").mkdir(parents=True)
    (task / "environment/Dockerfile").write_text("FROM scratch\n")
    (task / "task.toml").write_text(f'{CANARY}[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n')
    assert len(rows_of(evocode, "sft", "--min-score=50")) == 1
    assert rows_of(evocode, "sft", "--min-score=51") == []
    [row] = rows_of(evocode, "sft", "--tasks", str(tmp_path / "tasks"))
    assert row["canary"] == ["evocode:a:1234"]


@pytest.mark.usefixtures("attempt")
@pytest.mark.parametrize("kind", ["sft", "rl"])
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_files_are_read_back_as_they_were(evocode: Evocode, tmp_path: Path, kind: str, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    ran = evocode("export", f"--format={kind}", "-o", str(tmp_path / name))
    assert "1 attempt in" in ran.err
    assert [*read_rows(tmp_path / name)] == rows_of(evocode, kind)


def test_what_cannot_be_exported_is_said(evocode: Evocode, attempt: Path) -> None:
    (attempt / "steps/round-1/agent/trajectory.json").write_text("{")
    for arguments, why in (
        (("--format=sft", "--cases"), "has a row for each attempt"),
        (("--min-score=5",), "--min-score is for"),
        (("--format=sft",), "round-1/agent/trajectory.json: no trajectory in ATIF"),
    ):
        ran = evocode("export", *arguments)
        assert (ran.status != 0, why in ran.err) == (True, True), ran.err


def turn(
    round_: str, *told: tuple[list[int], list[int]], between: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The steps of a turn by the prompt and the reply of each; ``between`` is a note before the last one."""
    steps = [step(1, "user", f"Do {round_}.")]
    for number, (prompt, completion) in enumerate(told, 2):
        if between is not None and number == len(told) + 1:
            steps.append(step(9, "system", "Noted.", extra={"evocode": between}))
        steps.append(
            step(number, "agent", "", metrics={"prompt_token_ids": prompt, "completion_token_ids": completion})
        )
    return steps


def sequences_of(evocode: Evocode, attempt: Path, *steps: dict[str, Any]) -> list[list[int]]:
    write_turn(attempt, "round-1", *steps)
    write_turn(attempt, "round-2", *turn("two", ([1, 9], [8])))
    [row] = rows_of(evocode, "rl")
    *sequences, last = row["sequences"]
    assert last["token_ids"] == [1, 9, 8]
    return [each["token_ids"] for each in sequences]


def test_each_conversation_goes_on_from_its_own_tokens(evocode: Evocode, attempt: Path) -> None:
    own, helper = ([1, 2], [3]), ([1, 5], [6])
    steps = turn("one", own, helper, ([1, 2, 3, 4], [7]), ([1, 5, 6, 4], [8]))
    assert sequences_of(evocode, attempt, *steps) == [[1, 2, 3, 4, 7], [1, 5, 6, 4, 8]]


def test_a_reply_that_is_asked_for_anew_begins_a_sequence(evocode: Evocode, attempt: Path) -> None:
    steps = turn("one", ([1, 2], [3]), ([1, 2], [4]), ([1, 2, 4, 5], [6]))
    assert sequences_of(evocode, attempt, *steps) == [[1, 2, 3], [1, 2, 4, 5, 6]]


@pytest.mark.parametrize("note", [{"compaction": "summary"}, {"elided": ["c1"]}])
def test_a_conversation_that_was_shortened_begins_a_sequence(
    evocode: Evocode, attempt: Path, note: dict[str, Any]
) -> None:
    steps = turn("one", ([1, 2], [3]), ([1, 2, 3, 4], [5]), ([1, 2, 3, 7], [8]), between=note)
    assert sequences_of(evocode, attempt, *steps) == [[1, 2, 3, 4, 5], [1, 2, 3, 7, 8]]


@pytest.mark.parametrize(
    ("prompt", "where"),
    [
        ([1, 2, 30, 4, 5], "at position 2 the prompt has token 30, where before the model wrote 3."),
        ([1, 2, 3, 40, 5, 6], "at position 3 the prompt has token 40, where before was read 4."),
    ],
)
def test_a_prompt_with_other_tokens_than_before_is_refused_unless_it_may_begin_a_sequence(
    evocode: Evocode, attempt: Path, tmp_path: Path, prompt: list[int], where: str
) -> None:
    write_turn(attempt, "round-1", *turn("one", ([1, 2], [3]), ([1, 2, 3, 4], [5]), (prompt, [8])))
    (tmp_path / "rows.jsonl").write_text("of before")
    ran = evocode("export", "--format=rl", "-o", "rows.jsonl")
    assert ran.status == 1
    assert f"{attempt}: round-1, step 4: {where}" in ran.err
    assert "--split" in ran.err
    assert (tmp_path / "rows.jsonl").read_text() == "of before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evocode-results", "rows.jsonl"]
    [row] = rows_of(evocode, "rl", "--split")
    assert [each["token_ids"] for each in row["sequences"]][:2] == [[1, 2, 3, 4, 5], [*prompt, 8]]
    assert "--split is for --format=rl" in evocode("export", "--format=sft", "--split").err
