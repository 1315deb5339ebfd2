"""``network_mode = "allowlist"``: each phase of each round has its own hosts, and what was denied is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.environments.egress.outside import LISTED, served

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

PASS = "echo 1 > /logs/verifier/reward.txt"
#: A command for the shell: prints what a server said, or the status with which it was refused.
GET = """\
get() { python3 -c 'import sys, urllib.request as u
try: print(u.urlopen(sys.argv[1], timeout=20).read().decode())
except u.HTTPError as e: print(e.code)
except OSError as e: print(e)' "$1"; }
"""


def allowlist(section: str, *hosts: str) -> str:
    return f'[{section}]\nnetwork_mode = "allowlist"\nallowed_hosts = {list(hosts)}\n'


@pytest.mark.parametrize("env", ["sandbox"])
@pytest.mark.nightly
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
                f" && {PASS}",
                2: f"grep -q '/setup {LISTED}' by-setup && grep -q 403 three && {PASS}",
            },
        )
        write_task("fails", 1, toml=allowlist("agent"), solve={1: f"{GET}[ $(get http://never.test/) = 403 ]"})
        write_task("open", 1)
        suite = f"{GET}get {url}/suite | grep suite"
        write_task(
            "place",
            1,
            toml=f'{allowlist("agent")}{allowlist("verifier", LISTED)}[metadata.evocode]\nverify_in = "in-place"\n',
            solve={1: f"{GET}[ $(get {url}/agent) = 403 ]"},
            test={1: f"{suite} && {PASS}"},
        )
        apart = '[verifier]\nenvironment_mode = "separate"\n' + allowlist("verifier.environment", LISTED)
        write_task(
            "separate",
            1,
            toml=f'artifacts = ["/app/log.txt"]\n[environment]\nnetwork_mode = "no-network"\n{apart}',
            test={1: f"{suite} && [ $(get http://evil.test/) = 403 ] && {PASS}"},
        )
        session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 5, "failed": 1}, session.text
    first, second = session.record().rounds
    assert [(each.phase, each.host, each.port, each.count) for each in first.denied or ()] == [
        ("agent", "evil.test", 80, 2),
        ("verifier", LISTED, port, 1),
    ]
    assert [(each.phase, each.host, each.count) for each in second.denied or ()] == [("agent", LISTED, 1)]
    session.has("*network: the agent was denied evil.test:80 2 times: the name is not listed")
    # A failed round says it, and other tasks say nothing.
    session.has("*note: network: the agent was denied never.test:80 once: the name is not listed")
    denied = {}
    for name in ("open", "place", "separate"):
        (round_,) = session.record(name).rounds
        denied[name] = round_.denied and [(each.phase, each.host) for each in round_.denied]
    # A suite in place has its own hosts where the agent works, a separate verifier those of its own environment.
    assert denied == {"open": None, "place": [("agent", LISTED)], "separate": [("verifier", "evil.test")]}


@pytest.mark.parametrize("env", ["sandbox"])
@pytest.mark.nightly
def test_rounds_may_open_and_close_the_network_of_their_agents(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    # A gate that is open cannot resolve this name, and one that is closed does not try.
    asks = f"{GET}get http://nowhere.invalid/ > status"
    write_task(
        "a",
        3,
        toml='[environment]\nnetwork_mode = "no-network"\n',
        step={2: 'agent.network_mode = "public"\n'},
        solve=dict.fromkeys((1, 2, 3), asks),
        test={index: f"grep -qx {status} status && {PASS}" for index, status in ((1, 403), (2, 502), (3, 403))},
    )
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 3}, session.text


@pytest.mark.docker
@pytest.mark.nightly
def test_each_phase_reaches_its_own_hosts_in_docker(write_task: WriteTask, run_tasks: RunTasks) -> None:
    test_each_phase_reaches_its_own_hosts_and_the_record_has_what_it_was_denied(write_task, run_tasks, env="docker")


@pytest.mark.docker
@pytest.mark.nightly
def test_rounds_may_open_and_close_the_network_in_docker(write_task: WriteTask, run_tasks: RunTasks) -> None:
    test_rounds_may_open_and_close_the_network_of_their_agents(write_task, run_tasks, env="docker")
