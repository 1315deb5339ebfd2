"""What every environment promises about processes: background ones live on, a deadline leaves none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_evocode.environments import Environment
from pytest_evocode.errors import EnvironmentFault

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]

PROCESSES = "cd /proc; for p in [0-9]*; do [ $p = 1 ] || [ $p = $$ ] || cat $p/comm 2>/dev/null; done; true"
# Between its fork and its exec a background process has its shell's name.
SLEEPS_BEHIND = 'sleep 300 & until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done'
# A daemon as careful as one can be: two forks, a session of its own, deaf to everything it can be deaf to.
DAEMON = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        while True:
            with open("/tmp/heartbeat", "a") as file:
                file.write(".")
            time.sleep(0.01)
    os._exit(0)
os.wait()
while not os.path.exists("/tmp/heartbeat"):
    time.sleep(0.01)
print("daemon runs", flush=True)
"""


def processes(environment: Environment) -> list[str]:
    """The names of all processes but PID 1."""
    return environment.exec(PROCESSES, cwd="/").output.split()


def upload_script(environment: Environment, directory: Path, text: str) -> None:
    directory.mkdir()
    (directory / "script.py").write_text(text)
    environment.upload([directory], "/opt/script")


def test_a_deadline_kills_the_whole_tree_and_keeps_the_output(environment: Environment, tmp_path: Path) -> None:
    upload_script(environment, tmp_path / "script", DAEMON)
    script = "python3 /opt/script/script.py; (sleep 300 & sleep 300); sleep 300"
    result = environment.exec(script, timeout=3)
    assert result.timed_out
    assert result.exit_code is None
    assert not result.ok
    assert result.output == "daemon runs\n"
    assert result.seconds < 30
    assert processes(environment) == []


def test_a_deadline_kills_what_earlier_commands_left_running_too(environment: Environment) -> None:
    environment.exec("sleep 300 >/dev/null 2>&1 &")
    assert environment.exec(["sleep", "300"], timeout=0.5).timed_out
    assert processes(environment) == []


@pytest.mark.nightly  # By day deadlines come later.
def test_a_deadline_may_come_while_the_command_is_only_being_started(environment: Environment) -> None:
    for milliseconds in range(8):
        assert environment.exec(["sleep", "300"], timeout=milliseconds / 4000).timed_out
    assert processes(environment) == []


def test_a_command_that_fights_its_kill_loses(environment: Environment) -> None:
    result = environment.exec("sleep 0.5; while :; do kill -9 -1; done", timeout=2)
    assert result.timed_out
    assert result.seconds < 30
    assert processes(environment) == []
    assert environment.exec("cat /app/from-image").output == "original\n"


@pytest.mark.slow
@pytest.mark.nightly  # By day a deadline kills a tree of processes, above.
def test_hundreds_of_processes_are_gone_after_a_deadline(environment: Environment) -> None:
    assert environment.exec("for i in {1..300}; do (sleep 300 &); done; sleep 300", timeout=3).timed_out
    assert processes(environment) == []


@pytest.mark.nightly  # By day commands of several threads run, and deadlines are kept one by one.
def test_four_deadlines_at_once(environment: Environment) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: environment.exec(["sleep", "300"], timeout=0.5), range(4)))
    # One deadline kills what the others run: each ends at its own deadline or of that kill.
    assert all(result.timed_out or result.exit_code == 137 for result in results)
    assert processes(environment) == []


def test_a_command_returns_while_its_background_process_holds_stdout(environment: Environment) -> None:
    result = environment.exec(f"{SLEEPS_BEHIND}; echo started", timeout=60)
    assert (result.exit_code, result.output) == (0, "started\n")
    assert result.seconds < 15
    assert processes(environment) == ["sleep"]


def test_a_background_service_goes_on_writing_to_the_output_it_inherited(environment: Environment) -> None:
    # More than a pipe holds, so that it would die of SIGPIPE, or stop, where nobody reads on.
    environment.exec("(sleep 0.5; head -c 1000000 /dev/zero && echo fine > /tmp/written) &")
    assert environment.exec("until [ -e /tmp/written ]; do sleep 0.05; done; cat /tmp/written", timeout=60).ok


def test_a_background_service_does_not_flood_the_output_of_its_command(environment: Environment) -> None:
    result = environment.exec("yes & sleep 0.1", timeout=60)
    assert result.exit_code == 0
    assert result.seconds < 30
    environment.kill_processes()
    assert processes(environment) == []


def test_kill_minus_one_does_not_end_the_environment(environment: Environment) -> None:
    assert environment.exec("echo kept > /tmp/kept; kill -9 -1 2>/dev/null; echo survived").output == "survived\n"
    assert environment.exec("kill -9 1; kill -TERM 1; cat /tmp/kept").output == "kept\n"


def test_orphans_are_reaped(environment: Environment) -> None:
    environment.exec("for i in {1..30}; do (sleep 0.05 >/dev/null 2>&1 &); done; sleep 0.3")
    states = environment.exec("cut -d' ' -f3 /proc/[0-9]*/stat 2>/dev/null").output.split()
    assert "Z" not in states
    assert processes(environment) == []


def test_kill_processes_ends_everything_of_every_user(environment: Environment) -> None:
    environment.exec("sleep 300 >/dev/null 2>&1 &")
    environment.exec("setsid nohup sleep 300 >/dev/null 2>&1 &", user="nobody")
    environment.exec("sleep 300 >/dev/null 2>&1 & kill -STOP $!")
    assert len(processes(environment)) == 3
    environment.kill_processes()
    assert processes(environment) == []
    environment.kill_processes()
    assert environment.exec(["true"]).ok


def test_a_command_that_another_thread_kills_ends_and_the_environment_runs_on(
    environment: Environment, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where that takes starting the container anew, which whoever ran the command does not do once more."""
    with caplog.at_level("INFO"), ThreadPoolExecutor(1) as pool:
        killed = pool.submit(environment.exec, "touch /tmp/begun; sleep 300", user="0", timeout=300)
        while environment.read_files({"/tmp/begun": 1})["/tmp/begun"] is None:
            pass
        environment.kill_processes()
        assert killed.result().exit_code == 137
    assert environment.exec("echo on").output == "on\n"
    assert "starting the container again" not in caplog.text


def test_commands_inherit_no_ignored_signals_and_no_descriptors(environment: Environment) -> None:
    masks = environment.exec("grep -E 'Sig(Ign|Blk)' /proc/self/status | cut -f2").output.split()
    assert len(masks) == 2
    # Signals 32 and 33 are the C library's own: a runner far above may have them ignored, and no program can set them.
    own = 1 << 31 | 1 << 32
    assert [int(mask, 16) & ~own for mask in masks] == [0, 0]
    # The fourth is the listing's own.
    assert environment.exec(["ls", "/proc/self/fd"]).output.split() == ["0", "1", "2", "3"]


def test_no_signal_from_inside_ends_an_environment(environment: Environment) -> None:
    environment.exec("for number in $(seq 64); do kill -$number 1; done; true")
    assert environment.exec("echo still here").output == "still here\n"


def test_a_commands_process_group_is_its_own(environment: Environment) -> None:
    environment.exec(SLEEPS_BEHIND)
    environment.exec("kill -TERM 0")
    assert processes(environment) == ["sleep"]


@pytest.mark.nightly  # By day one that fights its kill loses, above.
def test_a_command_that_stops_whoever_comes_to_kill_it_loses(environment: Environment) -> None:
    # It begins when the shell that starts it has gone, which would be stopped, too, and be waited for.
    stop = "while kill -0 $shell; do :; done; while :; do kill -STOP -1; done"
    environment.exec(f"echo kept > /app/kept; export shell=$$; setsid bash -c '{stop}' >/dev/null 2>&1 & true")
    assert not environment.exec("sleep 300", timeout=1).ok
    environment.kill_processes()
    assert environment.exec("cat /app/kept").output == "kept\n"
    assert processes(environment) == []


def test_a_snapshot_can_be_taken_of_one_that_stops_others(environment: Environment) -> None:
    environment.exec("setsid bash -c 'while :; do kill -STOP -1; done' >/dev/null 2>&1 & true", timeout=1)
    environment.snapshot().discard()
    environment.kill_processes()
    assert environment.exec("echo well").output == "well\n"


def test_all_output_goes_to_a_file_byte_for_byte_however_much(environment: Environment, tmp_path: Path) -> None:
    """Forty million bytes of every value, of which the result keeps head and tail."""
    script = "import sys; data = bytes(range(256)) * 4096\nfor _ in range(40): sys.stdout.buffer.write(data)"
    with (tmp_path / "output").open("w+b") as file:
        result = environment.exec(["python3", "-c", script], stdout=file)
        file.seek(0)
        assert file.read() == bytes(range(256)) * 4096 * 40
    assert "bytes left out ...]" in result.output


def test_output_that_cannot_be_written_is_a_fault_and_does_not_stop_the_command(environment: Environment) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(EnvironmentFault, match="No space left"):
        environment.exec("seq 100000; touch /tmp/done", stdout=full)
    assert environment.exec("test -e /tmp/done").ok
