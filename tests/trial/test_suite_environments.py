"""The environment that a suite has for itself, over the life of an attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import BuildWish
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.suites.suite_environments import prepare_image
from pytest_evocode.trial.trial import Trial
from tests.trial.conftest import DOCKERFILE
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_evocode.environments import Engine
    from tests.trial.conftest import Finish, MakeTask, Scripted

SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'
PASS = "echo 1 > /logs/verifier/reward.txt"


def test_images_of_verifiers_are_built_ahead_and_once(engine: Engine, make_task: MakeTask, tmp_path: Path) -> None:
    files = {"steps/round-1/tests/Dockerfile": f"{DOCKERFILE}RUN echo {tmp_path.name} > /opt/own\n"}
    task = make_task(PASS, PASS, toml=SEPARATE, files=files)
    engine.build(task, None, BuildWish())
    assert [prepare_image(engine, task, None, BuildWish()) for _ in range(2)] == [True, False]


def test_a_killed_attempt_leaves_none_and_goes_on_with_what_was_noted(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], tmp_path: Path
) -> None:
    toml = f"""artifacts = ["/app/work"]
{SEPARATE}env = {{ WAIT = "${{WAIT:-0}}" }}
[[verifier.collect]]
command = "echo collected >> work; exit 7"
"""
    task = make_task(f"sleep $WAIT; [ $(wc -l < work) = 2 ] && {PASS}", toml=toml)
    directory = AttemptDirectory(tmp_path / "attempt")
    trial = Trial(
        task, scripted("echo own > work"), engine, directory=directory, options=TrialOptions(environ={"WAIT": "600"})
    )
    with trial:
        wait_until(lambda: (state := directory.read_state()) is not None and state.turns, "the turn has ended")
    options = TrialOptions(environ={}, resume=True)
    agent = scripted()
    (record,) = finish(Trial(task, agent, engine, directory=directory, options=options))
    assert (record.outcome, agent.asked) == ("passed", [])
    assert record.verdict is not None
    assert "the collect command 'echo collected >> work; exit 7' ended with exit code 7" in record.verdict.flags


def test_a_collect_command_that_takes_too_long_is_stopped_and_the_suite_runs(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    toml = '[[verifier.collect]]\ncommand = "sleep 600"\ntimeout_sec = 0.2\nuser = "nobody"\n'
    (record,) = finish(Trial(make_task(PASS, toml=toml), scripted(), engine))
    assert record.verdict is not None
    assert (record.verdict.rests_on, record.verdict.flags) == (
        "clean",
        ("the collect command 'sleep 600' was stopped at its timeout",),
    )


def test_what_a_person_enters_is_the_suites_own_environment(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted]
) -> None:
    task = make_task("echo 0 > /logs/verifier/reward.txt", toml=f'artifacts = ["/app/work"]\n{SEPARATE}')
    options = TrialOptions(hold_forks=True)
    with Trial(task, scripted("echo one > work; echo two > other"), engine, options=options) as trial:
        assert trial.wait(1).outcome == "failed"
        fork = trial.fork_of(1)
        assert fork is not None
        assert fork.environment.exec("cat work; ls /tests; ls").output.split() == ["one", "test.sh", "work"]


def test_its_variables_may_be_secrets_where_they_are_the_verifiers_own(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    suite = f'[ "$KEY" = open-sesame-0123456789 ] && {PASS}'
    own = '[verifier.environment]\nenv = { KEY = "${JUDGE_API_KEY}" }\n'
    options = TrialOptions(environ={"JUDGE_API_KEY": "open-sesame-0123456789"})
    (record,) = finish(Trial(make_task(suite, toml=own), scripted("[ -z $KEY ]"), engine, options=options))
    assert record.outcome == "passed", record.cause
    shared = '[environment]\nenv = { KEY = "${JUDGE_API_KEY}" }\n'
    (record,) = finish(Trial(make_task(suite, toml=shared + SEPARATE), scripted(), engine, options=options))
    assert (record.outcome, "a secret that the agent does not declare" in record.cause) == ("error", True)


@pytest.mark.parametrize(("network", "expected"), [("public", "passed"), ("no-network", "failed")])
def test_its_network_is_what_its_section_says(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], network: str, expected: str
) -> None:
    suite = (
        f"[ $(ls /sys/class/net 2>/dev/null | wc -l) != 0 ] || cat /proc/net/dev; grep -q eth /proc/net/dev && {PASS}"
    )
    suite += " || echo 0 > /logs/verifier/reward.txt"
    toml = f'[environment]\nnetwork_mode = "no-network"\n[verifier.environment]\nnetwork_mode = "{network}"\n'
    (record,) = finish(Trial(make_task(suite, toml=toml), scripted(), engine))
    assert record.outcome == expected
