"""What a program does to the environment that it runs in is no end of that, nor a fault of the engine's."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.environments.sandbox.processes import is_readable
from pytest_evocode.errors import AgentFault
from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]

EATER = ["python3", "-c", "kept = bytearray(300 << 20)"]
#: Traces PID 1 and has it die, or says that it could write into its memory.
TRACER = """
import ctypes, os
libc = ctypes.CDLL(None)
attach, go_on = 16, 7
if libc.ptrace(attach, 1, None, None) == 0:
    os.waitpid(1, 0x40000000)
    libc.ptrace(go_on, 1, None, 9)
try:
    open("/proc/1/mem", "r+b").close()
except OSError:
    print("nothing can be done to PID 1")
"""


def test_no_program_can_trace_the_first_process_and_have_it_end(sandbox_engine: Engine, make_task: MakeTask) -> None:
    environment = sandbox_engine.create(make_task(), env={}, network=None)
    environment.start()
    try:
        assert environment.exec(["python3", "-c", TRACER], timeout=60).output == "nothing can be done to PID 1\n"
        assert environment.exec("echo here").output == "here\n"
    finally:
        environment.stop()


@pytest.fixture
def small(make_task: MakeTask, cache: Path) -> Iterator[SandboxEnvironment]:
    """A sandbox with 64 MiB of memory."""
    engine = SandboxEngine()
    environment = engine.create(make_task(toml='[environment]\nmemory = "64M"\n'), env={}, network=None)
    assert isinstance(environment, SandboxEnvironment)
    environment.start()
    if environment._launcher.cgroup is None:
        pytest.skip("no cgroup limits memory here, so that the kernel kills nothing for that")
    yield environment
    environment.stop()
    engine.close()


def first_process(environment: SandboxEnvironment) -> int:
    """The number of a sandbox's PID 1 on the host."""
    lines = Path(f"/proc/self/fdinfo/{environment._pidfd}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))


def launcher_of(environment: SandboxEnvironment) -> int:
    """The number of the process that starts a sandbox's programs."""
    bubblewrap = _parent(first_process(environment))
    return _parent(bubblewrap)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def run_out_of_memory(environment: SandboxEnvironment, chosen: Callable[[SandboxEnvironment], int]) -> None:
    """Have the kernel kill a program for memory, and kill another process as the kernel may choose it then."""
    assert environment.exec(EATER, timeout=60).exit_code == 137
    os.kill(chosen(environment), signal.SIGKILL)
    assert is_readable(environment._pidfd, 60)  # PID 1 has ended.


@pytest.mark.parametrize("chosen", [first_process, launcher_of])
def test_a_sandbox_whose_memory_ran_out_goes_on_with_its_files(
    small: SandboxEnvironment, chosen: Callable[[SandboxEnvironment], int]
) -> None:
    small.exec("echo kept > /app/kept")
    run_out_of_memory(small, chosen)
    assert small.exec("cat /app/kept").output == "kept\n"
    assert small.exec(EATER, timeout=60).output.endswith("[killed: over the limit of 64 MiB of memory]\n")


def test_files_can_be_judged_where_a_sandbox_cannot_be_started_again(small: SandboxEnvironment) -> None:
    small.exec("echo kept > /app/kept; rm /usr/bin/bash")
    run_out_of_memory(small, first_process)
    for _ in range(2):
        with pytest.raises(AgentFault, match="execvp bash"):
            small.exec(["true"])
    small.kill_processes()
    snapshot = small.snapshot()
    assert (small.layers.top / "root/app/kept").read_text() == "kept\n"
    snapshot.discard()
    small.stop()
    assert not small.layers.top.exists()


def test_a_launcher_that_was_killed_serves_no_other_sandbox(small: SandboxEnvironment) -> None:
    killed, pool = small._launcher, small._settings.launchers
    assert killed.limits is not None
    assert killed.cgroup is not None
    with subprocess.Popen(["sleep", "600"]) as last:  # What is about to end, and has not yet.
        try:
            for directory in killed.cgroup.directories:
                (directory / "cgroup.procs").write_text(str(last.pid))
            pidfd = os.dup(small._pidfd)
            os.kill(launcher_of(small), signal.SIGKILL)
            assert is_readable(pidfd, 60)
            os.close(pidfd)
            small.stop()
            processes, memory, cpus = killed.limits
            other = pool.acquire(processes=processes, memory=memory, cpus=cpus)
            assert other is not killed
            pool.release(other)
        finally:
            last.kill()
