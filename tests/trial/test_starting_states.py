"""Attempts that begin at a later round: where the reference solutions of the rounds before lead."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents import RoundContext
from pytest_evocode.agents.oracle import NopAgent, OracleAgent
from pytest_evocode.environments import Engine, Installation
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

pytestmark = pytest.mark.turns(2)

PASS = "echo 1 > /logs/verifier/reward.txt"
PLACE = '[metadata.evocode]\nverify_in = "in-place"\n'
KEPT = TrialOptions(references=True)


@pytest.fixture(autouse=True)
def _states_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))


def solutions(*scripts: str) -> Mapping[str, str]:
    """Files of a task: the reference solution of each round."""
    return {f"steps/round-{index}/solution/solve.sh": script for index, script in enumerate(scripts, 1)}


def wants(text: str) -> str:
    """A suite that wants the file ``log`` to have just these words."""
    return f'[ "$(echo $(cat log))" = "{text}" ] && {PASS} || echo 0 > /logs/verifier/reward.txt'


def outcomes(records: list[RoundRecord]) -> list[tuple[str, str]]:
    return [(record.round, record.outcome) for record in records]


@pytest.mark.parametrize("toml", ["", PLACE], ids=["clean", "in-place"])
@pytest.mark.matrix
def test_an_agent_begins_where_the_solutions_lead(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], toml: str
) -> None:
    task = make_task(
        wants("one"),
        wants("one two"),
        wants("one two brought mine"),
        wants("one two brought mine last"),
        toml=toml,
        files={
            **solutions("echo one >> log", "echo two >> log", "echo three >> log"),
            "steps/round-3/workdir/setup.sh": "echo brought >> log",
        },
    )
    agent = scripted("false", "false", "echo mine >> log", "echo last >> log")
    records = finish(Trial(task, agent, engine, rounds=RoundSelection(begin_with=3)))
    assert outcomes(records) == [("round-3", "passed"), ("round-4", "passed")]
    assert [context.round.index for context in agent.asked] == [3, 4]


def test_a_state_is_made_once_for_all_agents_and_the_oracle(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    task = make_task(PASS, PASS, PASS, files=solutions("cat /proc/sys/kernel/random/uuid > made", "true", "true"))
    seen: list[str] = []

    def look(context: RoundContext) -> None:
        seen.append(context.environment.exec("cat made").output)

    for first in (2, 3, 2):
        finish(
            Trial(
                task,
                scripted("", *[look] * 2),
                engine,
                rounds=RoundSelection(begin_with=first, last=first),
                options=KEPT,
            )
        )
    with Trial(task, OracleAgent(), engine, rounds=RoundSelection(first_wanted=3, last=3), options=KEPT) as oracle:
        assert oracle.first_played() == 3
    assert len(seen) == 3
    assert len(set(seen)) == 1
    finish(
        Trial(task, scripted("", look), engine, rounds=RoundSelection(begin_with=2, last=2))
    )  # Unless it is not to be used.
    assert len(set(seen)) == 2


@pytest.mark.nightly
def test_sessions_that_need_the_same_state_wait_for_the_first_to_make_it(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted]
) -> None:
    task = make_task(PASS, PASS, files=solutions("sleep 0.5; cat /proc/sys/kernel/random/uuid > made"))
    seen: list[str] = []

    def look(context: RoundContext) -> None:
        seen.append(context.environment.exec("cat made").output)

    trials = [
        Trial(task, scripted("", look), engine, rounds=RoundSelection(begin_with=2), options=KEPT) for _ in range(2)
    ]
    threads = [threading.Thread(target=lambda trial=trial: list(trial.run())) for trial in trials]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(seen) == 2
    assert len(set(seen)) == 1


@pytest.mark.nightly
def test_services_of_solutions_live_on_only_where_suites_run_in_place(
    engine: Engine, make_task: MakeTask, finish: Finish, moment: str, scripted: type[Scripted]
) -> None:
    alive = f"for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep -q '^sleep {moment}'"
    started = solutions(f"setsid sleep {moment} > /dev/null 2>&1 &", "true")
    seen: list[bool] = []

    def look(context: RoundContext) -> None:
        seen.append(context.environment.exec(alive).ok)

    for toml in ("", PLACE):
        finish(
            Trial(
                make_task(PASS, PASS, toml=toml, files=started),
                scripted("", look),
                engine,
                rounds=RoundSelection(begin_with=2),
            )
        )
    assert seen == [False, True]


@pytest.mark.parametrize("toml", ["", PLACE], ids=["clean", "in-place"])
@pytest.mark.matrix
def test_nothing_of_solutions_or_suites_is_in_reach(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], toml: str
) -> None:
    found: list[str] = []

    def look(context: RoundContext) -> None:
        command = "ls -d /solution /tests /logs/verifier; find / -xdev -name solve.sh -o -xdev -name reward.txt"
        found.append(context.environment.exec(f"({command}) 2> /dev/null").output)

    task = make_task(PASS, PASS, toml=toml, files=solutions("true", "true"))
    (record,) = finish(Trial(task, scripted("", look), engine, rounds=RoundSelection(begin_with=2)))
    assert record.passed
    assert found == [""]


@pytest.mark.parametrize("toml", ["", PLACE], ids=["clean", "in-place"])
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("true", "that of round-2 fails; correct it, --evocode-check helps: it does not pass its suite: has-two"),
        ("echo oh no; exit 3", "that of round-2 fails; *the reference solution ended with exit code 3"),
    ],
)
@pytest.mark.matrix
def test_solutions_that_lead_nowhere_are_nobodys_failed_round(
    engine: Engine,
    make_task: MakeTask,
    finish: Finish,
    scripted: type[Scripted],
    toml: str,
    script: str,
    why: str,
) -> None:
    suite = "echo CASE_RESULT case_id=has-two status=fail; echo 0 > /logs/verifier/reward.txt"
    agent = scripted()
    task = make_task(PASS, suite, PASS, PASS, toml=toml, files=solutions("true", script))
    third, fourth = finish(Trial(task, agent, engine, rounds=RoundSelection(begin_with=3)))
    assert (third.outcome, third.fault, fourth.outcome) == ("error", "infrastructure", "not reached")
    assert third.cause.startswith(f"{task.directory}/task.toml: round-3 begins where the reference solutions lead, and")
    before, _, after = why.partition("*")
    assert before in third.cause
    assert after in third.cause
    assert agent.asked == []


@pytest.mark.parametrize("toml", ["", PLACE], ids=["clean", "in-place"])
@pytest.mark.matrix
def test_an_earlier_suite_need_not_accept_what_a_later_one_does(
    engine: Engine, make_task: MakeTask, finish: Finish, toml: str
) -> None:
    task = make_task("echo 0 > /logs/verifier/reward.txt", PASS, PASS, toml=toml, files=solutions("true", "true"))
    assert outcomes(finish(Trial(task, NopAgent(), engine, rounds=RoundSelection(begin_with=3)))) == [
        ("round-3", "passed")
    ]


@pytest.mark.nightly
def test_a_case_of_an_earlier_round_that_fails_is_a_regression(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    case = "echo CASE_RESULT case_id=of-{0} origin_step=round-{0} status=fail;"
    suite = f"{case.format(1)} {case.format(2)} echo 0 > /logs/verifier/reward.txt"
    task = make_task(PASS, suite, files=solutions("true"))
    (record,) = finish(Trial(task, scripted("", "true"), engine, rounds=RoundSelection(begin_with=2)))
    assert record.verdict is not None
    assert [(each.id, each.failure) for each in record.verdict.cases] == [("of-1", "regression"), ("of-2", "new miss")]


@pytest.mark.nightly
def test_artifacts_of_other_rounds_stay_as_their_own_attempts_left_them(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], tmp_path: Path
) -> None:
    files = solutions("echo solution > /logs/artifacts/kept")
    task = make_task(PASS, PASS, toml=PLACE, files=files)
    write = "echo mine > /logs/artifacts/kept"
    for index in (1, 2):
        directory = AttemptDirectory(tmp_path / "t__a1", only_round=f"round-{index}")
        options = TrialOptions(mode="single-round")
        finish(
            Trial(
                task,
                scripted(write, "true"),
                engine,
                rounds=RoundSelection(index, last=index),
                directory=directory,
                options=options,
            )
        )
    assert (directory.artifacts("round-1") / "kept").read_text() == "mine\n"


# Secrets.

NAME, VALUE = "SOME_SERVICE_API_KEY", "0123456789abcdef-of-the-host"


@pytest.mark.parametrize("table", ["solution", "environment"])
@pytest.mark.parametrize("toml", ["", PLACE], ids=["clean", "in-place"])
@pytest.mark.matrix
def test_a_secret_of_a_solution_is_not_where_another_agent_begins(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], toml: str, table: str
) -> None:
    variables = f'[{table}.env]\nKEY = "${{{NAME}:-none}}"'
    task = make_task(
        PASS, PASS, toml=f"{toml}{variables}", files=solutions('echo "$KEY" > key; setsid sleep 9 > /dev/null 2>&1 &')
    )
    seen: list[str] = []

    def look(context: RoundContext) -> None:
        seen.append(context.environment.exec("cat key; grep -lsF 0123456789abcdef /proc/*/environ").output)

    options = TrialOptions(references=True, environ={NAME: VALUE})
    finish(Trial(task, OracleAgent(), engine, options=options))  # It gets the secret, and keeps the state.
    finish(Trial(task, scripted("", look), engine, rounds=RoundSelection(begin_with=2), options=options))
    assert seen == ["none\n"]


@pytest.mark.parametrize("place", ["", PLACE], ids=["clean", "in-place"])
@pytest.mark.matrix
def test_a_solution_that_needs_a_secret_leads_nowhere(
    engine: Engine, make_task: MakeTask, finish: Finish, place: str
) -> None:
    toml = f'{place}[solution.env]\nKEY = "${{{NAME}}}"'
    task = make_task(PASS, PASS, toml=toml, files=solutions("true", "true"))
    options = TrialOptions(references=True, environ={NAME: VALUE})
    (record,) = finish(Trial(task, NopAgent(), engine, rounds=RoundSelection(begin_with=2), options=options))
    assert record.outcome == "error"
    assert f"KEY asks for {NAME}, a secret, and in this mode the agent begins where" in record.cause
    (record,) = finish(Trial(task, OracleAgent(), engine, rounds=RoundSelection(begin_with=2), options=options))
    assert record.passed


def test_a_secret_that_the_agent_declares_is_in_its_container_and_in_no_state(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    toml = f'[environment.env]\nKEY = "${{{NAME}:-none}}"'
    task = make_task(PASS, PASS, toml=toml, files=solutions('echo "$KEY" > key', "true"))
    seen: list[str] = []

    def look(context: RoundContext) -> None:
        seen.append(context.environment.exec('cat key; echo "$KEY"').output)

    agent = scripted("", look)
    agent.secrets = (NAME,)  # type: ignore[attr-defined]
    finish(
        Trial(
            task,
            agent,
            engine,
            rounds=RoundSelection(begin_with=2),
            options=TrialOptions(references=True, environ={NAME: VALUE}),
        )
    )
    assert seen == [f"none\n{VALUE}\n"]


# What agents bring, and endings.


@pytest.mark.nightly  # By day tests/environments/test_contract_installations.py has images with what an agent needs.
def test_what_an_agent_needs_in_its_image_is_there_and_its_states_are_its_own(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    task = make_task(PASS, PASS, files=solutions("cat /opt/tool > made 2>/dev/null || echo none > made"))
    seen: list[str] = []

    def look(context: RoundContext) -> None:
        seen.append(context.environment.exec("cat made /opt/tool 2> /dev/null").output)

    for number in ("one", "two"):
        agent = scripted("", look)
        agent.installation = Installation("a tool", f"mkdir -p /opt; echo {number} > /opt/tool")  # type: ignore[attr-defined]
        (record,) = finish(Trial(task, agent, engine, rounds=RoundSelection(begin_with=2), options=KEPT))
        assert record.passed, record.cause
    assert seen == ["one\none\n", "two\ntwo\n"]


def test_an_agent_with_a_memory_begins_with_none(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    class Remembering(NopAgent):
        def save_state(self) -> object:
            return {}

        def load_state(self, state: object) -> None:
            raise AssertionError("there is nothing to remember")

    task = make_task(PASS, PASS, files=solutions("true"))
    (record,) = finish(Trial(task, Remembering(), engine, rounds=RoundSelection(begin_with=2)))
    assert record.passed, record.cause


@pytest.mark.parametrize("toml", ["", PLACE], ids=["clean", "in-place"])
@pytest.mark.matrix
def test_closing_while_solutions_are_played_ends_them(
    engine: Engine,
    make_task: MakeTask,
    scripted: type[Scripted],
    moment: str,
    processes: Callable[[str], list[int]],
    toml: str,
) -> None:
    agent = scripted()
    task = make_task(PASS, PASS, PASS, toml=toml, files=solutions("true", f"sleep {moment}"))
    trial = Trial(task, agent, engine, rounds=RoundSelection(begin_with=3), options=KEPT)
    trial.__enter__()
    wait_until(lambda: processes(moment), "the solution does not begin")
    trial.close()
    assert (trial.wait(3).outcome, trial.wait(3).cause) == ("not reached", "the session was stopped")
    assert processes(moment) == []
    assert agent.asked == []


def test_closing_while_another_session_makes_the_state_does_not_wait_for_it(
    engine: Engine, make_task: MakeTask
) -> None:
    from pytest_evocode.trial.references import ReferenceStates

    task = make_task(PASS, PASS, files=solutions("true"))
    with ReferenceStates(engine, task, {}).making(threading.Event()):
        trial = Trial(task, NopAgent(), engine, rounds=RoundSelection(begin_with=2), options=KEPT)
        trial.__enter__()
        time.sleep(0.3)
        trial.close()
    assert trial.wait(2).cause == "the session was stopped"


# Fail-stop.


def test_in_fail_stop_mode_an_error_ends_an_attempt_like_a_failed_round(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    agent = scripted()
    options = TrialOptions(mode="fail-stop")
    first, second = finish(Trial(make_task("true", PASS), agent, engine, options=options))
    assert (first.outcome, second.outcome) == ("error", "not reached")
    assert second.cause == "round-1 did not pass, which ends the attempt (fail-stop)"
    assert [context.round.index for context in agent.asked] == [1]
    assert outcomes(finish(Trial(make_task(PASS, PASS), agent, engine, options=options))) == [
        ("round-1", "passed"),
        ("round-2", "passed"),
    ]
