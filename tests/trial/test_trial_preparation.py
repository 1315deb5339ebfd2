"""What is made ready before an agent's turn: variables, files, set-up scripts and health."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents.oracle import NopAgent, OracleAgent
from pytest_evocode.environments import Engine
from pytest_evocode.errors import TaskError
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"

# Variables.


def test_templates_are_filled_phase_by_phase_from_the_given_environment_and_nothing_of_the_host_is_there_unasked(
    engine: Engine, make_task: MakeTask, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOCODE_TEST_SECRET", "of the host")
    toml = """
[environment]
env = { SHARED = "${TOKEN}", PORT = "${PORT:-80}" }
[verifier]
env = { JUDGE = "judge of ${TOKEN}" }
[solution]
env = { HINT = "${TOKEN}!" }
"""
    suite = f"""
        env | grep -q EVOCODE_TEST_SECRET && exit
        [ "$SHARED $PORT $JUDGE$HINT" = "abc 80 judge of abc" ] && [ "$(cat said)" = "abc 80  abc!" ] && {PASS}
    """
    solution = 'echo "$SHARED $PORT $JUDGE $HINT" > said; ! env | grep EVOCODE_TEST_SECRET'
    task = make_task(suite, toml=toml, files={"steps/round-1/solution/solve.sh": solution})
    (record,) = finish(Trial(task, OracleAgent(), engine, options=TrialOptions(environ={"TOKEN": "abc"})))
    assert record.outcome == "passed", record.cause


@pytest.mark.parametrize("section", ["environment", "solution"])
def test_a_variable_that_is_not_set_is_an_error_that_names_it(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], section: str
) -> None:
    agent = scripted()
    task = make_task(PASS, PASS, toml=f'[{section}]\nenv = {{ A = "1", B = "${{EVOCODE_NO_SUCH}}" }}')
    first, second = finish(Trial(task, agent, engine, options=TrialOptions(environ={})))
    assert (first.outcome, second.outcome, agent.asked) == ("error", "not reached", [])
    assert "task.toml:2: EVOCODE_NO_SUCH not set in the environment; export it" in first.cause
    assert second.cause == "the attempt ended in round-1 with an error"


def test_a_variable_of_the_verifier_that_is_not_set_is_an_error_of_its_round(
    engine: Engine, make_task: MakeTask, finish: Finish
) -> None:
    task = make_task(PASS, PASS, steps={1: 'verifier = { env = { KEY = "${EVOCODE_NO_SUCH}" } }'})
    first, second = finish(Trial(task, NopAgent(), engine, options=TrialOptions(environ={})))
    assert (first.outcome, second.outcome) == ("error", "passed")
    assert "EVOCODE_NO_SUCH not set in the environment" in first.cause


def test_what_keeps_the_environment_from_starting_is_raised_to_those_who_wait_for_it(
    engine: Engine, make_task: MakeTask
) -> None:
    task = make_task(PASS, toml='[environment]\nenv = { A = "${EVOCODE_NO_SUCH}" }')
    with (
        Trial(task, NopAgent(), engine, options=TrialOptions(environ={})) as trial,
        pytest.raises(TaskError, match="EVOCODE_NO_SUCH"),
    ):
        trial.wait_environment()


def test_an_image_that_cannot_be_built_is_an_error_of_the_first_round(
    engine: Engine, make_task: MakeTask, finish: Finish
) -> None:
    task = make_task(PASS, PASS, dockerfile="FROM debian:bookworm-slim\nRUN echo building && exit 9\n")
    first, second = finish(Trial(task, NopAgent(), engine))
    assert (first.outcome, second.outcome) == ("error", "not reached")
    assert "environment/Dockerfile:2" in first.cause
    assert "building" in first.cause


# Files and set-up.


def test_a_rounds_files_are_laid_over_the_workspace_and_its_setup_runs_there_before_its_turn(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    files = {
        "steps/round-1/workdir/a.txt": "a1\n",
        "steps/round-1/workdir/deep/b.txt": "b1\n",
        "steps/round-1/workdir/setup.sh": 'echo "setup $PWD $(cat a.txt)" > log.txt',
        "steps/round-2/workdir/a.txt": "a2\n",
    }
    log = '[ "$(cat log.txt)" = "$(printf "setup /app a1\\nagent")" ]'
    task = make_task(
        f'[ "$(cat a.txt deep/b.txt)" = "$(printf \'a1\\nedited\')" ] && {log} && {PASS}',
        f'[ "$(cat a.txt deep/b.txt)" = "$(printf \'a2\\nedited\')" ] && {log} && {PASS}',
        files=files,
    )
    records = finish(Trial(task, scripted("echo edited > deep/b.txt; echo agent >> log.txt"), engine))
    assert [(record.outcome, record.cause) for record in records] == [("passed", "")] * 2


def test_a_setup_that_fails_is_the_tasks_error_and_shows_its_last_lines(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    agent = scripted()
    task = make_task(PASS, PASS, PASS, files={"steps/round-2/workdir/setup.sh": "seq 100; echo no such tool; exit 4"})
    records = finish(Trial(task, agent, engine))
    assert [record.outcome for record in records] == ["passed", "error", "not reached"]
    assert [context.round.index for context in agent.asked] == [1]
    setup = task.rounds[1].directory / "workdir/setup.sh"
    lines = records[1].cause.splitlines()
    assert lines[0] == f"{setup}: ended with exit code 4; correct it. Its last lines:"
    assert lines[1:] == [*map(str, range(82, 101)), "no such tool"]


@pytest.mark.parametrize(
    ("setup", "work", "where"),
    [
        ("mkdir data", "touch data", "on the image as built"),
        ("true", "rm -rf /app; ln -s /proc /app", "on the image as built"),
        ("sed -i s/1/2/ table", "rm -f table", "on what the reference solutions lead to"),
    ],
)
def test_an_agent_that_keeps_a_round_from_being_prepared_is_to_blame(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], setup: str, work: str, where: str
) -> None:
    files = {"steps/round-2/workdir/setup.sh": setup, "steps/round-1/solution/solve.sh": "echo 1 > table"}
    task = make_task(PASS, PASS, PASS, files=files)
    records = finish(Trial(task, scripted(work), engine))
    assert [(record.outcome, record.fault) for record in records[1:]] == [("error", "agent"), ("not reached", None)]
    assert f"It can be {where}, so the agent's work is to blame" in records[1].cause


# Health.


def health(command: str, **settings: float) -> str:
    pairs = "".join(f", {name} = {value}" for name, value in settings.items())
    return f"healthcheck = {{ command = '{command}'{pairs} }}"


COUNT = "echo . >> /tmp/count"


def test_a_healthcheck_is_repeated_until_it_passes(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    check = health(f"{COUNT}; [ $(wc -l < /tmp/count) -ge 3 ]", interval_sec=0.01, retries=3)
    task = make_task(f"[ $(wc -l < /tmp/count) = 3 ] && {PASS}", toml=f"[environment]\n{check}")
    (record,) = finish(Trial(task, scripted(), engine))
    assert record.outcome == "passed", record.cause


@pytest.mark.parametrize("retries", [2, 1])
@pytest.mark.matrix
def test_so_many_failures_in_a_row_are_the_tasks_error(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], retries: int
) -> None:
    agent = scripted()
    check = health(f"{COUNT}; cat /tmp/count; echo not ready; exit 1", interval_sec=0.01, retries=retries)
    task = make_task(PASS, PASS, toml=f"[environment]\n{check}")
    first, second = finish(Trial(task, agent, engine))
    assert (first.outcome, second.outcome, agent.asked) == ("error", "not reached", [])
    assert f"task.toml: the healthcheck of the environment failed {retries} times in a row: {COUNT}" in first.cause
    assert first.cause.endswith("\n" + ".\n" * retries + "not ready\n")


@pytest.mark.nightly
def test_failures_in_the_start_period_do_not_count(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    check = health(
        f"{COUNT}; [ $(wc -l < /tmp/count) -ge 5 ]",
        retries=1,
        start_period_sec=600,
        start_interval_sec=0.01,
        interval_sec=600,
    )
    task = make_task(f"[ $(wc -l < /tmp/count) = 5 ] && {PASS}", toml=f"[environment]\n{check}")
    (record,) = finish(Trial(task, scripted(), engine))
    assert record.outcome == "passed", record.cause


def test_after_the_start_period_failures_count(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    check = health("exit 1", retries=2, start_period_sec=0.3, start_interval_sec=0.05, interval_sec=0.01)
    (record,) = finish(Trial(make_task(PASS, toml=f"[environment]\n{check}"), NopAgent(), engine))
    assert "failed 2 times in a row" in record.cause


def test_a_healthcheck_that_hangs_has_failed(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    check = health("echo waiting; sleep 600", timeout_sec=0.2, retries=1)
    (record,) = finish(Trial(make_task(PASS, toml=f"[environment]\n{check}"), NopAgent(), engine))
    assert record.outcome == "error"
    assert record.cause.endswith("sleep 600\nwaiting\n")


def test_a_rounds_own_healthcheck_runs_after_its_files_are_there(
    engine: Engine, make_task: MakeTask, finish: Finish
) -> None:
    check = health("cat ready.txt; exit 1", retries=1)
    task = make_task(PASS, PASS, steps={2: check}, files={"steps/round-2/workdir/ready.txt": "it is there\n"})
    first, second = finish(Trial(task, NopAgent(), engine))
    assert (first.outcome, second.outcome) == ("passed", "error")
    assert "the healthcheck of round-2 failed 1 times in a row" in second.cause
    assert second.cause.endswith("it is there\n")


# Artifacts.


def test_artifacts_that_were_left_out_are_flagged(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], tmp_path: Path
) -> None:
    toml = 'artifacts = [{ source = "/app/build", destination = "out", exclude = ["*.tmp"] }]\n'
    directory = AttemptDirectory(tmp_path / "attempt")
    agent = scripted("mkdir build; touch build/a build/b.tmp; ln -s a build/link")
    (told,) = finish(Trial(make_task(PASS, toml=toml), agent, engine, directory=directory))
    assert [path.name for path in (directory.artifacts("round-1") / "out").iterdir()] == ["a"]
    flags = ("artifact left out: build/link: neither a file nor a directory",)
    attempt = directory.read_attempt()
    assert attempt is not None
    for record in (told, directory.read_rounds(["round-1"])["round-1"], attempt.rounds[0]):
        assert record.verdict is not None
        assert record.verdict.flags == flags
