"""Rollouts to train on: the tokens that a server read and wrote, from sessions through ``evocode export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.cli import main
from pytest_evocode.llm.token_ids import TokenServer as Kind
from pytest_evocode.report.training import read_rows
from tests.acceptance.models import in_rounds
from tests.acceptance.sessions import RunTasks, Session
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Run, Say
from tests.token_server import TokenServer, Written

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

#: An agent whose conversation goes on over all rounds, and that takes no field which it does not know.
PROGRAM = """
import json, os, subprocess, urllib.request

KNOWN = {"index", "message", "delta", "finish_reason", "logprobs"}
STREAMS = os.environ["EVOCODE_MODEL"] == "streams"

def ask(messages):
    parameters = {"type": "object", "properties": {"command": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "bash", "parameters": parameters}}]
    body = {"model": "mine", "messages": messages, "tools": tools} | ({"stream": True} if STREAMS else {})
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    answer = urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), headers))
    if not STREAMS:
        answers = [json.load(answer)]
    else:
        lines = [line.decode()[6:].strip() for line in answer if line.startswith(b"data: ")]
        answers = [json.loads(line) for line in lines[:-1]]
    content, calls = "", {}
    for each in answers:
        assert not {"prompt_token_ids", "meta_info"} & each.keys(), each
        for choice in each["choices"]:
            assert choice.keys() <= KNOWN and not choice.get("logprobs"), choice
            piece = choice["delta" if STREAMS else "message"]
            content += piece.get("content") or ""
            for call in piece.get("tool_calls") or ():
                known = calls.setdefault(call.get("index", 0), {"id": call.get("id"), "name": "", "arguments": ""})
                for name in ("name", "arguments"):
                    known[name] += call["function"].get(name) or ""
    found = {"role": "assistant", "content": content or None}
    if calls:
        found["tool_calls"] = [{"id": call.pop("id"), "type": "function", "function": call} for call in calls.values()]
    return found

messages = json.load(open("/tmp/told.json")) if os.path.exists("/tmp/told.json") else []
messages.append({"role": "user", "content": open(os.environ["EVOCODE_INSTRUCTION_FILE"]).read()})
while True:
    messages.append(ask(messages))
    for call in messages[-1].get("tool_calls") or ():
        command = json.loads(call["function"]["arguments"])["command"]
        done = subprocess.run(command, shell=True, capture_output=True, text=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout})
    if messages[-1]["role"] == "assistant":
        break
json.dump(messages, open("/tmp/told.json", "w"))
"""
SCRIPT = in_rounds(
    [[Say("I write the first line."), Run("echo line-1 >> log.txt; ls")], Run("cat log.txt")],
    [Run("echo line-2 >> log.txt; cat log.txt")],
    [[Say("The last one."), Run("echo line-3 >> log.txt")], Run("wc -l log.txt")],
)
each_kind = pytest.mark.parametrize("kind", ["vllm", "sglang"])


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def declare(pytester: pytest.Pytester) -> Any:
    """Declares the program as a command, and says how it is run."""

    def declared(server: TokenServer, kind: Kind, *, stream: bool = False) -> list[str]:
        start = f"cat >/tmp/mine.py <<'END'\n{PROGRAM}END\nexec python3 /tmp/mine.py"
        values = {"start": start, "api": "openai", "base_url": f"{server.url}/v1", "token_ids": kind}
        lines = (f"{name} = {json.dumps(value)}" for name, value in values.items())
        text = "\n".join(["[tool.pytest-evocode.commands.mine]", *lines])
        (pytester.path / "pyproject.toml").write_text(text)
        return ["--evocode-agent-option=model=" + ("streams" if stream else "waits"), "tasks"]

    return declared


def export(session: Session, *options: str) -> list[dict[str, Any]]:
    """The rows that ``evocode export`` writes."""
    path = session.directory / "rows.jsonl"
    with pytest.raises(SystemExit) as ended:
        main(["export", "--format=rl", "-o", str(path), *options, str(session.results)])
    assert not ended.value.code, ended.value
    return [*read_rows(path)]


def one_sequence(log: list[Written]) -> dict[str, list[Any]]:
    """The sequence of a conversation that went on from its own tokens, by the log of its server."""
    ids = [*log[-1].prompt, *log[-1].completion]
    mask, logprobs = [0] * len(ids), [None] * len(ids)
    for each in log:
        begin, end = len(each.prompt), len(each.prompt) + len(each.completion)
        assert ids[:end] == each.prompt + each.completion
        mask[begin:end] = [1] * (end - begin)
        logprobs[begin:end] = each.logprobs  # type: ignore[assignment]
    return {"token_ids": ids, "mask": mask, "logprobs": logprobs}


def has_tokens_of(row: dict[str, Any], log: list[Written]) -> None:
    """Look at the one sequence of an attempt that passed three rounds with eight replies."""
    [sequence] = row["sequences"]
    expected = one_sequence(log)
    assert {name: sequence[name] for name in expected} == expected
    steps = [(step["index"], step["begin"], step["end"], step["reward"]) for step in sequence["steps"]]
    ends = [(len(each.prompt), len(each.prompt) + len(each.completion)) for each in log]
    rounds, rewards = [1, 1, 1, 2, 2, 3, 3, 3], [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    assert steps == [(index, *end, reward) for index, end, reward in zip(rounds, ends, rewards, strict=True)]


@each_kind
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_program_that_knows_nothing_of_tokens_is_trained_on_those_of_its_server(
    write_task: WriteTask, run_tasks: RunTasks, declare: Any, kind: Kind, stream: bool
) -> None:
    write_task("a", 3)
    with TokenServer(SCRIPT, kind) as server:
        session = run_tasks(*declare(server, kind, stream=stream), agent="cmd:mine")
        [row] = export(session)
        [taught] = export(session, "--format=sft")
    assert session.outcomes == {"passed": 3}
    has_tokens_of(row, server.log)
    assert taught["tools"] == server.asked[0].body["tools"]


@each_kind
@pytest.mark.usefixtures("model_sdks")
def test_a_model_of_the_shell_agent_is_trained_on_the_tokens_of_its_server(
    write_task: WriteTask, run_tasks: RunTasks, kind: Kind
) -> None:
    write_task("a", 3)
    with TokenServer(SCRIPT, kind) as server:
        options = [f"base_url={server.url}/v1", f"token_ids={kind}"]
        told = [f"--evocode-agent-option={option}" for option in options]
        session = run_tasks(*told, "tasks", agent="openai/mine")
        [row] = export(session)
        [taught] = export(session, "--format=sft")
    assert session.outcomes == {"passed": 3}
    has_tokens_of(row, server.log)
    assert taught["tools"] == server.asked[0].body["tools"]
    assert {bool(asked.body.get("stream")) for asked in server.asked} == {kind == "vllm"}


def test_a_server_that_makes_other_tokens_of_what_the_model_wrote_is_refused(
    write_task: WriteTask, run_tasks: RunTasks, declare: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    write_task("a", 3)
    with TokenServer(SCRIPT, "vllm", spells_out=True) as server:
        session = run_tasks(*declare(server, "vllm"), agent="cmd:mine")
        capsys.readouterr()
        with pytest.raises(SystemExit, match="1"):
            main(["export", "--format=rl", "-o", str(session.directory / "rows.jsonl"), str(session.results)])
    first, second = server.log[:2]
    before = first.prompt + first.completion
    at = next(at for at, (one, other) in enumerate(zip(before, second.prompt, strict=False)) if one != other)
    assert at >= len(first.prompt)
    told = capsys.readouterr().err
    assert f"{session.attempt('a', 'mine')}: round-1, step 3: at position {at} the prompt has token" in told
    assert f"token {second.prompt[at]}, where before the model wrote {before[at]}." in told
    assert not (session.directory / "rows.jsonl").exists()
    [row] = export(session, "--split")
    wholes = [one_sequence([each]) for each in server.log]
    assert [{name: each[name] for name in wholes[0]} for each in row["sequences"]] == wholes


@pytest.mark.parametrize("agent", ["cmd:mine", "openai/mine"])
@pytest.mark.usefixtures("model_sdks")
def test_a_server_that_says_no_tokens_ends_the_attempt_with_what_to_do(
    write_task: WriteTask, run_tasks: RunTasks, declare: Any, agent: str
) -> None:
    write_task("a", 3)
    with TokenServer(SCRIPT, None) as server:
        options = declare(server, "vllm")
        if agent != "cmd:mine":
            given = (f"base_url={server.url}/v1", "token_ids=vllm")
            options = [*(f"--evocode-agent-option={each}" for each in given), "tasks"]
        session = run_tasks(*options, agent=agent)
        assert len(server.asked) == 1
    first, *rest = session.record("a", "mine").rounds
    assert (first.outcome, first.fault) == ("error", "infrastructure")
    assert f"{server.url}/v1: the server said no token ids; token_ids=vllm asks for them" in first.cause
    assert "Set token_ids=sglang where it is such a server" in first.cause
    assert {each.outcome for each in rest} == {"not reached"}


def test_tokens_are_asked_for_where_they_can_be_had(
    write_task: WriteTask, run_tasks: RunTasks, declare: Any, pytester: pytest.Pytester
) -> None:
    write_task("a", 1)
    with TokenServer(SCRIPT, "vllm") as server:
        declare(server, "vllm")
        table = Path(pytester.path / "pyproject.toml")
        text = table.read_text()
        for other, why in (
            (text.replace('"openai"', '"anthropic"'), "token_ids = 'vllm' needs api = 'openai'"),
            (f'{text}\ntrajectory = "/tmp/t.json"', "leave trajectory out"),
        ):
            table.write_text(other)
            session = run_tasks("--evocode-agent-option=model=waits", "tasks", agent="cmd:mine")
            assert session.exit_status == pytest.ExitCode.USAGE_ERROR
            assert why in session.text
