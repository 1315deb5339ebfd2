"""Models that are asked over HTTP, as the built-in shell agent: whole sessions."""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import total_usage
from pytest_evocode.tasks import load_task
from tests.acceptance.models import at, in_rounds, solver, steps_of
from tests.acceptance.sessions import RunTasks, Session
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Answer, Asked, Delay, Fail, Part, Run, Say, Step, Tokens, Use
from tests.model_server import ModelServer

pytestmark = [pytest.mark.turns(3), pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

EXAMPLE = Path(__file__).parents[2] / "example_tasks" / "process" / "recipes"
GPT, OPUS = "openai/gpt-5", "anthropic/claude-opus-4-5"
#: US dollars per million tokens.
PRICES = {"models": {name: {"input": 1.0, "output": 10.0} for name in ("gpt-5", "claude-opus-4-5")}}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "a-key-of-the-tests")
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)


@pytest.fixture
def priced(pytester: pytest.Pytester) -> str:
    """The option with a table of prices."""
    (pytester.path / "prices.json").write_text(json.dumps(PRICES))
    return "--evocode-agent-option=prices=prices.json"


def plays(solution: Path) -> Run:
    """The command that a reference solution is, with its files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(solution, "solution")
    text = base64.b64encode(packed.getvalue()).decode()
    return Run(
        f"mkdir -p /tmp/s && echo {text} | base64 -d | tar -xzC /tmp/s && cd /tmp/s/solution && "
        "sed -i 's#/solution#/tmp/s/solution#g' solve.sh && cd - && bash /tmp/s/solution/solve.sh; rm -rf /tmp/s"
    )


def summary_has_what_it_took(session: Session, task: str, spec: str) -> None:
    """Look at the numbers of a session of three rounds with two requests each."""
    name = spec.partition("/")[2]
    assert session.outcomes == {"passed": 3}
    session.has("agent*Dataset Score*Avg Rounds*prompt tokens*completion tokens*cost*")
    # 6 requests of 1,000 and 50 tokens at 1 and 10 dollars a million.
    session.has(f"{name}*100.0*1.0*1/1*6,000*300*$0.0090*")
    record = session.record(task, name)
    usage = total_usage(round_.usage for round_ in record.rounds)
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.requests) == (6_000, 300, 6)
    assert usage.cost_usd == pytest.approx(0.009)
    assert record.made_by["spec"] == spec


@pytest.mark.parametrize(
    ("spec", "env"), [(GPT, "sandbox"), pytest.param(OPUS, "docker", marks=pytest.mark.docker), (OPUS, "sandbox")]
)
@pytest.mark.nightly  # By day models solve tiny tasks, and test_golden_results.py has the example.
def test_a_model_solves_an_example_task(run_tasks: RunTasks, priced: str, spec: str, env: str) -> None:
    rounds = load_task(EXAMPLE).rounds
    script = in_rounds(*([plays(round_.solution)] for round_ in rounds if round_.solution))
    with ModelServer(script, tokens=Tokens(prompt=1000, completion=50)) as server:
        session = run_tasks(*at(server, spec), priced, str(EXAMPLE), agent=None, env=env)
    summary_has_what_it_took(session, "recipes", spec)


@pytest.mark.parametrize(
    ("style", "recorded", "primes"),
    [("", "full", True), ("full", "full", True), ("bare", "bare", False)],
)
@pytest.mark.matrix("style")
def test_the_prompt_may_say_nothing_of_how_to_work_and_the_record_says_which_it_was(
    write_task: WriteTask, run_tasks: RunTasks, style: str, recorded: str, primes: bool
) -> None:
    write_task("a", 1)
    options = [f"--evocode-agent-option=prompt_style={style}"] if style else []
    with ModelServer(solver(1)) as server:
        session = run_tasks(*at(server, GPT), *options, "tasks", agent=None)
    assert session.outcomes == {"passed": 1}
    [prompt] = {asked.system for asked in server.asked}
    assert ("still holds" in prompt) == primes
    assert all(each in prompt for each in ("/app", "`bash`", "120 seconds"))
    trajectory = session.attempt("a", "gpt-5") / "steps/round-1/agent/trajectory.json"
    assert json.loads(trajectory.read_text())["agent"]["extra"] == {"prompt": recorded}
    assert json.dumps(session.record(agent="gpt-5").made_by).count("prompt_style") == bool(style)


def test_a_prompt_of_ones_own_has_no_style(write_task: WriteTask, run_tasks: RunTasks, tmp_path: Path) -> None:
    write_task("a", 1)
    (tmp_path / "prompt.md").write_text("Work.")
    options = [f"--evocode-agent-option=prompt={tmp_path / 'prompt.md'}", "--evocode-agent-option=prompt_style=bare"]
    with ModelServer([]) as server:
        session = run_tasks(*at(server, GPT), *options, "tasks", agent=None)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "leave one of them out" in session.text


@pytest.mark.parametrize("spec", [GPT, OPUS])
@pytest.mark.matrix
def test_the_conversation_goes_on_over_all_rounds_and_the_summary_has_what_it_took(
    write_task: WriteTask, run_tasks: RunTasks, priced: str, spec: str
) -> None:
    write_task(
        "a",
        3,
        files={
            "steps/round-1/instruction.md": "The word is cormorant. Append line-1 to log.txt.",
            "steps/round-3/instruction.md": "Write the word of the first request to word.txt.",
            "steps/round-3/tests/test.sh": "grep -qx cormorant word.txt; echo $((1 - $?)) > /logs/verifier/reward.txt",
        },
    )

    def remembers(asked: Asked) -> Step:
        """Knows of the conversation only what is sent to it."""
        index, finished = len(asked.said), asked.replies % 2
        if finished:
            return Say("Done.")
        word = re.search(r"The word is (\w+)", " ".join(asked.said))
        return Run(f"echo line-{index} >> log.txt; echo {word[1] if word else 'forgotten'} > word.txt")

    with ModelServer(remembers, tokens=Tokens(prompt=1000, completion=50)) as server:
        session = run_tasks(*at(server, spec), priced, "tasks", agent=None)
        assert len(server.asked) == 6
        assert server.is_left()
    summary_has_what_it_took(session, "a", spec)


@pytest.mark.nightly
def test_a_round_may_begin_a_new_conversation(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 3, step={3: "inherit_prior_session = false"})

    def works(asked: Asked) -> Step:
        """Appends the line of the request that came last."""
        return Say("Done.") if asked.replies % 2 else Run(f"echo {asked.said[-1].split()[1]} >> log.txt")

    with ModelServer(works) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
        heard = [[text.split()[1] for text in asked.said] for asked in server.asked if not asked.replies % 2]
    assert session.outcomes == {"passed": 3}
    assert heard == [["line-1"], ["line-1", "line-2"], ["line-3"]]


# The session is killed when the last round's second command has run: the model was paid for two replies there.
KILLS = """
    import os, signal
    from pathlib import Path
    from pytest_evocode.trajectories.recorder import Recorder

    HERE = Path(__file__).parent
    observe = Recorder.observe

    def killing(self, call_id, content, action=None, extra=None):
        if "here it ends" in content:
            os.kill(os.getpid(), signal.SIGKILL)
        observe(self, call_id, content, action, extra)

    # The session that goes on shares its process, and so the recorder, with other tests.
    if (HERE / "kill").exists():
        Recorder.observe = killing
"""


@pytest.mark.nightly
def test_a_killed_run_goes_on_with_its_conversation_and_pays_nothing_twice(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, priced: str
) -> None:
    write_task("a", 2)
    (pytester.path / "kill").touch()
    pytester.makeconftest(KILLS)
    second: list[Step] = [Run("echo half > half.txt"), Run("echo line-2 >> log.txt; echo here it ends")]
    script = in_rounds([Run("echo line-1 >> log.txt")], second)
    with ModelServer(script) as server:
        arguments = [*at(server, GPT), priced, "--evocode-budget=turns=5", "tasks"]
        killed = run_tasks(*arguments, agent=None, subprocess=True)
        assert killed.exit_status == -9
        assert len(server.asked) == 4
        (pytester.path / "kill").unlink()
        session = run_tasks(*arguments, "--evocode-resume", agent=None)
        before, after = server.asked[:4], server.asked[4:]
    assert session.outcomes == {"passed": 2}
    assert len(after) == 1  # For the last reply, that it is done.
    sent = _messages(after[0])
    assert sent[: len(_messages(before[-1]))] == _messages(before[-1])
    assert after[0].replies == 4
    usage = session.record(agent="gpt-5").rounds[1].usage
    assert usage is not None
    assert usage.requests == 3
    assert len(next((session.results / "runs").glob("*.spent")).read_text().split()) == 5
    assert [step["source"] for step in steps_of(session, "round-2", "gpt-5")] == ["user", "agent", "agent", "agent"]


@pytest.mark.nightly
def test_the_time_that_a_killed_session_waited_for_its_model_is_the_turns_own(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    (pytester.path / "kill").touch()
    pytester.makeconftest(KILLS)
    slow: Step = [Delay(5), Run("echo line-1 >> log.txt; echo here it ends")]
    with ModelServer([slow, Say("Done.")]) as server:
        arguments = [*at(server, GPT), "tasks"]
        assert run_tasks(*arguments, agent=None, subprocess=True).exit_status == -9
        (pytester.path / "kill").unlink()
        session = run_tasks(*arguments, "--evocode-resume", agent=None)
    (record,) = session.record(agent="gpt-5").rounds
    assert record.passed
    assert record.agent_seconds is not None
    assert record.agent_seconds > 5


@pytest.mark.nightly
def test_what_one_model_said_is_not_taken_for_anothers(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    (pytester.path / "kill").touch()
    pytester.makeconftest(KILLS)
    project = pytester.path / "pyproject.toml"
    project.write_text(f'[tool.pytest-evocode.agents.mine]\nspec = "{GPT}"\n')
    with ModelServer(in_rounds([Run("echo line-1 >> log.txt; echo here it ends")])) as server:
        arguments = ["--evocode-agent=mine", f"--evocode-agent-option=base_url={server.url}/v1", "tasks"]
        assert run_tasks(*arguments, agent=None, subprocess=True).exit_status == -9
        (pytester.path / "kill").unlink()
        project.write_text('[tool.pytest-evocode.agents.mine]\nspec = "openai/another"\n')
        session = run_tasks(*arguments, "--evocode-resume", agent=None)
        assert len(server.asked) == 1
    session.has("*journal.jsonl: this turn was begun by an agent with other options*openai/gpt-5*")
    assert session.outcomes == {"errors": 1}


@pytest.mark.slow
def test_another_server_is_another_agent_however_it_is_named(
    monkeypatch: pytest.MonkeyPatch, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    with ModelServer(solver(1)) as one, ModelServer(solver(1)) as other:
        first = run_tasks(*at(one, GPT), "tasks", agent=None)
        asked = one.url.removeprefix("http://")
        assert first.record(agent="gpt-5").made_by["options"] == {"base_url": f"http://{asked}/v1"}
        monkeypatch.setenv("OPENAI_BASE_URL", f"{other.url}/v1")
        resumed = run_tasks(f"--evocode-agent={GPT}", "--evocode-resume", "tasks", agent=None)
        second = run_tasks(f"--evocode-agent={GPT}", "tasks", agent=None)
    assert (resumed.outcomes, resumed.exit_status) == ({}, pytest.ExitCode.USAGE_ERROR)
    assert second.outcomes == {"passed": 1}
    rows = score_table(load_results([second.results])).rows
    assert sorted(row.label for row in rows) == sorted(
        f"gpt-5 base_url={each.url.removeprefix('http://')}" for each in (one, other)
    )


def _messages(asked: Asked) -> list[Any]:
    found: list[Any] = asked.body["input" if "input" in asked.body else "messages"]
    return found


@pytest.mark.parametrize(
    ("budget", "requests", "cause"),
    [
        ("turns=3", 3, "budget: turns 3 of 3 used"),
        ("tokens=2100", 2, "budget: tokens 2,100 of 2,100 used"),
        ("cost=0.003", 2, "budget: cost $0.003 of $0.003 used"),
    ],
)
@pytest.mark.matrix
@pytest.mark.nightly
def test_at_a_budgets_limit_the_turn_ends_and_what_is_there_is_graded(
    write_task: WriteTask, run_tasks: RunTasks, priced: str, budget: str, requests: int, cause: str
) -> None:
    write_task("a", 3)
    with ModelServer(solver(3), tokens=Tokens(prompt=1000, completion=50)) as server:
        session = run_tasks(*at(server, GPT), priced, f"--evocode-budget={budget}", "tasks", agent=None)
        assert len(server.asked) == requests
    records = session.record(agent="gpt-5").rounds
    passed = (requests + 1) // 2
    assert [record.passed for record in records] == [index < passed for index in range(3)]
    assert records[-1].stopped == cause
    assert f"the agent's turn was ended early, {cause}" in records[-1].cause
    assert records[-1].tool_calls == 0


def test_rounds_that_a_budget_ends_before_their_first_request_used_nothing(
    write_task: WriteTask, run_tasks: RunTasks, priced: str
) -> None:
    write_task("a", 3)
    with ModelServer(solver(3), tokens=Tokens(prompt=1000, completion=50)) as server:
        session = run_tasks(*at(server, GPT), priced, "--evocode-budget=turns=2", "tasks", agent=None)
    usages = [record.usage for record in session.record(agent="gpt-5").rounds]
    assert [usage and (usage.requests, usage.tokens) for usage in usages] == [(2, 2100), (0, 0), (0, 0)]
    assert [usage and usage.cost_usd for usage in usages][1:] == [0, 0]


def test_a_budget_that_cannot_be_held_because_the_server_counts_nothing_is_an_error(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    body = {"choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}]}
    with ModelServer([Answer(json.dumps(body))]) as server:
        session = run_tasks(*at(server, GPT), "--evocode-budget=tokens=1000", "tasks", agent=None)
    assert session.outcomes == {"errors": 1}
    session.has("*gpt-5: the reply does not report its tokens, which the budget limits;*")


@pytest.mark.nightly
def test_minutes_end_a_turn_in_the_middle_of_a_command(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2)
    with ModelServer([Run("echo line-1 >> log.txt; sleep 60")]) as server:
        session = run_tasks(*at(server, GPT), "--evocode-budget=minutes=0.05", "tasks", agent=None)
        assert len(server.asked) == 1
    first, second = session.record(agent="gpt-5").rounds
    assert first.passed
    assert first.timed_out is None
    assert "budget: minutes" in first.stopped
    assert "budget: minutes" in second.stopped


@pytest.mark.nightly
def test_the_limit_of_a_whole_run_holds_over_its_workers(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    for name in ("a", "b"):
        write_task(name, 3)
    (pytester.path / "dear.json").write_text(json.dumps({"models": {"gpt-5": {"input": 1000.0, "output": 0.0}}}))
    with ModelServer(solver(3), tokens=Tokens(prompt=1000, completion=50)) as server:
        session = run_tasks(
            *at(server, GPT),
            "--evocode-agent-option=prices=dear.json",
            "--evocode-budget=total-cost=4",
            "-n2",
            "tasks",
            agent=None,
        )
        # One of the two may have asked at the moment when the other reached the limit.
        assert 4 <= len(server.asked) <= 5
    assert set(session.outcomes) <= {"passed", "skipped", "warnings"}
    assert session.run.waiting.startswith("budget: total-cost $")


@pytest.mark.nightly
def test_a_turn_ends_at_the_rounds_timeout_and_the_next_round_goes_on(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, toml="[agent]\ntimeout_sec = 3")
    steps: list[Step] = [Run("echo line-1 >> log.txt; sleep 60"), Run("echo line-2 >> log.txt"), Say("Done.")]
    with ModelServer(steps) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
        assert "killed after" in server.asked[1].last_result
    first, second = session.record(agent="gpt-5").rounds
    assert (first.timed_out, first.passed) == ("agent", True)
    assert (second.timed_out, second.passed) == (None, True)


@pytest.mark.nightly
def test_a_model_that_is_too_slow_runs_out_of_time(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, toml="[agent]\ntimeout_sec = 4")
    with ModelServer([[Delay(8), Say("At last.")]]) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
    assert session.record(agent="gpt-5").rounds[0].timed_out == "agent"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Fail(401, "Incorrect API key provided: it is no key"), "Incorrect API key provided"),
        (Fail(404, "The model does not exist"), "The model does not exist"),
        (Fail(500, "The server had an error"), "The server had an error"),
    ],
)
@pytest.mark.matrix
def test_what_the_provider_refuses_is_an_error_with_its_words_and_what_was_paid_before_is_in_the_record(
    write_task: WriteTask, run_tasks: RunTasks, priced: str, step: Part, words: str
) -> None:
    write_task("a", 2)
    paid: list[Part] = [Run("touch file"), Tokens(prompt=1000, completion=50)]
    with ModelServer([paid, step, step]) as server:
        session = run_tasks(*at(server, GPT), "--evocode-agent-option=retries=0", priced, "tasks", agent=None)
    assert session.outcomes == {"errors": 1, "skipped": 1}
    assert words in session.text
    first, second = session.record(agent="gpt-5").rounds
    assert (first.outcome, second.outcome, second.usage) == ("error", "not reached", None)
    assert first.usage is not None
    assert (first.usage.tokens, first.usage.requests) == (1050, 1)


def test_without_a_key_nothing_is_started(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task("a", 1)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    session = run_tasks("tasks", agent=OPUS)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "ANTHROPIC_API_KEY" in session.text
    assert not session.results.exists()


def test_a_limit_of_costs_needs_prices(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-budget=cost=3", "tasks", agent="openai/somebodys-own")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "what somebodys-own costs is not known" in session.text


def test_two_harnesses_on_one_model_are_two_agents_of_a_run_and_take_the_options_of_the_ini_file(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    (pytester.path / "careful.md").write_text("Think of cormorants.")
    skill = pytester.path / "skills/fishing/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: fishing\ndescription: How to catch fish.\n---\nWith a net.\n")
    (pytester.path / "pyproject.toml").write_text(
        f'[tool.pytest-evocode.agents.plain]\nspec = "{GPT}"\n'
        f'[tool.pytest-evocode.agents.careful]\nspec = "{GPT}"\nrules = "careful.md"\nskills = "skills"\n'
    )
    with ModelServer(
        in_rounds([Run("cat /var/lib/evocode/skills/fishing/SKILL.md; echo line-1 >> log.txt")])
    ) as server:
        pytester.makeini(f"[pytest]\nevocode_agent_options =\n    base_url={server.url}/v1\n    temperature=0.5\n")
        # The oracle takes none of them.
        agents = [f"--evocode-agent={name}" for name in ("oracle", "plain", "careful")]
        session = run_tasks(*agents, "--evocode-replay", "tasks", agent=None)
        plain, careful = server.asked[1], server.asked[3]
    assert session.outcomes == {"passed": 3}
    assert plain.body["temperature"] == careful.body["temperature"] == 0.5
    session.has("plain *", "careful *")
    assert "cormorants" not in plain.system
    assert "Think of cormorants." in careful.system
    assert "fishing: How to catch fish. (/var/lib/evocode/skills/fishing/SKILL.md)" in careful.system
    assert "With a net." in careful.last_result
    assert session.record(agent="careful").made_by["options"]["rules"]["path"] == "careful.md"


def test_an_agent_that_is_declared_wrongly_is_a_usage_error_with_file_and_line(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    path = pytester.path / "pyproject.toml"
    path.write_text(f'[tool.pytest-evocode.agents.careful]\nspec = "{GPT}"\nefort = "high"\n')
    session = run_tasks("tasks", agent="careful")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"{path}:1: {GPT} has no option 'efort'; did you mean 'effort'?" in session.text


def test_an_option_that_no_agent_of_the_run_takes_is_refused(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-agent-option=effort=high", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "--evocode-agent-option: oracle has no option 'effort'; it takes none" in session.text


@pytest.mark.nightly
def test_a_conversation_that_gets_too_long_loses_its_oldest_outputs_first(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    noisy = [Run(f"seq -s ' ' {number}0000 {number}2500") for number in range(1, 7)]
    with ModelServer(in_rounds([*noisy, Run("echo line-1 >> log.txt")]), context_tokens=15_000) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
        shown = list(server.asked[-1].results.values())
    assert session.outcomes == {"passed": 1}
    assert shown[0] == "[This output was left out to make room.]"
    assert shown[-2].startswith("60000 60001")
    notes = [step for step in steps_of(session, "round-1", "gpt-5")[2:] if step["source"] == "system"]
    assert "left out of the conversation" in notes[0]["message"]
    assert notes[0]["extra"]["evocode"]["elided"]


def test_the_turn_is_on_disk_with_what_each_command_did(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    script = in_rounds([[Say("I look."), Run("ls /nowhere")], Run("echo line-1 >> log.txt")])
    with ModelServer(script) as server:
        session = run_tasks(*at(server, OPUS), "tasks", agent=None)
    steps = steps_of(session, "round-1", "claude-opus-4-5")
    assert [step["source"] for step in steps] == ["system", "user", "agent", "agent", "agent"]
    assert steps[1]["message"].strip() == "Append line-1 to log.txt."
    looked, wrote = steps[2], steps[3]
    assert looked["message"] == "I look."
    assert looked["tool_calls"][0]["function_name"] == "bash"
    assert "No such file" in looked["observation"]["results"][0]["content"]
    assert looked["extra"]["evocode"]["actions"][0]["exit_code"] == 2
    action = wrote["extra"]["evocode"]["actions"][0]
    assert action["exit_code"] == 0
    assert [(change["path"], change["kind"]) for change in action["changes"]] == [("log.txt", "added")]
    assert steps[4]["message"] == "Done."


def test_whatever_the_model_calls_is_answered_and_it_goes_on(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, toml='[environment]\nnetwork_mode = "no-network"')  # The model needs none there.
    steps: list[Step] = [
        *(Use("edit", {}), Use("bash", "{not json"), Use("bash", {"command": 5})),
        *(Use("bash", {"command": "echo in time", "timeout": seconds}) for seconds in (1e308, 10**400)),
        # In one step, so that nobody reads half of it.
        Run("nohup bash -c 'while sleep 0.1; do date +%s%N > new; mv new beat; done' >/dev/null 2>&1 &"),
        Use("bash", {"command": "echo begun; sleep 60", "timeout": 2.5}),
        Run('a=$(cat beat); until [ "$a" != "$(cat beat)" ]; do sleep 0.1; done; echo it beats'),
        Run("wc -l < /proc/net/dev; echo line-1 >> log.txt"),
    ]
    with ModelServer(in_rounds(steps)) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
        answers = list(server.asked[-1].results.values())
    assert session.outcomes == {"passed": 1}
    assert answers[0] == "There is no tool 'edit'; the only one is 'bash'."
    assert answers[1].startswith("The arguments are no JSON object")
    assert answers[2].startswith("The argument 'command' has to be a text")
    assert [answer.partition("\n")[0] for answer in answers[3:5]] == ["in time"] * 2
    # A deadline leaves alone what runs in the background.
    assert answers[6] == "begun\n[killed after 2.5 seconds]"
    assert answers[7].startswith("it beats")
    assert answers[8].startswith("3\n")  # Two lines of heading, and the loop-back device.


def test_the_class_in_the_documentation_is_an_agent_with_options_of_any_length(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task("a", 2, files={f"steps/round-{i}/instruction.md": f"Do:\necho line-{i} >> log.txt" for i in (1, 2)})
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "agents"))
    text = "think " * 100  # Longer than the name of any file.
    session = run_tasks(f"--evocode-agent-option=effort={text}", "tasks", agent="somebodys:Somebodys")
    assert session.outcomes == {"passed": 2}
    assert session.record(agent="somebodys-Somebodys").made_by["options"] == {"effort": text.strip()}
    assert steps_of(session, "round-2", "somebodys-Somebodys")[1]["message"] == "I remember 1 requests."
