"""What every environment promises about an agent's turn in a container whose shell or working directory is gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Environment
from pytest_evocode.environments.command_environment import SHELL
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from tests.environments.conftest import MakeEnvironment, MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]

BASH = "rm -f /usr/bin/bash /bin/bash"
# All of `rm -rf /` that matters here: each other file of /usr would take a sandbox a millisecond.
ALL_FILES = (
    "rm -rf /app /dev/* /etc /home /root /srv /tmp /var /usr/lib/*/lib*.so* /usr/lib/*/ld-* /usr/lib64/* /lib /lib64 "
    "/bin /sbin /usr/bin /usr/sbin /usr/local 2>&1"
)
BROKEN = {
    "bash": (BASH, "/app"),
    "loader": ("rm -f /lib64/ld-* /lib/ld-*", "/app"),
    "all-files": (ALL_FILES, "/"),
    "workdir": ("rm -rf /app", "/"),
    "workdir-is-a-file": ("rm -rf /app; echo > /app", "/"),
}
MEND = f"cp -an {SHELL}/image/. /; [ -d /app ] || rm -f /app; mkdir -p /app"
broken = pytest.mark.parametrize(("breaking", "start"), BROKEN.values(), ids=BROKEN)


@broken
def test_a_turn_goes_on_without_a_shell_or_working_directory(
    environment: Environment, breaking: str, start: str
) -> None:
    with environment.mendable():
        environment.exec(breaking)
        ended = environment.exec('echo "now in $PWD, $WORD" > /dev/null; bash -c "pwd; exit 5"', env={"WORD": "a b"})
    assert ended.exit_code == 5, ended.output
    assert ended.output.splitlines()[-1] == start
    assert f"\nevocode: {'there is no directory /app' if start == '/' else 'bash cannot be started'}" in ended.output


@broken
def test_what_an_agent_has_mended_is_ordinary_from_the_next_command_on(
    environment: Environment, breaking: str, start: str
) -> None:
    with environment.mendable():
        environment.exec(breaking)
        mended = environment.exec(MEND)
        assert mended.ok, mended.output
        assert environment.exec("pwd; type cp").output == "/app\ncp is /usr/bin/cp\n"
    assert environment.exec("pwd").output == "/app\n"


def test_the_shell_is_gone_after_the_turn_with_all_that_was_written_there(environment: Environment) -> None:
    with environment.mendable():
        environment.exec(BASH)
        assert environment.exec(f"touch {SHELL}/mine; chmod 500 {SHELL}").ok
    snapshot = environment.snapshot()
    assert not [path for path in snapshot.changed_paths() if path.startswith(SHELL)]
    assert environment.exec(["ls", "-A", SHELL]).exit_code == 2
    snapshot.discard()


def test_what_an_agent_left_without_bash_starts_where_it_can_be_mended(environment: Environment) -> None:
    with environment.mendable():
        environment.exec(f"echo kept > kept; {BASH}")
    snapshot = environment.snapshot()
    for mends in (True, False):
        fork = environment.fork(snapshot, network=None)
        try:
            with fork.mendable() if mends else pytest.raises(EnvironmentFault, match="bash"):
                fork.start()
                assert fork.exec("cat kept").output.endswith("kept\n")
                fork.kill_processes()
                assert fork.exec("cat kept").output.endswith("kept\n")
        finally:
            fork.stop()
    snapshot.discard()


@broken
def test_outside_of_turns_a_command_that_cannot_start_fails(
    environment: Environment, breaking: str, start: str
) -> None:
    with environment.mendable():
        environment.exec(breaking)
    assert environment.exec("echo ran").exit_code in (126, 127)


def test_a_command_that_names_its_directory_starts_there_or_not_at_all(environment: Environment) -> None:
    with environment.mendable():
        environment.exec("rm -rf /app")
        assert environment.exec("echo ran", cwd="/app").exit_code == 126
        assert environment.exec("pwd", cwd="/tmp").output == "/tmp\n"


def test_a_command_that_was_started_is_run_once_whatever_it_breaks_and_however_it_ends(
    environment: Environment,
) -> None:
    with environment.mendable():
        ended = environment.exec("echo once >> /tmp/runs; rm -rf /app; no-such-program")
        assert ended.exit_code == 127
        assert environment.exec("cat /tmp/runs", cwd="/").output == "once\n"
        assert environment.exec(["no-such-program"], cwd="/").exit_code == 127
        assert not environment.exec(["test", "-e", SHELL], cwd="/").ok


def test_a_shell_that_an_agent_has_removed_too_is_brought_again(environment: Environment) -> None:
    with environment.mendable():
        for _ in range(2):
            environment.exec(ALL_FILES)
            assert environment.exec("echo ran").output.endswith("\nran\n")


def test_files_are_brought_and_removed_where_all_are_gone(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "solve.sh").write_text("pwd; cat > /app/made <<< made\n", encoding="utf-8")
    with environment.mendable():
        environment.exec(ALL_FILES)
        environment.upload([tmp_path], "/solution")
        environment.upload([tmp_path], "/app")
        assert environment.exec("bash /solution/solve.sh").output.endswith("\n/app\n")
        environment.remove(["/solution"])
        assert environment.exec("cat made; echo /sol*").output.endswith("\nmade\n/sol*\n")


def test_users_other_than_root_get_the_shell_as_well(make_task: MakeTask, make_environment: MakeEnvironment) -> None:
    task = make_task("FROM python:3.11-slim-bookworm\nWORKDIR /app\nUSER nobody\n")
    environment = make_environment(task)
    with environment.mendable():
        environment.exec("rm -rf /app; rm -f /usr/bin/bash /bin/bash", user="root")
        ended = environment.exec("cat /proc/self/status | grep Uid; pwd")
        assert ended.output.split()[-5:] == ["65534"] * 4 + ["/"]


@pytest.mark.parametrize("breaking", [BASH, BROKEN["loader"][0], ALL_FILES], ids=["bash", "loader", "all-files"])
@pytest.mark.nightly  # By day test_contract_processes.py has deadlines.
def test_a_turn_without_a_shell_can_run_out_of_time(environment: Environment, breaking: str) -> None:
    with environment.mendable():
        environment.exec(breaking)
        assert environment.exec("touch /ran; sleep 300", timeout=3).timed_out
        environment.kill_processes()
        assert environment.exec("echo /ra*").output.endswith("/ran\n")
    environment.snapshot().discard()


@pytest.mark.parametrize("planted", [f"touch {SHELL}", f"ln -s {SHELL} {SHELL}", f"mkdir -p {SHELL}/functions"])
def test_whatever_an_agent_puts_in_the_shells_way_is_no_fault_of_the_engine(
    environment: Environment, planted: str
) -> None:
    with environment.mendable():
        environment.exec(f"{planted}; rm -rf /app; ln -sf true /usr/bin/rm")
        ended = environment.exec("echo ran")
        assert ended.exit_code in (126, 127) or ended.output.endswith("\nran\n")
    assert environment.exec("echo ran", cwd="/").ok
