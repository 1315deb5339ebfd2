"""Suites in a clean environment: the image as it was built, with the work and what the reference changes, too."""

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

pytestmark = pytest.mark.turns(2)

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
CLEAN = '[metadata.evocode]\nverify_in = "clean"\n'
PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo 0 > /logs/verifier/reward.txt"
#: Work of one kind in the workdir, of another beside it.
WORK = "mkdir -p /var/lib/shop; echo row >> /var/lib/shop/rows; echo own > mine; echo planted > /etc/planted"
#: Passes where the second kind is there, too.
ALL_THERE = f"[ -s /var/lib/shop/rows ] && [ -s mine ] && {PASS}"


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
    session = run_tasks("tasks", "--evocode-strict", env=env)
    # What is neither workdir nor state is missing.
    assert [record.outcome for record in session.record("lacks").rounds] == ["failed"]
    assert session.outcomes == {"passed": 3, "failed": 1}
    # Tools that were changed outside do not matter.
    for record in session.record("a").rounds:
        assert record.verdict is not None
        assert record.verdict.trusts == ()
    found = session.attempt() / "steps/round-1/artifacts"
    assert ((found / "kept").read_text(), (found / "mine").read_text()) == ("kept\n", "own\n")


@pytest.mark.docker
@pytest.mark.nightly
def test_suites_find_the_same_in_docker(write_task: WriteTask, run_tasks: RunTasks) -> None:
    test_suites_find_the_workdir_and_the_state_and_nothing_else_of_the_agent(write_task, run_tasks, env="docker")


@pytest.mark.nightly
def test_the_option_asks_for_it_of_every_task_and_a_run_is_continued_and_verified_again_as_it_was_begun(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    serve, is_alone = "setsid sleep 4321 > /dev/null 2>&1 &", '! grep -qs "[4]321" /proc/[0-9]*/cmdline'
    for name, toml in {"script": "", "place": '[metadata.evocode]\nverify_in = "in-place"\n'}.items():
        write_task(name, 1, toml=toml, solve={1: serve}, test={1: f"{is_alone} && {PASS} || {FAIL}"})
    session = run_tasks("tasks")
    assert (session.outcomes, session.run.verify) == ({"passed": 1, "failed": 1}, None)
    shutil.rmtree(session.results)  # So that the run to resume is the next.
    session = run_tasks("tasks", "--evocode-verify=clean", "--evocode-snapshots")
    assert (session.outcomes, session.run.verify) == ({"passed": 2}, "clean")
    session.has("evocode: verify clean: suites that would run where the agent works are judged in a clean environment")
    refused = run_tasks("tasks", "--evocode-resume")
    assert f"the run {session.run.run} was begun with --evocode-verify=clean; continue it with that" in refused.text
    refused = run_tasks("tasks", "--evocode-verify=clean", "--evocode-strict", "--evocode-resume")
    assert f"the run {session.run.run} was begun with no --evocode-strict; continue it with that" in refused.text
    assert (session.record("script").verify, session.record("script").strict) == ("clean", False)
    result = CliRunner().invoke(main, ["regrade"])
    assert "verified 2 rounds again\nno verdict has changed" in result.output
    assert session.record("script").rounds[0].outcome == "passed"


@pytest.mark.slow
def test_a_check_says_what_to_declare(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 2, solve={1: WORK}, test={1: f"({ALL_THERE}) || {FAIL}", 2: f"[ -e log.txt ] && {PASS}"})
    write_task("declared", 1, toml=f'{CLEAN}state = ["/var/lib/shop"]\n', solve={1: WORK}, test={1: ALL_THERE})
    checked = check_tasks("-koracle or clean and not starter")
    assert checked.outcomes == {"oracle": "passed", "clean": "passed"}
    assert checked.warnings == [
        "round-1 passes only with what its solution changes outside of the working directory, so an agent that does "
        "the same is marked, and fails with --evocode-strict: the reward is 0\n"
        'Declare what belongs to the work, in [metadata.evocode]: state = ["/etc/planted", "/var/lib/shop/rows"]'
    ]


#: A server that goes on after the turn, and whether it does.
SERVE = "setsid sleep 4321 > /dev/null 2>&1 &"
SERVES = 'grep -qs "[4]321" /proc/[0-9]*/cmdline'

#: Does as the reference, and something of its own; or only the latter.
AGENTS = """
from pytest_evocode.agents import RoundTranscript


class Agent:
    def __init__(self, name, script):
        self.name, self.script = name, script

    def run_round(self, context):
        context.environment.exec(self.script, user="0")
        return RoundTranscript()


WORK = "mkdir -p /var/lib/shop; echo row >> /var/lib/shop/rows; echo own > mine; "
OWN = "echo x > /etc/planted; rm -f /usr/bin/env; mkdir -p /opt/own; echo x > /opt/own/x; echo x > /tmp/x; "


def pytest_evocode_make_agent(name):
    scripts = {"same": WORK + OWN, "own": OWN, "less": "echo own > mine"}
    return Agent(name, scripts[name]) if name in scripts else None
"""


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_a_suite_finds_what_its_reference_changes_and_nothing_else(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester, env: str
) -> None:
    pytester.makeconftest(AGENTS)
    clean = f"[ -e /usr/bin/env ] && [ ! -e /etc/planted ] && [ ! -e /opt/own ] && [ ! -e /tmp/x ] && {ALL_THERE}"
    solve = "mkdir -p /var/lib/shop; echo row > /var/lib/shop/rows; echo own > mine; mktemp -d > /dev/null"
    write_task("a", 2, solve={1: solve}, test={1: f"{clean} || {FAIL}", 2: f"{clean} || {FAIL}"})
    write_task("whole", 1, solve={1: solve}, test={1: f"[ -e /opt/own/x ] && {PASS} || {FAIL}"})
    session = run_tasks("tasks", "--evocode-agent=same", "--evocode-agent=less", "--evocode-fail-under=0", env=env)
    verdicts = [each.verdict for each in session.record("a", "same").rounds]
    assert [(each.reward, each.trusts) for each in verdicts if each] == [(1.0, ("/var/lib/shop/rows",))] * 2
    session.has("[*] the verdicts of 3 rounds trust the agent's system beyond what the task declares; *")
    assert [each.outcome for each in session.record("a", "less").rounds] == ["failed", "failed"]
    # Whoever fails for what was left behind is told so.
    (failed,) = session.record("whole", "same").rounds
    assert failed.verdict is not None
    assert any("the suite passes in all of the agent's system" in flag for flag in failed.verdict.flags)


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_who_plays_a_solution_whose_suite_passes_in_place_only_is_told_what_to_do(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester, env: str
) -> None:
    pytester.makeconftest(AGENTS.replace('"less": "echo own > mine"', f'"less": "{SERVE}"'))
    write_task("lives", 2, solve={1: SERVE, 2: "true"}, test=dict.fromkeys((1, 2), f"{SERVES} && {PASS} || {FAIL}"))
    write_task("wrong", 1, solve={1: SERVE}, test={1: FAIL})
    session = run_tasks("tasks", "--evocode-agent=less", "--evocode-fail-under=0", env=env)
    told = "with this solution the suite passes in place, and not in a clean environment"
    flags = {
        (task, agent): [each.verdict and [flag.partition(":")[0] for flag in each.verdict.flags] for each in rounds]
        for task in ("lives", "wrong")
        for agent in ("oracle", "less")
        for rounds in [session.record(task, agent).rounds]
    }
    # In place suites run beside an agent's processes, and where a turn follows it would find what they leave.
    assert flags == {
        ("lives", "oracle"): [[], [told]],
        ("lives", "less"): [[], []],
        ("wrong", "oracle"): [[]],
        ("wrong", "less"): [[]],
    }
    session.has(f"*{told}: processes, ACLs and set-id bits are*")


@pytest.mark.slow
def test_a_check_says_that_a_suite_passes_in_place_only(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 1, solve={1: SERVE}, test={1: f"{SERVES} && {PASS} || {FAIL}"})
    said = check_tasks("-koracle").messages["oracle"]
    assert "with this solution the suite passes in place, and not in a clean environment: " in said


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.nightly  # By day tests/integrity/test_shadowing.py has a strict session.
def test_in_a_strict_session_a_suite_finds_nothing_outside_of_the_workdir(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester, env: str
) -> None:
    pytester.makeconftest(AGENTS)
    solve = "mkdir -p /var/lib/shop; echo row > /var/lib/shop/rows; echo own > mine"
    write_task("a", 2, solve={1: solve}, test=dict.fromkeys((1, 2), f"({ALL_THERE}) || {FAIL}"))
    session = run_tasks("tasks", "--evocode-agent=same", "--evocode-strict", "--evocode-fail-under=0", env=env)
    assert [(each.outcome, each.verdict and each.verdict.trusts) for each in session.record("a", "same").rounds] == [
        ("failed", ()),
        ("failed", ()),
    ]


def test_in_place_every_verdict_trusts_the_agents_system(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(AGENTS)
    write_task("a", 1, solve={1: "true"}, test={1: f"[ -e /opt/own/x ] && {PASS} || {FAIL}"})
    session = run_tasks("tasks", "--evocode-agent=own", "--evocode-verify=in-place")
    (round_,) = session.record("a", "own").rounds
    assert round_.verdict is not None
    assert (round_.outcome, round_.verdict.rests_on, round_.verdict.trusts) == ("passed", "in-place", ("/",))
    session.has("evocode: verify in-place: every test.sh runs where the agent works, and trusts the agent's system")
    session.has("*100.0[*]*")


@pytest.mark.nightly  # By day they work in a directory of their own.
def test_agents_may_work_in_the_root_of_the_system(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(AGENTS)
    suite = f"[ -s /var/lib/shop/rows ] && [ -s /mine ] && [ ! -e /opt/own ] && {PASS}"
    solve = "mkdir -p /var/lib/shop; echo row > /var/lib/shop/rows; echo own > mine"
    write_task("a", 1, dockerfile="FROM python:3.11-slim-bookworm\n", solve={1: solve}, test={1: suite})
    session = run_tasks("tasks", "--evocode-agent=same")
    (round_,) = session.record("a", "same").rounds
    assert round_.verdict is not None
    assert (round_.outcome, round_.verdict.trusts) == ("passed", ("/mine", "/var/lib/shop/rows"))
