"""Agents that speak the Agent Client Protocol: whole sessions with a real program in the container."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import atif
from tests.acceptance.models import steps_of
from tests.acceptance.sessions import RunTasks, Session
from tests.acceptance.tasks import DOCKERFILE, WriteTask

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("acp_sdk")]

PROGRAM = (Path(__file__).parent / "acp_program.py").read_text()
IMAGE = DOCKERFILE + "COPY agent.py /srv/agent.py\nRUN useradd -m worker && chown worker /app\n"
WORKER = '[agent]\nuser = "worker"\n'
STAYS, LOADS = "acp:python3 /srv/agent.py", "acp:python3 /srv/agent.py loads"
NAMES = {STAYS: "acp-agent.py", LOADS: "acp-agent.py-loads"}


@pytest.fixture(scope="session")
def acp_sdk() -> None:
    """The SDK, imported once: pytester forgets what a test imports, and the next had a second copy."""
    import pytest_evocode.agents.acp.connection  # noqa: F401


def written(*requests: str) -> dict[str, str]:
    texts = {f"steps/round-{number}/instruction.md": request for number, request in enumerate(requests, 1)}
    return texts | {"environment/agent.py": PROGRAM}


def calls(session: Session, round_: str, agent: str) -> list[tuple[str, dict[str, Any], str, Any]]:
    """The calls of a round: tool, arguments, result and exit code."""
    found = []
    for step in steps_of(session, round_, agent):
        results = {each["source_call_id"]: each["content"] for each in step.get("observation", {}).get("results", ())}
        codes = {
            each["tool_call_id"]: each["exit_code"]
            for each in step.get("extra", {}).get("evocode", {}).get("actions", ())
        }
        for call in step.get("tool_calls", ()):
            number = call["tool_call_id"]
            found.append((call["function_name"], call.get("arguments", {}), results[number], codes[number]))
    return found


@pytest.mark.parametrize(("spec", "env"), [(STAYS, "sandbox")])
@pytest.mark.nightly
def test_an_agent_keeps_its_session_works_by_its_clients_means_and_is_recorded_with_why_it_stopped(
    write_task: WriteTask, run_tasks: RunTasks, spec: str, env: str
) -> None:
    first = "remember: heliotrope\nplan: Write the log.\nrun: echo line-1 >> log.txt; id -un; exit 3\nsay: Done.\n"
    second = "recall: word.txt\nwrite: deep/note.txt some words\nread: deep/note.txt\nread: none.txt\n"
    second += "run: echo line-2 >> log.txt\n"
    test = "grep -qx heliotrope word.txt && grep -qx 'some words' deep/note.txt && grep -qx line-2 log.txt"
    tests = {2: f"{test}; echo $((1 - $?)) > /logs/verifier/reward.txt"}
    write_task("a", 2, toml=WORKER, dockerfile=IMAGE, files=written(first, second), test=tests)
    stops = {"refusal": "refused to go on", "max_tokens": "cut off"}
    for reason in stops:
        write_task(reason, 1, dockerfile=IMAGE, files=written(f"run: echo line-1 >> log.txt\nstop: {reason}\n"))
    write_task("dies", 1, dockerfile=IMAGE, files=written("die: \n"))
    session = run_tasks("tasks", agent=spec, env=env, replay=False)
    assert session.outcomes == {"passed": 4, "errors": 1}
    agent = NAMES[spec]
    for reason, words in stops.items():
        (stopped,) = session.record(reason, agent).rounds
        assert words in str(stopped.stopped)
    # One that ends is an error with its last lines.
    session.has("*could not do its turn*its program has ended with exit code 1*", "*I was told to end.*")
    planned, ran = calls(session, "round-1", agent)
    assert planned == ("update_plan", {"plan": [{"step": "Write the log.", "status": "pending"}]}, "", None)
    assert ran == ("execute", {"command": "echo line-1 >> log.txt; id -un; exit 3"}, "worker\n", 3)
    steps = steps_of(session, "round-1", agent)
    assert [step["message"] for step in steps if step["source"] == "agent"] == ["", "I run it.", "Done."]
    assert steps[-1]["reasoning_content"] == "Hm."
    wrote, read, refused, _ = calls(session, "round-2", agent)
    assert wrote[0] == "write"
    assert json.loads(read[2]) == {"content": "some words\n"}
    assert "No such file" in refused[2]
    assert not any("What I said before" in step["message"] for step in steps_of(session, "round-2", agent))
    record = session.record(agent=agent)
    usage = [round_.usage for round_ in record.rounds]
    counted = [
        (each.prompt_tokens, each.completion_tokens, each.cached_tokens, each.cost_usd) for each in usage if each
    ]
    assert counted == [(110, 20, 30, 0.25)] * 2
    trajectory = json.loads((session.attempt("a", agent) / "steps/round-1/agent/trajectory.json").read_text())
    assert trajectory["agent"]["version"] == "1.2"
    assert atif.violations(trajectory) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("spec", "env"),
    [(LOADS, "sandbox"), *(pytest.param(spec, "docker", marks=pytest.mark.docker) for spec in NAMES)],
)
def test_so_does_one_that_loads_sessions_and_one_in_docker(
    write_task: WriteTask, run_tasks: RunTasks, spec: str, env: str
) -> None:
    test_an_agent_keeps_its_session_works_by_its_clients_means_and_is_recorded_with_why_it_stopped(
        write_task, run_tasks, spec, env
    )


@pytest.mark.nightly
def test_a_turn_that_is_out_of_time_loses_the_session_and_the_next_says_so(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    first = "remember: heliotrope\nrun: echo line-1 >> log.txt\nsleep: \n"
    second = "run: echo line-2 >> log.txt\nrecall: word.txt\nrun: cat word.txt\n"
    toml = "[agent]\ntimeout_sec = 5\n"
    write_task("a", 2, toml=toml, dockerfile=IMAGE, files=written(first, second))
    session = run_tasks("tasks", agent=STAYS, replay=False)
    assert session.outcomes == {"passed": 2}
    assert session.record(agent=NAMES[STAYS]).rounds[0].timed_out
    said = [step["message"] for step in steps_of(session, "round-2", NAMES[STAYS]) if step["source"] == "system"]
    assert said == [
        f"{NAMES[STAYS]} cannot load sessions, and its program has ended: a new session begins, without memory"
    ]
    assert calls(session, "round-2", NAMES[STAYS])[-1][2] == "forgotten\n"


@pytest.mark.parametrize("spec", [STAYS, LOADS])
@pytest.mark.nightly
def test_a_round_may_begin_a_new_session(write_task: WriteTask, run_tasks: RunTasks, spec: str) -> None:
    requests = [f"run: echo line-{index} >> log.txt\n" for index in (1, 2, 3)]
    requests[0] += "remember: heliotrope\n"
    look = "recall: word.txt\nrun: cat word.txt\n"
    files = written(requests[0], requests[1] + look, requests[2] + look)
    write_task("a", 3, dockerfile=IMAGE, files=files, step={3: "inherit_prior_session = false"})
    session = run_tasks("tasks", agent=spec, replay=False)
    assert session.outcomes == {"passed": 3}
    recalled = [calls(session, f"round-{index}", NAMES[spec])[-1][2] for index in (2, 3)]
    assert recalled == ["heliotrope\n", "forgotten\n"]


def test_a_program_that_does_not_speak_the_protocol_is_an_error(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("tasks", agent="acp:echo Hello; echo What? >&2; exit 5", replay=False)
    assert session.outcomes == {"errors": 1}
    session.has("*initialize: Connection closed; its program has ended with exit code 5. Its last lines:*", "*What?*")


def test_limits_of_what_an_agent_need_not_tell_are_refused(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-budget=tokens=100", "tasks", agent=STAYS, replay=False)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "limit minutes only" in session.text
