"""Podman's socket in place of Docker's: the contract of environments, as far as it goes there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environments.conftest import BASE
from tests.waiting import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.nightly]

_STARTING = 30.0  # seconds
CONTRACT = Path(__file__).with_name("test_environment_contract.py")
#: What Podman does in another way, see docs/environments.md: an unknown user is an error of its.
DIFFERENT = "test_a_command_that_cannot_start_is_a_failing_result_that_says_why"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory whose name is short enough for Podman."""
    with tempfile.TemporaryDirectory(prefix="pod", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def socket(place: Path) -> Iterator[str]:
    """The socket of a Podman that has the tests' image, and nothing of the user's."""
    if shutil.which("podman") is None:
        pytest.skip("there is no podman on PATH")
    storage = ["podman", "--root", str(place / "root"), "--runroot", str(place / "run")]
    # In a container, limits above its own cannot be set.
    limits = '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
    # Podman's own choice, crun, refuses to run where cgroups of both versions are mounted.
    runtime = '[engine]\nruntime = "runc"\n' if shutil.which("runc") else ""
    (place / "containers.conf").write_text(limits + runtime)
    environ = {**os.environ, "CONTAINERS_CONF": str(place / "containers.conf")}
    path = place / "podman.sock"
    with subprocess.Popen(["docker", "save", BASE], stdout=subprocess.PIPE) as saving:
        loaded = subprocess.run([*storage, "load"], stdin=saving.stdout, env=environ, capture_output=True, check=False)
    if loaded.returncode != 0:
        pytest.skip(f"podman cannot be used here: {loaded.stderr.decode()[-500:]}")
    service = subprocess.Popen([*storage, "system", "service", "--time=0", f"unix://{path}"], env=environ)
    try:
        wait_until(path.exists, seconds=_STARTING)
        yield f"unix://{path}"
    finally:
        service.terminate()
        service.wait()
        subprocess.run([*storage, "rm", "--all", "--force"], env=environ, capture_output=True, check=False)


def test_it_does_what_an_environment_has_to_do(socket: str) -> None:
    argv = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", str(CONTRACT)]
    argv += ["-k", f"docker and not {DIFFERENT}"]
    environ = {**os.environ, "DOCKER_HOST": socket}
    ended = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-5000:]
    assert " passed" in ended.stdout
