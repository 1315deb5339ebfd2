"""``network_mode = "allowlist"``: each phase of each round has its own hosts, and what was denied is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.environments.egress.outside import LISTED, served

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
#: A command for the shell: prints what a server said, or the status with which it was refused.
GET = """\
get() { python3 -c 'import sys, urllib.request as u
try: print(u.urlopen(sys.argv[1], timeout=20).read().decode())
except u.HTTPError as e: print(e.code)
except OSError as e: print(e)' "$1"; }
"""


def allowlist(section: str, *hosts: str) -> str:
    return f'[{section}]\nnetwork_mode = "allowlist"\nallowed_hosts = {list(hosts)}\n'


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_each_phase_reaches_its_own_hosts_and_the_record_has_what_it_was_denied(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    with served(LISTED) as port:
        url = f"http://{LISTED}:{port}"
        write_task(
            "a",
            2,
            toml=allowlist("environment", LISTED) + allowlist("agent", LISTED, "good.test") + allowlist("verifier"),
            step={2: allowlist("steps.agent", "good.test")},
            workdir={2: {"setup.sh": f"{GET}get {url}/setup > by-setup"}},
            solve={
                1: f"{GET}get {url}/one > one; get http://evil.test/ > two; get http://evil.test/x >> two",
                2: f"{GET}get {url}/one > three",
            },
            test={
                1: f"{GET}grep -q '/one {LISTED}' one && [ $(grep -c 403 two) = 2 ] && [ $(get {url}/suite) = 403 ]"
                " && echo 1 > /logs/verifier/reward.txt",
                2: f"grep -q '/setup {LISTED}' by-setup && grep -q 403 three && echo 1 > /logs/verifier/reward.txt",
            },
        )
        session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 2}
    first, second = session.record().rounds
    assert [(each.phase, each.host, each.port, each.count) for each in first.denied or ()] == [
        ("agent", "evil.test", 80, 2),
        ("verifier", LISTED, port, 1),
    ]
    assert [(each.phase, each.host, each.count) for each in second.denied or ()] == [("agent", LISTED, 1)]
    session.has("*network: the agent was denied evil.test:80 2 times: the name is not listed")


def test_a_failed_round_says_what_was_denied_and_other_tasks_say_nothing(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, toml=allowlist("agent"), solve={1: f"{GET}[ $(get http://evil.test/) = 403 ]"})
    write_task("b", 1)
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 1, "failed": 1}
    session.has("*note: network: the agent was denied evil.test:80 once: the name is not listed")
    (round_,) = session.record("b").rounds
    assert round_.denied is None


def test_a_suite_in_place_has_its_own_hosts_where_the_agent_works(write_task: WriteTask, run_tasks: RunTasks) -> None:
    with served(LISTED) as port:
        url = f"http://{LISTED}:{port}"
        place = '[metadata.evocode]\nverify_in = "place"\n'
        write_task(
            "a",
            2,
            toml=allowlist("agent") + allowlist("verifier", LISTED) + place,
            solve=dict.fromkeys((1, 2), f"{GET}[ $(get {url}/agent) = 403 ]"),
            test=dict.fromkeys((1, 2), f"{GET}get {url}/suite | grep suite && echo 1 > /logs/verifier/reward.txt"),
        )
        session = run_tasks("tasks")
    assert session.outcomes == {"passed": 2}
    for round_ in session.record().rounds:
        assert [(each.phase, each.host) for each in round_.denied or ()] == [("agent", LISTED)]


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_a_separate_verifier_has_the_hosts_of_its_own_environment(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    apart = '[verifier]\nenvironment_mode = "separate"\n' + allowlist("verifier.environment", LISTED)
    with served(LISTED) as port:
        suite = f"{GET}get http://{LISTED}:{port}/suite | grep suite && [ $(get http://evil.test/) = 403 ]"
        write_task(
            "a",
            1,
            toml=f'artifacts = ["/app/log.txt"]\n[environment]\nnetwork_mode = "no-network"\n{apart}',
            test={1: f"{suite} && echo 1 > /logs/verifier/reward.txt"},
        )
        session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 1}
    (round_,) = session.record().rounds
    assert [(each.phase, each.host) for each in round_.denied or ()] == [("verifier", "evil.test")]
