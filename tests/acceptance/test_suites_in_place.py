"""``verify_in = "in-place"``: the suite runs where the agent works, and nothing of it is left there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
PLACE = '[metadata.evocode]\nverify_in = "in-place"\n'
PASS = "echo 1 > /logs/verifier/reward.txt"


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_no_agent_finds_the_suite_or_its_verdict(write_task: WriteTask, run_tasks: RunTasks, env: str) -> None:
    look = "ls -d /tests /solution/tests /logs/verifier; find / -xdev -name grader -o -xdev -name reward.txt"
    write_task(
        "a",
        2,
        toml=PLACE,
        solve=dict.fromkeys((1, 2), f"({look}) >> found 2>/dev/null; true"),
        test=dict.fromkeys((1, 2), f"[ -f /tests/grader ] && [ ! -s /app/found ] && {PASS}"),
        files={"tests/grader": "the suite\n"},
    )
    assert run_tasks("tasks", env=env).outcomes == {"passed": 2}


@pytest.mark.nightly
def test_however_a_suite_ends_nothing_of_it_is_left_but_its_changes_and_what_the_agent_started_runs_on(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    look_at_what_is_left(write_task, run_tasks, "sandbox")


@pytest.mark.docker
@pytest.mark.nightly
def test_in_docker_nothing_else_is_left_of_a_suite(write_task: WriteTask, run_tasks: RunTasks) -> None:
    look_at_what_is_left(write_task, run_tasks, "docker")


def look_at_what_is_left(write_task: WriteTask, run_tasks: RunTasks, env: str) -> None:
    # That a suite hangs under the reference solutions is an error of the task's.
    endings = {"error": ("exit 7", "failed"), "kill": ("kill -9 $$", "failed"), "timeout": ("sleep 600", "error")}
    for name, (ending, _) in endings.items():
        write_task(
            name,
            2,
            toml=PLACE,
            step={1: "verifier.timeout_sec = 2"},
            solve={2: "ls -d /tests /logs/verifier > found 2>/dev/null; true"},
            test={1: f"echo 0 > /logs/verifier/reward.txt; {ending}", 2: f"[ ! -s /app/found ] && {PASS}"},
        )
    write_task("changes", 2, toml=PLACE, test={1: f"echo 1 > /app/state; {PASS}", 2: f"[ -e /app/state ] && {PASS}"})
    alive = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep -q '^sleep 4321'"
    service = "setsid sleep 4321 > /dev/null 2>&1 & sleep 0.2"
    write_task("service", 1, toml=PLACE, solve={1: service}, test={1: f"{alive} && {PASS}"})
    session = run_tasks("tasks", env=env)
    tasks = (*endings, "changes", "service")
    assert {name: [each.outcome for each in session.record(name).rounds] for name in tasks} == {
        **{name: [how, "passed"] for name, (_, how) in endings.items()},
        "changes": ["passed", "passed"],
        "service": ["passed"],
    }
