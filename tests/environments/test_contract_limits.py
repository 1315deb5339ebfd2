"""What every environment promises about programs that take all they can get: their deadline holds and it answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.limits import ResourceLimits
from pytest_evocode.environments.sandbox.cgroups import find_parents, memory_limits
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.errors import EnvironmentUnavailable
from pytest_evocode.tasks import Task
from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.slow, pytest.mark.matrix]

LIMITS = ResourceLimits(processes=60)
#: More processes than the limit, but a fixed number: a bomb would be quicker than who counts on a busy machine.
MANY = "import subprocess, time\nfor _ in range(100):\n    subprocess.Popen(['sleep', '300'])\ntime.sleep(300)\n"
FORKS = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"


@pytest.fixture(scope="module", params=["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
def limited(request: pytest.FixtureRequest, cache: Path) -> Iterator[Engine]:
    """Engines whose limits a test reaches at once.

    Not the rootless one for root: nothing but counting bounds processes there, and on a busy machine a fork bomb is
    quicker than who counts.
    """
    from pytest_evocode.environments.docker.engine import DockerEngine

    try:
        if request.param == "docker":
            engine: Engine = DockerEngine(LIMITS)
        else:
            engine = SandboxEngine(limits=LIMITS)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def small_task(make_task: MakeTask) -> Task:
    return make_task(toml='[environment]\nmemory = "64M"\n')


@pytest.fixture
def small(limited: Engine, small_task: Task) -> Iterator[Environment]:
    """An environment with 64 MiB of memory and room for 60 processes."""
    environment = limited.create(small_task, env={}, network=None)
    environment.start()
    yield environment
    environment.stop()


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize(
    "command", ["bomb() { bomb | bomb & }; bomb; sleep 300", ["python3", "-c", FORKS]], ids=["shell", "python"]
)
def test_a_fork_bomb_ends_at_its_deadline_at_the_latest(
    small: Environment, command: str | list[str], user: str
) -> None:
    result = small.exec(command, timeout=2, user=user)
    assert result.timed_out or result.exit_code == 137
    assert result.seconds < 30
    # No more than PID 1 and those that count.
    assert int(small.exec("ls /proc | grep -c '^[0-9]'", timeout=30).output) <= 4


def test_what_eats_the_memory_is_killed(small: Environment) -> None:
    result = small.exec(["python3", "-c", "import time; kept = bytearray(300 << 20); time.sleep(300)"], timeout=60)
    assert result.exit_code == 137
    assert small.exec(["cat", "/app/from-image"]).output == "original\n"


def test_files_in_memory_are_bounded(small: Environment) -> None:
    assert not small.exec("head -c 80M /dev/zero > /dev/shm/large", timeout=60).ok
    small.exec("rm -f /dev/shm/large")
    assert small.exec(["cat", "/app/from-image"]).output == "original\n"


def test_an_attempt_goes_on_after_a_fork_bomb(small: Environment) -> None:
    small.exec("echo kept > /app/kept")
    small.exec("bomb() { bomb | bomb & }; bomb; sleep 300", timeout=1)
    snapshot = small.snapshot()
    fork = small.fork(snapshot, network=None)
    fork.start()
    assert fork.exec("cat /app/kept").output == "kept\n"
    fork.stop()
    snapshot.discard()


@pytest.fixture(params=[False, True], ids=["cgroups", "counting"])
def sandbox(request: pytest.FixtureRequest, cache: Path, small_task: Task) -> Iterator[Environment]:
    """A small sandbox whose limits the kernel keeps, where it does, or the launcher."""
    engine = SandboxEngine(cgroups=not request.param, limits=LIMITS)
    environment = engine.create(small_task, env={}, network=None)
    environment.start()
    yield environment
    engine.close()


def test_the_output_names_the_limit_that_a_command_has_passed(sandbox: Environment) -> None:
    eater = ["python3", "-c", "import time; kept = bytearray(300 << 20); time.sleep(300)"]
    assert sandbox.exec(eater, timeout=60).output.endswith("[killed: over the limit of 64 MiB of memory]\n")
    assert "[killed" not in sandbox.exec("exit 3").output
    many = sandbox.exec(["python3", "-c", MANY], timeout=60)
    assert "limit of 60 processes]" in many.output or os.getuid() != 0  # For other users the kernel refuses silently.


def test_a_sandbox_that_fills_the_disk_is_killed_and_can_make_room(cache: Path, plain_task: Task) -> None:
    free = shutil.disk_usage(cache).free
    engine = SandboxEngine(limits=ResourceLimits(free_disk=free - 100 * 2**20))
    try:
        environment = engine.create(plain_task, env={}, network=None)
        environment.start()
        result = environment.exec("head -c 400M /dev/zero > /app/large; sleep 300", timeout=60)
        assert result.exit_code == 137
        assert "MiB of disk left for sandboxes]" in result.output
        environment.remove(["/app/large"])
        assert environment.exec("sleep 1; cat from-image").output == "original\n"
    finally:
        engine.close()


def test_cgroups_of_a_session_are_gone_when_it_ends(cache: Path, plain_task: Task) -> None:
    engine = SandboxEngine()
    tree = engine._settings.launchers.tree
    environment = engine.create(plain_task, env={}, network=None)
    environment.start()
    environment.exec("sleep 300 >/dev/null 2>&1 &")
    fork = environment.fork(environment.snapshot(), network=None)
    fork.start()
    if tree is None:
        assert "cpus" in engine.without_effect
        engine.close()
        return
    directories = tree._top.directories
    assert all(directory.is_dir() for directory in directories)
    engine.close()
    assert not any(directory.exists() for directory in directories)


def test_cgroups_of_a_killed_session_are_removed_by_the_next_one(cache: Path, plain_task: Task) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from pytest_evocode.environments.sandbox.engine import SandboxEngine\n"
        "from pytest_evocode.tasks import load_task\n"
        "engine = SandboxEngine(); e = engine.create(load_task(Path(sys.argv[1])), env={}, network=None); e.start()\n"
        "e.exec('sleep 300 >/dev/null 2>&1 &'); tree = engine._settings.launchers.tree\n"
        "print(*(tree._top.directories if tree else ()), sep='\\n', flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script, plain_task.directory], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    SandboxEngine().close()
    assert not any(os.path.exists(directory) for directory in done.stdout.split())


def test_memory_limits_of_version_2_hold_from_above_ones_own_cgroup(tmp_path: Path) -> None:
    mounted, proc = tmp_path / "cgroup", tmp_path / "proc"
    own = mounted / "user.slice" / "session.scope"
    own.mkdir(parents=True)
    proc.mkdir()
    (proc / "cgroup").write_text("0::/user.slice/session.scope\n")
    (proc / "mountinfo").write_text(f"31 23 0:28 / {mounted} rw,relatime - cgroup2 cgroup2 rw\n")
    for directory, memory in ((mounted, ""), (own.parent, f"{2**30}\n"), (own, "max\n")):
        (directory / "cgroup.procs").touch()
        (directory / "memory.max").write_text(memory)
    assert memory_limits(proc) == [2**30]
    assert find_parents(proc) == ()  # None of them lets its controllers be enabled.
