"""``evocode doctor``: what it says of a machine, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.agents.tried import agent_kinds
from pytest_evocode.errors import EnvironmentUnavailable
from pytest_evocode.llm.providers import PROVIDERS
from tests.cli.conftest import Evocode, Ran

KEYS = [name for each in PROVIDERS.values() for name in (*each.key_variables, each.token_variable) if name]


@pytest.fixture(autouse=True)
def _machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Docker and without keys, and a cache of its own."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody-listens")
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def told_of(name: str, ran: Ran) -> tuple[str, str, str]:
    """Whether a thing works, what is told of it, and the remedy."""
    lines = [*ran.out.splitlines(), ""]
    (number,) = (number for number, line in enumerate(lines) if line.startswith(f"{name}  "))
    works, _, told = lines[number].removeprefix(name).strip().partition("  ")
    remedy = lines[number + 1]
    return works, told.strip(), remedy.strip() if remedy.startswith("    ") else ""


def no_bubblewrap() -> str:
    raise EnvironmentUnavailable("no bubblewrap: no bwrap on PATH")


@pytest.mark.usefixtures("engine")
def test_a_machine_with_a_sandbox_can_run_tasks(evocode: Evocode) -> None:
    ran = evocode("doctor")
    assert ran.status == 0
    works, _, remedy = told_of("docker", ran)
    assert (works, remedy) == ("no", "start Docker, or set DOCKER_HOST; the sandbox needs none")
    assert "stands in for every FROM image" in told_of("sandbox without root", ran)[1]
    assert told_of("gateway", ran)[0] == "yes"


def test_a_machine_without_an_engine_says_so_and_what_to_do(evocode: Evocode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_evocode.environments.sandbox.engine.find_bubblewrap", no_bubblewrap)
    ran = evocode("doctor")
    assert ran.status == 1
    works, told, remedy = told_of("sandbox without root", ran)
    assert (works, told) == ("no", "no bubblewrap: no bwrap on PATH")
    assert "pip install 'pytest-evocode[sandbox]'" in remedy
    assert ran.out.endswith("\nTasks cannot be run here: neither Docker nor the sandbox works.\n")


def test_a_machine_without_dockers_command_cannot_build(evocode: Evocode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_evocode.environments.sandbox.engine.find_bubblewrap", no_bubblewrap)
    monkeypatch.setenv("PATH", "/nowhere")
    told = "none; building images in Docker needs it"
    assert told_of("command docker", evocode("doctor")) == ("no", told, "install the command docker")


def test_keys_are_named_and_not_told(evocode: Evocode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_evocode.environments.sandbox.engine.find_bubblewrap", no_bubblewrap)
    monkeypatch.setattr("pytest_evocode.cli.doctor._is_there", lambda module: module in ("openai", "anthropic"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    ran = evocode("doctor")
    assert told_of("anthropic/MODEL", ran) == ("yes", "ANTHROPIC_API_KEY given", "")
    works, told, remedy = told_of("openai/MODEL", ran)
    assert (works, told) == ("no", "not set up")
    assert "set OPENAI_API_KEY" in remedy
    assert "0123456789" not in ran.out


def test_a_provider_without_its_sdk_names_the_extra(evocode: Evocode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_evocode.environments.sandbox.engine.find_bubblewrap", no_bubblewrap)
    monkeypatch.setattr("pytest_evocode.cli.doctor.find_spec", lambda name: None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert told_of("openai/MODEL", evocode("doctor")) == (
        "no",
        "OPENAI_API_KEY given, no SDK",
        "pip install 'pytest-evocode[openai]'",
    )


def test_a_full_disk_is_told_with_what_frees_some(evocode: Evocode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_evocode.environments.sandbox.engine.find_bubblewrap", no_bubblewrap)
    monkeypatch.setattr("pytest_evocode.cli.doctor._AMPLE_DISK", 2**80)
    works, told, remedy = told_of("disk", evocode("doctor"))
    assert works == "no"
    assert told.endswith("cache")
    assert "evocode clean" in remedy


def test_a_broken_configuration_of_an_sdk_ends_nothing(
    evocode: Evocode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("boto3")
    pytest.importorskip("anthropic")
    monkeypatch.setattr("pytest_evocode.environments.sandbox.engine.find_bubblewrap", no_bubblewrap)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    works, _, remedy = told_of("bedrock/MODEL", evocode("doctor"))
    assert works == "no"
    assert "no-such-profile" in remedy


def test_a_cache_that_cannot_be_written_is_told_with_what_to_set(
    evocode: Evocode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "file"))
    ran = evocode("doctor")
    assert ran.status == 1
    assert told_of("disk", ran)[0] == "no"
    assert "EVOCODE_CACHE" in told_of("disk", ran)[2]


def test_every_program_that_agents_lists_is_found_on_path(
    evocode: Evocode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pytest_evocode.environments.sandbox.engine.find_bubblewrap", no_bubblewrap)
    programs = [kind for kind in agent_kinds() if kind.program]
    for kind in programs:
        (tmp_path / kind.executable).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    works, told, _ = told_of("CLIs on PATH", evocode("doctor"))
    assert (works, told) == ("yes", ", ".join(kind.executable for kind in programs))
    (tmp_path / "codex").unlink()
    assert "codex" not in told_of("CLIs on PATH", evocode("doctor"))[1]
