"""``verify_in = "clean"``: the suite runs in the image as it was built, with the work carried over."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from tests.acceptance.tasks import DOCKERFILE

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks, RunTasks
    from tests.acceptance.tasks import WriteTask

CLEAN = '[metadata.evocode]\nverify_in = "clean"\n'
PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo 0 > /logs/verifier/reward.txt"
#: Work of one kind in the workdir, of another beside it.
WORK = "mkdir -p /var/lib/shop; echo row >> /var/lib/shop/rows; echo own > mine; echo planted > /etc/planted"
#: Passes where the second kind is there, too.
ALL_THERE = f"[ -s /var/lib/shop/rows ] && [ -s mine ] && {PASS}"
NOT_PLANTED = f"[ ! -e /etc/planted ] && {PASS} || {FAIL}"


@pytest.mark.parametrize("env", ["sandbox"])
def test_suites_find_the_workdir_and_the_state_and_nothing_else_of_the_agent(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    gone = "/etc/planted /opt/tool /solution"
    there = f'[ -z "$(ls -d {gone})" ] && ! grep -qs "[4]321" /proc/[0-9]*/cmdline && {ALL_THERE}'
    changes_tools = "rm /usr/bin/env; touch /opt/tool"
    native = "import os\n\ndef test_it():\n    assert os.path.exists('mine') and not os.path.exists('/etc/planted')\n"
    write_task(
        "a",
        3,
        toml=f'artifacts = ["/app/mine"]\n{CLEAN}state = ["/var/lib/shop"]\n',
        dockerfile=f"{DOCKERFILE}RUN mkdir /solution && touch /solution/answer\n",
        solve={
            1: f"{WORK}; [ -e /etc/planted ]; echo kept > /logs/artifacts/kept; setsid sleep 4321 >/dev/null 2>&1 &",
            2: f"{WORK}; [ -e /etc/planted ]; {changes_tools}; setsid sleep 4321 >/dev/null 2>&1 &",
        },
        test=dict.fromkeys((1, 2), there),
        native={3: native},
    )
    write_task("lacks", 1, toml=CLEAN, solve={1: WORK}, test={1: f"({ALL_THERE}) || {FAIL}"})
    system = write_task("system", 1, toml=CLEAN, dockerfile="FROM python:3.11-slim-bookworm\n")
    session = run_tasks("tasks", "--evocode-strict", env=env)
    # What is neither workdir nor state is missing.
    assert [record.outcome for record in session.record("lacks").rounds] == ["failed"]
    assert session.outcomes == {"passed": 3, "failed": 1, "errors": 1}
    # Tools that were changed outside do not matter.
    for record in session.record("a").rounds:
        assert record.verdict is not None
        assert record.verdict.trusts == ()
    found = session.attempt() / "steps/round-1/artifacts"
    assert ((found / "kept").read_text(), (found / "mine").read_text()) == ("kept\n", "own\n")
    # A workdir that is the whole system is refused.
    session.has(
        f"*{system}/environment/Dockerfile: round-1 is verified in a clean environment with the working directory "
        "carried over, and that is /,*"
    )


@pytest.mark.docker
@pytest.mark.nightly
def test_suites_find_the_same_in_docker(write_task: WriteTask, run_tasks: RunTasks) -> None:
    test_suites_find_the_workdir_and_the_state_and_nothing_else_of_the_agent(write_task, run_tasks, env="docker")


@pytest.mark.nightly
def test_the_option_asks_for_it_of_every_task_and_a_run_is_continued_and_verified_again_as_it_was_begun(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("script", 1, solve={1: WORK}, test={1: NOT_PLANTED})
    write_task("place", 1, toml='[metadata.evocode]\nverify_in = "place"\n', solve={1: WORK}, test={1: NOT_PLANTED})
    session = run_tasks("tasks")
    assert (session.outcomes, session.run.verify) == ({"failed": 2}, None)
    shutil.rmtree(session.results)  # So that the run to resume is the next.
    session = run_tasks("tasks", "--evocode-verify=clean", "--evocode-snapshots")
    assert (session.outcomes, session.run.verify) == ({"passed": 1, "failed": 1}, "clean")
    session.has("evocode: verify clean: suites that would run in a fork; those apart or in place stay there")
    refused = run_tasks("tasks", "--evocode-resume")
    assert f"the run {session.run.run} was begun with --evocode-verify=clean; continue it with that" in refused.text
    refused = run_tasks("tasks", "--evocode-verify=clean", "--evocode-strict", "--evocode-resume")
    assert f"the run {session.run.run} was begun with no --evocode-strict; continue it with that" in refused.text
    assert (session.record("script").verify, session.record("script").strict) == ("clean", False)
    result = CliRunner().invoke(main, ["regrade"])
    assert "verified 1 rounds again\nno verdict has changed" in result.output
    assert f"kept as it was: {session.attempt('place')}" in result.output
    assert session.record("script").rounds[0].outcome == "passed"


@pytest.mark.slow
def test_a_check_says_what_a_suite_would_miss_there(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    needs_state = f"{WORK}; mkdir /tmp/shop; touch /tmp/shop/x"
    write_task("a", 2, solve={1: needs_state}, test={1: f"({ALL_THERE}) || {FAIL}", 2: f"[ -e log.txt ] && {PASS}"})
    checked = check_tasks("-koracle or clean and not starter")
    assert checked.outcomes == {"oracle": "passed", "clean": "passed"}
    assert checked.warnings == [
        'round-1 passes in a fork of where the agent worked, and not with verify_in = "clean", which leaves an agent '
        "less to tamper with: the reward is 0\n"
        "It has only the working directory and the paths in state of [metadata.evocode]; name what else belongs to "
        'the work there, as in state = ["/etc/planted"]. Changed so far: /etc/planted, /var/lib/shop/rows'
    ]


@pytest.mark.slow
@pytest.mark.nightly
def test_a_reference_that_fails_there_is_told_what_it_misses(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 1, toml=CLEAN, solve={1: WORK}, test={1: f"({ALL_THERE}) || {FAIL}"})
    checked = check_tasks("-koracle or clean and not starter")
    assert checked.outcomes == {"oracle": "failed"}
    assert "round-1 does not pass: the reward is 0\nIt has only the working directory" in checked.messages["oracle"]
    assert '"/etc/planted"' in checked.messages["oracle"]


@pytest.mark.slow
def test_a_check_of_a_task_that_cannot_be_verified_there_warns(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 1, dockerfile="FROM python:3.11-slim-bookworm\n")
    checked = check_tasks("-kclean and not starter")
    assert checked.outcomes == {"clean": "passed"}
    (warning,) = checked.warnings
    assert "that is /, the whole system; give agents a directory by WORKDIR, or verify the task in a fork" in warning
