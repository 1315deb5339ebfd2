"""The contract of programs, with a session that is not root's: by user namespaces, and by the group of Docker."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrity.rootless import UID, Rootless

pytestmark = pytest.mark.slow


@pytest.fixture
def rootless() -> Iterator[Rootless]:
    """Somebody who is not root."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; what runs here runs without root anyway")
    with tempfile.TemporaryDirectory(prefix="evocode-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        os.chown(directory, UID, UID)
        user = Rootless(directory, directory)
        if why := user.why_not():
            pytest.skip(f"no other user can run the plugin here: {why}")
        yield user


@pytest.mark.parametrize("engine", ["sandbox", pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.nightly])])
@pytest.mark.parametrize(
    "contract",
    ["test_contract_programs.py", pytest.param("test_contract_hostile_programs.py", marks=pytest.mark.nightly)],
)
@pytest.mark.nightly
def test_programs_run_without_root(rootless: Rootless, engine: str, contract: str) -> None:
    here = Path(__file__)
    arguments = [
        *("-p", "no:cacheprovider", "-n", "0", "-q", "-rs", f"--rootdir={here.parents[2]}"),
        *("-c", str(here.parents[2] / "pyproject.toml"), str(here.with_name(contract))),
        *("-k", "docker" if engine == "docker" else "sandbox and not rootless"),
    ]
    result = rootless.pytest(rootless.directory, arguments)
    outcomes = result.parseoutcomes()
    if "passed" not in outcomes and "skipped" in outcomes:
        pytest.skip(next(line for line in result.outlines if line.startswith("SKIPPED")))
    assert result.ret == 0, result.stdout.str()
    assert outcomes["passed"] > 10
