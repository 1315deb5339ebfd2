"""What holds for every CLI in the container, shown with a program that does as Claude Code does."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.agents.harness import CUT_OFF
from pytest_evocode.agents.installed.claude_code import ClaudeCodeOptions
from pytest_evocode.agents.installed.exchange_reader import ExchangeReader
from pytest_evocode.environments import Engine
from pytest_evocode.errors import EnvironmentFault, UsageError
from pytest_evocode.gateway import Exchange
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import Task
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from tests import atif
from tests.agents.installed.conftest import KEY, PASS, Attempt, FakeClaude, MakeTask
from tests.model_scripts import CutOff, Delay, Run, Say, Step
from tests.model_server import ModelServer
from tests.waiting import wait_until

pytestmark = [pytest.mark.turns(2), pytest.mark.usefixtures("model")]

LOOK = "run: cat ~/.claude/projects/* >/logs/artifacts/log.jsonl"


def fake(model: str | None = "claude-fake-1", **options: Any) -> FakeClaude:
    return FakeClaude(model, ClaudeCodeOptions(**options))


def endings(records: list[RoundRecord]) -> list[tuple[str, str]]:
    return [(record.outcome, record.cause) for record in records]


def calls_of_program(directory: AttemptDirectory, round_name: str) -> list[Any]:
    """How the program was called up to a round that looked."""
    return [json.loads(line) for line in (directory.artifacts(round_name) / "log.jsonl").read_text().splitlines()]


def steps(directory: AttemptDirectory, round_name: str) -> list[Any]:
    found: list[Any] = atif.read(directory.path / "steps" / round_name / "agent/trajectory.json")["steps"]
    return found


def test_rounds_go_on_in_one_session_and_each_has_the_harness_of_the_agent(
    make_task: MakeTask,
    attempt: Attempt,
    directory: AttemptDirectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rules and skills are where the program looks for its user's, and the prompt and variables are given anew."""
    monkeypatch.setenv("REGION_OF_TEST", "north")
    (tmp_path / "prompt.md").write_text("You plan first.\n")
    (tmp_path / "rules.md").write_text("Be kind.\n")
    (tmp_path / "skills/greeting").mkdir(parents=True)
    (tmp_path / "skills/greeting/SKILL.md").write_text("---\ndescription: How to greet.\n---\n")
    harness: dict[str, Any] = {
        "prompt": tmp_path / "prompt.md",
        "rules": tmp_path / "rules.md",
        "skills": tmp_path / "skills",
    }
    look = "run: cd ~/.claude; cp -r CLAUDE.md skills /logs/artifacts; stat -c %U CLAUDE.md >/logs/artifacts/owner"
    area = "run: echo $AREA >/logs/artifacts/area"
    task = make_task("say: one\n", f"run: true\n{look}\n{area}\nsay: done\n", f"{LOOK}\n")
    records = attempt(fake(env={"AREA": "far ${REGION_OF_TEST}"}, **harness), task)
    assert endings(records) == [("passed", "")] * 3
    first, second, third = calls = calls_of_program(directory, "round-3")

    assert first["arguments"][-2] == "--session-id"
    assert first["arguments"][-1] == second["arguments"][-1]
    assert second["arguments"][-2:] == third["arguments"][-2:]
    assert second["arguments"][-2] == "--resume"
    assert [each["said"] for each in (first, second)] == [["say: one"], ["run: true", look, area, "say: done"]]

    for call in calls:
        at = call["arguments"].index("--append-system-prompt")
        assert call["arguments"][at + 1] == "You plan first.\n"
    # It is recorded once.
    assert [step["message"] for step in steps(directory, "round-1")[:2]] == ["You plan first.\n", "say: one\n"]
    assert steps(directory, "round-2")[0]["source"] == "user"

    found = directory.artifacts("round-2")
    assert (found / "CLAUDE.md").read_text() == "Be kind.\n"
    assert (found / "skills/greeting/SKILL.md").read_text() == "---\ndescription: How to greet.\n---\n"
    assert (found / "owner").read_text() == "root\n"
    assert (found / "area").read_text() == "far north\n"
    actions = [step["extra"]["evocode"]["actions"][0] for step in steps(directory, "round-2")[1:-1]]
    assert not any("changes" in action for action in actions)


def test_an_attempt_that_is_resumed_goes_on_in_its_session(
    engine: Engine, make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, tmp_path: Path
) -> None:
    (tmp_path / "rules.md").write_text("Be kind.\n")
    task = make_task("say: one\n", f"run: sleep ${{SLOW:-0}}\n{LOOK}; cp ~/.claude/CLAUDE.md /logs/artifacts\n")
    slow = fake(rules=tmp_path / "rules.md", env={"SLOW": "600"})
    with Trial(task, slow, engine, directory=directory) as trial:
        trial.wait(1)
    records = attempt(fake(rules=tmp_path / "rules.md"), task, resume=True)
    assert endings(records) == [("passed", "")] * 2
    first, second = calls_of_program(directory, "round-2")
    assert first["said"] == ["say: one"]
    assert "--resume" in second["arguments"]
    assert (directory.artifacts("round-2") / "CLAUDE.md").read_text() == "Be kind.\n"


def kill_after_two_replies(task: Task, engine: Engine, directory: AttemptDirectory) -> None:
    """Play a session that is killed in the middle of the first round."""
    journal = directory.journal("round-1")
    with Trial(task, fake(env={"SLOW": "600"}), engine, directory=directory, options=TrialOptions(resume=True)):
        wait_until(
            lambda: journal.exists() and journal.read_text().count('"exchange"') >= 2,
            "what the program used is not in the journal",
        )


def test_what_a_killed_program_has_paid_for_is_not_paid_for_again(
    engine: Engine, make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, model: ModelServer
) -> None:
    task = make_task("run: true\nrun: sleep ${SLOW:-0}\nsay: Done.\n", "say: two\n")
    kill_after_two_replies(task, engine, directory)
    first, second = attempt(fake(), task, resume=True, budget=Budget(turns=4, tokens=500))
    assert endings([first, second]) == [("passed", "")] * 2
    assert first.usage is not None
    assert (first.usage.tokens, first.usage.requests, first.usage.at_least) == (300, 3, None)
    assert second.usage is not None
    assert second.usage.tokens == 100
    assert len(model.asked) == 4
    assert not directory.journal("round-1").exists()


def test_what_a_killed_program_is_known_to_have_used_in_vain_is_counted_at_least_and_not_for_limits_of_the_attempt(
    engine: Engine, make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    task = make_task("run: true\nrun: sleep ${SLOW:-0}\nsay: Done.\n", "say: two\n")
    kill_after_two_replies(task, engine, directory)
    journal = directory.journal("round-1")  # The program asks something else the next time.
    journal.write_text(journal.read_text().replace('"likeness": "', '"likeness": "un'))
    first, second = attempt(fake(), task, resume=True, budget=Budget(turns=4, tokens=500))
    assert endings([first, second]) == [("passed", "")] * 2
    assert not first.stopped
    assert not second.stopped
    assert first.usage is not None
    assert second.usage is not None
    assert (first.usage.tokens, first.usage.requests, first.usage.at_least) == (200 + 300, 5, True)
    assert (second.usage.tokens, second.usage.at_least) == (100, None)
    notes = [step["extra"]["evocode"] for step in steps(directory, "round-1") if step["source"] == "system"]
    assert [note["lost_usage"]["prompt_tokens"] for note in notes] == [2 * 80]
    assert not directory.journal("round-1").exists()


@pytest.mark.nightly
def test_an_attempt_whose_container_goes_away_has_what_was_used_until_then(
    make_task: MakeTask, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(reader: ExchangeReader, exchange: Exchange) -> None:
        take(reader, exchange)
        if reader.replies == 2:
            raise EnvironmentFault("the container is gone")

    take = ExchangeReader.take
    monkeypatch.setattr(ExchangeReader, "take", ended)
    task = make_task("run: true\nrun: sleep ${SLOW:-0}\nsay: Done.\n")
    (record,) = attempt(fake(env={"SLOW": "600"}), task)
    assert (record.outcome, record.cause) == ("error", "the container is gone")
    assert record.usage is not None
    assert (record.usage.tokens, record.usage.at_least) == (200, True)
    monkeypatch.setattr(ExchangeReader, "take", take)
    (record,) = attempt(fake(), task, resume=True)
    assert record.usage is not None
    assert (record.outcome, record.usage.tokens, record.usage.at_least) == ("passed", 300, None)


def test_steps_have_what_the_program_said_ran_and_changed(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    task = make_task("run: echo new > file\nrun: exit 3\nsay: Done.\n")
    (record,) = attempt(fake(), task, budget=Budget(tokens=300))
    # The last answer, with which the budget is used, calls nothing, and that is no reason to stop.
    assert (record.outcome, record.stopped) == ("passed", "")
    user, first, second, last = steps(directory, "round-1")
    assert (user["source"], user["message"]) == ("user", "run: echo new > file\nrun: exit 3\nsay: Done.\n")
    assert first["tool_calls"][0]["arguments"] == {"command": "echo new > file"}
    (action,) = first["extra"]["evocode"]["actions"]
    assert [change["path"] for change in action["changes"]] == ["file"]
    assert second["extra"]["evocode"]["actions"][0]["exit_code"] == 3
    assert last["message"] == "Done."
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    whole = atif.read(directory.path / "steps/round-1/agent/trajectory.json")
    assert whole["agent"]["tool_definitions"] == [
        {"type": "function", "function": {"name": "Bash", "parameters": schema}}
    ]
    assert record.tool_calls == 2
    assert record.usage is not None
    assert (record.usage.tokens, record.usage.requests) == (300, 3)


def test_the_trajectory_grows_while_the_program_works(
    engine: Engine, make_task: MakeTask, directory: AttemptDirectory
) -> None:
    task = make_task("run: echo new > file\nrun: sleep 600\n")
    with Trial(task, fake(), engine, directory=directory):
        wait_until(lambda: any(directory.path.glob("steps/*/agent/trajectory.json")))
        wait_until(lambda: len(steps(directory, "round-1")) >= 3)
    assert steps(directory, "round-1")[2]["tool_calls"][0]["arguments"] == {"command": "sleep 600"}


def test_at_an_exhausted_budget_the_program_ends_and_what_there_is_counts(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    task = make_task("run: touch a\nrun: touch b\nrun: sleep 1; touch c\nrun: touch d\n", check=f"[ -e b ] && {PASS}")
    (record,) = attempt(fake(), task, budget=Budget(tokens=200))
    assert (record.outcome, record.stopped) == ("passed", "budget: tokens 200 of 200 used")
    assert [step["source"] for step in steps(directory, "round-1")].count("agent") in (2, 3)


def test_a_round_without_a_request_used_nothing(make_task: MakeTask, attempt: Attempt) -> None:
    first, second = attempt(fake(), make_task("run: touch a\n", "run: touch b\n"), budget=Budget(turns=1))
    assert second.stopped == "budget: turns 1 of 1 used"
    assert first.usage is not None
    assert second.usage is not None
    assert (first.usage.requests, second.usage.requests) == (1, 0)
    assert (second.usage.tokens, second.usage.cost_usd, second.usage.at_least) == (0, 0, None)


@pytest.mark.nightly
def test_at_the_deadline_all_that_the_program_runs_ends_and_the_next_round_goes_on(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    task = make_task("run: sleep 600\n", f"run: ps -e -o args= >/logs/artifacts/ps || true\n{LOOK}\n", timeout=3)
    first, second = attempt(fake(), task)
    assert (first.timed_out, second.outcome) == ("agent", "passed")
    assert "sleep 600" not in (directory.artifacts("round-2") / "ps").read_text()
    assert "--resume" in calls_of_program(directory, "round-2")[1]["arguments"]


def test_a_program_that_does_nothing_and_fails_is_an_error_with_its_last_words(
    make_task: MakeTask, attempt: Attempt
) -> None:
    (record,) = attempt(fake(), make_task("die: no such model\n"))
    assert record.outcome == "error"
    assert record.cause.endswith("before its model gave a readable reply. Its last lines:\nno such model")


def test_a_program_that_fails_in_the_middle_is_graded_by_what_it_did_and_a_refused_key_ends_the_next_turn_at_once(
    make_task: MakeTask, attempt: Attempt
) -> None:
    first, second = attempt(fake(), make_task("run: touch a\ndie: out of memory\n", "refuse: 401\n"))
    assert (first.outcome, first.stopped) == ("passed", "claude-code ended with exit code 1")
    assert second.outcome == "error"
    assert "401" in second.cause
    assert second.fault == "infrastructure"


def test_the_key_is_nowhere_in_the_container_nor_in_a_record(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE_API_KEY", KEY)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    search = f"grep -l {KEY} /proc/[0-9]*/environ /app -r >/logs/artifacts/found"
    task = make_task(
        f"run: echo $ANTHROPIC_API_KEY\nrun: nohup sleep 60 >/dev/null 2>&1 &\nrun: {search}; true\n{LOOK}\n",
        check=f"{search}-later; env >>/logs/artifacts/found-later; {PASS}",
        toml='[environment]\nenv = { OTHER = "${MINE_API_KEY:-none}" }\n',
    )
    assert endings(attempt(fake(key_env="MINE_API_KEY"), task)) == [("passed", "")]
    token = calls_of_program(directory, "round-1")[0]["key"]
    assert token not in (None, "", KEY)
    assert (directory.artifacts("round-1") / "found").read_text() == ""
    assert "MINE" not in (directory.artifacts("round-1") / "found-later").read_text()
    assert not any(KEY.encode() in path.read_bytes() for path in directory.path.rglob("*") if path.is_file())


@pytest.mark.nightly
def test_rules_come_before_those_that_the_image_has_for_its_user(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, tmp_path: Path
) -> None:
    (tmp_path / "rules.md").write_text("Be kind.\n")
    task = make_task("run: cp ~/.claude/CLAUDE.md /logs/artifacts\n", files={"CLAUDE.md": "Be quick.\n"})
    assert task.dockerfile is not None
    with task.dockerfile.open("a") as file:
        file.write("RUN mkdir /root/.claude && mv CLAUDE.md /root/.claude\n")
    attempt(fake(rules=tmp_path / "rules.md"), task)
    assert (directory.artifacts("round-1") / "CLAUDE.md").read_text() == "Be kind.\n\nBe quick.\n"


@pytest.mark.parametrize("toml", ['[environment]\nnetwork_mode = "no-network"\n', ""])
def test_a_task_without_a_network_is_done_as_well(make_task: MakeTask, attempt: Attempt, toml: str) -> None:
    records = attempt(fake(), make_task("run: touch a\n", "run: ls a\n", toml=toml, check=f"[ -e a ] && {PASS}"))
    assert endings(records) == [("passed", "")] * 2
    assert [record.usage and record.usage.tokens for record in records] == [100, 100]


def test_a_missing_key_is_told_by_its_name_before_anything_starts() -> None:
    with pytest.raises(
        UsageError, match=r"needs an API key and ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN or .* is not"
    ):
        fake().check({}, Budget())
    with pytest.raises(UsageError, match="MY_KEY is not set"):
        fake(key_env="MY_KEY").check({"ANTHROPIC_API_KEY": KEY}, Budget())
    with pytest.raises(UsageError, match="call it MINE_API_KEY"):
        fake(key_env="MINE").check({"MINE": KEY}, Budget())
    with pytest.raises(UsageError, match=r"env: \$\{REGION\} is not set"):
        fake(env={"AREA": "${REGION}"}).check({"ANTHROPIC_API_KEY": KEY}, Budget())


@pytest.mark.parametrize(
    ("name", "value"), [("MY_API_KEY", "sk-0123456789"), ("DATABASE", "pg://me:open-sesame@db/ledger")]
)
def test_a_secret_among_the_variables_would_be_recorded(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} holds a secret, .* write \$\{{{name}\}}"):
        fake(env={name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MY_API_KEY", "${MINE}"),
        ("MY_API_KEY", "Bearer of the ${MINE}"),
        ("MY_API_KEY", "none"),
        ("MY_CREDENTIALS", "/srv/keys/creds.json"),
        ("MAX_TOKENS", "1000000000"),
        ("DATABASE", "pg://me:${PASSWORD_OF_MINE}@db/ledger"),
    ],
)
def test_variables_without_a_secret_are_taken(name: str, value: str) -> None:
    assert fake(env={name: value}).options.env == {name: value}


def test_a_limit_of_cost_needs_a_price() -> None:
    unknown = fake("a-model-of-my-own", base_url="http://localhost")
    with pytest.raises(UsageError, match="what a-model-of-my-own of claude-code costs is not known"):
        unknown.check({"ANTHROPIC_API_KEY": KEY}, Budget(cost=1))
    fake("claude-sonnet-4-5", base_url="http://localhost").check({"ANTHROPIC_API_KEY": KEY}, Budget(cost=1))


def test_a_program_whose_models_reply_was_cut_off_is_started_again_in_its_session(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    script: list[Step] = [
        [Say("First I will"), CutOff()],
        Say("Done."),
        Run("cat ~/.claude/projects/* >/logs/artifacts/log.jsonl"),
    ]
    with ModelServer(script, key=KEY) as server:
        records = attempt(fake(base_url=server.url), make_task("say: one\n", "look\n"))
    assert endings(records) == [("passed", "")] * 2
    assert records[0].stopped == ""
    told = [(step["source"], step["message"]) for step in steps(directory, "round-1")]
    assert told == [("user", "say: one\n"), ("agent", "First I will"), ("system", CUT_OFF), ("agent", "Done.")]
    first, again, _ = calls_of_program(directory, "round-2")
    assert again["arguments"][-2:] == ["--resume", first["arguments"][-1]]
    assert again["said"] == [CUT_OFF]


def test_a_program_is_told_three_times_at_most_that_a_reply_was_cut_off(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    with ModelServer([[Say("First I will"), CutOff()]] * 5, key=KEY) as server:
        [record] = attempt(fake(base_url=server.url), make_task("say: one\n"))
        assert server.left == 1
    assert record.outcome == "passed"
    assert [step["message"] for step in steps(directory, "round-1")].count(CUT_OFF) == 3


def test_the_time_of_a_turn_is_one_for_all_starts_of_the_program(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    script: list[Step] = [[Delay(5), Say("First I will"), CutOff()], Run("sleep 600")]
    with ModelServer(script, key=KEY) as server:
        began = time.monotonic()
        [record] = attempt(fake(base_url=server.url), make_task("say: one\n", timeout=7))
    assert record.timed_out == "agent"
    assert time.monotonic() - began < 5 + 7
