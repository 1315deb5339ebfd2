"""What every environment promises about its life and its commands, whichever engine makes it."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_evocode.environments import (
    Command,
    Engine,
    Environment,
    ExecResult,
    Files,
    read_environment_file,
)
from pytest_evocode.environments.command_environment import CommandEnvironment
from pytest_evocode.environments.programs import OUTPUT_LIMIT, CappedOutput
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Task

if TYPE_CHECKING:
    from tests.environments.conftest import MakeEnvironment, MakeTask

pytestmark = [pytest.mark.matrix, pytest.mark.every_python]


def test_starts_with_empty_log_directories_that_everybody_can_write(environment: Environment) -> None:
    for name in ("/logs/agent", "/logs/artifacts"):
        assert environment.exec(["ls", "-A", name]).output == ""
        assert environment.exec(["touch", f"{name}/probe"], user="nobody").ok


def test_starts_without_anything_of_the_verifier_or_the_oracle(shared: Environment) -> None:
    for name in ("/tests", "/solution", "/logs/verifier"):
        assert not shared.exec(["test", "-e", name]).ok


def test_an_engine_says_how_much_memory_its_environments_share(engine: Engine) -> None:
    of_host = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 2**27 < engine.memory <= of_host


def test_an_argv_reaches_the_program_as_it_is(shared: Environment) -> None:
    assert shared.exec(["printf", "%s|", "$HOME", "a b", "", "*"]).output == "$HOME|a b||*|"


def test_a_string_is_a_bash_script(shared: Environment) -> None:
    result = shared.exec("words=(one 'two three')\n[[ ${#words[@]} == 2 ]] && echo \"${words[1]}\"")
    assert (result.exit_code, result.output, result.timed_out) == (0, "two three\n", False)
    assert result.ok
    assert result.seconds > 0


@pytest.mark.parametrize("code", [1, 3, 126, 255])
def test_exit_codes_come_through(shared: Environment, code: int) -> None:
    result = shared.exec(f"exit {code}")
    assert result.exit_code == code
    assert not result.ok


@pytest.mark.parametrize(("signal", "code"), [("TERM", 143), ("KILL", 137), ("SEGV", 139)])
def test_a_command_that_dies_of_a_signal_ends_with_128_and_its_number(
    shared: Environment, signal: str, code: int
) -> None:
    assert shared.exec(f"kill -{signal} $$").exit_code == code


def test_a_missing_program_is_exit_code_127_and_named(shared: Environment) -> None:
    result = shared.exec(["no-such-program", "x"])
    assert result.exit_code == 127
    assert "no-such-program" in result.output


@pytest.mark.parametrize(
    ("command", "user", "cwd", "named"),
    [
        (["true"], "no-such-user", None, "no-such-user"),
        (["true"], None, "/no/such/directory", "/no/such/directory"),
        (["/etc/passwd"], None, None, "/etc/passwd"),
    ],
    ids=["user", "cwd", "not-executable"],
)
def test_a_command_that_cannot_start_is_a_failing_result_that_says_why(
    shared: Environment, command: list[str], user: str | None, cwd: str | None, named: str
) -> None:
    result = shared.exec(command, user=user, cwd=cwd)
    assert result.exit_code == 126
    assert named in result.output


def test_variables_come_from_image_task_and_call_and_the_nearest_wins(shared: Environment) -> None:
    script = 'echo "$GREETING|$WHO|$FROM_TASK|$FROM_CALL"'
    assert shared.exec(script).output == "hello from the image|task|yes|\n"
    assert shared.exec(script, env={"WHO": "call", "FROM_CALL": "it's"}).output == (
        "hello from the image|call|yes|it's\n"
    )


def test_path_and_home_are_set(shared: Environment) -> None:
    assert shared.exec("echo $HOME").output == "/root\n"
    assert shared.exec("echo $HOME", user="nobody").output == "/nonexistent\n"
    assert "/usr/local/bin" in shared.exec("echo $PATH").output.strip().split(":")


def test_commands_start_in_the_images_working_directory(shared: Environment) -> None:
    assert shared.workdir == "/app"
    assert shared.exec(["pwd"]).output == "/app\n"
    assert shared.exec(["pwd"], cwd="/tmp").output == "/tmp\n"


def test_the_task_may_name_another_working_directory(make_task: MakeTask, make_environment: MakeEnvironment) -> None:
    task = make_task(toml='[environment]\nworkdir = "/app/tree"\n')
    environment = make_environment(task)
    assert environment.workdir == "/app/tree"
    assert environment.exec(["pwd"]).output == "/app/tree\n"


@pytest.mark.parametrize(("user", "number"), [("root", 0), (0, 0), ("nobody", 65534), (65534, 65534), ("1234", 1234)])
def test_commands_run_as_a_user_by_name_or_number(shared: Environment, user: str | int, number: int) -> None:
    assert shared.exec(["id", "-u"], user=user).output == f"{number}\n"


def test_commands_run_as_the_images_user_unless_told_otherwise(
    make_task: MakeTask, make_environment: MakeEnvironment
) -> None:
    task = make_task("FROM python:3.11-slim-bookworm\nWORKDIR /tmp\nUSER nobody\n")
    environment = make_environment(task)
    assert environment.exec(["id", "-un"]).output == "nobody\n"
    assert environment.exec(["id", "-u"], user=0).output == "0\n"


def test_output_holds_stdout_and_stderr(shared: Environment) -> None:
    lines = shared.exec("echo out; echo err >&2; echo out again").output.splitlines()
    assert sorted(lines) == ["err", "out", "out again"]


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 9e9])
def test_a_command_may_have_as_long_as_anybody_asks_for(shared: Environment, timeout: float) -> None:
    assert shared.exec("echo here", timeout=timeout).output == "here\n"


def test_output_that_is_no_utf8_is_decoded_with_replacements(shared: Environment) -> None:
    assert shared.exec(r"printf '\xff\xfe gr\xc3\xbc\xc3\x9fe'").output == "\ufffd\ufffd grüße"


def test_a_flood_of_output_keeps_head_and_tail_in_bounded_memory(shared: Environment) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = shared.exec("echo HEAD; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo TAIL", timeout=120)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.ok
    assert result.output.startswith("HEAD\nxxx")
    assert result.output.endswith("xxx\nTAIL\n")
    assert f"[... {100_000_011 - 2 * OUTPUT_LIMIT} bytes left out ...]" in result.output
    assert grown < 90_000  # kilobytes


def test_standard_input_is_empty(shared: Environment) -> None:
    assert shared.exec("cat; echo end", timeout=30).output == "end\n"


def test_commands_of_several_threads_run_at_the_same_time(shared: Environment) -> None:
    # Each waits for all the others, so that one after the other would never end.
    script = "touch /tmp/meet-$N; until [ $(ls /tmp/meet-* | wc -l) = 4 ]; do sleep 0.02; done; echo $N"
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda n: shared.exec(script, env={"N": str(n)}, timeout=60), range(4)))
    shared.exec("rm /tmp/meet-*")
    assert [result.output for result in results] == ["0\n", "1\n", "2\n", "3\n"]


def test_two_environments_see_nothing_of_each_other(make_environment: MakeEnvironment) -> None:
    one, other = make_environment(), make_environment()
    one.exec("echo secret > /tmp/mine; echo changed > /app/from-image; sleep 300 >/dev/null 2>&1 &")
    assert other.exec("ls /tmp; cat /app/from-image").output == "original\n"
    assert "sleep" not in other.exec("cat /proc/[0-9]*/comm").output


def test_without_a_network_there_is_only_loopback(shared: Environment) -> None:
    interfaces = shared.exec("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").output.split()
    assert set(interfaces) <= {"lo", "tunl0", "sit0", "ip6tnl0"}
    script = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
    result = shared.exec(["python3", "-c", script], timeout=30)
    assert "Network is unreachable" in result.output


def test_loopback_works_without_a_network(shared: Environment) -> None:
    script = (
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(server.getsockname(), 5)\n"
        "server.accept()[0].sendall(b'heard'); print(client.recv(9).decode())"
    )
    assert shared.exec(["python3", "-c", script], timeout=30).output == "heard\n"


def test_stop_twice_and_before_start_is_fine(engine: Engine, plain_task: Task) -> None:
    environment = engine.create(plain_task, env={}, network=None)
    environment.stop()
    environment = engine.create(plain_task, env={}, network=None)
    environment.start()
    environment.stop()
    environment.stop()


def test_a_stopped_environment_raises_a_fault(environment: Environment) -> None:
    environment.stop()
    with pytest.raises(EnvironmentFault):
        environment.exec(["true"])
    with pytest.raises(EnvironmentFault):
        read_environment_file(environment, "/etc/passwd", 10_000)
    with pytest.raises(EnvironmentFault):
        environment.snapshot()


def test_stop_from_another_thread_ends_a_running_command(environment: Environment) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(environment.exec, "touch /tmp/up; sleep 300")
        while not environment.exec(["test", "-e", "/tmp/up"]).ok:
            time.sleep(0.02)
        environment.stop()
        with pytest.raises(EnvironmentFault):
            running.result(300)


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("size", [2**17 - 1, 2**17, 3_000_000])
def test_a_script_of_any_length_runs_as_every_other(shared: Environment, size: int, user: str) -> None:
    def run(script: str) -> ExecResult:
        return shared.exec(script.ljust(size, "#"), user=user, env={"WORD": "it's"}, timeout=60)

    assert shared.exec("touch /tmp/before; sleep 0.02", user=user).ok
    result = run('cat; readlink /proc/self/fd/0\necho $LINENO $0 $# "$WORD"; echo err >&2\ncd /tmp; pwd; exit 7\n')
    assert (result.exit_code, sorted(result.output.splitlines())) == (7, ["/dev/null", "/tmp", "2 bash 0 it's", "err"])
    assert run("kill -TERM $$\n").exit_code == 143
    assert run("no-such-program\n").output == "bash: line 1: no-such-program: command not found\n"
    assert shared.exec("find / -xdev -newer /tmp/before -type f; rm /tmp/before", timeout=60).output == ""


def test_a_long_script_is_killed_at_its_deadline(environment: Environment) -> None:
    result = environment.exec("sleep 300 & echo on; sleep 300\n" + "#" * 2**20, timeout=1)
    assert (result.timed_out, result.output) == (True, "on\n")
    assert "sleep" not in environment.exec("cat /proc/[0-9]*/comm").output


def test_an_argument_is_as_long_as_the_kernel_takes(shared: Environment) -> None:
    result = shared.exec(["true", "#" * 2**17])
    assert not result.ok
    assert "rgument list too long" in result.output


def test_our_engines_have_what_only_some_features_need(shared: Environment) -> None:
    contract = {**vars(Files), **vars(Environment)}
    lacking = {
        name
        for name, each in contract.items()
        if isinstance(each, FunctionType) and "_lacking" in each.__code__.co_names
    }
    assert {"interact", "keep", "pack_trees", "run_program"} <= lacking
    assert [name for name in lacking if getattr(type(shared), name) is contract[name]] == []


def test_an_environment_of_somebody_else_says_what_it_lacks() -> None:
    class Minimal(CommandEnvironment):
        def run(self, command: Command, output: CappedOutput, deadline: float | None) -> int | None:
            return 0

    environment: Environment = cast(Any, Minimal)()
    assert (environment.egress, environment.enter(), environment.service_states()) == (None, None, {})
    assert environment.files_of("main") is environment
    with environment.mendable(), pytest.raises(EnvironmentFault, match="has no terminal"):
        environment.interact(Command(("true",)), 0)
    with pytest.raises(EnvironmentFault, match="no service database"):
        environment.files_of("database")


def test_what_happens_to_an_environment_is_logged_without_the_values_of_variables(
    make_environment: MakeEnvironment, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "pytest_evocode.environments")
    environment = make_environment(env={"TOKEN": "value-of-token"})
    environment.exec(["true"], env={"MINE": "value-of-mine"})
    environment.kill_processes()
    environment.snapshot().discard()
    environment.stop()
    for word in ("started", "killing", "stopping|removing"):
        assert re.search(word, caplog.text), word
    assert "value-of" not in caplog.text


def test_a_session_may_have_more_than_a_thousand_descriptors(engine: Engine, plain_task: Task) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(1100):
            held.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        environment = engine.create(plain_task, env={}, network=None)
        held.callback(environment.stop)
        environment.start()
        assert environment.exec("echo line | cat").output == "line\n"
        snapshot = environment.snapshot()
        held.callback(snapshot.discard)
        fork = environment.fork(snapshot, network=None)
        held.callback(fork.stop)
        fork.start()
        assert fork.exec("echo line | cat").output == "line\n"
