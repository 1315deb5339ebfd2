"""``verify_in = "place"``: the suite runs where the agent works, and nothing of it is left there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
PLACE = '[metadata.evocode]\nverify_in = "place"\n'
PASS = "echo 1 > /logs/verifier/reward.txt"


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_what_a_suite_leaves_behind_is_there_in_the_next_round(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    write_task("a", 2, toml=PLACE, test={1: f"echo 1 > /app/state; {PASS}", 2: f"[ -e /app/state ] && {PASS}"})
    assert run_tasks("tasks", env=env).outcomes == {"passed": 2}


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_no_agent_finds_the_suite_or_its_verdict(write_task: WriteTask, run_tasks: RunTasks, env: str) -> None:
    look = "ls -d /tests /solution/tests /logs/verifier; find / -xdev -name grader -o -xdev -name reward.txt"
    write_task(
        "a",
        3,
        toml=PLACE,
        solve=dict.fromkeys((1, 2, 3), f"({look}) >> found 2>/dev/null; true"),
        test=dict.fromkeys((1, 2, 3), f"[ -f /tests/grader ] && [ ! -s /app/found ] && {PASS}"),
        files={"tests/grader": "the suite\n"},
    )
    assert run_tasks("tasks", env=env).outcomes == {"passed": 3}


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("ending", ["exit 7", "kill -9 $$", "sleep 600"], ids=["error", "kill", "timeout"])
@pytest.mark.matrix
def test_nothing_is_left_however_a_suite_ends(
    write_task: WriteTask, run_tasks: RunTasks, env: str, ending: str
) -> None:
    write_task(
        "a",
        2,
        toml=f"{PLACE}",
        step={1: "verifier.timeout_sec = 2"},
        solve={2: "ls -d /tests /logs/verifier > found 2>/dev/null; true"},
        test={1: f"echo 0 > /logs/verifier/reward.txt; {ending}", 2: f"[ ! -s /app/found ] && {PASS}"},
    )
    # That a suite hangs under the reference solutions is an error of the task's.
    ended = "errors" if ending == "sleep 600" else "failed"
    assert run_tasks("tasks", env=env).outcomes == {ended: 1, "passed": 1}


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize(("keep", "reward"), [("", "0"), ("keep_processes = true", "1")])
@pytest.mark.matrix
def test_the_agents_processes_are_gone_unless_the_task_keeps_them(
    write_task: WriteTask, run_tasks: RunTasks, env: str, keep: str, reward: str
) -> None:
    alive = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep -q '^sleep 4321'"
    write_task(
        "a",
        1,
        toml=f"{PLACE}{keep}\n",
        solve={1: "setsid sleep 4321 > /dev/null 2>&1 & sleep 0.2"},
        test={1: f"if {alive}; then r=1; else r=0; fi; [ $r = {reward} ] && {PASS}"},
    )
    assert run_tasks("tasks", env=env).outcomes == {"passed": 1}


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_a_pid_1_that_the_agent_has_changed_forges_nothing(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    forge = "printf() { builtin printf 1; }; read() { data=1; return 1; }"
    write_task(
        "a",
        1,
        toml=PLACE,
        solve={1: f"builtin printf '{forge}\\0' > /proc/1/fd/0; true"},
        test={1: "echo 0 > /logs/verifier/reward.txt"},
    )
    assert run_tasks("tasks", env=env).outcomes == {"failed": 1}
