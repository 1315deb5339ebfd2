"""Conversations that are longer than their model takes: all rounds are played and graded on their own merits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.models import at, steps_of
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Asked, Part, Run, Say, Step, Tokens
from tests.model_server import ModelServer

pytestmark = [pytest.mark.turns(2), pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

GPT, OPUS = "openai/gpt-5", "anthropic/claude-opus-4-5"
WINDOW = 6_000
#: Arguments of one call, in characters: three of them fill half of the window.
LONG = "x" * 4_000
SUMMARY = "The word is cormorant. Each round so far appended its line to log.txt."


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "a-key-of-the-tests")
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)


def rounds_with_long_files(rounds: int) -> Any:
    """A model that writes three long files a round by heredocs; it knows of the conversation only what it is sent."""
    steps: list[Part] = []
    for index in range(1, rounds + 1):
        steps += [Run(f"cat > file-{index}-{n}.txt <<'END'\n{LONG}\nEND\nseq 900") for n in range(3)]
        steps += [Run(f"echo line-{index} >> log.txt"), Say(f"Round {index} is done. " + "I explain it. " * 60)]
    said = iter(steps)

    def answer(asked: Asked) -> Step:
        counted = Tokens(prompt=len(json.dumps(asked.body)) // 4, completion=50)
        if asked.system.startswith("You write the summary"):
            return [Say(SUMMARY), counted]
        step = next(said)
        return [step, counted]

    return answer


@pytest.mark.parametrize(("spec", "known"), [(GPT, True)])
@pytest.mark.nightly
def test_four_rounds_in_a_short_window_are_all_played_and_graded(
    write_task: WriteTask, run_tasks: RunTasks, spec: str, known: bool
) -> None:
    write_task("a", 4)
    option = f"--evocode-agent-option=context_tokens={WINDOW if known else 900_000}"
    with ModelServer(rounds_with_long_files(4), context_tokens=WINDOW) as server:
        session = run_tasks(*at(server, spec), option, "tasks", agent=None)
        sent = [json.dumps(asked.body) for asked in server.asked]
    assert session.outcomes == {"passed": 4}
    name = spec.partition("/")[2]
    assert [record.stopped for record in session.record(agent=name).rounds] == [""] * 4
    assert "line-4" in sent[-1]
    assert sent[-1].count(LONG) < 6  # Of twelve.
    notes = [
        step["extra"]["evocode"]
        for index in range(1, 5)
        for step in steps_of(session, f"round-{index}", name)
        if step["source"] == "system" and "extra" in step
    ]
    kinds = {note.get("compaction", "outputs") for note in notes}
    assert {"outputs", "calls"} <= kinds


@pytest.mark.nightly
@pytest.mark.parametrize(("spec", "known"), [(GPT, False), (OPUS, True), (OPUS, False)])
def test_every_model_plays_four_rounds_in_a_short_window_that_is_known_or_not(
    write_task: WriteTask, run_tasks: RunTasks, spec: str, known: bool
) -> None:
    test_four_rounds_in_a_short_window_are_all_played_and_graded(write_task, run_tasks, spec, known)


KILLS = """
    import os, signal
    from pathlib import Path
    from pytest_evocode.trajectories.recorder import Recorder

    observe = Recorder.observe

    def killing(self, call_id, content, *more):
        if "here it ends" in str(content):
            os.kill(os.getpid(), signal.SIGKILL)
        observe(self, call_id, content, *more)

    # The session that goes on shares its process, and so the recorder, with other tests.
    if (Path(__file__).parent / "kill").exists():
        Recorder.observe = killing
"""


def needs_a_summary(asked: Asked) -> Step:
    """A model that says so much that nothing but a summary makes room, and then does what it was asked for."""
    counted = Tokens(prompt=len(json.dumps(asked.body)) // 4, completion=10)
    if asked.system.startswith("You write the summary"):
        assert "[runs bash]" in asked.said[-1]
        return [Say(SUMMARY), counted]
    if SUMMARY in " ".join(asked.said):
        assert "Append line-1" in " ".join(asked.said)  # The newest request is never left out.
        done = asked.replies != 3
        return [Say("Done.") if done else Run("echo line-1 >> log.txt; echo here it ends"), counted]
    # Too short for anything but a summary.
    return [Say("I think about it. " * 12), Run(f"echo {asked.replies}"), counted]


@pytest.mark.nightly
def test_a_summary_is_paid_for_and_recorded_as_such(write_task: WriteTask, run_tasks: RunTasks) -> None:
    with ModelServer(needs_a_summary, context_tokens=WINDOW) as server:
        options = [*at(server, GPT), f"--evocode-agent-option=context_tokens={WINDOW}"]
        write_task("a", 1, files={"steps/round-1/instruction.md": "Append line-1 to log.txt. " + "It matters. " * 9})
        session = run_tasks(*options, "tasks", agent=None)
        requests = len(server.asked)
    assert session.outcomes == {"passed": 1}
    [note] = [
        step["extra"]["evocode"]
        for step in steps_of(session, "round-1", "gpt-5")
        if step["source"] == "system" and (step.get("extra") or {}).get("evocode", {}).get("compaction") == "summary"
    ]
    assert note["summary"] == SUMMARY
    assert note["usage"]["requests"] == 1
    usage = session.record(agent="gpt-5").rounds[0].usage
    assert usage is not None
    assert usage.requests == requests


@pytest.mark.nightly
def test_a_killed_session_neither_pays_for_its_summary_twice_nor_goes_on_with_another_conversation(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, files={"steps/round-1/instruction.md": "Append line-1 to log.txt."})
    pytester.makeconftest(KILLS)
    (pytester.path / "kill").touch()
    with ModelServer(needs_a_summary, context_tokens=WINDOW) as server:
        arguments = [*at(server, GPT), f"--evocode-agent-option=context_tokens={WINDOW}", "tasks"]
        assert run_tasks(*arguments, agent=None, subprocess=True).exit_status == -9
        before = list(server.asked)
        (pytester.path / "kill").unlink()
        session = run_tasks(*arguments, "--evocode-resume", agent=None)
        [last] = server.asked[len(before) :]
    assert session.outcomes == {"passed": 1}
    assert sum(asked.system.startswith("You write the summary") for asked in before) == 1
    sent = before[-1].body["messages"]
    assert last.body["messages"][: len(sent)] == sent
    usage = session.record(agent="gpt-5").rounds[0].usage
    assert usage is not None
    assert usage.requests == len(before) + 1


def test_a_round_that_overflows_all_the_same_is_stopped_and_the_next_begins_with_a_short_conversation(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, files={"steps/round-1/instruction.md": "Append line-1 to log.txt. " + "It matters. " * 3000})

    def answer(asked: Asked) -> Step:
        assert "It matters" not in json.dumps(asked.body)
        return Run("printf 'line-1\\nline-2\\n' > log.txt") if asked.replies == 1 else Say("Done.")

    with ModelServer(answer, context_tokens=WINDOW) as server:
        session = run_tasks(*at(server, GPT), f"--evocode-agent-option=context_tokens={WINDOW}", "tasks", agent=None)
    first, second = session.record(agent="gpt-5").rounds
    assert first.stopped.startswith("context: the conversation is longer than the model takes")
    assert (first.outcome, second.outcome, second.stopped) == ("failed", "passed", "")
    told = [step["message"] for step in steps_of(session, "round-2", "gpt-5") if step["source"] == "system"]
    assert any("was left out, because it was longer than the model takes" in message for message in told)
